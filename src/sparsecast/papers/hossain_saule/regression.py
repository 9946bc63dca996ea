"""The support vector regression of Hossain and Saule, section III.B.

What the paper leaves open, and what is done here:

- Degree, epsilon and coef0: 3, 0.1 and 1. The pair of C and gamma with the least squared error is the best.
- Features and time are standardised; else an epsilon of 0.1 seconds would swallow every time.
- The paper chooses test matrices within the range of the training set. Here features beyond that range are
  taken to its end and counted. Where the regression gives no time above 0, the least measured one takes its
  place.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsecast.models.fitting import Floats, above_zero

#: Section III.B.1: the grid, and the parts of the cross-validation.
GRID_C = tuple(2.0**k for k in range(-2, 6))
GRID_GAMMA = (*(k / 100 for k in range(1, 10)), 0.1, 0.2, 0.3)
FOLDS = 5

#: What the paper does not state. A regression that takes more steps is far from the best pair.
DEGREE, EPSILON, COEF0, MOST_STEPS = 3, 0.1, 1.0, 5_000

#: Fewest measurements: as many in each part as there are features.
LEAST_RECORDS = 25


@dataclass(frozen=True)
class Regression:
    """A fitted regression, and how its features and its target were scaled.

    `least`, `most`, `center` and `scale` have an entry per feature; `middle` and `unit` are mean and
    deviation of the target, the time or its logarithm. `vectors` are the support vectors v, `weights` their
    alpha, and the rest is that of the sum of alpha (gamma <v, x> + coef0)^degree.
    """

    least: Floats
    most: Floats
    center: Floats
    scale: Floats
    is_of_logarithms: bool
    middle: float
    unit: float
    vectors: Floats
    weights: Floats
    intercept: float
    gamma: float
    least_s: float

    @classmethod
    def fitted(cls, features: Floats, time_s: Floats, *, is_of_logarithms: bool = True) -> Regression:
        target = np.log(time_s) if is_of_logarithms else time_s
        center, scale = features.mean(axis=0), _deviation(features)
        middle, unit = float(target.mean()), float(_deviation(target))
        best = best_regression((features - center) / scale, (target - middle) / unit)
        return cls(
            least=features.min(axis=0),
            most=features.max(axis=0),
            center=center,
            scale=scale,
            is_of_logarithms=is_of_logarithms,
            middle=middle,
            unit=unit,
            vectors=best.support_vectors_,
            weights=best.dual_coef_[0],
            intercept=float(best.intercept_[0]),
            gamma=best.gamma,
            least_s=float(time_s.min()),
        )

    def terms(self, features: Floats) -> dict[str, Floats]:
        """Return the forecast, and how many features lie beyond the range of the measurements."""
        within = np.clip(features, self.least, self.most)
        x = (within - self.center) / self.scale
        kernel = (self.gamma * (x @ self.vectors.T) + COEF0) ** DEGREE
        target = self.middle + self.unit * (kernel @ self.weights + self.intercept)
        time_s = np.exp(target) if self.is_of_logarithms else target
        return {
            "features_beyond": np.sum(features != within, axis=1, dtype=float),
            "time_s": above_zero(time_s, self.least_s),
        }


def best_regression(x: Floats, y: Floats) -> Any:
    """Return scikit-learn's regression with the C and gamma that cross-validation prefers (section III.B.1).

    `x` of shape (measurements, features) and `y` are standardised.
    """
    from sklearn import config_context
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import GridSearchCV, PredefinedSplit
    from sklearn.svm import SVR

    search = GridSearchCV(
        SVR(kernel="poly", degree=DEGREE, coef0=COEF0, epsilon=EPSILON, max_iter=MOST_STEPS),
        {"C": GRID_C, "gamma": GRID_GAMMA},
        scoring="neg_mean_squared_error",
        cv=PredefinedSplit(np.random.default_rng(0).permutation(len(y)) % FOLDS),
    )
    # The fits are small and hundreds: checks of their arrays would take most of the time.
    unchecked = config_context(assume_finite=True, skip_parameter_validation=True)
    with warnings.catch_warnings(), unchecked:
        warnings.simplefilter("ignore", ConvergenceWarning)
        return search.fit(x, y).best_estimator_


def _deviation(values: Floats) -> Floats:
    """Return the standard deviation, 1 where all values are alike but for rounding."""
    deviation = values.std(axis=0)
    return np.where(deviation > 1e-9 * np.abs(values).max(axis=0), deviation, 1.0)
