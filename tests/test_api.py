"""The public face, on small matrices, a recorded profile and this machine's own kernels."""

import dataclasses
import math

import numpy as np
import psutil
import pytest
import scipy.sparse
from scipy.sparse import csr_array

import sparsecast as sc
from sparsecast import api
from sparsecast.api import calibrating, profiles
from sparsecast.benchmark import run as benchmark_run
from sparsecast.devices.binding import prepared
from sparsecast.devices.cpu.processor import Processor
from sparsecast.devices.product_timer import ReferenceProduct, right_hand_side
from sparsecast.devices.target import Target
from sparsecast.errors import DeviceError, InputError, MatrixSizeError, ProfileError, UnknownNameError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import detect
from sparsecast.machines.profile import Profile
from sparsecast.matrices.gallery import gallery_names, gallery_parameters
from sparsecast.measuring import condition_monitor
from sparsecast.records import Bandwidth
from sparsecast.results.columns import same_bits

#: Parameters that keep every gallery matrix small, whichever of them it takes.
SMALL = {"n": 14, "scale": 9}


@pytest.fixture
def own(own_complex):
    return own_complex


def small(name):
    known = gallery_parameters(name)
    return sc.gallery(name, **{key: value for key, value in SMALL.items() if key in known})


@pytest.fixture(name="A", params=gallery_names())
def every_gallery_matrix(request):
    return small(request.param)


@pytest.fixture
def recorded(recorded_complex):
    """Times of all types that the gallery has."""
    return recorded_complex


@pytest.fixture(scope="module")
def mixed():
    """A matrix whose parts ask for different ways: even rows, then long ones among empty ones."""
    lengths = np.concatenate([np.full(4000, 6), np.tile([0, 0, 0, 300], 500)])
    generator = np.random.default_rng(0)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    indices = generator.integers(0, 6000, indptr[-1]).astype(np.int32)
    return scipy.sparse.csr_array((generator.normal(size=indptr[-1]), indices, indptr), (6000, 6000))


def check(matrix, op, dtype=None):
    """Compare an operator with the oracle, to what rounding explains."""
    dtype = dtype or matrix.dtype.name
    x = right_hand_side(matrix.shape[1], dtype)
    ready = prepared(matrix, dtype, 8 * matrix.indices.itemsize)
    y = op @ x
    assert y.dtype == dtype
    ReferenceProduct.of(ready, x).check(y, "the operator")
    return y


def test_predict_forecasts_every_format_fastest_first(A, recorded):
    table = sc.predict(A, recorded)
    assert {forecast.candidate.format for forecast in table} | set(table.refused) == set(FORMATS.names())
    assert [f.time_s for f in table] == sorted(f.time_s for f in table)
    assert (table.profile, table.structure.nnz) == (recorded.name, A.nnz)
    assert len(table) == len(list(table)) == len(table[:])
    assert table.predict_s > 0


def test_forecasts_and_plans_of_a_large_matrix_look_at_the_same_sample(recorded):
    A = sc.gallery("circuit", n=260_000)
    table, made = sc.predict(A, recorded, threads=1), sc.plan(A, recorded, threads=1)
    assert sc.structure(A).sampled_nnz is None and 0 < table.structure.sampled_nnz < A.nnz / 3
    (planned,) = (each for each in table if each.candidate == made.baseline.candidate)
    assert planned.time_s == pytest.approx(made.baseline.time_s, rel=1e-9)


def test_predict_takes_the_matrix_type_or_the_named_one(recorded):
    single = sc.gallery("banded", n=50).astype(np.float32)
    assert {f.candidate.dtype for f in sc.predict(single, recorded)} == {"float32"}
    assert {f.candidate.dtype for f in sc.predict(single, recorded, dtype="float64")} == {"float64"}


def test_compile_equals_the_oracle_however_it_is_planned(A, recorded):
    for iterations in (1, 10**7):
        check(A, sc.compile(A, sc.plan(A, recorded, products=iterations)))


