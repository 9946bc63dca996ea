"""The roofline: nothing but bytes and the bandwidths that were measured."""

import dataclasses

import numpy as np
import pytest

from sparsecast.errors import ProfileError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks, StripStatistics
from sparsecast.formats import FORMATS
from sparsecast.matrices.gallery import gallery
from sparsecast.models.roofline import Roofline
from sparsecast.models.training import TrainingSet
from sparsecast.records import Bandwidth, Candidate

#: Bytes of arrays, and bytes a second.
READ = {1 << 14: 4e9, 1 << 18: 6.4e10, 1 << 24: 3.2e10, 1 << 27: 8e9}
A = gallery("poisson2d", n=40)


def stream(size, per_s, threads=1, kind="read"):
    return Bandwidth(kind, "cpu", threads, size, size / per_s, 0.0, "2026-01-01T00:00:00", "made up")


@pytest.fixture(scope="module")
def training(recorded):
    records = tuple(recorded.select(dtype="float64", threads=1))
    others = stream(1 << 20, 1e12, threads=2), stream(1 << 20, 1e12, kind="copy")
    reads = [stream(*read) for read in READ.items()]
    return TrainingSet(recorded.machine, records, recorded.matrices, (*reversed(reads), *others))


@pytest.fixture(scope="module")
def model(training):
    return Roofline().fit(training)


def csr(**changes):
    return dataclasses.replace(Candidate("csr", "plain", "cpu", "float64", 32, 1), **changes)


def test_a_product_takes_its_bytes_at_the_bandwidth_of_as_many(model):
    [forecast] = model.forecast(structure(A), [csr()])
    moved = 12 * A.nnz + 4 * (A.shape[0] + 1) + 16 * A.shape[0]
    assert forecast.bytes == moved and 1 << 14 < moved < 1 << 18
    sizes, speeds = np.log(list(READ)), np.log(list(READ.values()))
    assert moved / forecast.time_s == pytest.approx(np.exp(np.interp(np.log(moved), sizes, speeds)))
    assert forecast.low_s < forecast.time_s < forecast.high_s
    assert dict(forecast.why)["x"] == pytest.approx(8 * A.shape[1] / moved * forecast.time_s)


@pytest.mark.parametrize("size, per_s", [(1, 4e9), *READ.items(), (1 << 40, 8e9)])
def test_measured_sizes_have_their_bandwidths_and_beyond_them_the_last(model, size, per_s):
    assert model._bandwidth(np.array([float(size)])) == pytest.approx(per_s)


def test_times_of_products_change_nothing(training, model):
    slower = [dataclasses.replace(record, time_s=7 * record.time_s) for record in training.records]
    other = Roofline().fit(dataclasses.replace(training, records=tuple(slower)))
    blocks = RowBlocks.of(structure(A))
    for name in FORMATS.names():
        candidate = csr(format=name, kernel=name)
        if model.serves(candidate):
            assert other.values(candidate, blocks) == model.values(candidate, blocks)
    assert {"csr", "sell", "hyb", "symmetric_csr"} <= set(model.formats())


def test_blocks_take_together_what_the_matrix_takes(model):
    strips = StripStatistics.of(A.indptr, structure(A), 32)
    first = np.arange(strips.strips)
    parts = model.terms(csr(), strips.blocks(first, first + 1))
    whole = model.terms(csr(), RowBlocks.of(structure(A)))
    assert sum(parts["x"] + parts["y"]) == pytest.approx(whole["x"] + whole["y"], rel=0.01)
    assert sum(parts["time_s"]) == pytest.approx(whole["time_s"], rel=0.1)  # each has the end of its rows


def test_several_vectors_share_the_matrix(model):
    one, eight = (model.terms(csr(vectors=k), RowBlocks.of(structure(A))) for k in (1, 8))
    assert one["time_s"] < eight["time_s"] < 8 * one["time_s"]


def test_without_bandwidths_of_its_threads_there_is_no_roof(training):
    of_two = tuple(b for b in training.bandwidths if b.threads == 2)
    with pytest.raises(ProfileError):
        Roofline().fit(dataclasses.replace(training, bandwidths=of_two))
