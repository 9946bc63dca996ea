"""Products on many ranks: one file for each algorithm, and the operator that a solver sees.

``compile`` and whatever else is called here is collective: every rank of the communicator calls it.
"""

from __future__ import annotations

from sparsecast.distributed.compiling import compile
from sparsecast.distributed.operator import DistributedOperator
from sparsecast.distributed.processes import together, world

__all__ = ["DistributedOperator", "compile", "together", "world"]
