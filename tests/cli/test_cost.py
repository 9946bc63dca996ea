"""sparsecast cost: its document, its table, a run beside it, and what it refuses."""

import json
from dataclasses import replace
from types import SimpleNamespace

import networkx
import numpy as np
import pytest

import sparsecast as sc
from sparsecast.api import applications
from sparsecast.api.applications import RUNS
from sparsecast.devices.cpu.processor import Processor
from sparsecast.errors import InputError
from sparsecast.matrices.gallery import gallery
from sparsecast.models.product_files import PRODUCT_FILES, ProductForecast
from sparsecast.operators.applications.application import (
    PRODUCT,
    Iterations,
    ScipyOperator,
)
from sparsecast.operators.block_operator import BlockOperator
from sparsecast.records import Parameters
from sparsecast.results.application import ApplicationCost, LoopCost

from .conftest import complains

GRAPH, GRID = "gallery:rmat?scale=10", "gallery:poisson2d?n=30"
ONE = ("--threads", "1")

#: Of a graph with weights, whose matrix is divided by their sums, and of one whose weights are alike.
PAGERANK_LOOPS, ALIKE_LOOPS = {"L0", "L1", "L2-L4", "SpMV"}, {"L0", "L1-L4", "SpMV"}
CG_LOOPS = {"start", "curvature", "step", "direction", "SpMV"}


def test_a_known_number_of_iterations_leaves_no_doubt_about_them(run, exact, streaming):
    ten, twenty = (
        exact(run("cost", "pagerank", GRAPH, *ONE, "--iterations", count, "--json"), "cost")
        for count in (10, 20)
    )
    assert ten["iterations"] == {"expected": 10, "low": 10, "high": 10, "tried": 0, "tried_s": 0.0}
    assert ten["trials_s"] == 0.0 and ten["measured"] is None
    assert ten["time_s"] < twenty["time_s"] <= 2 * ten["time_s"]


@pytest.mark.parametrize(
    ("application", "asked", "names"),
    [
        ("pagerank", (GRAPH,), PAGERANK_LOOPS),
        ("cg", (GRID,), CG_LOOPS),
        ("cg", (GRID, "--preconditioner", "jacobi"), CG_LOOPS | {"precondition"}),
    ],
)
def test_a_run_beside_the_forecast_has_the_paper_s_errors(run, exact, streaming, application, asked, names):
    found = exact(run("cost", application, *asked, *ONE, "--check", "--json"), "cost")
    assert found["application"] == application and found["profile"] == streaming.name and found["format"]
    assert found["low_s"] <= found["time_s"] <= found["high_s"] and found["energy_j"] is None
    iterations, loops = found["iterations"], found["loops"]
    assert 1 <= iterations["low"] <= iterations["expected"] <= iterations["high"]
    assert {loop["name"] for loop in loops} == names
    assert sum(loop["share"] for loop in loops) == pytest.approx(1.0)
    iterated_s = sum(loop["runs"] * loop["time_s"] for loop in loops)
    assert found["time_s"] == pytest.approx(found["convert_s"] + iterated_s)
    measured, forecast = found["measured"], {loop["name"]: loop["time_s"] for loop in loops}
    assert measured["stop"] == "converged" and measured["energy_j"] is None
    assert iterations["low"] <= measured["iterations"] <= iterations["high"]
    assert {loop["name"] for loop in measured["loops"]} == names
    mean_s = np.mean([loop["time_s"] for loop in measured["loops"]])  # equation 7
    for loop in measured["loops"]:
        beyond = forecast[loop["name"]] - loop["time_s"]
        assert loop["error"] == pytest.approx(beyond / loop["time_s"])  # equation 5
        assert loop["weighted_error"] == pytest.approx(beyond / mean_s)  # equation 6
    weighted = np.mean([loop["weighted_error"] for loop in measured["loops"]])
    assert measured["weighted_error"] == pytest.approx(weighted)  # equation 8
    terms = {term["name"]: term for term in measured["terms"]}
    assert set(terms) == {"conversion", "product", "hand-off", "vector loops", "iterations"}
    whole_s = measured["time_s"] + measured["convert_s"]
    beyond_s = {name: term["forecast_s"] - term["measured_s"] for name, term in terms.items()}
    assert {name: term["share"] * whole_s for name, term in terms.items()} == pytest.approx(beyond_s)
    assert sum(beyond_s.values()) == pytest.approx(found["time_s"] - whole_s)
    assert measured["whole_error"] == pytest.approx(found["time_s"] / whole_s - 1)
    in_products_s = terms["product"]["measured_s"] + terms["hand-off"]["measured_s"]
    product_s = next(loop["time_s"] for loop in measured["loops"] if loop["name"] == "SpMV")
    assert in_products_s == pytest.approx(measured["iterations"] * product_s)
    assert terms["product"]["measured_s"] == pytest.approx(measured["iterations"] * measured["product_s"])


