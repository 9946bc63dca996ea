"""`sparsecast paper barreda-2020`: sixteen networks of blocks, next to the errors that the paper prints."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from sparsecast.api.applications import application_cost, application_question, run_application
from sparsecast.api.profiles import require_own
from sparsecast.api.sessions import session
from sparsecast.benchmark.experiments import EXPERIMENTS, Experiment, ExperimentSetting, refuse_other_devices
from sparsecast.devices import DEVICES, machine_of
from sparsecast.errors import InputError, ProfileError
from sparsecast.machines.machine import PROCESSOR
from sparsecast.machines.profile import Profile
from sparsecast.matrices.atlas import atlas
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.reading import collected, matrix_name
from sparsecast.measuring.energy import TOTAL
from sparsecast.operators.applications.application import PRODUCT
from sparsecast.papers import described, published
from sparsecast.papers.barreda_2020.block_times import LabelEffort
from sparsecast.papers.barreda_2020.entry_blocks import BLOCK_ENTRIES
from sparsecast.papers.barreda_2020.label_files import ENERGIES, BlockLabels, kept_labels
from sparsecast.papers.barreda_2020.label_trials import TRIAL, label_trials, trial_chart
from sparsecast.papers.barreda_2020.labelling import label
from sparsecast.papers.barreda_2020.modelled_meter import ModelledMeter
from sparsecast.papers.barreda_2020.networks import load_network, required
from sparsecast.papers.barreda_2020.training import (
    ARCHITECTURES,
    FOLDS,
    OnPart,
    TrainedNetwork,
    TrainingRequest,
    error_column,
    network_path,
    sentences,
    trained,
)
from sparsecast.reports.charts.chart import Chart, Spec, axis, layer, look, panels, tooltip
from sparsecast.results.paper import PaperReport
from sparsecast.system.tabular import Column, Table, grouped
from sparsecast.system.texts import counted, percent, signed_percent

PRINTED = published("barreda_2020")

#: What a network is of, and when, the highest frequency first.
QUANTITIES = ("time", *ENERGIES)
FREQUENCIES_GHZ = tuple(reversed(PRINTED["table_1"]["frequency_ghz"]))

#: What Table 1 has of the labels of a quantity.
STATISTICS: dict[str, Callable[..., Any]] = {
    "least": np.min,
    "most": np.max,
    "mean": np.mean,
    "deviation": np.std,
}

#: Blocks that figure 3 has at each frequency, of each matrix one at least, and pixels of a panel.
_DOTS, _PANEL = 180, {"width": 300, "height": 220}

#: Of the budget, what labels may take; networks take the rest.
LABEL_SHARE = 0.45

REQUEST = TrainingRequest(epochs=20, blocks=256)

#: Seconds of a budget that allows for more blocks of each matrix, in fewer epochs.
LONG_S, LONG_REQUEST = 3600, TrainingRequest(epochs=8, blocks=2048)

#: Of each matrix, at each frequency: a second and a half.
EFFORT = LabelEffort(sweeps=10, most_s=0.1, energy_s=1.28)

#: Matrices by default: one of each kind of the gallery, and twins of real ones of the atlas, first those that
#: have so many entries, then all that have a block.
GALLERY = (
    "gallery:poisson2d?n=300",
    "gallery:rmat?scale=14",
    "gallery:elasticity3d?n=14",
    "gallery:circuit?n=60000",
    "gallery:banded?n=30000",
    "gallery:random?n=50000",
    "gallery:poisson3d?n=40",
    "gallery:arrow?n=100000",
)
TWIN_ENTRIES = range(20_000, 1_000_000)

TABLE_1 = (
    Column("quantity", "quantity"),
    Column("frequency_ghz", "GHz", text="{:g}".format),
    *(
        Column(f"{which}{name}", f"{name}{heading}", text="{:.2f}".format)
        for name in STATISTICS
        for which, heading in (("paper_", ", the paper"), ("", ""))
    ),
    Column("source", "source"),
)


class Pair(NamedTuple):
    """The networks of ARCHITECTURES of one quantity at one frequency."""

    paper: TrainedNetwork
    ours: TrainedNetwork


_BOTH = (("paper", "the printed network"), ("ours", "ours"))

#: Of a Pair.
ERRORS = (
    Column("quantity", "quantity", "paper.card.quantity"),
    Column("frequency_ghz", "GHz", "paper.card.frequency_ghz", "{:g}".format),
    error_column("measured again", "block_mean", "block: measured again", "paper"),
    error_column("always the mean", "block_mean", "always the mean", "paper"),
    error_column("power baseline", "block_mean", "power x printed network's time", "paper"),
    error_column("trees", "block_mean", "trees", "paper"),
    *(error_column("network", "block_mean", heading, which) for which, heading in _BOTH),
    *(error_column("network", "explained", f"variance explained, {heading}", of) for of, heading in _BOTH),
    *(
        error_column("network", "matrix_median", f"matrix, half below, {heading}", of)
        for of, heading in _BOTH
    ),
    *(error_column("network", "matrix_worst", f"worst, {heading}", of) for of, heading in _BOTH),
)

PAGERANK = (
    Column("graph", "graph"),
    Column("share", "product, of the run", text=percent),
    Column("measured_share", "measured", text=percent),
    Column("time_s", "run, forecast"),
    Column("measured_s", "run, measured"),
    Column("error", "error", text=signed_percent),
    Column("weighted_error", "weighted", text=signed_percent),
    Column("product_error", "product, error", text=signed_percent),
    Column("product_weighted_error", "product, weighted", text=signed_percent),
    Column("power_w", "power, forecast", text="{:.1f} W".format),
    Column("energy_j", "energy, forecast"),
    Column("measured_j", "energy, measured"),
    Column("energy_error", "energy, error", text=signed_percent),
    Column("source", "joules"),
)


@EXPERIMENTS.register("barreda-2020")
class Barreda2020(Experiment):
    """Networks of time and of three energies at four frequencies."""

    paper = described("barreda_2020")

    def default_matrices(self) -> Sequence[str]:
        """Return generated matrices and twins; not of the graphs that PageRank is forecast of."""
        graphs = tuple(f"atlas?name={name}" for name in PRINTED["pagerank"]["graphs"])
        first = atlas().twins(lambda found: found.nnz in TWIN_ENTRIES)
        others = atlas().twins(lambda found: found.nnz >= BLOCK_ENTRIES and found.nnz not in TWIN_ENTRIES)
        return (*GALLERY, *(twin for twin in (*first, *others) if not twin.startswith(graphs)))

    def run(self, setting: ExperimentSetting) -> PaperReport:
        """Label matrices at each frequency, then train the networks, and forecast PageRank by them.

        Matrices are those that are named, and then those by default. PageRank is on the named ones that are
        called as a graph of the paper, which are not learned from.
        """
        refuse_other_devices(setting, self.paper.name)
        if setting.profile is not None:
            require_own(setting.profile.name, machine_of(PROCESSOR))
        required("torch")
        start_s = perf_counter()

        def on_progress(what: str, *_: object) -> None:
            setting.on_progress(perf_counter() - start_s, setting.budget_s, what)

        named, graphs = collected(setting.matrices), PRINTED["pagerank"]["graphs"]
        request = LONG_REQUEST if setting.budget_s >= LONG_S else REQUEST
        labelling = label(
            [*(item for item in named if matrix_name(item) not in graphs), *self.default_matrices()],
            dtype="float64",
            budget_s=LABEL_SHARE * setting.budget_s,
            effort=replace(EFFORT, hot_blocks=request.blocks),
            meter=DEVICES.get(PROCESSOR).meter() or ModelledMeter(),
            frequencies_ghz=FREQUENCIES_GHZ,
            on_matrix=on_progress,
        )
        if labelling.is_stopped:
            raise KeyboardInterrupt
        refused = grouped(labelling.refused, labelling.refused.__getitem__)
        notes = [f"Left out: {', '.join(names)}: {reason}" for reason, names in refused.items()]
        if labelling.left:
            notes.append(f"No time to label {counted(labelling.left, 'matrix')}: run again to go on.")
        _train(request, start_s + setting.budget_s, on_progress)
        pagerank, note = _pagerank(setting, on_progress)
        trials = list(label_trials())
        return self._report(machine_of(PROCESSOR).name, [*notes, *filter(None, [note])], trials, pagerank)

    def from_records(self, profile: Profile, setting: ExperimentSetting) -> PaperReport:
        """Take the labels and the networks that are kept of the profile's machine."""
        refuse_other_devices(setting, self.paper.name)
        return self._report(profile.machine.name, [])

    def _report(
        self,
        machine: str,
        notes: list[str],
        trials: Sequence[dict[str, Any]] = (),
        pagerank: Sequence[dict[str, Any]] = (),
    ) -> PaperReport:
        labels = {ghz: list(kept_labels(machine, "float64", ghz)) for ghz in FREQUENCIES_GHZ}
        if not any(labels.values()):
            raise ProfileError(
                f"no labels at {FREQUENCIES_GHZ[0]:g} GHz of {machine}: expected some; run without --from, "
                f"or with a longer --budget"
            )
        pairs = list(_kept_pairs(machine))
        if missing := len(FREQUENCIES_GHZ) * len(QUANTITIES) - len(pairs):
            notes.append(f"{missing} of 16 pairs of networks are not trained yet: run again to go on.")
        ours, printed = [pair.ours for pair in pairs], PRINTED["block_errors"]
        blocks_below = "; ".join(
            f"{name}: most blocks below {percent(errors['most'])}, the largest {_range(errors['largest'])}"
            for name, errors in printed.items()
        )
        tables = [
            Table("Labels of blocks (Table 1), ns and nJ an entry", TABLE_1, list(_label_rows(labels))),
            Table(
                "Errors on matrices that were not learned from (Figures 4 and 5)",
                ERRORS,
                pairs,
                (f"The paper: {blocks_below}; {self.paper.headline}.",),
            ),
        ]
        charts = {"barreda-2020-figure-3": dispersion(labels)}
        if ours:
            charts["barreda-2020-figure-5"] = matrices_off(ours)
        if trials:
            tables.append(Table("What labels depend on", TRIAL, trials))
            charts["barreda-2020-labels"] = trial_chart(trials)
        if pagerank:
            numbers = PRINTED["pagerank"]
            below = (
                "The paper: errors of loops and runs up to {:.0%}, weighted errors of the product about "
                "{:.0%}, the product {:.0%} to {:.0%} of a run.".format(
                    numbers["relative_error"], numbers["weighted_error_product"], *numbers["product_share"]
                )
            )
            tables.append(Table("PageRank by networks (figure 6)", PAGERANK, pagerank, (below,)))
        if ours:
            card = ours[0].card
            notes.insert(0, f"Learned from {counted(card.blocks, 'block')} of {card.matrices} matrices.")
        remarks = (*notes, *sentences(ours))
        return PaperReport(self.paper, machine, tuple(tables), charts, remarks, _result(pairs))


