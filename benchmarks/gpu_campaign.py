"""Everything that needs a GPU, in less than ten minutes: is it right, how fast is it, what does it use.

    make gpu-campaign OUT=FOLDER [MATRICES='FILE...']

It needs no network, no installed Sparsecast and no package beyond numba-cuda, SciPy, pyarrow, psutil and what
the command line takes; peers and NVML are used where they are. Each phase writes its results into the folder
as soon as they exist; Records go to a journal first, which the next run on the same folder takes over, and
after each phase to a profile named by the device. What fails leaves its traceback in errors.txt, the next
matrix or phase goes on, and the exit status is then 1, unless it is a peer that failed. A kernel that fails
the oracle is not measured.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, zip_longest
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from nvmath_peers import NVMATH_PEERS, MissingPeerError, Peer
from sparsecast.api import read_matrix
from sparsecast.benchmark.evaluation import Scoring
from sparsecast.benchmark.journal import JournalWriter, Measurements, journal, read_journal
from sparsecast.benchmark.measurement import measure_candidates, right_hand_side
from sparsecast.devices.bandwidths import measure_bandwidths
from sparsecast.devices.binding import prepared
from sparsecast.devices.cuda.clock import EventClock
from sparsecast.devices.cuda.driver import detect_gpu
from sparsecast.devices.cuda.launching import SIMULATED
from sparsecast.devices.cuda.meter import NvmlMeter
from sparsecast.devices.cuda.nvidia import NvidiaGPU
from sparsecast.devices.cuda.suites import LARGE_GALLERY
from sparsecast.devices.cuda.suites import matrices as gpu_matrices
from sparsecast.devices.reference import ReferenceProduct
from sparsecast.errors import DeviceError, FormatError, InputError, MatrixSizeError, SparsecastError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines import storage
from sparsecast.machines.gpu import GPU
from sparsecast.machines.machine import Machine, detect
from sparsecast.machines.profile import Profile
from sparsecast.matrices.benchmark_matrices import SuiteMatrix, gallery_benchmark, varied_benchmark
from sparsecast.matrices.gallery import gallery, gallery_from_specification
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.energy import idle_power_w
from sparsecast.measuring.timing import Call, Effort, measure
from sparsecast.models import MODELS
from sparsecast.models.training import TrainingSet
from sparsecast.planning.candidates import Target, whole_matrix
from sparsecast.records import Bandwidth, Candidate, Record

CUDA = NvidiaGPU()

PACKAGES = (
    "numpy",
    "scipy",
    "numba",
    "numba-cuda",
    "cuda-core",
    "cuda-bindings",
    "cupy",
    "torch",
    "nvidia-ml-py",
    "nvmath-python",
)

#: Gallery matrices above a million non-zeros, for the peers: within and beyond the caches, even and uneven.
GENERATED = (
    "poisson2d?n=1000",
    "banded?n=1000000&half_bandwidth=8",
    "rmat?scale=19&degree=16",
    "random?n=1000000&nnz_per_row=8",
    "elasticity3d?n=40",
    "circuit?n=1000000",
    "poisson3d?n=100&points=27",
    "arrow?n=1000000&dense_rows=3",
    "poisson3d?n=130&points=7",
    "banded?n=100000&half_bandwidth=8",
)

EFFORT = Effort(samples=5, sample_s=0.002)

#: Fewest non-zeros of a matrix that is measured beside the peers.
LEAST_PEER_ENTRIES = 1_000_000

#: Gallery matrices whose product takes the device about as long as its launch takes the host, and shorter.
SMALL = ("poisson2d?n=10", "poisson2d?n=100", "poisson2d?n=300")

#: Products of such a matrix in one graph: as many as an iterated caller may queue before looking at y.
GRAPHED = 32

#: Candidates of each matrix whose energy is read.
THRIFTIEST = 2


#: So many failures are noted before a phase is given up: a lost device fails at everything.
MOST_FAILURES = 20


@dataclass(frozen=True)
class Scope:
    """What is measured, and how long.

    Attributes
    ----------
    effort : Effort
    stream_bytes : tuple of int
        Sizes of the arrays that bandwidths read, copy and transfer.
    dtypes : tuple of str
        The first of them also cold.
    matrices : callable
        Machine to its benchmark matrices.
    peers, energy : tuple of str
        Gallery specifications.
    least_peer_entries : int
    most_candidates : int or None
        Of a matrix.
    """

    effort: Effort = EFFORT
    stream_bytes: tuple[int, ...] = tuple(1 << exponent for exponent in (12, 16, 20, 24, 26, 28, 30, 32))
    dtypes: tuple[str, ...] = ("float64", "float32")
    matrices: Callable[[Machine], list[SuiteMatrix]] = gpu_matrices
    peers: tuple[str, ...] = GENERATED
    energy: tuple[str, ...] = LARGE_GALLERY[:3]
    least_peer_entries: int = LEAST_PEER_ENTRIES
    most_candidates: int | None = None


def tiny_matrices(machine: Machine) -> list[SuiteMatrix]:
    """Return matrices that the simulator gets through in seconds."""
    chosen = (varied_benchmark(40, 3, "uniform", 0.1), gallery_benchmark("poisson2d?n=5"))
    for matrix in chosen:
        matrix.problem.expected_nnz = 100
    return [replace(matrix, formats=("coo", "csr")) for matrix in chosen]


TINY = Scope(
    effort=Effort(samples=1, sample_s=1e-6),
    stream_bytes=(1 << 10, 1 << 12),
    dtypes=("float64",),
    matrices=tiny_matrices,
    peers=("poisson2d?n=6",),
    energy=("poisson2d?n=6",),
    least_peer_entries=1,
    most_candidates=2,
)

#: What the simulator of numba-cuda is described as, for the tests of this file: so small that copies exceed
#: its L2 soon.
SIMULATOR = GPU("numba-cuda simulator", 1, 1, 32, 128, 1 << 30, 1 << 12, 1, 1)


@dataclass
class Campaign:
    """One run.

    Attributes
    ----------
    out : Path
    machine : Machine
        With its device.
    given : sequence of str
        Matrix files for the peers.
    scope : Scope
    journal : JournalWriter
    measured : Measurements
        Those of earlier runs on the folder, too.
    bandwidths : list of Bandwidth
    failures : int
        So far.
    wrong : set of (str, str, str)
        Format, kernel and dtype of those that failed the oracle.
    """

    out: Path
    machine: Machine
    given: Sequence[str]
    scope: Scope
    journal: JournalWriter
    measured: Measurements = field(default_factory=Measurements)
    bandwidths: list[Bandwidth] = field(default_factory=list)
    failures: int = 0
    wrong: set[tuple[str, str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        assert self.machine.gpu is not None
        self.gpu: GPU = self.machine.gpu
        self.clock = EventClock()

    def write(self, name: str, found: Any) -> None:
        """Write a result as JSON, whole or not at all."""

        def dump(path: Path) -> None:
            path.write_text(json.dumps(found, indent=1), encoding="utf-8")

        storage.write_atomically(self.out / name, dump)

    @contextmanager
    def kept_going(self, what: str) -> Iterator[None]:
        """Note the failure of the body with its traceback, and go on; not after too many."""
        try:
            yield
        except Exception:  # whatever it is: what comes after it may well succeed
            self.failures += 1
            self.note(what)
            if self.failures > MOST_FAILURES:
                raise

    def note(self, what: str) -> None:
        """Write the traceback of the exception at hand to errors.txt."""
        with (self.out / "errors.txt").open("a", encoding="utf-8") as stream:
            stream.write(f"{what}\n{traceback.format_exc()}\n")

    def keep(self, problem: Problem, records: Sequence[Record]) -> None:
        """Add the Records of a matrix to the journal at once."""
        self.journal.add(problem, records)
        self.measured.add(problem, records)

    @property
    def records(self) -> list[Record]:
        """All Records so far."""
        return self.measured.records

    @property
    def profile(self) -> Profile:
        """All Records and Bandwidths; of what was measured twice, the later Record counts."""
        return self.measured.into(Profile(self.machine, ())).with_bandwidths(self.bandwidths)

    def save_profile(self) -> None:
        """Write the profile of the device."""
        if self.records:
            self.profile.save(self.out / f"{self.profile.name}.parquet")

    def candidates(self, problem: Problem, dtype: str) -> list[Candidate]:
        """Return the Candidates of a matrix."""
        target = Target("cuda", dtype, 8 * problem.matrix.indices.itemsize, 1)
        offered = CUDA.calibrated(whole_matrix(problem.structure, target, self.machine).candidates)
        right = [each for each in offered if (each.format, each.kernel, dtype) not in self.wrong]
        return right[: self.scope.most_candidates]

    def is_measured(self, matrix: SuiteMatrix, dtype: str, regime: str) -> bool:
        """Tell whether this or an earlier run has Records of it."""
        wanted = (matrix.problem.specification, matrix.suite, dtype, regime)
        return any((r.matrix, r.suite, r.candidate.dtype, r.regime) == wanted for r in self.records)


class Deadline:
    """The time by which a phase is to end: it starts nothing that would outlast it.

    Parameters
    ----------
    at_s : float
        As perf_counter tells it.
    """

    #: Entries whose time a small matrix takes all the same.
    LEAST = 1_000_000

    def __init__(self, at_s: float) -> None:
        self.at_s = at_s
        self._paces: list[float] = []

    @property
    def left_s(self) -> float:
        """Seconds that are left, at least 0."""
        return max(0.0, self.at_s - perf_counter())

    def part(self, share: float) -> Deadline:
        """Return the deadline of a share of the time that is left, which knows what this one knows."""
        own = Deadline(perf_counter() + share * self.left_s)
        own._paces = self._paces
        return own

    def each(self, items: Sequence[tuple[int, Any]]) -> Iterator[Any]:
        """Give those of (entries, item) that fit the time, as far as the last ones tell."""
        for entries, item in items:
            # A median, for the first ones may have compiled something; twice, for they differ.
            pace = 2 * median(self._paces[-5:]) if len(self._paces) > 2 else 0.0
            if self.left_s <= pace * (entries + self.LEAST):
                continue
            start = perf_counter()
            yield item
            self._paces.append((perf_counter() - start) / (entries + self.LEAST))


def describe(campaign: Campaign, deadline: Deadline) -> None:
    """Write the device and the versions."""
    versions = {name: version for name in PACKAGES if (version := _version(name))}
    described = {"python": platform.python_version(), "packages": versions, "simulated": SIMULATED}
    campaign.write("device.json", {"machine": campaign.machine.to_dict(), **described})


def _version(package: str) -> str | None:
    # CuPy's package is named after the version of CUDA.
    for name in (package, f"{package}-cuda12x", f"{package}-cuda13x"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def correctness(campaign: Campaign, deadline: Deadline) -> None:
    """Compare every kernel with the oracle; on a device with pytest, run the tests of the kernels too."""
    path = campaign.out / "correctness.txt"
    with path.open("w", encoding="utf-8") as stream:
        for dtype in campaign.scope.dtypes:
            for line in _against_oracle(campaign, dtype):
                stream.write(line + "\n")
                stream.flush()
    if not SIMULATED and all(map(importlib.util.find_spec, ("pytest", "hypothesis"))):
        _run_tests(path, deadline)


def _against_oracle(campaign: Campaign, dtype: str) -> Iterator[str]:
    """Compare every kernel with the oracle on a small matrix; on one of blocks, for BCSR's sake."""
    yield from _each_equals(campaign, gallery("circuit", n=24 if SIMULATED else 2000), dtype, "circuit")
    yield from _each_equals(campaign, gallery("elasticity3d", n=2 if SIMULATED else 9), dtype, "elasticity3d")


