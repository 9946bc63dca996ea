"""sparsecast evaluate MATRIX|FOLDER..., sparsecast evaluate --replay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.rank_options import refuse_beside_ranks
from sparsecast.errors import InputError


@command("evaluate", Panel.MEASUREMENTS)
def evaluate(
    matrices: Annotated[
        list[str] | None,
        typer.Argument(metavar="MATRIX|FOLDER...", help="Files, folders of files, or gallery matrices."),
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Score the models on stored Records instead of measuring.")
    ] = False,
    ranks: Annotated[
        bool, typer.Option("--ranks", help="With --replay: score models of many ranks on kept products.")
    ] = False,
    models: Annotated[
        str | None, typer.Option(metavar="NAME[,NAME]", help="Models to score; all by default.")
    ] = None,
    anew: Annotated[
        bool, typer.Option("--anew", help="Measure again what was kept within the last hour.")
    ] = False,
    rows: Annotated[
        Path | None,
        typer.Option(metavar="FILE.parquet", help="Write a row for each forecast there as well."),
    ] = None,
    figure: options.FigureOption = None,
    keep: options.KeepOption = True,
    profile: options.ProfileOption = None,
    threads: options.ThreadsOption = None,
    dtype: options.DtypeOption = None,
    device: options.DeviceOption = "cpu",
    as_json: options.JsonOption = False,
) -> None:
    """Forecast and measure a collection of matrices on this machine, and score the models."""
    if ranks:
        unused = {"--threads": threads, "--dtype": dtype, "--models": models, "--rows": rows}
        _refuse_beside_ranks(replay, {**unused, "--figure": figure})
        _of_ranks(profile, as_json)
        return
    from sparsecast import api
    from sparsecast.benchmark.replay import FOLDS
    from sparsecast.reports import documents, row_files, tables
    from sparsecast.reports.charts.chart import render
    from sparsecast.reports.charts.scores import agreements
    from sparsecast.reports.progress import counted_bar, timed_bar

    if bool(matrices) == replay:
        given = "matrices and --replay" if replay else "neither matrices nor --replay"
        raise InputError(f"{given}: expected one of them; name matrices to measure, or --replay")
    if rows is not None:
        options.refuse_unwritable(rows)
        row_files.refuse_other_kind(rows)
    options.refuse_figure(figure)
    names = None if models is None or models == "all" else models.split(",")
    if matrices:
        chosen = api.profile(profile) if profile else None
        asked: dict[str, Any] = {"threads": threads, "dtype": dtype, "device": device, "keeps": keep}
        with timed_bar(options.screen(), "measuring") as on_progress:
            result = api.evaluate(matrices, chosen, **asked, models=names, anew=anew, on_progress=on_progress)
    else:
        chosen = api.profile(profile, device=device)
        scored: dict[str, Any] = {"threads": threads, "dtype": dtype or "float64", "models": names}
        fits = FOLDS * sum(len(each.compared) for each in api.chosen_models(names))
        with counted_bar(options.screen(), "fitting", fits) as advance:
            result = api.replay(chosen, **scored, on_fold=advance)
    if not result.rows and not result.interrupted:
        raise InputError(
            next(iter(result.refused.values()), "no matrix was measured: expected some; name others")
        )
    if rows is not None:
        row_files.write_rows(result.rows, rows)
    if figure is not None and result.rows:
        title = f"Forecast against measurement: {result.profile}"
        render(agreements(result), title, figure)
    if result.taken_over:
        options.screen().print(
            f"{result.taken_over} of the matrices were measured within the last hour: their kept Records "
            f"count, and --anew measures them again",
            soft_wrap=True,
        )
    shown = [tables.errors(result.models), tables.choices(result.models)] if result.models else []
    sentences = [tables.worst_sentence(result.models), tables.repeats_sentence(result.repeats)]
    left_out = [f"Left out: {what}: {reason}" for what, reason in result.refused.items()]
    options.show(as_json, documents.evaluation(result), *shown, *sentences, *left_out)
    if result.interrupted:
        options.stop("kept" if keep else "shown")


def _refuse_beside_ranks(replay: bool, given: dict[str, object]) -> None:
    """Refuse what does not go with --ranks."""
    if not replay:
        raise InputError("--ranks without --replay: expected both; measure by mpirun -n N sparsecast measure")
    refuse_beside_ranks({name: value for name, value in given.items() if value is not None}, "cpu")


def _of_ranks(profile: str | None, as_json: bool) -> None:
    """Score models of many ranks on kept products."""
    from sparsecast import api
    from sparsecast.benchmark.replay import FOLDS
    from sparsecast.models.clusters import CLUSTER_MODELS
    from sparsecast.reports import distributed_reports
    from sparsecast.reports.progress import counted_bar

    chosen = api.profile(profile) if profile else None
    with counted_bar(options.screen(), "fitting", FOLDS * len(CLUSTER_MODELS.names())) as advance:
        result = api.replay_ranks(chosen, on_fold=advance)
    document = distributed_reports.evaluation(result)
    left_out = [f"Left out: {what}: {why}" for what, why in result.refused.items()]
    options.show(as_json, document, distributed_reports.scores(result), *left_out)
