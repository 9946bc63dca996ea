"""Profiles of machines that nobody measured: times of one that was measured, scaled by two data sheets."""

from __future__ import annotations

import dataclasses
from typing import Any

from sparsecast.errors import ProfileError
from sparsecast.machines.data_sheet import DataSheet, Made
from sparsecast.machines.machine import Cache, Machine
from sparsecast.machines.profile import Profile
from sparsecast.models.data_sheets import Learned, Products
from sparsecast.records import DATA_SHEET_SUITE


def made_profile(
    name: str, like: Profile, sheet: DataSheet, known: Learned, memory_bytes: int | None = None
) -> Profile:
    """Return the profile of a machine that nobody measured.

    Parameters
    ----------
    name : str
    like : Profile
        Of a measured machine whose data sheet is known.
    sheet : DataSheet
        Of the new machine.
    known : Learned
        What machines of its kind teach.
    memory_bytes : int, optional
        Of the new machine; without it, as much as `like` has.

    Raises
    ------
    ProfileError
        If the data sheet of `like` is not known, or nobody measured that machine either.
    """
    known_sheet = sheet_of_measured(like)
    times = known.law.scaled(Products.of(like.records, like.matrices), known_sheet, sheet)
    records = tuple(
        dataclasses.replace(
            record,
            time_s=time_s,
            suite=DATA_SHEET_SUITE,
            energy_j=None,
            energy_source=None,
            version=DATA_SHEET_SUITE,
        )
        for record, time_s in zip(like.records, times.tolist(), strict=True)
    )
    made = Made(like.name, len(known.machines), known.over_start, known.low, known.high)
    return Profile(_machine(name, like.machine, sheet, made, memory_bytes), records, like.matrices)


def sheet_of_measured(like: Profile) -> DataSheet:
    """Return the data sheet of a measured machine.

    Raises
    ------
    ProfileError
        If it is not known, or nobody measured the machine.
    """
    if like.machine.made:
        raise ProfileError(
            f"profile '{like.name}' is itself from a data sheet: expected a machine that was measured; name "
            f"{like.machine.made.like}, which it is like"
        )
    if like.machine.sheet is None or not like.records:
        raise ProfileError(
            f"profile '{like.name}' has no data sheet: expected published times of a machine that is known "
            f"here; name one that 'sparsecast machines' lists as published"
        )
    return like.machine.sheet


def _machine(name: str, like: Machine, sheet: DataSheet, made: Made, memory_bytes: int | None) -> Machine:
    caches = tuple(
        Cache(level, size, 1) for level, size in ((2, sheet.l2_bytes), (3, sheet.l3_bytes)) if size
    )
    memory: dict[str, Any] = {"memory_bytes": memory_bytes} if memory_bytes else {}
    own: dict[str, Any] = {"processor": name, "published_as": name, "sheet": sheet, "made": made}
    if like.gpu is None:
        own |= {"cores": sheet.cores, "threads": sheet.cores, "caches": caches, **memory}
    else:
        clock_hz = round(sheet.frequency_hz)
        own["gpu"] = dataclasses.replace(
            like.gpu,
            name=name,
            multiprocessors=sheet.cores,
            l2_bytes=sheet.l2_bytes,
            clock_hz=clock_hz,
            **memory,
        )
    return dataclasses.replace(like, **own)
