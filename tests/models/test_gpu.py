"""The models on Records of a GPU, made up from stated laws of time: no GPU is asked."""

import dataclasses

import pytest

from sparsecast import api
from sparsecast.api import forecasting
from sparsecast.devices import DEVICES
from sparsecast.devices.target import Target
from sparsecast.errors import DeviceError, ProfileError
from sparsecast.features.analysis import structure
from sparsecast.features.narrow_storage import GROUP_ROWS
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats.hyb import HYB, LEAST_ROWS_ON_GPUS
from sparsecast.machines.data_sheet import GPU
from sparsecast.machines.machine import Cache, Machine
from sparsecast.matrices.gallery import gallery
from sparsecast.matrices.synthesis import varied_matrix
from sparsecast.models import MODELS
from sparsecast.models.linear import LEAST_RECORDS, LinearModel
from sparsecast.models.strip_lines import LEAST_SCATTERED
from sparsecast.papers.guo_2014.strip_models import GuoModel
from sparsecast.planning.dynamic_programme import strip_statistics
from sparsecast.planning.plan import Goal, make_plan
from sparsecast.records import Parameters

#: Whose forecasts the intervals are of; only the project's own model looks at it.
MATRIX = structure(varied_matrix(300, 4, "uniform", 1.0, seed=0))

HOST = Machine("a processor", "x86_64", 4, 4, (Cache(3, 1 << 22, 4),), (), 1 << 34, "Linux")
SETTING = Target("cuda", "float64", 32, 1)


def gpu(multiprocessors, warps, lanes=32, l2_bytes=1 << 40):
    described = GPU("a device", multiprocessors, warps, lanes, 1024, 1 << 34, l2_bytes, 1, 1)
    return dataclasses.replace(HOST, device="cuda", gpu=described)


#: So small that its strips are: 4 rows for CSR, 128 for ELL, 128 entries for COO.
SMALL = gpu(1, 4)
ROWS_OF_STRIP = {"csr": 4, "ell": 128}

#: The same, of published results.
THEIRS = dataclasses.replace(SMALL, device="hip")


@pytest.fixture(scope="module")
def gpu_record(make_record):
    def make(format_name, kernel, found, time_s, suite, device="cuda"):
        return make_record(format_name, found, time_s, suite, kernel=kernel, device=device)

    return make


@pytest.fixture(scope="module")
def on_gpu(way):
    """Give a Candidate of the GPU by its format and kernel, in the layout of that device."""

    def make(name, *rest, **fields):
        layout = Parameters(DEVICES.get("cuda").kernels.get(name).layout)
        return way(name, *rest, **{"device": "cuda", "parameters": layout, **fields})

    return make


# Strips.

#: Beyond 1,024 entries a row the time grows a quarter as fast.
CSR_LENGTHS = (4, 64, 1024, 2048, 3072)


def csr_law(x, y):
    return (1e-5 + 2e-7 * min(x, 1024) + 5e-8 * max(x - 1024, 0)) * (1e-3 + 4e-3 * y)


def ell_law(x, y):
    return 3e-6 + 2e-6 * y + 5e-8 * x + 1e-7 * x * y


def coo_law(y):
    return 4e-6 + 3e-7 * y


@pytest.fixture(scope="module")
def guo_records(of_lengths, gpu_record):
    records = []
    for y in (1, 5, 10):
        for x in CSR_LENGTHS:
            found = of_lengths([x] * (4 * y))
            records.append(gpu_record("csr", "vector32", found, csr_law(x, y), "strips"))
            # The paper has no model of the other kernels: whatever they take must not matter.
            records.append(gpu_record("csr", "scalar", found, 1.0, "strips"))
        for x in (4, 16, 64):
            records.append(gpu_record("ell", "columns", of_lengths([x] * (128 * y)), ell_law(x, y), "strips"))
        entry_strips = of_lengths([10 * y] * 128)
        records.append(gpu_record("coo", "segmented", entry_strips, coo_law(10 * y), "entry strips"))
    return records


