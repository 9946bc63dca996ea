"""Transfers to other types of values and other numbers of threads: costs, intervals, and what is tried."""

import dataclasses
import math

import numpy as np
import pytest

from sparsecast.devices.target import Target, whole_matrix
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import Cache
from sparsecast.matrices.gallery import gallery
from sparsecast.models import MODELS
from sparsecast.models.fitting import LEAST_RANKED
from sparsecast.models.linear import LinearModel
from sparsecast.models.model import HELD_OUT_SUITE
from sparsecast.models.training import TrainingSet
from sparsecast.models.transfer import Setting, Transfer, TransferredForecaster, transfer_errors, widening
from sparsecast.records import Bandwidth, Parameters

DOUBLE, COMPLEX = Setting("float64", 1), Setting("complex128", 1)

#: Of which a matrix of some kilobytes is nearly all beyond the last.
TINY_CACHES = (Cache(1, 64, 1), Cache(2, 128, 1), Cache(3, 1024, 2))


@pytest.fixture(scope="module")
def physics(training):
    return LinearModel().fit(training)


@pytest.fixture(scope="module")
def even(of_lengths):
    """A thousand rows of 50 entries."""
    return of_lengths([50] * 1000)


def with_only(physics, kind, training, caches=None, cores=4):
    """Return the physics with one cost, and its training set, on a machine with these caches and cores."""
    caches = caches or training.machine.caches
    machine = dataclasses.replace(training.machine, caches=caches, cores=cores, threads=2 * cores)
    other = LinearModel().restored(physics.to_state())
    kinds = {*physics.costs_.costs["csr"], *(f"bytes beyond L{c.level}" for c in caches if c.level > 1)}
    kinds |= {f"lines of x beyond L{c.level}" for c in caches}
    costs = {"csr": {each: 1e-9 * (each == kind) for each in kinds}}
    other.machine_, other.costs_ = machine, dataclasses.replace(other.costs_, machine=machine, costs=costs)
    return other, dataclasses.replace(training, machine=machine)


def reads(threads, speed):
    """Return the bandwidths of a read beyond each of TINY_CACHES, `speed` times those of one thread."""
    sizes = (100 * threads, 300 * threads, 1 << 20)
    return tuple(
        Bandwidth("read", "cpu", threads, size, size / (1e9 * number * speed), 0.0, "", "")
        for number, size in zip((4, 2, 1), sizes, strict=True)
    )


def csr(way, setting):
    return way("csr", dtype=setting.dtype, threads=setting.threads)


@pytest.mark.parametrize(
    ("kind", "asked", "ratio"),
    [
        ("start", COMPLEX, 1.0),
        ("rows", COMPLEX, 1.0),
        ("entries", COMPLEX, 9 / 4),
        ("entries", Setting("float32", 1), 1.0),
        ("entries", Setting("complex64", 2), 9 / 8),
        # Of an entry 8 bytes are the value and 4 the index, of a row 8 are y.
        ("bytes beyond L3", COMPLEX, 20 / 12),
        ("bytes beyond L3", Setting("float32", 1), 8 / 12),
        ("start", Setting("float64", 2), 1.0),
        ("rows", Setting("float64", 2), 1 / 2),
        ("bytes beyond L3", Setting("float64", 2), 1 / 1.25),
        ("bytes beyond L3", Setting("complex128", 2), 20 / 12 / 1.25),
    ],
)
def test_each_cost_is_carried_over_as_its_kind_is(physics, training, even, way, kind, asked, ratio):
    only, small = with_only(physics, kind, training, TINY_CACHES)
    small = dataclasses.replace(small, bandwidths=(*reads(1, 1.0), *reads(2, 1.25)))
    transfer = Transfer.to(asked, only, small)
    assert transfer.is_measured
    found = float(transfer.ratio(csr(way, asked), RowBlocks.of(even))[0])
    assert found == pytest.approx(ratio, rel=0.02 if "bytes" in kind else 1e-12)


def test_entries_in_narrow_storage_are_carried_over_as_those_in_full(physics, training, even, way):
    transfer = Transfer.to(Setting("float64", 2), *with_only(physics, "entries", training))
    narrow = way("csr", threads=2, parameters=Parameters({"values": "one", "columns": 16}))
    assert float(transfer.ratio(narrow, RowBlocks.of(even))[0]) == pytest.approx(1 / 2)


def test_without_bandwidths_threads_stand_for_them_as_far_as_there_are_cores(physics, training):
    only, small = with_only(physics, "bytes beyond L3", training, TINY_CACHES, cores=2)
    small = dataclasses.replace(small, bandwidths=reads(1, 1.0))
    to_four = Transfer.to(Setting("float64", 4), only, small)
    assert not to_four.is_measured and set(to_four.beyond.values()) == {1 / 2}
    assert Transfer.to(COMPLEX, only, small).is_measured


def test_a_bandwidth_is_that_of_what_lies_beyond_the_level(physics, training):
    only, small = with_only(physics, "start", training, TINY_CACHES)
    one = reads(1, 1.0)
    slower = dataclasses.replace(one[1], threads=2, bytes=600, time_s=600 / 1e9)  # within L3, beyond L2
    others = (reads(2, 0.8)[0], slower, reads(2, 4.0)[2])
    small = dataclasses.replace(small, bandwidths=(*one, *others))
    beyond = Transfer.to(Setting("float64", 2), only, small).beyond
    assert beyond == {1: pytest.approx(1 / 0.8), 2: pytest.approx(2.0), 3: pytest.approx(1 / 4)}


