"""sparsecast cluster MATRIX --ranks 16,64,256."""

from __future__ import annotations

import dataclasses
import re
from typing import Annotated

from sparsecast import api
from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.options import names, option
from sparsecast.cli.output import Output
from sparsecast.cli.reading import read_question
from sparsecast.errors import InputError


@command("cluster", Panel.FORECASTS, figure=True, csv=True)
def cluster(
    matrix: options.QuestionArgument,
    ranks: Annotated[str, option("N[,N]", "Numbers of ranks to compare.")],
    profile: options.ProfileOption = None,
    ranks_per_node: Annotated[
        int | None, option(None, "Ranks per node; its number of cores by default.")
    ] = None,
    price: Annotated[
        float | None, option(None, "Price per node and hour, in any currency; adds the cost of products.")
    ] = None,
    algorithms: Annotated[
        str | None, option("NAME[,NAME]", "Algorithms, such as local-1d,2d; all built-in ones by default.")
    ] = None,
    formats: Annotated[
        str | None, option("NAME[,NAME]", "Formats; CSR, COO and the fastest one by default.")
    ] = None,
    partitions: Annotated[
        str | None,
        option("NAME[,NAME]", "Partitions; nonzeros, metis and uniform-2d by default; also rows."),
    ] = None,
    model: Annotated[
        str | None,
        option(
            "NAME",
            "Model used for the forecast.",
            callback=options.known(lambda name: api.CLUSTER_MODELS.get(name)),
        ),
    ] = None,
    objective: options.ObjectiveOption = "time",
    power_model: options.PowerModelOption = None,
    energy_model: options.EnergyModelOption = None,
) -> Output:
    """Forecast one product on many ranks: compare algorithms, formats, partitions and numbers of ranks."""
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
        algorithms=names(algorithms),
        formats=names(formats),
        partitions=names(partitions),
        price=price,
        model=model,
        power_model=options.power_file(power_model),
        energy_model=energy_model,
        objective=objective,
    )
    answer = dataclasses.replace(answer, name=name)
    shown = [answer.table(), *answer.sentences()]
    title = f"{name} on {answer.profile}"
    return Output(DOCUMENTS["cluster"], answer, shown, answer.notes, lambda: (scaling(answer.choices), title))
