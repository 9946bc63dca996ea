"""Plans in another order of rows and columns: when one is tried, and that the faster one is kept."""

import dataclasses

import numpy as np
import pytest

import sparsecast as sc
from sparsecast.benchmark.trials import in_best_order, may_pay
from sparsecast.devices.binding import bind
from sparsecast.devices.product_timer import ProductTimer
from sparsecast.machines.machine import Cache
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.timing import Timing
from sparsecast.results.prediction import Trials


def tried(problem, profile, **asked):
    """Return a plan of which CSR was tried, and is kept."""
    made = sc.plan(problem, profile, threads=1, probe_s=0, **{"products": 10**6, **asked})
    csr = dataclasses.replace(made, blocks=(made.baseline,), trials=Trials(1e-3, 1.0, 0.0, (), 1e-6))
    problem.built[made.baseline.candidate] = bind(problem.matrix, made.baseline.candidate)
    return csr


def test_another_order_is_tried_for_many_products_where_rows_reach_far(recorded):
    problem = Problem.of(sc.gallery("circuit", n=6000))
    made, structure = tried(problem, recorded), problem.structure
    machine = dataclasses.replace(recorded.machine, caches=(Cache(1, 32768, 1),))
    assert may_pay(made, structure, machine)
    assert not may_pay(made, structure, dataclasses.replace(machine, caches=(Cache(1, 8 * 6000, 1),)))
    assert not may_pay(made, structure, dataclasses.replace(machine, caches=()))
    assert not may_pay(dataclasses.replace(made, products=5000), structure, machine)
    for trials in (
        None,
        dataclasses.replace(made.trials, share=0.06),
        dataclasses.replace(made.trials, share=None),
    ):
        assert not may_pay(dataclasses.replace(made, trials=trials), structure, machine)
    wide = Problem.of(problem.matrix[:5000])
    assert not may_pay(made, wide.structure, machine)


@pytest.mark.parametrize(("after_s", "is_kept"), [(0.9e-5, True), (0.99e-5, False)])
def test_the_faster_order_is_kept_as_built_and_updates(recorded, monkeypatch, after_s, is_kept):
    A = sc.gallery("circuit", n=600)
    problem = Problem.of(A)
    made = tried(problem, recorded)
    others = []

    def planned(other):
        others.append(other)
        return tried(other, recorded)

    def time(self, calls, effort):
        return {name: Timing.of((seconds,) * 8) for name, seconds in zip(calls, (1e-5, after_s), strict=True)}

    monkeypatch.setattr(ProductTimer, "time", time)
    best = in_best_order(problem, made, planned)
    [other], x = others, np.random.default_rng(0).uniform(-1, 1, 600)
    np.testing.assert_array_equal(other.matrix.toarray(), A.toarray()[other.order][:, other.order])
    assert (best.order is not None) == is_kept and best.trials.used_s > made.trials.used_s
    assert best.trials.share > made.trials.share and len(best.notes) == len(made.notes) + 1
    if is_kept:
        assert best.time_s == after_s and best.convert_s > made.convert_s
        assert best.blocks[0].time_s == after_s and best.trials.gain_s == pytest.approx(1e-5 - after_s)
    else:
        assert dataclasses.replace(best, notes=made.notes, trials=made.trials) == made
    for subject in (problem, A):  # as built, and built anew
        op = sc.compile(subject, best)
        np.testing.assert_allclose(op @ x, A @ x, rtol=0, atol=1e-12)
        np.testing.assert_allclose(op.T @ x, A.T @ x, rtol=0, atol=1e-12)
        op.update(2 * A)
        np.testing.assert_allclose(op @ x, 2 * A @ x, rtol=0, atol=1e-12)
    if is_kept:
        in_order = sc.compile(other.matrix, dataclasses.replace(best, order=None))
        np.testing.assert_allclose((in_order @ x[best.order]), (A @ x)[best.order], rtol=0, atol=1e-12)
