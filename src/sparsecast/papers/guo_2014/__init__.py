"""Guo, Wang and Chen (2014): strip models of CSR, ELL, COO and HYB; a format for each row block.

P. Guo, L. Wang, P. Chen, "A Performance Modeling and Optimization Analysis Tool for Sparse Matrix-Vector
Multiplication on GPUs", IEEE TPDS 25 (2014). The head of `strip_models.py` says what differs from the print,
and why. The straight lines, which Wang's models share, are in `sparsecast.models.strip_lines`; the dynamic
programme of section 4, which plans for any model, in `sparsecast.planning.dynamic_programme`.
"""