def test_to_the_same_setting_nothing_changes(physics, training):
    transfer = Transfer.to(DOUBLE, physics, training)
    for record in training.records[::23]:
        blocks = RowBlocks.of(training.structure(record))
        assert float(transfer.ratio(record.candidate, blocks)[0]) == pytest.approx(1.0, rel=1e-12)


def test_other_settings_are_ordered_by_what_is_carried_over_worst():
    asked = Setting("complex128", 1)
    nearest = [Setting("complex128", threads) for threads in (1, 2, 4)]
    nearest += [
        Setting(*each) for each in (("complex64", 1), ("float64", 1), ("complex64", 4), ("float32", 2))
    ]
    farthest = nearest[::-1]
    assert sorted(farthest, key=asked.distance) == nearest
    assert asked.changes(Setting("float32", 2)) == {"threads", "precision", "complex"}
    assert asked.changes(Setting("complex64", 1)) == {"precision"}


def test_the_terms_add_up_in_every_model(physics, training, served_model):
    model = MODELS.get(served_model)().fit(training)
    transfer = Transfer.to(COMPLEX, physics, training)
    transferred = TransferredForecaster(model, transfer, 1.5)
    asked = dict.fromkeys(dataclasses.replace(r.candidate, dtype="complex128") for r in training.records)
    structure = training.structure(training.records[-1])
    estimates = transferred.estimates(structure, asked)
    assert {estimate.candidate.format for estimate in estimates} == set(model.formats())
    for estimate in estimates:
        assert estimate.value == pytest.approx(sum(dict(estimate.why).values()), rel=1e-9)
        low, high = model.interval(transfer.measured_as(estimate.candidate), estimate.value, structure)
        assert (estimate.low, estimate.high) == (low / 1.5, high * 1.5)


def test_no_interval_becomes_one_by_being_widened(physics, training, even, way):
    physics = LinearModel().restored(physics.to_state() | {"ratios_": {}})
    transferred = TransferredForecaster(physics, Transfer.to(COMPLEX, physics, training), 2.0)
    (found,) = transferred.estimates(even, [csr(way, COMPLEX)])
    assert (found.low, found.high) == (None, None)


def as_measured(transfer, training, errors):
    """Return held-out Records of the setting asked about whose times a transfer is wrong by these factors."""
    held_out = [r for r in training.records if r.suite == HELD_OUT_SUITE][: len(errors)]
    records = []
    for record, error in zip(held_out, errors, strict=True):
        asked = dataclasses.replace(
            record.candidate, dtype=transfer.asked.dtype, threads=transfer.asked.threads
        )
        ratio = float(transfer.ratio(asked, RowBlocks.of(training.structure(record)))[0])
        time_s = record.time_s * ratio * math.exp(error)
        records.append(dataclasses.replace(record, candidate=asked, time_s=time_s))
    return records


def test_the_widening_is_what_nine_tenths_of_the_tried_transfers_were_within(physics, training):
    transfer = Transfer.to(COMPLEX, physics, training)
    errors = np.linspace(-0.6, 0.5, 49)
    records = as_measured(transfer, training, errors)
    np.testing.assert_allclose(transfer_errors(transfer, training, records), errors, atol=1e-9)
    # One more is within the 45th smallest of 49 with probability 45 / 50.
    assert widening(transfer, training, records) == pytest.approx(math.exp(np.sort(np.abs(errors))[44]))
    assert widening(transfer, training, records[: LEAST_RANKED - 1]) is None


def test_only_transfers_that_change_as_much_are_tried(physics, training):
    of_precision = as_measured(Transfer.to(Setting("float32", 1), physics, training), training, [0.1] * 45)
    of_both = as_measured(Transfer.to(Setting("complex64", 1), physics, training), training, [0.3] * 45)
    to_complex = Transfer.to(COMPLEX, physics, training)
    assert widening(to_complex, training, of_precision) is None
    assert widening(to_complex, training, [*of_precision, *of_both]) == pytest.approx(math.exp(0.3))
    assert widening(to_complex, training, training.records) is None


def test_what_models_are_fitted_to_is_not_tried(physics, training):
    transfer = Transfer.to(COMPLEX, physics, training)
    seen = [r for r in training.records if r.suite != HELD_OUT_SUITE]
    asked = [
        dataclasses.replace(r, candidate=dataclasses.replace(r.candidate, dtype="complex128")) for r in seen
    ]
    assert transfer_errors(transfer, training, asked) == []


def test_wide_indices_are_forecast_from_narrow_ones_with_their_bytes(recorded, physics, training):
    A = gallery("poisson2d", n=300)
    found, machine, forecasts = structure(A), recorded.machine, {}
    assert {record.candidate.index_bits for record in training.records} == {32}
    for bits in (32, 64):
        choice = whole_matrix(found, Target("cpu", "float64", bits, 1), machine)
        forecasts[bits] = {each.candidate.format: each for each in physics.forecast(found, choice.candidates)}
    narrow, wide = forecasts[32]["csr"], forecasts[64]["csr"]
    assert wide.bytes - narrow.bytes == 4 * (A.nnz + A.shape[0] + 1)
    assert wide.time_s > narrow.time_s and wide.high_s > narrow.high_s


def test_measured_float32_is_within_what_float64_forecasts(recorded, physics, training):
    single = TrainingSet.of(recorded, recorded.select(dtype="float32", threads=1, suite=HELD_OUT_SUITE))
    transfer = Transfer.to(Setting("float32", 1), physics, training)
    factor = widening(transfer, training, single.records)
    transferred, held = TransferredForecaster(physics, transfer, factor), []
    for record in single.records:
        for found in transferred.estimates(single.structure(record), [record.candidate]):
            held.append(found.low <= record.time_s <= found.high)
    assert len(held) > LEAST_RANKED and np.mean(held) > 0.85
