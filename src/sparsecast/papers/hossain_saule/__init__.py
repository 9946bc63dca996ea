"""Hossain and Saule: products in one process and on many ranks, by micro-benchmarks, lines and regression.

`models/` forecasts one process, `clusters/` many ranks; their heads say what differs from the print, and why.
"""
