"""Networks of blocks as forecasts of a product, by their sum (Barreda et al. 2020, section 6.2)."""

from __future__ import annotations

from pathlib import Path

from sparsecast.errors import InputError
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.energy import TOTAL
from sparsecast.models.product_files import PRODUCT_FILES, ProductForecast
from sparsecast.papers.barreda_2020.block_forecast import of_network

#: Networks of the time of a product: of blocks that are repeated in place, as in the paper, or within it.
TIMES = ("time", "streaming")


@PRODUCT_FILES.register("safetensors")
def network_forecast(problem: Problem, profile: Profile, path: Path) -> ProductForecast:
    """Return T_SpMV of equation 3, or E_SpMV of equation 4, by a trained network."""
    card, values = of_network(problem, path, profile.machine.name)
    if card.quantity not in (*TIMES, TOTAL):
        raise InputError(
            f"{path} is a network of {card.quantity} energy: expected one of time, streaming or "
            f"total; train that"
        )
    total = float(values.mean()) * problem.matrix.nnz * 1e-9
    sources = {"times": card.frequency_source, "joules": card.energy_source}
    modelled = [f"{what} {source}" for what, source in sources.items() if source]
    note = f"The product by {path.name} ({card.quantity}{''.join(', ' + text for text in modelled)})."
    is_time = card.quantity in TIMES
    return ProductForecast(total if is_time else None, None if is_time else total, note)