def test_a_real_matrix_may_be_asked_for_as_complex(recorded):
    A = small("rmat")
    table = sc.predict(A, recorded, dtype="complex128")
    assert {forecast.candidate.dtype for forecast in table} == {"complex128"}
    assert all(forecast.gflops == 8 * A.nnz / forecast.time_s / 1e9 for forecast in table)
    op = sc.compile(A, sc.plan(A, recorded, dtype="complex128"))
    assert op.dtype == np.complex128
    check(A, op, "complex128")


def test_a_complex_matrix_is_refused_as_a_real_one(recorded):
    A = small("helmholtz2d")
    session = sc.session(recorded, dtype="float64", threads=1)
    for ask in (session.predict, session.plan, session.measure, session.compile, session.choice):
        with pytest.raises(InputError):
            ask(A)
    made = sc.plan(small("poisson2d"), recorded)
    with pytest.raises(InputError):
        sc.compile(A, made)


@pytest.mark.parametrize(
    ("dtype", "computed"),
    [("complex64", "complex64"), ("clongdouble", "complex128"), ("float32", "float32"), ("int8", "float64")],
)
def test_other_types_are_computed_in_the_nearest(dtype, computed):
    A = sc.gallery("banded", n=40).astype(dtype)
    assert {candidate.dtype for candidate in sc.session(threads=1).choice(A).candidates} == {computed}


def test_compile_equals_the_oracle_in_every_format_by_blocks(mixed, recorded):
    made = sc.plan(mixed, recorded, products=10**6)
    block = made.blocks[0]
    names = ["ell", "csr", "coo", "hyb", "csr"]
    bounds = np.linspace(0, 6000, len(names) + 1).astype(int)
    bounds[1] = 1000
    blocks = tuple(
        dataclasses.replace(
            block,
            first_row=int(first),
            last_row=int(last) - 1,
            candidate=_candidate(mixed, first, last, name),
        )
        for name, first, last in zip(names, bounds[:-1], bounds[1:], strict=True)
    )
    check(mixed, sc.compile(mixed, dataclasses.replace(made, blocks=blocks)))


def _candidate(matrix, first, last, name):
    choice = sc.session(threads=1).choice(matrix[first:last])
    return next(candidate for candidate in choice.candidates if candidate.format == name)


def test_compile_refuses_a_plan_for_other_rows(recorded):
    made = sc.plan(sc.gallery("banded", n=50), recorded)
    with pytest.raises(InputError):
        sc.compile(sc.gallery("banded", n=60), made)


@pytest.mark.parametrize("shape", [(0, 4), (0, 0), (5, 4), (5, 0)])
def test_matrices_without_entries_go_all_the_way(recorded, served_models, shape):
    A = scipy.sparse.csr_array(shape)
    for model in served_models:
        assert len(sc.predict(A, recorded, model=model)) > 0
        made = sc.plan(A, recorded, model=model)
    assert np.array_equal(sc.compile(A, made) @ np.ones(shape[1]), np.zeros(shape[0]))


@pytest.mark.parametrize("wrong", [np.eye(3), [[1, 2]], "cant.mtx", None, np.eye(3) * 1j])
def test_what_is_no_sparse_matrix_is_refused(recorded, wrong):
    for question in (sc.predict, sc.plan, sc.structure):
        with pytest.raises(InputError):
            question(wrong, recorded) if question is not sc.structure else question(wrong)


@pytest.mark.parametrize(
    "changes",
    [
        {"threads": 0},
        {"threads": 2},
        {"dtype": "int8"},
        {"dtype": "complex"},
        {"device": "abacus"},
        {"model": "nope"},
    ],
)
def test_what_cannot_be_asked_is_refused(recorded, changes):
    A = sc.gallery("banded", n=40)
    for question in (sc.predict, sc.plan):
        with pytest.raises(InputError):
            question(A, recorded, **changes)


def test_measure_checks_every_result_and_sorts(own):
    A = sc.gallery("rmat", scale=9)
    table = sc.predict(A, own, threads=1)
    records = sc.measure(A, table, name="rmat")
    assert {record.candidate for record in records} == {forecast.candidate for forecast in table}
    assert [record.time_s for record in records] == sorted(record.time_s for record in records)
    [(matrix, suite)] = {(record.matrix, record.suite) for record in records}
    assert matrix.startswith("array?sha256=") and suite == "user"
    assert max(record.error for record in records) <= 1e-14


