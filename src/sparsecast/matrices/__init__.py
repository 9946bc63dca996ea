"""Matrices: reading them, making them, and the Structure that models read of them."""

from sparsecast.compilation import keep_kernels_apart

keep_kernels_apart()
