"""The row block of an operator that adapts: its CSR, forecasts for its matrix, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence

from sparsecast.api.session import Session
from sparsecast.devices import DEVICES
from sparsecast.devices.binding import Bound, bind, prepared
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.matrices.problem import Problem
from sparsecast.planning.adapting import LOADER, Adapting, Option, Ways
from sparsecast.records import Candidate


def adapting_block(session: Session, problem: Problem) -> Adapting:
    """Return all rows of a matrix, done in CSR at first, with forecasts of what may be tried."""
    target, model = session.target, session.model
    A, found = prepared(problem.matrix, target.dtype, target.index_bits), session.structure(problem)
    blocks, conversion = RowBlocks.of(found), model.conversion_
    estimates = session.estimates(found)
    convert_s = {
        estimate.candidate: float(conversion.seconds(estimate.candidate, blocks)[0])
        for estimate in estimates
        if estimate.candidate.format in conversion.costs
    }

    def options(csr_s: float) -> Sequence[Option]:
        corrected = session.correction.estimates(estimates, csr_s)
        return [
            Option(estimate.candidate, estimate.value, estimate.high, convert_s[estimate.candidate])
            for estimate in sorted(corrected, key=lambda estimate: estimate.value)
            if estimate.candidate in convert_s
        ]

    def build(candidate: Candidate) -> Bound:
        LOADER.load(DEVICES.get(target.device), candidate)
        return bind(A, candidate)

    csr = target.candidate("csr", blocks, session.profile.machine, model.kernels("csr"))
    return Adapting(Ways(csr, options, build, LOADER), A.shape[0])
