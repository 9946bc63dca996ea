"""Costs of conversions, reading, forecasts, whole runs and the start."""

from __future__ import annotations

import gzip
import resource
import statistics
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numba
import numpy as np
import typer
from scipy import sparse
from scipy.io import hb_read, loadmat, mmread, mmwrite
from scipy.sparse import csr_array

import sparsecast as sc
from experiment import (
    MOST_THREADS,
    Matrices,
    ProfileName,
    Rows,
    Threads,
    alternated,
    checked_product,
    error_columns,
    experiment,
    named,
    timed,
)
from sparsecast import api
from sparsecast.api.forecast_basis import ForecastBasis
from sparsecast.api.settings import Trust
from sparsecast.devices.target import Target
from sparsecast.errors import InputError
from sparsecast.features.analysis import structure as structure_of
from sparsecast.features.structure import Structure
from sparsecast.formats import FORMATS
from sparsecast.formats.storage_format import StorageFormat
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.reading import load
from sparsecast.system.tabular import grouped
from sparsecast.system.texts import percent

PANEL = "Costs"

#: Gallery matrices above 1 million and above 10 million entries.
LARGE = (
    *("poisson3d?n=60", "poisson3d?n=40&points=27", "elasticity3d?n=20", "banded?n=100000"),
    *("circuit?n=300000", "rmat?scale=17&degree=12", "random?n=200000", "random?n=600000&nnz_per_row=2"),
    *("arrow?n=400000", "poisson2d?n=1500", "poisson3d?n=120", "poisson3d?n=75&points=27"),
    *("elasticity3d?n=36", "banded?n=700000", "circuit?n=2500000", "rmat?scale=20&degree=12"),
    *("random?n=1500000", "random?n=6000000&nnz_per_row=2", "arrow?n=2500000"),
)


def bytes_of(A: csr_array[Any]) -> int:
    """Return the bytes of the arrays of a matrix."""
    return int(A.indptr.nbytes + A.indices.nbytes + A.data.nbytes)


def extra_memory(build: Callable[[], StorageFormat], A: csr_array[Any]) -> float:
    """Return the peak of a conversion beside its source and its target, over the bytes of both."""
    tracemalloc.start()
    try:
        target = build()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    arrays, before = target.arrays.values(), (A.indptr, A.indices, A.data)
    new = [array for array in arrays if not any(np.shares_memory(array, other) for other in before)]
    both = bytes_of(A) + sum(array.nbytes for array in arrays)
    return (peak - sum(array.nbytes for array in new)) / both


@experiment(PANEL)
def conversions(matrices: Matrices = None, dtype: str = "float64", rounds: int = 5) -> Rows:
    """Time building each format from CSR, in products of CSR, with one thread and with all; narrow ones too.

    Memory is the highest beyond what was there before, less the arrays that stay, over the bytes of both
    formats: the goal is a tenth. It counts NumPy's arrays alone. A format that does not suit is left out.
    """
    defaults = (
        *("poisson3d?n=90", "elasticity3d?n=26", "banded?n=200000"),
        *("random?n=400000&nnz_per_row=6", "rmat?scale=16&degree=24", "circuit?n=400000"),
    )
    for problem in named(matrices, defaults):
        A = problem.matrix.astype(dtype)
        calls: dict[str, Callable[[], Any]] = {}
        ways = [(name, {}) for name in sorted(set(FORMATS.names()) - {"csr"})]
        ways += [
            (each.format, each.parameters) for each in sc.session().choice(A).candidates if each.parameters
        ]
        for name, parameters in ways:
            call = partial(FORMATS.get(name).from_csr, A, **parameters)
            try:
                call()
            except InputError as error:
                print(f"left out: {error}", file=sys.stderr)
                continue
            calls[" ".join([name, *(f"{key}={value}" for key, value in parameters.items())])] = call
        products = {}
        for threads in dict.fromkeys((1, MOST_THREADS)):
            numba.set_num_threads(threads)
            seconds = alternated({"product": checked_product(A, "csr", threads), **calls}, rounds)
            products[threads] = {name: seconds[name] / seconds["product"] for name in calls}
        for name, call in calls.items():
            yield {
                "matrix": problem.name,
                "conversion": name,
                **{f"products, {threads} threads": values[name] for threads, values in products.items()},
                "memory share": extra_memory(call, A),
            }


def _by_scipy(path: Path) -> csr_array[Any]:
    """Read a matrix into canonical CSR by SciPy's reader of its suffix."""
    suffix = path.suffixes[-2] if path.suffix == ".gz" else path.suffix
    if suffix == ".mat":
        contents = loadmat(path)
        matrix: Any = next(one for one in contents.values() if sparse.issparse(one))
    else:
        read: dict[str, Any] = {".mtx": mmread, ".npz": sparse.load_npz}
        options = {} if suffix == ".npz" else {"spmatrix": False}
        matrix = read.get(suffix, hb_read)(path, **options)
    rows = csr_array(matrix)
    rows.sum_duplicates()
    return rows


