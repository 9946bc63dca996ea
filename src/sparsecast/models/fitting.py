"""Non-negative least squares on relative residuals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def fitted_costs(counts: Floats, measured: Floats) -> Floats:
    """Return the costs, all at least 0, with the least sum of squares of counts @ costs / measured - 1.

    The residuals are relative, so that small matrices count as much as large ones.

    Parameters
    ----------
    counts : float array of shape (measurements, costs)
    measured : float array of shape (measurements,)
        All above 0.
    """
    from scipy.optimize import nnls

    relative = counts / measured[:, None]
    # Columns are scaled to one magnitude: nnls stops at an absolute tolerance.
    scale = np.maximum(relative.max(axis=0), np.finfo(float).tiny)
    return np.asarray(nnls(relative / scale, np.ones(len(measured)))[0] / scale)
