"""The public face: composes the rooms; the only module that knows them all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from sparsecast.benchmark import five_minutes
from sparsecast.benchmark.calibration import Calibration, Place, Progress, no_progress
from sparsecast.benchmark.evaluation import Evaluation, EvaluationRow, pair, scores
from sparsecast.benchmark.five_minutes import BenchResult
from sparsecast.benchmark.measurement import LeftOut, Subject, bench_of, measure_candidates
from sparsecast.benchmark.plan_check import PlanCheck, check_plan
from sparsecast.benchmark.twins import Twins, twins_of
from sparsecast.errors import InputError, ProfileError
from sparsecast.kernels.binding import bind, prepared, row_slice
from sparsecast.machines.device import detect_device, parse_device, parse_devices
from sparsecast.machines.machine import Machine, detect
from sparsecast.machines.profile import Profile, find_profile, known_profiles, missing_profiles, user_path
from sparsecast.matrices.gallery import gallery_from_specification
from sparsecast.matrices.reading import matrix_name, read
from sparsecast.matrices.structure import structure as structure_of
from sparsecast.matrices.values import computed_dtype, require_imaginary
from sparsecast.measuring.timing import DEFAULT_EFFORT, Effort
from sparsecast.models import DEFAULT_MODEL, MODELS
from sparsecast.models.base import Model
from sparsecast.models.strips import strip_rows
from sparsecast.operators import BlockOperator, RowProduct
from sparsecast.planning.candidates import Choice, Setting, refuse_beyond_device, whole_matrix
from sparsecast.planning.placement import Placement, Placements, compare
from sparsecast.planning.plan import Plan, make_plan
from sparsecast.planning.prediction import Prediction
from sparsecast.planning.row_blocks import strip_statistics
from sparsecast.planning.transfer import transfer_s
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


def profile(name: str | Path | None = None, *, device: str = "cpu") -> Profile:
    """Return the profile of this machine, or the one with this name or path.

    Parameters
    ----------
    name : str or Path, optional
    device : str
        Of this machine: ``"cpu"``, ``"cuda"`` or ``"cuda:N"``; each GPU has a profile of its own.

    Raises
    ------
    ProfileError
        If this machine has not been met, or the file is not usable.
    UnknownNameError
        If no profile has that name.
    DeviceError
        If this machine's device is wanted and is not there.
    """
    return find_profile(name, None if name else machine_of(device))


def machine_of(device: str) -> Machine:
    """Return this machine, with its GPU where `device` is ``"cuda"`` or ``"cuda:N"``.

    Raises
    ------
    InputError, DeviceError
        If `device` is nothing of that kind, or is not there.
    """
    named, index = parse_device(device)
    return replace(detect(), device=detect_device(index)) if named == "cuda" else detect()


def machines() -> tuple[Machine, dict[str, Profile | ProfileError]]:
    """Return this machine, and every profile at hand, or why it cannot be used, by name.

    Among those that cannot be used are those that shall be shipped and are not yet.
    """
    found: dict[str, Profile | ProfileError] = {}
    for name in (*known_profiles(), *missing_profiles()):
        try:
            found[name] = find_profile(name)
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
        ``"cpu"``, ``"cuda"`` or ``"cuda:N"``.
    on_progress : callable
        Called with the seconds done, the seconds expected in all, and what is being measured.

    Raises
    ------
    InputError
        If the budget, threads, dtype or device cannot be.
    DeviceError
        If the device is not there, or is lost; what was measured until then is kept.
    BusyError, StorageError
        If another calibration runs, or the profile cannot be kept.
    """
    run = calibration(budget_s, threads=threads, dtype=dtype, device=device)
    run.on_progress = on_progress
    return run.run()


def bench(
    budget_s: float = 300.0,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str = "cpu",
    blocks: Sequence[str] | None = None,
    on_progress: Progress = no_progress,
) -> BenchResult:
    """Rate this machine by the five-minute benchmark of Gahvari et al. (2007), and keep its profile.

    It is a calibration in which the benchmark's matrices come first; those that forecasts need follow.

    Parameters
    ----------
    budget_s : float
        Seconds it may take, at least 60.
    threads, dtype, device, on_progress
        As in `calibrate`.
    blocks : sequence of str, optional
        Block sizes such as ``"4x2"``; by default all 36.

    Raises
    ------
    InputError
        If the budget, threads, dtype, device or a block size cannot be.
    DeviceError, BusyError, StorageError
        As `calibrate` does.
    """
    run = calibration(budget_s, threads=threads, dtype=dtype, device=device, blocks=blocks, rates=True)
    run.on_progress = on_progress
    run.run()
    return bench_result(run)


