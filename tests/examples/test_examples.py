"""The scripts of examples/, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROFILE = ROOT / "tests/data/recorded-profile.parquet"


def run(script, *arguments):
    line = [sys.executable, "-W", "error", ROOT / "examples" / script, *arguments]
    return subprocess.run(list(map(str, line)), capture_output=True, text=True, timeout=120, check=False)


def test_guo_on_the_gallery_of_a_profile(data_folder, tmp_path):
    figure = tmp_path / "guo.svg"
    done = run("guo_2014.py", "--profile", PROFILE, "--threads", "1", "--figure", figure)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[2:]]
    assert [row[0] for row in rows] == ["csr", "ell", "coo", "hyb"]
    assert [row[4] for row in rows] == ["6.3%", "4.4%", "2.2%", "4.7%"]
    assert all(int(count) > 0 and float(error[:-1]) > 0 for _, count, error, *_ in rows)
    assert any(row[2] != row[3] for row in rows), "fits as printed are others"
    drawn = figure.read_text()
    for text in ("HYB", "measured", "fits as printed", "of the paper, Tesla C2050"):
        assert f">{text}<" in drawn


def test_guo_on_published_results(tmp_path, data_folder):
    """Ten groups of whole strips with times on a straight line: the models fit the other half."""
    lines = [
        "machine,executor,group,matrix,rows,cols,nnz,rd_min,rd_q1,rd_median,rd_q3,rd_max,rd_variance,format,time_s"
    ]
    strip = 80 * 64 * 32  # threads that a V100 has on its way
    for group in range(10):
        for rows, length in ((strip, 3 + group), (2 * strip, 5), (5 * strip, 7)):
            nnz = rows * length
            described = ",".join([str(float(length))] * 5)
            lines += [
                f"V100_SXM2,cuda,g{group},m{rows},{rows},{rows},{nnz},{described},0,{name},{1e-5 + nnz / 1e9}"
                for name in ("csr", "ell", "coo")
            ]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(lines))
    done = run("guo_2014.py", "--published", table)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[2:]]
    assert [row[:2] for row in rows] == [["csr", "15"], ["ell", "15"], ["coo", "15"]]
    assert all(float(row[2][:-1]) < 2 for row in rows)


def test_wang_without_its_matrices_says_what_adds_them(data_folder):
    done = run("wang_2017.py", "--profile", PROFILE, "--threads", "1")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "add them by `sparsecast calibrate --suites wang`" in done.stderr


@pytest.mark.parametrize("script", ["guo_2014.py", "wang_2017.py"])
def test_a_matrix_is_measured_on_the_machine_of_the_profile_alone(script, data_folder):
    done = run(script, "--profile", "nvidia-a100", "gallery:laplacian_2d?n=20")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "nvidia-a100" in done.stderr


@pytest.mark.parametrize("script", ["guo_2014.py", "wang_2017.py"])
def test_an_unknown_profile_is_one_line(script, data_folder):
    done = run(script, "--profile", "nowhere")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "nowhere" in done.stderr


@pytest.mark.parametrize("script", ["guo_2014.py", "wang_2017.py", "barreda.py"])
def test_a_figure_of_an_unknown_kind_is_refused_first(script, data_folder, tmp_path):
    done = run(script, "--figure", tmp_path / "a.bmp")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "expected a name that ends in .png, .svg, .pdf" in done.stderr


def test_barreda_without_a_profile_says_what_makes_one(data_folder):
    done = run("barreda.py")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "run sparsecast calibrate" in done.stderr
