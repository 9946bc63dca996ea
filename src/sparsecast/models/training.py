"""Training sets: Records, and all that is known of their machine and their matrices.

Models are fitted with no more than is known of the matrix of a query. Where the locality of x is not known,
or not even the row lengths, a model that learned with them has nothing to put in their place. So the
Structures of the training set lose what the question lacks, the model is fitted to them, and its errors on
the matrices that are held out of the fit say how wide the interval is then.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from sparsecast.errors import FeatureError, InputError
from sparsecast.features import FEATURES, usual_groups
from sparsecast.features.analysis import structure as structure_of
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.row_lengths import RowLengths, row_length_statistics
from sparsecast.features.structure import Structure, known_groups
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import MatrixEntry, Profile
from sparsecast.matrices.problem import Problem, group_of
from sparsecast.measuring.references import reference_bytes
from sparsecast.records import MEMORY, Bandwidth, Parameters, Record

#: Slow Records of a format are left out if at least so many others are left, as a fit of costs needs, and so
#: many for each slow one: three of five.
_LEAST_LEFT, _LEFT_FOR_EACH_LOST = 12, 1.5


@dataclass(frozen=True)
class TrainingSet:
    """Records of one machine, with the matrices that they name, by specification.

    `withheld` names what was taken from their Structures, because a question does not know it.
    """

    machine: Machine
    records: tuple[Record, ...]
    matrices: Mapping[str, MatrixEntry] = field(default_factory=dict)
    bandwidths: tuple[Bandwidth, ...] = ()
    withheld: tuple[str, ...] = ()

    @classmethod
    def of(cls, profile: Profile, records: Iterable[Record] | None = None) -> TrainingSet:
        """Return the training set of a profile, or of some of its Records."""
        chosen = profile.records if records is None else tuple(records)
        return cls(profile.machine, chosen, profile.matrices, profile.bandwidths)

    def structure(self, record: Record) -> Structure:
        return self.matrices[record.matrix].structure

    def group(self, record: Record) -> str:
        """Return the group of the matrix of a Record: no group stands on both sides of a split."""
        return group_of(record.matrix)

    def groups(self) -> list[str]:
        return sorted({self.group(record) for record in self.records})

    def of_groups(self, chosen: Collection[str]) -> TrainingSet:
        return self.where(lambda record: self.group(record) in chosen)

    def parts_left_out(self, parts: int) -> Iterator[tuple[TrainingSet, TrainingSet]]:
        """Yield the Records without a part of the groups, and those of that part, for each part in turn."""
        groups = self.groups()
        for first in range(min(parts, len(groups))):
            left_out = set(groups[first::parts])
            yield self.of_groups(set(groups) - left_out), self.of_groups(left_out)

    def where(self, chosen: Callable[[Record], bool]) -> TrainingSet:
        return replace(self, records=tuple(record for record in self.records if chosen(record)))

    def at_full_speed(self) -> TrainingSet:
        """Return the Records without those of slow cores, unless these are the most.

        A format that would lose a good part of its Records keeps them, with the time at full speed: it is as
        many times shorter as products that move about as much took longer in the median.
        """
        slow = [record for record in self.records if record.is_slow]
        if not slow or 2 * len(slow) > len(self.records):
            return self
        fast = [record for record in self.records if not record.is_slow]
        lost, left = (Counter(record.candidate.format for record in part) for part in (slow, fast))
        kept = {name for name in lost if left[name] < max(_LEAST_LEFT, _LEFT_FOR_EACH_LOST * lost[name])}
        slower = _times_slower(slow, fast)

        def corrected(record: Record) -> Record:
            assert record.conditions is not None
            conditions, time_s = replace(record.conditions, slow_share=None), record.time_s / slower
            # Its joules are those of the longer time.
            return replace(record, time_s=time_s, conditions=conditions, energy_j=None, energy_source=None)

        records = (
            corrected(record) if record.is_slow else record
            for record in self.records
            if not record.is_slow or record.candidate.format in kept
        )
        return replace(self, records=tuple(records))

    @property
    def memory_read_s(self) -> float:
        """Seconds in which all threads read a byte of memory, in the median of readings; 0 without one."""
        threads = max((record.candidate.threads for record in self.records), default=1)
        alike = [record for record in self.records if record.candidate.threads == threads]
        readings_s = [r.references_s[MEMORY] for r in alike if MEMORY in r.references_s]
        if not readings_s:
            return 0.0
        read_bytes = reference_bytes(*self.machine.shared_cache_bytes(threads))[MEMORY]
        return float(np.median(readings_s)) / read_bytes

    def completed(self, groups: Sequence[str]) -> TrainingSet:
        """Return the same Records with the feature groups of these names, wherever they can be had.

        What is missing, and not withheld, is computed from the matrix, which is made again from its
        specification.
        """
        groups = [name for name in groups if name not in self.withheld]
        matrices = dict(self.matrices)
        for specification in {record.matrix for record in self.records}:
            entry = matrices[specification]
            missing = entry.structure.lacks(groups)
            problem = Problem.rebuilt(specification) if missing else None
            if problem is not None:
                with suppress(InputError):  # the matrix does not fit here, or its file cannot be read
                    found = structure_of(problem.matrix, groups=missing)
                    known = entry.structure.having(*found.groups.values())
                    matrices[specification] = MatrixEntry(specification, entry.name, known)
        return replace(self, matrices=matrices)

    def having(self, groups: Sequence[str]) -> TrainingSet:
        """Return the Records of matrices whose feature groups of these names are known or can be had."""
        whole = self.completed(groups)
        return whole.where(lambda record: not whole.structure(record).lacks(groups))

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything here that a fit can depend on."""
        digest = hashlib.sha256(json.dumps(self.machine.to_dict(), sort_keys=True).encode())
        digest.update(repr(self.bandwidths).encode())
        for r in self.records:
            measured = r.time_s, r.energy_j, r.convert_s, r.measured_at
            digest.update(repr((r.identity, measured)).encode())
        for name in sorted({record.matrix for record in self.records}):
            digest.update(json.dumps(self.matrices[name].to_dict(), sort_keys=True).encode())
        return digest.hexdigest()[:32]


