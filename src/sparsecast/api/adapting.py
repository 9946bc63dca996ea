"""What an operator that adapts needs to know: its CSR, forecasts for its matrix, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparsecast.api.calibrating import own_profile
from sparsecast.api.resolving import target_of, training_for
from sparsecast.devices import DEVICES
from sparsecast.devices.binding import Bound, bind, prepared
from sparsecast.devices.target import Target
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import Machine
from sparsecast.matrices.problem import Problem
from sparsecast.models import DEFAULT_MODEL, MODELS
from sparsecast.models.model import Model
from sparsecast.models.probing import Correction
from sparsecast.models.store import fitted, probe_correction
from sparsecast.planning.adapting import LOADER, Adapting, Option, Ways
from sparsecast.planning.candidates import whole_matrix
from sparsecast.records import Candidate


@dataclass(frozen=True)
class Knowledge:
    """A fitted model of this machine with its Correction, for one Target."""

    target: Target
    machine: Machine
    model: Model
    correction: Correction

    @classmethod
    def of(cls, A: Problem, threads: int | None, dtype: str | None, device: str) -> Knowledge:
        """Return what is known of this machine, calibrated if it was not, for such matrices."""
        profile = own_profile(A, threads=threads, dtype=dtype, device=device)
        target = target_of(A, profile.machine, threads, dtype)
        training = training_for(profile, target)
        model = fitted(MODELS.get(DEFAULT_MODEL)(), training)
        return cls(target, profile.machine, model, probe_correction(model, training))

    def block(self, problem: Problem) -> Adapting:
        """Return all rows of a matrix, done in CSR at first, with forecasts of what may be tried."""
        A = prepared(problem.matrix, self.target.dtype, self.target.index_bits)
        found, conversion = problem.sampled_structure, self.model.conversion_
        blocks = RowBlocks.of(found)
        choice = whole_matrix(found, self.target, self.machine, self.model.kernels)
        estimates = self.model.estimates(found, choice.candidates)
        convert_s = {
            each.candidate: float(conversion.seconds(each.candidate, blocks)[0])
            for each in estimates
            if each.candidate.format in conversion.coefficients_
        }

        def options(csr_s: float) -> Sequence[Option]:
            found = self.correction.estimates(estimates, csr_s)
            known = [each for each in found if each.candidate in convert_s]
            return [
                Option(each.candidate, each.value, each.high, convert_s[each.candidate])
                for each in sorted(known, key=lambda each: each.value)
            ]

        def build(candidate: Candidate) -> Bound:
            LOADER.load(DEVICES.get(self.target.device), candidate)
            return bind(A, candidate)

        csr = self.target.candidate("csr", blocks, self.machine, self.model.kernels("csr"))
        return Adapting(Ways(csr, options, build, LOADER), A.shape[0])
