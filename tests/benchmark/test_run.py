"""The calibration's order, budget, journal and refusals, with measurements that are made up."""

from __future__ import annotations

import dataclasses
import json
import shutil

import pytest

from sparsecast.benchmark import run as benchmark_run
from sparsecast.benchmark.run import LEAST_BUDGET_S, Calibration
from sparsecast.devices import DEVICES
from sparsecast.devices.cpu.processor import Processor
from sparsecast.devices.target import Target
from sparsecast.errors import BusyError, DeviceError, InputError, MatrixSizeError, ProfileError, StorageError
from sparsecast.formats import FORMATS
from sparsecast.machines import storage
from sparsecast.machines.machine import Cache, detect
from sparsecast.machines.profile import Profile, user_path
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.suites import SUITES, SuiteMatrix
from sparsecast.models import DEFAULT_MODEL, MODELS
from sparsecast.models.linear import LinearModel
from sparsecast.models.training import TrainingSet
from sparsecast.models.work import LEAST_OF_KIND
from sparsecast.papers.gahvari_2007 import suite as gahvari
from sparsecast.papers.gahvari_2007.search_space import UNBLOCKED, Point
from sparsecast.papers.gahvari_2007.suite import Gahvari
from sparsecast.papers.gahvari_2007.summary import SUITE, ratings
from sparsecast.records import PANEL_VECTORS, SCHEMA_VERSION, Bandwidth

SETTING = Target("cpu", "float64", 32, 1)
NAMES = [f"strips?rows={1000 + i}&nnz_per_row=4" for i in range(6)]
STREAMS = [Bandwidth("read", "cpu", 1, 1 << 20, 1e-4, 0.01, "2026-01-01T00:00:00+00:00", "0.1")]


@pytest.fixture
def clock(monkeypatch):
    """A clock that only measuring moves."""
    now = [0.0]
    monkeypatch.setattr(benchmark_run, "perf_counter", lambda: now[0])
    return now


class Measured(list):
    """The names of the matrices that were measured, in `each_s` each; before some of them, an error once."""

    def __init__(self):
        super().__init__()
        self.each_s, self.errors = 1.0, {}


@pytest.fixture
def measured(monkeypatch, clock, recorded):
    """Replace measuring by an entry in this list and seconds on the clock."""
    names = Measured()

    def measure(problem, suite, candidates, effort, instruments, on_sample):
        if problem.name not in NAMES:
            return []  # run for its compilation only
        if error := names.errors.pop(len(names), None):
            raise error
        names.append(problem.name)
        clock[0] += names.each_s
        template = recorded.records[0]
        changes = {"matrix": problem.specification, "nnz": problem.structure.nnz, "suite": suite}
        return [dataclasses.replace(template, candidate=c, **changes) for c in candidates]

    monkeypatch.setattr(benchmark_run, "measure_candidates", measure)
    monkeypatch.setattr(benchmark_run, "compiled_in_turn", lambda wanted, processes: [])
    return names


@pytest.fixture
def small_suite():
    """A processor whose benchmark matrices are six small ones."""

    class Small(Processor):
        def suites(self, target, machine):
            found = [SuiteMatrix(Problem.named(name), "strips", ("csr", "coo")) for name in NAMES]
            return found[:2], found[2:]

        def measure_bandwidths(self, machine, threads):
            return STREAMS[:threads]

    return Small()


@pytest.fixture
def path(recorded):
    return user_path(recorded.name)


@pytest.fixture
def run(recorded, small_suite):
    """Make a calibration of the recorded machine."""

    def make(budget_s=1000.0, targets=(SETTING,), **options):
        return Calibration(recorded.machine, targets, budget_s, device=small_suite, **options)

    return make


def profile_matrices(profile):
    return list(dict.fromkeys(record.matrix for record in profile.records))


