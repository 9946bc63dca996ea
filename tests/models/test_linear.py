"""The linear model: on Records made up from known costs, and on those of a real machine."""

import dataclasses
import itertools
from math import sqrt

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparsecast.devices.target import Target, whole_matrix
from sparsecast.errors import ProfileError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks, StripStatistics
from sparsecast.formats.symmetric_csr import SymmetricCSR
from sparsecast.machines.machine import Cache, Machine, detect
from sparsecast.matrices.synthesis import block_matrix, diagonal_matrix, varied_matrix
from sparsecast.models.linear import LEAST_RECORDS, LinearModel, WorkCosts
from sparsecast.models.training import TrainingSet
from sparsecast.models.work import LEAST_OF_KIND, CountedWork, ProductWork, at_one_speed
from sparsecast.records import MEMORY, NO_PARAMETERS, Conditions, Parameters

CACHES = (Cache(1, 1 << 15, 1), Cache(2, 1 << 18, 1), Cache(3, 1 << 22, 1))
MACHINE = Machine("a processor", "x86_64", 4, 4, CACHES, (), 1 << 34, "Linux")

#: Seconds for one unit of each kind of work of CSR, as a made-up machine takes them.
COSTS = {
    "start": 1e-6,
    "rows": 1e-9,
    "entries": 0.4e-9,
    "mispredicted": 4e-9,
    "masked rows": 2e-9,
    "bytes beyond L2": 0.02e-9,
    "bytes beyond L3": 0.08e-9,
    "lines of x": 0.1e-9,
    "lines of x beyond L1": 0.5e-9,
    "lines of x beyond L2": 2e-9,
    "lines of x beyond L3": 5e-9,
}

SHAPES = [
    (rows, mean, lengths, reach)
    for rows in (300, 4_000, 60_000)
    for mean in (3, 12)
    for lengths in ("fixed", "mixed", "uniform", "power")
    for reach in (0.01, 1.0)
]


@pytest.fixture(scope="module")
def structures():
    return [structure(varied_matrix(*shape, seed=1), threads=1) for shape in SHAPES]


@pytest.fixture(scope="module")
def made_up(structures, make_record, way):
    def time_s(found):
        work = ProductWork(MACHINE).of(way("csr"), RowBlocks.of(found))
        return sum(COSTS[name] * float(count[0]) for name, count in work.items())

    return [make_record("csr", found, time_s(found), "varied") for found in structures]


def test_it_recovers_the_times_of_a_machine_with_such_costs(made_up, train, off):
    training = train(made_up, MACHINE)
    assert off(LinearModel().fit(training), training, made_up).max() < 1e-6


@pytest.mark.parametrize("part", (1, 1 / sqrt(2), 1 / 2, 1 / 4, 1 / 8))
def test_records_tell_how_much_of_the_last_cache_products_find(part, structures, make_record, train, way):
    given = MACHINE.with_last_cache(int(part * CACHES[-1].bytes))
    records = []
    for found in structures:
        blocks = RowBlocks.of(found)
        work = ProductWork(given).of(way("csr"), blocks)
        time_s = sum(COSTS[name] * float(count[0]) for name, count in work.items())
        record = make_record("csr", found, time_s, "varied")
        records.append(dataclasses.replace(record, traffic_bytes=12 * found.nnz + 16 * found.rows))
    training = train(records, MACHINE)
    machine, work = WorkCosts.counted(training)
    assert machine == given and training.machine == MACHINE
    assert WorkCosts.fitted(machine, work).error(work) < 1e-6
    model = LinearModel().fit(training)
    assert model.costs_.machine == given
    assert LinearModel().restored(model.to_state()).costs_ == model.costs_


def test_a_cache_that_no_product_leaves_stays_as_printed(structures, make_record, train):
    records = [
        dataclasses.replace(
            make_record("csr", found, 1e-6 * (1 + found.nnz), "varied"), traffic_bytes=1 << 20
        )
        for found in structures
    ]
    assert WorkCosts.counted(train(records, MACHINE))[0] == MACHINE
    bare = dataclasses.replace(MACHINE, caches=())
    assert WorkCosts.counted(train(records, bare))[0] == bare


