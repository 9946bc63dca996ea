"""The models of Hossain and Saule for one process, worked by hand (section III)."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from sparsecast.errors import ProfileError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import Cache
from sparsecast.matrices.gallery import gallery
from sparsecast.matrices.synthesis import varied_matrix
from sparsecast.measuring.references import reference_bytes, words_a_call
from sparsecast.models.training import TrainingSet
from sparsecast.papers.hossain_saule.linear import HossainLinear
from sparsecast.papers.hossain_saule.micro import HossainMicro
from sparsecast.papers.hossain_saule.svr import LEAST_RECORDS, HossainSVR, best_regression, features_of
from sparsecast.records import Bandwidth, Conditions
from sparsecast.system.memory import CACHE_LINE_BYTES

ROWS, LENGTHS = (100, 400, 1600), (1, 8, 64)


def law(r, x):
    """Give lines over x, whose slope and intercept do not lie on one line over r."""
    return 1e-6 * (1 + x) * (r / 100) ** 1.5


@pytest.fixture(scope="module")
def linear(of_lengths, make_record, train):
    records = [
        make_record(name, of_lengths([x] * r), law(r, x), "hossain")
        for name in ("csr", "coo")
        for r in ROWS
        for x in LENGTHS
    ]
    return HossainLinear().fit(train(records))


@pytest.mark.parametrize("name", ["csr", "coo"])
@pytest.mark.parametrize(("r", "x"), [(100, 8), (250, 3), (400, 64), (1000, 20), (1600, 1)])
def test_a_forecast_is_linear_in_the_rows_between_two_lines(linear, way, of_lengths, name, r, x):
    r1, r2 = (100, 400) if r <= 400 else (400, 1600)
    expected = law(r1, x) + (law(r2, x) - law(r1, x)) * (r - r1) / (r2 - r1)
    terms = linear.terms(way(name), RowBlocks.of(of_lengths([x] * r)))
    assert float(terms["time_s"][0]) == pytest.approx(expected, rel=1e-9)
    assert float(terms["extrapolated"][0]) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize(("r", "x"), [(3200, 8), (400, 200), (3200, 200)])
def test_beyond_the_lines_it_says_how_much_is_extrapolated(linear, way, of_lengths, r, x):
    terms = linear.terms(way("csr"), RowBlocks.of(of_lengths([x] * r)))
    y = law(400, x) + (law(1600, x) - law(400, x)) * (r - 400) / 1200 if r > 400 else law(400, x)
    within_r, within_x = min(r, 1600), min(x, 64)
    assert float(terms["time_s"][0]) == pytest.approx(y, rel=1e-9)
    assert float(terms["extrapolated"][0]) == pytest.approx(y - law(within_r, within_x), rel=1e-9)


def test_no_time_is_below_the_least_that_was_measured(linear, seconds, of_lengths):
    assert seconds(linear, "csr", of_lengths([1] * 3)) > 0
    assert seconds(linear, "csr", of_lengths([])) == pytest.approx(law(100, 1), rel=1e-9)


def test_one_number_of_rows_is_too_few_and_says_what_adds_more(of_lengths, make_record, train):
    records = [make_record("csr", of_lengths([x] * 100), law(100, x), "hossain") for x in LENGTHS]
    with pytest.raises(ProfileError):
        HossainLinear().fit(train(records))


@pytest.fixture(scope="module")
def machine(recorded):
    caches = (Cache(1, 1 << 15, 1), Cache(2, 1 << 19, 1), Cache(3, 1 << 20, 4))
    return dataclasses.replace(recorded.machine, caches=caches, cores=4, threads=4)


@pytest.fixture(scope="module")
def micro(machine, make_record, of_lengths, train):
    """Give the model of a machine that reads at 4e10, 2e10 and 1e10 bytes a second, and 1 ns an operation."""
    speeds = {1 << 18: 4e10, 1 << 22: 2e10, 1 << 26: 1e10}
    bandwidths = tuple(
        Bandwidth("read", "cpu", 1, size, size / speed, 0.0, "", "") for size, speed in speeds.items()
    )
    size = reference_bytes(*machine.shared_cache_bytes(1))["L2"]
    words = words_a_call(size, 1)
    record = make_record("csr", of_lengths([1] * 9), 1e-6, "strips")
    seen = Conditions(references_s={"L2": words * (1e-9 + 8 / 4e10)})
    made = train([dataclasses.replace(record, conditions=seen)], machine)
    training = TrainingSet(machine, made.records, made.matrices, bandwidths)
    return lambda **settings: HossainMicro(**settings).fit(training)


def test_an_operation_is_what_the_reference_takes_beyond_its_bytes(micro):
    assert micro().fma_s_ == pytest.approx(1e-9, rel=1e-9)


@pytest.mark.parametrize("is_printed", [False, True])
@pytest.mark.parametrize("name", ["csr", "coo"])
def test_bytes_are_those_of_table_1_at_the_bandwidth_of_their_size(micro, way, name, is_printed):
    A = gallery("poisson2d", n=60)
    rows, nnz = A.shape[0], A.nnz
    counted = 2 * rows * 4 + nnz * 12 + nnz * 8 + rows * 8 if name == "csr" else nnz * (4 + 12 + 8 + 8)
    counted += rows * 8 if name == "coo" and not is_printed else 0  # y is set to zero
    terms = micro(as_printed=is_printed).terms(way(name), RowBlocks.of(structure(A)))
    assert 1 << 18 < counted < 1 << 22
    # A miss moves a line of eight values in place of one.
    all_hits_s = float((terms["sequential"] + terms["misses"] / 8)[0])
    assert all_hits_s == pytest.approx(counted / 3e10, rel=1e-9), "the mean of two points"
    assert float(terms["FMA"][0]) == pytest.approx(1e-9 * nnz, rel=1e-9)
    total = sum(float(values[0]) for term, values in terms.items() if term != "time_s")
    assert float(terms["time_s"][0]) == pytest.approx(total, rel=1e-12)


def misses_of_lru(A, lines, passes):
    """Count the misses of x in the last of so many passes, in an LRU cache of so many lines."""
    cache: dict[int, None] = {}
    for _ in range(passes):
        misses = 0
        for line in (A.indices // 8).tolist():
            misses += line not in cache
            cache.pop(line, None)
            cache[line] = None
            if len(cache) > lines:
                del cache[next(iter(cache))]
    return misses


@pytest.mark.parametrize("reach", [0.05, 1.0])
@pytest.mark.parametrize("is_printed", [False, True])
def test_misses_are_about_those_of_an_lru_cache(micro, way, reach, is_printed):
    A = varied_matrix(60_000, 4, "fixed", reach, seed=1)
    model = micro(as_printed=is_printed)
    lines = (1 << 20) / 4 / CACHE_LINE_BYTES  # L3 over its cores
    terms = model.terms(way("csr"), RowBlocks.of(structure(A)))
    # Many bytes: between the second point and the third.
    found = float(terms["misses"][0]) * 1.5e10 / CACHE_LINE_BYTES
    assert found == pytest.approx(misses_of_lru(A, lines, 1 if is_printed else 2), rel=0.35)


def test_a_matrix_in_the_cache_misses_only_when_it_is_cold(micro, way):
    blocks = RowBlocks.of(structure(gallery("poisson2d", n=20)))
    assert float(micro().terms(way("csr"), blocks)["misses"][0]) == 0
    assert float(micro(as_printed=True).terms(way("csr"), blocks)["misses"][0]) > 0


def test_without_bandwidths_it_says_so(machine, make_record, of_lengths, train):
    made = train([make_record("csr", of_lengths([1] * 9), 1e-6, "strips")], machine)
    with pytest.raises(ProfileError):
        HossainMicro().fit(TrainingSet(machine, made.records, made.matrices))
    with pytest.raises(ProfileError):
        HossainMicro().fit(made)


#: Rows, and entries of each, of matrices that the regression learns from; short of a whole grid.
SHAPES = [(rows, length) for rows in (500, 900, 1500, 2500, 4000) for length in range(2, 40, 5)]


def lengths_of(rows, length):
    """Give rows whose lengths deviate by about half of their mean."""
    return [length - length // 2, length + length // 2] * (rows // 2)


def time_of(rows, length):
    return 1e-6 + 1e-9 * rows + 2e-9 * rows * length


@pytest.fixture(scope="module")
def training(of_lengths, make_record, train):
    return train(
        [
            make_record(name, of_lengths(lengths_of(rows, length)), time_of(rows, length), "varied")
            for name in ("csr", "coo")
            for rows, length in SHAPES
        ]
    )


@pytest.fixture(scope="module", params=[False, True], ids=["ours", "as printed"])
def svr(request, training):
    return HossainSVR(as_printed=request.param).fit(training)


def standardised(model, training):
    """Give the features of CSR's Records as the regression sees them, and the logarithms of their times."""
    own = [record for record in training.records if record.candidate.format == "csr"]
    x = np.concatenate([features_of(RowBlocks.of(training.structure(record))) for record in own])
    y = np.array([record.time_s for record in own])
    if not model.as_printed:
        x, y = np.log(x + np.array([1, 1, 1, 1e-12, 1])), np.log(y)
    return (x - x.mean(axis=0)) / x.std(axis=0), (y - y.mean()) / y.std(), y


