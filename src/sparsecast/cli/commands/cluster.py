"""sparsecast cluster MATRIX --ranks 16,64,256."""

from __future__ import annotations

import dataclasses
import re
from typing import Annotated

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Output
from sparsecast.cli.reading import read_question
from sparsecast.errors import InputError


@command("cluster", Panel.FORECASTS, figure=True, csv=True)
def cluster(
    matrix: options.QuestionArgument,
    ranks: Annotated[str, typer.Option(metavar="N[,N]", help="Numbers of ranks to compare.")],
    profile: options.ProfileOption = None,
    ranks_per_node: Annotated[
        int | None, typer.Option(help="Ranks per node; its number of cores by default.")
    ] = None,
    price: Annotated[
        float | None,
        typer.Option(help="Price per node and hour, in any currency; adds the cost of products."),
    ] = None,
    algorithms: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,NAME]", help="Algorithms, such as local-1d,2d; all built-in ones by default."
        ),
    ] = None,
    formats: Annotated[
        str | None,
        typer.Option(metavar="NAME[,NAME]", help="Formats; CSR, COO and the fastest one by default."),
    ] = None,
    partitions: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,NAME]", help="Partitions; nonzeros, metis and uniform-2d by default; also rows."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            callback=options.known(lambda api, name: api.CLUSTER_MODELS.get(name)),
            help="Model used for the forecast.",
        ),
    ] = None,
    objective: options.ObjectiveOption = "time",
    power_model: options.PowerModelOption = None,
    energy_model: options.EnergyModelOption = None,
) -> Output:
    """Forecast one product on many ranks: compare algorithms, formats, partitions and numbers of ranks."""
    from sparsecast import api
    from sparsecast.reports.charts.scaling import scaling
    from sparsecast.results.cluster import DOCUMENTS

    if not re.fullmatch(r"\s*-?[0-9]{1,12}\s*(,\s*-?[0-9]{1,12}\s*)*", ranks):
        raise InputError(f"--ranks {ranks}: expected numbers with commas between; name such as 16,64,256")
    name, question = read_question(matrix)
    answer = api.cluster(
        question,
        [int(number) for number in ranks.split(",")],
        api.profile(profile) if profile else None,
        ranks_per_node=ranks_per_node,
        algorithms=options.names(algorithms),
        formats=options.names(formats),
        partitions=options.names(partitions),
        price=price,
        model=model,
        power_model=options.power_file(power_model),
        energy_model=energy_model,
        objective=objective,
    )
    answer = dataclasses.replace(answer, name=name)
    return Output(
        DOCUMENTS["cluster"],
        answer,
        [answer.table(), *answer.sentences()],
        answer.notes,
        lambda: (scaling(answer.choices), f"{name} on {answer.profile}"),
    )
