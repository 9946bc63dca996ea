"""sparsecast plan MATRIX."""

from __future__ import annotations

from typing import Annotated

import typer

from sparsecast.cli.options import (
    AsMetOption,
    DevicesOption,
    DtypeOption,
    JsonOption,
    MatrixArgument,
    ModelOption,
    ProfileOption,
    ThreadsOption,
    page,
    print_document,
    warn,
)
from sparsecast.cli.profile_choice import profiles_for


def command(
    matrix: MatrixArgument,
    iterations: Annotated[int, typer.Option(min=1, help="Products that will be done.")] = 1000,
    check: Annotated[bool, typer.Option("--check", help="Build the plan and measure it here.")] = False,
    profile: ProfileOption = None,
    threads: ThreadsOption = None,
    dtype: DtypeOption = None,
    device: DevicesOption = None,
    model: ModelOption = None,
    as_met: AsMetOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find the best way of doing a number of products, conversion paid: a format for each row block."""
    from sparsecast import api
    from sparsecast.reports import documents, tables

    found = api.read_matrix(matrix)
    profiles = profiles_for(found, profile, threads, dtype, device)
    placements = None
    if device is not None and "," in device:
        placements = api.place(
            found,
            device,
            profiles,
            iterations=iterations,
            threads=threads,
            dtype=dtype,
            model=model,
        )
        made, on = placements.best.plan, placements.best.profile
    else:
        made = api.plan(
            found,
            *profiles,
            iterations=iterations,
            threads=threads,
            dtype=dtype,
            device=device,
            model=model,
            as_met=as_met,
        )
        on = profiles[0].name
    warn(made.notes)
    checked = api.check(found, made, device=device) if check else None
    if as_json:
        about = documents.matrix(found.structure, found.name)
        where = {} if placements is None else documents.placements(placements)
        print_document({"matrix": about, "plan": documents.plan(made, checked), **where})
        return
    if placements is not None:
        page().print(tables.placements(f"Where to do {iterations:,} products: {found.name}", placements))
        for sentence in tables.placement_sentences(placements):
            page().print(sentence, soft_wrap=True)
    page().print(tables.plan(f"Plan for {iterations:,} products: {found.name}", made))
    for sentence in tables.plan_sentences(made, on):
        page().print(sentence)
    if checked is not None:
        page().print(tables.plan_check(made, checked))