def test_work_in_memory_is_counted_as_long_as_memory_took_around_each_record(made_up, train):
    """Readings scatter by 10 %, and in the second half of a calibration memory takes 1.5 times as long."""
    scatter = np.random.default_rng(0).normal(0, 0.1, 200)

    def counts(slower):
        records = [
            dataclasses.replace(
                made_up[number % len(made_up)],
                measured_at=f"2026-11-27T00:{number // 60:02}:{number % 60:02}+00:00",
                conditions=Conditions(0.0, 0.0, {MEMORY: 1e-3 * np.exp(noise) * slower(number)}),
            )
            for number, noise in enumerate(scatter)
        ]
        training = train(records, MACHINE)
        (work,) = at_one_speed(MACHINE, ProductWork(MACHINE).counted(training), training.records)
        plain = ProductWork(MACHINE).counted(train([made_up[n % len(made_up)] for n in range(200)], MACHINE))
        with np.errstate(invalid="ignore"):
            ratios = work.counts / plain[0].counts
        in_memory = ratios[:, work.kinds.index("bytes beyond L3")]
        assert np.nanmax(np.abs(ratios[:, work.kinds.index("bytes beyond L2")] - 1)) == 0
        return np.nanmean(in_memory[:90]), np.nanmean(in_memory[110:])

    before, after = counts(lambda number: 1.5 if number >= 100 else 1.0)
    assert after / before == pytest.approx(1.5, rel=0.1)
    before, after = counts(lambda number: 1.0)
    assert after / before == pytest.approx(1.0, abs=0.03)


SHORT = Parameters({"columns": 16})
ONE, FLOAT32 = Parameters({"values": "one", "columns": 16}), Parameters({"values": "float32", "columns": 16})

#: As COSTS, with narrow storage that is converted as it is read, or not read.
NARROW_COSTS = {
    **COSTS,
    "entries values=one": 0.3e-9,
    "entries values=float32": 0.6e-9,
    "entries columns=16": 0.5e-9,
}


def narrow_records(records, known, storages):
    """Return the Records, and the same in each narrow storage, as a machine of NARROW_COSTS takes them."""
    made = list(records)
    for record, storage in itertools.product(records, storages):
        candidate = dataclasses.replace(record.candidate, parameters=storage)
        work = ProductWork(MACHINE).of(candidate, RowBlocks.of(known[record.matrix]))
        time_s = sum(NARROW_COSTS[name] * float(count[0]) for name, count in work.items())
        made.append(dataclasses.replace(record, candidate=candidate, time_s=time_s))
    return made


def test_narrow_storage_has_entries_of_its_own_and_all_else_in_common(made_up, train, known, off):
    training = train(narrow_records(made_up, known, (ONE, FLOAT32, SHORT)), MACHINE)
    model = LinearModel().fit(training)
    assert off(model, training, training.records).max() < 1e-6
    assert model.costs_.costs["csr"]["entries values=one"] == pytest.approx(0.3e-9, rel=1e-4)


def test_narrow_storage_of_too_few_records_costs_its_bytes_and_entries_in_full(made_up, train, known, way):
    few = narrow_records(made_up, known, (ONE,))[: len(made_up) + LEAST_OF_KIND - 1]
    whole = RowBlocks.of(known[made_up[-1].matrix])
    for records in (made_up, few):
        model = LinearModel().fit(train(records, MACHINE))
        full, one = (model.terms(way("csr", parameters=each), whole) for each in (NO_PARAMETERS, ONE))
        assert one.pop("entries values=one") == full.pop("entries") > 0
        assert one["bytes beyond L2"] < 0.4 * full["bytes beyond L2"]
        assert one["time_s"] < full["time_s"]


