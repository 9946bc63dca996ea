"""Costs of conversions, Structures, reading, forecasts, plans, partitions and the start."""

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
    geometric_mean,
    medians,
    named,
    timed,
)
from sparsecast import api
from sparsecast.api.forecast_basis import ForecastBasis
from sparsecast.api.settings import Trust
from sparsecast.devices.target import Target
from sparsecast.errors import InputError, ProfileError
from sparsecast.features.analysis import structure as structure_of
from sparsecast.features.structure import Structure
from sparsecast.formats import FORMATS
from sparsecast.formats.storage_format import StorageFormat
from sparsecast.machines.machine import detect
from sparsecast.matrices.gallery import gallery_from_specification
from sparsecast.matrices.partitioning.distributing import distribute
from sparsecast.matrices.partitioning.estimates import estimated_distribution
from sparsecast.matrices.partitioning.methods import METHODS, partition, usable_method
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.reading import load
from sparsecast.models import MODELS
from sparsecast.models.training import TrainingSet
from sparsecast.operators.applications.application import Laps, ScipyOperator, no_iteration
from sparsecast.planning.dynamic_programme import strip_statistics
from sparsecast.planning.plan import Goal, make_plan
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


def least(tasks: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the least seconds of tasks that take turns."""
    return {name: min(values) for name, values in alternated(tasks, rounds).items()}


def peak_bytes(task: Callable[[], Any]) -> tuple[Any, int]:
    """Return what a call gives, and the most memory that it had allocated, as far as NumPy tells."""
    tracemalloc.start()
    try:
        return task(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def bytes_of(A: csr_array[Any]) -> int:
    """Return the bytes of the arrays of a matrix."""
    return int(A.indptr.nbytes + A.indices.nbytes + A.data.nbytes)


def extra_memory(build: Callable[[], StorageFormat], A: csr_array[Any]) -> float:
    """Return the peak of a conversion beside its source and its target, over the bytes of both."""
    target, peak = peak_bytes(build)
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
            seconds = medians({"product": checked_product(A, "csr", threads), **calls}, rounds)
            products[threads] = {name: seconds[name] / seconds["product"] for name in calls}
        for name, call in calls.items():
            yield {
                "matrix": problem.name,
                "conversion": name,
                **{f"products, {threads} threads": values[name] for threads, values in products.items()},
                "memory share": extra_memory(call, A),
            }


@experiment(PANEL)
def structure(matrices: Matrices = None, rounds: int = 15) -> Rows:
    """Time a Structure in products of SciPy's CSR: the goals are 3 products and a tenth of the bytes."""
    defaults = (
        *("poisson3d", "poisson3d?n=60&points=27", "elasticity3d", "banded", "random"),
        *("random?n=600000&nnz_per_row=2", "rmat", "circuit", "arrow"),
    )
    threads = numba.get_num_threads()
    for problem in named(matrices, defaults):
        A, x = problem.matrix, np.ones(problem.matrix.shape[1])
        tasks: dict[str, Callable[[], Any]] = {"product": lambda A=A, x=x: A @ x}
        tasks |= {f"{n} threads": partial(structure_of, A, threads=n) for n in dict.fromkeys((1, threads))}
        _, peak = peak_bytes(tasks[f"{threads} threads"])
        seconds = least(tasks, rounds)
        yield {
            "matrix": problem.name,
            "entries": A.nnz,
            "product_s": seconds["product"],
            **{
                f"{name}, products": seconds[name] / seconds["product"] for name in tasks if name != "product"
            },
            "memory share": peak / bytes_of(A),
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
        seconds = medians({name: partial(read, path) for name, read in READERS.items()}, rounds)
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
        seconds = least(tasks, rounds)
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


@experiment(PANEL)
def planning_time(profile: ProfileName = None, rows_per_strip: int = 64) -> Rows:
    """Time strip statistics and the dynamic programme, for 10 to 100,000 strips and every model.

    The strips have few rows, so that 100,000 of them fit in memory: the work depends on the number of strips.
    """
    chosen_profile = sc.profile(profile)
    first = chosen_profile.records[0].candidate
    target = Target(first.device, first.dtype, first.index_bits, first.threads)
    records = chosen_profile.select(device=first.device, dtype=first.dtype, threads=first.threads)
    for name in MODELS.names():
        try:
            model = MODELS.get(name)().fit(TrainingSet.of(chosen_profile, records))
        except ProfileError as error:
            yield str(error)
            continue
        for strips in (10, 100, 1_000, 10_000, 100_000):
            A = short_rows(strips * rows_per_strip)
            count = partial(strip_statistics, A.indptr, sc.structure(A), rows_per_strip)
            counted = count()
            plan = partial(make_plan, counted, model, target, detect(), Goal(1000))
            used = counted.strips
            yield {
                "model": name,
                "strips": strips,
                "strips used": used,
                "blocks evaluated": used * (used + 1) // 2 * len(model.formats()),
                **least({"statistics_s": count, "programme_s": plan}, 3),
            }


def short_rows(rows: int) -> csr_array[Any]:
    """Return a matrix whose rows hold 0 to 8 entries at random, all in column 0."""
    indptr = np.zeros(rows + 1, dtype=np.int32)
    np.cumsum(np.random.default_rng(0).integers(0, 9, rows), out=indptr[1:])
    entries = int(indptr[-1])
    return csr_array((np.ones(entries, np.float32), np.zeros(entries, np.int32), indptr), (rows, rows))


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


@experiment(PANEL)
def solvers(
    matrices: Matrices = None, threads: Threads = 1, least_nnz: int = 100_000, rounds: int = 5
) -> Rows:
    """Time `sc.pagerank` and `sc.cg` against the same solvers with SciPy's product, from the matrix on.

    All have what there is to it: transposed graph, first iterations, plan, trials and conversion. Compiled
    kernels are at hand. "plan first" tries iterations with SciPy, and plans for all of them before the run.
    """
    ratios: dict[str, list[float]] = {}
    for problem in named(matrices, SOLVED):
        for application, problem_of_run in applications_of(problem, least_nnz):
            A, b = problem_of_run.matrix, np.random.default_rng(0).standard_normal(problem.matrix.shape[0])

            def solved(application: str, A: csr_array[Any], is_planned: bool) -> Any:
                asked = api.application_question(application, A)
                solver, op = asked.application, ScipyOperator(asked.problem.matrix)
                if is_planned:
                    expected = solver.iterations().expected
                    op = sc.compile(asked.problem, sc.plan(asked.problem, products=expected, threads=threads))
                return solver.run(op, solver.most_iterations, no_iteration, Laps())

            ours = partial(sc.pagerank, A) if application == "pagerank" else partial(sc.cg, A, b)
            tasks = {
                "SciPy": partial(solved, application, A, is_planned=False),
                "ours": partial(ours, threads=threads),
                "plan first": partial(solved, application, A, is_planned=True),
            }
            seconds = alternated(tasks, rounds)
            over = {
                name: statistics.median(a / b for a, b in zip(values, seconds["SciPy"], strict=True))
                for name, values in seconds.items()
            }
            ratios.setdefault(application, []).append(over["ours"])
            yield {
                "run": application,
                "matrix": problem.name,
                "entries": A.nnz,
                "iterations": ours(threads=threads).iterations,
                **{f"{name}_s": statistics.median(values) for name, values in seconds.items()},
                **{f"{name} / SciPy": over[name] for name in ("ours", "plan first")},
            }
    for application, found in ratios.items():
        ends = f"geometric mean {geometric_mean(found):.2f}, {min(found):.2f} to {max(found):.2f}"
        yield f"{application}: ours over SciPy's, {ends}."


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
    seconds = alternated(tasks, processes)
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


@experiment(PANEL)
def partitions(
    ranks: Annotated[list[int], typer.Option(help="Repeat for several.")] = [16, 64, 256, 1024, 10_000],  # noqa: B006
) -> Rows:
    """Count what partitions of meshes communicate, against theory, and time making and counting them.

    Words are entries of x that all ranks receive in one product of local 1D, in 2D of x and y. Theory is
    `estimated_distribution`: strips for rows and non-zeros, cubes for METIS, from counts alone.
    """
    methods = [name for name in METHODS.names() if usable_method(name)[0] == name]
    small = gallery_from_specification("poisson2d?n=10")
    for method in methods:  # compiles
        distribute(small, partition(small, 4, method))
    meshes = {"poisson2d?n=1400": 2, "delaunay?n=1000000": 2, "poisson3d?n=115": 3}
    meshes |= {"poisson3d?n=72&points=27": 3}
    for specification, dimension in meshes.items():
        A = gallery_from_specification(specification)
        for count in ranks:
            for method in methods:
                parts, partition_s = timed(lambda A=A, c=count, m=method: partition(A, c, m))
                counted, distribute_s = timed(lambda A=A, parts=parts: distribute(A, parts))
                row = {
                    "mesh": specification,
                    "ranks": count,
                    "method": method,
                    "words": counted.volume_words,
                    "imbalance": counted.imbalance,
                    "to partition_s": partition_s,
                    "to count_s": distribute_s,
                }
                if not counted.is_2d:
                    theory = estimated_distribution(*A.shape, A.nnz, count, method, dimension)
                    row["words over theory"] = counted.volume_words / theory.received_words.sum()
                    row["most over mean"] = counted.received_words.max() / counted.received_words.mean()
                    row["neighbours"] = float(counted.received_messages.mean())
                    row["in theory"] = float(theory.received_messages.mean())
                yield row


if __name__ == "__main__":
    print(_measure_peak(sys.argv[1], Path(sys.argv[2])))
