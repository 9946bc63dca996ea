"""The sparse products of a program that uses SciPy: counted, and done by plans."""

from __future__ import annotations

import timeit
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.api.calibrating import own_profile
from sparsecast.api.executing import compile, load
from sparsecast.api.forecasting import plan as plan_of
from sparsecast.api.session import Asked, Session, question
from sparsecast.devices.naming import Threads
from sparsecast.devices.reference import ReferenceProduct
from sparsecast.errors import DisturbedError, InputError, MatrixSizeError, ProfileError, reason_of
from sparsecast.machines.profile import Profile
from sparsecast.matrices.gallery import gallery
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.values import computed_dtype
from sparsecast.operators.scipy_products import (
    KEPT_S,
    Counted,
    Kind,
    Multiply,
    OneMatrix,
    ProductCounter,
    counted_by,
    takes_little,
)
from sparsecast.operators.unchanged import COMPRESSED, Unchanged, reads_noted
from sparsecast.results.plan import Plan
from sparsecast.results.watching import Seen, SeenProducts

#: Seconds of the products of a matrix after which a plan is made while a program runs: about what that takes.
APPLIED_FROM_S = 0.1

#: Products with SciPy that tell what one takes alone.
_TIMED = 7


class Watch:
    """What `watch` counts, during its block and after it."""

    def __init__(self, plans: _Plans | None) -> None:
        self._plans = plans
        self._counter = ProductCounter() if plans is None else ProductCounter(plans.product, APPLIED_FROM_S)
        self._start, self._run_s = perf_counter(), 0.0

    @contextmanager
    def _counting(self) -> Iterator[None]:
        with nullcontext() if self._plans is None else reads_noted(), counted_by(self._counter):
            self._start = perf_counter()
            try:
                yield
            finally:
                self._run_s = perf_counter() - self._start

    def _rows(self) -> list[SeenProducts]:
        run_s = self._run_s or perf_counter() - self._start
        counted = self._counter.counted()
        return [SeenProducts(each, run_s, unplanned=_unplanned(each, each.matrix)) for each in counted]

    @property
    def heaviest(self) -> Any:
        """The matrix whose products took longest, of those that can be planned for; None without one."""
        return next((row.counted.matrix for row in self._rows() if not row.unplanned), None)

    def seen(self) -> Seen:
        """Return the products of each matrix, and the plans that did some of them."""
        rows, run_s, plans = self._rows(), self._run_s or perf_counter() - self._start, self._plans
        if plans is None:
            return Seen(tuple(rows), run_s)
        notes = tuple(dict.fromkeys(plans.notes))
        return Seen(tuple(map(plans.row, rows)), run_s, True, plans.error, notes)

    def planned(
        self, profile: Profile | None = None, *, threads: Threads = None, anyway: bool = False
    ) -> Seen:
        """Return what `seen` does, with a plan for the products of each matrix that is still at hand.

        Parameters
        ----------
        profile, threads, anyway
            As in `plan`; also in what is raised.
        """
        seen = self.seen()
        if self._plans is not None or self.heaviest is None:
            return seen
        planner = _Planner(profile or own_profile(self.heaviest, threads=threads), threads, anyway)
        rows = tuple(map(planner.row, seen.products))
        changing = ", ".join(row.counted.kind.place for row in rows if row.plan and row.counted.has_changed)
        note = f"Values change at {changing}: a plan converts them again each time, which is not counted."
        return replace(seen, products=rows, notes=(note,) if changing else ())


@contextmanager
def watch(
    *, apply: bool = False, profile: Profile | None = None, threads: Threads = None, anyway: bool = False
) -> Iterator[Watch]:
    """Count the products with SciPy's sparse matrices in a block, those of solvers, too.

    What compiled code or other processes multiply is not seen. A matrix is known by the memory of its values.

    Parameters
    ----------
    apply : bool
        Whether plans do products: once those of a matrix have taken APPLIED_FROM_S, for as many more. Results
        are those of SciPy within rounding. Where a matrix changes, SciPy multiplies again.
    profile, threads, anyway
        As in `plan`, for `apply`.

    Yields
    ------
    Watch
        Its ``seen()`` tells where the products are, its ``planned()`` what plans would save.

    Raises
    ------
    InputError
        If another watch goes on.
    """
    watched = Watch(_Plans(profile, threads, anyway) if apply else None)
    with watched._counting():
        yield watched


