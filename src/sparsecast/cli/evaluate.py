"""sparsecast evaluate MATRIX..."""

from __future__ import annotations

from sparsecast.cli.options import (
    DeviceOption,
    DtypeOption,
    JsonOption,
    MatricesArgument,
    ProfileOption,
    ThreadsOption,
    page,
    print_document,
    screen,
)
from sparsecast.errors import InputError


def command(
    matrices: MatricesArgument,
    profile: ProfileOption = None,
    threads: ThreadsOption = None,
    dtype: DtypeOption = None,
    device: DeviceOption = "cpu",
    as_json: JsonOption = False,
) -> None:
    """Forecast and measure a collection of matrices on this machine, and score the models."""
    from sparsecast import api
    from sparsecast.reports import documents, tables
    from sparsecast.reports.progress import counted_bar

    chosen = api.profile(profile) if profile else None
    with counted_bar(screen(), "measuring", len(matrices)) as advance:
        result = api.evaluate(
            matrices, chosen, threads=threads, dtype=dtype, device=device, on_matrix=advance
        )
    if not result.rows:
        raise InputError(next(iter(result.refused.values())))
    if as_json:
        print_document(documents.evaluation(result))
        return
    page().print(tables.evaluation(result.rows))
    page().print(tables.scores(result.models))
    for reason in result.refused.values():
        page().print(f"Left out: {reason}")
