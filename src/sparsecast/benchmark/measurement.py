"""Measuring Candidates on a matrix: build, check against the oracle, time in turn, record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sparsecast.errors import FormatError, MatrixSizeError
from sparsecast.kernels.binding import Bound, bind, prepared, warm_up
from sparsecast.kernels.reference import ReferenceProduct
from sparsecast.measuring.timing import Effort, Timing, measure
from sparsecast.records import Candidate, Record, Structure
from sparsecast.version import VERSION


@dataclass(frozen=True, slots=True)
class Subject:
    """A matrix to measure on.

    Attributes
    ----------
    matrix : csr_array
    structure : Structure
        Of `matrix`.
    name : str
    suite : str
        As in a Record.
    """

    matrix: csr_array[Any]
    structure: Structure
    name: str
    suite: str


@dataclass(frozen=True, slots=True)
class _Prepared:
    candidate: Candidate
    bound: Bound
    convert_s: float
    error: float


def right_hand_side(cols: int, dtype: str) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the x that products are measured with: uniform in [-1, 1), the same every time.

    Real and imaginary parts of a complex x are drawn alike.
    """
    generator = np.random.default_rng(0)
    x = generator.uniform(-1.0, 1.0, cols).astype(dtype)
    if x.dtype.kind == "c":
        x.imag = generator.uniform(-1.0, 1.0, cols)
    return x


def measure_candidates(
    subject: Subject,
    candidates: Sequence[Candidate],
    effort: Effort,
    on_sample: Callable[[], None] = lambda: None,
) -> list[Record]:
    """Measure Candidates of one dtype and index width, sampled in turn; return a Record each.

    Candidates whose format turns out not to suit are left out.

    Raises
    ------
    WrongResultError
        If a kernel's result differs from the oracle's by more than rounding.
    """
    if not candidates:
        return []
    first = candidates[0]
    A = prepared(subject.matrix, first.dtype, first.index_bits)
    x = right_hand_side(A.shape[1], first.dtype)
    reference = ReferenceProduct.of(A, x)
    ready = []
    for candidate in candidates:
        try:
            ready.append(_prepare(A, candidate, x, reference))
        except (FormatError, MatrixSizeError):
            continue
    out = np.empty(A.shape[0], dtype=A.dtype)
    calls = {str(i): _call(item.bound, x, out) for i, item in enumerate(ready)}
    timings = measure(calls, effort, on_sample) if calls else {}
    return [_record(subject, item, timings[str(i)]) for i, item in enumerate(ready)]


def _prepare(
    A: csr_array[Any], candidate: Candidate, x: np.ndarray[Any, Any], reference: ReferenceProduct
) -> _Prepared:
    warm_up(candidate)  # otherwise the conversion would be charged with compiling itself
    start = perf_counter()
    bound = bind(A, candidate)
    convert_s = perf_counter() - start if candidate.format != "csr" else 0.0
    # Filled with NaN, so that a row the kernel forgets is found out.
    out = np.full(A.shape[0], np.nan, dtype=A.dtype)
    bound.product(x, out)
    return _Prepared(
        candidate, bound, convert_s, reference.check(out, f"{candidate.format} {candidate.kernel}")
    )


def _call(bound: Bound, x: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> Callable[[], None]:
    product = bound.product
    return lambda: product(x, out)


def _record(subject: Subject, item: _Prepared, timing: Timing) -> Record:
    return Record(
        candidate=item.candidate,
        structure=subject.structure,
        matrix=subject.name,
        suite=subject.suite,
        samples_s=timing.samples_s,
        time_s=timing.time_s,
        spread=timing.spread,
        noise=timing.noise,
        retaken=timing.retaken,
        regime="warm",
        error=item.error,
        convert_s=item.convert_s,
        stored_bytes=item.bound.matrix.nbytes,
        traffic_bytes=item.bound.matrix.traffic(),
        energy_j=None,
        energy_source=None,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        version=VERSION,
    )
