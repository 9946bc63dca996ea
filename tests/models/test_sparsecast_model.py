"""The project's own model: physics and trees, on Records from a real machine and on made-up ones."""

import json
from dataclasses import replace

import numpy as np
import pytest

from sparsecast.devices.target import Target
from sparsecast.errors import ProfileError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.matrices.gallery import gallery
from sparsecast.measuring.references import reference_bytes
from sparsecast.models.forest import Forest
from sparsecast.models.linear import LEAST_RECORDS, LinearModel
from sparsecast.models.model import from_plain, to_plain
from sparsecast.models.sparsecast import FOREST, SparsecastModel
from sparsecast.planning.dynamic_programme import strip_statistics
from sparsecast.planning.plan import Goal, make_plan
from sparsecast.records import MEMORY, Conditions, Parameters


@pytest.fixture(scope="module", autouse=True)
def all_trees():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FOREST, "n_estimators", 60)
        yield


@pytest.fixture(scope="module")
def fitted(training):
    return SparsecastModel().fit(training)


def slower(record, factor):
    return replace(record, time_s=factor * record.time_s)


def test_a_forest_gives_what_scikit_learn_gives():
    from sklearn.ensemble import ExtraTreesRegressor

    generator = np.random.default_rng(0)
    x, asked = generator.uniform(size=(300, 5)), generator.uniform(-1, 2, size=(50, 5))
    y = np.sin(6 * x[:, 0]) + x[:, 1] * x[:, 2]
    settings = {"n_estimators": 10, "min_samples_leaf": 2, "random_state": 3}
    forest = Forest.grown(x, y, **settings)
    trees = ExtraTreesRegressor(**settings).fit(x, y).estimators_
    theirs = np.median([tree.predict(asked.astype(np.float32)) for tree in trees], axis=0)
    median, spread = forest.median_and_spread(asked)
    np.testing.assert_allclose(median, theirs, rtol=1e-6)
    assert (spread > 0).any() and (spread <= np.ptp(y)).all()
    restored = from_plain(json.loads(json.dumps(to_plain(forest))), Forest)
    assert np.array_equal(restored.median_and_spread(asked), (median, spread))
    assert [each.shape for each in forest.median_and_spread(asked[:0])] == [(0,), (0,)]


#: Samples beside each other in single precision: a threshold between two neighbours has no number of its own.
NEIGHBOURS = np.float32(1) + np.arange(40)[:, None] * np.spacing(np.float32(1))
SCATTERED = np.random.default_rng(0).uniform(-1, 2, size=(300, 4))


@pytest.mark.parametrize(
    ("x", "y", "settings"),
    [
        (NEIGHBOURS, np.arange(40) % 7, {"max_depth": 6}),
        (SCATTERED, SCATTERED.prod(axis=1), {"loss": "absolute_error", "subsample": 0.5, "max_depth": 3}),
    ],
)
def test_boosted_trees_give_what_scikit_learn_gives(x, y, settings):
    from sklearn.ensemble import GradientBoostingRegressor

    settings = {"n_estimators": 30, "random_state": 0, **settings}
    theirs = GradientBoostingRegressor(**settings).fit(x, y).predict(x)
    np.testing.assert_allclose(Forest.boosted(x, y, **settings).mean(x), theirs, rtol=1e-5, atol=1e-7)


def test_trees_of_one_leaf_stand_beside_others():
    x, y = np.arange(8.0)[:, None], np.arange(8.0)
    one = Forest.boosted(x, np.full(8, 5.0), n_estimators=3)
    deep = Forest.boosted(x, y, n_estimators=3, learning_rate=1.0, max_depth=None)
    expected = (one.mean(x) + deep.mean(x)) / 2
    for forests in ([one, deep], [deep, one]):
        np.testing.assert_allclose(Forest.joined(forests).mean(x), expected)
    np.testing.assert_allclose(expected, (5 + y) / 2, rtol=1e-6)


def test_rounded_leaves_are_multiples_and_thresholds_stay():
    x = np.random.default_rng(1).uniform(size=(60, 2))
    trees = Forest.boosted(x, x.sum(axis=1), n_estimators=5)
    rounded = trees.rounded(1 / 8)
    is_leaf = trees.feature < 0
    assert np.array_equal(rounded.number[~is_leaf], trees.number[~is_leaf])
    assert np.all(rounded.number[is_leaf] % 0.125 == 0)
    assert np.abs(rounded.number - trees.number).max() <= 1 / 16


def test_the_trees_learn_what_the_physics_does_not_know(training, off):
    # One format takes twice its time on matrices with long rows: no cost of the physics is for that.
    def is_changed(record):
        return record.candidate.format == "csr" and training.structure(record).row_lengths.mean > 20

    records = [slower(r, 2.0) if is_changed(r) else r for r in training.records]
    changed = replace(training, records=tuple(records))
    asked = [r for r in records if r.candidate.format == "csr"]
    ours, physics = (
        np.median(off(model().fit(changed), changed, asked)) for model in (SparsecastModel, LinearModel)
    )
    assert ours < 0.6 * physics


def test_narrow_storage_is_told_from_full_storage_by_records_of_both(training, off):
    one = Parameters({"values": "one", "columns": 16})
    own = [r for r in training.records if r.candidate.format in ("csr", "sell")]
    narrow = [slower(replace(r, candidate=replace(r.candidate, parameters=one)), 0.5) for r in own]
    both = replace(training, records=(*own, *narrow))
    model = SparsecastModel().fit(both)
    assert all(np.median(off(model, both, records)) < 0.05 for records in (own, narrow))
    without = SparsecastModel().fit(replace(training, records=tuple(own)))
    assert all(without.values(r.candidate, RowBlocks.of(both.structure(r)))[0] > 0 for r in narrow[::9])


