"""Check of a plan: its operator, plain CSR and SciPy, sampled in turn."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sparsecast.benchmark.measurement import right_hand_side
from sparsecast.devices.binding import prepared
from sparsecast.devices.device import Device
from sparsecast.devices.reference import ReferenceProduct
from sparsecast.measuring.timing import Effort, measure
from sparsecast.operators.block_operator import BlockOperator
from sparsecast.results.plan import Plan, PlanCheck


def check_plan(
    A: csr_array[Any], plan: Plan, build: Callable[[], BlockOperator], effort: Effort, device: Device
) -> PlanCheck:
    """Build a plan's operator, compare it with the oracle, and time it against its baseline and SciPy.

    They are sampled in turn; SciPy, which computes on the host, is sampled after those on another device.

    Raises
    ------
    WrongResultError
        If the operator is wrong.
    DeviceError
        If the device cannot be found, or is lost.
    MatrixSizeError
        If its memory is too small.
    """
    with device.errors():
        baseline = plan.baseline.candidate
        ready = prepared(A, baseline.dtype, baseline.index_bits)
        x = right_hand_side(A.shape[1], baseline.dtype)
        reference = ReferenceProduct.of(ready, x)
        for candidate in {block.candidate for block in plan.blocks}:
            device.warm_up(candidate)
        start = perf_counter()
        operator = build()
        convert_s = perf_counter() - start
        placed, out = device.put(x), device.put(np.full(A.shape[0], np.nan, dtype=ready.dtype))
        error = reference.check(device.take(operator.matvec(placed, out)), "the planned operator")
        plain = device.call(baseline, device.bind(ready, baseline)[0], placed, out)
        calls = {"plan": lambda: operator.matvec(placed, out), "baseline": plain}
        scipy = {"scipy": lambda: ready @ x}
        clock, cores = device.clock(), device.core_speed(baseline.threads)
        if device.shares_host:
            timings = measure(calls | scipy, effort, clock=clock, cores=cores)
        else:
            timings = measure(calls, effort, clock=clock, cores=cores) | measure(scipy, effort)
        return PlanCheck(
            timings["plan"].time_s,
            timings["baseline"].time_s,
            timings["scipy"].time_s,
            max((each.noise for each in timings.values() if each.noise is not None), default=None),
            convert_s,
            error,
        )