def test_measure_takes_some_forecasts_or_none(own):
    A = sc.gallery("banded", n=60)
    table = sc.predict(A, own, threads=1)
    assert [r.candidate for r in sc.measure(A, table[:1])] == [table[0].candidate]
    assert [r.candidate for r in sc.measure(A, [table[0].candidate])] == [table[0].candidate]
    assert sc.measure(A, []) == []
    assert {r.candidate.format for r in sc.measure(A, threads=1)} == set(FORMATS.names())


def test_evaluate_sets_every_model_against_the_measurement(own, served_models):
    matrices = ["gallery:banded?n=60", sc.gallery("rmat", scale=8)]
    ticks = []
    found = api.evaluate(matrices, own, threads=1, on_progress=lambda *each: ticks.append(each))
    assert found.profile == own.name
    assert {row.matrix for row in found.rows} == {"gallery:banded?n=60", "matrix 2"}
    assert set(found.models) == {*served_models, "hossain-svr"}
    assert [name for _, _, name in ticks] == ["gallery:banded?n=60", "matrix 2", "gallery:banded?n=60"]
    assert all(0 < done_s <= total_s for done_s, total_s, _ in ticks) and ticks[-1][0] == ticks[-1][1]
    assert all(score.forecast_products > 0 for score in found.models.values())
    for row in found.rows:
        assert row.estimate.candidate == row.record.candidate


@pytest.fixture
def short_calibration(monkeypatch):
    """Let a calibration measure little, however long that takes, and count how often it runs."""
    monkeypatch.setattr(calibrating, "QUICK_BUDGET_S", 12.0)
    monkeypatch.setattr(benchmark_run, "perf_counter", lambda: 0.0)
    effort = dataclasses.replace(benchmark_run.QUICK_EFFORT, samples=2, sample_s=1e-4)
    monkeypatch.setattr(benchmark_run, "QUICK_EFFORT", effort)
    monkeypatch.setattr(Processor, "core_speed", lambda self, threads: None)  # so that all samples count
    monkeypatch.setattr(condition_monitor, "UNUSABLE", math.inf)
    suites = Processor.suites

    def small(self, *about):
        # All that a profile must have are measured in `benchmark/test_run.py`.
        needed = suites(self, *about)[0]
        return [each for each in needed if each.suite == "gallery" or each.entries <= 60_000], []

    monkeypatch.setattr(Processor, "suites", small)
    monkeypatch.setattr(Processor, "measure_bandwidths", lambda self, machine, threads: [])
    runs = []
    inner = benchmark_run.Calibration.run
    monkeypatch.setattr(benchmark_run.Calibration, "run", lambda self: (runs.append(self), inner(self))[1])
    return runs


def test_the_first_question_meets_the_machine_and_says_so(short_calibration, capsys):
    A = sc.gallery("banded", n=60)
    table = sc.predict(A, threads=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "This machine has not been calibrated with 1 thread and float64: calibrating for 12 s first, "
        "after compiling.\n"
    )
    assert table.profile == detect().name
    assert len(short_calibration) == 1
    assert short_calibration[0].budget_s == 12
    assert sc.profile().name == detect().name
    sc.plan(A, threads=1)
    check(A, sc.compile(A, threads=1))
    assert len(short_calibration) == 1, "calibrated once"
    assert capsys.readouterr().err == ""


def test_a_question_that_cannot_be_does_not_meet_the_machine(short_calibration, data_folder):
    A = sc.gallery("banded", n=60)
    for changes in ({"threads": 0}, {"dtype": "int8"}, {"device": "abacus"}):
        with pytest.raises(InputError):
            sc.predict(A, **changes)
    with pytest.raises(InputError):
        sc.plan(A, products=0)
    with pytest.raises(InputError):
        sc.calibrate(1.0)
    assert short_calibration == []
    assert not data_folder.exists()


