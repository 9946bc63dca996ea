"""Wang, Gu and Li (2017): models from matrices with normal, uniform and binomial row lengths.

R. Wang, T. Gu, M. Li, "Performance Prediction Based on Statistics of Sparse Matrix-Vector Multiplication on
GPUs", Journal of Computer and Communications 5 (2017). The head of `row_length_model.py` says what the paper
leaves open.
"""