@pytest.mark.parametrize(
    ("length", "rows", "strips"),
    [(32, 4 * 7, 7), (1000, 4 * 3 - 3, 3), (1024, 8, 2), (1025, 8, 2), (2500, 4 * 12, 12)],
)
def test_csr_has_a_line_on_each_side_of_a_blocks_threads(
    guo_records, of_lengths, length, rows, strips, train, on_gpu, seconds
):
    model = GuoModel().fit(train(guo_records, SMALL))
    found = of_lengths([length] * rows)
    assert seconds(model, on_gpu("csr"), found) == pytest.approx(csr_law(length, strips), rel=1e-9)


def test_without_matrices_beyond_the_threshold_the_line_goes_on(
    guo_records, of_lengths, train, known, on_gpu, seconds
):
    below = [r for r in guo_records if known[r.matrix].row_lengths.max <= 1024]
    found = of_lengths([2048] * 8)
    found_s = seconds(GuoModel().fit(train(below, SMALL)), on_gpu("csr"), found)
    assert found_s == pytest.approx((1e-5 + 2e-7 * 2048) * (1e-3 + 4e-3 * 2), rel=1e-9)


def test_ell_coo_and_hyb_count_their_own_strips(guo_records, of_lengths, train, on_gpu, seconds):
    model = GuoModel().fit(train(guo_records, SMALL))
    assert set(model.formats()) == {"csr", "ell", "coo", "hyb"}
    found = of_lengths([5] * 6000 + [40] * 400)
    blocks = RowBlocks.of(found)
    width, overflow = (int(part[0]) for part in HYB.split(blocks, LEAST_ROWS_ON_GPUS))
    assert (width, overflow) == (5, 35 * 400)
    # 6,400 rows of 128, and 46,000 entries of 128
    laws = {"ell": ell_law(40, 50), "coo": coo_law(360), "hyb": ell_law(5, 50) + coo_law(110)}
    found_s = {name: seconds(model, on_gpu(name), found) for name in laws}
    assert found_s == pytest.approx(laws, rel=1e-9)


def test_hyb_on_a_gpu_is_all_coo_below_4096_rows(guo_records, of_lengths, train, on_gpu):
    model = GuoModel().fit(train(guo_records, SMALL))
    few, enough = (RowBlocks.of(of_lengths([5] * rows)) for rows in (4095, 4096))
    assert model.terms(on_gpu("hyb"), few)["T1"][0] == 0
    assert model.terms(on_gpu("hyb"), enough)["T1"][0] > 0


def test_only_the_papers_kernel_is_forecast(guo_records, of_lengths, train):
    model = GuoModel().fit(train(guo_records, SMALL))
    offered = {record.candidate for record in guo_records}
    forecast = {f.candidate.kernel for f in model.forecast(of_lengths([4] * 40), offered)}
    assert forecast == {"vector32", "columns", "segmented"}


@pytest.mark.parametrize("name", [name for name in MODELS.names() if MODELS.get(name).quantity == "time"])
def test_records_of_a_gpu_need_its_description(guo_records, train, name):
    with pytest.raises(DeviceError, match="'cuda'"):
        MODELS.get(name)().fit(train(guo_records, HOST))


def test_cold_records_are_not_fitted(guo_records, of_lengths, train, on_gpu, seconds):
    cold = [dataclasses.replace(r, regime="cold", time_s=100 * r.time_s) for r in guo_records]
    found = of_lengths([7] * 50)
    for name in ("csr", "ell", "coo"):
        warm = seconds(GuoModel().fit(train(guo_records, SMALL)), on_gpu(name), found)
        assert seconds(GuoModel().fit(train(guo_records + cold, SMALL)), on_gpu(name), found) == warm


# Published results, on no grid.


