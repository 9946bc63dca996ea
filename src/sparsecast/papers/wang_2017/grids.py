"""The grids of benchmark matrices of Wang et al. (2017), section 3.1, which models and suite share."""

from __future__ import annotations

#: Wang et al. (2017), section 3.1: strips I and mean non-zeros a row P, for CSR with a thread a row, ELL and
#: JAD, and for CSR with half a warp a row. The distributions of the row lengths are its own two, the one that
#: its generator has, and the one of the model that it compares with.
_NNZ_PER_ROW = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
THREAD_GRID = (tuple(range(1, 11)), _NNZ_PER_ROW)
VECTOR_GRID = ((*range(1, 11), *range(15, 51, 5)), (*_NNZ_PER_ROW, 1536, 2048, 2560, 3072))
LENGTHS = ("normal", "uniform", "binomial", "fixed")