def _each_equals(campaign: Campaign, matrix: csr_array, dtype: str, what: str) -> Iterator[str]:
    A = prepared(matrix, dtype, 32)
    x = right_hand_side(A.shape[1], dtype)
    reference, there = ReferenceProduct.of(A, x), CUDA.put(x)
    chosen = whole_matrix(structure(A), Target("cuda", dtype, 32, 1), campaign.machine).candidates
    for candidate in CUDA.calibrated(chosen):
        name, key = (
            f"{candidate.format} {candidate.kernel} {dtype}",
            (candidate.format, candidate.kernel, dtype),
        )
        is_known_wrong = key in campaign.wrong
        campaign.wrong.add(key)
        with campaign.kept_going(f"correctness of {name}"):
            bound, _ = CUDA.bind(A, candidate)
            out = CUDA.put(np.full(A.shape[0], np.nan, dtype=dtype))
            bound.product(there, out)
            error = reference.check(CUDA.take(out), name)
            if not is_known_wrong:
                campaign.wrong.discard(key)
            yield f"{name} on {what}: equals the oracle, relative error {error:.1e}"


def _run_tests(path: Path, deadline: Deadline) -> None:
    root = Path(__file__).resolve().parents[1]
    tests = root / "tests" / "devices" / "cuda" / "on_device.py"
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", str(tests)]
    with path.open("a", encoding="utf-8") as stream:
        try:
            status = subprocess.run(
                command, cwd=root, stdout=stream, stderr=subprocess.STDOUT, timeout=deadline.left_s
            ).returncode
        except subprocess.TimeoutExpired:
            status = 1 if " FAILED " in path.read_text(encoding="utf-8") else 0
            stream.write("\nNOT FINISHED: its time was over; what is not listed was not tested\n")
    if status:
        raise RuntimeError(f"the tests on the device failed with status {status}: see {path}")