def test_matrices_are_measured_in_order_and_kept(run, measured, path):
    profile = run().run()
    assert measured == NAMES
    assert profile_matrices(profile) == NAMES
    assert {record.candidate.format for record in profile.records} == {"csr", "coo"}
    assert list(profile.bandwidths) == STREAMS
    assert Profile.load(path) == profile
    assert [p.name for p in path.parent.iterdir() if p.suffix == ".journal"] == []


def test_products_of_several_vectors_are_measured_beside_those_of_one_where_they_have_a_kernel(run, measured):
    first = run().run()
    both = run(targets=(dataclasses.replace(SETTING, vectors=3),)).run()
    added = [record for record in both.records if record.candidate.vectors == 3]
    assert set(first.records) < set(both.records) and len(both.records) == len(first.records) + len(added)
    assert {record.candidate.format for record in added} == {"csr"}
    assert {record.matrix for record in added} == set(NAMES)


@pytest.mark.parametrize(("budget_s", "is_long"), [(69.0, False), (70.0, True)])
def test_a_long_calibration_measures_eight_vectors_where_three_formats_read_the_matrix_once(
    run, measured, clock, monkeypatch, small_suite, budget_s, is_long
):
    both = small_suite.suites(SETTING, None)
    several = [dataclasses.replace(matrix, formats=("csr", "sell", "bcsr", "coo")) for matrix in both[1]]
    monkeypatch.setattr(type(small_suite), "suites", lambda self, target, machine: (both[0], several))
    monkeypatch.setattr(benchmark_run, "_SEVERAL_SHARE", 2.5 / budget_s)  # three of four, each a second
    made = run(budget_s=budget_s).run().records
    eight = [record for record in made if record.candidate.vectors == PANEL_VECTORS]
    assert {record.candidate.format for record in eight} == ({"csr", "sell"} if is_long else set())
    assert len({record.matrix for record in eight}) == (3 if is_long else 0)
    assert measured == NAMES[:2] + (NAMES[2:5] if is_long else []) + NAMES[2:]


def test_no_setting_gets_the_time_before_the_others_and_a_matrix_is_made_once_for_all(
    run, measured, monkeypatch
):
    made, inner = [], Problem.released
    monkeypatch.setattr(Problem, "released", lambda self: made.append(self.name) or inner(self))
    single = Target("cpu", "float32", 32, 1)
    run(targets=(SETTING, single)).run()
    assert measured == [name for name in NAMES for _ in range(2)]
    assert [name for name in made if name in NAMES] == NAMES


def test_the_budget_counts_from_the_start_of_the_run(run, measured, clock):
    taken = run(budget_s=LEAST_BUDGET_S)
    clock[0] = 5.0
    profile = taken.run()
    assert taken.used_s == len(measured) == len(NAMES), "time before the run counts for nothing"
    assert profile_matrices(profile) == NAMES


def test_a_spent_budget_stops_the_measuring(run, measured):
    measured.each_s = 4.0
    taken = run(budget_s=LEAST_BUDGET_S)
    profile = taken.run()
    assert measured == NAMES[:2], "after 8 of 10 seconds a third matrix of 4 seconds does not fit"
    assert profile_matrices(profile) == NAMES[:2]
    assert taken.used_s <= LEAST_BUDGET_S


def test_matrices_beyond_their_share_of_memory_are_left_out(run, measured, monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 4 * 44 * 3999}))
    with pytest.raises(InputError):
        run().run()
    assert measured == []


def test_progress_never_passes_its_end(run, measured):
    seen = []
    run(on_progress=lambda done_s, total_s, item: seen.append((done_s, total_s, item))).run()
    assert [item for _, _, item in seen if item in NAMES] == NAMES
    assert all(0 <= done_s <= total_s <= 1000 for done_s, total_s, _ in seen)


@pytest.mark.parametrize("after", [0, 3])
def test_ctrl_c_keeps_what_was_measured(run, measured, path, after):
    measured.errors[after] = KeyboardInterrupt()
    taken = run()
    profile = taken.run()
    assert taken.interrupted
    assert profile_matrices(profile) == NAMES[:after]
    assert Profile.load(path) == profile
    assert not path.with_suffix(".journal").exists()


