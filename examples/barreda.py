"""The experiment of Barreda, Dolz and Castano (2020): networks that forecast blocks, and PageRank's product.

    python examples/barreda.py --train [--epochs N] [--blocks N]
    python examples/barreda.py [--figure FILE] MATRIX...

Both read the labels that `sparsecast label FOLDER` measured on this machine. The first form trains the
paper's network of time on labels as the paper measured them (hot: each block repeated in place) and on
streaming ones (within a product), and ours, which sees the ends of rows, on streaming ones. They are
validated on whole groups of matrices, the first on the paper's split, too. A training that was interrupted
goes on. The networks are kept in the data folder, with their errors.

The second form prints these errors, and then takes each MATRIX for a graph: it measures the product of
PageRank, forecasts it as a sum over blocks, and prints both. The model `blocks` learns from all matrices but
this graph; a network may have learned from the graph's own matrix, whose transpose this is. Nothing here
measures energy: without a meter, the table says so.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np
from scipy.sparse import csr_array, diags_array

from sparsecast.api.matrices import structure_for
from sparsecast.api.targets import target_of, training_for
from sparsecast.devices.naming import machine_of
from sparsecast.errors import InputError, SparsecastError
from sparsecast.machines.profile import find_profile
from sparsecast.matrices.problem import Problem
from sparsecast.papers.barreda_2020.block_forecast import block_forecast
from sparsecast.papers.barreda_2020.features.entry_blocks import BLOCK_ENTRIES
from sparsecast.papers.barreda_2020.label_files import labels_folder
from sparsecast.papers.barreda_2020.labels import label_blocks, labelled_way
from sparsecast.papers.barreda_2020.models.blocks import Blocks
from sparsecast.papers.barreda_2020.network_training import block_dataset, train_network
from sparsecast.papers.barreda_2020.networks import required
from sparsecast.papers.barreda_2020.networks.architectures import SEEING_ROWS, TIME
from sparsecast.papers.barreda_2020.networks.scores import BlockScore
from sparsecast.papers.barreda_2020.networks.training import PAPER_PLAN
from sparsecast.papers.barreda_2020.networks.weights import ModelCard, load_network
from sparsecast.reports.charts.chart import HEIGHT, WIDTH, Chart, axis, look, refuse_undrawable, render

#: Networks: labels, whose architecture, split.
NETWORKS = (
    ("hot", "paper's", "groups"),
    ("hot", "paper's", "paper"),
    ("streaming", "paper's", "groups"),
    ("streaming", "ours", "groups"),
)
ARCHITECTURES = {"paper's": TIME, "ours": SEEING_ROWS}

OF_THE_PAPER = (
    "The paper, on a Haswell core: most blocks about 0.5 %, nearly all below 4 %; matrices below 1 % for "
    "half, 10 % at most; time deviates by 5 % of its mean. PageRank's product: about -40 %, weighted."
)


def place(kind: str, whose: str, split: str) -> Path:
    """Return the file of a network."""
    folder = labels_folder(machine_of("cpu").name).parent / "networks"
    return folder / f"{machine_of('cpu').name}-{kind}-{whose.replace(chr(39), '')}-{split}.safetensors"


def train_all(epochs: int, most: int) -> None:
    """Train every network that is not there."""
    required("torch").set_num_threads(1)
    for kind, whose, split in NETWORKS:
        path = place(kind, whose, split)
        if path.exists():
            continue
        blocks, start_s = block_dataset(kind, most=most), perf_counter()

        def say(progress, start_s=start_s):
            print(
                f"  epoch {len(progress.losses)}: {progress.losses[-1]:.5f} ns2, validation "
                f"{progress.validation[-1]:.5f}, {perf_counter() - start_s:.0f} s",
                flush=True,
            )

        print(f"{kind} labels, {whose} network, split by {split}: {len(blocks):,} blocks", flush=True)
        plan = replace(PAPER_PLAN, epochs=epochs)
        architecture = ARCHITECTURES[whose]
        card = train_network(
            blocks, kind, path, architecture=architecture, split=split, plan=plan, on_epoch=say
        )
        show(kind, whose, split, card)


def show(kind: str, whose: str, split: str, card: ModelCard) -> None:
    """Print the errors of a network on its validation, and the lines beside it."""
    print(f"{kind} labels, {whose}, split by {split}: {card.blocks:,} blocks of {card.matrices} matrices")
    for name, errors in card.errors.items():
        print(f"  {name:20} {line(BlockScore(**errors))}")


def line(errors: BlockScore) -> str:
    """Return the errors in columns."""
    of_blocks = f"{errors.block_mean:11.1%} {errors.block_median:7.1%}"
    return f"{of_blocks} {errors.matrix_mean:14.1%} {errors.matrix_median:7.1%} {errors.matrix_worst:6.1%}"


def show_trained() -> None:
    """Print the errors on the cards of the networks that are there."""
    print(f"{'':20} block: mean  median   matrix: mean  median  worst")
    for kind, whose, split in NETWORKS:
        path = place(kind, whose, split)
        if not path.exists():
            print(f"{kind}, {whose}, by {split}: not trained; python examples/barreda.py --train")
            continue
        _, card = load_network(path)
        show(kind, whose, split, card)
    print("energy: not measured")


def draw_losses(path: Path) -> None:
    """Draw the errors of each epoch of the networks that are there."""
    rows = []
    for kind, whose, split in NETWORKS:
        file = place(kind, whose, split)
        card = load_network(file)[1] if file.exists() else None
        if card is None:
            continue
        for what, losses in (("validation", card.validation), ("training", card.losses)):
            rows += [
                {"network": f"{kind} labels, {whose}, by {split}", "on": what, "epoch": epoch, "error": error}
                for epoch, error in enumerate(losses, 1)
            ]
    if not rows:
        raise InputError(f"figure {path} would show nothing: expected networks; train them by --train")
    title = "mean squared error, (ns per entry)²; ours: of logarithms"
    encoding = {
        "x": axis("epoch", "epoch"),
        "y": axis("error", title, [row["error"] for row in rows], is_log=True),
        "color": look("network", (row["network"] for row in rows))["color"],
        "strokeDash": {"field": "on", "title": None, "sort": ["validation", "training"]},
    }
    spec = {"data": {"values": rows}, "mark": "line", "encoding": encoding, "width": WIDTH, "height": HEIGHT}
    render(Chart("losses", "", spec), "Errors of the networks over the epochs", path)


def of_pagerank(graph: Problem) -> Problem:
    """Return PageRank's matrix: the adjacency transposed, each column divided by its links."""
    adjacency = graph.matrix
    links = np.diff(adjacency.indptr)
    shares = diags_array(1.0 / np.maximum(links, 1))
    weights = csr_array((np.ones(adjacency.nnz), adjacency.indices, adjacency.indptr), shape=adjacency.shape)
    return Problem.of(csr_array((shares @ weights).T.tocsr()), f"PageRank on {graph.name}")


