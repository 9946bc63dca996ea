"""The importer of published results: a small table written here, and the real one where it lies."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparsecast.benchmark.published import import_published, published_profiles, stored_as
from sparsecast.errors import InputError, ProfileError
from sparsecast.features.analysis import structure
from sparsecast.features.row_lengths import lengths_of_five
from sparsecast.machines.data_sheet import published_machines
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import group_of

GPUS = {name: machine.gpu for name, machine in published_machines().items() if machine.gpu}
COLUMNS = (
    "machine,executor,group,matrix,id,rows,cols,nnz,rd_min,rd_q1,rd_median,rd_q3,rd_max,rd_mean,rd_variance,"
    "format,time_s,storage_bytes,completed"
)
LINES = (
    "V100_SXM2,cuda,Bai,even,1,1000,1000,5000,5.0,5.0,5.0,5.0,5.0,5.0,0.0,csr,1e-05,64004.0,True",
    "V100_SXM2,cuda,Bai,even,1,1000,1000,5000,5.0,5.0,5.0,5.0,5.0,5.0,0.0,hybrid,2e-05,,True",
    "V100_SXM2,cuda,Bai,uneven,2,8,9,40,1.0,2.5,4.0,6.0,14.0,5.0,15.0,cuspcsr,3e-05,5.0,True",
    "MI100,hip,Bai,even,1,1000,1000,5000,5.0,5.0,5.0,5.0,5.0,5.0,0.0,sellp,4e-05,1.0,True",
    # Not completed, without a time, without row lengths, contradicting itself, and on a processor.
    "V100_SXM2,cuda,Bai,even,1,1000,1000,5000,5.0,5.0,5.0,5.0,5.0,5.0,0.0,ell,1e-05,1.0,False",
    "V100_SXM2,cuda,Bai,even,1,1000,1000,5000,5.0,5.0,5.0,5.0,5.0,5.0,0.0,coo,,1.0,True",
    "MI100,hip,Bai,bare,3,1000,1000,5000,,,,,,,,csr,1e-05,1.0,True",
    "MI100,hip,Bai,odd,4,1000,1000,5000,6.0,6.0,6.0,6.0,6.0,5.0,0.0,csr,1e-05,1.0,True",
    "Xeon_Gold_6230,omp,Bai,even,1,1000,1000,5000,5.0,5.0,5.0,5.0,5.0,5.0,0.0,csr,1e-05,1.0,True",
)


def write(folder, *lines):
    path = folder / "published.csv"
    path.write_text("\n".join((COLUMNS, *lines)) + "\n")
    return path


@pytest.fixture
def profiles(tmp_path):
    return published_profiles(write(tmp_path, *LINES))


def test_each_machine_has_what_it_completed(profiles):
    found = {
        name: {(r.matrix, r.candidate.format, r.candidate.kernel, r.time_s) for r in profile.records}
        for name, profile in profiles.items()
    }
    assert found == {
        "V100_SXM2": {
            ("published:Bai/even", "csr", "csr", 1e-5),
            ("published:Bai/even", "hyb", "hybrid", 2e-5),
            ("published:Bai/uneven", "csr", "cuspcsr", 3e-5),
        },
        "MI100": {("published:Bai/even", "sell", "sellp", 4e-5)},
        "Xeon_Gold_6230": {("published:Bai/even", "csr", "csr", 1e-5)},
    }


def test_a_record_says_what_is_not_known(profiles):
    (record,) = profiles["MI100"].records
    assert (record.suite, record.candidate.device, record.version) == ("published", "hip", "published")
    assert (record.samples_s, record.energy_j, record.measured_at) == ((), None, "")
    assert (record.spread, record.noise, record.error, record.convert_s) == (None,) * 4
    found = profiles["MI100"].structure(record)
    assert list(found.groups) == ["row_lengths"] and found.nnz == record.nnz
    assert found.row_lengths.changes is found.row_lengths.mispredicted is None


@pytest.mark.parametrize(
    ("size", "stored"),
    [
        (12 * 64 * 16 * 6 + 16 * 16 + 8, 64 * 16 * 6),  # bytes: of 16 slices, each six entries wide
        (64 * 16 * 6, 64 * 16 * 6),  # entries, as early files say
        (12 * 64 * 16 * 6 + 8, None),  # neither
        (12 * 64 * 70 + 16 * 16 + 8, None),  # fewer than the matrix has
        ("", None),
    ],
)
def test_the_size_of_sellp_tells_the_slices(tmp_path, size, stored):
    line = LINES[3].replace(",1.0,True", f",{size},True")
    (profile,) = published_profiles(write(tmp_path, line, LINES[3].replace("sellp", "csr"))).values()
    (entry,) = profile.matrices.values()
    slices = entry.structure.groups.get("slices")
    assert (slices and slices.stored) == stored
    assert profile.matrices == Profile.load(profile.save(tmp_path / "again.parquet")).matrices


def test_a_profile_of_them_is_kept_and_read_again(profiles, tmp_path):
    profile = profiles["V100_SXM2"]
    again = Profile.load(profile.save(tmp_path / "v100.parquet"))
    assert again.machine == profile.machine
    assert again.matrices == profile.matrices and set(again.matrices) == {r.matrix for r in again.records}
    assert [r.time_s for r in again.records] == [r.time_s for r in profile.records]


@given(st.lists(st.integers(0, 200), min_size=1, max_size=3000))
def test_row_lengths_keep_what_is_known(lengths):
    five = np.quantile(lengths, [0, 0.25, 0.5, 0.75, 1]).tolist()
    found = lengths_of_five(len(lengths), sum(lengths), five)
    if found is None:  # quartiles between two rows need not agree with the sum where rows are few
        assert len(lengths) < 50
        return
    distinct, counts = found
    assert (counts > 0).all() and (np.diff(distinct) > 0).all()
    assert (counts.sum(), counts @ distinct) == (len(lengths), sum(lengths))
    assert (distinct[0], distinct[-1]) == (min(lengths), max(lengths))


@pytest.mark.parametrize(
    ("rows", "nnz", "five"),
    [
        (10, 50, [1.0, 2.0, 3.0, 4.0, 4.0]),  # no row has 5
        (10, 5, [1.0, 2.0, 3.0, 4.0, 4.0]),  # every row has 1
        (10, 30, [1.0, 4.0, 3.0, 4.0, 4.0]),
        (1, 8, [8.0, 26.0, 8.0, 2.0, 8.0]),
        (2, 9, [4.0, 4.0, 4.0, 4.0, 4.0]),
        (5, 0, [-1.0, 0.0, 0.0, 0.0, 0.0]),
    ],
)
def test_numbers_that_no_rows_have_are_refused(rows, nnz, five):
    assert lengths_of_five(rows, nnz, five) is None


def test_the_statistics_are_those_of_a_matrix_with_such_rows(profiles):
    found = profiles["V100_SXM2"].matrices["published:Bai/uneven"].structure
    distinct, counts = lengths_of_five(8, 40, [1.0, 2.5, 4.0, 6.0, 14.0])
    lengths = np.repeat(distinct, counts)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    columns = np.concatenate([np.arange(length) for length in lengths]).astype(np.int32)
    made = structure(csr_array((np.ones(40), columns, indptr), (8, 14)), threads=1)
    for name in ("mode", "empty_rows", "rows_at_least", "entries_up_to"):
        assert getattr(found.row_lengths, name) == getattr(made.row_lengths, name), name


@pytest.mark.parametrize("text", ["machine,format\nA100,csr\n", "\x00\x01", "", None])
def test_what_is_no_such_table_is_refused(tmp_path, text):
    path = tmp_path / "other.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ProfileError, match=r"other\.csv"):
        published_profiles(path)


def test_the_real_table(tmp_path):
    beside = Path(__file__).parents[3] / "shared" / "measurements"
    folder = Path(os.environ.get("SPARSECAST_MEASUREMENTS", beside))
    path = folder / "ginkgo-spmv-suitesparse.csv.gz"
    if not path.exists():
        pytest.skip(f"no published results at {path}: set SPARSECAST_MEASUREMENTS to their folder")
    with gzip.open(path, "rt") as stream:
        lines = stream.readlines()
    assert {line.split(",")[0] for line in lines[1:]} <= set(published_machines())
    part = tmp_path / "part.csv"
    part.write_text("".join(line for line in lines if line.startswith(("machine", "V100", "K20Xm"))))
    profiles = published_profiles(part)
    assert len({profile.name for profile in profiles.values()}) == 2
    assert len({r.matrix for r in profiles["V100_SXM2"].records}) > 2300
    for profile in profiles.values():
        assert all(r.time_s > 0 for r in profile.records)
        for found in (entry.structure for entry in profile.matrices.values()):
            lengths = found.row_lengths
            assert lengths.rows_at_least[0] == found.rows and lengths.entries_up_to[-1] == found.nnz
            assert lengths.min <= lengths.mode <= lengths.max <= found.cols


def one_machine(folder, *lines):
    return write(folder, *(line for line in (*LINES, *lines) if line.startswith("V100")))


def test_an_import_keeps_one_machine_under_the_name_asked_for(tmp_path, data_folder):
    path = tmp_path / "all.csv.gz"
    path.write_bytes(gzip.compress(write(tmp_path, *LINES).read_bytes()))
    found = import_published([path], "mine", "V100_SXM2")
    assert (found.profile.name, len(found.profile.records)) == ("mine", 3)
    assert found.profile.machine.gpu == GPUS["V100_SXM2"] and found.profile.machine.device == "cuda"
    assert found.left_out == {"not completed": 2}
    assert {group_of(r.matrix) for r in found.profile.records} == {"published:Bai"}
    again = Profile.load(found.profile.save())
    assert (again.name, again.machine) == ("mine", found.profile.machine)


@pytest.mark.parametrize("machine", [None, "K80"])
def test_an_import_asks_which_machine(tmp_path, data_folder, machine):
    with pytest.raises(ProfileError, match="V100_SXM2, MI100, Xeon_Gold_6230"):
        import_published([write(tmp_path, *LINES)], "mine", machine)


@pytest.mark.parametrize("name", ["", "a/b", ".hidden", "two words", "x" * 65])
def test_a_name_that_no_file_can_have_is_refused(tmp_path, data_folder, name):
    with pytest.raises(InputError):
        import_published([one_machine(tmp_path)], name)


def test_an_import_replaces_no_profile_that_was_measured(tmp_path, data_folder, recorded):
    recorded.save()
    with pytest.raises(InputError):
        import_published([one_machine(tmp_path)], recorded.name)


@pytest.mark.parametrize("time", ["nan", "-1e-5", "0", "inf", "-nan"])
def test_a_time_that_cannot_be_is_refused(tmp_path, data_folder, time):
    line = f"V100_SXM2,cuda,Bai,odd,9,10,10,10,1,1,1,1,1,1,0,csr,{time},1,True"
    with pytest.raises(ProfileError, match="Bai/odd"):
        import_published([one_machine(tmp_path, line)], "mine")


def test_results_that_are_of_no_use_are_counted(tmp_path, data_folder):
    lines = (
        "V100_SXM2,cuda,Bai,odd,9,10,10,10,6,6,6,6,6,1,0,csr,1e-5,1,True",
        "V100_SXM2,cuda,Bai,half,9,10.5,10,10,1,1,1,1,1,1,0,csr,1e-5,1,True",
        "V100_SXM2,cuda,Bai,bare,9,10,10,10,,,,,,,,csr,1e-5,1,True",
        "V100_SXM2,cuda,Bai,even,1,1000,1000,5000,5,5,5,5,5,5,0,bsr,1e-5,1,True",
    )
    found = import_published([one_machine(tmp_path, *lines)], "mine")
    assert found.left_out == {
        "not completed": 2,
        "of a matrix whose numbers contradict each other": 2,
        "of a matrix without row lengths": 1,
        "in the unknown format bsr": 1,
    }
    for useless, why in ((lines, "unknown format bsr"), ((), "no line")):
        with pytest.raises(ProfileError, match=why):
            import_published([write(tmp_path, *useless)], "mine")


def test_a_published_format_is_one_of_ours_or_unknown():
    published = {
        "csr": ("csr", "csrm", "cuspcsrex", "hipsp_csr", "csr5", "merge_11", "mkl_ie", "naive_csr_cpu"),
        "hyb": ("cusphybrid", "hybrid40", "cusparse_hyb9-2"),
        "sell": ("sellp", "sell-32-1"),
        "coo": ("cusparse_coo",),
        None: ("bsr", "fbcsr", "sparsex", "lcm", "dasp_cuda"),
    }
    for ours, names in published.items():
        assert {stored_as(name) for name in names} == {ours}


def ginkgo(name="olm100", unit=1.0, **changed):
    lengths = {"min": 2, "q1": 2.0, "median": 3.0, "q3": 6.0, "max": 6, "variance": 3.9184}
    problem = {"group": "Bai", "name": name, "rows": 100, "columns": 100, "nonzeros": 396}
    results = {
        "Csr": {"storage": 5208, "time": 4.8e-6 / unit, "completed": True},
        "sellp": {"time": 4.0e-6 / unit, "completed": True},
        "ell": {"completed": False},
    }
    return [{"problem": {**problem, "row_distribution": lengths}, "spmv": results, **changed}]


@pytest.mark.parametrize("unit", [1.0, 1e-9])
def test_the_json_of_ginkgo_in_both_of_its_units(tmp_path, data_folder, unit):
    path = tmp_path / "olm100.json"
    path.write_text(json.dumps(ginkgo(unit=unit)))
    found = import_published([path], "K40m").profile
    assert {(r.candidate.format, r.candidate.kernel): r.time_s for r in found.records} == {
        ("csr", "csr"): pytest.approx(4.8e-6),
        ("sell", "sellp"): pytest.approx(4.0e-6),
    }
    assert found.machine.gpu == GPUS["K40m"]  # by the name of the profile: the file names no machine


def test_a_folder_of_ginkgo_says_the_machine(tmp_path, data_folder):
    for machine, name in (("Titan", "a"), ("Titan", "b"), ("Vega", "a")):
        folder = tmp_path / "data" / machine / "hip" / "SuiteSparse" / "Bai"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_text(json.dumps(ginkgo(name)))
    (tmp_path / "data" / "jacobi.json").write_text(json.dumps([{"problem": {}, "preconditioner": {}}]))
    with pytest.raises(ProfileError, match="Titan, Vega"):
        import_published([tmp_path / "data"], "mine")
    found = import_published([tmp_path / "data"], "mine", "Titan").profile
    assert {r.matrix for r in found.records} == {"published:Bai/a", "published:Bai/b"}
    assert (found.machine.device, found.machine.gpu, found.machine.processor) == ("hip", None, "Titan")


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "{}",
        "[1]",
        json.dumps(ginkgo(spmv={"csr": {}})),
        json.dumps(ginkgo(problem={"group": "Bai"})),
        json.dumps(ginkgo(spmv={"csr": {"time": "fast", "completed": True}})),
        json.dumps(ginkgo(spmv={"csr": {"time": float("nan"), "completed": True}})),
        json.dumps([*ginkgo(), *ginkgo(unit=1e-9)]),
    ],
)
def test_json_of_another_layout_is_refused(tmp_path, data_folder, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(ProfileError, match=r"other\.json"):
        import_published([path], "mine")


def test_a_product_that_was_not_done_is_left_out(tmp_path, data_folder):
    lines = [f"K40m,cuda,Bai,m{n},9,100,100,500,5,5,5,5,5,5,0,csr,{1 + n}e-6,1,True" for n in range(200)]
    done = import_published([write(tmp_path, *lines)], "mine")
    assert (len(done.profile.records), done.left_out) == (200, {})
    lines.append("K40m,cuda,Bai,huge,9,1000000,1000000,5000000,5,5,5,5,5,5,0,csr,1e-7,1,True")
    found = import_published([write(tmp_path, *lines)], "mine")
    assert found.left_out == {"10 times as fast as nearly all others": 1}
    assert {r.matrix for r in found.profile.records} == {r.matrix for r in done.profile.records}