def test_a_forecast_alone_does_no_product(run, exact, streaming, monkeypatch):
    def refused(self, x, out=None):
        raise AssertionError("a product")

    monkeypatch.setattr(ScipyOperator, "matvec", refused)
    monkeypatch.setattr(BlockOperator, "matvec", refused)
    asked = (*ONE, "--forecast-only", "--json")
    bounded = exact(run("cost", "pagerank", GRAPH, *asked), "cost")["iterations"]
    assert bounded == {"expected": 91, "low": 1, "high": 91, "tried": 0, "tried_s": 0.0}
    unbounded = run("cost", "cg", GRID, *asked)
    assert unbounded.status == 2 and "expected the number of iterations" in unbounded.err
    assert exact(run("cost", "cg", GRID, "--iterations", "20", *asked), "cost")["trials_s"] == 0.0


def test_iterations_that_were_tried_cost_seconds(run, exact, streaming):
    found = exact(run("cost", "cg", GRID, *ONE, "--json"), "cost")
    assert found["iterations"]["tried"] > 0 and found["trials_s"] >= found["iterations"]["tried_s"] > 0


@pytest.mark.parametrize(
    ("iterations", "loops", "expected"),
    [
        ((10, 5, 20), (1.0, 1.0, 1.0), (5, 20)),
        ((10, 10, 10), (1.0, 0.5, 3.0), (5, 30)),
        ((10, 5, 20), (1.0, 0.5, 2.0), (10 / 2**2**0.5, 10 * 2**2**0.5)),
    ],
)
def test_intervals_of_iterations_and_of_products_are_independent(iterations, loops, expected):
    known = Iterations(*iterations, "told")
    cost = ApplicationCost("cg", "p", known, None, (LoopCost(PRODUCT, *loops),), None, (), 0.0)
    assert (cost.low_s, cost.high_s) == pytest.approx(expected)


def test_a_conversion_that_may_take_longer_widens_the_interval():
    known = Iterations(10, 10, 10, "told")
    cost = ApplicationCost(
        "cg", "p", known, None, (LoopCost(PRODUCT, 1.0, 1.0, 1.0),), None, (), 10.0, (5.0, 30.0)
    )
    assert (cost.low_s, cost.high_s) == pytest.approx((15.0, 40.0))
    unknown = replace(cost, loops=(LoopCost(PRODUCT, 1.0, None, 2.0),))
    assert unknown.low_s is None and unknown.high_s >= unknown.time_s


def test_a_run_has_the_joules_of_a_meter_and_none_without_one(run, exact, streaming, monkeypatch):
    asked = ("cost", "pagerank", GRAPH, *ONE, "--iterations", "3", "--check", "--json")
    assert exact(run(*asked), "cost")["measured"]["energy_j"] is None
    readings = iter((5.0, 8.0, 9.0, 9.0))
    meter = SimpleNamespace(joules=lambda: next(readings), run_s=0.0, step_s=0.0, source="replay")
    monkeypatch.setattr(Processor, "meter", lambda self: meter)
    assert exact(run(*asked), "cost")["measured"]["energy_j"] == pytest.approx(3.0 / RUNS)
    assert exact(run(*asked), "cost")["measured"]["energy_j"] is None, "the meter stood still"
    meter.run_s, meter.joules = 1e6, lambda: 1.0
    assert exact(run(*asked), "cost")["measured"]["energy_j"] is None, "too short for the meter"


