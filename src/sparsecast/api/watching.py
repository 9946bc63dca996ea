"""The sparse products of a program that uses SciPy: counted, and done by plans."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.api.calibrating import own_profile
from sparsecast.api.executing import adapting
from sparsecast.api.profiles import require_own
from sparsecast.api.sessions import Session
from sparsecast.api.settings import Setting, Trust
from sparsecast.devices import machine_of
from sparsecast.devices.binding import Bound
from sparsecast.devices.product_timer import ReferenceProduct
from sparsecast.errors import DisturbedError, InputError, MatrixSizeError, ProfileError, reason_of
from sparsecast.machines.machine import PROCESSOR
from sparsecast.machines.profile import Profile
from sparsecast.matrices.gallery import gallery
from sparsecast.matrices.problem import Problem, sound
from sparsecast.matrices.values import computed_dtype
from sparsecast.measuring.timing import Call, Effort, measure
from sparsecast.operators.scipy_products import (
    ASKED_FROM,
    KEPT_S,
    Counted,
    Kind,
    Multiply,
    ProductCounter,
    counted_by,
    takes_little,
)
from sparsecast.operators.unchanged import COMPRESSED, Unchanged, reads_noted
from sparsecast.planning.adapting import AdaptingOperator
from sparsecast.planning.trials import LOADER
from sparsecast.results.columns import stored_as
from sparsecast.results.watching import Saving, Seen, SeenProducts

#: Seconds of the products of a matrix after which others are tried while a program runs: about what it takes
#: to copy the matrix, and to forecast the products.
APPLIED_FROM_S = 0.1

#: Seconds of products that are done again after the run to see how they would be planned, or this share of
#: those that were done.
_LEAST_S, _SHARE = 0.5, 0.1

#: How long a plan and SciPy are timed in turn after the run.
_COMPARED = Effort(samples=24, most_s=0.1)


class Watch:
    """What `watch` counts, during its block and after it."""

    def __init__(self, applied: _Ways | None) -> None:
        self._applied, self.start_s, self.run_s = applied, perf_counter(), 0.0
        self.counter = (
            ProductCounter() if applied is None else ProductCounter(applied.product, APPLIED_FROM_S)
        )

    @property
    def heaviest(self) -> Any:
        """The matrix whose products took longest, of those that can be planned for; None without one."""
        return next((row.counted.matrix for row in self.seen().products if not row.unplanned), None)

    def seen(self) -> Seen:
        """Return the products of each matrix, and the plans that did some of them."""
        run_s, applied = self.run_s or perf_counter() - self.start_s, self._applied
        rows = tuple(self._row(each, run_s) for each in self.counter.counted())
        if applied is None:
            return Seen(rows, run_s)
        return Seen(rows, run_s, True, applied.error, tuple(applied.notes))

    def _row(self, done: Counted, run_s: float) -> SeenProducts:
        applied = self._applied
        if applied is None:
            return SeenProducts(done, run_s, unplanned=_unplanned(done, done.matrix))
        if not done.planning_s:
            return SeenProducts(done, run_s, unplanned="too little time, or too few products, of one matrix")
        return SeenProducts(
            done,
            run_s,
            plan=applied.kept.get(done.kind),
            planning_s=done.planning_s,
            saving=Saving(done.scipy_s * done.replaced - done.replaced_s - done.planning_s),
            unplanned=applied.unplanned.get(done.kind, ""),
        )

    def planned(
        self, profile: Profile | None = None, *, threads: int | None = None, anyway: bool = False
    ) -> Seen:
        """Return what `seen` does, with a plan for the products of each matrix that is still at hand.

        Parameters
        ----------
        profile, threads, anyway
            As in `plan`, of this machine; also in what is raised.

        Raises
        ------
        InputError
            If the watch goes on: it would count what is measured for the plans.
        """
        if not self.run_s:
            raise InputError("planned() while the watch goes on: expected after its block; call it there")
        seen = self.seen()
        if self._applied is not None or self.heaviest is None:
            return seen
        ways = _Ways(profile, threads, anyway, is_applied=False)
        rows = tuple(map(ways.planned, seen.products))
        changing = ", ".join(row.counted.kind.place for row in rows if row.plan and row.counted.has_changed)
        note = f"Values change at {changing}: a plan converts them again each time, which is not counted."
        return replace(seen, products=rows, notes=(*ways.notes, *((note,) if changing else ())))


@contextmanager
def watch(
    *, apply: bool = False, profile: Profile | None = None, threads: int | None = None, anyway: bool = False
) -> Iterator[Watch]:
    """Count the products with SciPy's sparse matrices in a block, those of solvers, too.

    What compiled code or other processes multiply is not seen. A matrix is known by the memory of its values.

    Parameters
    ----------
    apply : bool
        Whether operators that adapt (`compile`) do products, once those of a matrix have taken
        APPLIED_FROM_S. Results are those of SciPy within rounding. Where a matrix changes, SciPy multiplies
        again.
    profile, threads, anyway
        As in `plan`, of this machine, for `apply`.

    Yields
    ------
    Watch
        Its ``seen()`` tells where the products are, its ``planned()`` what plans would save.

    Raises
    ------
    InputError
        If another watch goes on, or the profile is that of another machine.
    """
    watched = Watch(_Ways(profile, threads, anyway, is_applied=True) if apply else None)
    with reads_noted() if apply else nullcontext(), counted_by(watched.counter):
        watched.start_s = perf_counter()
        try:
            yield watched
        finally:
            watched.run_s = perf_counter() - watched.start_s


class _Ways:
    """Operators that do products in place of SciPy; what is learned and loaded once is no part of their time.

    Attributes
    ----------
    error : float or None
        As in Seen.
    notes : dict of str to None
        Sentences, as a set in the order of their time.
    kept, unplanned : dict of Kind to str
        The format that does the last matrix of a kind, and why none does.
    """

    def __init__(
        self, profile: Profile | None, threads: int | None, anyway: bool, *, is_applied: bool
    ) -> None:
        self.error: float | None = None
        self.notes: dict[str, None] = {}
        self.kept: dict[Kind, str] = {}
        self.unplanned: dict[Kind, str] = {}
        self._is_applied = is_applied
        sample = Problem.of(gallery("poisson2d", n=10))
        profile = profile or own_profile(sample, threads=threads)
        require_own(profile.name, machine_of(PROCESSOR))
        self._session = Session(profile, Setting(threads), Trust(anyway=anyway))
        with suppress(ProfileError):  # is the reason for each matrix
            adapting(self._session.basis(sample, transfers=False), sample)

    def planned(self, row: SeenProducts) -> SeenProducts:
        """Return a row with what ``apply`` would save, found by doing some of its products again."""
        done, matrix, kind = row.counted, row.counted.matrix, row.counted.kind
        if row.unplanned:
            return row
        x = np.ones((matrix.shape[1], kind.vectors), dtype=kind.vector_dtype)
        x, name = (x[:, 0], "_matmul_vector") if kind.vectors == 1 else (x, "_matmul_multivector")
        plain, mean_s = getattr(type(matrix), name), done.time_s / done.products
        first = max(ASKED_FROM, math.ceil(APPLIED_FROM_S / mean_s))
        with reads_noted():
            start, loaded_s = perf_counter(), LOADER.spent_s
            multiply = self._replacing(Counted(kind), plain, matrix, x)
            if multiply is None:
                return replace(row, unplanned=self.unplanned[kind])
            calls = {"plan": partial(multiply, matrix, x), "scipy": partial(plain, matrix, x)}
            asked_s, most_s = perf_counter() - start, max(_LEAST_S, _SHARE * done.time_s)
            repeated, repeated_s = multiply.repeat(calls["plan"], done.products - first, most_s)
            loaded_s, timed = LOADER.spent_s - loaded_s, measure(calls, _COMPARED)
        if kind in self.unplanned:
            return replace(row, unplanned=self.unplanned[kind])
        plan_s, scipy_s = timed["plan"].time_s, timed["scipy"].time_s
        # In a program, caches are colder than where the two are timed. That takes both as much longer where
        # vectors are read again, and both times as long where the matrix is: the middle is the forecast.
        ends = min(mean_s, scipy_s) - plan_s, mean_s * (1 - plan_s / scipy_s)
        noise_s = sum((each.noise or 0.0) * each.time_s for each in timed.values())
        less_s = sum(ends) / 2, min(ends) - noise_s, max(ends) + noise_s
        each_s = max(0.0, asked_s - loaded_s + max(0.0, repeated_s - repeated * plan_s))
        planning_s = done.matrices * each_s
        return replace(
            row,
            plan=self.kept[kind],
            plan_s=plan_s,
            scipy_s=scipy_s,
            planning_s=planning_s,
            saving=Saving.forecast(done.products, first, less_s, planning_s),
        )

    def product(self, done: Counted, plain: Multiply, matrix: Any, x: NDArray[Any]) -> Multiply | None:
        """Return what does the products of a matrix from now on; None where nothing can."""
        reason = _unplanned(done, matrix)
        if not isinstance(matrix, COMPRESSED):
            reason = f"{done.kind.format.upper()}: expected CSR, CSC or BSR"
        if reason:
            self.unplanned[done.kind] = reason
            return None
        return self._replacing(done, plain, matrix, x)

    def _replacing(self, done: Counted, plain: Multiply, matrix: Any, x: NDArray[Any]) -> _Replacing | None:
        """Return what multiplies a matrix; None where that failed."""
        try:
            if not takes_little(matrix):
                raise MatrixSizeError(
                    "the matrix takes a good part of the free memory: expected less; free some"
                )
            unchanged = Unchanged(matrix) if isinstance(matrix, COMPRESSED) else None
            return _Replacing(self, done, unchanged, self._operator(plain, matrix, x))
        except Exception as error:
            self.left(done.kind, error)
            return None

    def left(self, kind: Kind, error: Exception) -> None:
        """Leave the products of a kind to SciPy, and say why; raise what is no refusal of this kind."""
        is_refusal = isinstance(error, InputError) and not isinstance(error, DisturbedError)
        if not (self._is_applied or is_refusal):  # a program goes on without us, whatever it is
            raise error
        reason = self.unplanned[kind] = reason_of(error)
        self.notes[f"{kind.place} stays in SciPy: {reason}"] = None

    def _operator(self, plain: Multiply, matrix: Any, x: NDArray[Any]) -> AdaptingOperator:
        """Return an operator for a copy of a matrix, each way of which is compared with SciPy's product."""
        csr = csr_array(sound(matrix), copy=True)
        csr.sum_duplicates()
        problem, vectors = Problem.of(csr), x.shape[1] if x.ndim > 1 else 1
        checked = np.array(x, dtype=problem.matrix.dtype, order="C")  # the program's own may change
        checked = checked.ravel() if vectors == 1 else checked
        positive = csr_array((np.abs(csr.data), csr.indices, csr.indptr), shape=csr.shape)
        y, magnitude = plain(matrix, x).ravel(), (positive @ np.abs(checked)).ravel()
        magnitude = np.where(np.isfinite(magnitude), magnitude, np.nan)  # as ReferenceProduct has it
        reference = ReferenceProduct(y, magnitude, np.repeat(np.diff(csr.indptr), vectors))

        def check(bound: Bound, name: str) -> None:
            out = np.full((problem.matrix.shape[0], *checked.shape[1:]), np.nan, dtype=checked.dtype)
            bound.of(vectors)(checked, out)
            self.error = max(reference.check(out.ravel(), name), self.error or 0.0)

        return adapting(self._session.basis(problem, transfers=False), problem, check)