class _Planner:
    """Makes plans for what was counted; what is learned and loaded once is no part of a plan."""

    def __init__(self, profile: Profile | None, threads: Threads, anyway: bool) -> None:
        sample = gallery("poisson2d", n=10)
        self.profile = profile or own_profile(sample, threads=threads)
        self._how: dict[str, Any] = {"threads": threads, "anyway": anyway}
        made, problem = self.plan(sample, 1, 1)
        compile(problem, made)
        with suppress(ProfileError):  # a plan says so
            asked = question(problem, self.profile, Asked(threads))
            _ = Session.of(problem, *asked, anyway=anyway).correction

    def plan(self, matrix: Any, products: int, vectors: int) -> tuple[Plan, Problem]:
        """Return a plan for a copy of a matrix, and its problem."""
        csr = csr_array(matrix, copy=True)
        csr.sum_duplicates()
        problem = Problem.of(csr)
        return plan_of(problem, self.profile, iterations=products, vectors=vectors, **self._how), problem

    def row(self, row: SeenProducts) -> SeenProducts:
        """Return a row with its plan, or with the reason for none."""
        counted, start = row.counted, perf_counter()
        if row.unplanned:
            return row
        try:
            made, _ = self.plan(counted.matrix, counted.products, counted.kind.vectors)
        except DisturbedError:
            raise  # it is so for all
        except InputError as error:
            return replace(row, unplanned=str(error))
        unbuilt_s = made.convert_s if made.trials is None else 0.0
        planning_s, matrix = perf_counter() - start + unbuilt_s, counted.matrix
        x = np.ones((matrix.shape[1], counted.kind.vectors), dtype=counted.kind.vector_dtype)
        scipy_s = min(timeit.repeat(lambda: matrix @ x, number=1, repeat=_TIMED))
        return replace(row, plan=made, planning_s=planning_s, scipy_s=scipy_s)


class _Plans(_Planner):
    """Plans that do products while a program runs."""

    def __init__(self, profile: Profile | None, threads: Threads, anyway: bool) -> None:
        super().__init__(profile, threads, anyway)
        self.error: float | None = None
        self.notes: list[str] = []
        self.made: dict[Kind, Plan] = {}
        self.planning_s: dict[Kind, float] = {}
        self.unplanned: dict[Kind, str] = {}

    def row(self, row: SeenProducts) -> SeenProducts:
        """Return a row with the plan that was made for it, if there is one."""
        kind = row.counted.kind
        made, took_s = self.made.get(kind), self.planning_s.get(kind)
        unplanned = (
            "" if made else self.unplanned.get(kind) or "too little time, or too few products, of one matrix"
        )
        return replace(row, is_applied=True, plan=made, planning_s=took_s, unplanned=unplanned)

    def product(self, one: OneMatrix, plain: Multiply, matrix: Any, x: NDArray[Any]) -> Multiply | None:
        """Return what does the products of a matrix, if a plan for as many as were done pays; else None."""
        start, kind = perf_counter(), one.kind
        self.unplanned[kind] = _unplanned(one, matrix)
        if not isinstance(matrix, COMPRESSED):
            self.unplanned[kind] = f"{kind.format.upper()}: expected CSR, CSC or BSR"
        if self.unplanned[kind]:
            return None
        try:
            return self._planned_product(one, plain, matrix, x)
        except Exception as error:  # whatever it is, the program goes on without a plan
            self.unplanned[kind] = reason_of(error)
            self.notes.append(f"{kind.place} stays in SciPy: {self.unplanned[kind]}")
            return None
        finally:
            self.planning_s[kind] = self.planning_s.get(kind, 0.0) + perf_counter() - start

    def _planned_product(
        self, one: OneMatrix, plain: Multiply, matrix: Any, x: NDArray[Any]
    ) -> Multiply | None:
        if not takes_little(matrix):
            raise MatrixSizeError("the matrix takes a good part of the free memory: expected less; free some")
        unchanged, kind = Unchanged(matrix), one.kind
        made, problem = self.plan(matrix, one.products, kind.vectors)
        done, done_s = (
            (one.replaced, one.replaced_s) if one.replacement is not None else (one.products, one.time_s)
        )
        if made.time_s * done >= done_s:
            self.unplanned[kind] = "a plan saves no time"
            return one.replacement
        load(problem, made)
        operator = compile(problem, made)
        product = operator.matvec if kind.vectors == 1 else operator.matmat
        y, magnitude = plain(matrix, x).ravel(), plain(abs(matrix), abs(x)).ravel()
        lengths = np.repeat(np.diff(problem.matrix.indptr), kind.vectors)
        error = ReferenceProduct(y, magnitude, lengths).check(product(x).ravel(), "the plan")
        self.error = max(error, self.error or 0.0)
        self.made[kind] = made
        return lambda other, vectors: product(vectors) if unchanged.holds(other) else None


def _unplanned(counted: Counted, matrix: Any) -> str:
    """Return why there can be no plan for products; empty where there can be one."""
    kind = counted.kind
    if counted.time_s < KEPT_S:
        return "too little time"
    if np.result_type(kind.dtype, kind.vector_dtype) != computed_dtype(np.dtype(kind.dtype)):
        return f"{kind.dtype} values with {kind.vector_dtype} vectors"
    return "the matrix is gone" if matrix is None else ""
