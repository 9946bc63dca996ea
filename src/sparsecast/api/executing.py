"""Operators, checks of plans and measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sparsecast.api.forecast_basis import ForecastBasis
from sparsecast.api.sessions import session
from sparsecast.benchmark.journal import USER_SUITE, keep
from sparsecast.benchmark.measurement import Instruments, check_plan, measure_candidates
from sparsecast.benchmark.trials import REORDERED
from sparsecast.devices import DEVICES, machine_of, parse_device, threads_of
from sparsecast.devices.binding import Bound, as_compiled, bind, in_first_order, prepared, row_slice
from sparsecast.devices.target import Target, memory_bytes, whole_matrix
from sparsecast.errors import InputError, MatrixSizeError, MeterError
from sparsecast.features.analysis import structure as structure_of
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import PROCESSOR, detect
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.reordering import reordered
from sparsecast.measuring.condition_monitor import ConditionMonitor
from sparsecast.measuring.core_speed import Frequencies
from sparsecast.measuring.energy import CommandMeter as CommandMeter
from sparsecast.measuring.energy import Meter as Meter
from sparsecast.measuring.energy import idle_power_w, is_modelled
from sparsecast.measuring.meters import METERS
from sparsecast.measuring.timing import DEFAULT_EFFORT, Effort
from sparsecast.operators.block_operator import BlockOperator, RowProduct, Transposed
from sparsecast.planning.adapting import Adapting, AdaptingOperator
from sparsecast.planning.trials import LOADER
from sparsecast.records import Candidate, Forecast, Record
from sparsecast.results.columns import stored_as
from sparsecast.results.plan import Plan, PlanCheck
from sparsecast.system.memory import free_bytes
from sparsecast.system.texts import size


def operator_of(problem: Problem, plan: Plan, transpose: bool | Plan = False) -> BlockOperator:
    """Return the operator of a plan, with its transpose built if it is wanted now."""
    first = plan.baseline.candidate
    planned_transpose = None if isinstance(transpose, bool) else transpose
    shape, kind = problem.matrix.shape, DEVICES.get(first.device).operator_type()
    operator = kind(
        shape, np.dtype(first.dtype), *_built_with_transpose(plan, planned_transpose, shape, problem)
    )
    if kind is BlockOperator:
        operator.rebuild = partial(_built_with_transpose, plan, planned_transpose, shape)
    if transpose:
        operator.transpose()
    return operator


def in_csr(matrix: csr_array[Any], threads: int | None, *, all_alike: bool = False) -> BlockOperator:
    """Return a matrix in CSR on this processor, without values if they are all alike: nothing is forecast."""
    machine = machine_of(PROCESSOR)
    target = Target.of(matrix, machine, threads, None)

    def built(matrix: csr_array[Any]) -> list[RowProduct]:
        rows = RowBlocks.of(structure_of(matrix, groups=["row_lengths"]))
        csr = target.candidate("csr", rows, machine, narrow={"values": "one"} if all_alike else {})
        LOADER.load(DEVICES.get(PROCESSOR), csr)
        bound = bind(prepared(matrix, csr.dtype, csr.index_bits), csr)
        return [RowProduct(0, matrix.shape[0], bound.product, bound.multivector)]

    blocks = built(matrix)
    transposed = partial(_transposed, Problem.of(matrix), blocks, built)
    return BlockOperator(matrix.shape, matrix.dtype, blocks, transposed)


def adapting(
    basis: ForecastBasis, A: Problem, check: Callable[[Bound, str], object] = lambda bound, name: None
) -> AdaptingOperator:
    """Return an operator that adapts, by the forecasts of a model; each way is checked when it is built."""
    _ = basis.correction  # learned before the first product
    blocks = [_adapting_block(basis, A, check)]

    def transposed() -> Transposed:
        return _transposed(A, blocks, lambda matrix: [_adapting_block(basis, Problem.of(matrix), check)])

    return AdaptingOperator(A.matrix.shape, np.dtype(basis.target.dtype), blocks, transposed)


def _built_with_transpose(
    made: Plan, planned_transpose: Plan | None, shape: tuple[int, int], A: Any
) -> tuple[list[RowProduct], Callable[[], Transposed]]:
    """Return the row blocks of a matrix, and what builds those of its transpose."""
    problem = Problem.of(A)
    if problem.matrix.shape != shape:
        raise InputError(f"a matrix of shape {problem.matrix.shape}: expected {shape}; compile it anew")
    blocks = _built(problem, made)
    built = partial(_built_transpose, made=made, planned=planned_transpose)
    return blocks, partial(_transposed, problem, blocks, built)


def _built(problem: Problem, made: Plan) -> list[RowProduct]:
    """Return the row blocks of a matrix, built and bound as a plan says; what trials built is taken."""
    matrix = problem.matrix
    first = made.baseline.candidate
    DEVICES.get(first.device).threads(detect(), first.threads)
    planned_rows = sum(block.last_row + 1 - block.first_row for block in made.blocks)
    # Another order is that of the columns, too.
    planned = (planned_rows, matrix.shape[1] if made.order is None else planned_rows)
    if planned != matrix.shape:
        raise InputError(f"plan for {planned} rows and columns: expected {matrix.shape}; plan it again")
    if not problem.built and (needed := made.building_bytes) > (free := free_bytes()):
        structure = problem.sampled_structure
        target = Target(first.device, first.dtype, first.index_bits, first.threads)
        candidates = whole_matrix(structure, target, detect()).candidates
        sizes = {stored_as(each): memory_bytes(each, RowBlocks.of(structure))[1] for each in candidates}
        fitting = sorted((most, name) for name, most in sizes.items() if most is not None and most <= free)
        listed = ", ".join(f"{name} ({size(most)})" for most, name in fitting)
        raise MatrixSizeError(
            f"a plan that takes {size(needed)} while it is built: expected at most the {size(free)} of free "
            f"memory; use what fits, {listed}"
        )
    ready = prepared(matrix, first.dtype, first.index_bits)
    blocks = []
    for block in made.blocks:
        is_whole = block.last_row + 1 - block.first_row == planned_rows
        built = block.candidate if made.order is None else (block.candidate, REORDERED)
        bound = problem.built.pop(built, None) if is_whole else None
        if bound is None and made.order is not None:
            bound = in_first_order(
                bind(reordered(ready, made.order), block.candidate), made.order, block.candidate
            )
        elif bound is None:
            rows = ready if is_whole else row_slice(ready, block.first_row, block.last_row)
            bound = bind(rows, block.candidate)
        blocks.append(RowProduct(block.first_row, block.last_row + 1, bound.product, bound.multivector))
    problem.built.clear()
    return blocks


def _transposed(
    problem: Problem, blocks: Sequence[Any], built: Callable[[csr_array[Any]], Sequence[Any]]
) -> Transposed:
    """Return what does products with the transpose: the blocks of the matrix where they can, else its own."""
    kind = problem.proven(["symmetry"]).symmetry.kind
    if kind in ("symmetric", "hermitian"):
        return Transposed(blocks, conjugated=kind == "hermitian")
    return Transposed(built(csr_array(problem.matrix.T)))


def _built_transpose(transpose: csr_array[Any], made: Plan, planned: Plan | None) -> list[RowProduct]:
    """Return the row blocks of the transpose of a matrix with a plan, by one of its own."""
    first, problem = made.baseline.candidate, Problem.of(transpose)
    if planned is None:
        threads = threads_of(first.device, first.threads)
        values = "float32" if made.rounding else None
        alike = session(threads=threads, dtype=first.dtype, device=first.device, values=values, anyway=True)
        planned = alike.plan(problem, products=made.products)
    own = planned.baseline.candidate
    if (own.device, own.dtype) != (first.device, first.dtype):
        raise InputError(
            f"a plan for {own.device} {own.dtype} of the transpose: expected {first.device} {first.dtype}, "
            f"as of the matrix; plan it so"
        )
    return _built(problem, planned)


def load(problem: Problem, made: Plan) -> None:
    """Compile the kernels of a plan, or load them: no part of a conversion."""
    for block in made.blocks:
        LOADER.load(DEVICES.get(made.device), as_compiled(block.candidate, problem.structure))


def select(device: str | None, made: Plan) -> None:
    """Compute on the device that `device` names from now on; without a name, nothing changes."""
    if device is None:
        return
    if parse_device(device)[0] != made.device:
        raise InputError(
            f"{device} with a plan for {made.device}: expected the same; plan it so, or leave it out"
        )
    machine_of(device)


def check(A: Any, made: Plan, effort: Effort = DEFAULT_EFFORT, *, device: str | None = None) -> PlanCheck:
    """Build a plan here and measure its operator in turn with plain CSR and SciPy.

    Without `device`, a plan for a GPU is measured on the current one. An InputError or a DeviceError says
    that the plan is for no such device, or that it cannot be found, a WrongResultError that the operator is
    wrong.
    """
    problem = Problem.of(A)
    select(device, made)
    load(problem, made)
    return check_plan(
        problem.matrix, made, lambda: operator_of(problem, made), effort, DEVICES.get(made.device)
    )


def measure_here(
    problem: Problem,
    candidates: Sequence[Candidate],
    *,
    keeps: bool,
    suite: str = USER_SUITE,
    reads_energy: bool = True,
    meter: Meter | None = None,
    on_sample: Callable[[], None] = lambda: None,
) -> tuple[list[Record], dict[Candidate, InputError]]:
    """Measure Candidates on the current device of their kind, as `measure`; energy where something counts it.

    Without `reads_energy` none is read, unless a `meter` is given. Records with modelled joules are not kept.
    `on_sample` is called after every sample and reading of energy.

    Return what was measured, fastest first, and why some turned out not to fit the matrix or the memory.
    """
    computing = DEVICES.get(max((candidate.device for candidate in candidates), default=PROCESSOR))
    machine = computing.describe()
    for candidate in candidates:
        computing.threads(machine, candidate.threads)
    refused: dict[Candidate, InputError] = {}
    threads = max((candidate.threads for candidate in candidates), default=1)
    if meter is None and reads_energy:
        meter = computing.meter()
    monitor = ConditionMonitor(computing.references(machine, threads))
    records = measure_candidates(
        problem,
        suite,
        candidates,
        DEFAULT_EFFORT,
        Instruments(computing, meter, monitor, None if meter is None else idle_power_w(meter)),
        on_sample,
        refused.__setitem__,
    )
    if refused and not records:
        raise next(iter(refused.values()))
    if keeps and not is_modelled(meter):
        keep(machine, problem, records)
    return sorted(records, key=lambda record: record.time_s), refused


def held_frequency(hz: float | None) -> AbstractContextManager[None]:
    """Hold this processor's cores at a frequency; None leaves it to the machine.

    On entering, a DeviceError says that this is not permitted or cannot be.
    """
    return nullcontext() if hz is None else Frequencies().at(hz)


def named_meter(name: str) -> Meter:
    """Return the meter of the processor that has this name in METERS.

    An UnknownNameError says that there is none, a MeterError that this machine lacks or forbids it.
    """
    kind = METERS.get(name)
    if not kind.is_present():
        raise MeterError(f"meter '{name}': expected its counters on this machine, found none; name another")
    return kind()


def unmetered(device: str) -> str:
    """Return why a meter that the device has cannot be read, with the remedy; empty otherwise."""
    return DEVICES.get(parse_device(device)[0]).unmetered()


def measuring_steps(candidates: Sequence[Candidate]) -> int:
    """Return how often `measure` calls `on_sample`, if each device that may count energy does so."""
    readings = sum(DEVICES.get(candidate.device).may_read_energy for candidate in candidates)
    return DEFAULT_EFFORT.samples * len(candidates) + readings


def _adapting_block(
    basis: ForecastBasis, problem: Problem, check: Callable[[Bound, str], object]
) -> Adapting:
    """Return all rows of a matrix, done in CSR at first, with forecasts of what may be tried."""
    target = basis.target
    A, structure = prepared(problem.matrix, target.dtype, target.index_bits), basis.structure(problem)
    forecasts, _ = basis.forecasts(structure)

    def options(csr_s: float) -> Sequence[Forecast]:
        corrected = basis.correction.forecasts(forecasts, csr_s)
        return [forecast for forecast in corrected if forecast.convert_s is not None]

    def build(candidate: Candidate) -> Bound:
        LOADER.load(DEVICES.get(target.device), as_compiled(candidate, structure))
        bound = bind(A, candidate)
        check(bound, stored_as(candidate))
        return bound

    kernels = basis.model.kernels("csr")
    csr = target.candidate("csr", RowBlocks.of(structure), basis.profile.machine, kernels)

    def loading_s(candidate: Candidate) -> float:
        return LOADER.forecast_s(as_compiled(candidate, structure))

    return Adapting(csr, options, build, loading_s, A.shape[0])
