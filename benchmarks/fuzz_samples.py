"""Every reader of files, with small files that it takes."""

from __future__ import annotations

import dataclasses
import gzip
import importlib.util
import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.io import hb_write, mmwrite, savemat

import sparsecast as sc
from fuzzing import Reader, Sample
from sparsecast.api.matrices import read_table
from sparsecast.benchmark.journal import journal, read_journal
from sparsecast.benchmark.record_files import MergedRecords
from sparsecast.machines.profile import Profile, find_profile
from sparsecast.matrices.npz import index_fault
from sparsecast.matrices.partitioning import storage as partitions
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.reading import load
from sparsecast.matrices.structure_files import read_structure
from sparsecast.models.power import PowerFile
from sparsecast.papers.barreda_2020.label_files import BlockLabels, keep_labels, read_labels

READERS: dict[str, Reader] = {}

#: A matrix of more columns is not multiplied: few entries of a file may stand in any number of columns.
MOST_COLUMNS = 1_000_000


def _reader(name: str, read: Callable[[Path], object]) -> Callable[[Callable[[], list[Sample]]], Any]:
    """Return a decorator that makes a reader of its samples."""

    def decorate(samples: Callable[[], list[Sample]]) -> Callable[[], list[Sample]]:
        READERS[name] = Reader(samples, read)
        return samples

    return decorate


def _matrix(path: Path) -> None:
    """Read a matrix and do a product with it, in which its indices are trusted."""
    A = load(path)
    if fault := index_fault(A):
        raise AssertionError(f"a matrix whose {fault}")
    if not A.has_canonical_format:
        raise AssertionError("a matrix with unsorted or repeated entries")
    if A.shape[1] < MOST_COLUMNS:
        with np.errstate(all="ignore"):
            _ = A @ np.ones(A.shape[1])


