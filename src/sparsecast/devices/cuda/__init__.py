"""NVIDIA's GPUs; the rules that choose kernels need no GPU library."""

from __future__ import annotations

from sparsecast.devices import DEVICES
from sparsecast.devices.cuda.nvidia import NvidiaGPU

DEVICES.register("cuda")(NvidiaGPU())
