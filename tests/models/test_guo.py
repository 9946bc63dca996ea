"""The strip models against the paper's equations, worked by hand (Guo, Wang, Chen 2014, section 3.5)."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import strip_rows
from sparsecast.matrices.gallery import gallery_from_specification
from sparsecast.models.fitting import Line
from sparsecast.models.training import TrainingSet
from sparsecast.papers.guo_2014.strip_models import GuoModel

GOLDEN = Path(__file__).parents[1] / "data" / "golden-forecasts.json"
#: Set to write the golden file anew instead of comparing with it.
WRITE_GOLDEN = "SPARSECAST_WRITE_GOLDEN"

THREADS = 2
STRIP = strip_rows(None, THREADS)
STRIPS = (1, 5, 10)
LENGTHS = (4, 16, 64)
ENTRY_STRIPS = (10, 50, 100)

#: A law of time for x entries a row and y strips: start, a strip, an entry of every row of a strip.
START_S, STRIP_S, ENTRY_S = 2e-6, 3e-6, 5e-7


def sum_law(x: float, y: float) -> float:
    return START_S + STRIP_S * y + ENTRY_S * x * y


def product_law(x: float, y: float) -> float:
    return (1e-3 + 2e-4 * x) * (3e-3 + 4e-3 * y)


def coo_law(y: float) -> float:
    return 7e-6 + 9e-6 * y


@pytest.fixture(scope="module")
def grid(of_lengths):
    """Structures of the benchmark matrices, by entries a row and strips."""
    return {(x, y): of_lengths([x] * (y * STRIP)) for x in LENGTHS for y in STRIPS}


@pytest.fixture(scope="module")
def records(grid, of_lengths, make_record):
    """Give the Records of all formats whose times follow a law for CSR and the others' own."""

    def make(csr_law):
        found = [make_record("csr", s, csr_law(x, y), "strips", THREADS) for (x, y), s in grid.items()]
        found += [make_record("ell", s, sum_law(x, y), "strips", THREADS) for (x, y), s in grid.items()]
        for y in ENTRY_STRIPS:
            found.append(make_record("coo", of_lengths([y] * STRIP), coo_law(y), "entry strips", THREADS))
        return found

    return make


@pytest.fixture(scope="module")
def fit(records, train):
    """Give the model fitted to the Records of a law for CSR."""
    return lambda csr_law: GuoModel().fit(train(records(csr_law)))


def strips(units):
    return math.ceil(units / STRIP)


