"""A meter of a processor that always takes 10 W; ``WATTS_CLOSED`` denies access to it."""

from __future__ import annotations

import os
import time

from sparsecast.errors import MeterError
from sparsecast.measuring.energy import ProcessorMeter
from sparsecast.measuring.meters import METERS


@METERS.register("watts")
class ConstantPower(ProcessorMeter):
    order = 1
    source, run_s, step_s = "10 watts", 0.01, 1e-6

    @classmethod
    def is_present(cls) -> bool:
        return True

    def __init__(self) -> None:
        if "WATTS_CLOSED" in os.environ:
            raise MeterError("the counter of watts is closed: expected permission; unset WATTS_CLOSED")

    def joules(self) -> float | None:
        return 10 * time.perf_counter()
