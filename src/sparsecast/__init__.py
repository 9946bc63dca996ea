"""Sparsecast: forecasts, plans and runs sparse matrix-vector products."""

__version__ = "0.1.0"