def bandwidth(campaign: Campaign, deadline: Deadline) -> None:
    """Measure stream reads and copies, whose bytes count twice, and transfers, at several sizes."""
    rows: list[dict[str, Any]] = []
    for size in campaign.scope.stream_bytes:
        bandwidths = measure_bandwidths(CUDA, [size], 1, campaign.scope.effort, campaign.clock)
        campaign.bandwidths += bandwidths
        rows += [
            {
                "stream": stream.kind,
                "bytes": size,
                "time_s": stream.time_s,
                "noise": stream.noise,
                "bytes_per_s": stream.bandwidth_bytes_per_s,
            }
            for stream in bandwidths
        ]
        campaign.write("bandwidth.json", rows)


def calibration(campaign: Campaign, deadline: Deadline) -> None:
    """Measure the benchmark matrices in every format and variant, one dtype after the other."""
    matrices = campaign.scope.matrices(campaign.machine)
    for number, dtype in enumerate(campaign.scope.dtypes, 1):
        own = deadline.part(0.65 if number < len(campaign.scope.dtypes) else 1.0)
        todo = [each for each in matrices if not campaign.is_measured(each, dtype, CUDA.regime)]
        for matrix in own.each([(each.entries, each) for each in todo]):
            with campaign.kept_going(f"calibration on {matrix.name} in {dtype}"):
                _measure(campaign, matrix, dtype, CUDA)


