"""The system below: memory, threads, files, compiled kernels, progress, registries, tables."""
