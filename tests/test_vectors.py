"""Products with several vectors, and with the transpose: measured, forecast, planned."""

import dataclasses
import math

import numpy as np
import pytest

import sparsecast as sc
from sparsecast import api
from sparsecast.api.profiles import model_records
from sparsecast.devices import DEVICES
from sparsecast.devices.product_timer import ProductTimer
from sparsecast.devices.target import Target, passes
from sparsecast.errors import InputError, WrongResultError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import detect
from sparsecast.machines.profile import MatrixEntry
from sparsecast.matrices.problem import TRANSPOSE_PREFIX, Problem
from sparsecast.models import MODELS
from sparsecast.models.training import TrainingSet
from sparsecast.records import PANEL_VECTORS, Candidate


@pytest.fixture(name="A", scope="module")
def small():
    return sc.gallery("circuit", n=400)


def with_vectors(record, vectors, factor=1.0):
    candidate = dataclasses.replace(record.candidate, vectors=vectors)
    samples_s = tuple(factor * sample for sample in record.samples_s)
    return dataclasses.replace(
        record, candidate=candidate, time_s=factor * record.time_s, samples_s=samples_s
    )


@pytest.mark.parametrize("vectors", [2, PANEL_VECTORS, PANEL_VECTORS + 3])
def test_each_format_is_measured_with_several_vectors_and_forecast_to_stream_the_same(A, recorded, vectors):
    records = sc.measure(A, threads=1, vectors=vectors, keeps=False)
    assert {record.candidate.format for record in records} >= {"csr", "sell", "coo"}
    found = sc.predict(A, recorded, threads=1, vectors=vectors)
    bytes_of = {(f.candidate.format, f.candidate.parameters): f.bytes for f in found}
    rows, cols = A.shape
    for record in records:
        assert record.candidate.vectors == vectors and record.gflops == pytest.approx(
            2e-9 * vectors * A.nnz / record.time_s
        )
        streamed = passes(record.candidate) * record.stored_bytes + 8 * vectors * (rows + cols)
        assert record.traffic_bytes == streamed
        way = record.candidate.format, record.candidate.parameters
        assert bytes_of.get(way, streamed) == pytest.approx(streamed, rel=0.02)
        assert type(record).from_row(record.to_row()) == record
    by_format = {record.candidate.format: passes(record.candidate) for record in records}
    assert by_format["csr"] == -(-vectors // PANEL_VECTORS) and by_format["coo"] == vectors


@pytest.mark.parametrize("wrong", [0, 4, 7])
def test_a_wrong_column_is_found(A, wrong):
    machine = detect()
    target = dataclasses.replace(Target.of(A, machine, 1, None), vectors=8)
    timer = ProductTimer(
        A, sc.session(threads=1, vectors=8).choice(A).candidates[0], DEVICES.get(target.device)
    )

    def product(X, out):
        out[:] = A @ X
        out[0, wrong] += 1

    with pytest.raises(WrongResultError):
        timer.check(product, "wrong")


def test_records_of_several_vectors_are_apart_from_those_of_one(A, recorded):
    several = [with_vectors(record, 8, 100.0) for record in recorded.records]
    both = dataclasses.replace(recorded, records=(*recorded.records, *several))
    how = {"threads": 1, "drift_correction": False}
    for model in ("sparsecast", "linear", "guo"):
        apart, alone = (sc.predict(A, profile, model=model, **how) for profile in (both, recorded))
        assert [(f.candidate, f.time_s, f.low_s) for f in apart] == [
            (f.candidate, f.time_s, f.low_s) for f in alone
        ]
    nothing = dataclasses.replace(recorded, records=tuple(several))
    assert model_records(nothing, Target.on(recorded.machine, "float64", 1)) == []


@pytest.mark.parametrize("model", ["sparsecast", "linear"])
def test_what_several_vectors_take_is_learned_by_format_for_any_number_of_them(A, recorded, model):
    factors = {"csr": 3.0, "sell": 5.0}
    several = [
        with_vectors(r, 8, factors[r.candidate.format])
        for r in recorded.select(dtype="float64", threads=1)
        if r.candidate.format in factors
    ]
    both = dataclasses.replace(recorded, records=(*recorded.records, *several))
    training = TrainingSet.of(both, model_records(both, Target.on(recorded.machine, "float64", 1)))
    of_one = training.where(lambda record: record.candidate.vectors == 1)
    fitted, without = (MODELS.get(model)().fit(each) for each in (training, of_one))
    assert set(fitted.several_) == set(factors)
    structure = sc.structure(sc.gallery("poisson2d", n=100))
    held = []
    for record in several:
        blocks = RowBlocks.of(training.structure(record))
        one, two, eight = (
            float(fitted.values(dataclasses.replace(record.candidate, vectors=n), blocks)[0])
            for n in (1, 2, 8)
        )
        assert one == float(without.values(dataclasses.replace(record.candidate, vectors=1), blocks)[0])
        assert two < eight
        held.append(math.log(record.time_s / eight))
    assert abs(np.median(held)) < 0.05
    eight = [dataclasses.replace(record.candidate, vectors=8) for record in several[:1]]
    (known,), (untried,) = (each.estimates(structure, eight) for each in (fitted, without))
    assert known.high / known.low < untried.high / untried.low


def test_models_of_papers_forecast_no_several_vectors(A, recorded):
    found = sc.predict(A, recorded, threads=1, vectors=8, model="guo", drift_correction=False)
    assert len(found) == 0 and "one vector" in found.refused["csr"]
    with pytest.raises(InputError):
        api.replay(sc.session(recorded, threads=1, vectors=8), models=["guo"])


def test_more_vectors_take_longer_in_all_and_less_time_each(recorded):
    A = sc.structure(sc.gallery("poisson2d", n=400))
    times = {}
    for vectors in (1, 2, 8, 16):
        found = sc.predict(A, recorded, threads=1, vectors=vectors)
        assert found.transferred_from is None
        assert any("too few records of several" in note for note in found.notes) == (vectors > 1)
        times[vectors] = {f.candidate.format: f.time_s for f in found}
    for one, more in ((1, 2), (2, 8), (8, 16)):
        for name in times[one]:
            assert times[one][name] < times[more][name] <= 1.1 * more / one * times[one][name]


def test_a_plan_for_several_vectors_is_built_and_checked(A, recorded):
    own = dataclasses.replace(recorded, machine=detect())
    plan = sc.plan(A, own, threads=1, vectors=4, drift_correction=False)
    assert {block.candidate.vectors for block in plan.blocks} == {4}
    X = np.random.default_rng(0).random((A.shape[1], 4))
    np.testing.assert_allclose(sc.compile(A, plan) @ X, A @ X)
    assert api.check(A, plan).error < 1e-14


def test_impossible_numbers_of_vectors_are_refused(A, recorded, gpu_profile):
    for profile, vectors in ((recorded, 0), (gpu_profile, 2)):
        with pytest.raises(InputError):
            sc.predict(A, profile, vectors=vectors)


def test_the_transpose_is_a_matrix_of_its_own_unless_it_is_the_same():
    problem = Problem.named("gallery:rmat?scale=7")
    transpose = problem.transposed()
    again = Problem.rebuilt(transpose.specification)
    assert again is not None and (again.matrix != problem.matrix.T).nnz == 0
    assert transpose.group == problem.group == again.group and transpose.name != problem.name
    symmetric = Problem.named("gallery:poisson2d?n=9")
    assert symmetric.transposed() is symmetric
    assert Candidate("csr", "k", "cpu", "float64", 32, 1).vectors == 1


def test_a_replay_scores_transposes_and_several_vectors_apart(recorded):
    """Half of the held-out matrices are called transposes here."""

    def turned(record):
        name = f"{TRANSPOSE_PREFIX}{record.matrix}"
        return dataclasses.replace(record, matrix=name) if record.matrix in chosen else record

    held_out = sorted({r.matrix for r in recorded.records if r.suite == "gallery"})
    chosen = set(held_out[::2])
    entries = dict(recorded.matrices)
    for name in chosen:
        new = f"{TRANSPOSE_PREFIX}{name}"
        entries[new] = MatrixEntry(new, f"transpose of {name}", entries[name].structure)
    own = [r for r in recorded.records if r.candidate.threads == 1 and r.candidate.dtype == "float64"]
    eight = [with_vectors(r, 8, 3.0) for r in own if r.candidate.format in ("csr", "sell")]
    profile = dataclasses.replace(
        recorded, records=tuple(turned(r) for r in [*own, *eight]), matrices=entries
    )
    for vectors in (1, 8):
        found = {}
        for transpose in (False, True):
            session = sc.session(profile, threads=1, vectors=vectors)
            rows = api.replay(session, models=["linear"], transpose=transpose).rows
            assert {row.record.candidate.vectors for row in rows} == {vectors}
            found[transpose] = {row.record.matrix for row in rows}
        assert found[True] == {f"{TRANSPOSE_PREFIX}{name}" for name in chosen}
        assert found[False] == set(held_out) - chosen
    how = {"threads": "auto", "drift_correction": False}
    asked = sc.predict(sc.structure(sc.gallery("poisson2d", n=100)), profile, vectors=8, **how)
    assert {f.candidate.format for f in asked} == {"csr", "sell"} and "8 products" in asked.refused["coo"]