def widths(model, training, records):
    """Return high over low of the interval of each Record's Candidate."""
    found = [model.estimates(training.structure(r), [r.candidate])[0] for r in records]
    return np.array([each.high / each.low for each in found])


def test_what_varies_has_wider_intervals_and_the_rest_has_not(training):
    generator, groups = np.random.default_rng(0), training.groups()
    known = training.of_groups(groups[::2])
    disturbed = [
        slower(r, np.exp(generator.normal(0, 0.4))) if r.candidate.format == "coo" else r
        for r in known.records
    ]
    models = [SparsecastModel().fit(each) for each in (known, replace(known, records=tuple(disturbed)))]
    grown = {}
    for name in ("coo", "csr"):
        unseen = training.of_groups(groups[1::2]).where(lambda r, name=name: r.candidate.format == name)
        before, after = (np.log(widths(model, unseen, unseen.records)) for model in models)
        grown[name] = np.median(after / before)
    assert grown["coo"] > 1.3 * grown["csr"]


def test_a_plan_has_the_interval_of_the_forecast(fitted, training):
    A = gallery("poisson2d", n=60)
    statistics = strip_statistics(A.indptr, structure(A), 512)
    made = make_plan(statistics, fitted, Target("cpu", "float64", 32, 1), training.machine, Goal(1))
    (found,) = fitted.estimates(structure(A), [made.baseline.candidate])
    assert len(made.blocks) == 1 and made.blocks[0].candidate == found.candidate
    assert (made.low_s, made.high_s) == pytest.approx((found.low, found.high))


def test_intervals_hold_about_nine_tenths_of_groups_that_were_left_out(training):
    groups = sorted({training.group(record) for record in training.records})
    held, total = 0, 0
    for first in range(3):
        part = set(groups[first::3])
        model = SparsecastModel().fit(training.where(lambda r, part=part: training.group(r) not in part))
        for record in training.records:
            if training.group(record) in part:
                for found in model.estimates(training.structure(record), [record.candidate]):
                    held, total = held + (found.low <= record.time_s <= found.high), total + 1
    assert total > 0.8 * len(training.records) and 0.75 < held / total < 1.0


def test_few_matrices_are_refused_and_a_few_more_tell_no_interval(training):
    own = training.where(lambda r: r.candidate.format == "csr")
    by_group = sorted(own.records, key=own.group)
    few, more = (replace(own, records=tuple(by_group[:n])) for n in (LEAST_RECORDS - 1, LEAST_RECORDS))
    with pytest.raises(ProfileError):
        SparsecastModel().fit(few)
    record = by_group[0]
    (found,) = SparsecastModel().fit(more).estimates(own.structure(record), [record.candidate])
    assert found.value > 0 and (found.low, found.high) == (None, None)


def test_candidates_that_are_asked_about_together_get_what_each_gets_alone(fitted, training):
    first = training.records[0]
    candidates = list(dict.fromkeys(r.candidate for r in training.records if r.matrix == first.matrix))
    found = training.structure(first)
    alone = [fitted.estimates(found, [candidate])[0] for candidate in candidates]
    assert len(candidates) > 3 and fitted.estimates(found, candidates) == alone
    assert fitted.estimates(found, []) == []


def test_a_part_of_the_rows_is_corrected_as_the_whole_matrix_is(fitted):
    A = gallery("poisson2d", n=60)
    found = structure(A)
    candidate = Target("cpu", "float64", 32, 1).candidate("csr", RowBlocks.of(found), fitted.machine_)
    part = strip_statistics(A.indptr, found, 512).blocks(np.array([1]), np.array([3]))
    shares = []
    for blocks in (part, RowBlocks.of(found)):
        terms = fitted.terms(candidate, blocks)
        shares.append(float(terms["correction"][0] / terms["time_s"][0]))
    assert shares[0] == pytest.approx(shares[1], rel=1e-9) and shares[0] != 0.0


def test_the_factors_of_another_matrix_or_fit_are_not_remembered(fitted, training):
    candidate = next(r.candidate for r in training.records if r.candidate.format == "csr")
    found = []
    for n in (60, 30):
        A = gallery("poisson2d", n=n)
        blocks = strip_statistics(A.indptr, structure(A), 128).blocks(np.array([1]), np.array([3]))
        found.append((blocks, fitted.values(candidate, blocks)[0]))
    other = SparsecastModel().restored(fitted.to_state())
    for blocks, value in found:
        assert other.values(candidate, blocks)[0] == fitted.values(candidate, blocks)[0] == value


def test_no_forecast_is_shorter_than_reading_from_memory_what_is_beyond_the_last_cache(training, fitted, way):
    large = max((training.structure(record) for record in training.records), key=lambda found: found.nnz)
    whole, candidate = RowBlocks.of(large), way("csr")
    assert fitted.read_s_ == 0.0
    free_s = float(fitted.terms(candidate, whole)["time_s"][0])
    beyond = float(fitted.physics.work(fitted.physics.machine).read_beyond(candidate, whole)[0])
    assert 0 < beyond < 12 * large.nnz + 16 * large.rows
    sizes = reference_bytes(*training.machine.shared_cache_bytes(1))
    for factor in (0.5, 2.0):  # of the time of the product, as long as reading its bytes takes
        reading_s = factor * free_s / beyond * sizes[MEMORY]
        read = Conditions(0.0, 0.0, {MEMORY: reading_s})
        records = tuple(replace(record, conditions=read) for record in training.records)
        model = SparsecastModel().fit(replace(training, records=records))
        terms = model.terms(candidate, whole)
        time_s = float(terms.pop("time_s")[0])
        assert time_s == pytest.approx(max(1.0, factor) * free_s)
        assert sum(float(seconds[0]) for seconds in terms.values()) == pytest.approx(time_s)
