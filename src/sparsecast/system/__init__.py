"""What Sparsecast needs of the computer and of Numba: memory, threads, files, compiled kernels, progress."""
