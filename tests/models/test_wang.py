"""The models of Wang, Gu and Li (2017) against the paper's equations, worked by hand (section 3.2)."""

import dataclasses
import math

import numpy as np
import pytest

from sparsecast.benchmark.experiments import EXPERIMENTS, ExperimentSetting
from sparsecast.errors import ProfileError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.data_sheet import GPU
from sparsecast.machines.machine import Machine, strip_rows, wang_strip
from sparsecast.matrices.families import specification
from sparsecast.models import MODELS
from sparsecast.models.training import TrainingSet
from sparsecast.papers.wang_2017.row_length_model import (
    FIXED_STRIPS,
    THREAD_GRID,
    THRESHOLD,
    VECTOR_GRID,
    wang_matrices,
)
from sparsecast.papers.wang_2017.row_length_model import LENGTHS as DISTRIBUTIONS

DISTRIBUTION = {f"wang-{lengths}": lengths for lengths in DISTRIBUTIONS}
STRIP = strip_rows(None, 1)

#: A GPU whose strips are small: two multiprocessors of four warps.
ON_GPU = Machine(
    *("a processor", "x86_64", 4, 4, (), (), 1 << 34, "Linux", "cuda"),
    gpu=GPU("a device", 2, 4, 32, 1024, 1 << 34, 1 << 20, 1, 1),
)

#: Strips and lengths to which the tests fit, and a law of time that is the paper's saddle surface.
STRIPS, LENGTHS = (1, 5, 10), (4, 32, 256)


def law(x, y):
    return 4e-6 + 3e-6 * y + 2e-9 * x + 5e-7 * x * y


@pytest.fixture(scope="module")
def grid(of_lengths, known, make_record):
    """Give Records of matrices on a grid whose times follow a law, of CSR, ELL and JAD, or of kernels."""

    def make(lengths, law, strip=STRIP, strips=STRIPS, means=LENGTHS, ways=("csr", "ell", "jad"), **fields):
        found = []
        for x in means:
            for y in strips:
                # What a fit reads of a matrix are its rows and non-zeros.
                rows = y * strip
                shape = dataclasses.replace(of_lengths([x]), rows=rows, cols=rows, nnz=x * rows)
                name = specification("row lengths", rows=rows, mean_length=x, lengths=lengths)
                known[name] = shape
                for way in ways:
                    format_name, _, kernel = way.partition(" ")
                    of_way = {"kernel": kernel or "made up", **fields}
                    made = make_record(format_name, shape, law(x, y), "row lengths", **of_way)
                    found.append(dataclasses.replace(made, matrix=name))
        return found

    return make


@pytest.fixture(params=DISTRIBUTION, scope="module")
def model_class(request):
    return MODELS.get(request.param)


@pytest.mark.parametrize("as_printed", [False, True])
@pytest.mark.parametrize("name", ["csr", "ell", "jad"])
def test_a_thread_a_row_is_f_p_plus_g_at_the_longest_row(
    model_class, grid, train, seconds, of_lengths, name, as_printed
):
    model = model_class(as_printed).fit(train(grid(model_class.lengths, law)))
    target = of_lengths([3] * (2 * STRIP) + [50])
    strips = math.ceil(target.rows / STRIP)
    assert strips == 3, "strips are rounded up"
    assert seconds(model, name, target) == pytest.approx(law(50, 3), rel=1e-9)


def test_only_matrices_of_the_own_distribution_count(model_class, grid, train):
    others = [lengths for lengths in DISTRIBUTIONS if lengths != model_class.lengths]
    records = [record for lengths in others for record in grid(lengths, law)]
    without_32 = grid(model_class.lengths, law, means=(4, 256))
    for too_few in (records, without_32):
        with pytest.raises(ProfileError, match=f"{model_class.lengths} row lengths, .*--suites wang"):
            model_class().fit(train(too_few))


