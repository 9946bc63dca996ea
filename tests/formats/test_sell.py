"""Where SELL puts rows and padding, which window it chooses and how well its size is predicted."""

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparsecast.devices import DEVICES
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats.sell import (
    CHUNK_ROWS,
    PADDING_ABOVE_LEAST,
    PADDING_OF_WINDOWS,
    SELL,
    WINDOWS,
    best_window,
)
from sparsecast.matrices.synthesis import varied_matrix

from ..conftest import left_packed

row_lengths = st.lists(st.one_of(st.integers(0, 5), st.integers(0, 300)), max_size=60)
windows = st.one_of(st.just(1), st.integers(1, 9).map(lambda chunks: chunks * CHUNK_ROWS))


def of_lengths(lengths):
    """A matrix with these row lengths whose entries all stand in column 0 onwards, counted up."""
    A = left_packed(lengths)
    A.data[:] = np.arange(1.0, A.nnz + 1)
    return A


def order_of(lengths, window):
    """The rows as they are stored, by plain Python: a stable sort within each window."""
    firsts = range(0, len(lengths), window)
    return [
        i
        for first in firsts
        for i in sorted(range(first, min(first + window, len(lengths))), key=lambda i: -lengths[i])
    ]


def entries_of(lengths, window):
    """What a window stores, by plain Python."""
    order = order_of(lengths, window)
    chunks = [order[k : k + CHUNK_ROWS] for k in range(0, len(order), CHUNK_ROWS)]
    return sum(CHUNK_ROWS * max(lengths[i] for i in chunk) for chunk in chunks)


@given(row_lengths, windows)
def test_rows_are_sorted_by_length_within_windows_and_chunks_as_wide_as_their_longest_row(lengths, window):
    S = SELL.from_csr(of_lengths(lengths), sigma=window)
    order = order_of(lengths, window)
    widths = [
        max(lengths[i] for i in order[first : first + CHUNK_ROWS])
        for first in range(0, len(order), CHUNK_ROWS)
    ]
    assert (np.diff(S.chunk_starts) // CHUNK_ROWS).tolist() == widths
    assert S.sigma == window and S.permutation.tolist() == (order if window > 1 else [])


def test_entries_lie_column_by_column_and_padding_repeats_the_last_column_of_its_row():
    A = csr_array((np.arange(1.0, 5), [4, 2, 3, 1], [0, 0, 2, 3, 4]), shape=(4, 5))
    S = SELL.from_csr(A, sigma=8)
    assert S.permutation.tolist() == [1, 2, 3, 0]
    assert S.indices.tolist() == [4, 3, 1, 0, 0, 0, 0, 0, 2, 3, 1, 0, 0, 0, 0, 0]
    assert S.data.tolist() == [1, 3, 4, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]


@given(row_lengths)
def test_the_window_is_the_least_that_pads_little_more_than_a_sort_of_all_rows(lengths):
    everything = max(-(-len(lengths) // CHUNK_ROWS) * CHUNK_ROWS, 1)
    least = entries_of(lengths, everything)
    enough = [
        window
        for window in (*(window for window in WINDOWS if window < everything), everything)
        if entries_of(lengths, window)
        <= (1 + (PADDING_ABOVE_LEAST if window == 1 else PADDING_OF_WINDOWS)) * least
    ]
    if everything == CHUNK_ROWS:
        enough = [1]
    assert best_window(np.array(lengths, dtype=np.int32)) == enough[0]
    assert len(SELL.from_csr(of_lengths(lengths)).data) == entries_of(lengths, enough[0])


@pytest.mark.parametrize("kind", ("fixed", "mixed", "uniform", "power"))
@pytest.mark.parametrize("mean", (3, 20, 90))
@pytest.mark.parametrize("reach", (0.0, 1.0))
def test_size_of_benchmark_matrices_is_predicted_to_a_twentieth(kind, mean, reach):
    A = varied_matrix(5_000, mean, kind, reach, seed=1)
    S, blocks = SELL.from_csr(A), RowBlocks.of(structure(A, threads=1))
    assert SELL.stored_entries(blocks)[0] == pytest.approx(len(S.data), rel=PADDING_ABOVE_LEAST)
    assert SELL.predicted_bytes(blocks, 8, 4)[0] == pytest.approx(S.nbytes, rel=PADDING_ABOVE_LEAST)


@pytest.mark.parametrize("sigma", (1, 8, 256, 1 << 20))
@pytest.mark.parametrize("rows", (1, 7, 8, 9, 4_001))
def test_every_window_gives_the_same_product(sigma, rows):
    A = varied_matrix(rows, 1, "power", 1.0, seed=2)
    A.data[:] = np.round(8 * A.data)
    x = np.arange(rows) % 7 - 3.0
    threads = int(numba.config.NUMBA_NUM_THREADS)
    for count in {1, threads}:
        out = np.full(rows, np.nan)
        DEVICES.get("cpu").kernels.get("sell").bind(SELL.from_csr(A, sigma=sigma), "chunks", count)(x, out)
        assert np.array_equal(out, A @ x)


def test_large_matrices_are_converted_in_parts_and_by_several_callers_at_once():
    A = varied_matrix(120_000, 8, "uniform", 0.01, seed=4)
    with ThreadPoolExecutor(3) as pool:
        built = list(pool.map(lambda _: SELL.from_csr(A), range(3)))
    lanes = np.argsort(built[0].permutation)
    starts = built[0].chunk_starts[lanes // CHUNK_ROWS] + lanes % CHUNK_ROWS
    lengths = np.diff(A.indptr)
    places = np.repeat(starts, lengths) + CHUNK_ROWS * (np.arange(A.nnz) - np.repeat(A.indptr[:-1], lengths))
    for S in built:
        assert np.array_equal(S.indices[places], A.indices) and np.array_equal(S.data[places], A.data)