def test_forecasts_are_those_of_scikit_learn(svr, training, way):
    x, y, target = standardised(svr, training)
    expected = target.mean() + target.std() * best_regression(x, y).predict(x)
    expected = np.where(expected > 0, expected, target.min()) if svr.as_printed else np.exp(expected)
    own = [record for record in training.records if record.candidate.format == "csr"]
    found = [svr.values(way("csr"), RowBlocks.of(training.structure(record)))[0] for record in own]
    assert np.array(found) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("A", [gallery("rmat", scale=9), gallery("poisson2d", n=20)], ids=["rmat", "mesh"])
def test_features_are_those_of_the_structure(A):
    found = structure(A)
    lengths = np.diff(A.indptr)
    rows, nnz, mean, density, deviation = features_of(RowBlocks.of(found))[0]
    assert (rows, nnz) == (found.rows, found.nnz)
    assert (mean, density) == pytest.approx((nnz / rows, nnz / rows / found.cols), rel=1e-12)
    # Lengths from 64 on are known to an eighth of an octave.
    assert deviation == pytest.approx(lengths.std(), rel=1e-12 if lengths.max() < 64 else 0.02)


def test_between_what_was_measured_it_is_near_the_law(training, seconds, of_lengths):
    model = HossainSVR().fit(training)
    for rows, length in ((700, 10), (2000, 20), (3000, 30)):
        found = of_lengths(lengths_of(rows, length))
        times = [seconds(model, name, found) for name in ("csr", "coo")]
        assert times == pytest.approx([time_of(rows, length)] * 2, rel=0.2)


def test_features_beyond_the_records_are_taken_to_their_end_and_counted(svr, way, of_lengths):
    def terms(rows, length):
        found = svr.terms(way("csr"), RowBlocks.of(of_lengths(lengths_of(rows, length))))
        return {name: float(values[0]) for name, values in found.items()}

    assert terms(500, 2)["features_beyond"] == 0
    assert terms(700, 10)["features_beyond"] == 0
    # Rows, entries and density.
    far, farther = terms(80_000, 37), terms(160_000, 37)
    assert far["features_beyond"] == farther["features_beyond"] == 3
    assert far["time_s"] == farther["time_s"]


def test_too_few_records_are_counted_and_the_remedy_named(of_lengths, make_record, train):
    records = [
        make_record("csr", of_lengths([3] * rows), 1e-6, "varied") for rows in range(2, LEAST_RECORDS + 1)
    ]
    with pytest.raises(ProfileError):
        HossainSVR().fit(train(records))
