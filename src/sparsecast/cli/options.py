"""Arguments and options that commands share, and output of results."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from sparsecast import api
from sparsecast.errors import InputError
from sparsecast.records import DTYPES
from sparsecast.system.files import Place, exists, is_address, shown, unwritable

#: Exit statuses: the user's input was wrong; our fault; stopped from the keyboard.
INPUT_WRONG, OUR_FAULT, STOPPED = 2, 1, 130
STOPPED_LINE = "stopped from the keyboard"

#: Names are not listed here: to find those of plug-ins takes longer than to show a page of help.
_DEVICES = "cpu, cuda, cuda:N for GPU number N, or the name of a plug-in."


def option(metavar: str | None, help: str, *names: str, **more: Any) -> Any:
    """Return an option with a value; by default its name is that of the parameter."""
    return typer.Option(*names, metavar=metavar, help=help, **more)


def flag(name: str, help: str) -> Any:
    """Return an option without a value, and without one that says the opposite."""
    return typer.Option(name, help=help)


def argument(metavar: str, help: str, **more: Any) -> Any:
    return typer.Argument(metavar=metavar, help=help, **more)


def matching_profiles(incomplete: str) -> list[str]:
    """Return the profiles whose names begin with what was typed, shipped ones and the user's."""
    from sparsecast.machines.storage import home

    folders = Path(__file__).parent.parent / "machines" / "profiles", home() / "profiles"
    names = {path.stem for folder in folders for path in folder.glob("*.parquet")}
    return sorted(name for name in names if name.startswith(incomplete))


def matching_models(incomplete: str) -> list[str]:
    """Return the models whose names begin with what was typed."""
    from sparsecast.models import MODELS

    return [name for name in MODELS.names() if name.startswith(incomplete)]


def known(check: Callable[[str], object]) -> Callable[[str | None], str | None]:
    """Return a callback that refuses an unknown name before a machine is calibrated for it."""

    def refuse(name: str | None) -> str | None:
        if name is not None:
            check(name)
        return name

    return refuse


def _threads(text: str | None) -> int | str | None:
    """Return a number as one, and a word as it is: the question refuses those that it does not know."""
    return int(text) if text is not None and text.lstrip("-").isdigit() else text


