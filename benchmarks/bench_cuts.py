"""What cutting large dimensions does to the figures of the five-minute benchmark.

    python benchmarks/bench_cuts.py RESULT.json

RESULT is what `sparsecast bench --output RESULT.json` wrote, best with a budget that reached all dimensions.
Its matrices are cut at one dimension after another, with all the non-zeros a row that it has below, and the
middle value at the dimension itself and, for the scouts, beyond. The figures from what is left, refilled, are
compared with those of all.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sparsecast.papers.gahvari_2007.estimator import SCOUTS
from sparsecast.papers.gahvari_2007.search_space import MIDDLE, Point
from sparsecast.papers.gahvari_2007.summary import FIGURES, Speeds, figures


def cut(speeds: Speeds, dimension: int, scouts: bool) -> dict[Point, float]:
    """Return the speeds up to a dimension, and with `scouts` those of the few series that go on."""
    return {
        point: speed
        for point, speed in speeds.items()
        if point.dimension < dimension
        or (
            point.nnz_per_row == MIDDLE
            and (point.dimension == dimension or (scouts and point.series in SCOUTS))
        )
    }


def main() -> None:
    """Print one line for each dimension, without and with scouts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("result", type=Path, metavar="RESULT.json")
    targets = json.loads(parser.parse_args().result.read_text(encoding="utf-8"))["settings"]
    for target in targets:
        speeds = {Point.named(point["matrix"]): point["mflops"] for point in target["points"]}
        end = max(point.dimension for point in speeds)
        whole = asdict(figures(speeds, end))
        title = (
            f"{target['dtype']}, {target['threads']} threads: error of the figures when dimensions are cut"
        )
        table = Table(title=title, title_justify="left")
        table.add_column("last dimension", justify="right")
        table.add_column("scouts")
        for name in FIGURES:
            table.add_column(name.removesuffix("_mflops").replace("_", " "), justify="right")
        for dimension in sorted({point.dimension for point in speeds})[:-1]:
            for scouts in (False, True):
                left = asdict(figures(cut(speeds, dimension, scouts), end))
                errors = [f"{100 * (left[name] / whole[name] - 1):+.1f} %" for name in FIGURES]
                table.add_row(f"{dimension:,}", "yes" if scouts else "no", *errors)
        Console(width=None if Console().is_terminal else 140).print(table)


if __name__ == "__main__":
    main()
