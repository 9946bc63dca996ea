"""Machines: their descriptions, and the profiles that hold what was measured on them."""