class _Replacing:
    """Multiplies a matrix by an operator, as long as it is unchanged."""

    def __init__(
        self, ways: _Ways, done: Counted, unchanged: Unchanged | None, operator: AdaptingOperator
    ) -> None:
        self._ways, self._done, self._unchanged, self._tried = ways, done, unchanged, 0
        self.adapting = operator.adapting
        self._product = operator.matvec if done.kind.vectors == 1 else operator.matmat
        ways.kept[done.kind] = stored_as(self.adapting.kept)

    def __call__(self, matrix: Any, x: NDArray[Any]) -> Any:
        if self._unchanged is not None and not self._unchanged.holds(matrix):
            self._done.has_changed = True
            return None
        try:
            y = self._product(x)
        except Exception as error:  # as above
            self._ways.left(self._done.kind, error)
            return None
        if new := self.adapting.tried[self._tried :]:  # built within products
            done, convert_s = self._done, sum(trial.convert_s or 0.0 for trial in new)
            done.planning_s, done.replaced_s = done.planning_s + convert_s, done.replaced_s - convert_s
            done.time_s, self._tried = done.time_s - convert_s, self._tried + len(new)
            self._ways.kept[done.kind] = stored_as(self.adapting.kept)
        return y

    def repeat(self, product: Call, products: int, most_s: float) -> tuple[int, float]:
        """Do products until nothing is tried any more, not all between trials; return number and seconds."""
        start, done, skipped_s = perf_counter(), 0, 0.0
        while done < products and perf_counter() - start < most_s and not self.adapting.is_settled:
            product()
            skipped, their_s = self.adapting.skip(products - done - 1)
            done, skipped_s = done + 1 + skipped, skipped_s + their_s
        return done, perf_counter() - start + skipped_s


def _unplanned(counted: Counted, matrix: Any) -> str:
    """Return why there can be no plan for products; empty where there can be one."""
    kind = counted.kind
    if counted.time_s < KEPT_S:
        return "too little time"
    if np.result_type(kind.dtype, kind.vector_dtype) != computed_dtype(np.dtype(kind.dtype)):
        return f"{kind.dtype} values with {kind.vector_dtype} vectors"
    return "the matrix is gone, or takes a good part of the free memory" if matrix is None else ""