def test_a_long_row_is_waited_for(of_lengths, way):
    even, uneven = of_lengths([50] * 2_000), of_lengths([99_999] + [1] * 1_999)
    work, four = ProductWork(MACHINE), way("csr", threads=4)
    assert work.of(four, RowBlocks.of(uneven))["entries"][0] == pytest.approx(4 * 99_999, rel=0.03)
    assert work.of(four, RowBlocks.of(even))["entries"][0] == even.nnz


def test_only_mispredicted_rows_of_large_matrices_are_forgotten_and_each_thread_remembers(of_lengths, way):
    generator = np.random.default_rng(0)
    work, irregular = ProductWork(MACHINE), generator.integers(1, 40, size=60_000)
    small, large, even = of_lengths(irregular[:4_000]), of_lengths(irregular), of_lengths([20] * 60_000)
    ends = {
        (name, threads): work.of(way("coo", threads=threads), RowBlocks.of(found))
        for name, found in (("small", small), ("large", large), ("even", even))
        for threads in (1, 100)
    }
    assert ends["small", 1]["forgotten"][0] == 0 < ends["small", 1]["mispredicted"][0]
    assert ends["large", 1]["forgotten"][0] == ends["large", 1]["mispredicted"][0] > 50_000
    assert ends["even", 1]["forgotten"][0] < 10 and ends["large", 100]["forgotten"][0] == 0


@pytest.mark.parametrize("side, loads", [(2, 1), (3, 2), (4, 1), (6, 2), (8, 2)])
def test_a_row_of_a_block_is_loaded_in_pieces_of_a_power_of_two(way, side, loads):
    found = structure(block_matrix(40 * side, 3, side, 0.5, seed=0), threads=1)
    work = ProductWork(MACHINE).of(way("bcsr"), RowBlocks.of(found))
    assert work["entries"][0] == work["blocks"][0] * side**2
    assert work["loads"][0] == work["blocks"][0] * side * loads


def test_sums_of_long_rows_wait_in_coordinates_alone(of_lengths, way):
    found = RowBlocks.of(of_lengths([100, 3, 65]))
    assert ProductWork(MACHINE).of(way("coo"), found)["waiting sums"][0] == 36 + 1
    assert "waiting sums" not in ProductWork(MACHINE).of(way("csr"), found)


@pytest.mark.parametrize(
    "A",
    [
        varied_matrix(50_000, 9, "fixed", 0.1, seed=0),
        block_matrix(17_000, 9, 3, 0.1, seed=0),
        diagonal_matrix(50_000, 9, 0.1, seed=0),
    ],
    ids=("varied", "blocks", "diagonals"),
)
def test_row_blocks_of_a_matrix_cost_about_the_matrix(recorded, way, A):
    model = LinearModel().fit(TrainingSet.of(recorded, recorded.select(dtype="float64")))
    found = structure(A, threads=1)
    strips = StripStatistics.of(A.indptr, found, 5_000)
    first = np.arange(strips.strips)
    parts = strips.blocks(first, first + 1)
    whole = strips.blocks(np.array([0]), np.array([strips.strips]))
    target = Target("cpu", "float64", 32, 1)
    suiting = {each.format for each in whole_matrix(found, target, detect()).candidates}
    assert len(suiting) > 5
    for name in suiting & set(model.formats()):
        start = model.costs_.costs[name]["start"]
        together = float(model.values(way(name), parts).sum()) - (strips.strips - 1) * start
        # The other rows are taken for CSR. So a format of another size leaves the caches later, or sooner.
        of_whole = float(model.values(way(name), whole)[0])
        csr_bytes, own_bytes = (target.format_bytes(each, whole)[0] for each in ("csr", name))
        if abs(own_bytes / csr_bytes - 1) < 0.2:
            assert together == pytest.approx(of_whole, rel=0.15), name
        else:
            assert (together < of_whole) == (csr_bytes < own_bytes), name


def test_too_few_records_drop_the_format(made_up, train):
    with pytest.raises(ProfileError):
        LinearModel().fit(train(made_up[: LEAST_RECORDS - 1], MACHINE))
    assert LinearModel().fit(train(made_up[:LEAST_RECORDS], MACHINE)).formats() == ["csr"]


