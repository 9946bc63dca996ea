"""Machines: what they are, and the files that keep what was learned about them."""
