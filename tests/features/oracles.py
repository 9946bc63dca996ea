"""What tests of features share: matrices that hypothesis draws, and rows whose length nothing told."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from hypothesis import strategies as st
from scipy.sparse import csr_array


@st.composite
def drawn_matrices(draw) -> csr_array:
    rows, cols = draw(st.integers(1, 60)), draw(st.integers(1, 200))
    lengths = np.array(draw(st.lists(st.integers(0, 12), min_size=rows, max_size=rows)))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    narrow = draw(st.booleans())
    index = draw(st.sampled_from([np.int32, np.int64]))
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(index)
    # Unsorted and with duplicates; when narrow, in few columns, so that lines and diagonals repeat.
    indices = generator.integers(0, min(cols, 9) if narrow else cols, indptr[-1]).astype(index)
    data = generator.integers(-2, 3, indptr[-1]).astype(float)
    return csr_array((data, indices, indptr), shape=(rows, cols))


def mispredicted(lengths: Iterable[int]) -> list[bool]:
    """Tell for each row whether its length is not what followed the same four lengths last."""
    followers, flags, history = {}, [], 0
    for length in lengths:
        # Four lengths of 16 bits, of which a multiplicative hash makes one of 65,536 places.
        place = history * 0x9E3779B97F4A7C15 % 2**64 >> 48
        remembered = min(int(length), 65534) + 1
        flags.append(followers.get(place) != remembered)
        followers[place] = remembered
        history = (history << 16 | remembered) % 2**64
    return flags
