"""Operators, checks of plans, measurements and evaluations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sparsecast.api.calibrating import own_profile
from sparsecast.api.forecasting import choice, threads_of
from sparsecast.api.forecasting import plan as plan_of  # `compile` has a parameter of that name
from sparsecast.api.resolving import (
    asked_machine,
    fitted_model,
    machine_of,
    read_matrix,
    require_own,
    target_of,
    training_for,
)
from sparsecast.benchmark.evaluation import Evaluation, Scoring
from sparsecast.benchmark.journal import keep
from sparsecast.benchmark.measurement import Instruments, LeftOut, measure_candidates
from sparsecast.benchmark.plan_check import PlanCheck, check_plan
from sparsecast.benchmark.replay import replay as replay_records
from sparsecast.devices import DEVICES
from sparsecast.devices.binding import bind, prepared, row_slice
from sparsecast.devices.naming import parse_device, parse_devices
from sparsecast.errors import FeatureError, InputError, ProfileError
from sparsecast.machines.machine import PROCESSOR, Machine, detect
from sparsecast.machines.profile import Profile, find_profile
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.surroundings import Surroundings
from sparsecast.measuring.timing import DEFAULT_EFFORT, Effort
from sparsecast.models import MODELS
from sparsecast.models.model import Model
from sparsecast.operators import BlockOperator, RowProduct, Transposed
from sparsecast.planning.candidates import Target, whole_matrix
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
    transpose: bool | Plan = False,
) -> BlockOperator:
    """Build a matrix as a plan says; the result is a SciPy LinearOperator.

    The transpose of a matrix that equals it costs nothing. That of another one is planned and built like any
    matrix when ``op.T``, ``op.H``, ``op.rmatvec`` or ``op.rmatmat`` is first used; until then the operator
    keeps `A`, which must not change.

    Parameters
    ----------
    A : sparse matrix
    plan : Plan, optional
        Made by `plan`; without one, the matrix is planned for on this machine.
    threads, dtype, device
        As in `plan`.
    transpose : bool or Plan
        Whether to plan and build the transpose now, for as many products; or a plan for it, to build now.
        Without a plan, the transpose is planned by the profile of this machine.

    Returns
    -------
    BlockOperator
        On a GPU a DeviceOperator: it takes vectors on the GPU as they are, and queues all row blocks
        without waiting between them.

    Raises
    ------
    InputError
        If the plan is for other rows, for more threads than the machine has, or for others than asked for.
    DeviceError
        If the device of the plan cannot be found.
    """
    problem = Problem.of(A)
    matrix = problem.matrix
    made = plan or plan_of(problem, threads=threads, dtype=dtype, device=device)
    first = made.baseline.candidate
    for asked, planned in ((threads, first.threads), (dtype, first.dtype)):
        if asked is not None and asked != planned:
            raise InputError(
                f"{asked} with a plan for {planned}: expected the same; plan it so, or leave it out"
            )
    _select(device, made)
    blocks = _built(matrix, made)
    planned_transpose = None if isinstance(transpose, bool) else transpose
    transposed = partial(_transposed, problem, blocks, made, planned_transpose)
    operator = DEVICES.get(first.device).operator_type()(
        matrix.shape, np.dtype(first.dtype), blocks, transposed
    )
    if transpose:
        operator.transpose()
    return operator


def _built(matrix: csr_array[Any], made: Plan) -> list[RowProduct]:
    """Return the row blocks of a matrix, built and bound as a plan says."""
    first = made.baseline.candidate
    DEVICES.get(first.device).threads(detect(), first.threads)
    planned_rows = sum(block.last_row + 1 - block.first_row for block in made.blocks)
    if planned_rows != matrix.shape[0]:
        raise InputError(
            f"plan for {planned_rows} rows: expected {matrix.shape[0]}, the rows of the matrix; plan it again"
        )
    ready = prepared(matrix, first.dtype, first.index_bits)
    blocks = []
    for block in made.blocks:
        is_whole = block.last_row + 1 - block.first_row == planned_rows
        rows = ready if is_whole else row_slice(ready, block.first_row, block.last_row)
        bound = bind(rows, block.candidate)
        blocks.append(RowProduct(block.first_row, block.last_row + 1, bound.product, bound.multivector))
    return blocks


def _transposed(
    problem: Problem, blocks: Sequence[RowProduct], made: Plan, planned: Plan | None
) -> Transposed:
    """Return what does products with the transpose: the blocks of the matrix where they can, else its own."""
    if problem.structure.symmetry.triangle_nnz is not None:
        return Transposed(blocks)
    A = problem.matrix
    transpose = csr_array(A.T)
    if A.dtype.kind == "c" and _are_equal(transpose, A.conjugate()):
        return Transposed(blocks, conjugated=True)
    first = made.baseline.candidate
    if planned is None:
        threads = threads_of(first.device, first.threads)
        asked: dict[str, Any] = {"threads": threads, "dtype": first.dtype, "device": first.device}
        planned = plan_of(transpose, iterations=made.iterations, **asked)
    own = planned.baseline.candidate
    if (own.device, own.dtype) != (first.device, first.dtype):
        raise InputError(
            f"a plan for {own.device} {own.dtype} of the transpose: expected {first.device} {first.dtype}, "
            f"as of the matrix; plan it so"
        )
    return Transposed(_built(transpose, planned))


def _are_equal(A: csr_array[Any], B: csr_array[Any]) -> bool:
    """Tell whether two matrices have the same arrays."""
    return A.shape == B.shape and all(
        np.array_equal(getattr(A, name), getattr(B, name)) for name in ("indptr", "indices", "data")
    )


def _select(device: str | None, made: Plan) -> None:
    """Compute on the device that `device` names from now on; without a name, nothing changes."""
    if device is None:
        return
    names = [name for name, kind in parse_devices(device).items() if kind == made.device]
    if not names:
        raise InputError(
            f"{device} with a plan for {made.device}: expected the same; plan it so, or leave it out"
        )
    machine_of(names[0])


def check(A: Any, made: Plan, effort: Effort = DEFAULT_EFFORT, *, device: str | None = None) -> PlanCheck:
    """Build a plan here and measure its operator in turn with plain CSR and SciPy.

    Without `device`, a plan for a GPU is measured on the current one.

    Raises
    ------
    InputError, DeviceError
        If the plan is for no such device, or the device cannot be found.
    WrongResultError
        If the operator is wrong.
    """
    problem = Problem.of(A)
    _select(device, made)
    return check_plan(problem.matrix, made, lambda: compile(problem, made), effort, DEVICES.get(made.device))


def measure(
    A: Any,
    table: Prediction | Sequence[Forecast | Candidate] | None = None,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str | None = None,
    name: str = "matrix",
    keeps: bool = True,
) -> list[Record]:
    """Measure the product of a matrix here, each result checked against the oracle first.

    Parameters
    ----------
    A : sparse matrix
    table : Prediction, or sequence of Forecast or Candidate, optional
        What to measure; without it, every format that suits the matrix, with `threads` and `dtype`.
    device : str, optional
        By default the processor, or, where `table` is of another device, the current one of its kind.
    name : str
        The matrix' name in the Records.
    keeps : bool
        Whether the Records are kept in the data folder, for models to learn from and to be scored on.

    Returns
    -------
    list of Record
        Fastest first. On a GPU they have energies, which takes two seconds a candidate.

    Raises
    ------
    InputError
        If the table was forecast for another machine, or for more threads than this one has, or if every
        Candidate had to be left out.
    WrongResultError
        If a kernel is wrong.
    """
    problem = Problem.of(A, name)
    if table is None:
        table = choice(problem, threads=threads, dtype=dtype, device=device or PROCESSOR).candidates
    candidates = [item.candidate if isinstance(item, Forecast) else item for item in table]
    kinds = {candidate.device for candidate in candidates}
    if device is not None and (not kinds or parse_device(device)[0] in kinds):
        machine = machine_of(device)
    else:
        machine = DEVICES.get(max(kinds, default=PROCESSOR)).describe()
    if isinstance(table, Prediction):
        require_own(table.profile, machine)
    return measure_here(problem, candidates, machine, keeps=keeps)


def measure_here(
    problem: Problem,
    candidates: Sequence[Candidate],
    machine: Machine,
    *,
    keeps: bool,
    reads_energy: bool = True,
    on_sample: Callable[[], None] = lambda: None,
    on_left_out: LeftOut = lambda candidate, why: None,
) -> list[Record]:
    """Measure Candidates of this machine's device, as `measure`; energy only where something counts it.

    `on_sample` is called after every sample and reading of energy, `on_left_out` with each Candidate that
    turns out not to fit the matrix or the memory, and why.
    """
    computing = DEVICES.get(machine.device)
    for candidate in candidates:
        computing.threads(machine, candidate.threads)
    refused: list[InputError] = []

    def leave_out(candidate: Candidate, why: InputError) -> None:
        refused.append(why)
        on_left_out(candidate, why)

    threads = max((candidate.threads for candidate in candidates), default=1)
    meter = computing.meter() if reads_energy else None
    records = measure_candidates(
        problem,
        "user",
        candidates,
        DEFAULT_EFFORT,
        Instruments(computing, meter, Surroundings(computing.references(machine, threads))),
        on_sample,
        leave_out,
    )
    if refused and not records:
        raise refused[0]
    if keeps:
        keep(machine, problem, records)
    return sorted(records, key=lambda record: record.time_s)


def measuring_steps(candidates: Sequence[Candidate]) -> int:
    """Return how often `measure` calls `on_sample`, if each device that may count energy does so.

    Plain CSR with several threads is checked against one thread, which takes samples of its own.
    """
    readings = sum(DEVICES.get(candidate.device).may_read_energy for candidate in candidates)
    checks = any(each.format == "csr" and each.threads > 1 for each in candidates)
    return DEFAULT_EFFORT.samples * (len(candidates) + checks) + readings


def evaluate(
    matrices: Sequence[Any],
    profile: Profile | None = None,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str = "cpu",
    keeps: bool = True,
    on_matrix: Callable[[], None] = lambda: None,
) -> Evaluation:
    """Forecast a collection of matrices with every model, and measure them on this machine.

    A matrix or a model that refuses is left out with its reason; an interrupted run gives what was done.

    Parameters
    ----------
    matrices : sequence of paths, gallery specifications or sparse matrices
    profile, threads, dtype, device, keeps
        As in `predict` and `measure`.
    on_matrix : callable
        Called after each matrix.
    """
    machine = machine_of(device)
    if profile is not None:
        require_own(profile.name, machine)
    scoring, interrupted = Scoring(), False
    for number, item in enumerate(matrices, 1):
        name = str(item) if isinstance(item, str | Path) else f"matrix {number}"
        try:
            problem = read_matrix(item) if isinstance(item, str | Path) else Problem.of(item, name)
            found = profile or own_profile(problem, threads=threads, dtype=dtype, device=device)
            target = target_of(problem, found.machine, threads, dtype)
            _evaluate(problem, found, target, machine, scoring, keeps)
        except InputError as error:
            scoring.refused[name] = str(error)
        except KeyboardInterrupt:
            interrupted = True
            break
        on_matrix()
    return scoring.evaluation(machine.name, interrupted)


def _evaluate(
    problem: Problem, profile: Profile, target: Target, here: Machine, scoring: Scoring, keeps: bool
) -> None:
    """Measure a matrix in every way that is open to it or forecast, and add what each model says of them."""
    table = dict.fromkeys(whole_matrix(problem.structure, target, here).candidates)
    estimates = []
    for name in MODELS.names():
        try:
            model = fitted_model(profile, target, name)
            # A model may know other kernels than those that the rules choose.
            known = whole_matrix(problem.structure, target, profile.machine, model.kernels).candidates
            estimates.append((model, model.estimates(problem.structure, known)))
        except (FeatureError, ProfileError) as error:
            scoring.refused.setdefault(f"model {name}", str(error))
    table |= dict.fromkeys(each.candidate for _, found in estimates for each in found)
    records = measure_here(problem, list(table), here, keeps=keeps, reads_energy=False)
    scoring.add_records(problem.name, records)
    for model, found in estimates:
        scoring.add_estimates(problem.name, model.name, model.quantity, found)


def replay(
    profile: Profile | None = None,
    *,
    threads: int | None = None,
    dtype: str = "float64",
    device: str | None = None,
    on_fold: Callable[[], None] = lambda: None,
) -> Evaluation:
    """Score every model on stored Records, on matrices that it has not seen, with no hardware.

    Parameters
    ----------
    profile, threads, dtype, device
        As in `predict`; the Records that were kept of its machine join those of the profile.
    on_fold : callable
        Called after each fit: FOLDS times for each model and each of the settings that are compared.

    Raises
    ------
    ProfileError
        If there are too few Records.
    """
    profile = profile or find_profile(here=machine_of(device or PROCESSOR))
    machine = asked_machine(profile, device)
    target = Target(machine.device, dtype, 32, DEVICES.get(machine.device).threads(machine, threads))
    return replay_records(training_for(profile, target), _compared_models(), on_fold=on_fold)


def _compared_models() -> list[Callable[[], Model]]:
    """Return what makes each model that a replay scores: one for each of the settings that are compared."""
    models = [MODELS.get(name) for name in MODELS.names()]
    return [partial(model, **settings) for model in models for settings in model.compared]
