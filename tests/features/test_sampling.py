"""Structures of which a sample was looked at, against those of all entries."""

import copy
import dataclasses
import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import sparsecast as sc
from sparsecast.devices.binding import bind, prepared
from sparsecast.errors import FormatError, InputError, PaddingError
from sparsecast.features import analysis
from sparsecast.features import sweep as sweep_module
from sparsecast.features.analysis import structure
from sparsecast.features.bands import DIAGONALS_AN_ENTRY
from sparsecast.features.narrow_storage import narrowest
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.features.sweep import LEAST_SAMPLED_NNZ, SAMPLE_RANGES, sampled_ranges, sweep
from sparsecast.formats.dia import DIA
from sparsecast.formats.narrowing import NARROW_PARAMETERS
from sparsecast.machines.machine import detect
from sparsecast.machines.profile import Profile
from sparsecast.matrices.gallery import gallery_from_specification
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.structure_files import read_structure

from .oracles import drawn_matrices

#: Matrices of 0.3 to 0.5 million entries, one of each kind.
SPECIFICATIONS = (
    "poisson3d?n=38",
    "elasticity3d?n=18",
    "banded?n=30000",
    "circuit?n=70000",
    "rmat?scale=15",
    "random?n=50000",
    "random?n=150000&cols=40000&nnz_per_row=2",
    "arrow?n=100000",
)


