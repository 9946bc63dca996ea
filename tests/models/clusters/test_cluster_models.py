"""Models of distributed products, on a cluster whose laws are known."""

import itertools
import json
import math
from collections import OrderedDict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsecast.distributed.products import default_algorithms
from sparsecast.errors import ProfileError
from sparsecast.machines.machine import Cache, Machine
from sparsecast.matrices.partitioning.estimates import estimated_distribution
from sparsecast.models.clusters import CLUSTER_MODELS
from sparsecast.models.clusters.cluster_model import ClusterTraining, Question
from sparsecast.models.clusters.local_work import CacheShare
from sparsecast.models.clusters.network import Memory, Network
from sparsecast.models.clusters.sparsecast import SparsecastClusterModel
from sparsecast.papers.hossain_saule.micro import Polynomial
from sparsecast.records import Configuration, Forecast, MicroBenchmark

from ...conftest import distributed_record

CORES, BANDWIDTH, LATENCY_S, LINK = 8, 80e9, 1e-6, 10e9
SIZES = (64, 4096, 2**18, 2**24)
PLACES = ((2, 1), (4, 1), (8, 1), (16, 2), (32, 4), (64, 8))

CACHES = Cache(1, 2**15, 1), Cache(2, 2**20, 1), Cache(3, 2**23, CORES)
MACHINE = Machine("made up", "none", CORES, CORES, CACHES, (), 10**12, "none")


def microbenchmark(kind, ranks, nodes, size, time_s, neighbours=None):
    return MicroBenchmark(kind, ranks, nodes, size, neighbours, time_s, 0.01, False, "", "0.1")


def collective_s(kind, ranks, nodes, size):
    """The law of a collective: powers of its quantities, as a log-log polynomial can say them."""
    powers = {"allgatherv": (2e-6, 1.2, 0.9), "reduce": (3e-6, 0.4, 0.8), "bcast": (1e-6, 0.3, 0.7)}
    cost, of_ranks, of_bytes = powers[kind]
    return cost * ranks**of_ranks * nodes**0.1 * (1 + size) ** of_bytes


def speeds():
    """Return micro-benchmarks of everything, and some of more ranks than cores, a thousand times slower."""
    found = [microbenchmark("fma", 1, 1, 0, 2e-11)]
    for ranks in (1, 4, CORES):
        share = min(20e9, BANDWIDTH / ranks)
        found += [microbenchmark("triad", ranks, 1, size, size / share) for size in SIZES]
    for nodes, speed in ((1, 8e9), (2, LINK)):
        pairs = [(size, LATENCY_S * nodes + size / speed) for size in SIZES]
        found += [microbenchmark("ping-pong", 2, nodes, size, time_s) for size, time_s in pairs]
    for (ranks, nodes), size in itertools.product(PLACES, SIZES):
        for kind in ("allgatherv", "reduce", "bcast"):
            found.append(microbenchmark(kind, ranks, nodes, size, collective_s(kind, ranks, nodes, size)))
        found.append(microbenchmark("neighbour exchange", ranks, nodes, size, 2e-6 + size / 1e9, 1))
    slower = [replace(each, time_s=1000 * each.time_s, is_oversubscribed=True) for each in found]
    return (*found, *slower)


def configuration(algorithm, name="csr", ranks=16, nodes=2):
    partition = "uniform-2d" if algorithm == "2d" else "metis"
    return Configuration(algorithm, name, name, partition, ranks, nodes)


def on_nodes(ranks, nodes):
    return configuration("global-1d", "csr", ranks, nodes)


def estimate(way, rows, nnz):
    dimension = None if way.algorithm == "2d" else 2
    return estimated_distribution(rows, rows, nnz, way.ranks, way.partition, dimension)


def record(way, rows, nnz, time_s, matrix="gallery:made-up"):
    found = estimate(way, rows, nnz).to_dict()
    return distributed_record(way, matrix, nnz, found, time_s, suite="hossain", deviation=1.5)


def training(*records, wanted=lambda benchmark: True):
    """Return what models learn from: records, and the micro-benchmarks that are wanted."""
    return ClusterTraining(MACHINE, tuple(filter(wanted, speeds())), records)


def only(*kinds):
    return lambda benchmark: benchmark.kind in kinds


NAMES = CLUSTER_MODELS.names()

