"""sparsecast evaluate MATRIX..., sparsecast evaluate --replay."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sparsecast.cli import options
from sparsecast.errors import InputError


def command(
    matrices: Annotated[
        list[str] | None, typer.Argument(metavar="MATRIX...", help="Files or gallery matrices.")
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Score the models on stored Records instead of measuring.")
    ] = False,
    keep: options.KeepOption = True,
    profile: options.ProfileOption = None,
    threads: options.ThreadsOption = None,
    dtype: options.DtypeOption = None,
    device: options.DeviceOption = "cpu",
    as_json: options.JsonOption = False,
) -> None:
    """Forecast and measure a collection of matrices on this machine, and score the models."""
    from sparsecast import api
    from sparsecast.benchmark.replay import FOLDS
    from sparsecast.models import MODELS
    from sparsecast.reports import documents, tables
    from sparsecast.reports.progress import counted_bar

    if bool(matrices) == replay:
        given = "matrices and --replay" if replay else "neither matrices nor --replay"
        raise InputError(f"{given}: expected one of them; name matrices to measure, or --replay")
    if matrices:
        chosen = api.profile(profile) if profile else None
        asked: dict[str, Any] = {"threads": threads, "dtype": dtype, "device": device, "keeps": keep}
        with counted_bar(options.screen(), "measuring", len(matrices)) as advance:
            result = api.evaluate(matrices, chosen, **asked, on_matrix=advance)
    else:
        chosen = api.profile(profile, device=device)
        fits = FOLDS * sum(len(MODELS.get(name).compared) for name in MODELS.names())
        with counted_bar(options.screen(), "fitting", fits) as advance:
            result = api.replay(chosen, threads=threads, dtype=dtype or "float64", on_fold=advance)
    if not result.rows and not result.interrupted:
        raise InputError(
            next(iter(result.refused.values()), "no matrix was measured: expected some; name others")
        )
    measured = [tables.evaluation(result.rows)] if matrices else []
    left_out = [f"Left out: {what}: {reason}" for what, reason in result.refused.items()]
    scores = tables.scores(result.models)
    options.show(as_json, documents.evaluation(result), *measured, scores, *left_out)
    if result.interrupted:
        options.stop("shown")