@pytest.fixture(scope="module")
def scattered(of_lengths, gpu_record):
    """Records of matrices of one row length each, as different as SuiteSparse's; the time is a law's."""
    shapes = [(3, 2), (5, 9), (7, 1), (11, 4), (20, 6), (33, 3), (50, 12), (90, 2), (4, 20), (13, 13)]

    def make(format_name, law):
        rows = ROWS_OF_STRIP[format_name]
        return [
            gpu_record(format_name, "theirs", of_lengths([x] * (rows * y)), law(x, y), "published", "hip")
            for x, y in shapes
        ]

    return make


# The second law is no product of two lines, but at a row length that was measured T1 = T2.
@pytest.mark.parametrize(
    ("name", "law", "shapes"),
    [
        ("csr", csr_law, [(9, 2), (60, 30)]),
        ("csr", ell_law, [(11, 30)]),
        ("ell", ell_law, [(1, 1), (9, 2), (60, 15)]),
    ],
)
def test_off_the_grid_the_law_is_found(scattered, of_lengths, train, on_gpu, seconds, name, law, shapes):
    model = GuoModel().fit(train(scattered(name, law), THEIRS))
    assert model.kernels(name) == (("theirs",) if name == "csr" else ())
    for x, y in shapes:
        found = of_lengths([x] * (ROWS_OF_STRIP[name] * y))
        assert seconds(model, on_gpu(name), found) == pytest.approx(law(x, y), rel=1e-6)


def test_few_matrices_off_the_grid_are_too_few(scattered, train):
    records = scattered("ell", ell_law)[: LEAST_SCATTERED - 1] + scattered("csr", csr_law)
    assert GuoModel().fit(train(records, THEIRS)).formats() == ["csr"]


def test_conversions_that_are_not_known_are_not_free(scattered, of_lengths, train, on_gpu, seconds):
    records = [dataclasses.replace(r, convert_s=None) for r in scattered("ell", ell_law)]
    model = GuoModel().fit(train(records, THEIRS))
    found = of_lengths([3] * 9)
    with pytest.raises(ProfileError, match="no time of a conversion to ell"):
        model.conversion_.seconds(on_gpu("ell"), RowBlocks.of(found))
    (forecast,) = model.forecast(found, [records[0].candidate])
    assert forecast.time_s > 0 and forecast.convert_s is None


# The linear model.

SHAPES = [
    (rows, mean, lengths, reach)
    for rows in (300, 4_000, 40_000)
    for mean in (3, 12)
    for lengths in ("fixed", "mixed", "power")
    for reach in (0.01, 1.0)
]

#: Seconds of a launch, a row, an entry, an entry of padding, and an entry of the longest row.
LAUNCH_S, ROW_S, ENTRY_S, PADDING_S, LONGEST_S = 4e-6, 2e-11, 3e-11, 1e-11, 2e-8


def vector4_law(s):
    return LAUNCH_S + ROW_S * s.rows + ENTRY_S * s.nnz + LONGEST_S * s.row_lengths.max


def balanced_law(s):
    return 2 * LAUNCH_S + 3 * ROW_S * s.rows + 2 * ENTRY_S * s.nnz


def padded_law(s):
    padding = s.rows * s.row_lengths.max - s.nnz
    return LAUNCH_S + ENTRY_S * s.nnz + PADDING_S * padding + LONGEST_S * s.row_lengths.max


LAWS = {("csr", "vector4"): vector4_law, ("csr", "balanced"): balanced_law, ("ell", "columns"): padded_law}


@pytest.fixture(scope="module")
def structures():
    return [structure(varied_matrix(*shape, seed=1), threads=1) for shape in SHAPES]


@pytest.fixture(scope="module")
def unseen():
    return structure(varied_matrix(15_000, 8, "mixed", 0.2, seed=5), threads=1)


@pytest.fixture(scope="module")
def law_records(structures, gpu_record):
    return [gpu_record(*key, s, law(s), "varied") for key, law in LAWS.items() for s in structures]