def _train(request: TrainingRequest, end_s: float, on_progress: OnPart) -> None:
    """Train networks while there is time, ours first, then those of a cross-validation (section 5.2)."""
    longest_s = 0.0
    ours = replace(request, frequencies_ghz=FREQUENCIES_GHZ, network="ours")
    for chosen in (ours, replace(ours, network="paper")):
        networks = trained(chosen, on_progress)
        while True:
            start_s = perf_counter()
            if start_s + longest_s > end_s:
                return
            if next(networks, None) is None:
                break
            longest_s = max(longest_s, perf_counter() - start_s)
    if perf_counter() + FOLDS * longest_s < end_s:
        folds = replace(ours, quantities=("time",), frequencies_ghz=FREQUENCIES_GHZ[:1], folds=FOLDS)
        deque(trained(folds, on_progress), maxlen=0)


def _path(machine: str, quantity: str, ghz: float, network: str) -> Path:
    return network_path(machine, quantity, "float64", ghz, network, REQUEST.split)


def _kept_pairs(machine: str) -> Iterator[Pair]:
    for ghz, quantity in product(FREQUENCIES_GHZ, QUANTITIES):
        networks = []
        paths = (_path(machine, quantity, ghz, network) for network in ARCHITECTURES)
        for path in filter(Path.exists, paths):
            required("torch")
            with suppress(InputError):  # of another version, or damaged: to be trained again
                networks.append(TrainedNetwork(path, load_network(path, machine)[1]))
        # Of the same labels: else one of them is to be trained again.
        if len(networks) == 2 and len({(n.card.mean, *n.card.matrix_errors) for n in networks}) == 1:
            yield Pair(*networks)


