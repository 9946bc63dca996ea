"""The energy counter of NVIDIA's GPUs."""

from __future__ import annotations

import importlib

from sparsecast.devices.cuda.driver import device_uuid
from sparsecast.errors import DeviceError


class NvmlMeter:
    """The energy counter of an NVIDIA device, from NVML.

    The device is given by its UUID, by default that of CUDA's current device: NVML's numbers include devices
    that CUDA_VISIBLE_DEVICES hides, in another order. A DeviceError says that there is no such counter.
    """

    source, run_s, step_s = "nvml", 2.0, 0.1

    def __init__(self, uuid: str | None = None) -> None:
        try:
            self._nvml = importlib.import_module("pynvml")
        except ImportError as error:
            raise DeviceError(
                "energy of the device: expected the Python package nvidia-ml-py to read it; "
                "pip install nvidia-ml-py, or measure time only"
            ) from error
        uuid = device_uuid() if uuid is None else uuid
        try:
            self._nvml.nvmlInit()
            self._device = self._nvml.nvmlDeviceGetHandleByUUID(uuid)
            self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._device)
        except self._nvml.NVMLError as error:
            raise DeviceError(
                f"energy of device {uuid}: expected a counter that NVML reads ({error}); measure time only"
            ) from error

    def joules(self) -> float | None:
        """Return the joules since the driver was loaded, None if the device no longer answers."""
        try:
            return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._device)) / 1e3
        except self._nvml.NVMLError:
            return None
