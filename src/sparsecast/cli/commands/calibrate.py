"""sparsecast calibrate."""

from __future__ import annotations

from typing import Annotated

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Output
from sparsecast.system.texts import counted


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
) -> Output | None:
    """Measure the benchmark matrices on this machine and keep the profile."""
    if ranks:
        given = {"--threads": threads, "--dtype": dtype, "--suites": suites}
        options.refuse_beside_ranks(given, device)
        return _of_ranks(budget)
    return _of_matrices(budget, threads, dtype, device, suites)


def _of_ranks(budget_s: float) -> Output | None:
    """Measure what ranks do together; rank 0 alone speaks."""
    from sparsecast import api
    from sparsecast.reports.progress import timed_bar
    from sparsecast.results.machines import DOCUMENTS

    with api.on_ranks() as comm:
        run = api.rank_calibration(comm, budget_s)
        if comm.rank:
            run.run()
            return None
        with timed_bar(options.screen(), "calibrating ranks") as run.on_progress:
            profile = run.run()
        assert profile is not None
        item = {
            "profile": profile.name,
            "path": str(api.user_path(profile.name)),
            "microbenchmarks": len(run.measured),
            "left": run.left,
            "ranks": comm.size,
            "nodes": run.nodes.count(range(comm.size)),
            "budget_s": budget_s,
            "used_s": run.used_s,
            "notes": run.notes,
        }
        measured = counted(len(run.measured), "micro-benchmark")
        kept = f"{measured} in {run.used_s:.0f} s, kept as {profile.name}"
        return Output(DOCUMENTS["calibrate --ranks"], item, [kept, item["path"]], run.notes)


def _of_matrices(
    budget: float, threads: int | None, dtype: str | None, device: str, suites: str | None
) -> Output:
    from sparsecast import api
    from sparsecast.reports.progress import timed_bar
    from sparsecast.results.machines import DOCUMENTS

    named = options.names(suites) or []
    run = api.calibration(budget, threads=threads, dtype=dtype, device=device, suites=named)
    with timed_bar(options.screen(), "calibrating") as run.on_progress:
        profile = run.run()
    path = str(api.user_path(profile.name))
    disturbed = [f"{what}: {why.sentence()}" for what, why in api.disturbances(profile).items()]
    results = [suite.result(run) for suite in run.rating_suites]
    notes = [*run.notes, *(note for result in results for note in result.notes)]
    item = {
        "profile": profile,
        "path": path,
        "records": run.records,
        "budget_s": budget,
        "used_s": run.used_s,
        "interrupted": run.interrupted,
        "figures": {name: value for result in results for name, value in result.figures.items()},
        "notes": [*notes, *disturbed],
    }
    kept = f"{counted(len(run.records), 'record')} in {run.used_s:.0f} s, kept as {profile.name}"
    sentences = [sentence for result in results for sentence in result.sentences]
    shown = [kept, path, *sentences, *(f"- {note}" for note in notes)]
    stopped = "kept" if run.interrupted else ""
    return Output(DOCUMENTS["calibrate"], item, shown, disturbed, stopped=stopped)
