"""Benchmarks: the measurements that calibrate a machine and judge the models."""
