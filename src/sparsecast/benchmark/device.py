"""The bench of a CUDA device, and the benchmark matrices that fill one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, cycle, groupby, zip_longest
from time import perf_counter
from typing import Any, cast

import numpy as np
from scipy.sparse import csr_array

from sparsecast.benchmark.bandwidths import array_sizes, measure_bandwidths
from sparsecast.benchmark.calibration import (
    ENTRY_STRIPS,
    NNZ_PER_ROW,
    STRIPS,
    Place,
    SuiteMatrix,
    blocks_benchmark,
    diagonals_benchmark,
    entry_strips_benchmark,
    gallery_benchmark,
    strips_benchmark,
    suite_matrix,
    suites_beside_strips,
    varied_benchmark,
)
from sparsecast.errors import DeviceError
from sparsecast.features.structure import Structure
from sparsecast.kernels import KERNELS
from sparsecast.kernels.binding import Bound, bind
from sparsecast.kernels.cuda.launching import (
    DeviceProduct,
    compiled_kernels,
    pointer,
    refuse_beyond_memory,
    scratch,
    upload,
)
from sparsecast.machines.gpu import Device
from sparsecast.machines.machine import Machine
from sparsecast.machines.strips import guo_strip, wang_strip
from sparsecast.measuring.cuda_clock import EventClock
from sparsecast.measuring.energy import Energy, Meter, NvmlMeter, energy_of
from sparsecast.measuring.timing import Call, Clock
from sparsecast.planning.candidates import Target, whole_matrix
from sparsecast.records import Bandwidth, Candidate

#: Non-zeros of the largest benchmark matrix: more would take the host longer to make than the device to use.
LARGEST_ENTRIES = 30_000_000

#: Non-zeros a row of the matrices for CSR: one more length than for a processor, beyond the threads of a
#: block, from where on section 3.5.1 has another line.
CSR_NNZ_PER_ROW = (*NNZ_PER_ROW, 2048)

#: Wang et al. (2017), section 3.1: strips and mean non-zeros a row of their matrices, for CSR with half a
#: warp a row, and for CSR, ELL and JAD with a thread a row. Of their values every other one or so.
WANG_VECTOR = ((1, 3, 5, 10, 20, 30, 40, 50), (4, 16, 64, 256, 1024, 2048, 3072))
WANG_THREAD = ((1, 3, 5, 7, 10), (4, 16, 64, 256, 1024))

#: As VARIED, BLOCKS and DIAGONALS of a processor's calibration, and gallery matrices held out of the fit,
#: larger than the caches of a device.
LARGE_VARIED = (
    (1_500_000, 6, "mixed", 0.001),
    (600_000, 30, "fixed", 0.01),
    (1_000_000, 8, "power", 0.2),
    (2_500_000, 4, "uniform", 1.0),
    (200_000, 120, "uniform", 0.02),
    (3_000_000, 8, "fixed", 0.0),
)
LARGE_BLOCKS = ((300_000, 9, 3, 0.01), (60_000, 10, 6, 0.1), (400_000, 8, 2, 0.001), (40_000, 9, 8, 0.01))
LARGE_DIAGONALS = ((1_500_000, 7, 0.005), (500_000, 27, 0.02))
LARGE_GALLERY = (
    "banded?n=1000000&half_bandwidth=8",
    "rmat?scale=19&degree=16",
    "poisson3d?n=90&points=27",
    "random?n=1000000&nnz_per_row=8",
)

#: About the non-zeros of each of them.
_LARGE_GALLERY_ENTRIES = 15_000_000


@dataclass(frozen=True)
class DeviceBench:
    """The current CUDA device.

    Attributes
    ----------
    clock : Clock
    meter : Meter, optional
        Reads the energy of every candidate, which takes seconds each.
    cold_bytes : int
        With 0, products find in the caches what the one before has left there. Otherwise they go in turn
        through copies of matrix and vectors that are together larger than this.
    """

    clock: Clock = field(default_factory=EventClock)
    meter: Meter | None = None
    cold_bytes: int = 0

    @property
    def regime(self) -> str:
        """``"cold"`` where copies are used in turn, else ``"warm"``."""
        return "cold" if self.cold_bytes else "warm"

    def bind(self, A: csr_array[Any], candidate: Candidate) -> tuple[Bound, float]:
        """Return the bound candidate, and the seconds to build its format and to copy it to the device."""
        before, start = compiled_kernels(), perf_counter()
        bound = bind(A, candidate)
        if compiled_kernels() > before:  # that of BCSR depends on its block size: once more, without it
            start = perf_counter()
            bound = bind(A, candidate)
        return bound, perf_counter() - start

    def put(self, array: np.ndarray[Any, Any]) -> Any:
        """Return a copy on the device."""
        return upload("vectors", array)[0]

    def take(self, array: Any) -> np.ndarray[Any, Any]:
        """Return a copy on the host, after all that is queued."""
        return np.asarray(array.copy_to_host())

    def call(self, candidate: Candidate, bound: Bound, x: Any, out: Any) -> Call:
        """Return what queues the product, with its copies in turn if there are to be some.

        Raises
        ------
        MatrixSizeError
            If the copies together exceed the free memory of the device; none has been made then.
        """
        used, product = [(bound.product, x, out)], cast(DeviceProduct, bound.product)
        copies = self.cold_bytes // max(1, bound.matrix.traffic())
        refuse_beyond_memory(f"{copies} cold copies", copies * (product.nbytes + x.nbytes + out.nbytes))
        for _ in range(copies):
            kernels = KERNELS[candidate.device].get(candidate.format)
            copied = upload("vectors", x.copy_to_host())[0], scratch(out.size, out.dtype)
            used.append((kernels.bind(bound.matrix, candidate.kernel, candidate.threads), *copied))
        return _in_turn(used)

    def energy(self, call: Call) -> Energy | None:
        """Return the joules of a call, None without a meter or where it counts nothing."""
        return energy_of(call, self.meter, self.clock) if self.meter else None


def meter_at_hand() -> Meter | None:
    """Return the energy counter of the current device, None where there is none that can be read."""
    try:
        return NvmlMeter()
    except DeviceError:
        return None  # energy is then not measured, which a Record says by None


def _in_turn(used: list[tuple[Any, Any, Any]]) -> Call:
    """Return what queues one product after the other; the addresses are looked up once."""
    queues = [partial(product.launch, pointer(x), pointer(out), 0) for product, x, out in used]
    if len(queues) == 1:
        return lambda held=used: queues[0]()  # type: ignore[misc]
    turns = cycle(queues)
    return lambda held=used: next(turns)()  # type: ignore[misc]


def device_candidates(structure: Structure, target: Target) -> list[Candidate]:
    """Return the Candidates of every format that suits a matrix, in every variant of its kernels."""
    return [
        replace(candidate, kernel=variant)
        for candidate in whole_matrix(structure, target).candidates
        for variant in KERNELS[target.device].get(candidate.format).variants
    ]


def device_place(device: Device) -> Place:
    """Return where and what is measured for the current CUDA device's profile."""
    matrices = device_matrices(device)
    # They are in turn, so that their first part is a coarse profile; none is required.
    return Place(lambda target: (matrices, []), device_candidates, device_bandwidths, DeviceBench())


