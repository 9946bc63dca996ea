"""sparsecast evaluate MATRIX|FOLDER..., sparsecast evaluate --replay."""

from __future__ import annotations

from typing import Annotated, Any

from sparsecast import api
from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.options import argument, flag, option
from sparsecast.cli.output import Output
from sparsecast.cli.reading import counted_bar, pending_output, tell_taken_over, timed_bar
from sparsecast.errors import InputError


@command("evaluate", Panel.MEASUREMENTS, figure=True, csv=True)
def evaluate(
    setting: options.SettingGroup,
    collection: options.CollectionGroup,
    matrices: Annotated[
        list[str] | None, argument("MATRIX|FOLDER...", "Files, folders of files, or gallery matrices.")
    ] = None,
    replay: Annotated[
        bool, flag("--replay", "Score the models on stored Records instead of measuring.")
    ] = False,
    ranks: Annotated[
        bool, flag("--ranks", "With --replay: score models of many ranks on kept products.")
    ] = False,
    models: Annotated[str | None, option("NAME[,NAME]", "Models to score; all by default.")] = None,
    watch: Annotated[
        bool, flag("--watch", "Print a line for each matrix as soon as it is measured.")
    ] = False,
    rows: Annotated[
        str | None, option("FILE.parquet", "Write one row per forecast to this file or s3:// address.")
    ] = None,
    figure: options.FigureOption = None,
) -> Output:
    """Forecast and measure a collection of matrices on this machine, and score the models."""
    if ranks and not replay:
        remedy = "measure by mpirun -n N sparsecast measure"
        raise InputError(f"--ranks without --replay: expected both; {remedy}")
    if bool(matrices) == replay:
        given = "matrices and --replay" if replay else "neither matrices nor --replay"
        raise InputError(f"{given}: expected one of them; name matrices to measure, or --replay")
    shard = collection.shard
    if replay and (collection.resume or collection.dry_run or watch or shard is not None):
        raise InputError("--resume, --shard, --watch or --dry-run with --replay: expected matrices; add some")
    if ranks:
        unused = {
            name: value for name, value in setting.named.items() if name not in ("--profile", "--device")
        }
        unused |= {"--models": models, "--rows": rows, "--figure": figure}
        options.refuse_beside_ranks(unused, setting.device or "cpu")
        return _of_ranks(setting.profile)
    from sparsecast.reports.charts.scores import agreements
    from sparsecast.results.evaluation import DOCUMENTS
    from sparsecast.system.tabular import lines_of

    if rows is not None:
        options.refuse_no_parquet("--rows", rows)
    if collection.dry_run:
        options.refuse_given({"--rows": rows}, "with --dry-run: expected forecasts to write; leave one out")
        return pending_output(api.pending(matrices or [], shard, setting.device or "cpu"))
    names = None if models == "all" else options.names(models)
    if matrices:
        session = api.session(setting.profile, **setting.session_options)
        how: Any = {"keeps": collection.keep, "resume": collection.resume, "shard": shard}
        screen = options.screen()
        if watch:
            how["on_matrix"] = lambda name, alone: screen.print(
                alone.sentence_of(name), soft_wrap=True, markup=False
            )
        with timed_bar("measuring") as how["on_progress"]:
            result = session.evaluate(matrices, models=names, transpose=setting.transpose, **how)
    else:
        chosen = api.profile(setting.profile, device=setting.device or "cpu")
        session = api.session(chosen, **setting.session_options)
        with counted_bar("fitting", api.fits_of(names, setting.vectors)) as advance:
            result = api.replay(session, models=names, transpose=setting.transpose, on_fold=advance)
    is_empty_shard = shard is not None and not result.refused
    if not result.rows and not result.interrupted and not is_empty_shard:
        none = "no matrix was measured: expected some; name others"
        raise InputError(next(iter(result.refused.values()), none))
    if rows is not None:
        result.write_rows(rows)
    tell_taken_over(result.taken_over)
    title = f"Forecast over measurement: {result.profile}"
    shown: list[Any] = [result.table(), result.sizes(), result.choices()] if result.models else []
    shown += [result.worst_sentence(), result.repeats_sentence()]
    shown += [f"Left out: {line}" for line in lines_of(result.refused)]
    return Output(
        DOCUMENTS["evaluate"],
        result,
        shown,
        chart=lambda: (agreements(result), title) if result.rows else None,
        stopped=collection.stopped if result.interrupted else "",
    )


def _of_ranks(profile: str | None) -> Output:
    """Score models of many ranks on kept products."""
    from sparsecast.results.cluster import DOCUMENTS
    from sparsecast.system.tabular import lines_of

    chosen = api.profile(profile) if profile else None
    with counted_bar("fitting", api.cluster_fits()) as advance:
        result = api.replay_ranks(chosen, on_fold=advance)
    left_out = (f"Left out: {line}" for line in lines_of(result.refused))
    return Output(DOCUMENTS["evaluate --replay --ranks"], result, [result.table(), *left_out])
