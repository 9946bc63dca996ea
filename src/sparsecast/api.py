"""The public face: composes the rooms; the only module that knows them all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from sparsecast.benchmark.calibration import Calibration, Progress, no_progress
from sparsecast.benchmark.evaluation import Evaluation, EvaluationRow, pair, scores
from sparsecast.benchmark.measurement import Subject, measure_candidates
from sparsecast.benchmark.plan_check import PlanCheck, check_plan
from sparsecast.errors import InputError, ProfileError
from sparsecast.kernels.binding import bind, prepared, row_slice
from sparsecast.machines.machine import Machine, detect
from sparsecast.machines.profile import Profile, find_profile, known_profiles, user_path
from sparsecast.matrices.gallery import gallery_from_specification
from sparsecast.matrices.reading import matrix_name, read
from sparsecast.matrices.structure import structure as structure_of
from sparsecast.matrices.values import computed_dtype, require_imaginary
from sparsecast.measuring.timing import DEFAULT_EFFORT, Effort
from sparsecast.models import DEFAULT_MODEL, MODELS
from sparsecast.models.base import Model
from sparsecast.models.strips import strip_rows
from sparsecast.operators import BlockOperator, RowProduct
from sparsecast.planning.candidates import Choice, Setting, whole_matrix
from sparsecast.planning.plan import Plan, make_plan
from sparsecast.planning.prediction import Prediction
from sparsecast.planning.row_blocks import strip_statistics
from sparsecast.records import Candidate, Forecast, Record, Structure

#: Seconds of the calibration that a question starts by itself when the machine has not been met: about twenty
#: for compiling, the first time, and what the indispensable matrices take.
QUICK_BUDGET_S = 55.0

GALLERY_PREFIX = "gallery:"

Notify = Callable[[str], None]


def _to_standard_error(message: str) -> None:
    print(message, file=sys.stderr)


@dataclass(frozen=True)
class NamedMatrix:
    """A matrix as it was read.

    Attributes
    ----------
    name : str
    matrix : csr_array
    notes : tuple of str
        What a reader should know of it: summed duplicates, stored zeros, values that are not finite.
    """

    name: str
    matrix: csr_array[Any]
    notes: tuple[str, ...]


def read_matrix(specification: str | Path) -> NamedMatrix:
    """Return a matrix from a file, or from the gallery for ``gallery:NAME?key=value&key=value``.

    Raises
    ------
    MatrixFileError, MatrixSizeError, UnknownNameError
        As `load` and `gallery` do.
    """
    text = str(specification)
    if text.startswith(GALLERY_PREFIX):
        return NamedMatrix(text, gallery_from_specification(text.removeprefix(GALLERY_PREFIX)), ())
    found = read(text)
    return NamedMatrix(matrix_name(text), found.matrix, tuple(found.notes))


def structure(A: Any) -> Structure:
    """Return what models read of a sparse matrix `A`; a Structure is returned as it is."""
    return A if isinstance(A, Structure) else structure_of(_as_csr(A))


def profile(name: str | Path | None = None) -> Profile:
    """Return the profile of this machine, or the one with this name or path.

    Raises
    ------
    ProfileError
        If this machine has not been met, or the file is not usable.
    UnknownNameError
        If no profile has that name.
    """
    return find_profile(name)


def machines() -> tuple[Machine, dict[str, Profile | ProfileError]]:
    """Return this machine, and every profile at hand, or why it cannot be used, by name."""
    found: dict[str, Profile | ProfileError] = {}
    for name, path in known_profiles().items():
        try:
            found[name] = Profile.load(path)
        except ProfileError as error:
            found[name] = error
    return detect(), found


def calibrate(
    budget_s: float = 300.0,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str = "cpu",
    on_progress: Progress = no_progress,
) -> Profile:
    """Meet this machine: measure the benchmark matrices and keep the profile.

    Parameters
    ----------
    budget_s : float
        Seconds it may take.
    threads, dtype : int and str, optional
        Measure this number of threads, or type of values, only; by default all threads and one, float64
        and float32, the most usual first. Complex types are measured when they are asked for.
    device : str
        ``"cpu"``.
    on_progress : callable
        Called with the seconds done, the seconds expected in all, and what is being measured.

    Raises
    ------
    InputError
        If the budget, threads, dtype or device cannot be.
    BusyError, StorageError
        If another calibration runs, or the profile cannot be kept.
    """
    run = calibration(budget_s, threads=threads, dtype=dtype, device=device)
    run.on_progress = on_progress
    return run.run()


def calibration(
    budget_s: float, *, threads: int | None = None, dtype: str | None = None, device: str = "cpu"
) -> Calibration:
    """Return the calibration that `calibrate` runs, for callers who ask it how it went."""
    machine = detect()
    thread_counts = [machine.checked_threads(threads)]
    if threads is None and machine.threads > 1:
        thread_counts.append(1)
    settings = [
        Setting(device, values, 32, count)
        for values in (("float64", "float32") if dtype is None else (dtype,))
        for count in thread_counts
    ]
    return Calibration(machine, settings, budget_s)


def own_profile(
    A: Any,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str = "cpu",
    notify: Notify = _to_standard_error,
    on_progress: Progress = no_progress,
) -> Profile:
    """Return this machine's profile, calibrated for QUICK_BUDGET_S first where it cannot answer for `A`.

    Parameters
    ----------
    A, threads, dtype, device
        The question, as in `predict`.
    notify : callable
        Told in a sentence that a calibration is started.
    on_progress : callable
        As in `calibrate`.
    """
    setting = _setting(A, detect().checked_threads(threads), dtype, device)
    profile = _met_profile()
    if _answers(profile, setting):
        return profile
    what = f"{setting.threads} thread{'s' if setting.threads > 1 else ''} and {setting.dtype}"
    notify(f"This machine has not been met with {what}: calibrating for {QUICK_BUDGET_S:.0f} s first.")
    return calibrate(
        QUICK_BUDGET_S, threads=setting.threads, dtype=setting.dtype, device=device, on_progress=on_progress
    )


def predict(
    A: Any,
    profile: Profile | None = None,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str = "cpu",
    model: str | None = None,
) -> Prediction:
    """Forecast the product of a matrix in every format that suits it.

    Parameters
    ----------
    A : sparse matrix or Structure
        Of its values only is read whether they mirror each other, and how many are 0.
    profile : Profile, optional
        Of the machine asked about; without one, that of this machine, which is calibrated for
        QUICK_BUDGET_S seconds first if it has not been met, with a line on standard error.
    threads : int, optional
        All of the machine's by default.
    dtype : str, optional
        One of DTYPES; the matrix' own by default (whole numbers count as float64), float64 for a Structure.
        A real matrix may be asked for as complex.
    device : str
        ``"cpu"``.
    model : str, optional
        Name of the model that forecasts; DEFAULT_MODEL without one.

    Raises
    ------
    InputError
        If the matrix, threads, dtype, device or model cannot be, or a complex matrix is asked for as real.
    ProfileError
        If `profile` has no Records for them.
    """
    MODELS.get(model or DEFAULT_MODEL)  # an unknown name is refused before anything is measured
    profile = profile or own_profile(A, threads=threads, dtype=dtype, device=device)
    setting = _setting(A, profile.machine.checked_threads(threads), dtype, device)
    start = perf_counter()
    found = structure(A)
    choice = whole_matrix(found, setting)
    fitted = _fitted(profile, setting, model or DEFAULT_MODEL)
    forecasts = tuple(fitted.forecast(found, choice.candidates))
    return Prediction(forecasts, choice.refused, found, profile.name, fitted.name, perf_counter() - start)


def plan(
    A: Any,
    profile: Profile | None = None,
    *,
    iterations: int = 1000,
    objective: str = "time",
    threads: int | None = None,
    dtype: str | None = None,
    device: str = "cpu",
    model: str | None = None,
) -> Plan:
    """Find the best way of doing `iterations` products with a matrix, conversion paid.

    Parameters
    ----------
    A : sparse matrix
    profile, threads, dtype, device, model
        As in `predict`.
    iterations : int
        Products that will be done, at least 1.
    objective : str
        ``"time"``.

    Raises
    ------
    InputError
        If `iterations` or `objective`, or what `predict` reads, cannot be.
    ProfileError
        If `profile` has no Records for the question.
    """
    if iterations < 1:
        raise InputError(f"iterations {iterations}: expected at least 1; name the products you will do")
    if objective != "time":
        raise InputError(f"objective '{objective}': expected 'time', the only one measured; name it")
    MODELS.get(model or DEFAULT_MODEL)
    matrix = _as_csr(A)
    profile = profile or own_profile(matrix, threads=threads, dtype=dtype, device=device)
    setting = _setting(matrix, profile.machine.checked_threads(threads), dtype, device)
    statistics = strip_statistics(
        matrix.indptr, structure_of(matrix), strip_rows(profile.machine, device, setting.threads)
    )
    return make_plan(statistics, _fitted(profile, setting, model or DEFAULT_MODEL), setting, iterations)


def compile(
    A: Any,
    plan: Plan | None = None,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str = "cpu",
) -> BlockOperator:
    """Build a matrix as a plan says; the result is a SciPy LinearOperator.

    Parameters
    ----------
    A : sparse matrix
        The matrix that was planned for.
    plan : Plan, optional
        Made by `plan`; without one, the matrix is planned for on this machine.
    threads, dtype, device
        For planning, as in `predict`.

    Raises
    ------
    InputError
        If the plan is for other rows, for more threads than the machine has, or for others than asked for.
    """
    matrix = _as_csr(A)
    made = plan or _plan(matrix, threads=threads, dtype=dtype, device=device)
    first = made.baseline.candidate
    detect().checked_threads(first.threads)
    for asked, planned in ((threads, first.threads), (dtype, first.dtype), (device, first.device)):
        if asked is not None and asked != planned:
            raise InputError(
                f"{asked} beside a plan for {planned}: expected the same; plan it so, or leave it out"
            )
    planned_rows = sum(block.last_row + 1 - block.first_row for block in made.blocks)
    if planned_rows != matrix.shape[0]:
        raise InputError(
            f"plan for {planned_rows} rows: expected {matrix.shape[0]}, the rows of the matrix; plan it anew"
        )
    ready = prepared(matrix, first.dtype, first.index_bits)
    blocks = []
    for block in made.blocks:
        bound = bind(_rows(ready, block.first_row, block.last_row), block.candidate)
        blocks.append(RowProduct(block.first_row, block.last_row + 1, bound.product, bound.several))
    return BlockOperator(matrix.shape, np.dtype(first.dtype), blocks)


# `compile` has a parameter of the same name.
_plan = plan


def check(A: Any, made: Plan, effort: Effort = DEFAULT_EFFORT) -> PlanCheck:
    """Build a plan here and measure its operator in turn with plain CSR and SciPy.

    Raises
    ------
    WrongResultError
        If the operator is wrong.
    """
    matrix = _as_csr(A)
    return check_plan(matrix, made, lambda: compile(matrix, made), effort)


def measure(
    A: Any,
    table: Prediction | Sequence[Forecast | Candidate] | None = None,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str = "cpu",
    name: str = "matrix",
    on_sample: Callable[[], None] = lambda: None,
) -> list[Record]:
    """Measure the product of a matrix here, each result checked against the oracle first.

    Parameters
    ----------
    A : sparse matrix
    table : Prediction, or sequence of Forecast or Candidate, optional
        What to measure; without it, every format that suits the matrix.
    threads, dtype, device
        For choosing what to measure where `table` is None.
    name : str
        The matrix' name in the Records.
    on_sample : callable
        Called after every sample.

    Returns
    -------
    list of Record
        Fastest first.

    Raises
    ------
    InputError
        If the table was forecast for another machine, or for more threads than this one has.
    WrongResultError
        If a kernel is wrong.
    """
    matrix = _as_csr(A)
    machine = detect()
    if isinstance(table, Prediction):
        _require_own(table.profile, machine)
    found = table.structure if isinstance(table, Prediction) else structure_of(matrix)
    if table is None:
        values = matrix.dtype.name if dtype is None else dtype
        table = choice(found, threads=threads, dtype=values, device=device).candidates
    candidates = [item.candidate if isinstance(item, Forecast) else item for item in table]
    for candidate in candidates:
        machine.checked_threads(candidate.threads)
    subject = Subject(matrix, found, name, "user")
    records = measure_candidates(subject, candidates, DEFAULT_EFFORT, on_sample)
    return sorted(records, key=lambda record: record.time_s)


def choice(A: Any, *, threads: int | None = None, dtype: str | None = None, device: str = "cpu") -> Choice:
    """Return the ways of doing the product that are open to a matrix here, and why others are not.

    Parameters
    ----------
    A, threads, dtype, device
        As in `predict`.
    """
    setting = _setting(A, detect().checked_threads(threads), dtype, device)
    return whole_matrix(structure(A), setting)


def forecasts_at_hand(
    A: Any,
    wanted: str | None = None,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str = "cpu",
) -> Prediction | None:
    """Return the forecasts of this machine without calibrating for them; None where it was not met.

    Raises
    ------
    InputError
        If `wanted` is the profile of another machine: its forecasts have no measurement here.
    """
    machine = detect()
    profile = find_profile(wanted) if wanted else _met_profile()
    _require_own(profile.name, machine)
    setting = _setting(A, machine.checked_threads(threads), dtype, device)
    if not _answers(profile, setting):
        return None
    return predict(A, profile, threads=threads, dtype=dtype, device=device)


def evaluate(
    matrices: Sequence[Any],
    profile: Profile | None = None,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str = "cpu",
    on_matrix: Callable[[], None] = lambda: None,
) -> Evaluation:
    """Forecast a collection of matrices with every model, and measure them on this machine.

    Parameters
    ----------
    matrices : sequence of paths, gallery specifications or sparse matrices
    profile, threads, dtype, device
        As in `predict`.
    on_matrix : callable
        Called after each matrix.
    """
    machine = detect()
    if profile is not None:
        _require_own(profile.name, machine)
    rows: list[EvaluationRow] = []
    refused: dict[str, str] = {}
    for number, item in enumerate(matrices, 1):
        name = str(item) if isinstance(item, str | Path) else f"matrix {number}"
        try:
            found = (
                read_matrix(item) if isinstance(item, str | Path) else NamedMatrix(name, _as_csr(item), ())
            )
        except InputError as error:
            refused[name] = str(error)
        else:
            rows += _evaluated(found, profile, threads=threads, dtype=dtype, device=device)
        on_matrix()
    return Evaluation(machine.name, tuple(rows), scores(rows), refused)


def _evaluated(found: NamedMatrix, profile: Profile | None, **setting: Any) -> list[EvaluationRow]:
    predictions = [predict(found.matrix, profile, **setting, model=model) for model in MODELS.names()]
    records = measure(found.matrix, **setting, name=found.name)
    rows = [row for p in predictions for row in pair(found.name, p.model, p, records)]
    return sorted(rows, key=lambda row: row.record.time_s)


def _as_csr(A: Any) -> csr_array[Any]:
    if not issparse(A):
        raise InputError(f"{type(A).__name__} is no sparse matrix: expected one of SciPy's; convert it")
    matrix: csr_array[Any] = A if isinstance(A, csr_array) else csr_array(A)  # type: ignore[call-overload]
    wanted = computed_dtype(matrix.dtype)
    return matrix if matrix.dtype == wanted else matrix.astype(wanted)


def _rows(A: csr_array[Any], first: int, last: int) -> csr_array[Any]:
    return A if (first, last) == (0, A.shape[0] - 1) else row_slice(A, first, last)


def _setting(A: Any, threads: int, dtype: str | None, device: str) -> Setting:
    if isinstance(A, Structure):
        index_bits = 32 if max(A.nnz, A.rows, A.cols) < 2**31 else 64
        return Setting(device, "float64" if dtype is None else dtype, index_bits, threads)
    matrix = _as_csr(A)
    # SciPy counts more than 2**31 - 1 entries with 64 bits, the columns may still have 32.
    index_bytes = max(matrix.indptr.itemsize, matrix.indices.itemsize)
    setting = Setting(device, matrix.dtype.name if dtype is None else dtype, 8 * index_bytes, threads)
    require_imaginary(matrix.dtype, setting.dtype, f"a {matrix.dtype} matrix")
    return setting


def _met_profile() -> Profile:
    """Return this machine's profile, an empty one where there is none."""
    machine = detect()
    return find_profile() if user_path(machine.name).exists() else Profile(machine, ())


