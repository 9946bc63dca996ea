"""The picture of the gallery: where the entries of each matrix are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from scipy.sparse import csr_array

from sparsecast.matrices.gallery import gallery, gallery_names, gallery_parameters
from sparsecast.reports.figures import COLOURS, drawing, hide

#: Rows of a drawn matrix at most: each entry is still told from its neighbours.
_ROWS = 400

_COLUMNS = 3


def drawn_matrices() -> dict[str, tuple[str, csr_array]]:
    """Return each matrix of the gallery, made small, with its default parameters in words, by name."""
    found = {}
    for name in gallery_names():
        defaults = gallery_parameters(name)
        said = ", ".join(f"{key}={'...' if value is None else value}" for key, value in defaults.items())
        found[name] = (said, _small(name, defaults))
    return found


def _small(name: str, defaults: Mapping[str, int | None]) -> csr_array:
    """Return a matrix of at most _ROWS rows: its first parameter is the largest power of two for that."""
    size, best = next(iter(defaults)), None
    value = 1
    while value <= _ROWS:
        try:
            made = gallery(name, **{size: value})
        except ValueError:  # too small for its other parameters
            value *= 2
            continue
        if made.shape[0] > _ROWS:
            break
        best, value = made, value * 2
    if best is None:
        raise ValueError(f"no matrix {name} has at most {_ROWS} rows: draw it with other parameters")
    return best


def draw_gallery(path: Path) -> None:
    """Draw all matrices of the gallery in a grid into a file of FILE_TYPES.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    shown = drawn_matrices()
    rows = -(-len(shown) // _COLUMNS)
    title = "The gallery, with the default parameters, drawn small"
    with drawing(path, 3.3 * _COLUMNS, 3.9 * rows, title) as figure:
        axes = figure.subplots(rows, _COLUMNS, squeeze=False).ravel()
        hide(axes[len(shown) :])
        for ax, (name, (said, matrix)) in zip(axes, shown.items(), strict=False):
            ax.grid(False)
            ax.spy(matrix, markersize=max(0.6, 150 / matrix.shape[0]), color=COLOURS[0], rasterized=True)
            ax.set_title(f"{name}\n{said}")
            ax.set_xticks([])
            ax.set_yticks([])
            ax.set_xlabel(f"drawn: {matrix.shape[0]} rows, {matrix.nnz:,} entries")