def _pagerank(
    setting: ExperimentSetting, on_progress: Callable[[str], None]
) -> tuple[list[dict[str, Any]], str]:
    """Return PageRank on the paper's graphs among the matrices, and graphs like others, or why not."""
    graphs, alike = PRINTED["pagerank"]["graphs"], PRINTED["pagerank"]["alike"]
    chosen = {name: item for item in collected(setting.matrices) if (name := matrix_name(item)) in graphs}
    if chosen:
        chosen |= {f"like {name} (R-MAT)": item for name, item in alike.items() if name not in chosen}
    of_machine = machine_of(PROCESSOR).name
    paths = [_path(of_machine, quantity, FREQUENCIES_GHZ[0], "ours") for quantity in ("time", TOTAL)]
    if not chosen:
        return [], f"PageRank: none of the graphs {', '.join(graphs)} among the matrices."
    if not all(path.exists() for path in paths):
        return [], f"PageRank: no networks at {FREQUENCIES_GHZ[0]:g} GHz yet; run again to go on."
    here, rows = session(), []
    for name, item in chosen.items():
        on_progress(f"PageRank on {name}")
        question = application_question("pagerank", Problem.named(item))
        cost = application_cost(here, question, networks=paths)
        meter = DEVICES.get(PROCESSOR).meter() or ModelledMeter()
        run = run_application(question, cost.plan, meter=meter)
        # The forecast is of as many iterations as the run took, by equations 3 and 4.
        error, time_s = run.errors(cost)[PRODUCT], cost.total_s(run.iterations) - cost.convert_s
        energy_j = None if cost.power_w is None else cost.power_w * time_s
        rows.append(
            {
                "graph": name,
                "share": cost.shares()[PRODUCT],
                "measured_share": run.iterations * run.loops[PRODUCT] / run.time_s,
                "time_s": time_s,
                "measured_s": run.time_s,
                "error": run.error(cost),
                "weighted_error": run.weighted_error(cost),
                "product_error": error["relative"],
                "product_weighted_error": error["weighted"],
                "power_w": cost.power_w,
                "energy_j": energy_j,
                "measured_j": run.energy_j,
                "energy_error": energy_j / run.energy_j - 1 if energy_j and run.energy_j else None,
                "source": meter.source if run.energy_j else None,
            }
        )
    return rows, ""


