"""Meters of energy that the system or the user has, one file each; those of a GPU are with its device."""