MatrixArgument = Annotated[
    str,
    argument(
        "MATRIX",
        "A file (.mtx, .mtx.gz, .rb, .hb, .npz, .mat), an edge list (.txt, .tsv, .csv, .edges, .el), "
        "gallery:NAME?key=value&key=value, or suitesparse:GROUP/NAME, which is downloaded once.",
    ),
]
QuestionArgument = Annotated[
    str,
    argument(
        "MATRIX",
        "A matrix as for other commands; or without it a Structure (.json), a table of matrices (.csv, "
        ".csv.gz), or counts:rows=R&cols=C&nnz=N.",
    ),
]
JsonOption = Annotated[bool, flag("--json", "Print one JSON document on standard output.")]
ForceOption = Annotated[bool, flag("--force", "Replace existing files.")]
AnywayOption = Annotated[
    bool, flag("--anyway", "Forecast even if other programs disturbed the calibration too much.")
]
ForecastOnlyOption = Annotated[
    bool, flag("--forecast-only", "Choose by forecasts alone; do not build or time candidates.")
]
ShardOption = Annotated[
    str | None,
    option("I/N", "Part I of N of the matrices, in any order; slurm: the part of this array task."),
]
DryRunOption = Annotated[
    bool, flag("--dry-run", "List the matrices and their kept records; measure nothing.")
]
ProfileOption = Annotated[
    str | None,
    option(
        "NAME|PATH",
        "Profile of the machine to forecast for; this machine's by default.",
        autocompletion=matching_profiles,
    ),
]
ThreadsOption = Annotated[int | None, option(None, "Number of threads; all of the machine by default.")]
AnyThreadsOption = Annotated[
    str | None,
    option(
        "N|auto",
        "Number of threads; all of the machine by default. auto compares those in the profile.",
        callback=_threads,
    ),
]
VectorsOption = Annotated[int, option(None, "Number of vectors multiplied at once.", min=1)]
DtypeOption = Annotated[
    str | None,
    option(
        "|".join(DTYPES),
        "Type of the values; that of the matrix by default.",
        autocompletion=lambda incomplete: [d for d in DTYPES if d.startswith(incomplete)],
    ),
]
LibraryOption = Annotated[
    str | None,
    option(
        "any|NAME[,NAME]",
        "Other libraries beside the built-in formats: any installed one, or names such as mkl,scipy.",
        callback=known(lambda names: api.chosen_libraries(names, is_here=False)),
    ),
]
ModelOption = Annotated[
    str | None,
    option(
        "NAME",
        "Model used for the forecast.",
        callback=known(lambda name: api.model_for("time", name)),
        autocompletion=matching_models,
    ),
]
ProductsOption = Annotated[int, option(None, "Number of products that will be done.", min=1)]
ObjectiveOption = Annotated[
    str,
    option(
        "time|energy|edp",
        "What to minimise; edp is energy times time.",
        callback=known(lambda name: api.refuse_objective(name)),
    ),
]
MeterCommandOption = Annotated[
    str | None, option("COMMAND", "Command that prints the joules counted so far.")
]
MeterOption = Annotated[
    str | None,
    option("NAME", "Meter that counts joules; modelled computes them, and marks the results."),
]
FrequenciesOption = Annotated[
    str | None, option("GHZ", "Frequencies of the cores, such as 1.2,2.0; set if permitted.")
]
PowerModelOption = Annotated[
    Path | None, option("FILE", "JSON file with a power model, if no joules were measured.")
]
EnergyModelOption = Annotated[
    str | None, option("NAME", "Model that forecasts joules, if Records have joules.")
]
PriceOption = Annotated[
    list[str] | None,
    option("MACHINE=NUMBER/h", "Price per hour, in any currency; repeat it for each machine."),
]
ForecastDeviceOption = Annotated[
    str | None, option("DEVICE", f"Device of the product; that of the profile or the CPU. {_DEVICES}")
]
FigureOption = Annotated[
    Path | None,
    option("FILE.svg|png|pdf", "Draw the result to this file, too (docs/figures.md).", "--figure"),
]
CsvOption = Annotated[Path | None, option("FILE.csv", "Write the table to this file, too.", "--csv")]
MarkdownOption = Annotated[
    Path | None, option("FILE.md", "Write the printed output to this file, too.", "--markdown")
]
DeviceOption = Annotated[str, option("DEVICE", f"Device of the product. {_DEVICES}")]


@dataclass(frozen=True, slots=True)
class PlaceGroup:
    """The group of options that say where products are done: the same for every command."""

    profile: ProfileOption = None
    threads: ThreadsOption = None
    device: ForecastDeviceOption = None


@dataclass(frozen=True, slots=True)
class SettingGroup(PlaceGroup):
    """The group of options that say where products are done, and how: the same for every command."""

    threads: AnyThreadsOption = None  # type: ignore[assignment]
    dtype: DtypeOption = None
    vectors: VectorsOption = 1
    values: Annotated[
        str | None,
        option("float32", "Allow lossy storage: double values rounded to float32, sums in double."),
    ] = None
    library: LibraryOption = None
    transpose: Annotated[bool, flag("--transpose", "Multiply with the transpose, which is built first.")] = (
        False
    )

    @property
    def session_options(self) -> dict[str, Any]:
        """The setting of a session."""
        of_matrices = ("profile", "transpose")
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in of_matrices}

    @property
    def named(self) -> dict[str, object]:
        """The options that were given, by how they are typed; None for the others."""
        given = {f"--{option.name}": getattr(self, option.name) for option in fields(self)}
        given["--vectors"] = None if self.vectors == 1 else self.vectors
        given["--transpose"] = "" if self.transpose else None
        return given


@dataclass(frozen=True, slots=True)
class TrustGroup:
    """The group of options that say what forecasts rest on: the same for every command."""

    model: ModelOption = None
    no_drift_correction: Annotated[
        bool,
        flag("--no-drift-correction", "Forecast for the speed of the calibration, not the current speed."),
    ] = False
    anyway: AnywayOption = False
    power_model: PowerModelOption = None
    energy_model: EnergyModelOption = None

    @property
    def session_options(self) -> dict[str, Any]:
        """The trust of a session."""
        return {
            "model": self.model,
            "drift_correction": not self.no_drift_correction,
            "anyway": self.anyway,
            "power_model": power_file(self.power_model),
            "energy_model": self.energy_model,
        }


