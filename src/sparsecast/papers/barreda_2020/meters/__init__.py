"""Meters of this paper; each file registers one."""