#: Row lengths of targets, as (length, rows) in turn: on the grid, between its points, beyond it.
TARGETS = {
    "on the grid": [(16, 5 * STRIP)],
    "a part of a strip": [(5, 100)],
    "between": [(9, 3 * STRIP + 1)],
    "beyond": [(100, 12 * STRIP)],
    "mode below the longest": [(4, STRIP), (30, STRIP // 2), (7, 10)],
    "many empty rows": [(0, 2 * STRIP), (3, STRIP)],
}


@pytest.fixture(params=TARGETS, scope="module")
def target(request, of_lengths):
    return of_lengths([length for length, rows in TARGETS[request.param] for _ in range(rows)])


def test_csr_reproduces_a_law_that_is_a_product_of_two_lines(fit, seconds, target):
    model = fit(product_law)
    mode = max(target.row_lengths.mode, 1)
    assert seconds(model, "csr", target) == pytest.approx(product_law(mode, strips(target.rows)), rel=1e-9)


def test_csr_is_t1_over_t2_times_t3(fit, seconds, way, target):
    x0, y0 = max(target.row_lengths.mode, 1), strips(target.rows)
    model = fit(sum_law)
    terms = model.terms(way("csr"), RowBlocks.of(target))
    fixed = 10  # every number of strips was measured with three row lengths; the largest is taken
    nearest = min(LENGTHS, key=lambda x: abs(math.log(x) - math.log(x0)))
    t1, t2, t3 = sum_law(x0, fixed), sum_law(nearest, fixed), sum_law(nearest, y0)
    assert [float(terms[name][0]) for name in ("T1", "T2", "T3")] == pytest.approx([t1, t2, t3], rel=1e-9)
    assert seconds(model, "csr", target) == pytest.approx(t1 / t2 * t3, rel=1e-9)


def test_ell_is_f_x_plus_g_with_g_from_the_fixed_row_length(fit, way, target):
    x, y = max(target.row_lengths.max, 1), strips(target.rows)
    terms = fit(sum_law).terms(way("ell"), RowBlocks.of(target))
    slope = ENTRY_S * y
    at_x1 = sum_law(LENGTHS[0], y)
    assert float(terms["f(Y)"][0]) == pytest.approx(slope, rel=1e-9)
    # g(Y) = e(Y) - f(Y) x1, as relationship 3 says; section 3.5.2, step 2 prints e(Y) - f(Y) Y.
    assert float(terms["g(Y)"][0]) == pytest.approx(at_x1 - slope * LENGTHS[0], rel=1e-9)
    assert float(terms["time_s"][0]) == pytest.approx(sum_law(x, y), rel=1e-9)


def test_coo_follows_strips_of_entries(fit, seconds, target):
    model = fit(sum_law)
    assert seconds(model, "coo", target) == pytest.approx(coo_law(strips(max(target.nnz, 1))), rel=1e-9)


@pytest.mark.parametrize(
    ("shape", "width", "overflow"),
    [
        # A column is in the ELL part while a third of the rows reaches it.
        ([(4, 3 * STRIP), (40, STRIP)], 4, 36 * STRIP),
        ([(4, STRIP), (40, STRIP)], 40, 0),
        ([(0, 4 * STRIP), (6, STRIP)], 0, 6 * STRIP),
        ([(0, 10)], 0, 0),
    ],
)
def test_hyb_is_the_sum_of_its_parts(fit, way, of_lengths, shape, width, overflow):
    target = of_lengths([length for length, rows in shape for _ in range(rows)])
    t1 = sum_law(width, strips(target.rows)) if width else 0.0
    t2 = coo_law(strips(max(overflow, 1))) if overflow or not width else 0.0
    terms = fit(sum_law).terms(way("hyb"), RowBlocks.of(target))
    assert [float(terms[name][0]) for name in ("T1", "T2", "time_s")] == pytest.approx([t1, t2, t1 + t2])


def test_a_strip_is_rows_for_every_thread(recorded):
    assert strip_rows(recorded.machine, THREADS) == STRIP
    assert strip_rows(recorded.machine, 6) == 6 * strip_rows(recorded.machine, 1)


def test_few_records_drop_a_format_instead_of_inventing_it(records, train, known):
    everything = records(sum_law)

    def formats(keep):
        return set(GuoModel().fit(train([r for r in everything if keep(r)])).formats())

    assert formats(lambda r: True) == {"csr", "ell", "coo", "hyb"}
    assert formats(lambda r: r.candidate.format != "ell") == {"csr", "coo"}
    assert formats(lambda r: r.candidate.format != "coo") == {"csr", "ell"}
    assert formats(lambda r: r.suite != "strips") == {"coo"}
    one_length = LENGTHS[0] * STRIP
    assert formats(lambda r: r.suite != "strips" or r.nnz // known[r.matrix].rows * STRIP == one_length) == {
        "coo"
    }
    one_size = 5 * STRIP
    assert formats(lambda r: r.suite != "strips" or known[r.matrix].rows == one_size) == {"coo"}


positive = st.floats(1e-9, 1e3)


@given(slope=positive, intercept=st.just(0.0) | positive, x=st.lists(positive, min_size=2, unique=True))
def test_a_line_through_points_of_a_line_is_that_line(slope, intercept, x):
    points = np.array(x)
    if points.max() < 1.01 * points.min():
        points = points * np.linspace(1, 2, len(points))
    y = slope * points + intercept
    assert np.allclose(Line.through(points, y)(points), y, rtol=1e-6)


@given(st.lists(st.tuples(positive, st.just(0.0) | positive), min_size=1))
def test_a_line_never_starts_below_the_origin(points):
    x, y = np.array(points).T
    line = Line.through(x, y)
    assert 0 <= line.intercept < math.inf
    assert 0 <= line.slope < math.inf


def test_a_line_through_a_zero_weighs_it_as_the_least_of_the_others():
    # Slopes of noisy times can be 0. Relative to 1, 1 and 2, the residuals of a line through the origin are
    # s, 2 s - 1 and (3 s - 2) / 2, and s = (2 + 3 / 2) / (1 + 4 + 9 / 4) makes their squares least.
    line = Line.through(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 2.0]))
    assert (line.slope, line.intercept) == (pytest.approx(3.5 / 7.25), 0)
    assert Line.through(np.array([1.0, 2.0]), np.zeros(2)) == Line(0.0, 0.0)


def test_a_line_that_would_start_below_the_origin_goes_through_it():
    x, y = np.array([1.0, 2.0]), np.array([1.0, 3.0])  # the line through both starts at -1
    # Least squares of the relative residuals 1 - slope x / y: slope = sum(x / y) / sum((x / y)**2).
    assert Line.through(x, y).slope == pytest.approx((1 + 2 / 3) / (1 + 4 / 9))
    assert Line.through(x, y).intercept == 0


SPECIFICATIONS = (
    "poisson2d?n=200",
    "rmat?scale=12&degree=8",
    "arrow?n=5000",
    "circuit?n=20000",
    "banded?n=30000&half_bandwidth=12",
    "elasticity3d?n=10",
    "random?n=40000&nnz_per_row=3",
)


def golden_forecasts(recorded, way, dtype):
    model = GuoModel().fit(TrainingSet.of(recorded, recorded.select(dtype=dtype)))
    found = {}
    for specification in SPECIFICATIONS:
        blocks = RowBlocks.of(structure(gallery_from_specification(specification)))
        for name in model.formats():
            candidate = way(name, dtype=dtype)
            time_s = float(model.values(candidate, blocks)[0])
            low_s, high_s = model.interval(candidate, time_s, blocks.matrix)
            found[f"{specification} {name} {dtype}"] = {"time_s": time_s, "low_s": low_s, "high_s": high_s}
    return found


def test_forecasts_from_the_recorded_profile_are_the_golden_ones(recorded, way):
    found = {**golden_forecasts(recorded, way, "float64"), **golden_forecasts(recorded, way, "float32")}
    if os.environ.get(WRITE_GOLDEN):
        GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
    golden = json.loads(GOLDEN.read_text())
    assert golden.keys() == found.keys()
    for name, expected in golden.items():
        assert found[name] == pytest.approx(expected, rel=1e-6), name
