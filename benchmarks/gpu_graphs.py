"""Products of a small matrix launched one by one, beside a CUDA graph of as many launched at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sparsecast.devices.binding import prepared
from sparsecast.devices.gpu.launching import as_graph
from sparsecast.devices.product_timer import ReferenceProduct, right_hand_side
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.timing import measure

if TYPE_CHECKING:
    from gpu_campaign import Campaign

#: Products of a matrix in one graph: as many as an iterated caller may queue before looking at y.
GRAPHED = 32


def beside_graph(campaign: Campaign, specification: str) -> dict[str, Any]:
    """Return the seconds of a product in a row of GRAPHED, launched each and as a graph, checked.

    Parameters
    ----------
    campaign : Campaign
    specification : str
        Of the gallery.
    """
    gpu = campaign.device
    A = prepared(Problem.named(f"gallery:{specification}").matrix, campaign.scope.dtypes[0], 32)
    problem = Problem.of(A, specification)
    candidate = next(each for each in campaign.candidates(problem, A.dtype.name) if each.format == "csr")
    x = right_hand_side(A.shape[1], A.dtype.name)
    there, out = gpu.put(x), gpu.put(np.full(A.shape[0], np.nan, dtype=A.dtype))
    bound, _ = gpu.bind(A, candidate)
    one = gpu.call(candidate, bound, there, out)
    graph = as_graph(lambda stream: [bound.product(there, out, stream) for _ in range(GRAPHED)])
    graph()
    error = ReferenceProduct.of(A, x).check(gpu.take(out), f"a graph of {candidate.kernel}")
    calls = {"launched": lambda: [one() for _ in range(GRAPHED)], "graph": graph}
    timings = measure(calls, campaign.scope.effort, clock=campaign.clock)
    return {
        "matrix": specification,
        "nnz": A.nnz,
        "candidate": candidate.to_dict(),
        "products": GRAPHED,
        "launched_s": timings["launched"].time_s / GRAPHED,
        "graph_s": timings["graph"].time_s / GRAPHED,
        "noise": {name: timing.noise for name, timing in timings.items()},
        "error": error,
    }
