"""Other libraries: their products, their threads, what is said of those that are missing."""

import dataclasses
import gc

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import sparsecast as sc
from sparsecast import api
from sparsecast.api.profiles import model_records
from sparsecast.benchmark.run import Calibration
from sparsecast.devices import DEVICES
from sparsecast.devices.target import Target
from sparsecast.errors import FormatError, InputError, MissingLibraryError, UnknownNameError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.formats.libraries import LIBRARIES, chosen_libraries
from sparsecast.formats.libraries import library as libraries
from sparsecast.formats.libraries.library import Library
from sparsecast.machines.machine import detect
from sparsecast.machines.profile import Profile
from sparsecast.matrices.gallery import gallery
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.suites import SuiteMatrix
from sparsecast.measuring.timing import Effort
from sparsecast.models.work import ProductWork

every_library = pytest.mark.parametrize("name", LIBRARIES.names())


def matrix(rows=40, cols=40, seed=1):
    return csr_array(random_array((rows, cols), density=0.1, rng=np.random.default_rng(seed)))


def symmetric():
    return csr_array(matrix() + matrix().T)


def equal(value):
    A = symmetric()
    A.data[:] = value
    return A


@every_library
@pytest.mark.parametrize(
    "A",
    (matrix(50, 30), matrix(30, 50), symmetric(), equal(1.0), equal(2.5), csr_array((4, 6))),
    ids=("tall", "wide", "symmetric", "ones", "equal", "empty"),
)
def test_its_product_is_that_of_the_matrix_in_each_type(name, A):
    library = LIBRARIES.get(name)
    if library.version() is None:
        pytest.skip(f"{name} is not installed")
    for dtype in library.dtypes:
        for bits in library.index_bits:
            B = A.astype(dtype)
            B.indptr, B.indices = B.indptr.astype(f"int{bits}"), B.indices.astype(f"int{bits}")
            x = np.random.default_rng(0).uniform(-1, 1, B.shape[1]).astype(dtype)
            x.flags.writeable = False
            out = np.full(B.shape[0], np.nan, dtype)
            is_one = library.narrow_parameters and B.nnz and np.all(B.data == B.data[0])
            for parameters in ({}, {"values": "one"}) if is_one else ({},):
                product = library.from_csr(B, **parameters).on_threads(2)
                for _ in range(2):
                    product(x, out)
                    np.testing.assert_allclose(out, B @ x, atol=100 * np.finfo(dtype).eps)


def test_a_product_has_its_own_threads_whatever_was_built_after_it():
    called = []

    class Noted(Library):
        name = "noted"

        @classmethod
        def use_threads(cls, threads):
            called.append(threads)

        def product(self):
            return lambda x, out: called.append("product")

    one, two = (Noted.from_csr(matrix()).on_threads(threads) for threads in (1, 2))
    for product in (two, one, one):
        product(np.ones(40), np.ones(40))
    assert called == [1, 2, "product", 1, "product", "product"]


def test_the_process_has_its_threads_again_once_no_product_is_left():
    threads = [8]

    class Shared(Library):
        name = "shared"
        title = "Shared"

        @classmethod
        def use_threads(cls, count):
            threads.append(count)

        @classmethod
        def threads_now(cls):
            return threads[-1]

        def product(self):
            if self.nnz == 0:
                raise self.refused("no entries")
            return lambda x, out: None

    one, two = (Shared.from_csr(matrix()).on_threads(count) for count in (1, 2))
    del one
    assert threads[-1] == 2
    two(np.ones(40), np.ones(40))
    del two
    assert threads[-1] == 8
    with pytest.raises(FormatError):
        Shared.from_csr(csr_array((3, 3))).on_threads(4)
    gc.collect(1)
    assert threads[-1] == 8