def test_calibration_measures_the_most_usual_first():
    run = api.calibration(100.0)
    threads = detect().threads
    wanted = [("float64", threads), ("float64", 1), ("float32", threads), ("float32", 1)]
    assert [(s.dtype, s.threads) for s in run.targets] == list(dict.fromkeys(wanted))
    assert [(s.dtype, s.threads) for s in api.calibration(100.0, threads=1, dtype="float32").targets] == [
        ("float32", 1)
    ]


def test_machines_lists_what_can_be_used_and_what_cannot(own):
    path = own.save()
    (path.parent / "broken.parquet").write_bytes(b"junk")
    here, found = api.machines()
    assert here == detect()
    assert found[own.name] == own
    assert isinstance(found["broken"], ProfileError)
    assert profiles.contents(own).startswith("cpu float64 1 thread (")
    assert profiles.contents(Profile(here, ())) == "no records"


def test_a_gpus_profile_is_asked_about_its_gpu(gpu_profile):
    A = sc.gallery("poisson2d", n=60)
    table = sc.predict(A, gpu_profile)
    assert {forecast.candidate.device for forecast in table} == {"cuda"}
    assert list(table) == list(sc.predict(A, gpu_profile, device="cuda"))
    planned = sc.plan(A, gpu_profile)
    assert planned.device == "cuda"
    assert planned.baseline.convert_s > 0, "plain CSR has to travel too"
    assert planned.low_s <= planned.time_s * 1.01 and planned.high_s >= planned.time_s * 0.99


@pytest.mark.parametrize(
    "changes",
    [
        {"threads": 2},
        {"dtype": "complex128"},
        {"device": "cpu"},
        {"device": "gpu"},
    ],
)
def test_what_a_gpu_cannot_do_is_refused(gpu_profile, changes):
    with pytest.raises(InputError):
        sc.predict(sc.gallery("poisson2d", n=9), gpu_profile, **changes)


def test_a_processors_profile_has_no_gpu(recorded):
    with pytest.raises(ProfileError):
        sc.predict(sc.gallery("poisson2d", n=9), recorded, threads=1, device="cuda")


def test_a_plan_for_several_devices_is_the_one_that_is_done_first(recorded, gpu_profile):
    A = sc.gallery("poisson2d", n=300)
    few, many = (sc.where(A, (recorded, gpu_profile), products=count, threads=1) for count in (1, 10**6))
    assert few.best.device == "cpu" and few.best.transfer_s == 0
    assert many.best.device == "cuda"
    x_and_y_s = 2 * (1e-5 + A.shape[0] * 8 / 2e10)  # as the fixture makes it up
    assert many.best.transfer_s == pytest.approx(x_and_y_s, rel=1e-6)
    assert 1 < many.break_even_products < 10**6


def test_a_device_that_is_too_small_is_left_out_with_its_reason(recorded, gpu_profile):
    A = sc.gallery("poisson2d", n=60)
    gpu = dataclasses.replace(gpu_profile.machine.gpu, memory_bytes=1000)
    small = dataclasses.replace(gpu_profile, machine=dataclasses.replace(gpu_profile.machine, gpu=gpu))
    found = sc.where(A, (recorded, small), threads=1)
    assert [placement.device for placement in found.placements] == ["cpu"]
    assert found.break_even_products is None
    assert list(found.refused) == [small.name] and "expected" in found.refused[small.name]
    with pytest.raises(MatrixSizeError):
        sc.where(A, [small])


def test_ranks_answer_what_is_asked():
    A, cluster = sc.gallery("poisson2d", n=100), ["xeon-gold-6154-edr"]
    for matrix in (A, sc.structure(A)):
        double, single = (sc.where(matrix, cluster, dtype=dtype).best.way for dtype in (None, "float32"))
        assert (double.configuration.dtype, single.configuration.dtype) == ("float64", "float32")
        assert single.time_s < double.time_s
    with pytest.raises(InputError):
        sc.where(A * 1j, cluster, dtype="float64")
    usual, asked = sc.where(A, cluster).best, sc.where(A, cluster, threads=1, library="scipy").best
    assert asked.way.time_s == usual.way.time_s
    [note] = set(asked.notes) - set(usual.notes)
    assert "threads" in note and "library" in note and "model" not in note.partition(";")[0]