class Killed(BaseException):
    """What no handler sees: the process is gone."""


@pytest.mark.parametrize("error", [Killed(), DeviceError("device 'cuda' was lost in the middle")])
def test_a_run_that_is_killed_or_loses_its_device_is_taken_up_where_it_stopped(run, measured, path, error):
    measured.errors[3] = error
    with pytest.raises(type(error)):
        run().run()
    assert path.with_suffix(".journal").exists() and not path.exists()
    assert profile_matrices(run().run()) == NAMES
    assert measured == NAMES, "none was measured twice"
    assert not path.with_suffix(".journal").exists()


def test_a_matrix_that_a_device_has_no_room_for_does_not_end_the_run(run, measured):
    measured.errors[2] = MatrixSizeError("vectors would take too much")
    calibration = run()
    assert profile_matrices(calibration.run()) == NAMES[:2] + NAMES[3:]
    assert calibration.notes == [f"{NAMES[2]}: vectors would take too much"]


@pytest.mark.parametrize(
    "damage", ["not json", "5", "[]", json.dumps({"schema": SCHEMA_VERSION}), "{}", "\x00\x00"]
)
def test_a_journal_damaged_in_its_middle_is_refused(run, measured, path, recorded, damage):
    whole = json.dumps({"schema": SCHEMA_VERSION, "record": recorded.records[0].to_row()})
    path.parent.mkdir(parents=True)
    path.with_suffix(".journal").write_text(f"{whole}\n{damage}\n{whole}\n")
    with pytest.raises(ProfileError):
        run().run()
    assert measured == []


def test_a_damaged_profile_is_not_written_over(run, measured, path):
    path.parent.mkdir(parents=True)
    path.write_bytes(b"precious")
    with pytest.raises(ProfileError):
        run().run()
    assert path.read_bytes() == b"precious"
    assert measured == []


@pytest.mark.parametrize("budget_s", [-1.0, 0.0, LEAST_BUDGET_S - 0.1, float("nan"), float("-inf")])
def test_a_budget_that_is_too_small_is_refused_with_the_least(run, budget_s):
    with pytest.raises(InputError):
        run(budget_s=budget_s)


def test_another_calibration_and_a_data_folder_that_is_none_are_found_before_measuring(
    run, measured, path, data_folder
):
    with storage.exclusive(path.with_suffix(".lock")), pytest.raises(BusyError):
        run().run()
    shutil.rmtree(data_folder)
    data_folder.write_text("a file in the folder's place")
    with pytest.raises(StorageError):
        run().run()
    assert measured == []


@pytest.mark.parametrize(("budget_s", "order"), [(1000.0, [2, 4, 3, 5, 1]), (LEAST_BUDGET_S, [2, 4, 1])])
def test_suites_of_papers_come_in_turn_and_what_is_held_out_after_half_of_the_time(
    run, measured, small_suite, monkeypatch, budget_s, order
):
    def matrices(suite, *names):
        return [SuiteMatrix(Problem.named(name), suite, ("csr",)) for name in names]

    usual = matrices("varied", NAMES[0]), matrices("gallery", NAMES[1])
    whole = {"wang": matrices("row lengths", *NAMES[2:4]), "guo": matrices("strips", *NAMES[4:6])}
    monkeypatch.setattr(type(small_suite), "suites", lambda self, target, machine: usual)
    for name, suite in whole.items():
        monkeypatch.setattr(SUITES.get(name), "whole", lambda self, machine, threads, suite=suite: suite)
    measured.each_s = 3.0
    profile = run(budget_s=budget_s, suites=("wang", "guo")).run()
    assert measured == [NAMES[number] for number in order]
    assert profile.bandwidths, "models of papers read them, too"
    with pytest.raises(InputError):
        run(suites=("wang", "wong"))


