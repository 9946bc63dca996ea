"""Measuring: times of zero-argument callables; what they compute is not its business."""
