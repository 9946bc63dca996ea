"""The stream read: that it reads all there is, with any number of threads."""

import numba
import numpy as np
import pytest

from sparsecast.measuring.references import memory_read

LIMIT = int(numba.config.NUMBA_NUM_THREADS)


@pytest.mark.parametrize("size, words", [(0, 1), (1, 1), (8, 1), (9, 2), (80_000, 10_000)])
def test_every_word_is_read_once(size, words):
    for threads in range(1, LIMIT + 1):
        assert np.sum(memory_read(size, threads)()) == words