#: Blocks of 20,000 to 80,000 rows, with 1 to 32 non-zeros a row of the matrix.
RANDOM = [(rows, rows * length) for rows in (40_000, 80_000, 160_000) for length in (1, 2, 4, 8, 16, 32)]


def law_s(rows, nnz):
    """Seconds of 2D: so much a row, an entry, and a product."""
    return 1e-5 + 2e-9 * rows + 3e-10 * nnz


@pytest.fixture(scope="module")
def measured():
    """Products on 16 ranks of every algorithm of the papers, enough for each model."""
    found = []
    for algorithm in ("global-1d", "local-1d", "2d"):
        for rows, nnz in [*RANDOM, *((rows + 7, 3 * rows) for rows in range(40_000, 120_000, 10_000))]:
            name = f"gallery:{algorithm}-{rows}?n={nnz}"
            found.append(record(configuration(algorithm), rows, nnz, law_s(rows, nnz), name))
    return tuple(found)


@pytest.fixture(scope="module")
def fitted(measured):
    every = training(*measured)
    return {name: CLUSTER_MODELS.get(name)().fit(every) for name in NAMES}


def asked(way, rows=100_000, nnz=700_000, **known):
    return replace(Question(estimate(way, rows, nnz), deviation=1.5), **known)


MODEL = SparsecastClusterModel().fit(training())


def forecast_of(model, way, *counts, **known):
    """Return the forecast of a Configuration for a matrix of these rows and non-zeros."""
    (forecast,) = model.forecast([way], asked(way, *counts, **known))
    return forecast


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("algorithm", default_algorithms())
def test_every_model_forecasts_or_says_what_it_lacks(fitted, name, algorithm):
    model, way = fitted[name], configuration(algorithm)
    found = model.forecast([way], asked(way))
    if not found:
        assert model.lacking(way, asked(way))
        return
    assert model.lacking(way, asked(way)) is None
    (each,) = found
    assert each.configuration == way and 0 < each.time_s < math.inf and each.memory_bytes > 0
    if each.low_s is not None:
        assert each.low_s <= each.time_s <= each.high_s
    assert json.loads(json.dumps(dict(each.terms))) == dict(each.terms)
    assert model.forecast([way], asked(way)) == found


@pytest.mark.parametrize("name", NAMES)
def test_what_a_paper_does_not_model_has_no_forecast(fitted, name):
    way = configuration("local-1d", "sell")
    if CLUSTER_MODELS.get(name).covers is not None:
        assert fitted[name].forecast([way], asked(way)) == []
        assert "covers" in fitted[name].lacking(way, asked(way))


def on_node(time_s, low_s, high_s, moved_bytes):
    """What the node model forecasts of a rank's part."""
    return Forecast(None, 9, time_s, low_s, high_s, moved_bytes, None, None)


def test_a_format_that_nothing_counts_needs_times_on_a_node(fitted):
    """It is never taken for CSR: bytes and work are those of the node model."""
    model, way = fitted["sparsecast"], configuration("local-1d", "dia")
    assert "format dia has no forecast" in model.lacking(way, asked(way))
    forecast = forecast_of(model, way, local={"dia": on_node(1e-3, 9e-4, 1.2e-3, 10**8)})
    assert forecast.memory_bytes > 10**8 and forecast.computation_s > 1e-3


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wanted", (only(), lambda benchmark: benchmark.is_oversubscribed))
def test_nothing_measured_is_one_line_with_the_command(name, wanted):
    with pytest.raises(ProfileError, match="mpirun") as refused:
        CLUSTER_MODELS.get(name)().fit(training(wanted=wanted))
    assert "\n" not in str(refused.value) and name in str(refused.value)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("rows", "nnz"), ((1, 0), (0, 0), (1, 1), (17, 3)))
def test_matrices_of_next_to_nothing(fitted, name, rows, nnz):
    for algorithm in ("global-1d", "local-1d", "2d"):
        way = configuration(algorithm)
        question = Question(estimated_distribution(rows, rows, nnz, way.ranks, way.partition))
        for each in fitted[name].forecast([way], question):
            assert 0 < each.time_s < math.inf


def test_a_collective_that_was_measured_is_forecast_as_measured():
    network = Network(training())
    for kind, size in itertools.product(("allgatherv", "reduce", "bcast"), SIZES):
        for ranks, nodes in ((8, 1), (16, 2)):
            found = network.collective(kind, float(size), on_nodes(ranks, nodes))
            assert 1 / 4 < found / collective_s(kind, ranks, nodes, size) < 4
    one = Network(training(wanted=lambda each: each.kind in ("triad", "ping-pong") or each.ranks == 8))
    found = one.collective("allgatherv", float(SIZES[1]), on_nodes(8, 1))
    assert found == pytest.approx(collective_s("allgatherv", 8, 1, SIZES[1]))


