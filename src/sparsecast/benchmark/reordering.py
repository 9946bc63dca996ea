"""Whether products are faster with rows and columns in another order, measured beside the plan so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import perf_counter

from sparsecast.devices import DEVICES
from sparsecast.devices.product_timer import ProductTimer
from sparsecast.devices.reordered import in_first_order
from sparsecast.errors import InputError
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import Machine
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.timing import Effort
from sparsecast.operators.block_operator import Product
from sparsecast.planning.plan import LEAST_GAIN, break_even
from sparsecast.planning.trials import LOST_SHARE
from sparsecast.records import Candidate
from sparsecast.results.plan import Plan
from sparsecast.system.texts import time

#: Products of CSR that it takes to find the order and the matrix in it: at most 675 on 28 real matrices, 110
#: and 195 in the median with one and two threads (`python benchmarks/run.py reordering`).
_ORDERING = 700

#: With a Candidate, the key of what is built in another order.
REORDERED = "reordered"

_EFFORT = Effort(samples=20, most_s=0.05, wait_s=0.05)


def may_pay(made: Plan, structure: Structure, machine: Machine) -> bool:
    """Tell whether another order is worth a trial, for a plan of one block that was tried.

    Columns that one row reaches must lie farther apart than the nearest cache is large, and what the order
    costs, with the trials before, must be within what may be lost.
    """
    candidate, trials = made.baseline.candidate, made.trials
    if trials is None or trials.share is None or candidate.vectors > 1 or structure.rows != structure.cols:
        return False
    if not machine.caches or structure.lacks(["bands"]) or not DEVICES.get(candidate.device).shares_host:
        return False
    reach_bytes = structure.bands.half_bandwidth * candidate.value_bytes
    share = trials.share + _ORDERING / made.products
    return share <= LOST_SHARE and reach_bytes > machine.caches[0].bytes


def in_best_order(problem: Problem, made: Plan, planned: Callable[[Problem], Plan]) -> Plan:
    """Return the plan of a matrix in the order of reverse Cuthill-McKee if that is faster, else the one made.

    Both products are timed in turn, the one in the other order with copies of x and y. What is faster stays
    with the problem, as built.
    """
    start, candidate = perf_counter(), made.blocks[0].candidate
    try:
        other = problem.in_other_order()
        ordering_s = perf_counter() - start
        other.spent_s = ordering_s + (made.trials.used_s if made.trials else 0.0)
        there = planned(other)
        block = there.blocks[0]
        if block.candidate not in other.built or other.order is None:
            return _with_note(made, start, "In the order of reverse Cuthill-McKee nothing was worth a trial.")
        after = in_first_order(other.built[block.candidate], other.order, block.candidate)
        before_s, after_s = _times_s(problem, candidate, problem.built[candidate].product, after.product)
    except (InputError, MemoryError) as error:
        return _with_note(made, start, f"The order of reverse Cuthill-McKee was not tried: {error}.")
    is_faster = after_s * (1 + LEAST_GAIN) < before_s
    note = (
        f"In the order of reverse Cuthill-McKee, with copies of x and y, a product took {time(after_s)} "
        f"instead of {time(before_s)}: {'kept' if is_faster else 'dropped'}."
    )
    if not is_faster:
        return _with_note(made, start, note)
    del problem.built[candidate]
    problem.built[block.candidate, REORDERED] = after
    convert_s, ratio = there.convert_s + ordering_s, after_s / there.time_s
    return replace(
        _with_note(made, start, note, before_s - after_s),
        blocks=(replace(block, time_s=after_s, convert_s=convert_s),),
        order=other.order,
        time_s=after_s,
        low_s=None if there.low_s is None else there.low_s * ratio,
        high_s=None if there.high_s is None else there.high_s * ratio,
        convert_s=convert_s,
        break_even_products=break_even(convert_s - made.baseline.convert_s, made.baseline.time_s - after_s),
        energy_j=None,
        energy_low_j=None,
        energy_high_j=None,
    )


def _with_note(made: Plan, start: float, note: str, gain_s: float = 0.0) -> Plan:
    """Return a plan with a note, the seconds since `start` and a gain among those of its trials."""
    trials, used_s = made.trials, perf_counter() - start
    if trials is not None and trials.share is not None:
        share = trials.share * (1 + used_s / trials.used_s)
        trials = replace(trials, used_s=trials.used_s + used_s, gain_s=trials.gain_s + gain_s, share=share)
    return replace(made, notes=(*made.notes, note), trials=trials)


def _times_s(problem: Problem, like: Candidate, *products: Product) -> list[float]:
    """Return the seconds of products on the host, sampled in turn."""
    timer = ProductTimer(problem.matrix, like, DEVICES.get(like.device))
    calls = {number: partial(product, timer.x, timer.out) for number, product in enumerate(products)}
    for call in calls.values():
        call()  # untimed
    return [timing.time_s for timing in timer.time(calls, _EFFORT).values()]
