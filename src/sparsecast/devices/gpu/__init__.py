"""Shared parts of all GPUs: the device, kernels, their launch, the operator and the clock."""
