"""Matrices: reading them, making them, and the Structure that models read of them."""
