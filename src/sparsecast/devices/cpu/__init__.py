"""Processors: kernels of Numba, compiled for the machine they run on and cached on disk."""

from __future__ import annotations

from sparsecast.devices import DEVICES
from sparsecast.devices.cpu.processor import Processor

DEVICES.register("cpu")(Processor())
