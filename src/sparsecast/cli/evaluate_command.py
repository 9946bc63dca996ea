"""sparsecast evaluate MATRIX..., sparsecast evaluate --replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sparsecast.cli.options import (
    DeviceOption,
    DtypeOption,
    JsonOption,
    KeepOption,
    ProfileOption,
    ThreadsOption,
    page,
    print_document,
    screen,
)
from sparsecast.errors import InputError

if TYPE_CHECKING:
    from sparsecast.benchmark.evaluation import Evaluation


def command(
    matrices: Annotated[
        list[str] | None, typer.Argument(metavar="MATRIX...", help="Files or gallery matrices.")
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Score the models on stored Records instead of measuring.")
    ] = False,
    keep: KeepOption = True,
    profile: ProfileOption = None,
    threads: ThreadsOption = None,
    dtype: DtypeOption = None,
    device: DeviceOption = "cpu",
    as_json: JsonOption = False,
) -> None:
    """Forecast and measure a collection of matrices on this machine, and score the models."""
    from sparsecast.reports import documents

    if bool(matrices) == replay:
        given = "matrices and --replay" if replay else "neither matrices nor --replay"
        raise InputError(f"{given}: expected one of them; name matrices to measure, or --replay")
    if replay:
        result = _replayed(profile, threads, dtype, device)
    else:
        result = _measured(matrices or [], keep, profile, threads, dtype, device)
    if not result.rows and not result.interrupted:
        raise InputError(
            next(iter(result.refused.values()), "no matrix was measured: expected some; name others")
        )
    if as_json:
        print_document(documents.evaluation(result))
    else:
        _show(result, shows_rows=not replay)
    if result.interrupted:
        screen().print("stopped from the keyboard: what was measured until then is shown")
        raise typer.Exit(130)


def _measured(
    matrices: list[str], keep: bool, profile: str | None, threads: int | None, dtype: str | None, device: str
) -> Evaluation:
    from sparsecast import api
    from sparsecast.reports.progress import counted_bar

    chosen = api.profile(profile) if profile else None
    with counted_bar(screen(), "measuring", len(matrices)) as advance:
        return api.evaluate(
            matrices, chosen, threads=threads, dtype=dtype, device=device, keeps=keep, on_matrix=advance
        )


def _replayed(profile: str | None, threads: int | None, dtype: str | None, device: str) -> Evaluation:
    from sparsecast import api
    from sparsecast.benchmark.replay import FOLDS
    from sparsecast.models import MODELS
    from sparsecast.reports.progress import counted_bar

    chosen = api.profile(profile, device=device)
    with counted_bar(screen(), "fitting", FOLDS * len(MODELS.names())) as advance:
        return api.replay(chosen, threads=threads, dtype=dtype or "float64", on_fold=advance)


def _show(result: Evaluation, shows_rows: bool) -> None:
    from sparsecast.reports import tables

    if shows_rows:
        page().print(tables.evaluation(result.rows))
    page().print(tables.scores(result.models))
    for what, reason in result.refused.items():
        page().print(f"Left out: {what}: {reason}", soft_wrap=True)
