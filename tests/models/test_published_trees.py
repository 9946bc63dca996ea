"""What is learned from published results: on a made-up machine whose times follow known laws."""

import dataclasses
import json

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparsecast.benchmark.published import published_profiles, summarised
from sparsecast.errors import ProfileError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.data_sheet import published_machines
from sparsecast.models.fitting import fitted_costs, typical_costs
from sparsecast.models.linear import LinearModel
from sparsecast.models.published_trees import (
    LEAST_RESULTS,
    Errors,
    PublishedWork,
    _hybrid,
    _longest_of_several,
    of_matrix,
)
from sparsecast.models.sparsecast import SparsecastModel
from sparsecast.models.training import TrainingSet
from sparsecast.records import Candidate

HEADER = (
    "machine,group,matrix,rows,cols,nnz,rd_min,rd_q1,rd_median,rd_q3,rd_max,rd_variance,"
    "format,time_s,completed"
)


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    """Results of 240 matrices in 60 groups: bytes cost time, and in CSR long rows cost twice.

    A tenth of the times scatters by 4 %, and each twentieth is 20 times too long.
    """
    draw = np.random.default_rng(3)
    lines = [HEADER]
    for number in range(240):
        rows, least = int(10 ** draw.uniform(3, 5.5)), int(draw.integers(2, 40))
        median, longest = 2 * least, 4 * least
        five = (least, least + least // 2, median, 3 * least, longest)
        nnz = int(rows * sum(five) / 5.5)
        matrix = f"G{number % 60},m{number},{rows},{rows},{nnz},{','.join(map(str, five))},{least**2}"
        for name, factor in (("csr", 2.0 if least > 15 else 1.0), ("ell", longest * rows / nnz)):
            time_s = (5e-6 + 1.5e-11 * 12 * nnz * factor) * draw.normal(1, 0.04)
            time_s *= 20 if draw.uniform() < 0.05 else 1
            lines.append(f"M,{matrix},{name},{time_s},True")
    path = tmp_path_factory.mktemp("published") / "published.csv"
    path.write_text("\n".join(lines) + "\n")
    return TrainingSet.of(published_profiles(path)["M"])


def half(training, own):
    chosen = set(training.groups()[own::2])
    return training.where(lambda record: training.group(record) in chosen)


@pytest.fixture(scope="module")
def fitted(training):
    """The model that learned from half of the groups."""
    return SparsecastModel().fit(half(training, 0))


def estimates(model, training):
    return [model.estimates(training.structure(r), [r.candidate])[0] for r in training.records]


def test_other_groups_are_forecast_beside_wrong_results_and_laws_that_no_cost_is_for(fitted, training, off):
    others, linear = half(training, 1), LinearModel().fit(half(training, 0))
    ours, physics = (np.median(off(model, others, others.records)) for model in (fitted, linear))
    assert ours < 0.07 and ours < 0.5 * physics


def test_a_result_in_a_thousandth_of_its_time_changes_no_cost():
    draw = np.random.default_rng(5)
    counts, costs = draw.uniform(0, 1, (200, 3)) * [1, 1e6, 1e4], np.array([4e-6, 2e-12, 3e-10])
    time_s = counts @ costs
    time_s[7] /= 1000
    assert typical_costs(counts, time_s) == pytest.approx(costs, rel=0.05)
    assert fitted_costs(counts, time_s) != pytest.approx(costs, rel=0.2)


def test_last_bits_which_differ_by_processor_do_not_decide_on_costs():
    draw = np.random.default_rng(4)
    counts = draw.uniform(0, 1, (61, 3)) * [1, 1e6, 1e4]
    time_s = counts @ [4e-6, 2e-12, 3e-10] * draw.lognormal(0.0, 0.3, 61)
    costs = typical_costs(counts, time_s)
    for _ in range(20):
        others = counts * (1 + draw.uniform(-2e-16, 2e-16, counts.shape))
        assert typical_costs(others, time_s) == pytest.approx(costs, rel=1e-9)


def test_padding_is_that_of_slices_where_these_are_known(training):
    A = csr_array(np.tril(np.ones((128, 128))))
    known = structure(A, groups=["row_lengths", "slices"])
    drawn = structure(A, groups=["row_lengths"])
    work = PublishedWork(dataclasses.replace(training.machine, gpu=published_machines()["K40m"].gpu))
    sellp = Candidate("sell", "sellp", "cuda", "float64", 32, 1)
    padding = [work.of(sellp, RowBlocks.of(each))["padding"] for each in (known, drawn)]
    assert padding[0] == 64 * (64 + 128) - known.nnz < padding[1]
    assert len(of_matrix(known)) == len(of_matrix(drawn))


def test_intervals_hold_nine_tenths_of_other_groups_and_the_forecast_itself(fitted, training):
    others = half(training, 1)
    found = estimates(fitted, others)
    assert all(each.low <= each.value <= each.high for each in found)
    inside = [e.low <= r.time_s <= e.high for e, r in zip(found, others.records, strict=True)]
    assert 0.83 < np.mean(inside) < 0.98


def test_the_terms_add_up_to_the_forecast(fitted, training):
    for record in training.records[:20]:
        blocks = RowBlocks.of(training.structure(record))
        terms = {name: float(value[0]) for name, value in fitted.terms(record.candidate, blocks).items()}
        time_s = terms.pop("time_s")
        assert "correction" in terms and sum(terms.values()) == pytest.approx(time_s, rel=1e-9)


def test_what_was_learned_comes_back_from_json(fitted, training):
    state = json.loads(json.dumps(fitted.to_state()))
    again = SparsecastModel().restored(state)
    some = dataclasses.replace(training, records=training.records[:20])
    assert estimates(again, some) == estimates(fitted, some)
    with pytest.raises(ValueError):
        SparsecastModel().restored({**state, "published_": {}})


def test_few_results_are_refused_with_their_number(training):
    few = dataclasses.replace(training, records=training.records[: 2 * LEAST_RESULTS - 2])
    with pytest.raises(ProfileError):
        SparsecastModel().fit(few)
    one_group = training.groups()[:1]
    with pytest.raises(ProfileError):
        SparsecastModel().fit(training.of_groups(one_group))


def test_a_kernel_with_few_results_has_no_forecast_beside_others_that_have(training):
    csr = [record for record in half(training, 0).records if record.candidate.format == "csr"]
    ell = [record for record in training.records if record.candidate.format == "ell"]
    model = SparsecastModel().fit(dataclasses.replace(training, records=(*csr, *ell[: LEAST_RESULTS - 1])))
    assert model.formats() == ["csr"]
    assert model.serves(csr[0].candidate) and not model.serves(ell[0].candidate)


def test_errors_are_those_near_a_forecast():
    draw = np.random.default_rng(2)
    log_s = draw.uniform(-12, -6, 4000)
    is_long = log_s > -9
    found = Errors.of(log_s, draw.normal(0, np.where(is_long, 0.1, 0.01)))
    narrow, wide = (np.diff(found.interval(each))[0] for each in (-11.0, -7.0))
    assert narrow == pytest.approx(2 * 1.645 * 0.01, rel=0.4)
    assert wide == pytest.approx(2 * 1.645 * 0.1, rel=0.4)


def test_the_longest_of_several_rows_is_that_of_rows_drawn_at_random():
    levels, lengths = np.arange(10), np.repeat([1, 3, 8], [50, 30, 20])
    share = (lengths[:, None] >= levels).mean(axis=0)
    drawn = np.random.default_rng(0).choice(lengths, size=(4000, 8)).max(axis=1)
    assert _longest_of_several(levels, share)[2] == pytest.approx(drawn.mean(), rel=0.03)


def test_a_hybrid_format_is_divided_as_its_library_does():
    # 3,000 rows, a third with 3 entries, a third with 5, a third with 20.
    line = {"rows": 3000, "cols": 3000, "nnz": 28000, "rd_min": 3, "rd_q1": 3, "rd_median": 5, "rd_q3": 20}
    found = summarised({**line, "rd_max": 20, "rd_variance": 57.6})
    blocks = RowBlocks.of(found)
    stored, beyond, share = _hybrid(blocks, 3.0)
    lengths = found.row_lengths
    assert np.expm1(stored) == pytest.approx(3 * 3000)
    assert np.expm1(beyond) == pytest.approx(28000 - lengths.entries_up_to[3])
    assert share == pytest.approx(np.expm1(beyond) / 28000)
    assert _hybrid(blocks, 1e9)[1] == 0.0


@pytest.mark.parametrize(
    "five", [(0, 0, 0, 0, 0), (5, 5, 5, 5, 5), (0, 0, 0, 1, 900)], ids=["empty", "even", "one long row"]
)
def test_features_are_finite_whatever_the_rows_are(five):
    nnz = {0: 0, 5: 5000, 900: 2000}[five[-1]]
    names = ("rd_min", "rd_q1", "rd_median", "rd_q3", "rd_max")
    line = {"rows": 1000, "cols": 1000, "nnz": nnz, "rd_variance": 0.0, **dict(zip(names, five, strict=True))}
    assert np.isfinite(of_matrix(summarised(line))).all()
    assert np.isfinite(of_matrix(structure(csr_array((0, 0))))).all()
