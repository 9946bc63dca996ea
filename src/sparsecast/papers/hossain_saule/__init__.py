"""Hossain and Saule: products in one process and on many ranks, by micro-benchmarks, lines and regression.

The heads of `micro.py`, `linear.py` and `svr.py` say what differs from the print, and why.
"""

#: The formats of all models of the paper, and its three distributed products.
FORMATS_OF_THE_PAPER = ("csr", "coo")
ALGORITHMS_OF_THE_PAPER = ("global-1d", "local-1d", "2d")
