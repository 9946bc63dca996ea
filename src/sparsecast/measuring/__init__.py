"""Measuring: times and energy of zero-argument callables, whatever they compute."""
