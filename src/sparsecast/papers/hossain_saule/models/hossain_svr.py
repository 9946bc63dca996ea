"""The support vector regression of Hossain and Saule for one process.

Source: M. M. Hossain, E. Saule, "Performance Model of Iterated SpMV for Distributed System", section III.B:
a regression with a polynomial kernel for each format, whose C and gamma a grid search with 5-fold cross-
validation chooses. Features: rows and non-zeros of a process, non-zeros a row, density, and deviation of
the row lengths; the others describe communication, and one process has none.

What the paper leaves open, and what is done here:

- Degree, epsilon and coef0: 3, 0.1 and 1. The pair of C and gamma with the least squared error is the best.
- Features and time are standardised; else an epsilon of 0.1 seconds would swallow every time. Ours are
  logarithms before that, because times from a microsecond to a tenth of a second would leave the small ones
  within epsilon; `as_printed` takes them as they are.
- The paper chooses test matrices within the range of the training set. Here features beyond that range are
  taken to its end, and the term `features_beyond` says how many. Where the regression gives no time above 0,
  the least measured one takes its place.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import product
from typing import Any, ClassVar

import numpy as np

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import PROCESSOR
from sparsecast.models import MODELS
from sparsecast.models.fitting import Floats, above_zero
from sparsecast.models.model import Model
from sparsecast.models.training import TrainingSet
from sparsecast.papers.hossain_saule.models.hossain_linear import FORMATS_OF_THE_PAPER
from sparsecast.records import Candidate

#: Section III.B.1: the grid, and the parts of the cross-validation.
GRID_C = tuple(2.0**k for k in range(-2, 6))
GRID_GAMMA = (*(k / 100 for k in range(1, 10)), 0.1, 0.2, 0.3)
FOLDS = 5

#: What the paper does not state. A regression that takes more steps is far from the best pair.
DEGREE, EPSILON, COEF0, MOST_STEPS = 3, 0.1, 1.0, 5_000

#: Fewest Records of a format: as many in each part as there are features. And most, evenly chosen: the paper
#: has 90 matrices, and the time of the search grows with their square.
LEAST_RECORDS, MOST_RECORDS = 25, 200


@MODELS.register("hossain-svr")
class HossainSVR(Model):
    """A support vector regression for each format.

    Parameters
    ----------
    as_printed : bool
        Whether features and times are taken as they are, without logarithms.

    Attributes
    ----------
    fits_ : dict of str to dict
        For each format C, gamma, the least and greatest, the mean and the deviation of features and of the
        target, support vectors, their coefficients, the intercept and the least time.
    most_ : int
        Records of the format that had most.
    """

    name: ClassVar[str] = "hossain-svr"
    devices: ClassVar[tuple[str, ...] | None] = (PROCESSOR,)
    covers: ClassVar[tuple[str, ...] | None] = FORMATS_OF_THE_PAPER
    compared: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"as_printed": True})
    fits_: dict[str, dict[str, Any]]
    most_: int

    def __init__(self, as_printed: bool = False) -> None:
        self.as_printed = as_printed

    def _fit(self, training: TrainingSet) -> None:
        self.fits_ = {}
        self.most_ = 0
        for name in FORMATS_OF_THE_PAPER:
            own = [record for record in training.records if record.candidate.format == name]
            self.most_ = max(self.most_, len(own))
            if len(own) >= LEAST_RECORDS:
                own = [own[k] for k in np.linspace(0, len(own) - 1, min(len(own), MOST_RECORDS)).astype(int)]
                shapes = [RowBlocks.of(training.structure(record)) for record in own]
                features = np.concatenate([self._features(each) for each in shapes])
                self.fits_[name] = self._fitted(features, np.array([record.time_s for record in own]))

    def _fitted(self, features: Floats, time_s: Floats) -> dict[str, Any]:
        """Return the regression of the best pair of C and gamma as plain data."""
        target = time_s if self.as_printed else np.log(time_s)
        center, scale = features.mean(axis=0), _deviation(features)
        middle, unit = float(target.mean()), float(_deviation(target))
        x, y = (features - center) / scale, (target - middle) / unit
        best = best_regression(x, y)
        return {
            "C": best.C,
            "gamma": best.gamma,
            "range": [features.min(axis=0).tolist(), features.max(axis=0).tolist()],
            "center": center.tolist(),
            "scale": scale.tolist(),
            "target": [middle, unit],
            "vectors": best.support_vectors_.tolist(),
            "weights": best.dual_coef_[0].tolist(),
            "intercept": float(best.intercept_[0]),
            "least_s": float(time_s.min()),
        }

    def _features(self, blocks: RowBlocks) -> Floats:
        found = features_of(blocks)
        # Counts and lengths may be 0, and a density is far below 1.
        return found if self.as_printed else np.log(found + np.array([1, 1, 1, 1e-12, 1]))

    def needed(self) -> str:
        """Return what is missing, and what measures it."""
        return (
            f"{LEAST_RECORDS} of one format, of which they have {self.most_}; add them by "
            f"`sparsecast calibrate` with a larger budget"
        )

    def formats(self) -> list[str]:
        """Return the formats with enough Records."""
        return list(self.fits_)

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        """Return the forecast, and how many features lie beyond the range of the Records."""
        fit = self.fits_[candidate.format]
        features = self._features(blocks)
        within = np.clip(features, *np.array(fit["range"]))
        middle, unit = fit["target"]
        target = middle + unit * regressed(fit, (within - np.array(fit["center"])) / np.array(fit["scale"]))
        time_s = target if self.as_printed else np.exp(target)
        return {
            "features_beyond": np.sum(features != within, axis=1, dtype=float),
            "time_s": above_zero(time_s, fit["least_s"]),
        }


def best_regression(x: Floats, y: Floats) -> Any:
    """Return scikit-learn's regression with the C and gamma that cross-validation prefers (section III.B.1).

    Parameters
    ----------
    x : float array of shape (matrices, features)
    y : float array of shape (matrices,)
        Both standardised.
    """
    from sklearn import config_context
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import SVR

    part = np.random.default_rng(0).permutation(len(y)) % FOLDS

    def fitted(pair: tuple[float, float], is_used: Any) -> Any:
        usual = {"kernel": "poly", "degree": DEGREE, "coef0": COEF0, "epsilon": EPSILON}
        regression = SVR(**usual, C=pair[0], gamma=pair[1], max_iter=MOST_STEPS)
        return regression.fit(x[is_used], y[is_used])

    best, least = (GRID_C[0], GRID_GAMMA[0]), np.inf
    # The fits are small and hundreds: checks of their arrays would take most of the time.
    unchecked = config_context(assume_finite=True, skip_parameter_validation=True)
    with warnings.catch_warnings(), unchecked:
        warnings.simplefilter("ignore", ConvergenceWarning)
        for pair in product(GRID_C, GRID_GAMMA):
            total = 0.0
            for each in range(FOLDS):
                error = fitted(pair, part != each).predict(x[part == each]) - y[part == each]
                total += float(error @ error)
                if total >= least:
                    break  # the other parts can only add to it
            else:
                best, least = pair, total
        return fitted(best, slice(None))


def regressed(fit: Mapping[str, Any], x: Floats) -> Floats:
    """Return the sum over support vectors v of alpha (gamma <v, x> + coef0)^degree, and the intercept.

    Parameters
    ----------
    fit : mapping
        With gamma, vectors, weights (alpha) and intercept, as `HossainSVR.fits_` has them.
    x : float array of shape (blocks, features)
        Standardised.
    """
    kernel = (fit["gamma"] * (x @ np.array(fit["vectors"]).T) + COEF0) ** DEGREE
    return np.asarray(kernel @ np.array(fit["weights"]) + fit["intercept"])


def features_of(blocks: RowBlocks) -> Floats:
    """Return section III.B.2's features of each block that concern one process, of shape (blocks, 5).

    They are rows, non-zeros, non-zeros a row, density, and the deviation of the row lengths. The last
    is exact for rows of less than 64 entries; the longer ones between two levels count as equally long.
    """
    rows, nnz = blocks.rows.astype(float), blocks.nnz.astype(float)
    mean = nnz / np.maximum(rows, 1)
    density = mean / max(blocks.matrix.cols, 1)
    at_least = blocks.rows_at_least.astype(float)
    below = blocks.entries_up_to - at_least * blocks.levels  # entries of the rows below each level
    nothing = np.zeros((len(rows), 1))
    count = at_least - np.hstack([at_least[:, 1:], nothing])
    entries = np.hstack([below[:, 1:], nnz[:, None]]) - below
    length = entries / np.maximum(count, 1)
    variance = (count * (length - mean[:, None]) ** 2).sum(axis=1) / np.maximum(rows, 1)
    return np.column_stack([rows, nnz, mean, density, np.sqrt(variance)])


def _deviation(values: Floats) -> Floats:
    """Return the standard deviation, 1 where all values are alike but for rounding."""
    found = values.std(axis=0)
    return np.where(found > 1e-9 * np.abs(values).max(axis=0), found, 1.0)