def test_mkl_has_its_own_threads_whatever_pytorch_was_given():
    mkl, pytorch = map(LIBRARIES.get, ("mkl", "pytorch"))
    if None in (mkl.version(), pytorch.version()):
        pytest.skip("one of them is not installed")
    A, x, out = matrix(), np.ones(40), np.empty(40)
    one = mkl.from_csr(A).on_threads(1)
    two = pytorch.from_csr(A).on_threads(2)
    two(x, out)
    one(x, out)
    assert mkl.loaded().MKL_Get_Max_Threads() == 1
    mkl.from_csr(A).on_threads(2)
    assert mkl.loaded().MKL_Get_Max_Threads() == 2


class Failing:
    """A library whose function of one name returns a status of failure."""

    def __init__(self, library, name):
        self._library, self._name = library, name

    def __getattr__(self, name):
        return (lambda *given: 3) if name == self._name else getattr(self._library, name)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("mkl", "mkl_sparse_d_mv"),
        ("librsb", "rsb_spmv"),
        *(("graphblas", function) for function in ("GxB_Vector_load", "GrB_mxv")),
    ],
)
def test_a_product_that_fails_is_an_error(name, function, monkeypatch):
    library = LIBRARIES.get(name)
    if library.version() is None:
        pytest.skip(f"{name} is not installed")
    loaded = library.loaded()
    failing = (Failing(loaded[0], function), loaded[1]) if name == "graphblas" else Failing(loaded, function)
    monkeypatch.setattr(library, "load", lambda: failing)
    monkeypatch.setattr(libraries, "_loaded", {})
    product = library.from_csr(matrix()).on_threads(1)
    with pytest.raises(FormatError):
        product(np.ones(40), np.empty(40))


def test_times_of_another_version_of_a_library_are_not_taken_over(calibrated, recorded, monkeypatch):
    library, cpu = LIBRARIES.get("mkl"), DEVICES.get("cpu")
    monkeypatch.setattr(library, "version", classmethod(lambda cls: "2025.1"))
    before = library.kernel_version()
    monkeypatch.setattr(library, "version", classmethod(lambda cls: "2025.2"))
    assert before != library.kernel_version()
    scipy = [r for r in calibrated.records if r.candidate.format == "scipy"]
    older = dataclasses.replace(scipy[0], kernel_version=1, measured_at="2026-01-01T00:00:00+00:00")
    here = dataclasses.replace(
        older,
        kernel_version=LIBRARIES.get("scipy").kernel_version(),
        measured_at="2026-01-02T00:00:00+00:00",
    )
    assert [cpu.is_current(r, is_here=True) for r in (older, here)] == [False, True]
    assert cpu.is_current(older) and cpu.is_current(here)  # another machine may have the older one
    own = [r for r in recorded.select(dtype="float64") if r.candidate.threads == 1]
    target = Target("cpu", "float64", 32, 1, libraries=("scipy",))
    profile = Profile(detect(), (*own, here, older), recorded.matrices)
    used = [r for r in model_records(profile, target) if r.candidate.format == "scipy"]
    assert used == [here]


def test_libraries_are_found_by_name_and_listed_among_no_formats():
    assert not set(LIBRARIES.names()) & {*FORMATS.names(), *DEVICES.get("cpu").kernels.names()}
    assert FORMATS.get("scipy") is LIBRARIES.get("scipy")
    assert DEVICES.get("cpu").kernels.get("scipy").variants == ("csr_matvec",)
    for unknown in ("scipi", "any"):
        with pytest.raises(UnknownNameError):
            FORMATS.get(unknown)


def test_any_is_what_is_installed_and_a_missing_one_is_an_error(monkeypatch):
    monkeypatch.setattr(LIBRARIES.get("mkl"), "version", classmethod(lambda cls: None))
    assert "scipy" in chosen_libraries("any") and "mkl" not in chosen_libraries("any")
    assert chosen_libraries("any", is_here=False) == tuple(LIBRARIES.names())
    assert chosen_libraries("scipy, scipy") == ("scipy",) and chosen_libraries(None) == ()
    assert chosen_libraries("mkl", is_here=False) == ("mkl",)
    with pytest.raises(MissingLibraryError):
        chosen_libraries("scipy,mkl")
    with pytest.raises(UnknownNameError):
        chosen_libraries("scypi")
    with pytest.raises(InputError):
        chosen_libraries("scipy", "cuda")