def test_without_collectives_the_physics_remains():
    """Large vectors on one node pass memory four times; small ones cost the latencies of a tree."""
    network = Network(training(wanted=only("triad", "ping-pong")))
    large = network.collective("allgatherv", 1e7, on_nodes(CORES, 1))
    assert large == pytest.approx(4 * 7e7 / (BANDWIDTH / CORES), rel=0.01)
    small = network.collective("bcast", 8.0, on_nodes(CORES, 1))
    assert small == pytest.approx(3 * LATENCY_S, rel=0.01)
    assert network.collective("bcast", 8.0, on_nodes(1, 1)) == 0.0
    inside, between = (network.collective("allgatherv", 1e5, on_nodes(*on)) for on in ((8, 1), (64, 8)))
    assert between > inside


def test_global_1d_gathers_an_x_as_long_as_the_matrix_is_wide(fitted):
    """The columns, not the rows: x is what every rank gets."""
    way = configuration("global-1d")
    for name in ("sparsecast", "hossain-micro"):
        high, wide = (
            fitted[name]
            .forecast([way], Question(estimated_distribution(rows, cols, 10**6, 16, "rows")))[0]
            .communication_s
            for rows, cols in ((10**6, 10**3), (10**3, 10**6))
        )
        assert wide > 20 * high


def test_factors_of_computation_and_communication_are_found_again():
    """A machine three times as slow in computation and twice in communication than physics says."""
    plain, way = SparsecastClusterModel().fit(training()), configuration("global-1d")
    known = []
    for rows, nnz in RANDOM:
        each = forecast_of(plain, way, rows, nnz)
        time_s = 3 * each.computation_s + 2 * each.communication_s
        known.append(record(way, rows, nnz, time_s, f"gallery:a{rows}-{nnz}?n=1"))
    model = SparsecastClusterModel(prior_weight=0.0).fit(training(*known))
    for ranks, nodes in ((16, 2), (64, 8)):
        before, after = (forecast_of(each, on_nodes(ranks, nodes)) for each in (plain, model))
        assert after.time_s == pytest.approx(3 * before.computation_s + 2 * before.communication_s, rel=1e-6)
        assert after.low_s <= after.time_s <= after.high_s
    assert forecast_of(model, configuration("2d")) == forecast_of(plain, configuration("2d"))


def test_intervals_are_never_invented():
    model = SparsecastClusterModel().fit(training(wanted=only("triad", "ping-pong")))
    for algorithm in default_algorithms():
        each = forecast_of(model, configuration(algorithm))
        assert (each.low_s, each.high_s, each.energy_j) == (None, None, None)


def test_the_node_model_takes_the_place_of_physics():
    local, remote = {"csr": on_node(1e-3, 9e-4, 1.2e-3, 10)}, {"csr": on_node(1e-4, 8e-5, 2e-4, 10)}
    each = forecast_of(MODEL, configuration("local-1d"), local=local, remote=remote)
    terms = dict(each.terms)
    assert terms["local"] == 1e-3 and terms["remote"] == 1e-4 and terms["waiting"] >= 0
    assert 0 < terms["additions"] < 1e-5
    assert each.computation_s == pytest.approx(1.1e-3 + terms["waiting"] + terms["additions"])
    assert each.low_s < each.time_s < each.high_s


def test_beside_the_node_model_communication_has_its_own_factor():
    """Products that take their computation and three times the composed communication."""
    way, known = configuration("local-1d"), []
    parts = {"local": [7e-4] * 15 + [8e-4], "remote": [1e-4] * 15 + [2e-4]}
    for rows, nnz in RANDOM[:6]:
        time_s = 1e-3 + 3 * forecast_of(MODEL, way, rows, nnz).communication_s
        made = record(way, rows, nnz, time_s, f"gallery:a{rows}-{nnz}?n=1")
        known.append(replace(made, parts_s=parts))
    model, local = SparsecastClusterModel().fit(training(*known)), {"csr": on_node(1e-3, 9e-4, 1.2e-3, 10)}
    before, after = (forecast_of(each, way, local=local) for each in (MODEL, model))
    assert after.computation_s == before.computation_s
    assert after.communication_s == pytest.approx(3 * before.communication_s)
    assert after.low_s < after.time_s < after.high_s


