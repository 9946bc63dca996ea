"""Whether products are faster with rows and columns in another order, measured beside the plan so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import perf_counter

from sparsecast.devices import DEVICES
from sparsecast.devices.product_timer import ProductTimer
from sparsecast.devices.reordered import in_first_order
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

#: Products of CSR that it takes to find the order and the matrix in it (at most 332 of 28 real matrices, by
#: `python benchmarks/run.py reordering`), and to try formats there.
_ORDERING = 500

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
    share = trials.share + _ORDERING / made.iterations
    return share <= LOST_SHARE and reach_bytes > machine.caches[0].bytes


def in_best_order(problem: Problem, made: Plan, planned: Callable[[Problem], Plan]) -> Plan:
    """Return the plan of a matrix in the order of reverse Cuthill-McKee if that is faster, else the one made.

    Both products are timed in turn, the one in the other order with copies of x and y. What is faster stays
    with the problem, as built.
    """
    start, candidate, trials = perf_counter(), made.blocks[0].candidate, made.trials
    other = problem.in_other_order()
    ordering_s = perf_counter() - start
    there = planned(other)
    bound = other.built.get(there.blocks[0].candidate)
    if trials is None or trials.share is None or bound is None or other.order is None:
        return made  # nothing was tried there
    after = in_first_order(bound, other.order, there.blocks[0].candidate)
    before_s, after_s = _times_s(problem, candidate, problem.built[candidate].product, after.product)
    is_faster = after_s * (1 + LEAST_GAIN) < before_s
    used_s = perf_counter() - start
    share = trials.share * (1 + used_s / trials.used_s)
    gain_s = trials.gain_s + (before_s - after_s if is_faster else 0.0)
    note = (
        f"In the order of reverse Cuthill-McKee, with copies of x and y, a product took {time(after_s)} "
        f"instead of {time(before_s)}: {'kept' if is_faster else 'dropped'}."
    )
    trials = replace(trials, used_s=trials.used_s + used_s, gain_s=gain_s, share=share)
    made = replace(made, notes=(*made.notes, note), trials=trials)
    if not is_faster:
        return made
    [block], ratio = there.blocks, after_s / there.time_s
    problem.built = {block.candidate: after}
    convert_s = there.convert_s + ordering_s
    return replace(
        made,
        blocks=(replace(block, time_s=after_s, convert_s=convert_s),),
        order=other.order,
        time_s=after_s,
        low_s=None if there.low_s is None else there.low_s * ratio,
        high_s=None if there.high_s is None else there.high_s * ratio,
        convert_s=convert_s,
        break_even_iterations=break_even(convert_s - made.baseline.convert_s, made.baseline.time_s - after_s),
        energy_j=None,
        energy_low_j=None,
        energy_high_j=None,
    )


def _times_s(problem: Problem, like: Candidate, *products: Product) -> list[float]:
    """Return the seconds of products on the host, sampled in turn."""
    timer = ProductTimer(problem.matrix, like, DEVICES.get(like.device))
    calls = {number: partial(product, timer.x, timer.out) for number, product in enumerate(products)}
    for call in calls.values():
        call()  # untimed
    return [timing.time_s for timing in timer.time(calls, _EFFORT).values()]
