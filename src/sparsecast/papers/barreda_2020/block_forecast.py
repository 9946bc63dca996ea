"""Where a product is slow: what each block of entries of a matrix takes, forecast, and pictures of it.

The sum over the blocks by a network is a forecast of the product (Barreda et al. 2020, section 6.2).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sparsecast.api.sessions import Session
from sparsecast.api.settings import Setting, Trust
from sparsecast.errors import InputError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.energy import TOTAL
from sparsecast.models.product_files import PRODUCT_FILES, ProductForecast
from sparsecast.papers.barreda_2020.block_model import Blocks
from sparsecast.papers.barreda_2020.datasets import block_inputs
from sparsecast.papers.barreda_2020.entry_blocks import BLOCK_ENTRIES, describe_blocks, whole_blocks
from sparsecast.papers.barreda_2020.label_files import ENERGIES
from sparsecast.papers.barreda_2020.networks import ModelCard, load_network
from sparsecast.papers.barreda_2020.training import forecasts
from sparsecast.reports.charts.chart import COLOURS, WIDTH, Chart, axis, layer, panels
from sparsecast.system.tabular import Column, Columns, keys

Floats = NDArray[np.float64]

#: What is named in the place of a file for the networks of the package.
SHIPPED = "shipped"

#: Networks of the time of a product: of blocks that are repeated in place, as in the paper, or within it.
TIMES = ("time", "streaming")

#: Stretches of blocks in a picture in the terminal, those that it names, and characters from fast to slow.
_STRETCHES, _SLOWEST, _SHADES = 64, 5, " .:-=+*#%@"

#: More dots than these make a chart slow; pixels of its height.
_MOST_DOTS, _LOW = 5000, 180


@dataclass(frozen=True)
class BlockForecast:
    """What the blocks of a matrix take in a product with plain CSR."""

    matrix: str
    profile: str
    network: str
    rows: int
    cols: int
    nnz: int
    ns: Floats  # shape (blocks,): nanoseconds per entry of each block of BLOCK_ENTRIES entries
    first_rows: NDArray[np.int64]  # shape (blocks,): row in which each block begins
    call_s: float = 0.0  # what the product takes beside its blocks
    #: Shape (blocks,): nanojoules per entry of each block, by a network of energy; None without one.
    nj: Floats | None = None

    @property
    def time_s(self) -> float:
        """Of the product: the sum over the blocks, for the entries of the remainder too, and the call."""
        return _of_product(self.ns, self.nnz) + self.call_s

    @property
    def energy_j(self) -> float | None:
        """Of the product, as the time; None without a network of energy."""
        return None if self.nj is None else _of_product(self.nj, self.nnz)


def _of_product(values: Floats, nnz: int) -> float:
    """Return seconds or joules of all entries, by those of blocks in nanoseconds or nanojoules an entry."""
    return float(values.mean()) * nnz * 1e-9


def block_forecast(
    A: Any, profile: Profile | None = None, *, threads: int | None = None, network: Path | None = None
) -> BlockForecast:
    """Forecast what each block of a matrix takes, on this machine by default, with one thread by default.

    A trained `network` of time takes the place of the model `blocks`: its sum is that of the blocks, with no
    factor for the product. One of energy adds joules to that model's times. SHIPPED are the two of the
    package, which need no profile: times are of the machine that they were trained on. Networks need PyTorch.
    """
    problem = Problem.of(A)
    _refuse_short(problem)
    if str(network) == SHIPPED:
        if profile is not None or threads not in (None, 1):
            what = "a profile" if profile is not None else f"threads {threads}"
            raise InputError(
                f"{what} beside the shipped networks: expected none, as they are of one thread of one "
                f"machine; leave it out"
            )
        (of_time, ns), (of_joules, nj) = (of_network(problem, path) for path in shipped_networks())
        name = f"the shipped networks: blocks repeated in place, joules {of_joules.energy_source}"
        return _forecast(problem, of_time.machine, name, ns, nj=nj)
    session = Session(profile, Setting(1 if threads is None else threads), Trust(Blocks.name))
    profile, _ = session.question(problem)
    card, values = (None, None) if network is None else of_network(problem, network, profile.machine.name)
    if card is not None and values is not None and card.quantity not in ENERGIES:
        return _forecast(problem, profile.name, str(network), values)
    basis = session.basis(problem, transfers=False)
    model, structure = cast(Blocks, basis.model), basis.structure(problem)
    [candidate] = filter(model.serves, basis.choice(structure).candidates)
    indptr, indices = problem.matrix.indptr, problem.matrix.indices
    numbers = np.arange(whole_blocks(structure.nnz))
    ns = model.block_ns(candidate, structure, describe_blocks(indptr, indices, numbers))
    call_s = float(model.terms(candidate, RowBlocks.of(structure))["call"][0])
    joules = "" if card is None else f", {network} ({card.quantity} energy, {card.energy_source})"
    return _forecast(problem, profile.name, f"{model.name}{joules}", ns, call_s, values)


def _refuse_short(problem: Problem) -> None:
    if problem.matrix.nnz < BLOCK_ENTRIES:
        raise InputError(
            f"{problem.name} has {problem.matrix.nnz} entries: expected at least one block of {BLOCK_ENTRIES}"
            f"; forecast it with sparsecast predict"
        )


def shipped_networks() -> Iterator[Path]:
    """Give the files of the networks of time and of total energy in the package."""
    for quantity in ("time", "total"):
        with resources.as_file(
            resources.files(__package__).joinpath("shipped", f"{quantity}.safetensors")
        ) as path:
            yield path


def of_network(problem: Problem, path: Path, machine: str | None = None) -> tuple[ModelCard, Floats]:
    """Return what a network of PyTorch is of, and its forecasts of every block, per entry.

    An InputError refuses one that was trained on another machine than `machine`, where that is given.
    """
    _refuse_short(problem)
    network, card = load_network(path, machine)
    if problem.matrix.dtype.name != card.dtype:
        raise InputError(
            f"{problem.name} has {problem.matrix.dtype} values: expected {card.dtype} ones, as {path.name} "
            f"learned from; name another network"
        )
    A = problem.matrix
    inputs = block_inputs(A.indptr, A.indices, np.arange(whole_blocks(A.nnz)))
    return card, forecasts(network, inputs).astype(np.float64)


def _forecast(
    problem: Problem, profile: str, network: str, ns: Floats, call_s: float = 0.0, nj: Floats | None = None
) -> BlockForecast:
    A = problem.matrix
    firsts = np.searchsorted(A.indptr, np.arange(len(ns)) * BLOCK_ENTRIES, side="right") - 1
    first_rows = firsts.astype(np.int64)
    return BlockForecast(problem.name, profile, network, *A.shape, int(A.nnz), ns, first_rows, call_s, nj)


@PRODUCT_FILES.register("safetensors")
def network_forecast(problem: Problem, profile: Profile, path: Path) -> ProductForecast:
    """Return T_SpMV of equation 3, or E_SpMV of equation 4, by a trained network."""
    card, values = of_network(problem, path, profile.machine.name)
    if card.quantity not in (*TIMES, TOTAL):
        raise InputError(
            f"{path} is a network of {card.quantity} energy: expected one of time, streaming or "
            f"total; train that"
        )
    total = _of_product(values, problem.matrix.nnz)
    sources = {"times": card.frequency_source, "joules": card.energy_source}
    modelled = [f"{what} {source}" for what, source in sources.items() if source]
    note = f"The product by {path.name} ({card.quantity}{''.join(', ' + text for text in modelled)})."
    is_time = card.quantity in TIMES
    return ProductForecast(total if is_time else None, None if is_time else total, note)


def block_picture(forecast: BlockForecast) -> str:
    """Return a picture for the terminal: a character for each stretch of entries, the darker the slower."""
    ns, nj = forecast.ns, forecast.nj
    lines = [
        f"{forecast.matrix} on {forecast.profile}: {forecast.time_s * 1e6:,.1f} us a product by "
        f"{forecast.network}, {ns.mean():.3f} ns an entry in {len(ns):,} blocks of {BLOCK_ENTRIES}",
        *_shaded(forecast, ns, "slowest", "ns"),
    ]
    if nj is not None and forecast.energy_j is not None:
        lines += [
            f"{1e6 * forecast.energy_j:,.1f} uJ a product, {nj.mean():.3f} nJ an entry",
            *_shaded(forecast, nj, "most energy", "nJ"),
        ]
    return "\n".join(lines)


def _stretches(values: Floats) -> tuple[list[int], list[float]]:
    """Return the bounds of stretches of blocks, each of about as many entries, and the mean value of each."""
    bounds = np.linspace(0, len(values), min(_STRETCHES, len(values)) + 1).round().astype(int).tolist()
    return bounds, [float(values[first:last].mean()) for first, last in itertools.pairwise(bounds)]


def _shaded(forecast: BlockForecast, values: Floats, most: str, unit: str) -> list[str]:
    """Return a line of shades, what they mean, and which stretches have most."""
    bounds, means = _stretches(values)
    rows = [*forecast.first_rows.tolist(), forecast.rows - 1]
    # Where all are alike, noise of the forecast is no picture: shades begin at a tenth above the least.
    low, span = min(means), max(max(means) - min(means), 0.1 * min(means))
    shades = "".join(_SHADES[round((mean - low) / span * (len(_SHADES) - 1))] for mean in means)
    parts = zip(means, itertools.pairwise(bounds), strict=True)
    first = sorted(parts, key=lambda part: -part[0])[:_SLOWEST]
    where = (f"rows {rows[begin]:,} to {rows[end]:,}: {mean:.3f} {unit}" for mean, (begin, end) in first)
    return [
        f"first entry |{shades}| last entry",
        f"'{_SHADES[0]}' {low:.3f} {unit} an entry, '{_SHADES[-1]}' {low + span:.3f}",
        f"{most}: {'; '.join(where)}",
    ]


def block_chart(found: BlockForecast) -> Chart:
    """Return the time of each block over the entries of the matrix, and its joules where they are known."""
    x = axis("entry", "entries, in the order of the rows")
    x["scale"] = {"domain": [0, max(1, found.nnz)], "nice": False}
    line = {"type": "line", "interpolate": "step-after", "color": "black"}
    charts = []
    for unit, values in (("ns", found.ns), ("nJ", found.nj)):
        if values is None:
            continue
        step = -(-len(values) // _MOST_DOTS)
        dots = [
            {"entry": (place + 0.5) * BLOCK_ENTRIES, "value": float(values[place])}
            for place in range(0, len(values), step)
        ]
        _, means = _stretches(values)
        bounds = np.linspace(0, found.nnz, len(means) + 1).tolist()
        ends = [{"entry": at, "mean": mean} for at, mean in zip(bounds, (*means, means[-1]), strict=True)]
        y = axis("value", f"forecast, {unit} per entry")
        layers = [
            layer({"type": "circle", "size": 8, "color": COLOURS[0]}, {"x": x, "y": y}, dots),
            layer(line, {"x": x, "y": {**y, "field": "mean"}}, ends),
        ]
        shown = "" if step == 1 else f"; {len(dots):,} of {len(values):,} blocks are drawn"
        caption = f"Blocks of {BLOCK_ENTRIES} entries, {unit} per entry{shown}"
        charts.append(Chart(unit, caption, {"layer": layers, "width": WIDTH, "height": _LOW}))
    return panels("blocks", "Dots: blocks; line: means of stretches.", charts, columns=1)


#: The document of the command.
DOCUMENTS: dict[str, Columns] = {
    "blocks": (
        Column(
            "matrix",
            value=lambda forecast: forecast,
            columns=(Column("name", value="matrix"), *keys("rows", "cols", "nnz")),
        ),
        *keys("profile", "network", "time_s"),
        Column("block_entries", value=lambda forecast: BLOCK_ENTRIES),
        Column("ns_per_entry", value=lambda forecast: forecast.ns.round(4).tolist()),
        Column("energy_j"),
        Column("nj_per_entry", value=lambda found: None if found.nj is None else found.nj.round(4).tolist()),
        Column("first_rows", value=lambda forecast: forecast.first_rows.tolist()),
    )
}
