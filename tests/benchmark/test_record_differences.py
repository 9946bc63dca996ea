"""Two sets of Records: noise is no difference, what is beyond it is found, and kernels are paired."""

import dataclasses

import numpy as np
import pytest

from sparsecast.benchmark.record_files import MergedRecord, MergedRecords, differences
from sparsecast.errors import InputError

PRODUCTS, NOISE = 120, 0.015


def measured(recorded, seed, factors=None, machine="m", noise=NOISE, **changed):
    """Records of PRODUCTS products, whose times and samples differ from run to run as the noise says."""
    rng, template = np.random.default_rng(seed), recorded.records[0]
    records = []
    for number in range(PRODUCTS):
        time_s = (
            1e-6 * (1 + number) * (1.0 if factors is None else factors[number]) * np.exp(noise * rng.normal())
        )
        samples_s = tuple(time_s * (1 + 0.01 * rng.exponential(size=40)))
        candidate = dataclasses.replace(template.candidate, threads=1 + number % 4, **changed)
        record = dataclasses.replace(
            template,
            candidate=candidate,
            matrix=f"gallery:banded?n={1 + number // 4}",
            samples_s=samples_s,
            time_s=float(np.quantile(samples_s, 0.1)),
            noise=0.01 * abs(rng.normal()),
        )
        records.append(MergedRecord(record, machine, "node", f"matrix {number // 4}"))
    return records


def changed(records, **fields):
    return [dataclasses.replace(one, record=dataclasses.replace(one.record, **fields)) for one in records]


def published(records):
    return changed(records, samples_s=(), noise=None)


def merged(*runs):
    return MergedRecords(records=[record for run in runs for record in run])


@pytest.mark.parametrize("runs", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 100, 200])
def test_what_has_not_changed_does_not_differ(recorded, runs, seed):
    one, other = (
        merged(*(measured(recorded, seed + run) for run in range(start, start + runs))) for start in (0, 10)
    )
    found = differences(one, other)
    assert len(found.rows) == PRODUCTS and sum(row.differs for row in found.rows) <= 2
    assert found.mean.low < 1 < found.mean.high or abs(found.mean.ratio - 1) < 0.01
    assert found.failure(0.02) == "" and found.repeats == (0 if runs == 1 else 2 * runs * PRODUCTS)
    if runs > 1:
        assert found.deviation == pytest.approx(NOISE, rel=0.25)


@pytest.mark.parametrize("runs", [1, 3])
def test_what_has_changed_is_found_first_with_its_size_and_the_rest_is_not(recorded, runs):
    factors = np.where(np.arange(PRODUCTS) < 6, 1.2, np.where(np.arange(PRODUCTS) < 10, 0.8, 1.0))
    before = merged(*(measured(recorded, run) for run in range(runs)))
    after = merged(*(measured(recorded, 10 + run, factors) for run in range(runs)))
    found = differences(before, after)
    differing = [row for row in found.rows if row.differs]
    assert found.rows[: len(differing)] == differing and 10 <= len(differing) <= 12
    expected = {(f"matrix {number // 4}", 1 + number % 4): factors[number] for number in range(10)}
    for row in differing[:10]:
        factor = expected.pop((row.matrix, row.candidate.threads))
        assert row.low < factor < row.high and row.samples_a == row.samples_b == 40 * runs
    assert expected == {}
    assert (
        found.slower(0.05) == [row for row in differing if row.ratio > 1.1] and len(found.slower(0.05)) == 6
    )
    assert found.failure(0.05) != "" and found.slower(0.4) == [] and found.failure(0.4) == ""
    assert len(differences(after, before).slower(0.05)) == 4
    [table] = found.differing()
    assert table.rows == differing and "threads" in table.headings and len(found.table().rows) == PRODUCTS


def test_many_small_changes_fail_together(recorded):
    slower = np.full(PRODUCTS, 1.02)  # of one product alone this is within the noise
    found = differences(
        merged(*(measured(recorded, run) for run in range(2))),
        merged(*(measured(recorded, 10 + run, slower) for run in range(2))),
    )
    assert 1.01 < found.mean.low < found.mean.ratio < 1.03
    assert found.slower(0.01) == [] and found.failure(0.01) != "" and found.failure(0.02) == ""


def test_machines_are_compared_with_themselves_or_one_with_one(recorded):
    a, b, c = (measured(recorded, seed, machine=name) for seed, name in enumerate("abc"))
    assert differences(merged(a), merged(b)).across
    found = differences(merged(a, b), merged(b, c))
    assert not found.across and {row.machine for row in found.rows} == {"b"}
    assert (found.only_a, found.only_b) == (PRODUCTS, PRODUCTS)
    with pytest.raises(InputError):
        differences(merged(a, b), merged(c))


def test_another_kernel_of_the_same_product_is_compared_and_several_are_not(recorded):
    before, after = (
        measured(recorded, seed, kernel=kernel) for seed, kernel in ((0, "unrolled"), (1, "vectors"))
    )
    found = differences(merged(before), merged(after))
    assert {row.other_kernel for row in found.rows} == {"unrolled"} and found.only_a == found.only_b == 0
    third = measured(recorded, 2, kernel="masked")
    with pytest.raises(InputError):
        differences(merged(before), merged(after, third))
    assert {row.other_kernel for row in differences(merged(before), merged(before, third)).rows} == {None}


def test_a_file_is_the_same_matrix_in_whatever_folder(recorded):
    sides = []
    for seed, folder in enumerate(("/a", "/b")):
        names = (f"file:{folder}/x.mtx?sha256={number}" for number in range(PRODUCTS))
        run = zip(measured(recorded, seed), names, strict=True)
        sides.append(merged(*(changed([one], matrix=name) for one, name in run)))
    assert len(differences(*sides).rows) == PRODUCTS


def test_of_published_times_most_tell_the_noise_on_one_machine_and_nothing_does_on_two(recorded):
    factors = np.where(np.arange(PRODUCTS) < 6, 1.2, 1.0)
    found = differences(
        merged(published(measured(recorded, 0))), merged(published(measured(recorded, 1, factors)))
    )
    assert found.deviation == pytest.approx(NOISE, rel=0.3) and 6 <= len(found.differing()[0].rows) <= 8
    other = measured(recorded, 1, factors, machine="n")
    found = differences(merged(published(measured(recorded, 0))), merged(published(other)))
    assert len(found.rows) == PRODUCTS and found.deviation is None and found.mean.low is not None
    assert {(row.low, row.high, row.p_value, row.differs) for row in found.rows} == {(None,) * 4}
    assert found.slower(0) == [] and found.failure(0.05) == "" and found.differing() == []
    assert {row.samples_a for row in found.rows} == {0} and len(found.table().cells()) == PRODUCTS


def test_samples_of_one_side_do_not_tell_the_noise_of_the_other(recorded):
    a, b = (changed(measured(recorded, seed, machine=name), noise=None) for seed, name in enumerate("ab"))
    found = differences(merged(a), merged(published(b[:50]), b[50:]))
    assert found.deviation is None
    assert all((row.differs is None) == (row.samples_b == 0) for row in found.rows)
    assert sum(row.samples_b == 0 for row in found.rows) == 50


def test_the_same_compared_with_itself_does_not_differ(recorded):
    one = merged(measured(recorded, 0))
    found = differences(one, one)
    assert not any(row.differs for row in found.rows) and found.mean.ratio == 1
    silent = merged(published(one.records))
    found = differences(silent, silent)
    assert not any(row.differs for row in found.rows) and found.mean.ratio == 1
