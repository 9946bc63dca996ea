"""How the package's data files are made: atlas, band statistics, published machines and clusters."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import math
import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from experiment import Rows, experiment, named, timed
from sparsecast.benchmark.published import FIVE, OPTIONAL, REQUIRED, published_profiles
from sparsecast.benchmark.published_moments import table_lines
from sparsecast.devices import machine_of
from sparsecast.errors import InputError, PaddingError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.row_lengths import RowLengths
from sparsecast.features.structure import Structure
from sparsecast.formats.bcsr import BCSR, best_block
from sparsecast.machines import profile as profiles
from sparsecast.machines.machine import Cache, Machine
from sparsecast.machines.profile import MatrixEntry, Profile
from sparsecast.machines.storage import HOME_VARIABLE
from sparsecast.matrices.atlas import MIRRORED, SIZES, AtlasEntry
from sparsecast.matrices.banded_synthesis import BandStatistics, DensityClass
from sparsecast.matrices.problem import PUBLISHED_PREFIX, group_of
from sparsecast.models import DEFAULT_MODEL, MODELS
from sparsecast.models.store import SHIPPED, fitted
from sparsecast.models.training import TrainingSet
from sparsecast.records import MicroBenchmark
from sparsecast.system.tabular import grouped
from sparsecast.system.version import VERSION

PANEL = "Data of the package"
Out = Annotated[Path, typer.Argument(metavar="OUT")]
Files = Annotated[list[str], typer.Argument(metavar="FILE...")]

#: Twins beyond these numbers of entries are not made: the call takes most of the time of a smaller one, and a
#: larger one takes the time of many.
LEAST_ENTRIES, MOST_ENTRIES = 1_000, 8_000_000


def twin_features(structure: Structure, scale: float) -> list[float]:
    """Return what the order of the twins is to cover, each about as wide as the others."""
    lengths, locality = structure.row_lengths, structure.locality
    nnz, mean = max(structure.nnz, 1), max(structure.nnz / max(structure.rows, 1), 0.1)
    reuse = np.asarray(locality.reuse_histogram)
    return [
        np.log10(scale * nnz) / 2,
        np.log10(mean),
        np.log10(1 + lengths.deviation / mean),
        np.log10(max(lengths.max, 1) / mean) / 2,
        (lengths.mispredicted or 0) / max(structure.rows, 1),
        locality.line_changes / nnz,
        float(reuse @ np.arange(len(reuse))) / len(reuse),
        structure.blocks.fill[1] / 9,
    ]


def covering_order(points: np.ndarray) -> list[int]:
    """Return the points in an order in which each is the farthest from all before it, the middle first."""
    order = [int(np.argmin(np.linalg.norm(points - np.median(points, axis=0), axis=1)))]
    distance = np.linalg.norm(points - points[order[0]], axis=1)
    for _ in range(len(points) - 1):
        order.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(points - points[order[-1]], axis=1))
    return order


@experiment(PANEL)
def atlas(out: Out, files: Files) -> Rows:
    """Derive the atlas: counts and histograms of real matrices, whose twins a calibration measures.

    Twins come in three sizes: a third, whole, triple. Their order begins in the middle of the space of
    features, and each next one is the farthest from all before it. The shipped
    src/sparsecast/matrices/atlas.json.gz is one.
    """
    entries: dict[str, AtlasEntry] = {}
    for file, problem in zip(files, named(files), strict=True):
        if problem.structure.nnz >= LEAST_ENTRIES:
            digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()[:32]
            structure, side = problem.structure, 1
            with suppress(PaddingError):  # blocks would stream as much as CSR
                BCSR.refuse_unsuited(RowBlocks.of(structure), 8, 4)
                side = int(best_block(structure.blocks.fill))
            entries[problem.name] = AtlasEntry(structure, side, digest)
    twins = [
        (name, size)
        for name, entry in entries.items()
        for size, scale in SIZES.items()
        if size != MIRRORED and LEAST_ENTRIES <= scale * entry.structure.nnz <= MOST_ENTRIES
    ]
    points = np.array([twin_features(entries[name].structure, SIZES[size]) for name, size in twins])
    order = tuple(twins[place] for place in covering_order(points))
    made = {
        "source": {**_source("atlas"), "names": sorted(entries)},
        "order": order,
        "entries": {
            name: {"digest": entry.digest, "block": entry.block, "structure": entry.structure.to_dict()}
            for name, entry in entries.items()
        },
    }
    out.write_bytes(gzip.compress(json.dumps(made).encode(), mtime=0))
    yield f"{len(entries)} Structures, {len(twins)} twins, {out.stat().st_size} bytes."


def _source(name: str) -> dict[str, Any]:
    return {
        "command": f"python benchmarks/run.py {name} OUT FILE...",
        "date": datetime.now(UTC).date().isoformat(),
    }


#: Least mean entries per row of each class of density; a class ends where the next begins.
DENSITY_CLASSES = (0.0, 4.0, 8.0, 16.0, 32.0, 64.0)


def derive(corpus: Sequence[Structure], source: dict[str, Any]) -> BandStatistics:
    """Return the statistics of a corpus of square matrices with entries, all of equal weight."""
    if not corpus or not all(structure.rows == structure.cols and structure.nnz for structure in corpus):
        raise InputError(
            f"{len(corpus)} matrices: expected at least one, all square with entries; name others"
        )
    classes = []
    for least, end in zip(DENSITY_CLASSES, (*DENSITY_CLASSES[1:], np.inf), strict=True):
        members = [structure for structure in corpus if least <= structure.row_lengths.mean < end]
        if members:
            bands = np.mean([structure.bands.histogram for structure in members], axis=0)
            density = float(np.mean([structure.row_lengths.mean for structure in members]))
            classes.append(DensityClass(least, len(members), density, tuple((bands / bands.sum()).tolist())))
    mean = float(np.mean([structure.row_lengths.mean for structure in corpus]))
    return BandStatistics(source, mean, tuple(classes))


@experiment(PANEL)
def band_statistics(out: Out, files: Files) -> Rows:
    """Derive the band statistics of the five-minute benchmark, as Table II of Gahvari et al. (2007).

    The mean share of the entries of square matrices by distance from the diagonal, in classes of density.
    Each matrix of a class weighs the same; no model or kernel is fitted to them. The shipped
    band_statistics.json is one.
    """
    structures = {problem.name: problem.structure for problem in named(files)}
    usable = {name: s for name, s in structures.items() if s.rows == s.cols and s.nnz}
    counts = {"matrices": len(usable), "names": sorted(usable), "left_out": len(files) - len(usable)}
    note = "Averages over a corpus on purpose: the benchmark needs statistics of practical matrices."
    source = {**_source("band-statistics"), **counts, "note": note}
    statistics = derive(list(usable.values()), source)
    out.write_text(json.dumps(asdict(statistics), indent=1) + "\n", "utf-8")
    yield from (
        f"left out {name}: not square, or without entries" for name in structures.keys() - usable.keys()
    )


#: Names of the profiles that are shipped, by the names of Ginkgo's table.
NAMES = {
    "K20Xm": "nvidia-k20xm",
    "K40m": "nvidia-k40m",
    "P100": "nvidia-p100",
    "V100_SXM2": "nvidia-v100",
    "A100": "nvidia-a100",
    "RadeonVII": "amd-radeon-vii",
    "MI100": "amd-mi100",
    "Xeon_Gold_6230": "intel-xeon-gold-6230",
}

#: Shipped machines that this project has measured: the profile of a campaign, packed.
OWN = ("nvidia-h100",)

SOURCE = "ginkgo-project/ginkgo-data, commit b9082895, CC BY 4.0; reduced to some of its matrices"

#: Where they are.
PROFILES = Path(profiles.__file__).parent / "profiles"

#: Matrices that are kept of each machine.
MATRICES = 800


def _digest(text: str) -> str:
    """Return what orders names as good as at random, alike everywhere."""
    return hashlib.sha256(text.encode()).hexdigest()


def chosen_matrices(matrices: Iterable[str]) -> set[str]:
    """Return the matrices that are kept: one of each group, then a second one, and so on."""
    groups = grouped(sorted(matrices, key=_digest), group_of).values()
    rounds = [(n, _digest(matrix), matrix) for group in groups for n, matrix in enumerate(group)]
    return {matrix for _, _, matrix in sorted(rounds)[:MATRICES]}


def summaries(path: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Return what is kept of each matrix of a table, by machine and specification: for `Structure.from_dict`.

    Some matrices had other entries on some machines.
    """
    kept: defaultdict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for line in table_lines(path, REQUIRED, OPTIONAL):
        if None in (*(line[name] for name in FIVE), line["rd_variance"]):
            continue
        rows, cols, nnz = (int(line[name]) for name in ("rows", "cols", "nnz"))
        five, deviation = [line[name] for name in FIVE], math.sqrt(line["rd_variance"])
        lengths = {"version": RowLengths.version, "rows": rows, "nnz": nnz}
        lengths |= {"five": five, "deviation": deviation}
        key = f"{PUBLISHED_PREFIX}{line['group']}/{line['matrix']}"
        kept[line["machine"]][key] = {"rows": rows, "cols": cols, "nnz": nnz, RowLengths.name: lengths}
    return kept