def cold(campaign: Campaign, deadline: Deadline) -> None:
    """Measure again, from copies that exceed L2 twice, what would lie in it; smaller ones last."""
    l2, dtype = campaign.gpu.l2_bytes, campaign.scope.dtypes[0]
    device = NvidiaGPU(cold_bytes=2 * l2)
    largest = {
        record.matrix: record.traffic_bytes
        for record in campaign.records
        if record.regime == "warm" and record.traffic_bytes <= l2
    }
    fitting = [
        each for each in campaign.scope.matrices(campaign.machine) if each.problem.specification in largest
    ]
    todo = [each for each in fitting if not campaign.is_measured(each, dtype, device.regime)]
    todo.sort(key=lambda matrix: -largest[matrix.problem.specification])
    for matrix in deadline.each([(each.entries, each) for each in todo]):
        with campaign.kept_going(f"cold caches on {matrix.name}"):
            _measure(campaign, matrix, dtype, device)


def _measure(campaign: Campaign, matrix: SuiteMatrix, dtype: str, device: NvidiaGPU) -> None:
    problem = matrix.problem.released()  # made here, and gone when it was measured
    chosen = [each for each in campaign.candidates(problem, dtype) if matrix.takes(each.format)]
    effort, clock = campaign.scope.effort, campaign.clock
    records = measure_candidates(problem, matrix.suite, chosen, effort, device=device, clock=clock)
    campaign.keep(problem, records)