def _require_own(profile_name: str, machine: Machine) -> None:
    if profile_name != machine.name:
        raise InputError(
            f"forecasts for {profile_name}: expected this machine, {machine.name}, to measure them on; "
            f"use its own profile"
        )


def _answers(profile: Profile, setting: Setting) -> bool:
    return bool(profile.select(device=setting.device, dtype=setting.dtype, threads=setting.threads))


def _fitted(profile: Profile, setting: Setting, name: str) -> Model:
    records = profile.select(device=setting.device, dtype=setting.dtype, threads=setting.threads)
    if not records:
        raise ProfileError(
            f"profile {profile.name} has no records for {setting.device} {setting.dtype} {setting.threads} "
            f"threads: it has {contents(profile)}; calibrate for it, or ask for what it has"
        )
    return MODELS.get(name)().fit(records, profile.machine)


def contents(profile: Profile) -> str:
    """Return in words what a profile has Records for."""
    counts: dict[str, int] = {}
    for record in profile.records:
        candidate = record.candidate
        plural = "s" if candidate.threads > 1 else ""
        key = f"{candidate.device} {candidate.dtype} {candidate.threads} thread{plural}"
        counts[key] = counts.get(key, 0) + 1
    return ", ".join(f"{key} ({count} records)" for key, count in counts.items()) or "no records"