def test_overlap_takes_the_longer_of_both():
    one, other = (forecast_of(MODEL, configuration(name)) for name in ("local-1d", "local-1d-overlap"))
    assert one.time_s == pytest.approx(one.computation_s + one.communication_s)
    assert other.time_s == pytest.approx(max(one.computation_s, one.communication_s))


@given(st.integers(1, 10**9), st.integers(0, 10**10), st.sampled_from(("global-1d", "2d")))
def test_more_entries_never_take_less_time(rows, nnz, algorithm):
    few, many = (forecast_of(MODEL, configuration(algorithm), rows, count) for count in (nnz, 2 * nnz + 1))
    assert few.time_s <= many.time_s * (1 + 1e-9)


@pytest.mark.parametrize(
    ("algorithm", "ranks"), (("local-1d", 100_000), ("global-1d", 100_000), ("2d", 316**2))
)
def test_a_hundred_thousand_ranks(algorithm, ranks):
    each = forecast_of(MODEL, configuration(algorithm, "csr", ranks, ranks // CORES), 10**9, 7 * 10**9)
    assert 0 < each.communication_s < each.time_s < math.inf


def test_more_nodes_than_were_measured_need_a_message_between_two():
    model = SparsecastClusterModel().fit(training(wanted=lambda benchmark: benchmark.nodes == 1))
    inside, between = configuration("2d", ranks=4, nodes=1), configuration("2d")
    assert model.lacking(inside, asked(inside)) is None
    assert "2 nodes: expected a ping-pong between two" in model.lacking(between, asked(between))


@given(
    st.lists(st.floats(-1.0, 1.0), min_size=7, max_size=7),
    st.tuples(st.integers(1, 50), st.integers(2, 1000), st.integers(8, 10**8)),
)
def test_the_polynomial_of_a_kind_is_found_again(costs, at):
    def law(nodes, ranks, size):
        n, r, b = (math.log(each) / 10 for each in (nodes, ranks, size))
        a = costs
        return math.exp(a[0] + a[1] * n + a[2] * r + a[3] * b + a[4] * b * b + a[5] * n * b + a[6] * r * r)

    points = [
        microbenchmark("bcast", ranks, nodes, size, law(nodes, ranks, size))
        for nodes in (1, 2, 4)
        for ranks in (4, 16, 128)
        for size in SIZES
    ]
    assert Polynomial(points)(*at) == pytest.approx(law(*at), rel=1e-6)


def test_what_no_measurement_varies_has_no_part_in_a_polynomial():
    points = [microbenchmark("reduce", 2, 1, size, 1e-6 + size / 1e9) for size in SIZES]
    assert Polynomial(points)(1, 2, 4096) == Polynomial(points)(100, 10_000, 4096)


def test_hossain_micro_adds_its_terms(fitted):
    each = forecast_of(fitted["hossain-micro"], configuration("2d", ranks=16, nodes=2))
    terms = dict(each.terms)
    assert each.time_s == pytest.approx(sum(terms.values()))
    assert terms["FMA"] == pytest.approx(2e-11 * 700_000 / 16)
    assert terms["reduce"] == pytest.approx(collective_s("reduce", 4, 2, 8 * 25_000), rel=0.3)


@pytest.mark.parametrize(("rows", "length"), ((40_000, 5), (60_000, 20), (160_000, 64), (320_000, 3)))
def test_the_lines_are_found_again(fitted, rows, length):
    """A law that is linear in rows and entries lies on the lines, and between and beyond them."""
    forecast = forecast_of(fitted["hossain-linear"], configuration("2d"), rows, rows * length)
    assert forecast.time_s == pytest.approx(law_s(rows, rows * length), rel=0.05)
    is_within = dict(forecast.terms)["extrapolated"] == pytest.approx(0)
    assert is_within == (rows <= 160_000 and length <= 32)


@pytest.mark.parametrize("algorithm", ("global-1d", "local-1d", "2d"))
def test_the_regression_finds_the_law_within_its_range(fitted, algorithm):
    model, way = fitted["hossain-svr"], configuration(algorithm)
    for rows, length in ((60_000, 6), (100_000, 3)):
        each = forecast_of(model, way, rows, rows * length)
        assert each.time_s == pytest.approx(law_s(rows, rows * length), rel=0.3)
        assert (each.computation_s, each.communication_s) == (None, None)
    assert dict(forecast_of(model, way, 10**8, 10**9).terms)["features_beyond"] > 0


def lru_misses(accesses, capacity, others=0.0):
    """Count the misses of lines in a cache with LRU, with `others` lines streamed through for each access."""
    cache, misses, owed, streamed = OrderedDict(), 0, 0.0, -1
    for line in accesses:
        misses += line not in cache
        owed += others
        new = [line] + [streamed - k for k in range(int(owed))]
        streamed -= int(owed)
        owed -= int(owed)
        for each in new:
            cache[each] = None
            cache.move_to_end(each)
            if len(cache) > capacity:
                cache.popitem(last=False)
    return misses


@pytest.mark.parametrize("lines", (50, 400, 2000))
def test_cold_misses_are_those_of_a_run_through_the_cache(lines):
    accesses = np.random.default_rng(1).integers(0, lines, 3000)
    found = float(CacheShare(200.0).cold_misses(np.array([3000.0]), np.array([float(lines)]))[0])
    assert found == pytest.approx(lru_misses(accesses.tolist(), 200), rel=0.05)


@pytest.mark.parametrize("others", (0.0, 1.5))
@pytest.mark.parametrize("lines", (400, 2000))
def test_warm_misses_are_those_of_products_one_after_another(lines, others):
    accesses = np.random.default_rng(1).integers(0, lines, 3000).tolist()
    again = lru_misses(accesses * 3, 200, others) - lru_misses(accesses * 2, 200, others)
    found = CacheShare(200.0).warm_misses(*np.array([[3000.0], [float(lines)], [others]]))
    assert found == pytest.approx(again, rel=0.1)


def test_a_share_of_memory():
    memory = Memory([m for m in speeds() if m.kind == "triad" and not m.is_oversubscribed])
    size = np.array([4096.0])
    assert memory.share(8, size)[0] == pytest.approx(BANDWIDTH / 8)
    assert memory.share(16, size)[0] == pytest.approx(BANDWIDTH / 16)
    shares = [float(memory.share(k, size)[0]) for k in range(1, 30)]
    assert all(one >= other * (1 - 1e-12) for one, other in itertools.pairwise(shares))
    few = Memory([microbenchmark("triad", 8, 1, 4096, 4096 / 1e10)])
    assert few.share(1, size)[0] == pytest.approx(2e10)


@pytest.fixture(scope="module")
def random_products():
    """Measured products of random matrices in 2D."""
    counts = itertools.product((40_000, 80_000, 160_000), (1, 2, 4, 6, 8, 12, 16, 24, 32))
    return [
        record(configuration("2d"), rows, rows * length, law_s(rows, rows * length), f"r:{rows}-{length}")
        for rows, length in counts
    ]


def test_the_lines_learn_from_random_matrices_alone(random_products):
    of_users = [replace(each, suite="user") for each in random_products]
    model, way = CLUSTER_MODELS.get("hossain-linear"), configuration("2d")
    with pytest.raises(ProfileError, match="calibrate --ranks --suites hossain"):
        model().fit(training(*of_users))
    misleading = [replace(each, time_s=9 * each.time_s) for each in of_users]
    alone, beside = (
        forecast_of(model().fit(training(*random_products, *others)), way) for others in ((), misleading)
    )
    assert alone == beside


@pytest.mark.parametrize("name", ("hossain-linear", "hossain-svr"))
def test_papers_of_ranks_have_a_mode_as_printed(name, random_products):
    made = (CLUSTER_MODELS.get(name)(as_printed=mode) for mode in (False, True))
    ours, printed = (
        forecast_of(model.fit(training(*random_products)), configuration("2d")) for model in made
    )
    assert ours.time_s != printed.time_s
    assert printed.time_s == pytest.approx(law_s(100_000, 700_000), rel=0.4)


def test_the_regression_needs_the_deviation_of_the_row_lengths(random_products):
    uncounted = [replace(each, deviation=None) for each in random_products]
    with pytest.raises(ProfileError):
        CLUSTER_MODELS.get("hossain-svr")().fit(training(*uncounted))
    model = CLUSTER_MODELS.get("hossain-svr")().fit(training(*random_products, *uncounted))
    way = configuration("2d")
    assert model.lacking(way, asked(way)) is None
    assert "deviation" in model.lacking(way, asked(way, deviation=None))