def without_graph(graph: Problem, problem: Problem) -> float:
    """Return what the model `blocks` forecasts of a product that learned from all matrices but the graph."""
    profile = find_profile(here=machine_of("cpu"))
    training = training_for(profile, target_of(problem, profile.machine, 1, None))
    model = Blocks().fit(training.where(lambda record: training.group(record) != graph.group))
    way = labelled_way(problem, profile.machine, problem.matrix.dtype.name)
    return model.forecast(structure_for(problem, model.groups), [way])[0].time_s


def show_product(name: str) -> None:
    """Print PageRank's product as it was measured, and as sums over blocks say."""
    graph = Problem.named(name)
    problem = of_pagerank(graph)
    labels = label_blocks(problem, machine_of("cpu"))
    product_s, whole = labels.product_s, labels.nnz / (labels.blocks * BLOCK_ENTRIES)
    print(f"\n{problem.name}: {labels.nnz:,} entries, product {product_s * 1e6:,.1f} us, ", end="")
    print(f"measured again {labels.product_again_s / product_s - 1:+.1%}")

    def compare(what: str, seconds: float) -> None:
        print(f"  {what:44} {seconds * 1e6:10,.1f} us {seconds / product_s - 1:+7.1%}")

    compare("sum of runs as timed, before scaling", product_s * labels.runs_over_product)
    compare(
        "sum of streaming labels, scaled to it",
        float(labels.streaming_ns.sum()) * BLOCK_ENTRIES * whole * 1e-9,
    )
    compare("sum of hot labels", float(labels.hot_ns.mean()) * labels.nnz * 1e-9)
    compare("model blocks, without this graph", without_graph(graph, problem))
    for kind, whose, split in NETWORKS:
        path = place(kind, whose, split)
        if path.exists() and split == "groups":
            start_s = perf_counter()
            found = block_forecast(problem, network=path)
            asked_s = perf_counter() - start_s
            has_seen = graph.group in load_network(path)[1].groups
            compare(f"{kind}, {whose}, graph {'learned' if has_seen else 'left out'}", found.time_s)
            print(f"    asked about every block: {asked_s / product_s:,.0f} products")


def main() -> int:
    """Train, or show; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("matrices", nargs="*", metavar="MATRIX")
    parser.add_argument("--train", action="store_true", help="train the networks that are not there")
    parser.add_argument("--epochs", type=int, default=100, help="at most (the paper: 100)")
    parser.add_argument("--blocks", type=int, default=1024, help="of one matrix at most")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw the errors over the epochs")
    asked = parser.parse_args()
    try:
        if asked.figure:
            refuse_undrawable(asked.figure)
        find_profile(here=machine_of("cpu"))
        if asked.train:
            train_all(asked.epochs, asked.blocks)
            return 0
        show_trained()
        if asked.figure:
            draw_losses(asked.figure)
        for name in asked.matrices:
            show_product(name)
        print(f"\n{OF_THE_PAPER}")
    except SparsecastError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