@pytest.mark.parametrize("threads", [1, 2, 64])
def test_the_suites_of_papers_are_those_that_the_models_name(threads):
    suites = {
        name: SUITES.get(name)().whole(detect(), threads) for name in SUITES.names() if name != "gahvari"
    }
    named = {MODELS.get(name).suite for name in MODELS.names()} - {None}
    assert named <= set(suites)
    for suite in suites.values():
        names = [(matrix.name, matrix.suite, matrix.formats) for matrix in suite]
        assert len(names) == len(set(names)) > 0


@pytest.mark.parametrize("threads", [1, 2, 64])
def test_the_suite_has_what_the_models_need(threads):
    needed, optional = DEVICES.get("cpu").suites(dataclasses.replace(SETTING, threads=threads), detect())
    names = [(matrix.name, matrix.suite) for matrix in (*needed, *optional)]
    assert len(names) == len(set(names))
    suites, own = {matrix.suite for matrix in needed}, "strips, entry strips, varied, blocks, diagonals"
    assert suites == {*own.split(", "), "symmetric", "symmetric blocks", "gallery"}
    assert {suite for suite in suites if LinearModel.learns_from(suite)} == suites - {"gallery"}
    for matrix in (*needed, *optional):
        assert matrix.entries > 0
        assert benchmark_run.measured_formats(matrix, SETTING)


@pytest.mark.parametrize("part", ["needed", "optional"])
def test_the_suite_has_matrices_for_each_narrow_storage(part):
    needed, optional = DEVICES.get("cpu").suites(SETTING, detect())
    matrices = needed if part == "needed" else optional
    chosen = [each.problem.specification for each in matrices if each.in_narrow_storage]
    kinds = {kind: [name for name in chosen if name.endswith(kind)] for kind in ("=one", "=float32")}
    columns = set(chosen) - {*kinds["=one"], *kinds["=float32"]}
    assert all(len(kind) >= 2 * LEAST_OF_KIND for kind in (*kinds.values(), columns))
    assert len(chosen) < 0.8 * len(matrices)
    suites = {matrix.suite for matrix in matrices}
    assert {each.suite for each in matrices if each.in_narrow_storage} == suites - {"strips", "entry strips"}


def test_a_real_calibration_of_the_indispensable_matrices_serves_the_models(recorded, clock):
    """Those of up to two million entries, on caches of which none is beyond two megabytes."""
    quick = dataclasses.replace(benchmark_run.QUICK_EFFORT, samples=2, sample_s=1e-4)
    caches = Cache(1, 1 << 15, 1), Cache(2, 1 << 18, 1), Cache(3, 1 << 21, 1)
    machine = dataclasses.replace(recorded.machine, caches=caches)
    needed = [each for each in DEVICES.get("cpu").suites(SETTING, machine)[0] if each.entries <= 2_000_000]

    class Quick(Processor):
        def suites(self, target, machine):
            return needed, []

        def core_speed(self, threads):
            """All samples count, whatever runs beside."""

    profile = Calibration(machine, [SETTING], 300.0, device=Quick(), effort=quick).run()
    assert {stream.kind for stream in profile.bandwidths} == {"read"}
    assert {record.matrix for record in profile.records} == {
        matrix.problem.specification for matrix in needed
    }
    for name in MODELS.names():
        if MODELS.get(name).quantity != "time":
            continue  # no meter counted anything here
        if MODELS.get(name).suite or name == "blocks":
            with pytest.raises(ProfileError):
                MODELS.get(name)().fit(TrainingSet.of(profile))
            continue
        fitted = MODELS.get(name)().fit(TrainingSet.of(profile))
        assert "csr" in fitted.formats()
        if name == DEFAULT_MODEL:
            assert fitted.formats() == FORMATS.names()