READERS: dict[str, Callable[[Path], Any]] = {"load": load, "SciPy": _by_scipy}


@experiment(PANEL)
def reading(files: Annotated[list[Path], typer.Argument(metavar="FILE...")], rounds: int = 7) -> Rows:
    """Time `sparsecast.load` against SciPy's reader of a file, and compare what they take of memory.

    Files are .mtx, .mtx.gz, .npz, .mat, or Harwell-Boeing ones that SciPy reads. "peak" is the growth of the
    largest resident size of a process that reads the file once, over the bytes of the CSR arrays.
    """
    for path in files:
        matrix = load(path)
        seconds = alternated({name: partial(read, path) for name, read in READERS.items()}, rounds)
        peaks = {}
        for name in READERS:
            command = [sys.executable, __file__, name, str(path)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            peaks[f"{name} peak"] = int(done.stdout) / bytes_of(matrix)
        yield {
            "file": path.name,
            "entries": matrix.nnz,
            **{f"{name}_s": value for name, value in seconds.items()},
            "load / SciPy": seconds["load"] / seconds["SciPy"],
            **peaks,
        }


def _measure_peak(name: str, path: Path) -> int:
    """Return the growth of this process, in bytes, over what imports and compiled kernels take."""
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.mtx"
        mmwrite(small, sparse.coo_array(np.eye(3)), symmetry="general")
        packed = Path(folder) / "small.mtx.gz"
        packed.write_bytes(gzip.compress(small.read_bytes()))
        for each in (small, packed):
            READERS[name](each)
    before = _largest_resident_bytes()
    READERS[name](path)
    return _largest_resident_bytes() - before


def _largest_resident_bytes() -> int:
    status = Path("/proc/self/status")
    if status.exists():
        # Linux hands the parent's peak down in getrusage, and not here.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@experiment(PANEL)
def forecast_cost(
    matrices: Matrices = None, profile: ProfileName = None, models: str = "sparsecast,linear", rounds: int = 7
) -> Rows:
    """Time the forecasts of a matrix in products of our CSR, from a sample and from all entries.

    One thread. The cost is that of the Structure, which is a sample of a large matrix, and of the forecasts
    of all formats. The goal is at most 2 products above 1 million entries and 1 above 10 million.
    """
    target, chosen_profile = Target("cpu", "float64", 32, 1), sc.profile(profile)
    differences: dict[str, list[float]] = {}
    for problem in named(matrices, LARGE):
        A = problem.matrix
        bases = {
            name: ForecastBasis.of(problem, chosen_profile, target, Trust(name)) for name in models.split(",")
        }
        exact, sample = problem.structure, problem.sampled_structure
        tasks: dict[str, Callable[[], Any]] = {
            "product": checked_product(A, "csr"),
            "whole": partial(structure_of, A, threads=1),
            "sample": partial(structure_of, A, threads=1, is_sampled=True),
        }
        tasks |= {name: partial(basis.estimates, sample) for name, basis in bases.items()}
        seconds = alternated(tasks, rounds, min)
        row: dict[str, Any] = {
            "matrix": problem.name.removeprefix("gallery:"),
            "entries": A.nnz,
            "symmetric": exact.symmetry.triangle_nnz is not None,
            "product_s": seconds["product"],
            "Structure of all, products": seconds["whole"] / seconds["product"],
        }
        for name, basis in bases.items():
            changes = relative_differences(basis, sample, exact)
            differences.setdefault(name, []).extend(changes)
            row[f"{name}, products"] = (seconds["sample"] + seconds[name]) / seconds["product"]
            row[f"{name}, worst difference"] = max(changes)
        yield row
    for name, values in differences.items():
        median, high = map(percent, error_columns(values).values())
        yield f"{name}: forecasts from a sample differ by {median} (median) and {high} (90th percentile)."


def relative_differences(basis: Any, sample: Structure, exact: Structure) -> list[float]:
    """Return by how much each forecast from a sample differs from that from all entries, relative to it."""
    of_sample, of_all = (
        {each.candidate: each.value for each in basis.estimates(matrix)} for matrix in (sample, exact)
    )
    if of_sample.keys() != of_all.keys():
        raise InputError(f"the sample has other candidates: {of_sample.keys() ^ of_all.keys()}")
    return [abs(of_sample[candidate] / of_all[candidate] - 1) for candidate in of_all]


#: Symmetric positive definite matrices, and graphs.
SOLVED = (
    *("poisson2d?n=300", "poisson3d?n=50", "elasticity3d?n=16", "poisson3d?n=40&points=27"),
    *("rmat?scale=16", "circuit?n=200000"),
)


def applications_of(problem: Problem, least_nnz: int) -> Iterator[tuple[str, Problem]]:
    """Yield PageRank of a real square matrix, and CG where it is positive definite, as far as 40 steps tell.

    PageRank takes absolute values. Matrices with fewer entries than `least_nnz` are left out.
    """
    A = problem.matrix
    if A.shape[0] != A.shape[1] or A.nnz < least_nnz or A.dtype.kind == "c":
        return
    graph = csr_array((np.abs(A.data), A.indices, A.indptr), shape=A.shape)
    yield "pagerank", Problem.of(graph, problem.name)
    try:
        api.application_question("cg", problem).application.iterations()
    except InputError as error:
        print(f"no CG: {error}", file=sys.stderr)
    else:
        yield "cg", problem


@experiment(PANEL)
def whole_runs(matrices: Matrices = None, threads: Threads = 1, least_nnz: int = 100_000) -> Rows:
    """Run PageRank and CG beside the forecasts of whole runs, whose errors are told apart.

    Errors are signed: above 0 the forecast was too long. That of the whole run is the sum of the five behind
    it, which are differences over the whole run: of the conversion, of products alone, of what they take more
    within the run, of the loops over vectors, and of the number of iterations.
    """
    rows = []
    for problem in named(matrices, SOLVED):
        for application, problem_of_run in applications_of(problem, least_nnz):
            question = api.application_question(application, problem_of_run)
            cost = api.application_cost(sc.session(threads=threads), question)
            run = api.run_application(question, cost.plan)
            if run.stop != "converged":
                print(f"{application} of {problem.name}: {run.stop}", file=sys.stderr)
            whole_s = run.time_s + run.convert_s
            rows.append(
                {
                    "run": application,
                    "matrix": problem.name,
                    "format": cost.format,
                    "iterations": run.iterations,
                    "expected": cost.iterations.expected,
                    "measured_s": whole_s,
                    "whole error": run.whole_error(cost),
                    **{f"{term['name']} error": term["share"] for term in run.terms(cost)},
                    "same iterations error": run.error(cost),
                    "inside": (cost.low_s or 0) <= whole_s <= (cost.high_s or np.inf),
                    "trials_s": cost.trials_s,
                }
            )
            yield rows[-1]
    for application, own in grouped(rows, lambda row: row["run"]).items():
        for name in ("whole error", "same iterations error"):
            errors = np.array([row[name] for row in own])
            median, high = map(percent, error_columns(errors).values())
            within = [int((np.abs(errors) <= most).sum()) for most in (0.1, 0.15)]
            yield (
                f"{application}, {name}: {len(own)} runs, median {median}, 90th percentile {high}, mean "
                f"signed {100 * errors.mean():+.1f} %; {within[0]} within 10 %, {within[1]} within 15 %."
            )
        yield f"{application}: {sum(row['inside'] for row in own)} of {len(own)} whole runs in the interval."


#: What a fresh process does, by the name of the row.
STARTS = {
    "python alone": "pass",
    "import numpy": "import numpy",
    "import sparsecast": "import sparsecast",
    "import sparsecast.api": "import sparsecast.api",
    "first product, planned and compiled": (
        "import sys; import numpy as np; import sparsecast as sc; A = sc.gallery('poisson2d', n=100); "
        "x = np.ones(A.shape[1]); p = sc.profile(*sys.argv[1:]); sc.compile(A, sc.plan(A, p, threads=1)) @ x"
    ),
}


@experiment(PANEL)
def start_time(profile: ProfileName = None, processes: int = 9) -> Rows:
    """Time fresh processes: the import, and the way to the first product; each was run once before."""
    arguments = [profile] if profile else []
    tasks = {
        name: partial(subprocess.run, [sys.executable, "-c", code, *arguments], check=True)
        for name, code in STARTS.items()
    }
    seconds = alternated(tasks, processes, list)
    bare_s = statistics.median(seconds["python alone"])
    for name, values in seconds.items():
        median_s = statistics.median(values)
        beyond = {"median_s": median_s, "least_s": min(values), "most_s": max(values)}
        yield {"process": name, **beyond, "beyond python_s": max(median_s - bare_s, 0.0)}


@experiment(PANEL)
def session_time(profile: ProfileName = None, matrices: int = 1000) -> Rows:
    """Time forecasts of small matrices, each another one: in one session, and in a session each.

    The goal is 20 ms each in one session.
    """
    chosen = [sc.gallery("banded", n=200 + number, half_bandwidth=3) for number in range(matrices)]
    session = sc.session(profile, threads=1)
    session.predict(chosen[0])
    _, one_s = timed(lambda: [session.predict(A) for A in chosen])
    few = chosen[: max(1, matrices // 20)]
    _, each_s = timed(lambda: [sc.session(profile, threads=1).predict(A) for A in few])
    yield {"sessions": "one", "matrices": matrices, "forecast_s": one_s / matrices}
    yield {"sessions": "one each", "matrices": len(few), "forecast_s": each_s / len(few)}


if __name__ == "__main__":
    print(_measure_peak(sys.argv[1], Path(sys.argv[2])))