def device_bandwidths(machine: Machine, threads: int) -> list[Bandwidth]:
    """Measure how fast the current CUDA device reads and copies, and the way there and back."""
    return measure_bandwidths(EventClock(), "cuda", threads, array_sizes(machine, threads))


def device_matrices(device: Device) -> list[SuiteMatrix]:
    """Return the benchmark matrices of a device, the suites in turn, so that a short budget sees each.

    They are those of Guo et al. (2014) and of Wang et al. (2017) on the device's own strips, as far as
    LARGEST_ENTRIES admits, then larger ones, and the suites that a processor is measured on. A strip of rows
    is that of the kernel: Guo's CSR has a warp a row, Wang's half a warp or a thread, ELL and JAD a thread.
    """
    large = [varied_benchmark(*shape) for shape in LARGE_VARIED]
    large += [blocks_benchmark(*shape) for shape in LARGE_BLOCKS]
    large += [diagonals_benchmark(*shape) for shape in LARGE_DIAGONALS]
    large += [gallery_benchmark(specification, _LARGE_GALLERY_ENTRIES) for specification in LARGE_GALLERY]
    needed, optional = suites_beside_strips()
    every = tuple(KERNELS["cuda"].names())
    small = [list(suite) for _, suite in groupby(needed, key=lambda matrix: matrix.suite)]
    whole = [[replace(matrix, formats=every) for matrix in suite] for suite in (*small, optional, large)]
    in_turn = chain.from_iterable(zip_longest(*_guo_suites(device), *_wang_suites(device), *whole))
    return [matrix for matrix in in_turn if matrix and matrix.entries <= LARGEST_ENTRIES]


def _guo_suites(device: Device) -> list[list[SuiteMatrix]]:
    """Return the matrices for CSR, for ELL and for COO, each in strips of its own kernel."""
    rows = {name: guo_strip(device, name) for name in ("csr", "ell", "coo")}
    # The shortest and the longest rows and the fewest and the most strips first.
    suites = [
        [
            strips_benchmark(rows[name], strips, length, (name,))
            for length in _ends_first(lengths)
            for strips in _ends_first(STRIPS)
            if length <= strips * rows[name]
        ]
        for name, lengths in (("csr", CSR_NNZ_PER_ROW), ("ell", NNZ_PER_ROW))
    ]
    return [*suites, [entry_strips_benchmark(rows["coo"], strips) for strips in _ends_first(ENTRY_STRIPS)]]


def _wang_suites(device: Device) -> list[list[SuiteMatrix]]:
    """Return the matrices with normal and uniform row lengths, for half a warp and for a thread a row."""
    kinds = (("csr-vector", WANG_VECTOR, ("csr",)), ("csr-scalar", WANG_THREAD, ("csr", "ell", "jad")))
    return [
        [
            row_lengths_benchmark(strips * wang_strip(device, kernel), mean_length, lengths, formats)
            for mean_length in _ends_first(grid[1])
            for strips in _ends_first(grid[0])
            if 2 * mean_length <= strips * wang_strip(device, kernel)
        ]
        for lengths in ("normal", "uniform")
        for kernel, grid, formats in kinds
    ]


def row_lengths_benchmark(rows: int, mean_length: int, lengths: str, formats: tuple[str, ...]) -> SuiteMatrix:
    """Return the matrix of Wang et al. (2017) with row lengths of a distribution and uniform columns."""
    return suite_matrix(
        "row lengths", "row lengths", formats, rows=rows, mean_length=mean_length, lengths=lengths
    )


def _ends_first(values: Sequence[int]) -> list[int]:
    """Return the first, the last and the middle of some values, then the others."""
    ends = [values[0], values[-1], values[len(values) // 2]]
    return ends + [value for value in values if value not in ends]