def _label_rows(labels: Mapping[float, Sequence[BlockLabels]]) -> Iterator[dict[str, Any]]:
    table = PRINTED["table_1"]
    for ghz, quantity in product(labels, QUANTITIES):
        found = [matrix.of(quantity)[1] for matrix in labels[ghz]]
        if any(map(len, found)):
            first, place = labels[ghz][0], table["frequency_ghz"].index(ghz)
            values = np.concatenate(found)
            yield {
                "quantity": quantity,
                "frequency_ghz": ghz,
                "source": first.frequency_source if quantity == "time" else first.energy_source,
                **{name: float(of(values)) for name, of in STATISTICS.items()},
                **{f"paper_{name}": table[quantity][name][place] for name in STATISTICS},
            }


def _range(errors: Sequence[float]) -> str:
    return " to ".join(map(percent, sorted(set(errors))))


def _result(pairs: Sequence[Pair]) -> str:
    """Return the errors of matrices of our networks and the printed ones, at the highest frequency."""
    errors = [
        "{}{}: a block {} of the error of always the mean (the printed network {}); half of the matrices "
        "below {matrix_median:.1%}, all below {matrix_worst:.0%}".format(
            pair.ours.card.quantity,
            " (modelled)" if pair.ours.modelled else "",
            *(
                percent(errors["network"]["block_mean"] / errors["always the mean"]["block_mean"])
                for errors in (pair.ours.card.errors, pair.paper.card.errors)
            ),
            **pair.ours.card.errors["network"],
        )
        for pair in pairs
        if pair.ours.card.frequency_ghz == FREQUENCIES_GHZ[0]
    ]
    return f"matrices never seen. {'. '.join(errors)}" if errors else ""