@pytest.mark.parametrize("key", LAWS)
def test_each_kernel_has_costs_of_its_own(law_records, structures, unseen, key, train, on_gpu, seconds):
    model = LinearModel().fit(train(law_records, SMALL))
    for found in (*structures, unseen):
        expected = LAWS[key](found)
        assert seconds(model, on_gpu(*key), found) == pytest.approx(expected, rel=1e-4)


def test_bytes_beyond_the_second_level_are_charged(structures, gpu_record, train, on_gpu, seconds):
    l2 = 1 << 18
    machine = gpu(1, 4, l2_bytes=l2)

    def law(s):
        streamed = 12 * s.nnz + 4 * (s.rows + 1) + 8 * s.rows
        return LAUNCH_S + 1e-9 * streamed * max(0.0, 1 - l2 / (streamed + 8 * s.cols))

    records = [gpu_record("csr", "vector32", s, law(s), "varied") for s in structures]
    model = LinearModel().fit(train(records, machine))
    for found in structures:
        forecast = seconds(model, on_gpu("csr", "vector32"), found)
        assert forecast == pytest.approx(law(found), rel=1e-4)
    assert model.costs_.costs["csr vector32"]["bytes beyond L2"] == pytest.approx(1e-9, rel=0.01)


def test_a_kernel_with_few_records_is_not_forecast(law_records, unseen, gpu_record, structures, train):
    few = [gpu_record("csr", "scalar", s, 1.0, "varied") for s in structures[: LEAST_RECORDS - 1]]
    model = LinearModel().fit(train(law_records + few, SMALL))
    assert model.kernels("csr") == ("balanced", "vector4")
    offered = {record.candidate for record in law_records + few}
    assert {(f.candidate.format, f.candidate.kernel) for f in model.forecast(unseen, offered)} == set(LAWS)


def test_intervals_are_those_of_the_kernel(law_records, structures, gpu_record, train, on_gpu):
    held_out = [
        gpu_record("csr", kernel, s, ratio * LAWS["csr", kernel](s), "gallery")
        for kernel, ratios in (("vector4", (0.99, 1.01, 1.0)), ("balanced", (0.5, 2.0, 1.0)))
        for s, ratio in zip(structures, ratios, strict=False)
    ]
    model = LinearModel().fit(train(law_records + held_out, SMALL))
    narrow, wide = (model.interval(on_gpu("csr", name), 1.0, MATRIX) for name in ("vector4", "balanced"))
    assert wide[0] < narrow[0] < 1 < narrow[1] < wide[1]
    assert model.interval(on_gpu("ell", "columns"), 1.0, MATRIX) == (None, None)


# Plans.


def test_a_block_is_forecast_with_the_kernel_it_is_planned_with(law_records, train):
    A = varied_matrix(4_000, 8, "fixed", 1.0, seed=2)
    model = LinearModel().fit(train([r for r in law_records if r.candidate.format == "csr"], SMALL))
    statistics = strip_statistics(A.indptr, structure(A), 500)
    plan = make_plan(statistics, model, SETTING, SMALL, Goal(1000))
    for block in plan.blocks:
        assert block.candidate.kernel == "vector4"
        assert block.time_s == pytest.approx(vector4_law(structure(A[block.first_row : block.last_row + 1])))


def test_strips_of_any_gpu_keep_the_groups_of_16_bit_columns_whole(gpu_profile, monkeypatch):
    strips = []

    def noted(indptr, matrix, strip, *others):
        strips.append(strip)
        return strip_statistics(indptr, matrix, strip, *others)

    monkeypatch.setattr(forecasting, "strip_statistics", noted)
    for multiprocessors in (100, 114):  # 6,400 and 7,296 rows
        gpu = dataclasses.replace(gpu_profile.machine.gpu, multiprocessors=multiprocessors)
        machine = dataclasses.replace(gpu_profile.machine, gpu=gpu)
        profile = dataclasses.replace(gpu_profile, machine=machine)
        api.session(profile).plan(gallery("poisson2d", n=60), products=100)
    assert strips == [6_400, 7_424] and 7_424 % GROUP_ROWS == 0
