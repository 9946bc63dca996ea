"""Commands of this paper; each file registers one."""
