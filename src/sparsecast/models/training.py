"""Training sets: Records, and all that is known of their machine and their matrices."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from sparsecast.errors import InputError
from sparsecast.features.analysis import structure as structure_of
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import MatrixEntry, Profile
from sparsecast.matrices.problem import Problem, group_of
from sparsecast.measuring.references import reference_bytes
from sparsecast.records import MEMORY, Bandwidth, Record

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
        return (
            float(np.median(readings_s)) / reference_bytes(*self.machine.shared_cache_bytes(threads))[MEMORY]
        )

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
