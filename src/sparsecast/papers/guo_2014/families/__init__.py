"""Families of matrices of this paper; each file registers one."""