def test_what_cannot_count_in_a_place_is_told(gpu_profile):
    A = sc.gallery("poisson2d", n=30)
    for place in ("nvidia-v100", gpu_profile):
        usual, asked = sc.where(A, [place]).best, sc.where(A, [place], library="mkl", threads=3).best
        [note] = set(asked.notes) - set(usual.notes)
        assert "library mkl" in note and "threads 3" in note
        assert asked.way.time_s == usual.way.time_s
    with pytest.raises(UnknownNameError):
        sc.where(A, ["nvidia-v100"], library="mlk")


def have_little_memory(monkeypatch):
    """Have a megabyte of free memory from now on."""
    little = psutil.virtual_memory()._replace(available=1_000_000)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: little)


def test_what_would_not_fit_while_it_is_built_is_refused_before_it_is(recorded, monkeypatch):
    def never(*arguments, **options):
        raise AssertionError("a conversion began")

    A = sc.gallery("poisson2d", n=100)
    planned = sc.plan(A, recorded, threads=1, products=10**6)
    [block] = planned.blocks
    assert block.candidate.format != "csr" and planned.building_bytes >= planned.built_bytes > 0
    more = dataclasses.replace(block, built_bytes=10**9, building_bytes=2 * 10**9)
    large = dataclasses.replace(planned, blocks=(more,))
    monkeypatch.setattr(FORMATS.get(block.candidate.format), "from_csr", never)
    have_little_memory(monkeypatch)
    with pytest.raises(MatrixSizeError):
        sc.compile(A, large)


def test_a_plan_for_this_machine_fits_in_its_free_memory(recorded, data_folder, monkeypatch):
    own = dataclasses.replace(recorded, machine=detect())
    own.save()
    A = sc.gallery("poisson2d", n=300)
    have_little_memory(monkeypatch)
    asked = {"threads": 1, "products": 10**6, "probe_s": 0, "drift_correction": False}
    elsewhere, here = sc.plan(A, recorded, **asked), sc.plan(A, own, **asked)
    assert elsewhere.building_bytes > 1_000_000 and not any("is built" in note for note in elsewhere.notes)
    assert here.building_bytes == 0 and here.blocks == (here.baseline,)
    assert any("is built" in note for note in here.notes)


def test_a_dense_product_is_forecast_by_the_bandwidth_of_the_bytes(recorded):
    def read(size, bandwidth, threads=1, kind="read"):
        return Bandwidth(kind, "cpu", threads, size, size / bandwidth, 0.0, "2026-01-01", "made up")

    reads = (
        read(1_000, 4e10),
        read(100_000, 2e10),
        read(10**6, 1e10),
        read(10**6, 9e9, 2),
        read(9, 1e9, 1, "copy"),
    )
    known, A = dataclasses.replace(recorded, bandwidths=reads), csr_array(np.ones((50, 100)))
    prediction = sc.predict(A, known, threads=1)
    assert (prediction.dense.bytes, prediction.dense.time_s) == (40_000, pytest.approx(40_000 / 2e10))
    assert sc.predict(A, known, threads=1, dtype="float32").dense.time_s == pytest.approx(20_000 / 2e10)
    assert sc.predict(A, recorded, threads=1).dense is None


def test_forecasts_tell_memory_and_bits(recorded, gpu_profile):
    A = sc.gallery("poisson2d", n=60)
    full = [each for each in sc.predict(A, recorded, threads=1) if not each.candidate.parameters]
    found = {each.candidate.format: each for each in full}
    csr, coo = found["csr"], found["coo"]
    assert (csr.built_bytes, csr.building_bytes) == (0, 0)
    assert (coo.built_bytes, coo.building_bytes) == (4 * A.nnz, 4 * A.nnz)
    assert found["hyb"].building_bytes == found["hyb"].built_bytes + 4 * A.shape[0]
    assert same_bits(csr.candidate) == "always" and same_bits(coo.candidate) == "with as many threads"
    assert same_bits(dataclasses.replace(csr.candidate, kernel="of others")) is None
    there = next(each for each in sc.predict(A, gpu_profile) if each.candidate.format == "csr")
    assert same_bits(there.candidate) is None
    assert there.built_bytes == 12 * A.nnz + 4 * (A.shape[0] + 1), "all of it is copied"