def twins(
    paths: Sequence[str | Path],
    *,
    threads: int | None = None,
    dtype: str | None = None,
    on_matrix: Callable[[], None] = lambda: None,
) -> Twins:
    """Measure matrices beside their synthetic twins, on the processor.

    Parameters
    ----------
    paths : sequence of path-like
        Matrix files; those that cannot be read are left out, with the reason.
    threads : int, optional
        By default all of the machine's, and one.
    dtype : str, optional
        One of DTYPES; by default each matrix' own.
    on_matrix : callable
        Called after each matrix.

    Raises
    ------
    InputError
        If the threads or dtype cannot be.
    """
    machine = detect()
    counts = [machine.checked_threads(threads)]
    if threads is None and counts[0] > 1:
        counts.append(1)
    Setting("cpu", dtype or "float64", 32, 1)  # an unknown type is refused once, not for every matrix
    return twins_of(paths, counts, dtype, on_matrix)


def bench_result(run: Calibration) -> BenchResult:
    """Return the figures of what a calibration has measured of the five-minute benchmark."""
    found = five_minutes.ratings(run.records, run.machine, run.streams, run.range_ends)
    return BenchResult(
        machine=run.machine,
        budget_s=run.budget_s,
        used_s=run.used_s,
        ratings=tuple(found),
        phases=run.phases,
        notes=(*run.notes, *five_minutes.notes(found)),
        interrupted=run.interrupted,
    )