def test_graphblas_without_narrow_indices_is_missing(monkeypatch):
    monkeypatch.setattr(Library, "version", classmethod(lambda cls: "9.4.5.0"))
    assert LIBRARIES.get("graphblas").version() is None


def test_types_that_a_library_is_not_called_with_are_refused():
    mkl = LIBRARIES.get("mkl")
    mkl.refuse_types("float32", 32, 1)
    for types in (("complex128", 32, 1), ("float64", 64, 1), ("float64", 32, 2)):
        with pytest.raises(FormatError):
            mkl.refuse_types(*types)


@pytest.fixture
def calibrated(recorded, data_folder):
    """This machine's profile: SciPy's records are those of CSR, at a tenth of the time."""
    plain = recorded.select(dtype="float64")
    scipy = [
        dataclasses.replace(
            r,
            candidate=dataclasses.replace(r.candidate, format="scipy", kernel="csr_matvec"),
            time_s=r.time_s / 10,
            kernel_version=1,
        )
        for r in plain
        if r.candidate.format == "csr" and not r.candidate.parameters
    ]
    profile = Profile(detect(), (*plain, *scipy), recorded.matrices)
    profile.save()
    return profile


def test_who_asks_for_no_library_gets_what_a_profile_without_them_says(calibrated, recorded):
    A, own = (
        gallery("poisson2d", n=30),
        dataclasses.replace(calibrated, records=recorded.select(dtype="float64")),
    )
    with_records, without = (
        sc.predict(A, profile, threads=1, drift_correction=False) for profile in (calibrated, own)
    )
    assert with_records.forecasts == without.forecasts
    assert with_records.refused == without.refused


def test_a_library_is_forecast_planned_and_compiled(calibrated):
    A, asked = gallery("poisson2d", n=30), {"threads": 1, "drift_correction": False}
    table = sc.predict(A, calibrated, library="scipy", **asked)
    times = {f.candidate.format: f for f in table}
    scipy, csr = times["scipy"], times["csr"]
    assert scipy.low_s < scipy.time_s < scipy.high_s
    assert scipy.time_s == pytest.approx(csr.time_s / 10, rel=0.3) and scipy.convert_s == 0
    assert {"pytorch", "mkl"}.isdisjoint({*times, *table.refused})

    plan = sc.plan(A, calibrated, library="scipy", products=10**6, probe_s=0, **asked)
    assert [block.candidate.format for block in plan.blocks] == ["scipy"]
    op, x = sc.compile(A, plan), np.linspace(-1, 1, A.shape[1])
    np.testing.assert_allclose(op @ x, A @ x)
    np.testing.assert_allclose(op.T @ x, A.T @ x)
    op.update(2 * A)
    np.testing.assert_allclose(op @ x, 2 * (A @ x))

    report = api.matrix_report(sc.session(calibrated, threads=1, library="scipy"), Problem.of(A))
    assert (
        report.prediction[0].candidate.format == "scipy" and report.plan.blocks[0].candidate.format == "scipy"
    )


def test_one_thread_of_a_serial_library_answers_for_all(calibrated):
    A, ours = gallery("poisson2d", n=30), [r for r in calibrated.records if r.candidate.format != "scipy"]
    on_two = [dataclasses.replace(r, candidate=dataclasses.replace(r.candidate, threads=2)) for r in ours]
    calibrated = dataclasses.replace(calibrated, records=(*calibrated.records, *on_two))
    for threads in (1, 2):
        target = Target("cpu", "float64", 32, threads, libraries=("scipy",))
        table = sc.predict(A, calibrated, threads=threads, library="scipy", drift_correction=False)
        found = {f.candidate.format: f.candidate.threads for f in table}
        assert found["scipy"] == 1 and found["csr"] == threads
        known = {r.candidate.threads for r in model_records(calibrated, target) if target.asks_for(r)}
        assert known == {1, threads}
    both = sc.predict(A, calibrated, threads="auto", library="scipy", drift_correction=False)
    assert sum(f.candidate.format == "scipy" for f in both) == 1
    assert {f.candidate.threads for f in both if f.candidate.format == "csr"} == {1, 2}
    alone = dataclasses.replace(
        calibrated, records=[r for r in calibrated.records if r.candidate.format == "scipy"]
    )
    assert model_records(alone, Target("cpu", "float64", 32, 1, libraries=("scipy",))) == []


