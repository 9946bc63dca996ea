"""What forecasts are worth for a type of values, or a number of threads, without Records.

    python benchmarks/transfer.py [--profile NAME|PATH]

For each two settings that a profile has Records of, the linear model of the first forecasts the gallery in
the second, which no fit has seen, as if the profile had nothing of the second. Prints the errors of the
times, the share within the intervals, and beside them the errors of the model that was fitted to the second.
The lines below are the factors that transfers were wrong by, from the measured times of one setting to those
of the other, by what changes, and of all. The 90th percentile of all, rounded up, is UNTRIED_FACTOR of
`sparsecast.models.transfer`.
"""

from __future__ import annotations

import argparse
import math
from itertools import permutations

import numpy as np
from rich.console import Console
from rich.table import Table

from sparsecast import api
from sparsecast.api.resolving import model_records, training_for
from sparsecast.devices.target import Target
from sparsecast.models.linear import LinearModel
from sparsecast.models.model import HELD_OUT_SUITE, Model
from sparsecast.models.training import TrainingSet
from sparsecast.models.transfer import (
    UNTRIED_FACTOR,
    Setting,
    Transfer,
    TransferredModel,
    transfer_errors,
    widening,
)


def scores(model: Model, held_out: TrainingSet) -> tuple[float, float, float]:
    """Return the median and the 90th percentile of the errors, and the share within the intervals."""
    errors, held = [], []
    for record in held_out.records:
        for found in model.estimates(held_out.structure(record), [record.candidate]):
            errors.append(abs(found.value / record.time_s - 1))
            if found.low is not None and found.high is not None:
                held.append(found.low <= record.time_s <= found.high)
    return float(np.median(errors)), float(np.quantile(errors, 0.9)), float(np.mean(held))


def main() -> None:
    """Print a row for each two settings of a profile."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--profile")
    profile = api.profile(parser.parse_args().profile)
    device = profile.machine.device
    settings = dict.fromkeys(Setting.of(each.candidate) for each in profile.records)
    targets = [Target(device, each.dtype, 32, each.threads) for each in settings]
    sets = {Setting.of(each): training_for(profile, each) for each in targets if model_records(profile, each)}
    fits = {setting: LinearModel().fit(training) for setting, training in sets.items()}
    table = Table(title=f"Forecasts from the Records of another setting: {profile.name}")
    for column in ("from", "for", "median", "90th percentile", "within", "factor", "own fit: median", "90th"):
        table.add_column(column, justify="left" if column in ("from", "for") else "right")
    factors: dict[str, list[float]] = {}
    for source, asked in permutations(sets, 2):
        transfer = Transfer.to(asked, fits[source], sets[source])
        errors = transfer_errors(transfer, sets[source], sets[asked].records)
        for name in (" and ".join(sorted(source.changes(asked))), "all"):
            factors.setdefault(name, []).extend(math.exp(abs(error)) for error in errors)
        others = [r for setting, own in sets.items() if setting != asked for r in own.records]
        factor = widening(transfer, sets[source], others) or UNTRIED_FACTOR
        held_out = sets[asked].where(lambda record: record.suite == HELD_OUT_SUITE)
        median, p90, within = scores(TransferredModel(fits[source], transfer, factor), held_out)
        own = scores(fits[asked], held_out)
        names = [f"{each.dtype}, {each.threads} t" for each in (source, asked)]
        shares = [f"{100 * each:.0f} %" for each in (median, p90, within)]
        table.add_row(*names, *shares, f"{factor:.2f}", *(f"{100 * each:.0f} %" for each in own[:2]))
    Console(width=110).print(table)
    for name, found in sorted(factors.items(), key=lambda item: len(item[0])):
        median, p90 = np.quantile(found, (0.5, 0.9))
        print(f"{name}: {len(found)} transfers, factor {median:.2f} in the median, 90th percentile {p90:.2f}")


if __name__ == "__main__":
    main()
