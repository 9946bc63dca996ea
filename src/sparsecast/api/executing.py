"""Doing products and measuring them: operators, checks, measurements, evaluations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sparsecast.api.forecasting import choice, predict
from sparsecast.api.forecasting import plan as plan_of  # `compile` has a parameter of that name
from sparsecast.api.inputs import NamedMatrix, as_csr, read_matrix
from sparsecast.api.resolving import machine_of, require_own
from sparsecast.benchmark.evaluation import Evaluation, EvaluationRow, pair, scores
from sparsecast.benchmark.measurement import LeftOut, Subject, measure_candidates
from sparsecast.benchmark.plan_check import PlanCheck, check_plan
from sparsecast.devices import DEVICES
from sparsecast.devices.binding import bind, prepared, row_slice
from sparsecast.devices.naming import parse_device, parse_devices
from sparsecast.errors import InputError
from sparsecast.machines.machine import PROCESSOR, Machine, detect
from sparsecast.machines.profile import Profile
from sparsecast.matrices.analysis import structure as structure_of
from sparsecast.measuring.timing import DEFAULT_EFFORT, Effort
from sparsecast.models import MODELS
from sparsecast.operators import BlockOperator
from sparsecast.planning.plan import Plan
from sparsecast.planning.prediction import Prediction
from sparsecast.records import Candidate, Forecast, Record


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
    matrix = as_csr(A)
    made = plan or plan_of(matrix, threads=threads, dtype=dtype, device=device)
    first = made.baseline.candidate
    computing = DEVICES.get(first.device)
    computing.threads(detect(), first.threads)
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
    blocks = [
        (
            block.first_row,
            block.last_row + 1,
            bind(_rows(ready, block.first_row, block.last_row), block.candidate),
        )
        for block in made.blocks
    ]
    return computing.operator(matrix.shape, np.dtype(first.dtype), blocks)


def _select(device: str | None, made: Plan) -> None:
    """Compute on a plan's device from now on, the one of its kind that `device` names; without it stay."""
    if device is None:
        return
    names = [name for name, kind in parse_devices(device).items() if kind == made.device]
    if not names:
        raise InputError(
            f"{device} beside a plan for {made.device}: expected the same; plan it so, or leave it out"
        )
    machine_of(names[0])


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
    matrix = as_csr(A)
    _select(device, made)
    return check_plan(matrix, made, lambda: compile(matrix, made), effort, DEVICES.get(made.device))


def measure(
    A: Any,
    table: Prediction | Sequence[Forecast | Candidate] | None = None,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str | None = None,
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
    threads, dtype
        For choosing what to measure where `table` is None.
    device : str, optional
        Where is measured: by default on the processor, or, where `table` is of another device, on the current
        one of its kind.
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
    matrix = as_csr(A)
    found = table.structure if isinstance(table, Prediction) else structure_of(matrix)
    profile_name = table.profile if isinstance(table, Prediction) else None
    if table is None:
        values = matrix.dtype.name if dtype is None else dtype
        table = choice(found, threads=threads, dtype=values, device=device or PROCESSOR).candidates
    candidates = [item.candidate if isinstance(item, Forecast) else item for item in table]
    machine = _measured_machine(device, candidates)
    computing = DEVICES.get(machine.device)
    if profile_name is not None:
        require_own(profile_name, machine)
    for candidate in candidates:
        computing.threads(machine, candidate.threads)
    subject = Subject(matrix, found, name, "user")
    meter = computing.meter() if reads_energy else None
    refused: list[InputError] = []

    def leave_out(candidate: Candidate, why: InputError) -> None:
        refused.append(why)
        on_left_out(candidate, why)

    records = measure_candidates(
        subject, candidates, DEFAULT_EFFORT, on_sample, computing, leave_out, meter=meter
    )
    if refused and not records:
        raise refused[0]
    return sorted(records, key=lambda record: record.time_s)


def _measured_machine(device: str | None, candidates: Sequence[Candidate]) -> Machine:
    """Return this machine with the device to measure on: the one that is named, if candidates are of it."""
    kinds = {candidate.device for candidate in candidates}
    if device is not None and (not kinds or parse_device(device)[0] in kinds):
        return machine_of(device)
    return DEVICES.get(max(kinds, default=PROCESSOR)).describe()


def measuring_steps(candidates: Sequence[Candidate]) -> int:
    """Return how often `measure` calls `on_sample` for Candidates, readings of energy included."""
    return sum(
        DEFAULT_EFFORT.samples + DEVICES.get(candidate.device).may_read_energy for candidate in candidates
    )


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
        require_own(profile.name, machine)
    rows: list[EvaluationRow] = []
    refused: dict[str, str] = {}
    for number, item in enumerate(matrices, 1):
        name = str(item) if isinstance(item, str | Path) else f"matrix {number}"
        try:
            found = read_matrix(item) if isinstance(item, str | Path) else NamedMatrix(name, as_csr(item), ())
        except InputError as error:
            refused[name] = str(error)
        else:
            rows += _evaluated(found, profile, threads=threads, dtype=dtype, device=device)
        on_matrix()
    return Evaluation(machine.name, tuple(rows), scores(rows), refused)


def _evaluated(found: NamedMatrix, profile: Profile | None, **target: Any) -> list[EvaluationRow]:
    predictions = [predict(found.matrix, profile, **target, model=model) for model in MODELS.names()]
    # A model may know other kernels than those that the rules choose.
    open_here = choice(found.matrix, **target).candidates
    forecast = (item.candidate for prediction in predictions for item in prediction)
    table = list(dict.fromkeys((*open_here, *forecast)))
    records = measure(found.matrix, table, **target, name=found.name, reads_energy=False)
    rows = [row for p in predictions for row in pair(found.name, p.model, p, records)]
    return sorted(rows, key=lambda row: row.record.time_s)


def _rows(A: csr_array[Any], first: int, last: int) -> csr_array[Any]:
    return A if (first, last) == (0, A.shape[0] - 1) else row_slice(A, first, last)
