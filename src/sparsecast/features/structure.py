"""Structure: all features of a matrix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

from sparsecast.errors import FeatureError, InputError
from sparsecast.features import FEATURES
from sparsecast.features.feature_group import FeatureGroup
from sparsecast.system.tabular import Column, Table, Tabular
from sparsecast.system.texts import counted

if TYPE_CHECKING:
    from sparsecast.features.bands import Bands
    from sparsecast.features.blocks import Blocks
    from sparsecast.features.locality import Locality
    from sparsecast.features.narrow_storage import NarrowStorage
    from sparsecast.features.neighbourhood import Neighbourhood
    from sparsecast.features.row_lengths import RowLengths
    from sparsecast.features.slices import Slices
    from sparsecast.features.stored_values import StoredValues
    from sparsecast.features.symmetry import Symmetry


Group = TypeVar("Group", bound=FeatureGroup)


class _Known(Generic[Group]):
    """The group of a Structure with the name of the attribute; a FeatureError if it is unknown."""

    def __init__(self, about: str) -> None:
        self.__doc__ = about

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, structure: Structure, owner: type) -> Group:
        return cast(Group, self if structure is None else structure.require(self._name))


@dataclass(frozen=True, slots=True)
class Structure(Tabular):
    """Features of a matrix: its dimensions, and groups of features.

    Its `nnz` stored entries include explicit zeros. An unknown group is absent from `groups`, and a question
    that needs it is refused.

    Attributes
    ----------
    sampled_nnz : int or None
        Entries of the sample for locality, bands and stored values; None if all entries were read.
    unproven : tuple of str
        Groups that say that a format can be built because a sample looks so, in alphabetical order.
    """

    rows: int
    cols: int
    nnz: int
    groups: Mapping[str, FeatureGroup] = field(default_factory=dict)
    sampled_nnz: int | None = None
    unproven: tuple[str, ...] = ()

    row_lengths: ClassVar[_Known[RowLengths]] = _Known("Features of the row lengths.")
    locality: ClassVar[_Known[Locality]] = _Known("Features of the reads of x.")
    bands: ClassVar[_Known[Bands]] = _Known("Features of the distance of entries from the diagonal.")
    blocks: ClassVar[_Known[Blocks]] = _Known("Fill of dense blocks.")
    neighbourhood: ClassVar[_Known[Neighbourhood]] = _Known("Distances between entries, on request only.")
    narrow_storage: ClassVar[_Known[NarrowStorage]] = _Known("What values and columns need.")
    slices: ClassVar[_Known[Slices]] = _Known("What slices of rows store, on request only.")
    symmetry: ClassVar[_Known[Symmetry]] = _Known("Whether the matrix equals its transpose.")
    stored_values: ClassVar[_Known[StoredValues]] = _Known("Features of the values.")

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", MappingProxyType(dict(sorted(self.groups.items()))))

    def __hash__(self) -> int:
        return hash((self.rows, self.cols, self.nnz, *self.groups.items(), self.sampled_nnz, self.unproven))

    def __reduce__(self) -> tuple[Any, ...]:
        of_sample = self.sampled_nnz, self.unproven
        return type(self), (self.rows, self.cols, self.nnz, dict(self.groups), *of_sample)

    def table(self) -> Table:
        """Return a row for each feature."""
        title = ", ".join(map(counted, (self.rows, self.cols, self.nnz), ("row", "column", "non-zero")))
        rows = [
            {"group": name, "feature": feature, "value": value}
            for name, group in self.groups.items()
            for feature, value in group.to_dict().items()
            if feature != "version"
        ]
        return Table(title, tuple(Column(key, key) for key in ("group", "feature", "value")), rows)

    def lacks(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name not in self.groups]

    def having(self, *groups: FeatureGroup) -> Structure:
        """Return a Structure with these groups added, which are of all entries."""
        added = {group.name: group for group in groups}
        unproven = tuple(name for name in self.unproven if name not in added)
        return replace(self, groups={**self.groups, **added}, unproven=unproven)

    def require(self, name: str) -> FeatureGroup:
        """Return the group of this name; a FeatureError if it is unknown."""
        if name not in self.groups:
            known = ", ".join(self.groups).replace("_", " ") or "its counts"
            raise FeatureError(
                f"{name.replace('_', ' ')} of a matrix, of which only {known} are known: expected them for "
                f"this forecast; name the matrix, or its structure (sparsecast structure MATRIX --json)"
            )
        return self.groups[name]

    def checked(self) -> Structure:
        """Return the Structure itself; an InputError names the first contradiction in it."""
        of_groups = (group.contradiction(self.rows, self.cols, self.nnz) for group in self.groups.values())
        contradiction: str | None = None
        if min(self.rows, self.cols, self.nnz) < 0:
            contradiction = "a count is negative"
        elif self.sampled_nnz is not None and not 0 < self.sampled_nnz <= self.nnz:
            contradiction = f"a sample of {self.sampled_nnz:,} entries"
        elif self.unproven and self.sampled_nnz is None:
            contradiction = f"{', '.join(self.unproven)} of a sample, and there is none"
        elif self.nnz and not (self.rows and self.cols):
            contradiction = "there are non-zeros without rows or columns"
        if contradiction := contradiction or next(filter(None, of_groups), None):
            raise InputError(
                f"a structure of {self.rows:,} rows, {self.cols:,} columns and {self.nnz:,} non-zeros "
                f"contradicts itself: {contradiction}; expected what one matrix can have; compute it from "
                f"the matrix"
            )
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the Structure as plain data: the counts, then each group under its name."""
        groups = {name: group.to_dict() for name, group in self.groups.items()}
        of_sample = {"sampled_nnz": self.sampled_nnz, "unproven": list(self.unproven)}
        sample = of_sample if self.sampled_nnz is not None else {}
        return {"rows": self.rows, "cols": self.cols, "nnz": self.nnz, **sample, **groups}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Structure:
        """Return the stored Structure, without groups of unknown names or other versions.

        A KeyError, TypeError, ValueError or msgspec.ValidationError says that it is something else.
        """
        groups = {name: FEATURES.get(name).from_dict(stored[name]) for name in known_groups(stored)}
        rows, cols, nnz = (int(stored[name]) for name in ("rows", "cols", "nnz"))
        unproven = (name for name in stored.get("unproven", ()) if name in groups)
        return cls(rows, cols, nnz, groups, stored.get("sampled_nnz"), tuple(unproven))


def known_groups(stored: Mapping[str, Any]) -> set[str]:
    """Return the names of the groups that `Structure.from_dict` reads of what is stored."""
    return {name for name in FEATURES.names() if name in stored and FEATURES.get(name).reads(stored[name])}
