"""The dynamic programme against brute force over every partition and every choice of formats."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparsecast.devices.target import Target
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats.storage_format import MAX_PADDING_FACTOR
from sparsecast.machines.machine import detect
from sparsecast.planning.dynamic_programme import (
    MAX_STRIPS,
    Costs,
    best_blocks,
    best_single_block,
    strip_statistics,
)

from ..conftest import left_packed
from .conftest import Given

SETTING = Target("cpu", "float64", 32, 1)
HERE = detect()
FORMATS = ("csr", "coo", "hyb")
MOST_STRIPS = 9


class Table(Given):
    """A model that reads every block's time and conversion from tables.

    Strip i has one row of 2**i entries, so a block's entries tell which strips it is made of.
    """

    def __init__(self, time_s, convert_s):
        self.times, self.conversions = time_s, convert_s

    def formats(self):
        return list(FORMATS)

    def terms(self, candidate, blocks):
        return {"time_s": self._read(self.times, candidate.format, blocks)}

    def seconds(self, candidate, blocks):
        return self._read(self.conversions, candidate.format, blocks)

    @staticmethod
    def _read(table, format_name, blocks):
        spans = [(int(nnz & -nnz).bit_length() - 1, int(nnz).bit_length()) for nnz in blocks.nnz]
        return np.array([table[FORMATS.index(format_name), first, last] for first, last in spans])


def doubling_rows(strips):
    indptr = np.concatenate(([0], 2 ** np.arange(1, strips + 1) - 1)).astype(np.int32)
    indices = np.concatenate([np.arange(2**i) for i in range(strips)]).astype(np.int32)
    return csr_array((np.ones(indptr[-1]), indices, indptr), (strips, 2**strips))


def statistics_of(A, strip_rows):
    return strip_statistics(A.indptr, structure(A), strip_rows)


def partitions(strips):
    """Yield every way of cutting `strips` strips into blocks (first, last + 1): 2**(strips - 1) ways."""
    for cuts in itertools.product((False, True), repeat=strips - 1):
        bounds = [0, *(i for i, cut in enumerate(cuts, 1) if cut), strips]
        yield list(itertools.pairwise(bounds))


def cost(times, conversions, iterations, format_index, block):
    return times[(format_index, *block)] + conversions[(format_index, *block)] / iterations


def planned_by(table):
    """Return the blocks of the programme for a table of `tables`."""
    strips, times, conversions, iterations = table
    costs = Costs(Table(times, conversions), SETTING, HERE, iterations)
    return best_blocks(statistics_of(doubling_rows(strips), 1), costs)


def planned(blocks):
    return [(FORMATS.index(b.candidate.format), (b.first_row, b.last_row + 1)) for b in blocks]


@st.composite
def tables(draw, most_strips=MOST_STRIPS):
    strips = draw(st.integers(1, most_strips))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = (len(FORMATS), strips + 1, strips + 1)
    # Whole numbers, often equal: sums are exact, ties are many.
    times = generator.integers(1, draw(st.sampled_from((4, 30, 1000))), shape).astype(float)
    conversions = generator.integers(0, draw(st.sampled_from((1, 200))), shape).astype(float)
    conversions[0] = 0.0
    return strips, times, conversions, draw(st.sampled_from((1, 2, 64)))


@given(tables())
def test_the_programme_equals_brute_force_over_all_partitions(table):
    strips, times, conversions, iterations = table
    blocks = planned_by(table)
    ways = list(partitions(strips))
    assert len(ways) == 2 ** (strips - 1)
    best = min(
        sum(min(cost(times, conversions, iterations, f, block) for f in range(len(FORMATS))) for block in way)
        for way in ways
    )
    assert sum(cost(times, conversions, iterations, *choice) for choice in planned(blocks)) == best


class NarrowTable(Table):
    """A table for full storage, and half the time for blocks of narrow storage."""

    def terms(self, candidate, blocks):
        factor = 0.5 if candidate.parameters else 1.0
        return {"time_s": factor * super().terms(candidate, blocks)["time_s"]}


def test_blocks_are_narrow_where_that_is_forecast_to_be_faster():
    times, conversions = np.full((3, 6, 6), 8.0), np.zeros((3, 6, 6))
    times[1:], times[0, 0, 5] = 100.0, 4.0
    A = doubling_rows(5)
    costs = Costs(NarrowTable(times, conversions), SETTING, HERE, 10)
    (block,) = best_blocks(statistics_of(A, 1), costs)
    assert (block.candidate.format, block.time_s) == ("csr", 2.0)
    assert dict(block.candidate.parameters) == {"values": "one", "columns": 16}
    whole = RowBlocks.of(structure(A))
    assert not costs.planned(whole, 0, "csr", is_full=True).candidate.parameters
    A.data[:], A.data[0] = 1 / 3, 0.1
    wide = csr_array((A.data, A.indices * 65_537, A.indptr), (5, 32 * 65_537))
    (block,) = best_blocks(statistics_of(wide, 1), costs)
    assert (block.time_s, dict(block.candidate.parameters)) == (4.0, {})


@given(tables())
def test_blocks_tile_the_rows_and_carry_their_own_forecasts(table):
    strips, times, conversions, _ = table
    blocks = planned_by(table)
    assert blocks[0].first_row == 0
    assert blocks[-1].last_row == strips - 1
    assert all(b.first_row == a.last_row + 1 for a, b in itertools.pairwise(blocks))
    for block, (format_index, span) in zip(blocks, planned(blocks), strict=True):
        assert block.time_s == times[(format_index, *span)]
        assert block.convert_s == conversions[(format_index, *span)]


def test_of_equal_plans_the_one_with_fewest_blocks_is_taken():
    shape = (len(FORMATS), 6, 6)
    first, last = np.indices(shape[1:])
    additive = np.broadcast_to((last - first).astype(float), shape)
    blocks = planned_by((5, additive, np.zeros(shape), 1))
    assert [(b.first_row, b.last_row) for b in blocks] == [(0, 4)]


@pytest.fixture(scope="module")
def fitted(served_fits, served_model):
    return next(model for model in served_fits if model.name == served_model)


@settings(max_examples=25)
@given(
    runs=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 300)), max_size=6),
    strip_rows=st.integers(1, 200),
    iterations=st.sampled_from((1, 100, 10**6)),
)
def test_blocks_tile_any_matrix_and_none_is_padded_beyond_reason(fitted, runs, strip_rows, iterations):
    lengths = np.array([length for length, rows in runs for _ in range(rows)], dtype=int)
    A = left_packed(lengths)
    blocks = best_blocks(statistics_of(A, strip_rows), Costs(fitted, SETTING, HERE, iterations))
    rows = [row for block in blocks for row in range(block.first_row, block.last_row + 1)]
    assert rows == list(range(len(lengths)))
    for block in blocks:
        own = lengths[block.first_row : block.last_row + 1]
        if block.candidate.format == "ell" and own.sum():
            assert len(own) * own.max() <= MAX_PADDING_FACTOR * own.sum()


class CheapEll(Given):
    """A model to which ELL costs next to nothing."""

    def formats(self):
        return ["csr", "ell"]

    def terms(self, candidate, blocks):
        return {"time_s": np.full(len(blocks.rows), 1e-9 if candidate.format == "ell" else 1.0)}

    def seconds(self, candidate, blocks):
        return np.zeros(len(blocks.rows))


def test_refused_padding_is_never_planned_however_cheap():
    lengths = np.full(64, 1)
    lengths[40] = 60
    blocks = best_blocks(statistics_of(left_packed(lengths), 8), Costs(CheapEll(), SETTING, HERE, 1))
    by_format = {b.candidate.format for b in blocks if b.first_row <= 40 <= b.last_row}
    # The dense row's own strip holds 67 entries in 8 rows, 480 with padding: within ten times.
    assert by_format == {"ell"}
    assert len(blocks) > 1, "in one block of 64 rows ELL would store 3,840 entries for 123"
    one_strip = best_blocks(statistics_of(left_packed(lengths), 64), Costs(CheapEll(), SETTING, HERE, 1))
    assert [b.candidate.format for b in one_strip] == ["csr"]


@pytest.mark.parametrize("strips", [1, 511, 512, 513, 5000, 123_457])
def test_strips_are_coarsened_to_a_bound(strips):
    statistics = statistics_of(left_packed(np.ones(3 * strips - 1, dtype=int), 1), 3)
    assert statistics.strips <= MAX_STRIPS
    assert statistics.strips >= min(strips, MAX_STRIPS // 2)
    assert (np.diff(statistics.bounds)[:-1] % 3 == 0).all(), "cuts lie on the model's strips"


def test_a_coarsened_plan_is_never_worse_than_one_block(fitted):
    generator = np.random.default_rng(0)
    lengths = np.concatenate([np.full(2000, 3), generator.integers(0, 40, 2000), np.full(100, 200)])
    statistics = statistics_of(left_packed(lengths), 2)
    assert statistics.strips <= MAX_STRIPS
    for iterations in (1, 1000):
        blocks = best_blocks(statistics, Costs(fitted, SETTING, HERE, iterations))
        total = math.fsum(block.time_s + block.convert_s / iterations for block in blocks)
        single = best_single_block(statistics, Costs(fitted, SETTING, HERE, iterations))
        one_block = single.time_s + single.convert_s / iterations
        assert total <= one_block * (1 + 1e-12)