def test_ordinary_fits_may_fall_and_relative_ones_do_not(grid, train, seconds, of_lengths):
    def falls(x, y):
        return 1e-3 + 1e-6 * x - 9e-5 * y

    records = grid("normal", falls)
    target = of_lengths([4] * (20 * STRIP))
    ours, printed = (
        MODELS.get("wang-normal")(as_printed).fit(train(records)) for as_printed in (False, True)
    )
    # At 20 strips the printed lines are below 0: the least measured time stands there.
    assert falls(4, 20) < 0
    assert seconds(printed, "csr", target) == pytest.approx(falls(4, 10), rel=1e-9)
    assert seconds(ours, "csr", target) > falls(4, 10)
    assert printed.title == "wang-normal (as printed)" and ours.title == "wang-normal"


@pytest.fixture
def on_gpu(grid, train):
    """Give a model fitted on a GPU with all of the grid of half-warps up to a length."""
    gpu = ON_GPU.gpu

    def fit(law, longest=10**6):
        means = tuple(x for x in VECTOR_GRID[1] if x <= longest)
        records = grid(
            "normal",
            law,
            wang_strip(gpu, "csr-vector"),
            VECTOR_GRID[0],
            means,
            ("csr vector16", "csr scalar"),
            device="cuda",
        )
        records += grid(
            "normal",
            law,
            wang_strip(gpu, "csr-scalar"),
            *THREAD_GRID,
            ("csr scalar", "jad diagonals"),
            device="cuda",
        )
        return MODELS.get("wang-normal")().fit(train(records, ON_GPU))

    return fit


def bent(x, y):
    """Give a product of two lines, the first of which rises less beyond the threshold."""
    over = 2e-3 + 3e-4 * min(x, THRESHOLD) + 1e-4 * max(x - THRESHOLD, 0)
    return over * (1e-3 + 2e-3 * y)


