"""Benchmark matrices of this paper; each file registers one suite."""
