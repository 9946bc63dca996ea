"""Machines: descriptions, and profiles with the measurements."""
