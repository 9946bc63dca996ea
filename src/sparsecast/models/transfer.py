"""Forecasts for a type of values, or a number of threads, that a profile has no Records of.

The costs of the linear model are those of rows, entries, bytes and lines of x, so they can be carried over:

- another type: a byte and a row cost the same, the bytes are counted with the width that is asked for, and
  an entry costs as much more as it has loads and multiply-adds more;
- another number of threads: what a core does by itself takes the ratio of the threads, what comes from a
  cache or from memory the ratio of the bandwidths that were measured with both numbers of threads. To start
  a product costs the same.

A forecast is then that of a fitted model for the setting that was measured, times the ratio of these costs.

The intervals of that model are made wider by what such a ratio was wrong by where it could be tried: on
matrices that are held out of every fit, and that were measured in both settings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparsecast.devices.target import Target
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import Cache
from sparsecast.models.fitting import LEAST_RANKED, Floats, Interval, conformal_bound
from sparsecast.models.forecaster import AdjustedForecaster, Forecaster
from sparsecast.models.linear import LinearModel
from sparsecast.models.model import HELD_OUT_SUITE
from sparsecast.models.training import TrainingSet
from sparsecast.models.work import CORRECTION, capacity, full_kind
from sparsecast.records import VALUE_BYTES, Candidate, Record, reads_of
from sparsecast.system.tabular import grouped

#: Terms of the linear model that count entries.
_OF_ENTRIES = ("entries", "overflow entries", "padding", "longest row")

#: What ends the names of the terms that come from beyond a cache, before the number of its level.
_BEYOND = " beyond L"


@dataclass(frozen=True, slots=True)
class Setting:
    """What the Records of one fit share: the type of the values and the number of threads."""

    dtype: str
    threads: int

    @classmethod
    def of(cls, item: Candidate | Target) -> Setting:
        return cls(item.dtype, item.threads)

    def changes(self, other: Setting) -> frozenset[str]:
        """Return what differs in another setting: threads, precision, and whether it is complex."""
        real_bytes = [VALUE_BYTES[each.dtype] // (2 if each._is_complex else 1) for each in (self, other)]
        found = {
            "threads": self.threads != other.threads,
            "precision": real_bytes[0] != real_bytes[1],
            "complex": self._is_complex != other._is_complex,
        }
        return frozenset(name for name, is_other in found.items() if is_other)

    def distance(self, other: Setting) -> tuple[float, ...]:
        """Return how far another setting is: by how much changes, then by what is carried over worst."""
        changed = self.changes(other)
        steps = abs(math.log(self.threads / other.threads))
        return float(len(changed)), float("complex" in changed), float("precision" in changed), steps

    @property
    def operations(self) -> int:
        """For an entry: loads of the index, the value and x, and multiply-adds."""
        return 1 + 2 + 2 + 4 if self._is_complex else 1 + 1 + 1 + 1

    @property
    def _is_complex(self) -> bool:
        return self.dtype.startswith("complex")


@dataclass(frozen=True)
class Transfer:
    """The ratio of the costs of products in one setting to those in another."""

    physics: LinearModel  # fitted to Records of `source`
    source: Setting
    asked: Setting
    #: For each level of cache, seconds of a byte from beyond it in `asked`, over those in `source`.
    beyond: Mapping[int, float]
    #: Whether these are ratios of Bandwidths; else they are of threads, as far as there are cores.
    is_measured: bool

    @classmethod
    def to(cls, asked: Setting, physics: LinearModel, training: TrainingSet) -> Transfer:
        """Return the transfer from the setting of a training set, which `physics` was fitted to."""
        # Of all formats but the serial ones, whose Candidates have one thread.
        asked_most = max((record.candidate for record in training.records), key=lambda c: c.threads)
        source, cores = Setting.of(asked_most), training.machine.cores
        beyond, of_threads = {}, min(source.threads, cores) / min(asked.threads, cores)
        is_measured = True
        for cache in training.machine.product_caches:
            own, other = (_bandwidth(training, cache, each.threads) for each in (source, asked))
            ratio = None if own is None or other is None else own / other
            beyond[cache.level] = of_threads if ratio is None else ratio
            is_measured = is_measured and ratio is not None
        return cls(physics, source, asked, beyond, source.threads == asked.threads or is_measured)

    def measured_as(self, candidate: Candidate) -> Candidate:
        is_serial = FORMATS.get(candidate.format).is_serial
        threads = candidate.threads if is_serial else self.source.threads
        return replace(candidate, dtype=self.source.dtype, threads=threads)

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        """Return the seconds that each kind of work costs each block in the setting that is asked for."""
        terms, is_serial = self.physics.terms(candidate, blocks), FORMATS.get(candidate.format).is_serial
        del terms["time_s"]
        fewer_threads = 1.0 if is_serial else self.source.threads / self.asked.threads
        more_operations = self.asked.operations / self.source.operations
        for name in terms:
            _, is_beyond, level = name.rpartition(_BEYOND)
            if is_beyond and not is_serial:
                scale = self.beyond[int(level)]
            else:
                scale = more_operations if full_kind(name) in _OF_ENTRIES else 1.0
                scale *= 1.0 if name == "start" else fewer_threads
            terms[name] = scale * terms[name]
        return terms

    def ratio(self, candidate: Candidate, blocks: RowBlocks) -> Floats:
        """Return how many times longer each block takes than in the setting of the Records."""
        asked_s = np.sum(list(self.terms(candidate, blocks).values()), axis=0)
        return np.asarray(asked_s / self.physics.values(self.measured_as(candidate), blocks))


def _bandwidth(training: TrainingSet, cache: Cache, threads: int) -> float | None:
    """Return the bytes a second that so many threads read from just beyond a cache; None if not measured."""
    least = capacity(cache, threads)
    reads = reads_of(training.bandwidths, training.machine.device, threads)
    return next((read.bandwidth_bytes_per_s for read in reads if read.bytes > least), None)


def transfer_errors(transfer: Transfer, training: TrainingSet, records: Iterable[Record]) -> list[float]:
    """Return log(measured / expected) of Records, from the measured times of the setting of `training`.

    `transfer` is from that setting to the one of the Records. Those of matrices and Candidates that
    `training` has no held-out Record of are left out.
    """
    physics = transfer.physics

    def key(record: Record) -> tuple[Any, ...]:
        one = record.candidate
        return record.matrix, physics.label(one), one.parameters, one.vectors

    measured_s = {key(record): record.time_s for record in training.records if _is_held_out(record)}
    errors = []
    for record in filter(_is_held_out, records):
        own_s = measured_s.get(key(record))
        if own_s is not None and physics.serves(transfer.measured_as(record.candidate)):
            blocks = RowBlocks.of(training.structure(record))
            expected_s = own_s * float(transfer.ratio(record.candidate, blocks)[0])
            errors.append(math.log(record.time_s / expected_s))
    return errors


def _is_held_out(record: Record) -> bool:
    return record.suite == HELD_OUT_SUITE and record.regime == "warm"


def widening(transfer: Transfer, training: TrainingSet, others: Iterable[Record]) -> float | None:
    """Return the factor that nine tenths of the transfers, tried on the Records of `others`, were within.

    Tried are those from the setting of `training` that change at least what `transfer` changes. The factor is
    conformal (`conformal_bound`).

    It is at least 1; None where fewer than LEAST_RANKED errors are known.
    """
    errors = []
    for setting, records in grouped(others, lambda record: Setting.of(record.candidate)).items():
        if transfer.source.changes(setting) >= transfer.source.changes(transfer.asked):
            tried = Transfer.to(setting, transfer.physics, training)
            errors += np.abs(transfer_errors(tried, training, records)).tolist()
    bound = conformal_bound(errors)
    return None if bound is None or len(errors) < LEAST_RANKED else math.exp(bound)


class TransferredForecaster(AdjustedForecaster):
    """A model, fitted to times in one setting, that forecasts for another.

    Its intervals are those of the fitted model, wider by `factor`, at least 1, at both ends.
    """

    def __init__(self, model: Forecaster, transfer: Transfer, factor: float) -> None:
        super().__init__(model)
        self._transfer, self._factor = transfer, factor

    def formats(self) -> list[str]:
        formats = self._transfer.physics.formats()
        return [name for name in self._model.formats() if name in formats]

    def kernels(self, format_name: str) -> tuple[str, ...]:
        return self._model.kernels(format_name) or self._transfer.physics.kernels(format_name)

    def serves(self, candidate: Candidate) -> bool:
        measured = self._transfer.measured_as(candidate)
        return self._model.serves(measured) and self._transfer.physics.serves(measured)

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        fitted_s = self._model.values(self._transfer.measured_as(candidate), blocks)
        time_s = fitted_s * self._transfer.ratio(candidate, blocks)
        terms = self._transfer.terms(candidate, blocks)
        return {**terms, CORRECTION: time_s - np.sum(list(terms.values()), axis=0), "time_s": time_s}

    def interval(self, candidate: Candidate, value: float, matrix: Structure) -> Interval:
        low, high = self._model.interval(self._transfer.measured_as(candidate), value, matrix)
        return (None, None) if low is None or high is None else (low / self._factor, high * self._factor)
