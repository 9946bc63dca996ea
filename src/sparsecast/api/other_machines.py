"""Published results: machines that nobody here has, others made like them, and tables of matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sparsecast.benchmark.published import import_published, refuse_measured_name
from sparsecast.errors import InputError
from sparsecast.machines.data_sheet import DataSheet, quantity
from sparsecast.machines.profile import Profile, find_profile
from sparsecast.models.data_sheets import kind_of, learned, made_profile, sheet_of_measured
from sparsecast.results.machines import Imported

#: Units of what a data sheet tells, by option.
_UNITS = {"bandwidth": "B/s", "frequency": "Hz", "l2": "B", "l3": "B", "memory": "B"}

#: What no machine goes below: a number there was meant in another unit. A level that is missing has 0 bytes.
_LEAST = {"bandwidth": 1e8, "frequency": 1e7, "memory": 1e6}


def import_machine(
    path: str | Path | Sequence[str | Path], name: str, machine: str | None = None
) -> tuple[Imported, Path]:
    """Turn published results into a profile of the user's data folder, and return it with its place.

    `path` is a table, also with gzip, or Ginkgo's benchmark JSON, one file, a folder, or several together;
    `benchmark/published.py` and `benchmark/published_moments.py` say with which columns. An earlier import
    under the `name` is replaced. `machine` says which machine of the file it is, where it has several, and
    which it was, where the file names none.

    An InputError or a ProfileError says that the name cannot be, or that the file has another layout or times
    that cannot be.
    """
    paths = [path] if isinstance(path, str | Path) else path
    imported = import_published([Path(file) for file in paths], name, machine)
    return imported, Path(imported.profile.save())


def told_figures(texts: Mapping[str, str | None], cores: int | None = None) -> dict[str, float]:
    """Return figures of a data sheet from texts such as 400GB/s, in units without a prefix.

    An InputError refuses other texts, and units in which a figure would mean something else.
    """
    figures = {name: quantity(name, text, _UNITS[name]) for name, text in texts.items() if text is not None}
    for name, least in _LEAST.items():
        if name in figures and figures[name] < least:
            text, unit = texts[name], _UNITS[name]
            raise InputError(
                f"{name} {text}: expected at least {least:g} {unit}; write the unit, such as {text}G{unit}"
            )
    return figures if cores is None else {**figures, "cores": cores}


def new_machine(name: str, like: str | Path, figures: Mapping[str, float]) -> tuple[Profile, Path]:
    """Make a machine that nobody measured from its data sheet, and return its profile with its place.

    An earlier machine that was made under the `name` is replaced. `like` is the profile of a measured machine
    of its kind, which gives what is missing among the `figures`: ``bandwidth`` (bytes/s), ``cores``,
    ``frequency`` (Hz), ``l2`` (bytes; of one core, or of a GPU), ``l3`` and ``memory`` (bytes).

    An InputError says that there are no figures, or that the name is that of a machine that was measured; a
    ProfileError that `like` has no data sheet, or was not measured.
    """
    refuse_measured_name(name)
    if not figures:
        raise InputError(
            f"machine '{name}' without figures: expected at least one of its data sheet; give --bandwidth"
        )
    known = find_profile(like)
    before = sheet_of_measured(known)
    l2_cores = 1 if known.machine.gpu else int(figures.get("cores", before.cores))
    l2_each = figures.get("l2", before.l2_bytes / (1 if known.machine.gpu else before.cores))
    sheet = DataSheet(
        figures.get("bandwidth", before.bandwidth_bytes_per_s),
        int(figures.get("cores", before.cores)),
        figures.get("frequency", before.frequency_hz),
        round(l2_each * l2_cores),
        int(figures.get("l3", before.l3_bytes)),
    )
    memory_bytes = int(figures["memory"]) if "memory" in figures else None
    made = made_profile(name, known, sheet, learned(kind_of(known.machine)), memory_bytes)
    return made, Path(made.save())
