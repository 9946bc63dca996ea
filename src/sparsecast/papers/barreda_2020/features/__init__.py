"""Feature groups of this paper; each file registers one."""
