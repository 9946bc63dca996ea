"""Operators, y = op @ x, and what products are done for."""
