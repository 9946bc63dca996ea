"""The importer of results whose matrices are told by moments and neighbours: a small made-up table."""

import dataclasses
import gzip
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsecast.benchmark.published import import_published
from sparsecast.benchmark.published_moments import described, has_moments, moment_lines
from sparsecast.errors import InputError, ProfileError
from sparsecast.features.analysis import structure
from sparsecast.machines.profile import Profile
from sparsecast.matrices.gallery import gallery
from sparsecast.matrices.problem import group_of

TABLE = Path(__file__).parents[1] / "data" / "published-moments.csv"


def changed(folder, old, new, suffix=".csv"):
    path = folder / f"moments{suffix}"
    path.write_text(TABLE.read_text().replace(old, new))
    return path


def imported(path, machine="Epyc1"):
    return import_published([path], "mine", machine)


def test_a_record_for_each_implementation_with_the_median_of_its_repetitions():
    found = imported(TABLE)
    assert {(r.matrix, r.candidate.format, r.candidate.kernel) for r in found.profile.records} == {
        ("published:even/even", "csr", "csr5"),
        ("published:even/even", "csr", "merge"),
        ("published:tail/tail", "csr", "mkl_ie"),
        ("published:tail/tail", "sell", "sell-32-1"),
        *((each.matrix, "csr", "csr5") for each in found.profile.records if "synthetic" in each.matrix),
    }
    (record,) = (r for r in found.profile.records if r.candidate.kernel == "merge")
    assert record.time_s == pytest.approx(2 * 500_000 / 20e9)
    assert record.candidate.device == "omp" and len(found.profile.machine.caches) == 2
    assert found.left_out == {
        "in the unknown format sparsex": 1,
        "of a matrix whose numbers contradict each other": 1,
    }


def test_artificial_matrices_are_the_same_where_all_that_is_said_of_them_is():
    found = imported(TABLE)
    own = sorted(name for name in found.profile.matrices if "synthetic" in name)
    assert len(own) == 2 and {group_of(name) for name in own} == {"published:synthetic-10000"}


def test_what_is_said_of_a_matrix_is_kept(tmp_path):
    found = imported(TABLE).profile.matrices["published:tail/tail"].structure
    assert (found.rows, found.cols, found.nnz) == (1000, 1200, 6000)
    lengths = found.row_lengths
    assert (lengths.mean, lengths.deviation, lengths.max) == (6.0, 12.5, 300)
    assert (lengths.changes, lengths.mispredicted) == (None, None)
    near = dataclasses.asdict(found.neighbourhood)
    assert tuple(near.values()) == (400.0, 100.5, 0.25, 0.5, 0.75)
    assert found.checked() is found
    path = imported(TABLE).profile.save(tmp_path / "p.parquet")
    assert Profile.load(path).matrices["published:tail/tail"].structure == found


def test_the_machine_is_named_by_the_table_or_by_whoever_imports_it(tmp_path):
    for unknown in ("Epyc9", None):
        with pytest.raises(ProfileError, match="Epyc1, Epyc64"):
            imported(TABLE, unknown)
    nameless = changed(tmp_path, ",device", ",other")
    assert imported(nameless, "Epyc1").profile.machine.cores == 24
    assert imported(nameless, None).profile.machine.caches == ()


def test_several_files_are_taken_together(tmp_path):
    again = changed(tmp_path, ",CSR5,", ",AOCL_OPTMV,")
    found = import_published([TABLE, again], "mine", "Epyc1").profile
    kernels = {r.candidate.kernel for r in found.records if r.matrix == "published:even/even"}
    assert kernels == {"csr5", "merge", "aocl_optmv"}


def test_gzip_and_tabs(tmp_path):
    path = tmp_path / "moments.csv.gz"
    path.write_bytes(gzip.compress(TABLE.read_bytes()))
    assert has_moments(path) and imported(path).profile.records == imported(TABLE).profile.records
    assert imported(changed(tmp_path, ",", "\t", ".tsv")).profile.records == imported(TABLE).profile.records


def test_names_of_columns_in_a_table_of_features_alone(tmp_path):
    path = tmp_path / "features.tsv"
    path.write_text(
        "matrix\tnr_rows\tnr_cols\tnr_nzeros\tnnz-r-std\tskew_coeff\tbw-avg\tbw-std\tsc-avg\tnum-neigh-avg\t"
        "cross_row_sim-avg\nm\t100\t100\t500\t0.5\t0.4\t9.0\t1.0\t0.5\t1.5\t0.9\n"
    )
    (line,) = moment_lines(path)
    found = described(line)
    assert (found.row_lengths.max, found.neighbourhood.neighbours) == (7, 1.5)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (",skew,", ",slant,"),
        (",gflops,", ",speed,"),
        *(("20,0,Epyc1", f"{speed},0,Epyc1") for speed in ("0", "", "fast")),
    ],
)
def test_another_layout_is_refused(tmp_path, old, new):
    with pytest.raises(ProfileError):
        imported(changed(tmp_path, old, new))


@pytest.mark.parametrize(
    ("column", "value"),
    [("skew", None), ("skew", math.nan), ("avg_bw", -1.0), ("std_nnz_per_row", math.inf), ("nr_rows", 0.5)],
)
def test_numbers_that_no_matrix_has_are_refused_by_their_name(column, value):
    line = next(moment_lines(TABLE))
    with pytest.raises(InputError, match=column):
        described({**line, column: value})


@settings(deadline=None, max_examples=80)
@given(st.integers(1, 3000), st.floats(0.05, 60), st.floats(0, 2.5), st.integers(0, 2**32 - 1))
def test_rows_that_exist_have_lengths_that_add_up(rows, mean, spread, seed):
    draw = np.random.default_rng(seed)
    lengths = np.minimum(draw.poisson(mean * draw.lognormal(0, spread, rows)), 100_000)
    nnz = int(lengths.sum())
    if not nnz:
        return
    line = {
        **next(moment_lines(TABLE)),
        **{"nr_rows": float(rows), "nr_cols": 200_000.0, "nr_nzeros": float(nnz)},
        **{"std_nnz_per_row": float(lengths.std()), "skew": float(lengths.max() * rows / nnz - 1)},
    }
    found = described(line)
    assert found.checked() is found
    assert found.row_lengths.max == lengths.max()
    assert found.row_lengths.entries_up_to[-1] == nnz


def test_moments_of_a_matrix_of_ours_give_what_the_matrix_gives():
    A = gallery("circuit", n=3000)
    lengths = np.diff(A.indptr)
    known = structure(A, groups=["row_lengths", "neighbourhood"])
    near = known.neighbourhood
    found = described(
        {
            **next(moment_lines(TABLE)),
            **{"nr_rows": 3000.0, "nr_cols": 3000.0, "nr_nzeros": float(A.nnz)},
            **{"std_nnz_per_row": lengths.std(), "skew": lengths.max() / lengths.mean() - 1},
            **{"avg_bw": near.row_bandwidth, "std_bw": near.row_bandwidth_deviation},
            **{"avg_sc": near.scatter, "avg_num_neighbours": near.neighbours},
            **{"cross_row_similarity": near.cross_row_similarity},
        }
    )
    assert found.neighbourhood == near
    assert found.row_lengths.deviation == pytest.approx(known.row_lengths.deviation)
    assert found.row_lengths.max == known.row_lengths.max
