"""Models of ranks of this paper; each file registers one."""
