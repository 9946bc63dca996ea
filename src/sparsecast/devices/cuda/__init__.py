"""NVIDIA's GPUs: kernels of numba-cuda; the rules that choose among them need no GPU library."""

from __future__ import annotations

from sparsecast.devices import DEVICES
from sparsecast.devices.cuda.nvidia import NvidiaGPU

DEVICES.register("cuda")(NvidiaGPU())