def test_a_calibration_measures_a_serial_library_once():
    one, two = (Target("cpu", "float64", 32, n, libraries=("mkl", "scipy")) for n in (1, 2))
    single = dataclasses.replace(one, dtype="float32")
    found = [target.libraries for target in Calibration(detect(), [two, one, single], 20).targets]
    assert found == [("mkl", "scipy"), ("mkl",), ("mkl", "scipy")]


def test_a_short_calibration_measures_the_narrow_storage_of_libraries_which_compile_nothing(data_folder):
    if LIBRARIES.get("graphblas").version() is None:
        pytest.skip("graphblas is not installed")
    target = Target("cpu", "float64", 32, 1, libraries=("graphblas",))
    problem = Problem.named("varied?rows=300&mean_length=4&lengths=fixed&reach=1&values=one")
    matrix = SuiteMatrix(problem, "varied", ("graphblas", "csr"))
    run = Calibration(detect(), [target], 20, effort=Effort(samples=4, sample_s=1e-4))
    measured = run._measure(target, problem, matrix)
    found = {(r.candidate.format, r.candidate.parameters.get("values")) for r in measured}
    assert found == {("csr", None), ("graphblas", None), ("graphblas", "one")}


def test_graphblas_counts_the_work_of_the_threads_that_it_uses():
    graphblas = LIBRARIES.get("graphblas")
    small, large = (structure(gallery("poisson2d", n=n)) for n in (100, 300))
    assert [graphblas.threads_used(of, 2) for of in (small, large)] == [1, 2]
    target, machine = Target("cpu", "float64", 32, 2), detect()
    for of, share in ((small, 2), (large, 1)):
        blocks = RowBlocks.of(of)
        candidate = target.candidate("graphblas", blocks, machine)
        counts = ProductWork(machine).of(candidate, blocks)
        assert counts["rows"] == share * of.rows and counts["entries"] == share * of.nnz


def test_graphblas_stores_one_value_where_a_matrix_has_no_other():
    target, A = Target("cpu", "float64", 32, 1, libraries=("graphblas",)), gallery("poisson2d", n=30)
    assert target.narrow("graphblas", structure(A)) == {}
    A.data[:] = 2.5
    alike = structure(A)
    assert target.narrow("graphblas", alike) == {"values": "one"}
    blocks = RowBlocks.of(alike)
    full, one = (target.format_bytes("graphblas", blocks, p)[0] for p in ({}, {"values": "one"}))
    assert full - one == 8 * (A.nnz - 1)
    with pytest.raises(FormatError):
        LIBRARIES.get("graphblas").from_csr(gallery("poisson2d", n=3), values="one")


def test_measured_with_our_formats_they_stay_out_of_what_is_asked_without_them(calibrated):
    A = gallery("poisson2d", n=30)
    records = sc.measure(A, threads=1, library="scipy")
    [own] = [record for record in records if record.candidate.format == "scipy"]
    assert own.error < 1e-15 and own.convert_s == 0.0 and own.candidate.kernel == "csr_matvec"
    report = api.matrix_report(sc.session(calibrated, threads=1), Problem.of(A))
    assert "csr" in report.measured and "scipy" not in report.measured
    several = sc.measure(A, threads=1, vectors=2, library="scipy", keeps=False)
    assert "scipy" not in {record.candidate.format for record in several}
