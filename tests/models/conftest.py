"""Fixtures of the tests of models: Records from a real machine, and Records made up from a law of time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparsecast.features.analysis import structure
from sparsecast.features.structure import Structure
from sparsecast.machines.profile import Profile
from sparsecast.records import Record


@pytest.fixture(scope="session")
def of_lengths() -> Callable[[Sequence[int]], Structure]:
    """Give the Structure of a matrix with these row lengths."""

    def make(lengths: Sequence[int]) -> Structure:
        indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
        steps = np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths)
        cols = max(int(np.max(lengths, initial=0)), len(lengths), 1)
        return structure(
            csr_array((np.ones(indptr[-1]), steps.astype(np.int32), indptr), (len(lengths), cols))
        )

    return make


@pytest.fixture(scope="session")
def make_record(recorded: Profile) -> Callable[..., Record]:
    """Give a Record of a format, a Structure, a suite and a time; the rest is as in a real one."""

    def make(
        format_name: str,
        found: Structure,
        time_s: float,
        suite: str,
        threads: int = 1,
        convert_s: float = 0.0,
    ) -> Record:
        template = recorded.records[0]
        candidate = dataclasses.replace(
            template.candidate, format=format_name, kernel="made up", threads=threads, dtype="float64"
        )
        return dataclasses.replace(
            template,
            candidate=candidate,
            structure=found,
            matrix=f"{found.rows} rows, {found.nnz} entries",
            suite=suite,
            time_s=time_s,
            convert_s=convert_s,
        )

    return make