def _times_slower(slow: Sequence[Record], fast: Sequence[Record]) -> float:
    """Return how many times longer products of some Records take than those of others that move as much."""

    def kind(record: Record) -> tuple[str, int, int]:
        return record.candidate.format, record.candidate.vectors, record.traffic_bytes.bit_length()

    per_byte_s = defaultdict(list)
    for record in fast:
        per_byte_s[kind(record)].append(record.time_s / record.traffic_bytes)
    usual_s = {key: float(np.median(seconds)) for key, seconds in per_byte_s.items()}
    times = [r.time_s / r.traffic_bytes / usual_s[kind(r)] for r in slow if kind(r) in usual_s]
    return max(1.0, float(np.median(times))) if times else 1.0


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
        matrices = {}
        for key in dict.fromkeys(record.matrix for record in training.records):
            entry = training.matrices[key]
            matrices[key] = MatrixEntry(key, entry.name, self.structure(entry.structure))
        less = dataclasses.replace(training, matrices=matrices, withheld=tuple(sorted(self.names)))
        ways = {(r.candidate.format, r.candidate.parameters): less.structure(r) for r in less.records}
        sized = {way for way, found in ways.items() if _is_sized(*way, found)}
        return less.where(lambda record: (record.candidate.format, record.candidate.parameters) in sized)

    def unused_sentence(self) -> str:
        """Return in words what a question knew in vain; empty where nothing."""
        return f"Forecast without {self._in_words()}: the published results do not have them" if self else ""

    def sentence(self) -> str:
        """Return in words what was not known; empty where all was."""
        without = self._in_words()
        if "row_lengths" in self.names:
            without += ", all rows taken for equally long"
        learned = "the model learned without them, and its intervals say so"
        return f"Forecast without {without}: {learned}" if self else ""

    def _in_words(self) -> str:
        return ", ".join(sorted(name.replace("_", " ") for name in self.names))


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