@pytest.fixture
def suites(monkeypatch, clock, recorded):
    """Replace the synthetic suite by one Record, and 20 seconds on the clock, for each type of values."""
    made = []

    class Suite:
        def __init__(self, run, targets, series, dimensions):
            self.targets, self.series, self.dimensions = targets, series, dimensions
            run.notes.append(f"a note of {targets[0].dtype}")
            made.append(self)

        def measured(self, limit_s):
            self.limit_s = limit_s
            clock[0] += 20.0
            template = recorded.select(format="csr", dtype="float64")[0]
            for target in self.targets:
                candidate = dataclasses.replace(
                    template.candidate, dtype=target.dtype, threads=target.threads
                )
                problem = Problem.named(Point(UNBLOCKED, 512, 29).name)
                changes = {"candidate": candidate, "matrix": problem.specification, "suite": SUITE}
                yield problem, [dataclasses.replace(template, **changes)]

    monkeypatch.setattr(gahvari, "SyntheticSuite", Suite)
    monkeypatch.setattr(benchmark_run, "compiled_in_turn", lambda wanted, processes: [])
    return made


SINGLE = Target("cpu", "float32", 32, 1)


def test_for_the_figures_the_synthetic_suite_comes_first(run, measured, suites):
    taken = run(budget_s=400.0, targets=(SETTING, SINGLE), rating=Gahvari((UNBLOCKED,)))
    profile = taken.run()
    assert [suite.targets for suite in suites] == [[SETTING], [SINGLE]]
    assert suites[0].limit_s == pytest.approx(0.6 * 0.75 * 400)
    assert suites[1].limit_s == pytest.approx(0.75 * 400 - 20)
    assert profile_matrices(profile) == [Point(UNBLOCKED, 512, 29).name, *NAMES]
    assert taken.notes == ["a note of float64", "a note of float32"]
    assert ratings(taken.records, taken.machine)[0].figures.unblocked_median_mflops > 0


def test_the_same_suite_follows_what_the_models_learn_from(run, measured, suites):
    profile = run(budget_s=400.0, last=[Gahvari((UNBLOCKED,))]).run()
    assert profile_matrices(profile) == [*NAMES, Point(UNBLOCKED, 512, 29).name]
    assert suites[0].limit_s == pytest.approx(400 - len(NAMES))


def test_a_quick_calibration_has_no_time_for_it(run, measured, suites):
    profile = run(budget_s=35.0, last=[Gahvari((UNBLOCKED,))]).run()
    assert profile_matrices(profile) == NAMES
    assert suites == []


@pytest.mark.parametrize(("budget_s", "kept"), [(60.0, 1), (149.0, 1), (150.0, 2), (float("inf"), 2)])
def test_a_small_budget_rates_the_most_wanted_settings_only(run, budget_s, kept):
    taken = run(budget_s=budget_s, targets=(SETTING, SINGLE), rating=Gahvari())
    assert list(taken.targets) == [SETTING, SINGLE][:kept]
    assert bool(taken.notes) == (kept < 2)


def test_a_measurement_beyond_the_budget_is_given_up(run, measured, monkeypatch, clock):
    def endless(problem, suite, candidates, effort, instruments, on_sample):
        for _ in range(1000):
            clock[0] += 1.0
            on_sample()
        return []

    monkeypatch.setattr(benchmark_run, "measure_candidates", endless)
    taken = run(budget_s=100.0)
    with pytest.raises(InputError):
        taken.run()
    assert taken.used_s <= 101


def test_one_slow_matrix_among_fast_ones_ends_nothing_and_two_count():
    matrix = SuiteMatrix(Problem.named("strips?rows=2000&nnz_per_row=4"), "strips")
    budget = benchmark_run.Budget(100.0, benchmark_run.QUICK_EFFORT)
    estimate = budget.estimate_s(matrix, SETTING)
    budget.learn(estimate, estimate)
    budget.learn(estimate, 20 * estimate)
    assert budget.estimate_s(matrix, SETTING) == pytest.approx(estimate)
    budget.learn(estimate, 20 * estimate)
    assert budget.estimate_s(matrix, SETTING) == pytest.approx(20 * estimate)
