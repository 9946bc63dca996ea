"""Distances between entries, against an oracle that looks at each pair, and only where they are asked for."""

import dataclasses
import itertools
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from sparsecast.features import FEATURES, usual_groups
from sparsecast.features.analysis import structure
from sparsecast.features.neighbourhood import Neighbourhood
from sparsecast.matrices.gallery import gallery


def oracle(A):
    lists = [sorted(A.indices[a:b].tolist()) for a, b in itertools.pairwise(A.indptr)]
    widths = [own[-1] - own[0] if own else 0 for own in lists]
    filled = [own for own in lists if own]
    pairs = sum(b - a <= 1 for own in lists for a, b in itertools.pairwise(own))
    shares = [
        sum(any(abs(column - other) <= 1 for other in beside) for column in own) / len(own)
        for own, beside in zip(filled, [*filled[1:], []], strict=False)
    ]
    return Neighbourhood(
        row_bandwidth=statistics.mean(widths),
        row_bandwidth_deviation=statistics.pstdev(widths),
        scatter=statistics.mean(len(own) / w if w else 0.0 for own, w in zip(lists, widths, strict=True)),
        neighbours=2 * pairs / max(A.nnz, 1),
        cross_row_similarity=statistics.mean(shares) if shares else 0.0,
    )


def found_in(A, threads=1):
    (group,) = structure(A, threads=threads, groups=["neighbourhood"]).groups.values()
    return dataclasses.asdict(group)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 80),
    st.integers(1, 60),
    st.sampled_from([0.0, 0.02, 0.2, 0.9]),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_random_matrices_agree_with_the_oracle(rows, cols, density, seed, shuffled):
    draw = np.random.default_rng(seed)
    A = csr_array(random_array((rows, cols), density=density, rng=draw))
    expected = dataclasses.asdict(oracle(A))
    if shuffled:
        for first, last in itertools.pairwise(A.indptr):
            A.indices[first:last] = draw.permutation(A.indices[first:last])
    assert found_in(A) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert structure(A, groups=usual_groups()).having(Neighbourhood(**found_in(A))).checked()


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0), (3, 4)])
def test_nothing_is_near_to_nothing(shape):
    assert set(found_in(csr_array(shape)).values()) == {0.0}


def test_no_forecast_pays_for_it_unasked():
    found = structure(gallery("poisson2d", n=9))
    assert found.lacks(FEATURES.names()) == ["entry_blocks", "neighbourhood", "slices"]
    assert "neighbourhood" not in usual_groups()
