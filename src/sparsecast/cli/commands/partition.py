"""sparsecast partition MATRIX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from sparsecast import api
from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.options import option
from sparsecast.cli.output import Output
from sparsecast.cli.reading import read_matrix
from sparsecast.errors import InputError
from sparsecast.system.texts import counted


@command("partition", Panel.MATRICES, figure=True, csv=True)
def partition(
    matrix: options.MatrixArgument,
    ranks: Annotated[int | None, option(None, "Ranks that share the matrix.")] = None,
    method: Annotated[
        str | None, option("NAME", "metis, nonzeros, rows or uniform-2d; all by default.")
    ] = None,
    partition: Annotated[
        Path | None, option("FILE.npz", "Show a kept partition instead of computing one.")
    ] = None,
    out: Annotated[
        Path | None, option("FILE.npz", "Write the partition to this file; needs --method.")
    ] = None,
) -> Output:
    """Partition a matrix among ranks, and show what each stores and exchanges in a product."""
    from sparsecast.reports.charts import patterns
    from sparsecast.results.partitions import DOCUMENTS

    if (ranks is None) == (partition is None):
        given = "neither --ranks nor --partition" if ranks is None else "--ranks and --partition"
        raise InputError(f"{given}: expected one of them; name a number of ranks, or a kept partition")
    if partition is not None and method is not None:
        raise InputError(f"--method {method} with --partition: expected none; leave it out")
    if method is not None:
        api.usable_method(method)
    count = 0 if ranks is None else api.checked_ranks(ranks)
    if out is not None:
        if method is None:
            raise InputError(f"--out {out} without --method: expected one partition to keep; name its method")
        options.refuse_unwritable(out)
    problem = read_matrix(matrix)
    compared = api.partitions(problem, count, method, partition)
    drawn = [estimate.partition for estimate in compared.partitions]
    if out is not None:
        api.keep_partition(problem, drawn[0], out)
    title = f"{problem.name} on {counted(compared.distribution.ranks, 'rank')}"
    table = compared.table(title, problem.matrix.dtype.itemsize)
    item = {
        "problem": problem,
        "ranks": compared.distribution.ranks,
        "partitions": table.rows,
        "refused": compared.refused,
        "notes": [*compared.notes, *problem.notes],
    }
    shown = [table, *problem.notes]
    return Output(
        DOCUMENTS["partition"],
        item,
        shown,
        compared.notes,
        lambda: (patterns.partitions(problem.matrix, drawn), title),
    )
