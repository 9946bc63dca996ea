"""The picture of the gallery: where the entries of each matrix are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from scipy.sparse import csr_array

from sparsecast.matrices.gallery import gallery, gallery_names, gallery_parameters
from sparsecast.reports.figures import COLOURS, save

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
    from matplotlib import figure as drawing

    shown = drawn_matrices()
    rows = -(-len(shown) // _COLUMNS)
    figure = drawing.Figure(figsize=(3.3 * _COLUMNS, 3.9 * rows))
    axes = figure.subplots(rows, _COLUMNS, squeeze=False).ravel()
    for ax in axes[len(shown) :]:
        ax.set_axis_off()
    for ax, (name, (said, matrix)) in zip(axes, shown.items(), strict=False):
        ax.spy(matrix, markersize=max(0.6, 150 / matrix.shape[0]), color=COLOURS[0], rasterized=True)
        ax.set_title(name, fontsize=12, fontweight="bold", pad=18)
        ax.text(0.5, 1.02, said, transform=ax.transAxes, ha="center", va="bottom", fontsize=9)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_xlabel(f"drawn: {matrix.shape[0]} rows, {matrix.nnz:,} entries", fontsize=9)
    figure.suptitle("The gallery, with the default parameters, drawn small", y=0.985)
    figure.subplots_adjust(left=0.02, right=0.98, bottom=0.03, top=0.91, wspace=0.07, hspace=0.27)
    save(figure, path)
