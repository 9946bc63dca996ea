"""What the project's own model learns from published results: physics, and boosted trees for each kernel.

Of a published matrix only counts are known, so that much of the time cannot be explained: where the entries
lie, and on which of several machines of one name the product was done. What can be learned is how a kernel
of a library goes with the counts. So each kernel has its own trees, and they see the work of such kernels:
padding in slices and in warps, the division of a hybrid format, rows and entries as sizes.

The trees learn log(measured / physics), where the physics is the linear model with the padding of slices.
They are boosted (Friedman 2001), each from a random half of the results (Friedman 2002), and minimise
absolute errors: some single runs are wrong by any factor. The groups of matrices are divided into PARTS; for
each part trees are grown without it, and their mean forecasts. What those without a matrix' part say of it
tells the errors: nine tenths of those nearest to a forecast lie in its interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import ProfileError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.features.sweep import X_LINE_COLUMNS
from sparsecast.models.fitting import prediction_interval, typical_costs
from sparsecast.models.forest import Floats, Forest
from sparsecast.models.linear import WorkCosts
from sparsecast.models.training import TrainingSet
from sparsecast.models.work import CORRECTION, ProductWork
from sparsecast.records import Candidate
from sparsecast.system.progress_events import tell

#: Parts of the groups of matrices that are left out in turn.
PARTS = 5

#: Fewest results of a kernel that are learned from; they must be of two groups at least.
LEAST_RESULTS = 20

#: Settings of scikit-learn's GradientBoostingRegressor, none searched for: many small steps of small trees,
#: each of which sees a part of the results and of the features.
BOOSTING: dict[str, Any] = {
    "loss": "absolute_error",
    "n_estimators": 150,
    "learning_rate": 0.1,
    "max_depth": 5,
    "min_samples_leaf": 5,
    "max_features": 0.3,
    "subsample": 0.5,
}

#: Binary digits of features, and so of thresholds, and what leaves are rounded to: shipped fits are small.
_DIGITS, _LEAF_STEP = 11, 1 / 64

#: Forecasts whose errors tell that of one near them, and places at which these are kept.
_NEAREST, _PLACES = 151, 60

#: Shares of the rows, ascending by length, at which their lengths are features.
_SHARES = (0.05, 0.1, 0.25, 1 / 3, 0.5, 2 / 3, 0.75, 0.9, 0.95, 0.99)

#: Lines of x that even the most similar rows do not share, so that their logarithm is a number.
_LEAST_SHARE = 0.02

#: Rows that a slice or a warp does together, and threads that do a row together, in libraries.
_TOGETHER = (2, 4, 8, 16, 32, 64)
_THREADS_A_ROW = (2, 4, 8, 16, 32)

#: Formats that GPUs read in slices: a warp of ELL stops where its longest row ends.
_SLICED = ("ell", "sell")

#: Length of the longest row over the number of rows above which Ginkgo's ELL has several threads for a row.
_DIVIDED = 0.01


@dataclass(frozen=True, slots=True)
class PublishedWork(ProductWork):
    """Work of libraries on GPUs: the padding is that of slices, and few long rows are divided."""

    def of(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        counts = ProductWork.of(self, candidate, blocks)
        if candidate.format != "ell" or not self._is_sliced(candidate, blocks.matrix):
            return counts
        is_divided = float(blocks.matrix.row_lengths.max > _DIVIDED * blocks.matrix.rows)
        divided = {f"{kind}, divided": is_divided * count for kind, count in counts.items()}
        return counts | divided | {"longest row": (1 - is_divided) * counts["longest row"]}

    def _stored(self, candidate: Candidate, blocks: RowBlocks) -> tuple[Floats, Floats]:
        stored, matrix_bytes = ProductWork._stored(self, candidate, blocks)
        if not self._is_sliced(candidate, blocks.matrix):
            return stored, matrix_bytes
        sliced = _stored_in_slices(blocks.matrix) * blocks.nnz / max(blocks.matrix.nnz, 1)
        return sliced, matrix_bytes + (sliced - stored) * (candidate.value_bytes + candidate.index_bytes)

    def _is_sliced(self, candidate: Candidate, matrix: Structure) -> bool:
        is_of_counts = "neighbourhood" not in matrix.groups
        return candidate.format in _SLICED and self.machine.gpu is not None and is_of_counts


class PublishedCosts(WorkCosts):
    """What a unit of this work costs."""

    work = PublishedWork


@dataclass(frozen=True)
class Errors:
    """Errors of forecasts of what was left out, by how long the forecast is: arrays of shape (places,)."""

    log_s: Floats  # log(forecast_s), ascending
    #: low, high: ends of the interval of log(measured / forecast) near there.
    low: Floats
    high: Floats

    @classmethod
    def of(cls, log_s: Floats, errors: Floats) -> Errors:
        """Return the errors of forecasts, in any order; both arrays have the shape (forecasts,)."""
        order = np.argsort(log_s, kind="stable")
        near = min(_NEAREST, len(order))
        first = np.unique(np.linspace(0, len(order) - near, _PLACES).astype(np.int64))
        windows = [np.exp(errors[order[start : start + near]]) for start in first]
        ends = np.log([prediction_interval(window.tolist()) for window in windows])
        return cls(log_s[order[first + near // 2]], *ends.T)

    def interval(self, log_s: float) -> tuple[float, float]:
        """Return the ends of the interval of a forecast, which it holds, as logarithms."""
        low, high = (float(np.interp(log_s, self.log_s, ends)) for ends in (self.low, self.high))
        return log_s + min(low, 0.0), log_s + max(high, 0.0)


@dataclass(frozen=True)
class PublishedTrees:
    """Physics, and for each kernel that was published trees and their errors, by label."""

    physics: PublishedCosts
    trees: Mapping[str, Forest]
    errors: Mapping[str, Errors]

    @classmethod
    def learned(cls, training: TrainingSet) -> PublishedTrees:
        """Return what results teach; a ProfileError if no kernel has LEAST_RESULTS of two groups."""
        work = []
        for fit in PublishedWork(training.machine).counted(training):
            groups_of_fit = {training.group(training.records[place]) for place in fit.places}
            if len(fit.places) >= LEAST_RESULTS and len(groups_of_fit) > 1:
                work.append(fit)
        if not work:
            raise ProfileError(
                f"the profile's {len(training.records)} published results do not suffice: expected "
                f"{LEAST_RESULTS} of one kernel, of two groups of matrices; import more results"
            )
        physics = PublishedCosts.fitted(training.machine, work, typical_costs)
        points = {r.matrix: of_matrix(training.structure(r)) for r in training.records}
        trees, errors = {}, {}
        for number, fit in enumerate(work):
            tell(f"fitting {training.machine.name}", number, len(work))
            records = [training.records[place] for place in fit.places]
            costs = [physics.costs[fit.label][kind] for kind in fit.kinds]
            log_physics = np.log(np.maximum(fit.counts @ costs, np.finfo(float).tiny))
            features = _rounded(np.column_stack([[points[record.matrix] for record in records], log_physics]))
            groups = np.array([training.group(record) for record in records], dtype=object)
            ratios = np.log(fit.time_s) - log_physics
            trees[fit.label], left_out = _boosted_without(features, ratios, _parts(groups))
            errors[fit.label] = Errors.of(log_physics + left_out, ratios - left_out)
        return cls(physics, trees, errors)

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        """Return the terms of the physics, the correction that the trees add, and the sum, in seconds.

        The correction is that of the whole matrix, in proportion.
        """
        label, matrix = self.physics.label(candidate), blocks.matrix
        terms = self.physics.terms(candidate, blocks)
        is_whole = len(blocks.rows) == 1 and blocks.rows[0] == matrix.rows
        whole = terms if is_whole else self.physics.terms(candidate, RowBlocks.of(matrix))
        log_physics = np.log(whole["time_s"])
        trees = self.trees[label].mean(_rounded(np.array([[*of_matrix(matrix), *log_physics]])))
        factor = np.exp(trees)
        time_s = terms.pop("time_s")
        return {**terms, CORRECTION: time_s * (factor - 1.0), "time_s": time_s * factor}

    def interval(self, candidate: Candidate, value: float) -> tuple[float, float]:
        label = self.physics.label(candidate)
        low, high = np.exp(self.errors[label].interval(float(np.log(value)))).tolist()
        return low, high


def _parts(groups: NDArray[np.object_]) -> NDArray[np.int64]:
    """Return the part of each result: groups in turn, those with most results first, to the least part."""
    names, place, counts = np.unique(groups.astype(str), return_inverse=True, return_counts=True)
    sizes, part_of = np.zeros(min(PARTS, len(names)), dtype=np.int64), np.zeros(len(names), dtype=np.int64)
    for group in np.argsort(-counts, kind="stable"):
        part_of[group] = sizes.argmin()
        sizes[part_of[group]] += counts[group]
    return np.asarray(part_of[place])


def _rounded(features: Floats) -> Floats:
    digits, exponents = np.frexp(features)
    return np.asarray(np.ldexp(np.round(digits * 2**_DIGITS), exponents - _DIGITS))


def _boosted_without(features: Floats, values: Floats, parts: NDArray[np.int64]) -> tuple[Forest, Floats]:
    """Return trees that were grown without each part in turn, and what is said of each value without it."""
    grown, left_out = [], np.empty(len(values))
    for part in range(parts.max() + 1):
        is_out = parts == part
        trees = Forest.boosted(features[~is_out], values[~is_out], random_state=part, **BOOSTING)
        trees = trees.rounded(_LEAF_STEP)
        left_out[is_out] = trees.mean(features[is_out])
        grown.append(trees)
    return Forest.joined(grown), left_out


def of_matrix(structure: Structure) -> list[float]:
    """Return the features of a matrix: of its row lengths, or of moments of these and of neighbours.

    All that one fit sees are of one kind: the matrices of a table are told alike, and a question knows as
    much of its matrix as they do. Sizes and lengths are logarithms, so that equal steps are equal factors.
    """
    return _of_lengths(structure) if structure.lacks(["neighbourhood"]) else _of_neighbours(structure)


def _of_neighbours(structure: Structure) -> list[float]:
    """Return the features of a matrix by what artificial ones are drawn from.

    Of the row lengths there are only mean, deviation and the longest: the others were made up from these.
    """
    near, lengths = structure.neighbourhood, structure.row_lengths
    rows, cols, nnz = (max(count, 1) for count in (structure.rows, structure.cols, structure.nnz))
    mean, longest = nnz / rows, max(lengths.max, 1)
    begun = 1 - near.neighbours / 2 * (1 - 1 / X_LINE_COLUMNS)
    read_anew = begun * (1 + _LEAST_SHARE - near.cross_row_similarity)
    sizes = (nnz, rows, cols, mean, 12 * nnz + 4 * rows + 8 * (rows + cols), longest, longest / nnz)
    return [
        *np.log(sizes),
        lengths.deviation / mean,
        np.log(longest / mean),
        np.log1p(near.row_bandwidth),
        near.row_bandwidth / cols,
        near.row_bandwidth_deviation / max(near.row_bandwidth, 1.0),
        np.log(near.scatter + 1 / cols),
        near.neighbours,
        near.cross_row_similarity,
        *np.log((read_anew, nnz * read_anew)),
    ]


def _of_lengths(structure: Structure) -> list[float]:
    blocks, lengths = RowBlocks.of(structure), structure.row_lengths
    rows, cols, nnz = (max(count, 1) for count in (structure.rows, structure.cols, structure.nnz))
    levels, at_least, mean = blocks.levels, blocks.rows_at_least[0], nnz / rows
    # Of a share of the rows, the greatest level that the others reach.
    of_share = levels[[int(np.sum(at_least >= (1 - share) * rows)) - 1 for share in _SHARES]]
    exactly, length = at_least - np.append(at_least[1:], 0), np.maximum(levels, 1)
    rounded = [float(exactly @ (-(-length // threads) * threads)) for threads in _THREADS_A_ROW]
    longest = _longest_of_several(levels, at_least / rows)
    csr_bytes, vector_bytes = 12 * nnz + 4 * rows, 8 * (rows + cols)
    sizes = (nnz, rows, cols, mean, nnz / rows / cols, csr_bytes + vector_bytes, 8 * cols / csr_bytes)
    stored = _stored_in_slices(structure)
    padded = (rows * max(lengths.max, 1), *(rows * longest), *rounded, stored)
    return [
        *np.log(sizes),
        *np.log(np.maximum(padded, 1)),
        *np.log(longest / mean),
        np.log(stored / nnz),
        np.log(stored / rows / longest[-1]),
        *np.log1p([lengths.min, *of_share, lengths.max]),
        lengths.deviation / mean,
        lengths.empty_rows / rows,
        np.log(max(lengths.max, 1) / mean),
        np.log(max(lengths.max, 1) / rows),
        *_hybrid(blocks, min(of_share[3], rows / 1000)),
        *_hybrid(blocks, of_share[5]),
    ]


def _stored_in_slices(structure: Structure) -> float:
    """Return the entries that slices store, or are expected to store if the order of the rows is unknown."""
    if not structure.lacks(["slices"]):
        return float(max(structure.slices.stored, 1))
    blocks, rows = RowBlocks.of(structure), max(structure.rows, 1)
    return float(rows * _longest_of_several(blocks.levels, blocks.rows_at_least[0] / rows)[-1])


def _longest_of_several(levels: NDArray[np.int64], share_at_least: Floats) -> Floats:
    """Return the expected longest of _TOGETHER rows that are drawn at random.

    It is the sum over lengths of the probability that not all of the rows are shorter.
    """
    reached = 1.0 - (1.0 - share_at_least[None, 1:]) ** np.array(_TOGETHER)[:, None]
    return np.asarray(np.maximum(reached @ np.diff(levels), 0.1))


def _hybrid(blocks: RowBlocks, width: float) -> list[float]:
    """Return the stored entries of a hybrid format of this width, those beyond it, and their share.

    Ginkgo takes the length that a third of the rows do not exceed, at most a thousandth of their number (its
    automatic strategy); Bell and Garland (2009, section 4.4) that which a third of the rows reach.
    """
    level = max(int(np.searchsorted(blocks.levels, width, side="right")) - 1, 0)
    beyond = float(blocks.nnz[0] - blocks.entries_up_to[0, level])
    return [*np.log1p([width * blocks.rows[0], beyond]), beyond / max(float(blocks.nnz[0]), 1.0)]
