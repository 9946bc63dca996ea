"""Partitions of a matrix among ranks, and what they make of it: entries and messages a rank."""
