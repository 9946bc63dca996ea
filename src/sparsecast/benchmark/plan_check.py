"""Check of a plan: its operator, plain CSR and SciPy, sampled in turn."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from scipy.sparse import csr_array

from sparsecast.devices.device import Device
from sparsecast.devices.product_timer import ProductTimer, right_hand_side
from sparsecast.formats import FORMATS
from sparsecast.measuring.timing import Call, Effort, Lingering, Speedup, measure
from sparsecast.operators.block_operator import BlockOperator
from sparsecast.results.plan import Plan, PlanCheck


def check_plan(
    A: csr_array[Any], plan: Plan, build: Callable[[], BlockOperator], effort: Effort, device: Device
) -> PlanCheck:
    """Build a plan's operator, check its result, and time it against its baseline and SciPy.

    They are sampled in turn; SciPy, which computes on the host, is sampled after those on another device.

    A WrongResultError says that the operator is wrong, a DeviceError that the device cannot be found, or is
    lost, a MatrixSizeError that its memory is too small.
    """
    with device.errors():
        baseline = plan.baseline.candidate
        timer = ProductTimer(A, baseline, device)
        candidates = {block.candidate for block in plan.blocks}
        for candidate in candidates:
            device.warm_up(candidate)
        start = perf_counter()
        operator = build()
        convert_s = perf_counter() - start
        product: Any = operator.matvec if baseline.vectors == 1 else operator.matmat
        error = timer.check(product, "the planned operator", candidates)
        linger_s = max((FORMATS.get(each.format).linger_s for each in candidates), default=0.0)
        calls: dict[str, Call] = {
            "plan": Lingering(lambda: product(timer.x, timer.out), linger_s),
            "baseline": timer.unchecked(baseline),
        }
        x = timer.x if device.shares_host else right_hand_side(A.shape[1], baseline.dtype)
        scipy: dict[str, Call] = {"scipy": lambda: timer.A @ x}
        if device.shares_host:
            timings = timer.time(calls | scipy, effort)
        else:
            timings = timer.time(calls, effort) | measure(scipy, effort)
        return PlanCheck(
            timings["plan"].time_s,
            timings["baseline"].time_s,
            timings["scipy"].time_s,
            max((timing.noise for timing in timings.values() if timing.noise is not None), default=None),
            convert_s,
            error,
            Speedup.of(timings["plan"], timings["scipy"]),
        )
