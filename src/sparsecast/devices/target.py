"""Target: the device, type of values and number of threads that a question is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.devices import DEVICES
from sparsecast.devices.format_kernels import FormatKernels
from sparsecast.errors import InputError, remedy_for
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import Machine
from sparsecast.records import DTYPES, VALUE_BYTES, Candidate, Parameters


@dataclass(frozen=True, slots=True)
class Target:
    """What all candidates of one question share; `index_bits` are 32 or 64, as in the matrix.

    `is_published` marks a question about published results, whose device may be unknown here.
    """

    device: str
    dtype: str
    index_bits: int
    threads: int
    is_published: bool = False

    def __post_init__(self) -> None:
        dtypes = DTYPES if self.is_published else DEVICES.get(self.device).dtypes
        if self.dtype not in dtypes:
            raise InputError(
                f"dtype '{self.dtype}' on {self.device}: expected one of {', '.join(dtypes)}; "
                f"{remedy_for(self.dtype, dtypes, 'name one of them')}"
            )

    @property
    def value_bytes(self) -> int:
        return VALUE_BYTES[self.dtype]

    def kernels(
        self, format_name: str, blocks: RowBlocks, machine: Machine, fitted: Sequence[str] = ()
    ) -> NDArray[np.str_]:
        """Return the kernel for each block, chosen by the rule of its format for `machine`.

        If `fitted` names kernels, the rule is limited to them; the first of them replaces any other.
        """
        rule = self._rule(format_name)
        chosen = np.array(rule.variants)[rule.choose(blocks, machine, self.dtype)]
        return np.where(np.isin(chosen, fitted), chosen, fitted[0]) if len(fitted) else chosen

    def candidate(
        self, format_name: str, blocks: RowBlocks, machine: Machine, fitted: Sequence[str] = ()
    ) -> Candidate:
        """Return the Candidate of a format for the first of `blocks`, with its kernel of `kernels`."""
        kernel = str(self.kernels(format_name, blocks, machine, fitted)[0])
        layout = Parameters(self._rule(format_name).layout)
        return Candidate(format_name, kernel, self.device, self.dtype, self.index_bits, self.threads, layout)

    def format_bytes(self, format_name: str, blocks: RowBlocks) -> NDArray[np.int64]:
        """Return the bytes of each block in a format, in the layout of the device."""
        storage: Any = FORMATS.get(format_name)
        widths, layout = (self.value_bytes, self.index_bits // 8), self._rule(format_name).layout
        return np.asarray(storage.predicted_bytes(blocks, *widths, **layout))

    def _rule(self, format_name: str) -> FormatKernels:
        return DEVICES.get(self.device).kernels.get(format_name)