def calibration(
    budget_s: float,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str = "cpu",
    blocks: Sequence[str] | None = None,
    rates: bool = False,
) -> Calibration:
    """Return the calibration that `calibrate` and, with `rates`, `bench` run, for who asks how it went."""
    machine = machine_of(device)
    thread_counts = [_threads(machine, threads)]
    if threads is None and thread_counts[0] > 1:
        thread_counts.append(1)
    settings = [
        Setting(kind(machine), values, 32, count)
        for values in (("float64", "float32") if dtype is None else (dtype,))
        for count in thread_counts
    ]
    series = five_minutes.all_series(blocks)
    return Calibration(machine, settings, budget_s, place=_place(machine), series=series, rates=rates)


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
    machine = machine_of(device)
    setting = _setting(A, machine, threads, dtype)
    profile = _met_profile(machine)
    if _answers(profile, setting):
        return profile
    plural = "s" if setting.threads > 1 else ""
    on = setting.device if machine.device else f"{setting.threads} thread{plural}"
    what = f"{on} and {setting.dtype}"
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
    device: str | None = None,
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
        All of the machine's by default; none are named for a GPU.
    dtype : str, optional
        One of DTYPES; the matrix' own by default (whole numbers count as float64), float64 for a Structure.
        A real matrix may be asked for as complex, though not on a GPU.
    device : str, optional
        ``"cpu"``, ``"cuda"`` or ``"cuda:N"``; by default the GPU of `profile` if it is one's, else the CPU.
        A forecast needs neither the GPU nor a library for it.
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
    profile = profile or own_profile(A, threads=threads, dtype=dtype, device=_named(device))
    machine = _asked(profile, device)
    setting = _setting(A, machine, threads, dtype)
    start = perf_counter()
    found = structure(A)
    fitted = _fitted(profile, setting, model or DEFAULT_MODEL)
    choice = whole_matrix(found, setting, fitted.kernels, machine.device)
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
    device: str | None = None,
    model: str | None = None,
) -> Plan:
    """Find the best way of doing `iterations` products with a matrix, conversion paid.

    Parameters
    ----------
    A : sparse matrix
    profile, threads, dtype, device, model
        As in `predict`; a `device` of several, such as ``"cpu,cuda"``, is the best that `place` finds.
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
    if device is not None and "," in device:
        profiles = () if profile is None else (profile,)
        places = place(
            matrix, device, profiles, iterations=iterations, threads=threads, dtype=dtype, model=model
        )
        return places.best.plan
    profile = profile or own_profile(matrix, threads=threads, dtype=dtype, device=_named(device))
    machine = _asked(profile, device)
    setting = _setting(matrix, machine, threads, dtype)
    strip = strip_rows(machine, setting.device, setting.threads)
    found = structure_of(matrix)
    if machine.device:
        refuse_beyond_device("csr", found, setting, machine.device)
    statistics = strip_statistics(matrix.indptr, found, strip)
    return make_plan(statistics, _fitted(profile, setting, model or DEFAULT_MODEL), setting, iterations)


def place(
    A: Any,
    devices: str,
    profiles: Sequence[Profile] = (),
    *,
    iterations: int = 1000,
    threads: int | None = None,
    dtype: str | None = None,
    model: str | None = None,
) -> Placements:
    """Find out where a number of products is best done, with all that must travel counted.

    Parameters
    ----------
    A : sparse matrix
    devices : str
        Such as ``"cpu,cuda"``: each as in `predict`.
    profiles : sequence of Profile
        Of the machines asked about; a device that none of them is of is this machine's own.
    iterations, dtype, model
        As in `plan`.
    threads : int, optional
        Of the CPU.

    Raises
    ------
    InputError, ProfileError
        As `plan`, and if a GPU's profile has no measured transfers.
    """
    matrix = _as_csr(A)
    given = {kind(profile.machine): profile for profile in profiles}
    unmet_devices(matrix, devices, profiles, threads=threads, dtype=dtype)
    found = []
    for name, its_kind in parse_devices(devices).items():
        count = threads if its_kind == "cpu" else None
        chosen = given.get(its_kind) or own_profile(matrix, threads=count, dtype=dtype, device=name)
        made = plan(
            matrix, chosen, iterations=iterations, threads=count, dtype=dtype, device=name, model=model
        )
        found.append(Placement(chosen.name, made, _vectors_s(chosen, matrix, made)))
    return compare(found)


def unmet_devices(
    A: Any,
    devices: str,
    profiles: Sequence[Profile] = (),
    *,
    threads: int | None = None,
    dtype: str | None = None,
) -> list[str]:
    """Return those of several devices that no profile is of, once nothing but meeting them can fail.

    Parameters
    ----------
    A, devices, profiles, threads, dtype
        As in `place`.

    Raises
    ------
    InputError, ProfileError, DeviceError
        If a device is not there, cannot do such a product, or its profile has no Records for it: known
        before another one is calibrated for.
    """
    given = {kind(profile.machine): profile for profile in profiles}
    unmet = []
    for name, its_kind in parse_devices(devices).items():
        machine = given[its_kind].machine if its_kind in given else machine_of(name)
        setting = _setting(A, machine, threads if its_kind == "cpu" else None, dtype)
        if its_kind in given:
            _records_for(given[its_kind], setting)
        else:
            unmet.append(name)
    return unmet


def _vectors_s(profile: Profile, matrix: csr_array[Any], made: Plan) -> float:
    """Return the forecast seconds to bring x to the device of a plan and y back."""
    candidate = made.baseline.candidate
    if candidate.device == "cpu":
        return 0.0
    rows, cols = (size * np.dtype(candidate.dtype).itemsize for size in matrix.shape)
    return transfer_s(profile, cols, "to device") + transfer_s(profile, rows, "from device")


def compile(
    A: Any,
    plan: Plan | None = None,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str | None = None,
) -> BlockOperator:
    """Build a matrix as a plan says; the result is a SciPy LinearOperator.

    Parameters
    ----------
    A : sparse matrix
        The matrix that was planned for.
    plan : Plan, optional
        Made by `plan`; without one, the matrix is planned for on this machine.
    threads, dtype, device
        For planning, as in `plan`.

    Returns
    -------
    BlockOperator
        On a GPU a DeviceOperator: it takes vectors that lie there as they are, and queues all row blocks
        without waiting between them.

    Raises
    ------
    InputError
        If the plan is for other rows, for more threads than the machine has, or for others than asked for.
    DeviceError
        If the device of the plan is not there.
    """
    matrix = _as_csr(A)
    made = plan or _plan(matrix, threads=threads, dtype=dtype, device=device)
    first = made.baseline.candidate
    if first.device == "cpu":
        detect().checked_threads(first.threads)
    for asked, planned in ((threads, first.threads), (dtype, first.dtype)):
        if asked is not None and asked != planned:
            raise InputError(
                f"{asked} beside a plan for {planned}: expected the same; plan it so, or leave it out"
            )
    planned_rows = sum(block.last_row + 1 - block.first_row for block in made.blocks)
    if planned_rows != matrix.shape[0]:
        raise InputError(
            f"plan for {planned_rows} rows: expected {matrix.shape[0]}, the rows of the matrix; plan it anew"
        )
    _select(device, made)
    ready = prepared(matrix, first.dtype, first.index_bits)
    bound = [bind(_rows(ready, block.first_row, block.last_row), block.candidate) for block in made.blocks]
    ends = [(block.first_row, block.last_row + 1) for block in made.blocks]
    if first.device == "cuda":
        from sparsecast.kernels.cuda.operator import DeviceOperator  # asks for a device's libraries

        products: list[Any] = [(*rows, each.product) for rows, each in zip(ends, bound, strict=True)]
        return DeviceOperator(matrix.shape, np.dtype(first.dtype), products)
    blocks = [RowProduct(*rows, each.product, each.several) for rows, each in zip(ends, bound, strict=True)]
    return BlockOperator(matrix.shape, np.dtype(first.dtype), blocks)


def _select(device: str | None, made: Plan) -> None:
    """Compute on a plan's device from now on, the one of its kind that `device` names; without it stay."""
    if device is None:
        return
    names = [name for name, its_kind in parse_devices(device).items() if its_kind == made.device]
    if not names:
        raise InputError(
            f"{device} beside a plan for {made.device}: expected the same; plan it so, or leave it out"
        )
    machine_of(names[0])