def cusparse_call(A: csr_array, x: np.ndarray, algorithm: int) -> tuple[Call, Call]:
    """Return cuSPARSE's product with descriptors and buffer made before, and its result."""
    cupy, sparse = _cupy()
    cusparse = importlib.import_module("cupyx.cusparse")
    library = importlib.import_module("cupy_backends.cuda.libs.cusparse")
    cuda_type = importlib.import_module("cupy._core._dtype").to_cuda_dtype(A.dtype)
    matrix = sparse.csr_matrix(tuple(map(cupy.asarray, (A.data, A.indices, A.indptr))), shape=A.shape)
    there, y = cupy.asarray(x), cupy.zeros(A.shape[0], A.dtype)
    descriptors = cusparse.SpMatDescriptor.create(matrix), *map(cusparse.DnVecDescriptor.create, (there, y))
    scalars = np.ones(1, A.dtype), np.zeros(1, A.dtype)
    a, v, w = (descriptor.desc for descriptor in descriptors)
    one, zero = (scalar.ctypes.data for scalar in scalars)
    handle = cupy.cuda.device.get_cusparse_handle()
    operation = library.CUSPARSE_OPERATION_NON_TRANSPOSE
    arguments = (handle, operation, one, a, v, zero, w, cuda_type, algorithm)
    buffer = cupy.empty(max(1, library.spMV_bufferSize(*arguments)), cupy.int8)
    held = matrix, there, descriptors, scalars, buffer
    spmv, place = library.spMV, buffer.data.ptr

    def product(held: Any = held) -> None:
        spmv(*arguments, place)

    return product, lambda: (product(), y.get())[1]


def cupy_call(A: csr_array, x: np.ndarray) -> tuple[Call, Call]:
    """Return CuPy's csr @ x, which allocates y, and its result."""
    cupy, sparse = _cupy()
    matrix = sparse.csr_matrix(tuple(map(cupy.asarray, (A.data, A.indices, A.indptr))), shape=A.shape)
    there = cupy.asarray(x)
    return (lambda: matrix @ there), (lambda: (matrix @ there).get())


def _cupy() -> tuple[Any, Any]:
    try:
        return importlib.import_module("cupy"), importlib.import_module("cupyx.scipy.sparse")
    except ImportError as error:
        raise MissingPeerError("CuPy is not installed") from error


