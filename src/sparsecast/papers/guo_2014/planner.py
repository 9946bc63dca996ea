"""The plan of Guo et al. (2014), section 4, as printed: the least forecast time of one product (Fig. 8)."""

from __future__ import annotations

import math
from dataclasses import replace

from sparsecast.errors import FormatError
from sparsecast.features.row_blocks import RowBlocks, StripStatistics
from sparsecast.formats import FORMATS
from sparsecast.planning.dynamic_programme import Costs, best_blocks
from sparsecast.planning.plan import rows_of
from sparsecast.planning.planners import PLANNERS, Planner
from sparsecast.results.plan import PlannedBlock

#: Section 4: strips of "very large" matrices have 32 times the rows. The paper does not say from where on;
#: most strips in its table 3 are 1,489 (Webbase).
MOST_STRIPS, COARSENING = 1489, 32


@PLANNERS.register("guo")
class GuoPlanner(Planner):
    """The programme of Fig. 11 with the fits as printed: no gain is required, and no conversion counted."""

    def coarsening(self, strips: int) -> int:
        return COARSENING if strips > MOST_STRIPS else 1

    def blocks(self, statistics: StripStatistics, costs: Costs) -> list[PlannedBlock]:
        """Return the argmin of Fig. 8; of formats that tie, the first in the order of the model."""
        return best_blocks(statistics, replace(costs, iterations=math.inf))

    def notes(self, statistics: StripStatistics, costs: Costs, blocks: list[PlannedBlock]) -> tuple[str, ...]:
        notes = ["This is the plan of Guo et al. (2014): the fastest product, with no conversion counted."]
        for block in blocks:
            if len(tied := ties(statistics, costs, block)) > 1:
                names = " and ".join(name.upper() for name in tied)
                notes.append(f"Rows {block.first_row} to {block.last_row}: {names} have the same forecast.")
        if why := refusal_of_ell(RowBlocks.of(statistics.matrix), costs):
            notes.append(f"ELL is left out for all rows, which the paper's tool does not do: {why}")
        return tuple(notes)


def ties(statistics: StripStatistics, costs: Costs, block: PlannedBlock) -> list[str]:
    """Return the formats whose forecast of a block is the least: "ELL/HYB" in table 3."""
    rows, unpaid = rows_of(statistics, block), replace(costs, iterations=math.inf)
    times_s = {name: float(unpaid.of_blocks(rows, name)[0]) for name in costs.open_formats(statistics.matrix)}
    return [name for name, time_s in times_s.items() if time_s <= min(times_s.values())]


def refusal_of_ell(matrix: RowBlocks, costs: Costs) -> str:
    """Return why our limit of padding keeps ELL from a whole matrix; nothing where it does not."""
    ell, index_bytes = FORMATS.get("ell"), costs.target.index_bits // 8
    size_bytes = int(ell.predicted_bytes(matrix, costs.target.value_bytes, index_bytes)[0])
    try:
        ell.refuse_padding(int(matrix.nnz[0]), int(ell.stored_entries(matrix)[0]), size_bytes)
    except FormatError as error:
        return str(error)
    return ""
