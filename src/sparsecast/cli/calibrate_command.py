"""sparsecast calibrate."""

from __future__ import annotations

from typing import Annotated

import typer

from sparsecast.cli.options import (
    DeviceOption,
    DtypeOption,
    JsonOption,
    ThreadsOption,
    page,
    print_document,
    screen,
    warn,
)


def command(
    budget: Annotated[float, typer.Option(help="Seconds it may take.")] = 300.0,
    threads: ThreadsOption = None,
    dtype: DtypeOption = None,
    device: DeviceOption = "cpu",
    as_json: JsonOption = False,
) -> None:
    """Measure the benchmark matrices on this machine and keep the profile."""
    from sparsecast import api
    from sparsecast.machines.profile import user_path
    from sparsecast.reports import documents, tables
    from sparsecast.reports.progress import timed_bar

    run = api.calibration(budget, threads=threads, dtype=dtype, device=device)
    with timed_bar(screen(), "calibrating") as run.on_progress:
        profile = run.run()
    path = user_path(profile.name)
    notes = [f"{what}: {found.sentence()}" for what, found in api.disturbances(profile).items()]
    warn(notes)
    rated = api.bench_result(run)
    if as_json:
        print_document(
            {
                "profile": profile.name,
                "path": str(path),
                "records": len(run.records),
                "budget_s": budget,
                "used_s": run.used_s,
                "interrupted": run.interrupted,
                "machine": documents.machine(profile.machine),
                "figures": documents.bench_figures(rated),
                "notes": [*rated.notes, *notes],
            }
        )
    else:
        page().print(
            f"{len(run.records)} records in {run.used_s:.0f} s, kept as {profile.name}", soft_wrap=True
        )
        page().print(str(path), soft_wrap=True)
        if rated.ratings:
            page().print(tables.bench_sentence(rated), soft_wrap=True)
        for note in rated.notes:
            page().print(f"- {note}", soft_wrap=True)
    if run.interrupted:
        screen().print("stopped from the keyboard: what was measured until then is kept")
        raise typer.Exit(130)
