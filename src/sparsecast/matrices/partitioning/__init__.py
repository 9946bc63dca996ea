"""Partitions of a matrix among ranks, with the entries and messages of each rank."""
