"""sparsecast calibrate."""

from __future__ import annotations

from typing import Annotated

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.rank_options import refuse_beside_ranks


@command("calibrate", Panel.MACHINES)
def calibrate(
    budget: Annotated[float, typer.Option(help="Seconds it may take.")] = 300.0,
    threads: options.ThreadsOption = None,
    dtype: options.DtypeOption = None,
    device: options.DeviceOption = "cpu",
    suites: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,NAME]",
            help="Measure these suites of benchmark matrices, such as guo,wang, and add them to the profile.",
        ),
    ] = None,
    ranks: Annotated[
        bool,
        typer.Option("--ranks", help="Under mpirun: measure messages and memory of all ranks, add them."),
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Measure the benchmark matrices on this machine and keep the profile."""
    if ranks:
        given = {"--threads": threads, "--dtype": dtype, "--suites": suites}
        refuse_beside_ranks({name: value for name, value in given.items() if value is not None}, device)
        return _of_ranks(budget, as_json)
    return _of_matrices(budget, threads, dtype, device, suites, as_json)


def _of_ranks(budget_s: float, as_json: bool) -> None:
    """Measure what ranks do together; rank 0 alone speaks."""
    from sparsecast import api
    from sparsecast.machines.profile import user_path
    from sparsecast.reports.progress import timed_bar

    with api.on_ranks() as comm:
        run = api.rank_calibration(comm, budget_s)
        if comm.rank:
            run.run()
            return
        with timed_bar(options.screen(), "calibrating ranks") as run.on_progress:
            profile = run.run()
        assert profile is not None
        path = str(user_path(profile.name))
        notes = run.notes
        options.warn(notes)
        document = {
            "profile": profile.name,
            "path": path,
            "microbenchmarks": len(run.measured),
            "left": run.left,
            "ranks": comm.size,
            "nodes": run.nodes.count(range(comm.size)),
            "budget_s": budget_s,
            "used_s": run.used_s,
            "notes": notes,
        }
        kept = f"{len(run.measured)} micro-benchmarks in {run.used_s:.0f} s, kept as {profile.name}"
        options.show(as_json, document, kept, path)


def _of_matrices(
    budget: float, threads: int | None, dtype: str | None, device: str, suites: str | None, as_json: bool
) -> None:
    from sparsecast import api
    from sparsecast.machines.profile import user_path
    from sparsecast.reports import documents
    from sparsecast.reports.progress import timed_bar

    named = [name.strip() for name in suites.split(",")] if suites is not None else []
    run = api.calibration(budget, threads=threads, dtype=dtype, device=device, suites=named)
    with timed_bar(options.screen(), "calibrating") as run.on_progress:
        profile = run.run()
    path = str(user_path(profile.name))
    warned = [f"{what}: {found.sentence()}" for what, found in api.disturbances(profile).items()]
    options.warn(warned)
    results = [suite.result(run) for suite in run.rating_suites]
    notes = [*run.notes, *(note for result in results for note in result.notes), *warned]
    document = {
        "profile": profile.name,
        "path": path,
        "records": len(run.records),
        "budget_s": budget,
        "used_s": run.used_s,
        "interrupted": run.interrupted,
        "machine": documents.machine(profile.machine),
        "figures": {name: value for result in results for name, value in result.figures.items()},
        "notes": notes,
    }
    kept = f"{len(run.records)} records in {run.used_s:.0f} s, kept as {profile.name}"
    sentences = [sentence for result in results for sentence in result.sentences]
    sentences += [f"- {note}" for note in notes if note not in warned]
    options.show(as_json, document, kept, path, *sentences)
    if run.interrupted:
        options.stop("kept")
