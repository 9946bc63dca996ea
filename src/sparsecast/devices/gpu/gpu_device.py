"""Everything that GPUs have in common as devices; each adds its description and the errors of its driver.

The other modules of this folder need the packages of a GPU. They are imported when a GPU is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sparsecast.devices.binding import Bound, FormatKernels, bind
from sparsecast.devices.device import Device
from sparsecast.devices.gpu.kernels import KERNELS
from sparsecast.errors import InputError
from sparsecast.formats.narrowing import NARROW_PARAMETERS
from sparsecast.machines.machine import Machine
from sparsecast.measuring.timing import Call, Clock
from sparsecast.operators.block_operator import BlockOperator
from sparsecast.records import Candidate
from sparsecast.system.integers import INT32_MAX
from sparsecast.system.registry import Registry

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from sparsecast.devices.target import Target
    from sparsecast.matrices.suites import SuiteMatrix

#: Arrays copied between host and device, from pure latency to pure bandwidth. A larger one would take a
#: second.
_TRANSFER_BYTES = (1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 26)
MOST_TRANSFER_BYTES = 1 << 28


#: Benchmark matrices with more non-zeros take seconds to make, and come last, as far as the budget lasts.
SOON_ENTRIES = 30_000_000

#: Bytes per non-zero during a measurement: on the GPU, which holds all formats with values and indices, and
#: on the host, which builds one format at a time.
_DEVICE_BYTES_AN_ENTRY, _HOST_BYTES_AN_ENTRY = 96, 60

#: Share of the host's memory that a benchmark matrix may take.
_HOST_SHARE = 0.25


@dataclass(frozen=True)
class GPUDevice(Device):
    """The current GPU, for which Numba compiles kernels written for the module ``numba.cuda``.

    A subclass has a `name`, `describe` and `require_library`; most have a `meter` and `errors` too. The
    toolkit of another vendor must replace ``numba.cuda``.
    """

    kind: ClassVar[str] = "GPU"
    dtypes: ClassVar[tuple[str, ...]] = ("float64", "float32")
    kernels: ClassVar[Registry[FormatKernels]] = KERNELS
    is_numbered: ClassVar[bool] = True
    may_read_energy: ClassVar[bool] = True
    shares_host: ClassVar[bool] = False

    #: With 0, products find the data of the previous product in the caches. Otherwise, products alternate
    #: between copies of matrix and vectors that together exceed this number.
    cold_bytes: int = 0

    @property
    def regime(self) -> str:
        return "cold" if self.cold_bytes else "warm"

    def threads(self, machine: Machine, requested: int | None) -> int:
        """Return 1: all threads of a GPU take part. Refuse other numbers."""
        if requested not in (None, 1):
            raise InputError(
                f"threads {requested} on a GPU: expected none, as all its threads take part; leave them out"
            )
        return 1

    def clock(self) -> Clock:
        from sparsecast.devices.gpu.clock import EventClock

        self.require_library()
        return EventClock()

    def array_sizes(self, machine: Machine, threads: int) -> list[int]:
        """Return sizes for transfers, and one of four times the L2."""
        assert machine.gpu is not None
        return sorted({*_TRANSFER_BYTES, 4 * machine.gpu.l2_bytes})

    def bandwidth_calls(self, size_bytes: int, threads: int) -> dict[str, Call]:
        from sparsecast.devices.gpu import clock

        calls = {"read": clock.device_read(size_bytes), "copy": clock.device_copy(size_bytes)}
        if size_bytes <= MOST_TRANSFER_BYTES:
            calls["to device"] = clock.device_upload(size_bytes)
            calls["from device"] = clock.device_download(size_bytes)
        return calls

    def suites(self, target: Target, machine: Machine) -> tuple[list[SuiteMatrix], list[SuiteMatrix]]:
        """Return the required matrices, and the optional ones of all suites in turn.

        So the first ones make a coarse profile. Matrices beyond SOON_ENTRIES come last, in ascending order.
        """
        from sparsecast.matrices.suites import OPTIONAL, in_turn, usual_parts

        parts = usual_parts(machine, target.threads)
        most = self.most_entries(machine)
        required, optional = (
            [
                matrix
                for matrix in in_turn(part.matrices for part in parts if (part.order < OPTIONAL) == is_first)
                if matrix.entries <= most
            ]
            for is_first in (True, False)
        )
        return required, sorted(optional, key=lambda matrix: max(matrix.entries, SOON_ENTRIES))

    def most_entries(self, machine: Machine) -> float:
        """Return the non-zeros of the largest benchmark matrix: Guo's bound is the memory of the GPU (3.2.1).

        Indices have 32 bits, and a share of the host's memory must hold the matrices during construction.
        """
        assert machine.gpu is not None
        on_gpu = machine.gpu.memory_bytes // _DEVICE_BYTES_AN_ENTRY
        here = int(_HOST_SHARE * machine.memory_bytes) // _HOST_BYTES_AN_ENTRY
        return min(on_gpu, here, INT32_MAX)

    def calibrated(self, chosen: Sequence[Candidate]) -> list[Candidate]:
        """Return every variant in full storage, and in narrow storage the chosen one."""
        return [
            replace(candidate, kernel=variant)
            for candidate in chosen
            for variant in KERNELS.get(candidate.format).variants_of(candidate.dtype)
            if variant == candidate.kernel or NARROW_PARAMETERS.isdisjoint(candidate.parameters)
        ]

    def bind(self, A: csr_array[Any], candidate: Candidate) -> tuple[Bound, float]:
        """Return the bound candidate, and the seconds to build its format and to copy it to the GPU."""
        from sparsecast.devices.gpu.launching import compiled_kernels

        before, start = compiled_kernels(), perf_counter()
        bound = bind(A, candidate)
        if compiled_kernels() > before:  # that of BCSR depends on its block size: once more, without it
            start = perf_counter()
            bound = bind(A, candidate)
        return bound, perf_counter() - start

    def put(self, array: np.ndarray[Any, Any]) -> Any:
        from sparsecast.devices.gpu.launching import upload

        return upload("vectors", array)[0]

    def take(self, array: Any) -> np.ndarray[Any, Any]:
        return np.asarray(array.copy_to_host())

    def call(self, candidate: Candidate, bound: Bound, x: Any, out: Any) -> Call:
        """Return the callable that queues the product, alternating between its copies if there are any."""
        from sparsecast.devices.gpu.launching import pointer, refuse_beyond_memory, scratch, upload

        product: Any = bound.product  # a DeviceProduct
        used = [(product, x, out)]
        copies = self.cold_bytes // max(1, bound.matrix.traffic())
        refuse_beyond_memory(f"{copies} cold copies", copies * (product.nbytes + x.nbytes + out.nbytes))
        for _ in range(copies):
            kernels = KERNELS.get(candidate.format)
            copied = upload("vectors", x.copy_to_host())[0], scratch(out.size, out.dtype)
            used.append((kernels.bind(bound.matrix, candidate.kernel, candidate.threads), *copied))
        # Addresses are looked up once; what is held has the arrays.
        queues = [partial(product.launch, pointer(x), pointer(out), 0) for product, x, out in used]
        turns = cycle(queues)
        if copies:
            return lambda held=used: next(turns)()  # type: ignore[misc]
        return lambda held=used: queues[0]()  # type: ignore[misc]

    def operator_type(self) -> type[BlockOperator]:
        from sparsecast.devices.gpu.operator import DeviceOperator

        return DeviceOperator
