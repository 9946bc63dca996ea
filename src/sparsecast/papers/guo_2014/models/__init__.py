"""Models of this paper; each file registers one."""
