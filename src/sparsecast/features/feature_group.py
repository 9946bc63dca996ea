"""The interface of feature groups: computed from a matrix, stored as plain data, and checked."""

from __future__ import annotations

import dataclasses
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import msgspec

if TYPE_CHECKING:
    from sparsecast.features.analysis import MatrixSource


class FeatureGroup(ABC):
    """Features that are computed together: a frozen dataclass of numbers and tuples of numbers.

    `name` is that of its file. Raise `version` when the same matrix gives other numbers: stored groups of
    another version are computed again if the matrix can be made again, and otherwise ignored. A group that is
    not `is_usual` is computed only when it is named.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    is_usual: ClassVar[bool] = True

    @classmethod
    @abstractmethod
    def compute(cls, source: MatrixSource) -> Self:
        """Return the features of a matrix."""

    def contradiction(self, rows: int, cols: int, nnz: int) -> str | None:
        """Return in words a value that no matrix of these dimensions can have; None if there is none.

        Compiled loops are indexed by features, so features from files are checked first.
        """
        return None

    def first_wrong(self, **holds: object) -> str | None:
        """Return in words the first feature for which its condition does not hold; None if all do."""
        wrong = next((name for name, is_right in holds.items() if not is_right), None)
        return None if wrong is None else f"{self.name}.{wrong} is {reprlib.repr(getattr(self, wrong))}"

    def summary(self) -> list[tuple[str, str]]:
        """Return a heading and a text for each row of the group in a table of a Structure."""
        features = (f"{name} {value}" for name, value in self.to_dict().items() if name != "version")
        return [(self.name, ", ".join(features))]

    def to_dict(self) -> dict[str, Any]:
        """Return the features as plain data, with the version."""
        names = (field.name for field in dataclasses.fields(self))  # type: ignore[arg-type]
        return {"version": self.version, **{name: getattr(self, name) for name in names}}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Return the stored features, of a version that it `reads`; else a msgspec.ValidationError."""
        return msgspec.convert(stored, cls)

    @classmethod
    def reads(cls, stored: Mapping[str, Any]) -> bool:
        """Tell whether stored features are of a version that `from_dict` reads."""
        return bool(stored["version"] == cls.version)
