"""Jacobi's method for A x = b, with a b of ones: an application of somebody else."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sparsecast.errors import InputError
from sparsecast.operators.applications import APPLICATIONS
from sparsecast.operators.applications.application import PRODUCT, Application, Iterations, VectorLoop


@dataclass
class Outcome:
    """The solution."""

    x: object
    iterations: int
    residuals: tuple[float, ...]
    stop: str


@APPLICATIONS.register("jacobi")
class Jacobi(Application):
    """x becomes x + (b - A x) / d until b - A x is small; d is the diagonal."""

    name = "jacobi"
    settings = ("tolerance",)
    loops = (VectorLoop("update", 4),)
    vectors = 3
    most_iterations, trials = 2000, 20

    def __init__(self, A, tolerance=1e-6):
        if not A.diagonal().all():
            raise InputError("Jacobi's method with a 0 on the diagonal: expected none; name another matrix")
        self.matrix, self.tolerance = A, tolerance
        self.inverse = 1 / A.diagonal()

    def told(self, done):
        if done.stop == "converged":
            return Iterations(done.iterations, done.iterations, done.iterations, "It converges at once.", 20)
        rate = done.residuals[-1] / done.residuals[-2]
        expected = math.ceil(20 + math.log(self.tolerance / done.residuals[-1]) / math.log(rate))
        return Iterations(expected, 20, 2 * expected, "The residual shrinks as in 20 iterations.", 20)

    def run(self, op, most, on_iteration, laps):
        x, y, residuals = op.domain.host_zeros(), op.range.host_zeros(), []
        laps.start()
        while len(residuals) < most:
            op.matvec(x, out=y)
            laps(PRODUCT)
            residual = 1 - y
            x += residual * self.inverse
            residuals.append(op.range.norm(residual) / math.sqrt(op.shape[0]))
            laps("update")
            on_iteration(len(residuals), residuals[-1])
            if residuals[-1] < self.tolerance:
                return Outcome(x, len(residuals), tuple(residuals), "converged")
        return Outcome(x, len(residuals), tuple(residuals), "most iterations")