def reduced(whole: Profile, name: str, known: Mapping[str, dict[str, Any]]) -> Profile:
    """Return what is shipped of a machine: times in single precision, and counts of its matrices."""
    kept = chosen_matrices(whole.matrices)
    records = [
        replace(record, time_s=float(np.float32(record.time_s)))
        for record in whole.records
        if record.matrix in kept
    ]
    records.sort(key=lambda record: (record.candidate.kernel, record.matrix))
    matrices = {}
    for key, entry in sorted(whole.matrices.items()):
        if key in kept:
            slices = entry.structure.groups.get("slices")
            stored = known[key] if slices is None else {**known[key], "slices": slices.to_dict()}
            matrices[key] = MatrixEntry(key, entry.name, stored)
    return Profile(replace(whole.machine, published_as=name, source=SOURCE), tuple(records), matrices)


@experiment(PANEL)
def shipped_machines(
    table: Annotated[Path, typer.Argument(metavar="GINKGO")],
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...")] = None,
) -> Rows:
    """Write the shipped profiles of machines that others measured.

    The table is that of ginkgo-project/ginkgo-data, commit b9082895 (CC BY 4.0). The same table gives the
    same bytes again. The repository of the National Technical University of Athens (cslab-ntua/SpMV-Research)
    names no licence for its results, so nothing of them is shipped.
    """
    known = summaries(table)
    for name, whole in published_profiles(table).items():
        if names and NAMES[name] not in names:
            continue
        small = reduced(whole, NAMES[name], known[name])
        path = small.save(PROFILES / f"{small.name}{profiles.SUFFIX}", is_packed=True)
        yield f"{path.name}: {path.stat().st_size / 1e3:.0f} kB, {small.table().title}"