def test_what_a_gpu_has_no_memory_for_is_refused_without_one(gpu_profile):
    A = sc.gallery("poisson2d", n=60)
    csr_bytes = 12 * A.nnz + 4 * 3601 + 2 * 8 * 3600

    def with_memory(size):
        gpu = dataclasses.replace(gpu_profile.machine.gpu, memory_bytes=size)
        machine = dataclasses.replace(gpu_profile.machine, gpu=gpu)
        return dataclasses.replace(gpu_profile, machine=machine)

    enough = sc.predict(A, with_memory(csr_bytes))
    assert "csr" in {forecast.candidate.format for forecast in enough}
    assert "would take 0.00 GB with x and y: expected at most the 0.00 GB of Made-up" in enough.refused["coo"]
    assert sc.plan(A, with_memory(csr_bytes)).baseline.time_s > 0
    less = with_memory(csr_bytes - 1)
    assert "csr" in sc.predict(A, less).refused
    with pytest.raises(MatrixSizeError):
        sc.plan(A, less)


def test_a_plan_is_built_and_checked_on_the_device_that_is_named(gpu_profile, monkeypatch):
    selected = []

    def select(index):
        selected.append(index)
        raise DeviceError("no device: expected to get this far")

    A = sc.gallery("poisson2d", n=9)
    planned = sc.plan(A, gpu_profile)
    monkeypatch.setattr("sparsecast.devices.cuda.detect_gpu", select)
    for ask in (api.check, sc.compile):
        with pytest.raises(DeviceError):
            ask(A, planned, device="cuda:1")
        with pytest.raises(InputError):
            ask(A, planned, device="cpu")
    assert selected == [1, 1]


def test_a_plan_whose_blocks_exceed_the_memory_is_none(gpu_profile):
    A = sc.gallery("poisson2d", n=10)
    faster = tuple(
        dataclasses.replace(r, time_s=r.time_s / 4) if r.candidate.format == "ell" else r
        for r in gpu_profile.records
    )
    gpu_profile = dataclasses.replace(gpu_profile, records=faster)
    best = sc.plan(A, gpu_profile, products=10**9)
    assert best.baseline.candidate not in {block.candidate for block in best.blocks}
    target = Target("cuda", "float64", 32, 1)
    blocks = RowBlocks.of(sc.structure(A))
    sizes = {
        name: int(target.format_bytes(name, blocks)[0]) for name in ("csr", best.blocks[0].candidate.format)
    }
    csr, chosen = sizes.values()
    assert chosen > csr, "or there is nothing to test"
    gpu = dataclasses.replace(gpu_profile.machine.gpu, memory_bytes=csr + 2 * 8 * 100)
    machine = dataclasses.replace(gpu_profile.machine, gpu=gpu)
    planned = sc.plan(A, dataclasses.replace(gpu_profile, machine=machine), products=10**9)
    size = sum(int(target.format_bytes(b.candidate.format, blocks)[0]) for b in planned.blocks)
    assert len(planned.blocks) == 1 and size <= csr


@pytest.fixture
def no_gpu(monkeypatch):
    """Nothing that could drive a GPU."""
    monkeypatch.setattr("sparsecast.devices.gpu.launching.cuda", None)


def test_without_a_gpu_nothing_is_started_on_one(no_gpu, short_calibration, capsys, gpu_profile):
    A = sc.gallery("poisson2d", n=9)
    planned = sc.plan(A, gpu_profile)
    for ask in (
        lambda: sc.predict(A, device="cuda"),
        lambda: sc.where(A, "cpu,cuda"),
        lambda: sc.calibrate(60, device="cuda:1"),
        lambda: sc.measure(A, device="cuda"),
        lambda: sc.measure(A, sc.predict(A, gpu_profile)),
        lambda: sc.evaluate([A], device="cuda"),
        lambda: sc.compile(A, planned),
        lambda: sc.profile(device="cuda"),
    ):
        with pytest.raises(DeviceError):
            ask()
    assert short_calibration == []
    assert capsys.readouterr().err == ""