@dataclass(frozen=True, slots=True)
class CollectionGroup:
    """The group of options for measuring a collection: the same for every command."""

    keep: Annotated[
        bool, flag("--keep/--no-keep", "Keep the measurements in the data folder, for the models.")
    ] = True
    resume: Annotated[bool, flag("--resume", "Reuse kept measurements, whatever their age.")] = False
    shard: ShardOption = None
    dry_run: DryRunOption = False

    @property
    def stopped(self) -> str:
        """What became of the measurements where the command was stopped from the keyboard."""
        return "kept" if self.keep else "shown"


def power_file(path: Path | None) -> api.PowerFile | None:
    """Return what a power model says, None without one."""
    return None if path is None else api.PowerFile.read(path)


def chosen_meter(name: str | None, command: str | None = None) -> api.Meter | None:
    """Return the meter that is named, or whose command is given; None for what the device has."""
    if name is not None and command is not None:
        raise InputError(f"--meter {name} beside --meter-command: expected one meter; leave one out")
    if name is not None:
        return api.named_meter(name)
    return None if command is None else api.CommandMeter(command)


def frequencies_ghz(text: str | None, device: str = "cpu") -> list[float]:
    """Return frequencies as they were typed, none for what the machine chooses itself."""
    if text is None:
        return []
    try:
        numbers = [float(number) for number in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(0 < number < math.inf for number in numbers) or device != "cpu":
        raise InputError(
            f"--frequencies {text} on {device}: expected frequencies in GHz of a processor, such as 1.2,2.0; "
            f"correct it"
        )
    return numbers


def screen() -> Console:
    """Return the console for messages and progress: standard error."""
    return Console(stderr=True, highlight=False)


class StoppedError(Exception):
    """A command was stopped from the keyboard, and has told what it has."""


def warn(sentences: Iterable[str]) -> None:
    """Print warnings on standard error, in colour."""
    for sentence in sentences:
        screen().print(Text.assemble(("Note:", "bold yellow"), f" {sentence}"), soft_wrap=True)


def refuse_unwritable(path: Path) -> None:
    """Raise if a file cannot be written, before minutes are spent on what goes into it."""
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise unwritable(path)


def refuse_no_parquet(option: str, place: str) -> None:
    """Raise if a place is no name of a Parquet file, or, unless it is an address, cannot be written."""
    if not place.endswith(".parquet"):
        raise InputError(f"{option} {shown(place)}: expected a name that ends in .parquet; name it so")
    if not is_address(place):
        refuse_unwritable(Path(place))


def refuse_page(path: Path | None, force: bool) -> None:
    """Raise if a page that is asked for cannot be written, before anything is measured for it."""
    if path is not None:
        from sparsecast.reports.pages.rendering import refuse_undrawable

        refuse_undrawable()
        refuse_unwritable(path)
        refuse_taken(path, force)


def refuse_figure(path: Path | None) -> None:
    """Raise if a figure that is asked for cannot be drawn, before anything is measured for it."""
    if path is not None:
        from sparsecast.reports.charts.chart import refuse_undrawable

        refuse_unwritable(path)
        refuse_undrawable(path)


def refuse_taken(path: Place, force: bool) -> None:
    """Raise if something is there that is not to be replaced."""
    if not force and exists(path):
        raise InputError(
            f"{shown(path)} is there already: expected a new name; name another, or replace it by --force"
        )


def names(text: str | None) -> list[str] | None:
    """Return names with commas between, None where there are none."""
    return None if text is None else [name.strip() for name in text.split(",")]


def refuse_given(given: Mapping[str, object], why: str) -> None:
    """Refuse the first of some options that is not None."""
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{f'{name} {value}'.rstrip()} {why}")


def refuse_beside_ranks(given: Mapping[str, object], device: str = "cpu") -> None:
    """Refuse options of one process, those that are not None: a rank has one thread of a processor."""
    of_one = {**given, "--device": None if device == "cpu" else device}
    refuse_given(of_one, "with ranks: expected none, as ranks do not use it; leave it out")
