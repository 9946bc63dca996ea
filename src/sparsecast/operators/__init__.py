"""Operators, y = op @ x, and their applications."""
