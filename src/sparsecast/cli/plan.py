"""sparsecast plan MATRIX."""

from __future__ import annotations

from typing import Annotated

import typer

from sparsecast.cli.options import (
    DeviceOption,
    DtypeOption,
    JsonOption,
    MatrixArgument,
    ModelOption,
    ProfileOption,
    ThreadsOption,
    page,
    print_document,
)
from sparsecast.cli.questions import profile_for


def command(
    matrix: MatrixArgument,
    iterations: Annotated[int, typer.Option(min=1, help="Products that will be done.")] = 1000,
    check: Annotated[bool, typer.Option("--check", help="Build the plan and measure it here.")] = False,
    profile: ProfileOption = None,
    threads: ThreadsOption = None,
    dtype: DtypeOption = None,
    device: DeviceOption = "cpu",
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the best way of doing a number of products, conversion paid: a format for each row block."""
    from sparsecast import api
    from sparsecast.reports import documents, tables

    found = api.read_matrix(matrix)
    chosen = profile_for(found.matrix, profile, threads, dtype, device)
    made = api.plan(
        found.matrix, chosen, iterations=iterations, threads=threads, dtype=dtype, device=device, model=model
    )
    checked = api.check(found.matrix, made) if check else None
    if as_json:
        about = documents.matrix(found.name, found.matrix.shape, found.matrix.nnz)
        print_document({"matrix": about, "plan": documents.plan(made, checked)})
        return
    page().print(tables.plan(f"Plan for {iterations:,} products: {found.name}", made))
    for sentence in tables.plan_sentences(made, chosen.name):
        page().print(sentence)
    if checked is not None:
        page().print(tables.plan_check(made, checked))
