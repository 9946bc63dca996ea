"""`sparsecast paper barreda-2020`: sixteen networks of blocks, next to the errors that the paper prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from time import perf_counter
from typing import Any

from sparsecast.api.applications import application_cost, application_question, run_application
from sparsecast.api.profiles import calibrated_profile, require_own
from sparsecast.benchmark.experiments import EXPERIMENTS, Experiment, Setting
from sparsecast.devices import DEVICES
from sparsecast.devices.naming import machine_of
from sparsecast.errors import InputError, ProfileError
from sparsecast.machines.machine import PROCESSOR
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.reading import collected, matrix_name
from sparsecast.measuring.energy import TOTAL
from sparsecast.operators.applications.application import PRODUCT
from sparsecast.papers import published
from sparsecast.papers.barreda_2020.label_files import ENERGIES, kept_labels
from sparsecast.papers.barreda_2020.labelling import label
from sparsecast.papers.barreda_2020.labels import LabelEffort
from sparsecast.papers.barreda_2020.meters.modelled import ModelledMeter
from sparsecast.papers.barreda_2020.network_training import LabelSet, label_set, network_path, power_baseline
from sparsecast.papers.barreda_2020.networks import required
from sparsecast.papers.barreda_2020.networks.weights import load_network
from sparsecast.papers.barreda_2020.training_run import (
    TrainedNetwork,
    TrainingRequest,
    TrainingRun,
    training_run,
)
from sparsecast.results.paper import Paper, PaperItem, PaperReport
from sparsecast.system.tabular import Column, Table
from sparsecast.system.texts import percent, signed_percent

#: What a network is of, and when, the highest frequency first.
QUANTITIES = ("time", *ENERGIES)
FREQUENCIES_GHZ = tuple(reversed(published("barreda_2020")["table_1"]["frequency_ghz"]))

#: Of the budget, what labels may take; networks take the rest.
LABEL_SHARE = 0.45

#: Of each network, and blocks of one matrix: sixteen networks are trained within the budget.
EPOCHS, BLOCKS = 25, 128

REQUEST = TrainingRequest(epochs=EPOCHS, blocks=BLOCKS)

#: Of each matrix, at each frequency: a second and a half.
EFFORT = LabelEffort(sweeps=10, most_s=0.1, hot_blocks=BLOCKS, energy_s=1.0)

#: Matrices by default, each of another kind, so that whole groups are set aside.
MATRICES = (
    "gallery:poisson2d?n=300",
    "gallery:rmat?scale=14",
    "gallery:elasticity3d?n=14",
    "gallery:circuit?n=60000",
    "gallery:banded?n=30000",
    "gallery:random?n=50000",
    "gallery:poisson3d?n=40",
    "gallery:arrow?n=100000",
)

ITEMS = (
    PaperItem(
        "Section 4, labels of blocks", "differs", "200 repeats instead of 10,000, twice, by a real clock"
    ),
    PaperItem(
        "Table 1, times and joules", "done", "modelled joules say so; a counter is read where there is one"
    ),
    PaperItem(
        "Table 2, networks and their search", "done", "`train --search 100`: Optuna instead of Hyperas"
    ),
    PaperItem(
        "Section 5.1, three groups of matrices",
        "done",
        "learned, validation and test by groups; `--split paper`",
    ),
    PaperItem("Section 5.2, 5-fold cross-validation", "done", "`train --folds 5`"),
    PaperItem("Section 5.3, power times time", "done", "column `power x time`"),
    PaperItem(
        "Figures 3 to 5, errors of blocks and matrices", "done", "as tables: the paper prints ranges only"
    ),
    PaperItem("Section 6, PageRank", "done", "`cost pagerank --network FILE`; one power for all loops"),
    PaperItem("Figure 6, six graphs", "done", "those that are named; not with --from"),
    PaperItem("The authors' labels", "done", "`train --published FOLDER` reads their HDF5 files"),
    PaperItem("Xeon E5-2630 and its counters", "cannot be had here", "no such processor"),
)

TABLE_1 = (
    Column("quantity", "quantity"),
    Column("frequency_ghz", "GHz", text="{:g}".format),
    *(
        Column(f"{which}{name}", f"{name}{heading}", text="{:.2f}".format)
        for name in ("least", "most", "mean", "deviation")
        for which, heading in (("paper_", ", the paper"), ("", ""))
    ),
    Column("source", "source"),
)

ERRORS = (
    Column("quantity", "quantity"),
    Column("frequency_ghz", "GHz", text="{:g}".format),
    Column("paper_most", "most blocks below, the paper", text=percent),
    Column("block_median", "half of the blocks below", text=percent),
    Column("paper_largest", "largest, the paper"),
    Column("block_mean", "mean of blocks", text=percent),
    Column("paper_matrix_median", "half of the matrices below, the paper", text=percent),
    Column("matrix_median", "half of the matrices below", text=percent),
    Column("paper_matrix_largest", "largest of matrices, the paper", text=percent),
    Column("matrix_worst", "largest of matrices", text=percent),
)


PAGERANK = (
    Column("graph", "graph"),
    Column("share", "product, of the run", text=percent),
    Column("measured_share", "measured", text=percent),
    Column("time_s", "run, forecast"),
    Column("measured_s", "run, measured"),
    Column("error", "error", text=signed_percent),
    Column("product_error", "product, error", text=signed_percent),
    Column("product_weighted_error", "weighted", text=signed_percent),
    Column("power_w", "power, forecast", text="{:.1f} W".format),
    Column("energy_j", "energy, forecast"),
)


@EXPERIMENTS.register("barreda-2020")
class Barreda2020(Experiment):
    """Networks of time and of three energies at four frequencies."""

    paper = Paper(
        name="barreda-2020",
        authors="M. Barreda, M. F. Dolz, M. A. Castano",
        title="Convolutional neural nets for estimating the run time and energy consumption of the sparse "
        "matrix-vector product",
        forecasts="time, package, DRAM and total energy of products, at four frequencies, by blocks",
        headline="matrices at most {largest:.0%} off, half of them below {median:.0%}".format(
            **published("barreda_2020")["matrix_errors"]
        ),
        never_run="its Xeon E5-2630 with RAPL counters",
    )

    def default_matrices(self) -> Sequence[str]:
        """Return gallery matrices of eight kinds."""
        return MATRICES

    def run(self, setting: Setting) -> PaperReport:
        """Label the matrices at each frequency, then train the networks, and forecast PageRank by them."""
        _refuse(setting)
        required("torch")
        start_s = perf_counter()

        def on_progress(what: str, *_: object) -> None:
            setting.on_progress(perf_counter() - start_s, setting.budget_s, what)

        labelling = label(
            setting.matrices or MATRICES,
            dtype="float64",
            budget_s=LABEL_SHARE * setting.budget_s,
            effort=EFFORT,
            meter=DEVICES.get(PROCESSOR).meter() or ModelledMeter(),
            frequencies_ghz=FREQUENCIES_GHZ,
            on_matrix=on_progress,
        )
        notes = [f"Left out: {name}: {reason}" for name, reason in labelling.refused.items()]
        if labelling.left:
            notes.append(f"No time to label {labelling.left} matrices: run again to go on.")
        for ghz, quantity in product(FREQUENCIES_GHZ, QUANTITIES):
            if perf_counter() - start_s < setting.budget_s:
                training_run(replace(REQUEST, frequencies_ghz=(ghz,), quantities=(quantity,)), on_progress)
        rows, note = _pagerank(setting, on_progress)
        return self._report(setting, [*notes, note] if note else notes, rows)

    def from_records(self, profile: Profile, setting: Setting) -> PaperReport:
        """Take the labels and the networks that this machine keeps."""
        _refuse(setting)
        require_own(profile.name, machine_of(PROCESSOR))
        return self._report(setting, [])

    def _report(
        self, setting: Setting, notes: list[str], pagerank: Sequence[dict[str, Any]] = ()
    ) -> PaperReport:
        labels = list(_kept_labels())
        if not labels:
            raise ProfileError(
                f"no labels at {FREQUENCIES_GHZ[0]:g} GHz on this machine: expected some; run without "
                f"--from, or with a longer --budget"
            )
        networks = list(_kept_networks(labels))
        if len(networks) < len(FREQUENCIES_GHZ) * len(QUANTITIES):
            notes.append(f"{len(networks)} of 16 networks were trained: run again to go on.")
        run = TrainingRun(networks)
        tables = [
            Table("Labels of blocks (Table 1), ns and nJ an entry", TABLE_1, list(map(_label_row, labels))),
            run.table(),
            Table("Errors (figures 4 and 5)", ERRORS, list(map(_error_row, networks))),
        ]
        if pagerank:
            printed = published("barreda_2020")["pagerank"]
            below = (
                "The paper: errors of loops and runs up to {:.0%}, weighted errors of the product about "
                "{:.0%}, the product {:.0%} to {:.0%} of a run.".format(
                    printed["relative_error"], printed["weighted_error_product"], *printed["product_share"]
                )
            )
            tables.append(Table("PageRank by networks (figure 6)", PAGERANK, pagerank, (below,)))
        sentences = (*notes, *run.sentences())
        return PaperReport(
            self.paper,
            machine_of(PROCESSOR).name,
            tuple(tables),
            ITEMS,
            notes=sentences,
            ours=_result(networks),
        )


def _refuse(setting: Setting) -> None:
    """Raise an InputError for what labels cannot be of."""
    if setting.device != PROCESSOR or setting.dtype not in (None, "float64"):
        raise InputError(
            f"device '{setting.device}' and type '{setting.dtype or 'float64'}' for barreda-2020: expected "
            f"cpu and float64, whose blocks are labelled; leave them out"
        )
    if setting.profile is not None:
        require_own(setting.profile.name, machine_of(PROCESSOR))


def _kept_labels() -> Iterator[LabelSet]:
    """Give the labels of each network, the highest frequency first."""
    for ghz, quantity in product(FREQUENCIES_GHZ, QUANTITIES):
        if any(kept_labels(machine_of(PROCESSOR).name, "float64", ghz)):
            yield label_set(quantity, most=BLOCKS, frequency_ghz=ghz)


def _kept_networks(labels: Sequence[LabelSet]) -> Iterator[TrainedNetwork]:
    """Give the networks that were trained, those of joules with what power times time is off by."""
    paths = {
        (of.quantity, of.frequency_ghz): network_path(of, REQUEST.network, REQUEST.split) for of in labels
    }
    for of in labels:
        path, time = paths[of.quantity, of.frequency_ghz], paths["time", of.frequency_ghz]
        if path.exists():
            is_energy = of.quantity in ENERGIES and time.exists()
            baseline = power_baseline(time, of, REQUEST.split) if is_energy else None
            yield TrainedNetwork(path, load_network(path)[1], baseline)


def _pagerank(setting: Setting, on_progress: Callable[[str], None]) -> tuple[list[dict[str, Any]], str]:
    """Return PageRank on the graphs of the paper among the matrices, forecast and run, and why it lacks."""
    graphs = published("barreda_2020")["pagerank"]["graphs"]
    chosen = [item for item in collected(setting.matrices) if matrix_name(item) in graphs]
    paths = [
        network_path(labels, REQUEST.network, REQUEST.split)
        for labels in _kept_labels()
        if labels.frequency_ghz == FREQUENCIES_GHZ[0] and labels.quantity in ("time", TOTAL)
    ]
    if not chosen:
        return [], f"PageRank: none of the graphs {', '.join(graphs)} among the matrices."
    profile = calibrated_profile(machine_of(PROCESSOR))
    if not profile.bandwidths or not all(path.exists() for path in paths):
        return [], "PageRank: no bandwidths of this machine; sparsecast calibrate, then run again."
    rows = []
    for item in chosen:
        on_progress(f"PageRank on {matrix_name(item)}")
        question = application_question("pagerank", Problem.named(item))
        cost = application_cost(question, profile, networks=paths)
        run = run_application(question, cost.plan)
        error, seconds = run.errors(cost)[PRODUCT], {loop.name: loop.time_s for loop in cost.loops}
        rows.append(
            {
                "graph": matrix_name(item),
                "share": cost.shares()[PRODUCT],
                "measured_share": run.iterations * run.loops[PRODUCT] / run.time_s,
                "time_s": cost.total_s(seconds, run.iterations) - cost.plan.convert_s,
                "measured_s": run.time_s,
                "error": run.error(cost),
                "product_error": error.relative,
                "product_weighted_error": error.weighted,
                "power_w": cost.power_w,
                "energy_j": cost.energy_j,
            }
        )
    return rows, ""


def _label_row(labels: LabelSet) -> dict[str, Any]:
    table = published("barreda_2020")["table_1"]
    place, values = table["frequency_ghz"].index(labels.frequency_ghz), labels.blocks.labels
    ours = {"least": values.min(), "most": values.max(), "mean": values.mean(), "deviation": values.std()}
    return {
        "quantity": labels.quantity,
        "frequency_ghz": labels.frequency_ghz,
        "source": labels.energy_source or labels.frequency_source,
        **{name: float(value) for name, value in ours.items()},
        **{f"paper_{name}": table[labels.quantity][name][place] for name in ours},
    }


def _error_row(network: TrainedNetwork) -> dict[str, Any]:
    card, printed = network.card, published("barreda_2020")
    of_blocks, of_matrices = printed["block_errors"][card.quantity], printed["matrix_errors"]
    return {
        "quantity": card.quantity,
        "frequency_ghz": card.frequency_ghz,
        **card.errors["network"],
        "paper_most": of_blocks["most"],
        "paper_largest": " to ".join(percent(error) for error in of_blocks["largest"]),
        "paper_matrix_median": of_matrices["median"],
        "paper_matrix_largest": of_matrices["largest"],
    }


def _result(networks: Sequence[TrainedNetwork]) -> str:
    """Return the errors of matrices at the highest frequency in a sentence."""
    errors = [
        f"{network.card.quantity} at most {network.card.errors['network']['matrix_worst']:.0%}, half below "
        f"{network.card.errors['network']['matrix_median']:.1%}{' (modelled)' if network.modelled else ''}"
        for network in networks
        if network.card.frequency_ghz == FREQUENCIES_GHZ[0]
    ]
    return f"errors of matrices never seen: {'; '.join(errors)}" if errors else ""