def _written(write: Callable[[Path], object], name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()


def _random(rows: int = 7, cols: int = 5, factor: complex = 1) -> Any:
    A = sparse.random_array((rows, cols), density=0.4, rng=np.random.default_rng(rows), format="csr")
    return A if factor == 1 else factor * A


def _symmetric() -> Any:
    A = _random(6, 6)
    return sparse.csr_array(A + A.T)


@_reader("matrix-market", _matrix)
def _matrix_market() -> list[Sample]:
    matrices = {"real": _random(), "complex": _random(factor=1j), "symmetric": _symmetric()}
    matrices["array"] = _random().toarray()
    texts = {}
    for name, matrix in matrices.items():
        stream = io.BytesIO()
        mmwrite(stream, matrix, symmetry="symmetric" if name == "symmetric" else "general")
        texts[name] = stream.getvalue()
    texts["pattern"] = b"%%MatrixMarket matrix coordinate pattern symmetric\n% a comment\n3 3 2\n1 1\n3 1\n"
    plain = [Sample(f"{name}.mtx", text, "text") for name, text in texts.items()]
    return [*plain, Sample("packed.mtx.gz", gzip.compress(texts["real"], 1), "gzip")]


@_reader("matlab", _matrix)
def _matlab() -> list[Sample]:
    contents = {
        "sparse": {"A": _random().tocsc()},
        "complex": {"A": _random(factor=1j).tocsc()},
        "dense": {"A": _random().toarray()},
        "struct": {"Problem": {"name": "n", "A": _random().tocsc()}},
        "others": {"x": np.ones(3), "title": "text", "A": _random().tocsc()},
    }
    samples = []
    for name, content in contents.items():
        for is_packed in (False, True):
            stream = io.BytesIO()
            savemat(stream, content, do_compression=is_packed)
            samples.append(Sample(f"{name}-{is_packed}.mat".lower(), stream.getvalue(), "mat"))
    return samples


@_reader("npz", _matrix)
def _npz() -> list[Sample]:
    samples = []
    for kind in ("csr", "csc", "coo", "bsr", "dia"):
        stream = io.BytesIO()
        sparse.save_npz(stream, _random(6, 4).asformat(kind), compressed=kind == "csc")
        samples.append(Sample(f"{kind}.npz", stream.getvalue(), "zip"))
    return samples


@_reader("harwell-boeing", _matrix)
def _harwell_boeing() -> list[Sample]:
    text = _written(lambda path: hb_write(path, _random(6, 6).tocsc()), "a.rua")
    symmetric = _written(lambda path: hb_write(path, sparse.tril(_symmetric(), format="csc")), "a.rua")
    symmetric = symmetric.replace(b"RUA", b"RSA")
    plain = Sample("a.rua", text, "text"), Sample("a.rsa", symmetric, "text")
    return [*plain, Sample("a.rua.gz", gzip.compress(text, 1), "gzip")]


@_reader("edge-lists", _matrix)
def _edge_lists() -> list[Sample]:
    edges = b"# Directed graph\n" + b"".join(b"%d\t%d\n" % (i, 3 * i % 11) for i in range(12))
    weights = b"from,to,weight\n" + b"".join(b"%d,%d,%d.5\n" % (i, i * i % 7, i) for i in range(9))
    plain = Sample("a.txt", edges, "text"), Sample("a.csv", weights, "text")
    return [*plain, Sample("a.tsv.gz", gzip.compress(edges, 1), "gzip")]


def _profile(records: int = 5) -> Profile:
    """Return a small profile, of the first shipped machine."""
    shipped = find_profile("nvidia-v100")
    chosen = shipped.records[:records]
    matrices = {record.matrix: shipped.matrices[record.matrix] for record in chosen}
    return dataclasses.replace(shipped, records=chosen, matrices=matrices)


@_reader("profiles", Profile.load)
def _profiles() -> list[Sample]:
    content = _written(lambda path: _profile().save(path), "a.parquet")
    return [Sample("a.parquet", content, "parquet")]


@_reader("merged-records", lambda path: MergedRecords.of([path]))
def _merged_records() -> list[Sample]:
    with tempfile.TemporaryDirectory() as folder:
        source, merged = Path(folder) / "profile.parquet", Path(folder) / "merged.parquet"
        _profile().save(source)
        MergedRecords.of([source]).write(merged)
        contents = source.read_bytes(), merged.read_bytes()
    return [Sample(f"{k}.parquet", content, "parquet") for k, content in enumerate(contents)]


@_reader("journals", read_journal)
def _journals() -> list[Sample]:
    def write(path: Path) -> None:
        problem = Problem.named("gallery:poisson2d?n=4")
        records = [dataclasses.replace(r, matrix=problem.specification) for r in _profile(2).records]
        with journal(path) as append:
            append(problem, records)

    return [Sample("a.jsonl", _written(write, "a.jsonl"), "json lines")]


@_reader("structures", read_structure)
def _structures() -> list[Sample]:
    structure = Problem.named("gallery:poisson2d?n=4").structure
    document = json.dumps({"matrix": {"name": "a"}, "structure": structure.to_dict()})
    return [Sample("a.json", document.encode(), "json")]


@_reader("tables", read_table)
def _tables() -> list[Sample]:
    names = "group,matrix,rows,cols,nnz,rd_min,rd_q1,rd_median,rd_q3,rd_max,rd_variance"
    return [Sample("a.csv", f"{names}\ng,m,10,10,40,1,3,4,5,8,1.5\n".encode(), "text")]


@_reader("power-models", PowerFile.read)
def _power_models() -> list[Sample]:
    return [Sample("a.json", b'{"joules": {"idle": 20.0, "rows": 1e-9}}', "json")]


@_reader("partitions", lambda path: partitions.load(path, _random(9, 9)))
def _partitions() -> list[Sample]:
    A = _random(9, 9)
    made = {method: sc.partition(A, 4, method) for method in ("rows", "uniform-2d")}
    contents = {
        name: _written(lambda path, p=partition: partitions.save(p, path, A), "a.npz")  # type: ignore[misc]
        for name, partition in made.items()
    }
    return [Sample(f"{name}.npz", content, "zip") for name, content in contents.items()]


def _arrays(blocks: int, features: int) -> dict[str, Any]:
    times = {name: np.ones(blocks, dtype=np.float32) for name in ("streaming_ns", "streaming_again_ns")}
    hot = {name: np.ones(2, dtype=np.float32) for name in ("hot_ns", "hot_again_ns")}
    joules = {name: np.ones((3, 1), dtype=np.float32) for name in ("energy_nj", "energy_again_nj")}
    numbers = {"hot_blocks": np.array([0, 2]), "energy_blocks": np.array([1])}
    return {**times, **hot, **joules, **numbers, "features": np.ones((blocks, features), dtype=np.float32)}


@_reader("labels", read_labels)
def _labels() -> list[Sample]:
    counts = {"nnz": 750, "index_bits": 32}
    texts = {"matrix": "m", "name": "m", "group": "m", "dtype": "float64", "kernel": "plain"}
    texts |= {"machine": "here", "measured_at": "2026-01-01T00:00:00+00:00", "version": "0"}
    times = {"product_s": 1e-3, "slow_share": 0.0}
    sources = {"energy_source": None, "frequency_ghz": None, "frequency_source": None}
    labels = BlockLabels(**counts, **texts, **times, **sources, **_arrays(3, 4))  # type: ignore[arg-type]
    return [Sample("a.npz", keep_labels(labels).read_bytes(), "zip")]


if importlib.util.find_spec("torch") and importlib.util.find_spec("safetensors"):
    from sparsecast.papers.barreda_2020 import networks

    @_reader("networks", networks.load_network)
    def _networks() -> list[Sample]:
        network = networks.built(networks.Architecture((4, 4), (3, 3), (7, 7), (8,), (0.1,)))
        labels = ("time", "here", "float64", 2.4, "set", None)
        errors, curves = {"network": {"block_mean": 0.1}}, ((2.0, 1.0), (3.0, 2.5))
        tried = 2, 300, "groups", errors, {}, "2026", "0", "abc", 1.5, ("a",)
        card = networks.ModelCard(*labels, *tried, *curves)
        content = _written(lambda path: networks.save_network(network, card, path), "a.safetensors")
        return [Sample("a.safetensors", content, "safetensors")]


if importlib.util.find_spec("h5py") and importlib.util.find_spec("torch"):
    from sparsecast.papers.barreda_2020.datasets import published_labels

    @_reader("published-labels", lambda path: published_labels(path.parent, "time"))
    def _published_labels() -> list[Sample]:
        import h5py

        def write(path: Path) -> None:
            with h5py.File(path, "w") as file:
                file["MB"], file["FREC"], file["B_250"] = np.arange(757) % 100, [2_400_000], [1.0, 2.0, 4.0]

        return [Sample("output_a_2400000.h5", _written(write, "a.h5"), "bytes")]
