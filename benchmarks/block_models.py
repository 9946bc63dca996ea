"""What forecasts streaming labels of blocks best, what each input brings, and what a forecast costs.

    python benchmarks/block_models.py

It reads the labels that `sparsecast label` kept of this machine. Groups of matrices are left out in turn, in
five parts. A block's error is relative, its median over all blocks; a matrix' error is that of the mean over
its blocks. First the trees of the model `blocks` and a perceptron on the same blocks, then the trees without
some of the inputs, and last the seconds of a forecast of large matrices over those of a product.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from sparsecast.api.resolving import machine_of
from sparsecast.matrices.problem import Problem
from sparsecast.models.forest import Forest
from sparsecast.papers.barreda_2020.features.entry_blocks import (
    BLOCK_FEATURES,
    describe_blocks,
    sampled_blocks,
    whole_blocks,
)
from sparsecast.papers.barreda_2020.label_files import BlockLabels, kept_labels
from sparsecast.papers.barreda_2020.models.blocks import TREES, learnable

FOLDS = 5

#: From so many entries on a matrix is large.
LARGE = 100_000

#: Inputs that are dropped together, by their places in the order of the model `blocks`.
_WHOLE = len(BLOCK_FEATURES)
DROPPED = {
    "ends of rows": (0, 1),
    "steps between columns": range(2, 8),
    "lines and pages of x": range(8, 12),
    "sizes": range(_WHOLE + 2, _WHOLE + 5),
    "mispredicted rows": range(_WHOLE + 5, _WHOLE + 7),
    "reuse of x in the matrix": range(_WHOLE + 7, _WHOLE + 13),
    "kernel": range(_WHOLE + 13, _WHOLE + 17),
}

Part = tuple[np.ndarray, np.ndarray]
Learn = Callable[[np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]


def trees(inputs: np.ndarray, logarithms: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return what the trees of the model learned."""
    return Forest.boosted(inputs, logarithms, **TREES).mean


def perceptron(inputs: np.ndarray, logarithms: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return what a network with two layers of 32 learned."""
    from sklearn.neural_network import MLPRegressor

    mean, scale = inputs.mean(axis=0), inputs.std(axis=0)
    scale[scale == 0] = 1.0
    learner: Any = MLPRegressor(
        hidden_layer_sizes=(32, 32), batch_size=256, max_iter=40, early_stopping=True, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the epochs are a budget
        learner.fit((inputs - mean) / scale, logarithms)
    return lambda asked: learner.predict((asked - mean) / scale)


def mean_of_all(inputs: np.ndarray, logarithms: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return what always says the mean label."""
    value = float(np.log(np.exp(logarithms).mean()))
    return lambda asked: np.full(len(asked), value)


def scored(labels: list[BlockLabels], parts: list[Part], learn: Learn) -> tuple[float, float, float, float]:
    """Return median errors: of blocks, of matrices, of large ones; and the 90th percentile of these."""
    groups = sorted({each.group for each in labels})
    np.random.default_rng(0).shuffle(groups)
    of_blocks, of_matrices, sizes = [], [], []
    for fold in range(FOLDS):
        out = set(groups[fold::FOLDS])
        known = [part for part, own in zip(parts, labels, strict=True) if own.group not in out]
        inputs, ns = (np.concatenate(each) for each in zip(*known, strict=True))
        forecast = learn(inputs, np.log(ns))
        for (asked, measured), own in zip(parts, labels, strict=True):
            if own.group in out:
                found = np.exp(forecast(asked))
                of_blocks.append(np.abs(found / measured - 1))
                of_matrices.append(abs(found.mean() / measured.mean() - 1))
                sizes.append(own.nnz)
    errors, is_large = np.array(of_matrices), np.array(sizes) >= LARGE
    large = errors[is_large]
    return (
        float(np.median(np.concatenate(of_blocks))),
        float(np.median(errors)),
        float(np.median(large)),
        float(np.quantile(large, 0.9)),
    )


def show(name: str, errors: tuple[float, float, float, float]) -> None:
    """Print one line of errors."""
    print(f"{name:36}" + "".join(f"{each:9.1%}" for each in errors), flush=True)


def show_costs(labels: list[BlockLabels], problems: dict[str, Problem], forest: Forest) -> None:
    """Print what it costs to look at blocks of the largest matrices and to ask the trees, in products."""
    from sparsecast.papers.barreda_2020.models.blocks import asked

    print(f"\n{'cost in products':36}{'entries':>12}{'blocks':>9}{'sampled':>9}{'all':>9}")
    for own in sorted(labels, key=lambda each: -each.nnz)[:8]:
        A = problems[own.matrix].matrix
        found = learnable(own, problems[own.matrix].sampled_structure)[0][:1]
        costs = []
        for blocks in (sampled_blocks(own.nnz), np.arange(whole_blocks(own.nnz))):
            taken = []
            for _ in range(3):
                start = perf_counter()
                features = describe_blocks(A.indptr, A.indices, blocks)
                tail = np.tile(found[0, _WHOLE:], (len(blocks), 1))
                asked(forest, np.column_stack([features, tail]))
                taken.append(perf_counter() - start)
            costs.append(min(taken) / own.product_s)
        count = len(sampled_blocks(own.nnz))
        print(f"{own.name[:35]:36}{own.nnz:12,}{count:9,}{costs[0]:9.2f}{costs[1]:9.1f}", flush=True)


def main() -> None:
    """Print all tables."""
    kept = list(kept_labels(machine_of("cpu").name, "float64"))
    found = {each.matrix: Problem.rebuilt(each.matrix) for each in kept}
    problems = {key: problem for key, problem in found.items() if problem is not None}
    labels = [each for each in kept if each.matrix in problems]
    parts = [learnable(each, problems[each.matrix].sampled_structure) for each in labels]
    noise = [np.abs(each.streaming_again_ns / each.streaming_ns - 1) for each in labels]
    again = [abs(each.product_again_s / each.product_s - 1) for each in labels]
    print(f"{len(labels)} matrices, {sum(each.blocks for each in labels):,} blocks")
    print(
        f"measured again: a block {np.median(np.concatenate(noise)):.1%}, a product {np.median(again):.1%}\n"
    )
    print(f"{'median errors':36}{'block':>9}{'matrix':>9}{'large':>9}{'p90':>9}")
    for name, learn in (("always the mean", mean_of_all), ("perceptron", perceptron), ("trees", trees)):
        show(name, scored(labels, parts, learn))
    for name, places in DROPPED.items():
        without = [(np.delete(inputs, list(places), axis=1), ns) for inputs, ns in parts]
        show(f"trees without {name}", scored(labels, without, trees))
    inputs, ns = (np.concatenate(each) for each in zip(*parts, strict=True))
    show_costs(labels, problems, Forest.boosted(inputs, np.log(ns), **TREES))


if __name__ == "__main__":
    main()