@pytest.mark.parametrize("length", [5, 64, 700])
def test_half_a_warp_a_row_is_t_over_t0_times_e(on_gpu, of_lengths, way, length):
    model, strip = on_gpu(bent), wang_strip(ON_GPU.gpu, "csr-vector")
    # One row in eight is longer: P0 is the mode.
    target = of_lengths([length] * (7 * strip // 8) + [length + 1] * (strip // 8 + 1))
    terms = model.terms(way("csr", "vector16", device="cuda"), RowBlocks.of(target))
    expected = [bent(length, FIXED_STRIPS), bent(64, FIXED_STRIPS), bent(64, 2)]
    assert [float(terms[name][0]) for name in ("T1", "T2", "T3")] == pytest.approx(expected, rel=1e-9)
    assert float(terms["time_s"][0]) == pytest.approx(bent(length, 2), rel=1e-9)


def test_beyond_1024_there_are_lines_of_their_own_where_they_were_measured(on_gpu, of_lengths, way):
    asked, target = way("csr", "vector16", device="cuda"), RowBlocks.of(of_lengths([2500] * 3))
    assert float(on_gpu(bent).values(asked, target)[0]) == pytest.approx(bent(2500, 1), rel=1e-9)
    below = float(on_gpu(bent, THRESHOLD).values(asked, target)[0])
    assert below == pytest.approx((2e-3 + 3e-4 * 2500) * 3e-3, rel=1e-9), "the lines from below go on"


def test_a_gpu_that_holds_few_strips_of_long_rows_has_their_lines_at_the_most_strips(
    grid, train, way, of_lengths
):
    strip, ways = wang_strip(ON_GPU.gpu, "csr-vector"), ("csr vector16",)
    points = [((10, 40), (4, 64)), ((1, 2), (1024, 2048))]
    records = [r for p in points for r in grid("normal", bent, strip, *p, ways, device="cuda")]
    model = MODELS.get("wang-normal")().fit(train(records, ON_GPU))
    candidate = way("csr", "vector16", device="cuda")
    for length in (16, 2500):
        time_s = float(model.values(candidate, RowBlocks.of(of_lengths([length] * 3)))[0])
        assert time_s == pytest.approx(bent(length, 1), rel=1e-9)


def test_a_gpu_has_a_fit_for_each_of_its_two_kernels_of_csr(on_gpu, way):
    model = on_gpu(law)
    assert model.formats() == ["csr", "jad"] and model.kernels("csr") == ("vector16", "scalar")
    assert not model.serves(way("csr", "vector32", device="cuda"))
    assert len(model.grids_["csr vector16"].time_s) == 234, "section 3.1: 18 numbers of strips, 13 lengths"
    assert len(model.grids_["csr scalar"].time_s) == 90, "none of the matrices for half-warps"


def test_the_suite_is_the_papers_grid_and_begins_with_what_a_fit_needs(grid):
    suite = wang_matrices(7_000, ("csr", "ell", "jad"), 6_145)
    names = {matrix.problem.specification for matrix in suite}
    assert len(names) == len(suite) == len(DISTRIBUTIONS) * (90 + 234)
    own = [matrix.problem.specification for matrix in wang_matrices(STRIP, ("csr",))]
    first = {
        specification("row lengths", rows=y * STRIP, mean_length=x, lengths=lengths)
        for x in LENGTHS
        for y in STRIPS
        for lengths in DISTRIBUTIONS
    }
    assert set(own[: len(first)]) == first


def is_skewed(profile, matrix):
    lengths = profile.matrices[matrix].structure.row_lengths
    return lengths.max > 2 * lengths.mean


def test_the_experiment_divides_mean_errors_and_counts_wins(profile_of):
    profile = profile_of(MODELS.get("wang-normal"))
    report = EXPERIMENTS.get("wang-2017")().from_records(profile, ExperimentSetting(dtype="float64"))
    means, wins, times = (table.records() for table in report.tables[:3])
    by_kernel = {(row["kernel"], row["model"]): row for row in means}
    assert not any(kernel == "CSR-V" for kernel, _ in by_kernel), "a processor has no half-warps"
    for row in means:
        fixed = by_kernel[row["kernel"], "wang-fixed"]
        for way in ("ours", "printed"):
            assert row[f"{way}_factor"] == pytest.approx(fixed[way] / row[way])
    for row in wins:
        alike = [t for t in times if t["kernel"] == row["kernel"] and not is_skewed(profile, t["matrix"])]
        errors = {
            model: {t["matrix"]: t[model] for t in alike if t[model] is not None}
            for model in (row["model"], row["against"])
        }
        first, second = errors.values()
        assert row["matrices"] == len(first)
        assert row["ours"] == sum(first[matrix] < second[matrix] for matrix in first)
    assert any(row["ours_factor"] for row in means)


def test_the_reasons_for_the_order_are_errors_at_the_mean_row_and_times_over_rows_of_one_length(profile_of):
    profile = profile_of(MODELS.get("wang-normal"))
    slower = [
        dataclasses.replace(r, time_s=2 * r.time_s) if "lengths=normal" in r.matrix else r
        for r in profile.records
    ]
    profile = dataclasses.replace(profile, records=tuple(slower))
    report = EXPERIMENTS.get("wang-2017")().from_records(profile, ExperimentSetting(dtype="float64"))
    times, over, skew = (table.records() for table in report.tables[2:5])
    assert [row["kernel"] for row in over] == ["CSR-S", "ELL", "JAD"]
    for row in over:
        assert row["points"] > 0
        assert [row["normal"], row["uniform"], row["binomial"]] == pytest.approx([2.0, 1.0, 1.0])
    [row] = [row for row in skew if (row["kernel"], row["model"]) == ("CSR-S", "wang-normal")]
    of_kernel = {time["matrix"] for time in times if time["kernel"] == "CSR-S"}
    assert row["skewed"] == sum(is_skewed(profile, matrix) for matrix in of_kernel) > 0
    training = TrainingSet.of(profile, [r for r in profile.records if r.candidate.dtype == "float64"])
    model, errors = MODELS.get("wang-normal")().fit(training), []
    for time in times:
        if time["kernel"] == "CSR-S" and is_skewed(profile, time["matrix"]):
            shape = profile.matrices[time["matrix"]].structure
            mean = np.array([shape.row_lengths.mean])
            blocks = dataclasses.replace(RowBlocks.of(shape), row_length_max=mean)
            of_matrix = (r.candidate for r in training.records if r.matrix == time["matrix"])
            csr = next(candidate for candidate in of_matrix if candidate.format == "csr")
            forecast_s = float(model.values(csr, blocks)[0])
            errors.append(abs(forecast_s - time["measured_s"]) / time["measured_s"])
    assert len(errors) == row["skewed"]
    assert row["skewed_at_mean"] == pytest.approx(sum(errors) / len(errors))
