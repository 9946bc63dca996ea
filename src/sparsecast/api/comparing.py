"""The same matrices on several machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sparsecast.api.calibrating import machines
from sparsecast.api.forecasting import predict
from sparsecast.errors import InputError
from sparsecast.features.structure import Structure
from sparsecast.machines.profile import Profile, find_profile
from sparsecast.matrices.problem import Problem
from sparsecast.planning.machine_comparison import compared, without_common_format
from sparsecast.planning.machine_comparison import prices_of as prices_of
from sparsecast.results.comparison import ComparedMachine
from sparsecast.results.prediction import Prediction


def profiles_to_compare(names: Sequence[str] | None = None) -> dict[str, Profile]:
    """Return profiles by name: those named, or all at hand that have Records.

    Raises
    ------
    UnknownNameError, ProfileError
        If one that is named does not exist, or cannot be used.
    InputError
        If there is none.
    """
    if names is not None:
        return {profile.name: profile for profile in map(find_profile, names)}
    found = {
        name: profile
        for name, profile in machines()[1].items()
        if isinstance(profile, Profile) and profile.records
    }
    if not found:
        raise InputError(
            "no machine to compare: expected profiles; calibrate this one, or import published results"
        )
    return found


def compare(
    matrices: Mapping[str, Problem | Structure],
    profiles: Mapping[str, Profile],
    *,
    products: int = 1,
    prices: Mapping[str, float] | None = None,
    model: str | None = None,
    anyway: bool = False,
    on_machine: Callable[[], None] = lambda: None,
) -> Iterator[tuple[list[ComparedMachine], dict[str, str]]]:
    """Forecast matrices on machines; give for each matrix its rows, fastest first, and what is refused.

    All threads of each machine are used, as it was when it was calibrated.

    Parameters
    ----------
    matrices, profiles : mappings by name
    products : int
        At least 1.
    prices : mapping of str to float, optional
        Of an hour, by machine.
    model, anyway
        As in `predict`.
    on_machine : callable
        Called after each machine of each matrix: the first forecast for one that is not shipped takes
        seconds, for its fit.
    """
    for name, asked in matrices.items():
        found: dict[str, Prediction] = {}
        refused: dict[str, str] = {}
        for machine, profile in profiles.items():
            try:
                prediction = predict(asked, profile, model=model, drift_correction=False, anyway=anyway)
            except InputError as error:
                refused[machine] = str(error)
                continue
            finally:
                on_machine()
            if len(prediction):
                found[machine] = prediction
            else:
                refused[machine] = "no format has a forecast"
        lacking = without_common_format(found) if found else None
        if lacking:
            refused |= dict.fromkeys(found, lacking)
            found = {}
        yield compared(name, found, products, prices or {}) if found else [], refused