def dispersion(labels: Mapping[float, Sequence[BlockLabels]]) -> Chart:
    """Return nanojoules an entry over nanoseconds, by frequency (figure 3)."""
    charts = []
    for quantity in ENERGIES:
        rows = [
            row
            for ghz, some in labels.items()
            for matrix in some
            for row in _dots(matrix, quantity, ghz, max(1, _DOTS // len(some)))
        ]
        x = axis("ns", "ns an entry", [row["ns"] for row in rows], is_log=True)
        y = axis("nj", "nJ an entry", [row["nj"] for row in rows], is_log=True)
        charts.append(_points(quantity, rows, x, y))
    return panels("dispersion", "", charts, 3)


def _dots(labels: BlockLabels, quantity: str, ghz: float, most: int) -> list[dict[str, Any]]:
    (timed, ns, _), (counted, nj, _) = labels.of("time"), labels.of(quantity)
    _, first, second = np.intersect1d(timed, counted, return_indices=True)
    step = -(-len(first) // most) or 1
    pairs = zip(ns[first][::step].tolist(), nj[second][::step].tolist(), strict=True)
    return [{"matrix": labels.name, "GHz": f"{ghz:g}", "ns": time, "nj": joules} for time, joules in pairs]


def matrices_off(networks: Sequence[TrainedNetwork]) -> Chart:
    """Return the errors of matrices by frequency, sorted by those at the lowest (figure 5)."""
    charts = []
    for quantity in dict.fromkeys(network.card.quantity for network in networks):
        cards = [network.card for network in networks if network.card.quantity == quantity]
        lowest = min(cards, key=lambda card: card.frequency_ghz or 0.0).matrix_errors
        rows: list[dict[str, Any]] = [
            {"matrix": _short(matrix), "GHz": f"{card.frequency_ghz:g}", "error": 100 * error}
            for card in cards
            for matrix, error in card.matrix_errors.items()
        ]
        order = [_short(matrix) for matrix in sorted(lowest, key=lambda matrix: lowest[matrix])]
        labels = {"labelAngle": -90, "labelFontSize": 8, "labelOverlap": False}
        x = {"field": "matrix", "type": "nominal", "title": None, "sort": order, "axis": labels}
        y = axis("error", "error, %", [row["error"] for row in rows], is_log=True)
        charts.append(_points(quantity, rows, x, y))
    return panels("matrices_off", "", charts, 2)


def _short(matrix: str) -> str:
    """Return what an axis has of a specification: of a twin the name of the matrix."""
    return matrix.removeprefix("gallery:").removeprefix("atlas?name=").removesuffix("&size=whole")


def _points(caption: str, rows: Sequence[Mapping[str, Any]], x: Spec, y: Spec) -> Chart:
    looks = look("GHz", [row["GHz"] for row in rows])
    shown = tooltip({"matrix": "matrix", "GHz": "GHz"}, **{y["field"]: y["title"]})
    points = layer({"type": "point", "clip": True}, {"x": x, "y": y, **looks, "tooltip": shown}, rows)
    return Chart(caption, caption, {**points, **_PANEL})