@experiment(PANEL)
def shipped_fits(names: Annotated[list[str] | None, typer.Argument(metavar="NAME...")] = None) -> Rows:
    """Write what the usual model learns of the shipped machines, so that nobody waits for its fits.

    To be run again when a test asks for it: after changes of the model, of the shipped profiles or of the
    version. The same Records give the same bytes again.
    """
    for name in names or [*sorted(NAMES.values()), *OWN]:
        profile = Profile.load(PROFILES / f"{name}{profiles.SUFFIX}")
        folder = SHIPPED / profile.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for dtype in sorted({record.candidate.dtype for record in profile.records}):
            training = TrainingSet.of(profile, profile.select(dtype=dtype))
            with tempfile.TemporaryDirectory() as home:
                os.environ[HOME_VARIABLE] = home
                _, fit_s = timed(partial(fitted, MODELS.get(DEFAULT_MODEL)(), training))
                (stored,) = Path(home).rglob("*.json")
                path = folder / f"{stored.name}.xz"
                path.write_bytes(lzma.compress(stored.read_bytes()))
            yield {"machine": name, "type": dtype, "fit_s": fit_s, "bytes": path.stat().st_size}


@experiment(PANEL)
def shipped_networks(name: Annotated[str, typer.Argument(metavar="NAME")]) -> Rows:
    """Ship the networks that `sparsecast paper barreda-2020` trained here, as of a machine called NAME."""
    from sparsecast.papers.barreda_2020.block_forecast import shipped_networks as shipped_paths
    from sparsecast.papers.barreda_2020.networks import load_network, save_network
    from sparsecast.papers.barreda_2020.training import network_path

    for path in shipped_paths():
        trained = network_path(machine_of("cpu").name, path.stem, "float64", 2.4, "ours", "groups")
        network, card = load_network(trained)
        save_network(network, replace(card, machine=name), path)
        path.chmod(0o644)  # for whoever installs the package
        yield {"network": path.stem, "bytes": path.stat().st_size, **card.errors["network"]}