def torch_call(A: csr_array, x: np.ndarray) -> tuple[Call, Call]:
    """Return the product of torch's CSR tensor, which allocates y, and its result."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise MissingPeerError("torch is not installed") from error
    if not torch.cuda.is_available():
        raise MissingPeerError("torch sees no device")
    # torch says at the first CSR tensor of a process that they are in beta state.
    warnings.filterwarnings("ignore", message="Sparse CSR tensor support", category=UserWarning)
    parts = (torch.from_numpy(part).cuda() for part in (A.indptr, A.indices, A.data))
    matrix = torch.sparse_csr_tensor(*parts, size=A.shape, check_invariants=False)
    vector = torch.from_numpy(x).cuda()
    return (lambda: matrix @ vector), (lambda: (matrix @ vector).cpu().numpy())


#: cuSPARSE by its algorithms (cusparseSpMVAlg_t: default 0, CSR_ALG1 2, CSR_ALG2 3), and in libraries.
PEERS: dict[str, Peer] = {
    "cuSPARSE": lambda A, x: cusparse_call(A, x, 0),
    "cuSPARSE CSR_ALG1": lambda A, x: cusparse_call(A, x, 2),
    "cuSPARSE CSR_ALG2": lambda A, x: cusparse_call(A, x, 3),
    "CuPy": cupy_call,
    "torch": torch_call,
    **NVMATH_PEERS,
}


def peers(campaign: Campaign, deadline: Deadline) -> None:
    """Measure every candidate beside every peer, in turn; a peer that is missing or fails says so."""
    found: list[dict[str, Any]] = []
    generated = [f"gallery:{each}" for each in campaign.scope.peers]
    in_turn = [each for each in chain.from_iterable(zip_longest(campaign.given, generated)) if each]
    for specification in deadline.each([(10 * LEAST_PEER_ENTRIES, each) for each in in_turn]):
        with campaign.kept_going(f"peers on {specification}"):
            try:
                found.append(_beside_peers(campaign, specification))
            except DeviceError:  # it is lost
                raise
            except InputError as error:
                found.append({"matrix": specification, "left_out": str(error)})
        campaign.write("peers.json", {"geometric_mean": _mean_ratio(found), "matrices": found})


def _beside_peers(campaign: Campaign, specification: str) -> dict[str, Any]:
    read = read_matrix(specification)
    least = campaign.scope.least_peer_entries
    if read.matrix.nnz < least or np.iscomplexobj(read.matrix.data):
        raise InputError(f"{read.name}: expected real values, at least {least:,} of them; name another")
    A = prepared(read.matrix, read.matrix.dtype.name, 32)
    problem = Problem.of(A, read.name)
    x = right_hand_side(A.shape[1], A.dtype.name)
    reference = ReferenceProduct.of(A, x)
    ours, traffic = _our_calls(campaign, problem, x, reference)
    theirs, missing = _peer_calls(campaign, problem, x, reference)
    timings = measure({**ours, **theirs}, campaign.scope.effort, clock=campaign.clock)
    best_ours, best_peer = (
        min(calls, key=lambda name: timings[name].time_s, default=None) for calls in (ours, theirs)
    )
    return {
        "matrix": read.name,
        "nnz": A.nnz,
        "dtype": A.dtype.name,
        "best_ours": best_ours,
        "best_peer": best_peer,
        "ratio": timings[best_peer].time_s / timings[best_ours].time_s if best_ours and best_peer else None,
        "bytes_per_s": traffic[best_ours] / timings[best_ours].time_s if best_ours else None,
        "times_s": {name: timing.time_s for name, timing in timings.items()},
        "noise": {name: timing.noise for name, timing in timings.items()},
        "missing": missing,
    }


def _our_calls(
    campaign: Campaign, problem: Problem, x: np.ndarray, reference: ReferenceProduct
) -> tuple[dict[str, Call], dict[str, int]]:
    """Return the checked products of a matrix, and the bytes that each streams."""
    calls, traffic = {}, {}
    there = CUDA.put(x)
    for candidate in campaign.candidates(problem, x.dtype.name):
        name = f"{candidate.format} {candidate.kernel}"
        try:
            bound, _ = CUDA.bind(problem.matrix, candidate)
        except (FormatError, MatrixSizeError):  # left out, as in every measurement
            continue
        out = CUDA.put(np.full(problem.matrix.shape[0], np.nan, dtype=x.dtype))
        calls[name], traffic[name] = CUDA.call(candidate, bound, there, out), bound.matrix.traffic()
        calls[name]()
        reference.check(CUDA.take(out), name)
    return calls, traffic


def _peer_calls(
    campaign: Campaign, problem: Problem, x: np.ndarray, reference: ReferenceProduct
) -> tuple[dict[str, Call], dict[str, str]]:
    """Return the checked products of the peers, and why others are missing."""
    calls, missing = {}, {}
    for name, make in PEERS.items():
        try:
            call, result = make(problem.matrix, x)
            reference.check(np.asarray(result()), name)
        except MissingPeerError as error:
            missing[name] = f"missing: {error}"
        except Exception as error:  # a library of others: whatever it raises is a row that says so
            missing[name] = f"failed: {type(error).__name__}: {error}"
            campaign.note(f"peer {name} on {problem.name}")
        else:
            calls[name] = call
    return calls, missing


def _mean_ratio(found: Sequence[dict[str, Any]]) -> float | None:
    ratios = [row["ratio"] for row in found if row.get("ratio")]
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else None


def graphs(campaign: Campaign, deadline: Deadline) -> None:
    """Measure products of small matrices launched one by one, beside a graph of as many launched at once."""
    found: list[dict[str, Any]] = []
    if SIMULATED:
        found.append({"left_out": "the simulator of numba-cuda has no graphs"})
    else:
        core = importlib.import_module("cuda.core")
        for specification in deadline.each([(Deadline.LEAST, each) for each in SMALL]):
            with campaign.kept_going(f"a graph of {specification}"):
                found.append(beside_graph(campaign, specification, core))
    campaign.write("graphs.json", found)


def beside_graph(campaign: Campaign, specification: str, core: Any) -> dict[str, Any]:
    """Return the seconds of a product in a row of GRAPHED, launched each and as a graph, checked.

    Parameters
    ----------
    campaign : Campaign
    specification : str
        Of the gallery.
    core : module
        cuda.core.
    """
    A = prepared(gallery_from_specification(specification), campaign.scope.dtypes[0], 32)
    problem = Problem.of(A, specification)
    candidate = next(each for each in campaign.candidates(problem, A.dtype.name) if each.format == "csr")
    x = right_hand_side(A.shape[1], A.dtype.name)
    there, out = CUDA.put(x), CUDA.put(np.full(A.shape[0], np.nan, dtype=A.dtype))
    bound, _ = CUDA.bind(A, candidate)
    device = core.Device()
    device.set_current()
    builder = device.create_graph_builder().begin_building()
    for _ in range(GRAPHED):
        bound.product(there, out, builder)
    graph, stream = builder.end_building().complete(), core.Stream.from_handle(0)
    graph.launch(stream)
    error = ReferenceProduct.of(A, x).check(CUDA.take(out), f"a graph of {candidate.kernel}")
    one = CUDA.call(candidate, bound, there, out)
    calls = {"launched": lambda: [one() for _ in range(GRAPHED)], "graph": lambda: graph.launch(stream)}
    timings = measure(calls, campaign.scope.effort, clock=campaign.clock)
    return {
        "matrix": specification,
        "nnz": A.nnz,
        "candidate": candidate.to_dict(),
        "products": GRAPHED,
        "launched_s": timings["launched"].time_s / GRAPHED,
        "graph_s": timings["graph"].time_s / GRAPHED,
        "noise": {name: timing.noise for name, timing in timings.items()},
        "error": error,
    }


def energy(campaign: Campaign, deadline: Deadline) -> None:
    """Read the power of the idle device, then the joules of the fastest candidates of large matrices."""
    try:
        meter = NvmlMeter()
    except DeviceError as error:
        campaign.write("energy.json", {"idle_w": "not measured", "why": str(error), "candidates": []})
        return
    time.sleep(1.0)  # the phase before has left the device warm and clocked up
    report: dict[str, Any] = {"idle_w": idle_power_w(meter) or "not measured", "candidates": []}
    campaign.write("energy.json", report)
    for specification in deadline.each([(10 * LEAST_PEER_ENTRIES, each) for each in campaign.scope.energy]):
        matrix = gallery_benchmark(specification)
        records = _energy_records(campaign, matrix, meter)
        campaign.keep(matrix.problem, records)
        report["candidates"] += [
            {
                "matrix": record.matrix,
                "candidate": record.candidate.to_dict(),
                "time_s": record.time_s,
                "energy_j": record.energy_j or "not measured",
                "power_w": record.energy_j / record.time_s if record.energy_j else "not measured",
            }
            for record in records
        ]
        campaign.write("energy.json", report)


def _energy_records(campaign: Campaign, matrix: SuiteMatrix, meter: NvmlMeter) -> list[Record]:
    """Return the Records, with energy, of a matrix' fastest candidates."""
    problem = matrix.problem
    warm = [r for r in campaign.records if r.matrix == problem.specification and r.regime == "warm"]
    known = {record.candidate: record.time_s for record in warm}
    chosen = campaign.candidates(problem, campaign.scope.dtypes[0])
    chosen.sort(key=lambda candidate: known.get(candidate, np.inf))
    effort, clock = campaign.scope.effort, campaign.clock
    return measure_candidates(problem, matrix.suite, chosen[:THRIFTIEST], effort, clock=clock, meter=meter)


