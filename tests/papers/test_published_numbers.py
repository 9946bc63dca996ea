"""The numbers that Guo et al. (2014) and Wang et al. (2017) print agree with each other."""

import re
from itertools import combinations, pairwise, product

import numpy as np
import pytest

import sparsecast as sc
from sparsecast.papers import published

GUO = published("guo_2014")
WANG = published("wang_2017")
SOLUTIONS = {solution["matrix"]: solution for solution in GUO["solutions"]}
BLOCKS = {
    matrix: [
        (int(first), int(last), formats)
        for first, last, formats in re.findall(r"\[(\d+), (\d+)\] ([A-Z/]+)", solution["blocks"])
    ]
    for matrix, solution in SOLUTIONS.items()
}

#: Section 5.2.1 of Guo et al.: the matrices of one block, by their format, and those of two.
ONE_BLOCK = {
    "CSR": {"Dense", "Protein", "FEM/Harbor", "LP"},
    "HYB": {"neos", "FEM/Ship", "Wind Tunnel", "Economics", "Circuit", "Webbase"},
    "ELL/HYB": {"linverse", "FEM/Spheres", "QCD", "Epidemiology"},
    "ELL": {"ex11", "FEM/Cantilever"},
}
TWO_BLOCKS = {"finan512", "nasasrb", "hcircuit", "OPF_6000", "OPF_10000", "FEM/Accelerator"}


def test_table_3_says_what_the_text_of_guo_says():
    by_formats = {formats: set() for formats in ONE_BLOCK}
    for matrix in SOLUTIONS.keys() - TWO_BLOCKS:
        ((_, _, formats),) = BLOCKS[matrix]
        by_formats[formats].add(matrix)
    assert by_formats == ONE_BLOCK
    assert {matrix for matrix, blocks in BLOCKS.items() if len(blocks) == 2} == TWO_BLOCKS
    assert BLOCKS["OPF_10000"] == [(1, 59, "ELL"), (60, 66, "CSR")]


def test_blocks_of_table_3_follow_each_other_from_the_first_strip():
    for blocks in BLOCKS.values():
        assert blocks[0][0] == 1
        assert all(first <= last for first, last, _ in blocks)
        assert all(after[0] == before[1] + 1 for before, after in pairwise(blocks))


def test_the_82_errors_of_guo_are_those_of_the_kernels_and_of_two_blocks():
    cases = GUO["cases"]
    assert cases["csr"] == cases["coo"] == cases["hyb"] == len(GUO["solutions"]) == len(SOLUTIONS)
    assert cases["opt"] == len(TWO_BLOCKS)
    assert sum(cases[name] for name in ("csr", "ell", "coo", "hyb", "opt")) == cases["all"]
    assert cases["below_9_percent"] + cases["between_9_and_10_percent"] == cases["all"]
    assert max(*GUO["mean_errors"].values(), GUO["opt"]["mean_error"]) < 0.09


def test_rows_of_table_3_are_those_of_the_matrices_in_a_shipped_profile():
    matrices = sc.profile("nvidia-v100").matrices
    rows = {
        name: (solution["rows"], matrices[name].structure.rows)
        for solution in SOLUTIONS.values()
        if (name := f"published:{solution.get('suitesparse')}") in matrices
    }
    assert len(rows) >= 10
    assert all(ours == theirs for ours, theirs in rows.values()), rows


@pytest.mark.parametrize(
    ("model", "kernel"), tuple(product(("wang-normal", "wang-uniform"), ("csr_vector", "csr", "ell")))
)
def test_factors_of_wang_follow_from_the_mean_errors(model, kernel):
    """A factor is cut to two decimals; errors are rounded to a hundredth of a percent."""
    fixed, error = WANG["mean_errors"]["wang-fixed"][kernel], WANG["mean_errors"][model][kernel]
    factor, half = WANG["factors"][model][kernel], 0.5e-4
    assert (fixed - half) / (error + half) - 0.01 < factor <= (fixed + half) / (error - half)


@pytest.mark.parametrize(("model", "quotient"), [("wang-normal", 1.51), ("wang-uniform", 1.39)])
def test_factors_of_jad_do_not_follow_from_the_mean_errors(model, quotient):
    errors = WANG["mean_errors"]
    assert errors["wang-fixed"]["jad"] / errors[model]["jad"] == pytest.approx(quotient, abs=0.006)
    assert WANG["factors"][model]["jad"] < quotient - 0.03


def test_the_factor_of_the_abstract_of_wang_is_the_mean_of_those_of_the_text():
    factors = [factor for by_kernel in WANG["factors"].values() for factor in by_kernel.values()]
    assert len(factors) == 8
    assert round(np.mean(factors), 2) == WANG["mean_factor"]


def test_each_pair_of_models_of_wang_is_compared_on_thirty_matrices_for_each_kernel():
    models = ("wang-fixed", "wang-normal", "wang-uniform")
    compared = [(row["kernel"], frozenset((row["first"], row["second"]))) for row in WANG["comparisons"]]
    pairs = [frozenset(pair) for pair in combinations(models, 2)]
    assert len(compared) == len(set(compared))
    assert set(compared) == set(product(WANG["mean_errors"]["wang-fixed"], pairs))
    printed_twice = [row for row in WANG["comparisons"] if "second_better" in row]
    assert {row["kernel"] for row in printed_twice} == {"ell", "jad"}
    assert all(row["first_better"] + row["second_better"] == WANG["matrices"] for row in printed_twice)


def test_matrices_that_wang_names_are_the_examples_of_the_comparisons():
    examples = {row["example"] for row in WANG["comparisons"] if "example" in row}
    assert {name.split("/")[1] for name in WANG["named"]} == examples
