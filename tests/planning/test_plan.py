"""Plans: conversion paid by the products, break-even, intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparsecast.features.analysis import structure
from sparsecast.machines.machine import detect
from sparsecast.matrices.gallery import gallery
from sparsecast.models.model import Model
from sparsecast.planning.candidates import Target
from sparsecast.planning.dynamic_programme import strip_statistics
from sparsecast.planning.plan import make_plan

SETTING = Target("cpu", "float64", 32, 1)
HERE = detect()


class PerRow(Model):
    """A model of fixed seconds a row for each format, and fixed seconds a row to convert."""

    name = "per row"

    def __init__(self, seconds_a_row, conversion_a_row, ratios=None):
        self.costs, self.conversions = seconds_a_row, conversion_a_row
        self.ratios_ = ratios or {}
        self.conversion_ = self

    def _fit(self, training):
        raise AssertionError("this model is never fitted")

    def _state(self):
        raise AssertionError("this model is never stored")

    def _restore(self, learned):
        raise AssertionError("this model is never stored")

    def formats(self):
        return list(self.costs)

    def terms(self, candidate, blocks):
        return {"time_s": self.costs[candidate.format] * blocks.rows.astype(float)}

    def seconds(self, candidate, blocks):
        return self.conversions.get(candidate.format, 0.0) * blocks.rows.astype(float)


def statistics(A, strip_rows=64):
    return strip_statistics(A.indptr, structure(A), strip_rows)


@pytest.fixture(scope="module")
def strips():
    return statistics(gallery("banded", n=640))


def test_a_conversion_that_costs_more_than_it_saves_is_left_alone(strips):
    # COO saves 1 us a row and product, and costs 10 us a row: it pays after ten products.
    model = PerRow({"csr": 3e-6, "coo": 2e-6}, {"coo": 10e-6})
    chosen = {
        iterations: {
            block.candidate.format for block in make_plan(strips, model, SETTING, HERE, iterations).blocks
        }
        for iterations in (1, 9, 11, 12, 10**6)
    }
    # After eleven it is forecast to gain 3 %, less than a plan is changed for.
    assert chosen == {1: {"csr"}, 9: {"csr"}, 11: {"csr"}, 12: {"coo"}, 10**6: {"coo"}}


def test_one_product_converts_nothing_on_a_real_machine(served_fits):
    for model in served_fits:
        plan = make_plan(statistics(gallery("poisson2d", n=200), 1024), model, SETTING, HERE, 1)
        assert {block.candidate.format for block in plan.blocks} == {"csr"}
        assert plan.convert_s == 0
        assert plan.break_even_iterations == 0


def test_break_even_is_the_first_product_that_has_paid(strips):
    model = PerRow({"csr": 3e-6, "coo": 2e-6}, {"coo": 9.5e-6})
    plan = make_plan(strips, model, SETTING, HERE, 1000)
    assert plan.baseline.candidate.format == "csr"
    assert plan.baseline.time_s == pytest.approx(640 * 3e-6)
    assert plan.time_s == pytest.approx(640 * 2e-6)
    assert plan.convert_s == pytest.approx(640 * 9.5e-6)
    assert plan.break_even_iterations == 10
    assert plan.iterations == 1000


@given(
    st.floats(1e-9, 1e-3), st.floats(1e-9, 1e-3), st.floats(1e-9, 1e-2), st.sampled_from((1, 7, 1000, 10**9))
)
def test_a_plan_never_loses_against_plain_csr(strips, csr_s, coo_s, convert_s, iterations):
    plan = make_plan(
        strips, PerRow({"csr": csr_s, "coo": coo_s}, {"coo": convert_s}), SETTING, HERE, iterations
    )
    total = iterations * plan.time_s + plan.convert_s
    assert total <= iterations * plan.baseline.time_s * (1 + 1e-9)
    if plan.convert_s:
        saved = plan.baseline.time_s - plan.time_s
        assert plan.break_even_iterations == math.ceil(plan.convert_s / saved)
        assert plan.break_even_iterations <= iterations + 1
    else:
        assert plan.break_even_iterations == 0


def test_a_plans_interval_is_the_sum_of_its_blocks(strips):
    model = PerRow({"csr": 1e-6}, {}, ratios={"csr": (0.5, 3.0)})
    plan = make_plan(strips, model, SETTING, HERE, 1)
    assert plan.low_s == pytest.approx(0.5 * plan.time_s)
    assert plan.high_s == pytest.approx(3.0 * plan.time_s)


def test_a_plan_without_every_interval_has_none(strips):
    plan = make_plan(strips, PerRow({"csr": 1e-6}, {}), SETTING, HERE, 1)
    assert (plan.low_s, plan.high_s) == (None, None)


def test_the_plans_time_is_the_sum_of_its_blocks(served_fits):
    lengths = np.concatenate([np.full(3000, 4), np.full(40, 900), np.arange(3000) % 9])
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    A = csr_array((np.ones(indptr[-1]), np.zeros(indptr[-1], np.int32), indptr), (len(lengths), 4000))
    for model in served_fits:
        plan = make_plan(statistics(A, 512), model, SETTING, HERE, 10**6)
        assert plan.time_s == pytest.approx(sum(block.time_s for block in plan.blocks))
        assert plan.convert_s == pytest.approx(sum(block.convert_s for block in plan.blocks))
        assert plan.time_s <= plan.baseline.time_s


@pytest.mark.parametrize("shape", [(0, 5), (0, 0), (7, 5), (7, 0)])
def test_a_matrix_without_entries_is_planned(served_fits, shape):
    for model in served_fits:
        plan = make_plan(statistics(csr_array(shape)), model, SETTING, HERE, 100)
        assert 0 < plan.time_s < math.inf
        assert sum(block.last_row + 1 - block.first_row for block in plan.blocks) == shape[0]