def evaluation(campaign: Campaign, deadline: Deadline) -> None:
    """Fit every model to the Records and score it on the gallery; a model that refuses says why."""
    found: dict[str, Any] = {}
    profile = campaign.profile
    for dtype in campaign.scope.dtypes:
        target = Target("cuda", dtype, 32, 1)
        own = [record for record in profile.select(dtype=dtype) if record.regime == "warm"]
        training = TrainingSet.of(profile, own)
        found[dtype] = {name: _score(name, training, target) for name in MODELS.names()}
        campaign.write("evaluation.json", found)


def _score(name: str, training: TrainingSet, target: Target) -> dict[str, Any]:
    """Score a model on the kernels that a plan by it would run.

    It learns its intervals from the gallery too: for each half of the matrices, from the other half.
    """
    records, machine = training.records, training.machine
    matrices = list(dict.fromkeys(record.matrix for record in records if record.suite == "gallery"))
    scoring = Scoring()
    try:
        for half in (matrices[::2], matrices[1::2]):
            rest = training.where(lambda record, half=half: record.matrix not in half)
            model = MODELS.get(name)().fit(rest)
            for matrix in half:
                own = [r for r in records if r.matrix == matrix]
                found = training.structure(own[0])
                blocks = RowBlocks.of(found)
                planned = [
                    target.candidate(each, blocks, machine, model.kernels(each)) for each in model.formats()
                ]
                scoring.add_records(matrix, own)
                scoring.add_estimates(matrix, name, model.quantity, model.estimates(found, planned))
    except SparsecastError as error:
        return {"refused": str(error)}
    evaluated = scoring.evaluation(machine.name)
    if not evaluated.rows:
        return {"refused": "no gallery matrix was measured"}
    errors: dict[str, list[float]] = {}
    for row in evaluated.rows:
        errors.setdefault(row.record.candidate.format, []).append(abs(row.error))
    formats = {each: sum(own) / len(own) for each, own in errors.items()}
    return {**asdict(evaluated.models[name]), "mean_errors": formats, "records": len(records)}


