"""The energy counter of NVIDIA's GPUs."""

from __future__ import annotations

import importlib

from sparsecast.devices.cuda.driver import device_uuid
from sparsecast.errors import DeviceError


class NvmlMeter:
    """The energy counter of an NVIDIA device, from NVML.

    It is that of the device with this UUID, by default the current one of CUDA. Its number would not do: NVML
    counts those as well that CUDA_VISIBLE_DEVICES hides, and in another order.

    Raises
    ------
    DeviceError
        If NVML or the device cannot be found, or the device does not count its energy.
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
        """Return the joules since the driver was loaded, None where the device does not answer any more."""
        try:
            return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._device)) / 1e3
        except self._nvml.NVMLError:
            return None
