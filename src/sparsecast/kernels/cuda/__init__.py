"""numba-cuda kernels for NVIDIA devices; the rules that choose among them need no GPU library."""
