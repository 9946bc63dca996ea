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
from sparsecast.cli.questions import profile_for


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

    first = api.read_matrix(matrices[0])
    chosen = profile_for(first.matrix, profile, threads, dtype, device)
    with counted_bar(screen(), "measuring", len(matrices)) as advance:
        result = api.evaluate(
            matrices, chosen, threads=threads, dtype=dtype, device=device, on_matrix=advance
        )
    if as_json:
        print_document(documents.evaluation(result.profile, result.rows, result.models))
        return
    page().print(tables.evaluation(result.rows))
    page().print(tables.scores(result.models))