def test_bytes_beyond_a_cache_cost_a_format_that_was_never_measured_there_what_they_cost_others(training):
    counted = ProductWork(training.machine).counted(training)
    kind = "bytes beyond L2"
    (csr,) = (work for work in counted if work.format == "csr")
    small = np.ones(len(training.records), dtype=bool)
    small[csr.places[csr.counts[:, csr.kinds.index(kind)] > 0]] = False
    part = [work.part(small) if work.format == "csr" else work for work in counted]
    costs = WorkCosts.fitted(training.machine, part).costs
    others = [costs[w.label][kind] for w in counted if w.format != "csr" and w.knows(kind)]
    assert others and costs["csr"][kind] == pytest.approx(np.median(others))


def test_a_byte_from_memory_costs_a_format_that_was_never_measured_there_as_much_in_total():
    kinds = ("start", "bytes beyond L2", "bytes beyond L3")
    rng = np.random.default_rng(0)

    def work(name, costs, far_bytes):
        near = rng.uniform(1e6, 1e7, 3 * LEAST_RECORDS)
        counts = np.column_stack([np.ones_like(near), near, far_bytes * rng.uniform(0, 1, near.size) * near])
        return CountedWork(name, "", np.arange(near.size), kinds, counts, counts @ np.array(costs))

    known, unknown = work("csr", (1e-6, 1e-11, 8e-11), 1.0), work("dia", (1e-6, 3e-11, 0.0), 0.0)
    costs = WorkCosts.fitted(MACHINE, [known, unknown]).costs
    assert costs["csr"]["bytes beyond L3"] == pytest.approx(8e-11, rel=1e-3)
    assert costs["dia"]["bytes beyond L2"] == pytest.approx(3e-11, rel=1e-3)
    assert costs["dia"]["bytes beyond L3"] == pytest.approx(6e-11, rel=1e-2)


def test_a_format_measured_on_large_matrices_alone_starts_as_fast_as_any():
    def work(name, rows, time_s):
        counts = np.column_stack([np.ones(len(rows)), rows]).astype(float)
        return CountedWork(name, "", np.arange(len(rows)), ("start", "rows"), counts, np.array(time_s))

    rows = np.linspace(1e5, 1.1e5, LEAST_RECORDS)
    small = np.geomspace(1e2, 1e5, LEAST_RECORDS)
    counted = [work("csr", small, 1e-6 + 1e-9 * small), work("sell", rows, np.full(LEAST_RECORDS, 1.1e-4))]
    costs = WorkCosts.fitted(MACHINE, counted).costs
    assert costs["csr"]["start"] == pytest.approx(1e-6)
    assert costs["sell"]["start"] == pytest.approx(1.1e-6)  # the shortest product of all, not 110 us
    assert costs["sell"]["rows"] == pytest.approx(1e-9, rel=0.1)


def test_one_triangle_shares_a_cache_between_x_and_y(way, monkeypatch):
    rows = 3_000
    half = varied_matrix(rows, 4, "uniform", 1.0, seed=3)
    blocks = RowBlocks.of(structure(csr_array(half + half.T), threads=1))
    vector_bytes, candidate = 8 * rows, way("symmetric_csr")

    def lines_beyond(cache_bytes):
        machine = dataclasses.replace(MACHINE, caches=(Cache(2, cache_bytes, 1),))
        return float(ProductWork(machine).of(candidate, blocks)["lines of x beyond L2"][0])

    sizes = [int(vectors * vector_bytes) for vectors in (1.2, 1.6, 2.0, 2.4, 100)]
    of_both = [lines_beyond(size) for size in sizes]
    monkeypatch.setattr(SymmetricCSR, "adds_at_columns", False)
    of_x = [lines_beyond(size) for size in sizes]
    assert of_both != of_x and all(both >= x for both, x in zip(of_both, of_x, strict=True))
    assert of_both[-1] == of_x[-1] == 0