#: The phases and the seconds of each; what one leaves goes to the next.
PHASES = (
    (describe, 5),
    (correctness, 125),
    (bandwidth, 20),
    (calibration, 190),
    (cold, 40),
    (peers, 90),
    (graphs, 5),
    (energy, 40),
    (evaluation, 15),
)


def run(campaign: Campaign) -> None:
    """Run every phase and say what became of it."""
    at_s = perf_counter()
    for phase, seconds in PHASES:
        at_s += seconds
        start, records, failures = perf_counter(), len(campaign.records), campaign.failures
        try:
            with campaign.kept_going(phase.__name__):
                phase(campaign, Deadline(at_s))
            with campaign.kept_going("saving the profile"):
                campaign.save_profile()
        except Exception as error:  # noted by kept_going, which has seen too many of them
            print(f"given up: {type(error).__name__}: {error}", flush=True)
        failed = campaign.failures - failures
        outcome = f"{failed} FAILED, see errors.txt" if failed else "done"
        taken = f"{perf_counter() - start:6.1f} s, {len(campaign.records) - records:5} records"
        print(f"{phase.__name__:12} {taken}  {outcome}", flush=True)


def quicken_simulator() -> None:
    """Keep the simulator's threads on one core, where they wait for each other the shortest."""
    sys.setswitchinterval(1e-3)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def main() -> int:
    """Run the campaign and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, metavar="FOLDER")
    parser.add_argument("matrices", nargs="*", metavar="FILE", help="for the peers")
    parser.add_argument("--tiny", action="store_true", help="for the tests: matrices for the simulator")
    arguments = parser.parse_args()
    try:
        if arguments.tiny and SIMULATED:
            quicken_simulator()
        gpu = SIMULATOR if arguments.tiny and SIMULATED else detect_gpu()
        storage.ensure_writable(arguments.out)
        path = arguments.out / "records.jsonl"
        before = read_journal(path)
        with journal(path, before.matrices) as writer:
            scope = TINY if arguments.tiny else Scope()
            machine = replace(detect(), device=CUDA.name, gpu=gpu)
            campaign = Campaign(arguments.out, machine, arguments.matrices, scope, writer, before)
            run(campaign)
            return 1 if campaign.failures else 0
    except InputError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
