"""What ELL and HYB pad, what they refuse, and where HYB divides the rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparsecast.errors import PaddingError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import StripStatistics
from sparsecast.features.row_lengths import ROW_LENGTH_LEVELS
from sparsecast.formats.ell import ELL
from sparsecast.formats.hyb import HYB, threshold
from sparsecast.formats.storage_format import MAX_PADDING_FACTOR

from ..conftest import left_packed

row_lengths = st.lists(
    st.one_of(st.integers(0, 5), st.integers(60, 80), st.integers(0, 3000)), min_size=0, max_size=40
)

#: Of no matrix in particular: HYB looks at the row lengths alone.
SOME_STRUCTURE = structure(csr_array((1, 1)), threads=1)


def widest_level_that_a_third_of_the_rows_reaches(lengths):
    """Bell and Garland 2009, section 4.4, by trying every level, in whole numbers."""
    wide_enough = [
        level
        for level in ROW_LENGTH_LEVELS
        if level == 0 or (any(lengths) and 3 * sum(n >= level for n in lengths) >= max(len(lengths), 1))
    ]
    return max(wide_enough)


@pytest.mark.parametrize("rows", (10, 11))
def test_ell_is_refused_just_beyond_the_largest_padding(rows):
    A = left_packed([10] + [0] * (rows - 1))
    if rows <= MAX_PADDING_FACTOR:
        assert ELL.from_csr(A).data.shape == (rows, 10)
    else:
        with pytest.raises(PaddingError):
            ELL.from_csr(A)


def test_ell_is_as_wide_as_the_longest_row_and_pads_with_columns_of_the_same_row():
    A = csr_array((np.arange(1.0, 5), [4, 2, 3, 1], [0, 2, 2, 3, 4]), shape=(4, 5))
    E = ELL.from_csr(A)
    assert E.indices.tolist() == [[4, 2], [0, 0], [3, 3], [1, 1]]
    assert E.data.tolist() == [[1, 2], [0, 0], [3, 0], [4, 0]]


@given(row_lengths)
def test_hyb_threshold_is_the_rule_of_bell_and_garland_on_the_levels(lengths):
    expected = widest_level_that_a_third_of_the_rows_reaches(lengths)
    assert threshold(np.array(lengths, dtype=np.int32)) == expected


@given(row_lengths, st.integers(1, 9))
def test_hyb_split_of_strips_is_that_of_the_rows(lengths, strip_rows):
    indptr = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    strips = StripStatistics.of(indptr, SOME_STRUCTURE, strip_rows)
    first, last = np.triu_indices(strips.strips)
    widths, overflows = HYB.split(strips.blocks(first, last + 1))
    for start, end, width, overflow in zip(first, last + 1, widths, overflows, strict=True):
        part = lengths[strips.bounds[start] : strips.bounds[end]]
        assert width == widest_level_that_a_third_of_the_rows_reaches(part)
        assert overflow == sum(max(length - width, 0) for length in part)


@given(row_lengths)
def test_hyb_is_built_as_its_split_predicts(lengths):
    A = left_packed(lengths)
    strips = StripStatistics.of(A.indptr, SOME_STRUCTURE, max(len(lengths), 1))
    width, overflow = HYB.split(strips.blocks(np.array([0]), np.array([1])))
    H = HYB.from_csr(A)
    assert H.data.shape == H.indices.shape == (len(lengths), width[0])
    assert len(H.overflow_rows) == len(H.overflow_cols) == len(H.overflow_data) == overflow[0]
    expected = [(i, j) for i, n in enumerate(lengths) for j in range(width[0], n)]
    assert list(zip(H.overflow_rows.tolist(), H.overflow_cols.tolist(), strict=True)) == expected


@given(row_lengths.filter(any))
def test_hyb_never_stores_more_than_three_times_the_entries(lengths):
    H = HYB.from_csr(left_packed(lengths))
    assert H.data.size + H.overflow_data.size <= 3 * H.nnz
