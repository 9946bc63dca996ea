"""What all GPUs share: the device, kernels, their launch, the operator and the clock."""