# `compile` has a parameter of the same name.
_plan = plan


def check(A: Any, made: Plan, effort: Effort = DEFAULT_EFFORT, *, device: str | None = None) -> PlanCheck:
    """Build a plan here and measure its operator in turn with plain CSR and SciPy.

    Parameters
    ----------
    A, made
        As in `compile`.
    effort : Effort
    device : str, optional
        As it was planned for; without it, a plan for a GPU is measured on the current one.

    Raises
    ------
    InputError
        If the plan is for no such device.
    DeviceError
        If the device is not there.
    WrongResultError
        If the operator is wrong.
    """
    matrix = _as_csr(A)
    _select(device, made)
    return check_plan(matrix, made, lambda: compile(matrix, made), effort, bench_of(made.device))


def measure(
    A: Any,
    table: Prediction | Sequence[Forecast | Candidate] | None = None,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str = "cpu",
    name: str = "matrix",
    reads_energy: bool = True,
    on_sample: Callable[[], None] = lambda: None,
    on_left_out: LeftOut = lambda candidate, why: None,
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
    reads_energy : bool
        Whether energy is read where something counts it: on a GPU, for two seconds a candidate.
    on_sample : callable
        Called after every sample, and after every reading of energy.
    on_left_out : callable
        Called with each Candidate that turns out not to fit the matrix or the memory, and why.

    Returns
    -------
    list of Record
        Fastest first.

    Raises
    ------
    InputError
        If the table was forecast for another machine, or for more threads than this one has, or if every
        Candidate had to be left out.
    WrongResultError
        If a kernel is wrong.
    """
    matrix = _as_csr(A)
    found = table.structure if isinstance(table, Prediction) else structure_of(matrix)
    profile_name = table.profile if isinstance(table, Prediction) else None
    if table is None:
        values = matrix.dtype.name if dtype is None else dtype
        table = choice(found, threads=threads, dtype=values, device=device).candidates
    candidates = [item.candidate if isinstance(item, Forecast) else item for item in table]
    kinds = {candidate.device for candidate in candidates}
    machine = machine_of(device if parse_device(device)[0] in kinds else max(kinds, default="cpu"))
    if profile_name is not None:
        _require_own(profile_name, machine)
    for candidate in candidates:
        if candidate.device == "cpu":
            machine.checked_threads(candidate.threads)
    subject = Subject(matrix, found, name, "user")
    bench = bench_of(kind(machine), reads_energy)
    refused: list[InputError] = []

    def leave_out(candidate: Candidate, why: InputError) -> None:
        refused.append(why)
        on_left_out(candidate, why)

    records = measure_candidates(subject, candidates, DEFAULT_EFFORT, on_sample, bench, leave_out)
    if refused and not records:
        raise refused[0]
    return sorted(records, key=lambda record: record.time_s)


def measuring_steps(candidates: Sequence[Candidate]) -> int:
    """Return how often `measure` calls `on_sample` for Candidates, on a GPU if it counts its energy."""
    return sum(DEFAULT_EFFORT.samples + (candidate.device == "cuda") for candidate in candidates)


def choice(A: Any, *, threads: int | None = None, dtype: str | None = None, device: str = "cpu") -> Choice:
    """Return the ways of doing the product that are open to a matrix here, and why others are not.

    Parameters
    ----------
    A, threads, dtype, device
        As in `predict`.
    """
    machine = machine_of(device)
    return whole_matrix(structure(A), _setting(A, machine, threads, dtype), device=machine.device)


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
    machine = machine_of(device)
    profile = find_profile(wanted) if wanted else _met_profile(machine)
    _require_own(profile.name, machine)
    setting = _setting(A, machine, threads, dtype)
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
    machine = machine_of(device)
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
    # A model may know other kernels than those that the rules choose.
    open_here = choice(found.matrix, **setting).candidates
    forecast = (item.candidate for prediction in predictions for item in prediction)
    table = list(dict.fromkeys((*open_here, *forecast)))
    records = measure(found.matrix, table, **setting, name=found.name, reads_energy=False)
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


def kind(machine: Machine) -> str:
    """Return what a machine with this description computes on: ``"cuda"`` or ``"cpu"``."""
    return "cuda" if machine.device else "cpu"


def _asked(profile: Profile, device: str | None) -> Machine:
    """Return the machine of a profile as `device` asks for it: its GPU, or its processor."""
    if device is None or parse_device(device)[0] == kind(profile.machine):
        return profile.machine
    raise ProfileError(
        f"device '{device}' of profile {profile.name}: expected {kind(profile.machine)}, which it is of; "
        f"name that, or another profile"
    )


def _named(device: str | None) -> str:
    """Return the device that a question without a profile is about."""
    return "cpu" if device is None else device


def _place(machine: Machine) -> Place:
    if machine.device is None:
        return Place()
    from sparsecast.benchmark.device import device_place  # asks for a device's libraries

    return device_place(machine.device)


def _threads(machine: Machine, threads: int | None) -> int:
    """Return the threads that share the rows: of a GPU all take part, whatever a matrix looks like."""
    if machine.device is None:
        return machine.checked_threads(threads)
    if threads not in (None, 1):
        raise InputError(
            f"threads {threads} on a GPU: expected none, for all of its threads take part; leave them out"
        )
    return 1


def _setting(A: Any, machine: Machine, threads: int | None, dtype: str | None) -> Setting:
    device, threads = kind(machine), _threads(machine, threads)
    if isinstance(A, Structure):
        index_bits = 32 if max(A.nnz, A.rows, A.cols) < 2**31 else 64
        return Setting(device, "float64" if dtype is None else dtype, index_bits, threads)
    matrix = _as_csr(A)
    # SciPy counts more than 2**31 - 1 entries with 64 bits, the columns may still have 32.
    index_bytes = max(matrix.indptr.itemsize, matrix.indices.itemsize)
    setting = Setting(device, matrix.dtype.name if dtype is None else dtype, 8 * index_bytes, threads)
    require_imaginary(matrix.dtype, setting.dtype, f"a {matrix.dtype} matrix")
    return setting


def _met_profile(machine: Machine) -> Profile:
    """Return this machine's profile, an empty one where there is none."""
    here = user_path(machine.name)
    return find_profile(here=machine) if here.exists() else Profile(machine, ())


def _require_own(profile_name: str, machine: Machine) -> None:
    if profile_name != machine.name:
        raise InputError(
            f"forecasts for {profile_name}: expected this machine, {machine.name}, to measure them on; "
            f"use its own profile"
        )


def _answers(profile: Profile, setting: Setting) -> bool:
    return bool(_model_records(profile, setting))


def _model_records(profile: Profile, setting: Setting) -> list[Record]:
    """Return a setting's Records but those of the five-minute benchmark, which no model is fitted to."""
    own = profile.select(device=setting.device, dtype=setting.dtype, threads=setting.threads)
    return [record for record in own if record.suite not in (five_minutes.SUITE, five_minutes.AGAIN)]


def _records_for(profile: Profile, setting: Setting) -> list[Record]:
    records = _model_records(profile, setting)
    if not records:
        threads = f" {setting.threads} threads" if setting.device == "cpu" else ""
        raise ProfileError(
            f"profile {profile.name} has no records for {setting.device} {setting.dtype}{threads}: "
            f"it has {contents(profile)}; calibrate for it, or ask for what it has"
        )
    return records


def _fitted(profile: Profile, setting: Setting, name: str) -> Model:
    return MODELS.get(name)().fit(_records_for(profile, setting), profile.machine)


def contents(profile: Profile) -> str:
    """Return in words what a profile has Records for."""
    counts: dict[str, int] = {}
    for record in profile.records:
        candidate = record.candidate
        plural = "s" if candidate.threads > 1 else ""
        threads = f" {candidate.threads} thread{plural}" if candidate.device == "cpu" else ""
        key = f"{candidate.device} {candidate.dtype}{threads}"
        counts[key] = counts.get(key, 0) + 1
    return ", ".join(f"{key} ({count} records)" for key, count in counts.items()) or "no records"