def test_products_of_a_run_take_the_mean_of_the_samples_not_their_low_quantile(streaming):
    def cost(slower):
        records = [replace(each, samples_s=(each.time_s, slower * each.time_s)) for each in streaming.records]
        question = sc.api.application_question("pagerank", gallery("rmat", scale=10))
        profile = replace(streaming, records=tuple(records))
        found = sc.api.application_cost(sc.session(profile, threads=1), question, iterations=10)
        return {loop.name: loop for loop in found.loops}, found.plan

    (usual, alone), (calm, same) = cost(1.5), cost(1.0)
    assert alone == same  # a plan is of products at full speed
    for end in ("time_s", "low_s", "high_s"):
        slower_s = getattr(usual["SpMV"], end) - getattr(calm["SpMV"], end)
        assert slower_s == pytest.approx(0.25 * getattr(alone, end))
    assert usual["L0"] == calm["L0"]


@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_products_of_a_graph_whose_weights_are_alike_stream_no_values(streaming, weight):
    A = gallery("rmat", scale=15, degree=12)
    A.data[:] = weight
    question = sc.api.application_question("pagerank", A)
    found = sc.api.application_cost(
        sc.session(streaming, threads=1), question, iterations=10_000, measures=False
    )
    assert {block.candidate.parameters.get("values") for block in found.plan.blocks} == {"one"}
    ranked = question.application.ranked(ScipyOperator(question.problem.matrix), 5)
    np.testing.assert_allclose(sc.pagerank(A, plan=found.plan, most=5).ranks, ranked.ranks, rtol=1e-12)


@pytest.mark.parametrize("narrow", [{}, {"values": "one", "columns": 16}])
def test_ranks_are_those_of_networkx_with_and_without_a_plan(streaming, narrow):
    A = gallery("rmat", scale=8)
    A.data[:] = 1 if narrow else np.random.default_rng(3).integers(1, 8, A.nnz, endpoint=True)
    question = sc.api.application_question("pagerank", A, epsilon=1e-12)
    plan = sc.api.application_cost(
        sc.session(streaming, threads=1), question, iterations=10_000, measures=False
    ).plan
    # So small a matrix is forecast to take as long either way.
    [block] = plan.blocks
    plan = replace(
        plan, blocks=(replace(block, candidate=replace(block.candidate, parameters=Parameters(narrow))),)
    )
    expected = networkx.pagerank(networkx.DiGraph(A), max_iter=2000, tol=1e-12 / A.shape[0])
    for given in (None, plan):
        found = sc.pagerank(A, plan=given, epsilon=1e-12, threads=1)
        np.testing.assert_allclose(found.ranks, [expected[k] for k in range(A.shape[0])], atol=1e-11)


def test_edge_lists_are_graphs(run, exact, streaming, tmp_path):
    path = tmp_path / "ring.txt"
    path.write_text("# a ring\n" + "".join(f"{10 * i}\t{10 * ((i + 1) % 50)}\n" for i in range(50)))
    outcome = run("cost", "pagerank", path, *ONE, "--json")
    found = exact(outcome, "cost")
    assert found["matrix"] == "ring"
    assert {loop["name"] for loop in found["loops"]} == ALIKE_LOOPS
    assert "renumbered from 0" in " ".join(outcome.err.split())


def test_a_graph_without_edges_has_equal_ranks_and_says_so(run, streaming, tmp_path):
    path = tmp_path / "empty.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n5 5 0\n")
    outcome = run("cost", "pagerank", path, *ONE, "--check")
    assert outcome.status == 0 and "(converged)" in outcome.out and "in 1 iteration." in outcome.out
    assert "no edges" in " ".join(outcome.err.split())


def test_a_profile_without_bandwidths_has_them_read_here_and_is_refused_where_nothing_is_measured(
    run, exact, calibrated, foreign
):
    found = exact(run("cost", "pagerank", GRAPH, *ONE, "--model", "linear", "--json"), "cost")
    assert {loop["name"] for loop in found["loops"]} == PAGERANK_LOOPS
    assert all(loop["time_s"] > 0 for loop in found["loops"])
    for asked in (("--forecast-only",), ("--profile", foreign)):
        outcome = run("cost", "pagerank", GRAPH, *ONE, *asked)
        assert outcome.status == 2 and "has no bandwidths: expected those of reads" in outcome.err