@pytest.fixture(autouse=True, scope="module")
def quarter_of_the_sizes():
    """Sample matrices, and so many entries of them, of a quarter of the usual size: the tests stay cheap."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(analysis, "LEAST_SAMPLED_NNZ", LEAST_SAMPLED_NNZ // 4)
        patch.setattr(sweep_module, "_SAMPLE_ENTRIES", sweep_module._SAMPLE_ENTRIES // 4)
        yield


@pytest.fixture(scope="module")
def matrices():
    return {name: gallery_from_specification(name) for name in SPECIFICATIONS}


def sampled(A, threads=1):
    return structure(A, threads=threads, is_sampled=True)


def proven(A, groups):
    return Problem.of(A).proven(groups)


@given(drawn_matrices(), st.integers(1, 5), st.integers(0, 100))
@settings(deadline=None, max_examples=60)
def test_ranges_that_cover_all_entries_show_what_a_whole_sweep_does(A, count, cut_at):
    if A.nnz == 0:
        return
    whole = sweep(A.indptr, A.indices, A.shape)
    one = sweep(A.indptr, A.indices, A.shape, [(0, A.nnz)])
    np.testing.assert_array_equal(one.reuse, whole.reuse)
    inner = sorted({(cut_at * each + each) % A.nnz for each in range(1, count)} - {0})
    bounds = [0, *inner, A.nnz]
    several = sweep(A.indptr, A.indices, A.shape, list(itertools.pairwise(bounds)))
    for found in (one, several):
        assert (found.entries, found.diagonals) == (A.nnz, whole.diagonals)
        assert (found.half_bandwidth, found.line_changes) == (whole.half_bandwidth, whole.line_changes)
        np.testing.assert_array_equal(found.bands, whole.bands)
        assert found.reuse.sum() == found.line_changes == found.reuse[:-1].sum() + found.unseen.sum()


@pytest.mark.parametrize("nnz", [LEAST_SAMPLED_NNZ // 4, 1_000_003, 50_000_000, 3_000_000_000])
def test_ranges_are_disjoint_inside_and_a_small_part(nnz):
    ranges = sorted(sampled_ranges(nnz))
    ends = [0, *(end for pair in ranges for end in pair), nnz]
    assert len(ranges) == SAMPLE_RANGES and ends == sorted(ends)
    assert sum(last - first for first, last in ranges) < nnz / 3


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0), (1, 1), (1, 400), (400, 1)])
def test_small_matrices_are_looked_at_in_full(shape):
    for A in (csr_array(shape), csr_array(np.ones(shape))):
        found = sampled(A)
        assert found == structure(A, threads=1) and found.sampled_nnz is None


@pytest.mark.parametrize("shape", [(2, 200_000), (200_000, 2), (3, 150_000)])
def test_a_row_longer_than_a_range_is_cut_off(shape):
    A = csr_array(np.ones(shape))
    found, exact = sampled(A), structure(A, threads=1)
    assert 0 < found.sampled_nnz < A.nnz / 3
    assert found.row_lengths == exact.row_lengths and found.checked() is found
    assert found.locality.line_changes == pytest.approx(exact.locality.line_changes, rel=0.02, abs=8)
    assert found.blocks == exact.blocks


def test_samples_are_near_the_whole(matrices):
    for name, A in matrices.items():
        found, exact = sampled(A).checked(), structure(A, threads=1)
        assert Structure.from_dict(found.to_dict()) == found == copy.deepcopy(found)
        assert exact.sampled_nnz is None and found.sampled_nnz < A.nnz / 3
        assert all(
            found.groups[group] == exact.groups[group] for group in ("row_lengths", "symmetry", "blocks")
        )
        assert narrowest(found) == narrowest(exact), name
        changes = found.locality.line_changes / exact.locality.line_changes
        assert changes == pytest.approx(1.0, abs=0.06), name
        # The share of reads that come back within so many changes, give or take an octave.
        here, there = (np.cumsum(each.locality.reuse_histogram) for each in (found, exact))
        lower, upper = np.append(0.0, there[:-2]), np.append(there[1:-1], there[-2])
        beyond = np.maximum(lower - here[:-1], here[:-1] - upper)
        # Of the three long rows of the arrow the ranges hold more than their part, and none returns in them.
        assert beyond.max() < (0.12 if name.startswith("arrow") else 0.04), name
        if not name.startswith("arrow"):
            assert found.bands.histogram == pytest.approx(exact.bands.histogram, abs=0.06), name
        assert found.bands.half_bandwidth == pytest.approx(exact.bands.half_bandwidth, rel=0.08), name
        assert 0.6 < found.bands.diagonals / exact.bands.diagonals < 1.7, name


def test_a_diagonal_outside_of_the_sample_is_found_by_the_proof(matrices):
    A = matrices["banded?n=30000"].copy()
    first, last = sorted(sampled_ranges(A.nnz))[0][1], sorted(sampled_ranges(A.nnz))[1][0]
    row = np.searchsorted(A.indptr, (first + last) // 2)
    A.indices[A.indptr[row + 1] - 1] += 5_000
    found = sampled(A)
    assert (found.bands.diagonals, "bands" in found.unproven) == (17, True)
    of_all = proven(A, ["bands"])
    assert of_all.bands == structure(A).bands and of_all.bands.diagonals == 18
    assert "bands" not in of_all.unproven and of_all.symmetry == found.symmetry


def test_many_diagonals_outside_of_the_sample_are_noticed(matrices):
    A = matrices["banded?n=30000"].copy()
    first, last = sorted(sampled_ranges(A.nnz))[0][1], sorted(sampled_ranges(A.nnz))[1][0]
    generator = np.random.default_rng(0)
    rows = np.searchsorted(A.indptr, np.arange(first + 100, last - 100, 100))
    A.indices[A.indptr[rows + 1] - 1] = generator.integers(0, A.shape[1], rows.size)
    found = proven(A, ["bands"])
    assert found.bands.diagonals > DIAGONALS_AN_ENTRY * A.nnz / A.shape[0]
    with pytest.raises(PaddingError):
        DIA.refuse_unsuited(RowBlocks.of(found), 8, 4)


def test_diagonals_that_are_not_counted_exactly_are_refused_by_their_format():
    # Rows of one entry, of which each four lie on diagonals of their own.
    A = csr_array((np.ones(4000), np.arange(4000) // 4 % 4, np.arange(4001)), shape=(4000, 4))
    found = structure(A, groups=("row_lengths", "bands", "symmetry"))
    assert found.bands.diagonals > DIAGONALS_AN_ENTRY * found.nnz / found.rows
    with pytest.raises(PaddingError):
        DIA.refuse_unsuited(RowBlocks.of(found), 8, 4)


#: What changes a value in the least bit, and to one that float32 does not hold.
CHANGES = st.sampled_from([lambda value: np.nextafter(value, 9.0), lambda value: value + 0.1])


@given(st.sampled_from(SPECIFICATIONS), st.lists(st.tuples(st.floats(0, 1), CHANGES), max_size=3))
@settings(deadline=None, max_examples=25)
def test_a_sample_denies_nothing_that_all_entries_say_and_its_proof_says_what_they_do(
    matrices, name, changes
):
    """What is not as it looks is found by the proof, wherever it is; what looks wrong is wrong."""
    A = matrices[name].copy()
    for place, change in changes:
        entry = min(int(place * A.nnz), A.nnz - 1)
        A.data[entry] = change(A.data[entry])
    found, exact = sampled(A).checked(), structure(A, groups=("symmetry", "narrow_storage"))
    assert found.symmetry.kind in (exact.symmetry.kind, "symmetric")
    assert narrowest(exact).items() <= narrowest(found).items()
    for group, holds in (("symmetry", found.symmetry.kind), ("narrow_storage", narrowest(found))):
        assert (group in found.unproven) == bool(holds)
    of_all = proven(A, ["symmetry", "narrow_storage"]).checked()
    for group in ("symmetry", "narrow_storage"):
        assert group not in of_all.unproven
        assert found.groups[group] == of_all.groups[group] or group in found.unproven
    assert of_all.symmetry == exact.symmetry and narrowest(of_all) == narrowest(exact)


@pytest.mark.parametrize(
    "is_on_diagonal", [lambda row: row >= 0, lambda row: row % 3 == 0, lambda row: row < 0]
)
def test_the_diagonal_of_a_sample_is_estimated(matrices, is_on_diagonal):
    A = matrices["poisson3d?n=38"].tocoo()
    row, col = A.coords
    keeps = (row != col) | is_on_diagonal(row)
    A = csr_array((A.data[keeps], (row[keeps], col[keeps])), shape=A.shape)
    found, exact = sampled(A).checked().symmetry, structure(A).symmetry
    assert found.kind == exact.kind == "symmetric"
    assert found.triangle_nnz == pytest.approx(exact.triangle_nnz, rel=0.01)
    assert found.diagonal_blocks == pytest.approx(exact.diagonal_blocks, rel=0.02, abs=2)


def asymmetric(A, entry):
    A.data[entry] = np.nextafter(A.data[entry], 9.0)


def beyond_float32(A, entry):
    A.data[entry] += 0.1


def many_diagonals(A, entry):
    rows = np.searchsorted(A.indptr, entry + np.arange(0, 10_000, 50))
    A.indices[A.indptr[rows + 1] - 1] = np.random.default_rng(0).integers(0, A.shape[1], rows.size)


@pytest.mark.parametrize(
    ("specification", "misled", "parameters", "damage"),
    [
        ("poisson3d?n=38", "symmetric_csr", {}, asymmetric),
        ("poisson3d?n=38", "csr", {"values": "float32", "columns": 16}, beyond_float32),
        ("banded?n=30000", "bcsr", {"values": "float32"}, beyond_float32),
        ("banded?n=30000", "dia", {}, many_diagonals),
    ],
)
def test_a_plan_that_a_sample_misled_is_made_again(
    matrices, recorded, specification, misled, parameters, damage
):
    """One entry between the ranges makes the format refuse the matrix; products are right all the same."""
    formats = {"csr", misled}

    def clearly_apart(record):
        is_narrow = not NARROW_PARAMETERS.isdisjoint(record.candidate.parameters)
        is_misled = record.candidate.format == misled and is_narrow == bool(parameters)
        return dataclasses.replace(record, time_s=0.3 * record.time_s) if is_misled else record

    records = [clearly_apart(record) for record in recorded.records if record.candidate.format in formats]
    profile = Profile(detect(), tuple(records), recorded.matrices)
    asked = {"threads": 1, "products": 10**6, "probe_s": 0, "drift_correction": False}
    A = matrices[specification].copy()
    if not parameters:
        A.data *= 0.1  # no values of float32, or narrow storage would be chosen
    believed = sc.plan(A, profile, **asked)
    [candidate] = [block.candidate for block in believed.blocks]
    assert (candidate.format, dict(candidate.parameters), believed.notes) == (misled, parameters, ())
    damage(A, sorted(sampled_ranges(A.nnz))[2][1] + 1_001)
    forecast = sc.predict(A, profile, threads=1, drift_correction=False)
    assert candidate in [each.candidate for each in forecast]
    assert "a conversion reads all" in forecast.notes[0]
    with pytest.raises(FormatError):
        bind(prepared(A, "float64", 32), candidate)
    proved = sc.plan(A, profile, **asked)
    assert candidate not in [block.candidate for block in proved.blocks]
    assert misled.upper() in proved.notes[0]
    x = np.linspace(1.0, 2.0, A.shape[0])
    operator = sc.compile(A, proved, transpose=proved)
    np.testing.assert_allclose(operator @ x, A @ x, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(operator.T @ x, A.T @ x, rtol=1e-12, atol=1e-9)
    assert (Problem.of(A).transposed().matrix != A.T).nnz == 0


def test_samples_are_the_same_every_time_and_with_any_threads(matrices):
    for A in matrices.values():
        assert sampled(A) == sampled(A.copy(), threads=3)


@pytest.mark.parametrize(
    "changed",
    [
        *({"sampled_nnz": wrong} for wrong in ("many", -3, 0, 10**9)),
        {"unproven": ["symmetry"]},
        {"sampled_nnz": 9, "unproven": 3},
        {"sampled_nnz": 9, "unproven": [3]},
    ],
)
def test_a_file_with_an_impossible_sample_is_refused_in_one_line(matrices, tmp_path, changed):
    stored = structure(matrices["banded?n=30000"]).to_dict() | changed
    (tmp_path / "found.json").write_text(json.dumps(stored))
    with pytest.raises(InputError):
        read_structure(tmp_path / "found.json")
