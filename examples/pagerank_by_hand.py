"""Ranks the nodes of a random graph by the power method: ``pagerank_by_hand.py [NODES] [ITERATIONS]``."""

import sys

import numpy as np
from scipy.sparse import coo_array


def graph(nodes, links=12):
    """Return a graph whose links go to few nodes often: entry i, j is a link from i to j."""
    rng = np.random.default_rng(1)
    source = np.repeat(np.arange(nodes), links)
    target = (nodes * rng.power(0.4, size=nodes * links)).astype(int)
    return coo_array((np.ones(nodes * links), (source, target)), shape=(nodes, nodes)).tocsr()


def main(nodes=200_000, iterations=400, damping=0.85):
    links = graph(nodes)
    leaving = links.sum(axis=1)
    transition = (links.T / leaving).tocsr()
    ranks = np.full(nodes, 1 / nodes)
    for _ in range(iterations):
        ranks = damping * (transition @ ranks) + (1 - damping) / nodes
    first = np.argsort(ranks)[::-1][:3]
    print("first nodes:", *first, f"with a sum of {ranks.sum():.6f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