def test_a_short_run_asks_for_no_plan_and_a_long_one_for_what_is_left(streaming, monkeypatch):
    asked = []
    graph, grid = gallery("rmat", scale=8), gallery("poisson2d", n=30)
    b = np.random.default_rng(0).uniform(-1, 1, grid.shape[0])

    plan = sc.Session.plan

    def planned(self, problem, *, products):
        asked.append(products)
        alike = sc.session(streaming, threads=self.setting.threads)
        return plan(alike, problem, products=products, probe_s=0)

    short = sc.pagerank(graph, epsilon=1e-12, threads=1), sc.cg(grid, b, threads=1)
    assert asked == []
    monkeypatch.setattr(applications, "PLANNING_S", 0.0)
    with monkeypatch.context() as patched:
        patched.setattr(sc.Session, "plan", planned)
        long = sc.pagerank(graph, epsilon=1e-12, threads=1), sc.cg(grid, b, threads=1)
    ranking = sc.api.application_question("pagerank", graph, epsilon=1e-12).application
    assert asked[0] == ranking.iterations().expected - 12 and asked[1] >= 1
    for one, other in zip(short, long, strict=True):
        assert abs(one.iterations - other.iterations) <= 1 and one.stop == other.stop == "converged"
        assert len(other.residuals) >= other.iterations
    np.testing.assert_allclose(short[0].ranks, long[0].ranks, rtol=1e-9)
    np.testing.assert_allclose(short[1].x, long[1].x, rtol=1e-5)
    sc.pagerank(graph, epsilon=1e-12, most=12, threads=1)
    assert len(asked) == 2, "nothing is left"


@pytest.mark.parametrize("b", (np.ones(143), np.ones((144, 1)), np.full(144, "a"), np.ones(144) * 1j))
def test_a_b_of_another_shape_or_type_is_refused(streaming, b):
    with pytest.raises(InputError):
        sc.cg(gallery("poisson2d", n=12), b, threads=1)


@PRODUCT_FILES.register("trained")
def read_trained(problem, profile, path):
    """Read seconds and joules of a product, one of them null."""
    if not path.exists():
        raise InputError(f"{path}: expected a file; name one")
    time_s, energy_j = json.loads(path.read_text())
    return ProductForecast(time_s, energy_j, f"The product by {path.name}.")


def test_networks_forecast_the_product_in_csr_and_the_power_of_all_loops(run, exact, streaming, tmp_path):
    time_file, energy_file = tmp_path / "time.trained", tmp_path / "energy.trained"
    time_file.write_text("[1.0, null]")
    energy_file.write_text("[null, 2.0]")
    asked = ("cost", "pagerank", GRAPH, "--iterations", 10, "--json", "--network", time_file)
    alone = exact(run(*asked), "cost")
    assert alone["format"] == "csr" and alone["power_w"] is None and alone["energy_j"] is None
    both = exact(run(*asked, "--network", energy_file), "cost")
    assert both["power_w"] == pytest.approx(2.0)  # equation 4: joules over seconds of the product
    assert both["energy_j"] == pytest.approx(2.0 * both["time_s"])
    for loop in both["loops"]:
        assert loop["energy_j"] == pytest.approx(2.0 * loop["time_s"])
    [product] = [loop for loop in both["loops"] if loop["name"] == "SpMV"]
    assert product["time_s"] >= 1.0 and product["share"] > 0.99
    assert {"The product by time.trained.", "The product by energy.trained."} <= set(both["notes"])


@pytest.mark.parametrize(
    ("name", "threads"),
    [("absent.trained", 1), ("labels.h5", 1), ("absent.safetensors", 1), ("any.trained", 2)],
)
def test_a_network_that_cannot_be_read_is_one_line(run, streaming, tmp_path, name, threads):
    complains(run("cost", "pagerank", GRAPH, "--threads", threads, "--network", tmp_path / name))
