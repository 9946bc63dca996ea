"""A GPU that computes nothing, in place of ``numba.cuda``: what the host does for each product remains.

    python benchmarks/gpu_idle.py [--budget 60]        calibrates it, and tells the host's seconds a matrix
    python benchmarks/gpu_idle.py --campaign FOLDER    runs the campaign on it

It is described as an H100. A launch takes there, as it says, what a product of some megabytes takes; no one
waits for it, and results are taken as right.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Seconds that the device says a launch took, and bytes a second of a copy, which is done here, too.
LAUNCH_S, COPIED_BYTES_PER_S = 20e-6, 10e9

#: Its free memory: that of an H100.
MEMORY_BYTES = 85_017_493_504


class IdleArray:
    """An array that was copied to the device."""

    def __init__(self, device: IdleCuda, array: NDArray[Any]) -> None:
        self._device, self._array = device, array
        self.dtype, self.size, self.nbytes, self.shape = array.dtype, array.size, array.nbytes, array.shape

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return dict(self._array.__array_interface__)

    def copy_to_host(self, target: NDArray[Any] | None = None) -> NDArray[Any]:
        self._device.seconds += LAUNCH_S + self.nbytes / COPIED_BYTES_PER_S
        if target is None:
            return self._array.copy()
        np.copyto(target, self._array)
        return target

    def copy_to_device(self, source: Any) -> None:
        self._device.seconds += LAUNCH_S + self.nbytes / COPIED_BYTES_PER_S
        np.copyto(self._array, source._array if isinstance(source, IdleArray) else source)


@dataclass
class _Event:
    device: IdleCuda
    at_s: float = 0.0

    def record(self) -> None:
        self.at_s = self.device.seconds

    def synchronize(self) -> None:
        """Nothing is awaited."""

    def elapsed_time(self, other: _Event) -> float:
        return 1e3 * (other.at_s - self.at_s)


class IdleCuda:
    """What our code uses of ``numba.cuda``."""

    def __init__(self) -> None:
        self.seconds = 0.0  # that its work took, as it says
        memory = SimpleNamespace(free=MEMORY_BYTES, total=MEMORY_BYTES)
        self._context = SimpleNamespace(
            get_memory_info=lambda: memory,
            deallocations=SimpleNamespace(clear=lambda: None),
            device=SimpleNamespace(uuid="GPU-none"),  # which NVML does not know
        )
        self.shared = self.local = SimpleNamespace(array=None)

    def to_device(self, array: NDArray[Any]) -> IdleArray:
        return IdleArray(self, array.copy())

    def device_array(self, shape: Any, dtype: Any) -> IdleArray:
        return IdleArray(self, np.empty(shape, dtype))

    def current_context(self) -> SimpleNamespace:
        return self._context

    def event(self) -> _Event:
        return _Event(self)

    def synchronize(self) -> None:
        """Nothing is awaited."""

    def jit(self, *signature: Any, **options: Any) -> Callable[[Any], Any]:
        if len(signature) == 1 and callable(signature[0]) and not options:
            return self
        return lambda function: function if options.get("device") else self

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return self._launch

    def _launch(self, *arguments: Any) -> None:
        self.seconds += LAUNCH_S


@contextmanager
def idle_device() -> Iterator[IdleCuda]:
    """Put the device in place of ``numba.cuda``; before kernels are imported."""
    from sparsecast.devices import cuda
    from sparsecast.devices.gpu import launching
    from sparsecast.devices.product_timer import ReferenceProduct

    idle, compared = IdleCuda(), ReferenceProduct.errors
    launching.cuda, launching.core = idle, None
    cuda.numba_cuda = lambda: idle

    def errors(self: ReferenceProduct, y: NDArray[Any]) -> NDArray[np.float64]:
        with np.errstate(all="ignore"):
            return np.zeros_like(compared(self, y))  # compared, as that takes time, and taken as right

    ReferenceProduct.errors = errors  # type: ignore[method-assign]
    try:
        yield idle
    finally:
        ReferenceProduct.errors = compared  # type: ignore[method-assign]


def calibrated(budget_s: float) -> None:
    """Calibrate the idle device in both types, and tell what the host took and what was measured."""
    from gpu_scope import H100
    from sparsecast.benchmark.run import Calibration
    from sparsecast.devices import DEVICES
    from sparsecast.devices.target import Target
    from sparsecast.machines.machine import detect

    device = DEVICES.get("cuda")
    machine = replace(detect(), device=device.name, gpu=H100)
    targets = [Target(device.name, dtype, 32, 1) for dtype in device.dtypes]
    with tempfile.TemporaryDirectory() as folder:
        run = Calibration(machine, targets, budget_s, device=device, path=Path(folder) / "idle.parquet")
        run.compile_kernels()
        start_s = perf_counter()
        records = run.run().records
        took_s = perf_counter() - start_s
    host_s = run.phases["the models' matrices"]
    matrices = Counter(record.matrix for record in records)
    entries = sum({(r.matrix, r.candidate.dtype): r.nnz for r in records}.values())
    kernels = Counter((r.candidate.dtype, r.candidate.format, r.candidate.kernel) for r in records)
    fewest = [" ".join(kernel) for kernel, count in kernels.items() if count == min(kernels.values())]
    print(f"{took_s:.1f} s of {budget_s:g}: {len(records):,} records of {len(matrices)} matrices")
    each = f"{1e3 * host_s / max(1, len(matrices)):.0f} ms a matrix, both types"
    print(f"host: {each}, {1e9 * host_s / max(1, entries):.0f} ns an entry in each type")
    print(f"fewest records of a kernel: {min(kernels.values())}, of {', '.join(fewest)}")
    print(f"median: {statistics.median(kernels.values()):g}, kernels: {len(kernels)}")
    for phase, seconds in run.phases.items():
        print(f"{phase}: {seconds:.1f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--budget", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--campaign", action="store_true", help="what follows is the campaign's")
    arguments, others = parser.parse_known_args()
    with idle_device():
        if not arguments.campaign:
            calibrated(arguments.budget)
            return 0
        import gpu_campaign
        from gpu_scope import H100, Scope

        sys.argv[1:] = others
        return gpu_campaign.main(H100, Scope(is_device=False))


if __name__ == "__main__":
    sys.exit(main())
