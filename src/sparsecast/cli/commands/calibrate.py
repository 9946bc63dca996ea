"""sparsecast calibrate."""

from __future__ import annotations

from typing import Annotated

from sparsecast import api
from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.options import flag, option
from sparsecast.cli.output import Output
from sparsecast.cli.reading import timed_bar
from sparsecast.system.texts import counted


@command("calibrate", Panel.MACHINES)
def calibrate(
    budget: Annotated[float, option(None, "Time budget in seconds.")] = 300.0,
    threads: options.ThreadsOption = None,
    dtype: options.DtypeOption = None,
    device: options.DeviceOption = "cpu",
    vectors: options.VectorsOption = 1,
    suites: Annotated[
        str | None,
        option(
            "NAME[,NAME]",
            "Measure these suites of benchmark matrices, such as guo,wang, and add them to the profile.",
        ),
    ] = None,
    libraries: Annotated[
        bool, flag("--libraries", "Also measure the other libraries that are installed (doctor).")
    ] = False,
    ranks: Annotated[
        bool,
        flag("--ranks", "Under mpirun: measure messages and memory of all ranks, and products of --suites."),
    ] = False,
) -> Output | None:
    """Measure the benchmark matrices on this machine and keep the profile."""
    suite_names = options.names(suites) or []
    if ranks:
        given = {"--threads": threads, "--dtype": dtype, "--vectors": None if vectors == 1 else vectors}
        options.refuse_beside_ranks(given | {"--libraries": "" if libraries else None}, device)
        return _of_ranks(budget, suite_names)
    from sparsecast.results.machines import DOCUMENTS

    library = "any" if libraries else None
    run = api.calibration(
        budget,
        threads=threads,
        dtype=dtype,
        device=device,
        vectors=vectors,
        suites=suite_names,
        library=library,
    )
    with timed_bar("calibrating") as run.on_progress:
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


def _of_ranks(budget_s: float, suites: list[str]) -> Output | None:
    """Measure what ranks do together, then products of suites in half of the budget; rank 0 alone speaks."""
    from sparsecast.results.machines import DOCUMENTS

    with api.on_ranks() as comm:
        part_s = budget_s / 2 if suites else budget_s
        run = api.rank_calibration(comm, part_s, suites)
        if comm.rank:
            run.run()
            api.measure_suites_on_ranks(comm, suites, part_s)
            return None
        with timed_bar("calibrating ranks") as run.on_progress:
            profile = run.run()
        with timed_bar("measuring products") as on_progress:
            products, products_left = api.measure_suites_on_ranks(comm, suites, part_s, on_progress)
        assert profile is not None
        item = {
            "profile": profile.name,
            "path": str(api.user_path(profile.name)),
            "microbenchmarks": len(run.measured),
            "left": run.left,
            "products": products,
            "products_left": products_left,
            "ranks": comm.size,
            "nodes": run.nodes.count(range(comm.size)),
            "budget_s": budget_s,
            "used_s": run.used_s,
            "notes": run.notes,
        }
        measured = counted(len(run.measured), "micro-benchmark")
        shown = [f"{measured} in {run.used_s:.0f} s, kept as {profile.name}", item["path"]]
        if suites:
            shown.append(f"products of {counted(products, 'matrix')}, {products_left} left")
        return Output(DOCUMENTS["calibrate --ranks"], item, shown, run.notes)