@experiment(PANEL)
def published_cluster(out: Annotated[Path | None, typer.Argument(metavar="OUT.parquet")] = None) -> Rows:
    """Write the profile `xeon-gold-6154-edr`: the cluster of Hossain and Saule, from published figures alone.

    Every figure is one of these: the paper, section IV.A (Xeon Gold 6154, 3.0 GHz base, two sockets and 36
    cores a node, 388 GB, EDR InfiniBand) and III.C.1 (an FMA of 8 doubles, 2 a cycle); the data sheet of the
    processor (24.75 MB of L3 a socket, where the paper prints 25; six channels of DDR4-2666; 1 MiB of L2 and
    32 KiB of L1 a core); EDR: 100 Gbit/s a port and direction. Left open by all of them, and assumed: a
    rank's share of memory is the peak over the cores, and a message takes 1 us, the order that vendors state.
    Nothing is fitted to the paper's times.
    """
    clock_hz, fma_units, doubles_per_fma, cores, sockets = 3.0e9, 2, 8, 36, 2
    memory_share, link = sockets * 6 * 8 * 2.666e9 / cores, 100e9 / 8
    latency_s, sizes = 1e-6, (8, 2**13, 2**23)
    points = [("fma", 1, 1, 0, 1 / (clock_hz * fma_units * doubles_per_fma))]
    points += [("triad", cores, 1, 3 * size, 3 * size / memory_share) for size in sizes]
    points += [("ping-pong", 2, 1, size, latency_s + size / memory_share) for size in sizes]
    points += [("ping-pong", 2, 2, size, latency_s + size / link) for size in sizes]
    where = "published, not measured"
    speeds = [
        MicroBenchmark(kind, ranks, nodes, size, None, time_s, None, False, where, VERSION)
        for kind, ranks, nodes, size, time_s in points
    ]
    machine = Machine(
        processor="Intel(R) Xeon(R) Gold 6154 CPU @ 3.00GHz",
        architecture="x86_64",
        cores=cores,
        threads=cores,
        caches=(Cache(1, 32 * 2**10, 1), Cache(2, 2**20, 1), Cache(3, int(24.75 * 2**20), cores // sockets)),
        simd=("sse2", "avx", "avx2", "fma", "avx512f"),
        memory_bytes=388 * 10**9,
        system="Linux",
        published_as="xeon-gold-6154-edr",
    )
    shipped = PROFILES / f"{machine.published_as}{profiles.SUFFIX}"
    yield str(Profile(machine, ()).with_microbenchmarks(speeds).save(out or shipped))
