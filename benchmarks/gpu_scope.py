"""What the campaign on a GPU measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

from sparsecast.devices import DEVICES
from sparsecast.devices.target import Target
from sparsecast.formats.narrowing import NARROW_PARAMETERS
from sparsecast.machines.data_sheet import GPU
from sparsecast.machines.machine import Machine
from sparsecast.matrices.families import parse_specification
from sparsecast.matrices.suites import SuiteMatrix, gallery_benchmark, varied_benchmark
from sparsecast.matrices.suites.general import LARGE_GALLERY
from sparsecast.measuring.timing import Effort
from sparsecast.records import Candidate

#: Gallery matrices above a million non-zeros, for the peers: within and beyond the caches, even and uneven.
GENERATED = (
    *("poisson2d?n=1000", "banded?n=1000000&half_bandwidth=8", "rmat?scale=19&degree=16"),
    *("random?n=1000000&nnz_per_row=8", "elasticity3d?n=40", "circuit?n=1000000"),
    *("poisson3d?n=100&points=27", "arrow?n=1000000&dense_rows=3", "poisson3d?n=130&points=7"),
    "banded?n=100000&half_bandwidth=8",
)

#: Gallery matrices whose product takes the device about as long as its launch takes the host, and shorter.
SMALL = ("poisson2d?n=10", "poisson2d?n=100", "poisson2d?n=300")

EFFORT = Effort(samples=5, sample_s=0.002)


def gpu_matrices(machine: Machine) -> list[SuiteMatrix]:
    """Return the benchmark matrices of a usual calibration of a GPU."""
    return list(chain(*DEVICES.get("cuda").suites(Target("cuda", "float64", 32, 1), machine)))


def label(candidate: Candidate) -> str:
    """Return the format, the kernel and the narrow storage of a Candidate."""
    narrow = (value for name, value in candidate.parameters.items() if name in NARROW_PARAMETERS)
    return " ".join([candidate.format, candidate.kernel, *map(str, narrow)])


@dataclass(frozen=True)
class Scope:
    """What is measured, and how long."""

    effort: Effort = EFFORT
    #: Sizes of the arrays that bandwidths read, copy and transfer.
    stream_bytes: tuple[int, ...] = tuple(1 << exponent for exponent in (12, 16, 20, 24, 26, 28, 30, 32))
    dtypes: tuple[str, ...] = ("float64", "float32")  # the first gets most of the time, and is measured cold
    matrices: Callable[[Machine], list[SuiteMatrix]] = gpu_matrices
    peers: tuple[str, ...] = GENERATED  # gallery specifications
    energy: tuple[str, ...] = LARGE_GALLERY
    least_peer_entries: int = 1_000_000  # of a matrix that is measured beside the peers
    variants: tuple[str, ...] = ()  # kernels that are measured; empty for all
    papers: tuple[str, ...] = ("guo-2014", "wang-2017")  # experiments that are repeated
    paper_variants: tuple[str, ...] = ()  # kernels that are measured for them; empty for all
    has_time_for: Callable[[SuiteMatrix], bool] = lambda matrix: True  # one of their benchmark matrices
    processor_matrices: int = 10  # on which the processor is measured beside its peers
    is_device: bool = True  # whether kernels run on a device of this machine, where plans and tests run, too


def is_tiny(matrix: SuiteMatrix) -> bool:
    """Tell whether a benchmark matrix is one of four of Guo's for CSR: two lengths in each of two sizes."""
    shape = parse_specification(matrix.problem.specification)[1]
    return shape.get("rows") in (16, 20) and int(shape["nnz_per_row"]) <= 16


def tiny_matrices(machine: Machine) -> list[SuiteMatrix]:
    """Return matrices that the simulator gets through in seconds."""
    return [varied_benchmark(40, 3, "uniform", 0.1), gallery_benchmark("poisson2d?n=5", 100)]


TINY = Scope(
    effort=Effort(samples=1, sample_s=1e-6),
    stream_bytes=(1 << 10, 1 << 12),
    dtypes=("float64",),
    matrices=tiny_matrices,
    peers=("poisson2d?n=6",),
    energy=("poisson2d?n=6",),
    least_peer_entries=1,
    variants=("segmented", "scalar"),
    papers=("guo-2014",),
    paper_variants=("vector32",),
    has_time_for=is_tiny,
    processor_matrices=0,
    is_device=False,
)

#: What the simulator of numba-cuda is described as, for the tests of this file: so small that copies exceed
#: its L2 soon.
SIMULATOR = GPU("numba-cuda simulator", 1, 4, 32, 128, 1 << 30, 1 << 12, 1, 1)

#: What the idle device is described as.
H100 = GPU(
    *("NVIDIA H100 80GB HBM3", 132, 64, 32, 1024, 85_017_493_504, 52_428_800, 1_980_000_000, 2_619_000_000),
    compute_capability=(9, 0),
)
