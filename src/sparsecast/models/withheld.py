"""What a question knows of its matrix, and models that were fitted with no more than that.

Where the locality of x is not known, or not even the row lengths, a model that learned with them has nothing
to put in their place. So the Structures of the training set lose what the question lacks, the model is fitted
to them, and its errors on the matrices that are held out of the fit say how wide the interval is then.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsecast.errors import FeatureError
from sparsecast.features import FEATURES, usual_groups
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.row_lengths import RowLengths, row_length_statistics
from sparsecast.features.structure import Structure, known_groups
from sparsecast.formats import FORMATS
from sparsecast.machines.profile import MatrixEntry
from sparsecast.models.training import TrainingSet
from sparsecast.records import Parameters

#: What is withheld where the order of the rows is not known: the features of RowLengths that depend on it.
ROW_ORDER = "row order"


@dataclass(frozen=True)
class Withheld:
    """What Structures lose: the names of feature groups, and ROW_ORDER."""

    names: frozenset[str] = frozenset()

    @classmethod
    def of(cls, structure: Structure, training: TrainingSet) -> Withheld:
        """Return what the training set knows of matrices and `structure` does not."""
        return cls(_known(_stored(training)) - _known([structure.to_dict()]))

    @classmethod
    def of_question(cls, structure: Structure, training: TrainingSet) -> Withheld:
        """Return what `structure` knows, and published results do not, whose matrices nobody can look up."""
        if training.machine.published_as is None:
            return cls()
        return cls(_known([structure.to_dict()]) - _known(_stored(training)))

    def __bool__(self) -> bool:
        return bool(self.names)

    def structure(self, structure: Structure) -> Structure:
        """Return a Structure without what is withheld; rows then have one length each where none is known."""
        groups = {name: group for name, group in structure.groups.items() if name not in self.names}
        lengths = groups.get("row_lengths")
        if ROW_ORDER in self.names and isinstance(lengths, RowLengths):
            groups["row_lengths"] = dataclasses.replace(lengths, changes=None, mispredicted=None)
        return with_even_rows(dataclasses.replace(structure, groups=groups))

    def training(self, training: TrainingSet) -> TrainingSet:
        """Return a training set whose Structures lack what is withheld.

        Records of formats whose size does not follow from the rest are left out: nobody asks for these.
        """
        if not self:
            return training
        used = {record.matrix for record in training.records}
        entries = (entry for key, entry in training.matrices.items() if key in used)
        matrices = {
            e.specification: MatrixEntry(e.specification, e.name, self.structure(e.structure))
            for e in entries
        }
        less = dataclasses.replace(training, matrices=matrices, withheld=tuple(sorted(self.names)))
        ways = {(r.candidate.format, r.candidate.parameters): less.structure(r) for r in less.records}
        sized = {way for way, found in ways.items() if _is_sized(*way, found)}
        return less.where(lambda record: (record.candidate.format, record.candidate.parameters) in sized)

    def unused_sentence(self) -> str:
        """Return in words what a question knew in vain; empty where nothing."""
        if not self:
            return ""
        return f"Forecast without {self._in_words()}: the published results do not have them"

    def _in_words(self) -> str:
        return ", ".join(sorted(name.replace("_", " ") for name in self.names))

    def sentence(self) -> str:
        """Return in words what was not known; empty where all was."""
        if not self:
            return ""
        without = self._in_words()
        even = ", all rows taken for equally long" if "row_lengths" in self.names else ""
        return f"Forecast without {without}{even}: the model learned without them, and its intervals say so"


def _is_sized(name: str, parameters: Parameters, structure: Structure) -> bool:
    """Tell whether the size of a format follows from what is known of a matrix."""
    storage: Any = FORMATS.get(name)
    if not storage.predicts(parameters):
        return False
    try:
        storage.predicted_bytes(RowBlocks.of(structure), 8, 4, **parameters)
    except FeatureError:
        return False
    return True


def with_even_rows(structure: Structure) -> Structure:
    """Return a Structure that has row lengths: as even as they can be where they are not known."""
    if not structure.lacks(["row_lengths"]):
        return structure
    shorter, longer = divmod(structure.nnz, max(structure.rows, 1))
    lengths, counts = np.array([shorter, shorter + 1]), np.array([structure.rows - longer, longer])
    statistics = row_length_statistics(lengths[counts > 0], counts[counts > 0])
    return structure.having(RowLengths(**statistics, changes=None, mispredicted=None))


def unusual_groups(matrices: Iterable[MatrixEntry]) -> list[str]:
    """Return the names of the groups of at least one matrix that are computed on request only."""
    stored = (entry.to_dict()["structure"] for entry in matrices)
    return sorted(_known(stored) & (set(FEATURES.names()) - set(usual_groups())))


def _stored(training: TrainingSet) -> Iterable[Mapping[str, Any]]:
    matrices = {record.matrix for record in training.records}
    return (training.matrices[name].to_dict()["structure"] for name in matrices)


def _known(structures: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the names of all that is known of at least one matrix, of Structures as plain data.

    To make the Structures of a shipped machine takes half a second.
    """
    names: set[str] = set()
    for stored in structures:
        known = known_groups(stored)
        names |= known
        if "row_lengths" in known and stored["row_lengths"].get("mispredicted") is not None:
            names.add(ROW_ORDER)
    return frozenset(names)
