"""The fixed levels and sizes at which features are counted."""

from __future__ import annotations

#: Row lengths at which rows are counted: every length up to 64, then eight steps an octave, up to 2**31.
#: Every statistic of a row block that a model needs follows from differences of such counts.
ROW_LENGTH_LEVELS: tuple[int, ...] = (
    *range(64),
    *(2**octave + step * 2 ** (octave - 3) for octave in range(6, 31) for step in range(8)),
    2**31,
)

#: Square block sizes whose fill is estimated.
BLOCK_SIZES: tuple[int, ...] = (2, 3, 4, 6, 8)

#: Bands of a tenth of the dimension each (Gahvari et al. 2007, section III).
BANDS = 10

#: A matrix with more diagonals for each entry of a row streams more bytes on diagonals than in CSR, with any
#: types: values of 4 bytes at least, against those and 8 bytes of index at most. Up to so many are counted.
DIAGONALS_AN_ENTRY = 3.0

#: Entries of x that share a cache line: 64 bytes of float64. Other types share it with more or fewer, which
#: features, counted before the type is known, leave aside.
X_LINE_COLUMNS = 8

#: Elements of the histogram of reuse of x: element 31 also holds longer reuse, the last one first reads.
X_REUSE_ELEMENTS = 33

#: Places for histories of four row lengths, in the estimate of mispredicted rows; a history keeps 16 bits of
#: each length, so longer ones than this are alike.
HISTORIES, LONGEST_REMEMBERED = 2**16, 2**16 - 2
