"""Numba kernels for processors, compiled for the machine they run on and cached on disk."""
