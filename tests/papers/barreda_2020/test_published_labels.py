"""The authors' labels in HDF5: files as their driver writes them, and files that are something else."""

import numpy as np
import pytest

from sparsecast.errors import InputError
from sparsecast.papers.barreda_2020.entry_blocks import BLOCK_ENTRIES

h5py = pytest.importorskip("h5py", reason="h5py is not installed")
pytest.importorskip("torch", reason="PyTorch is not installed")

from sparsecast.papers.barreda_2020.datasets import published_labels  # noqa: E402

BLOCKS = 3


def write(path, columns, labels, kilohertz=2_400_000):
    with h5py.File(path, "w") as file:
        file["MB"] = columns
        file["FREC"] = [kilohertz]
        file["HEAD"] = [1000, 1000, len(columns)]
        for name, factor in (("B", 1.0), ("E", 2.0), ("EPKG", 1.5), ("EDRAM", 0.5)):
            file[f"{name}_{BLOCK_ENTRIES}"] = factor * np.asarray(labels, dtype=float)


@pytest.fixture
def columns():
    return np.random.default_rng(0).integers(0, 1000, BLOCKS * BLOCK_ENTRIES + 7)


@pytest.mark.parametrize(("quantity", "factor"), [("time", 1), ("total", 2), ("package", 1.5), ("dram", 0.5)])
def test_each_quantity_has_its_labels_and_the_remainder_is_left_out(tmp_path, columns, quantity, factor):
    write(tmp_path / "output_cant_2400000.h5", columns, [1.0, 2.0, 4.0, 9.0])
    labels = published_labels(tmp_path, quantity)
    assert labels.blocks.labels.tolist() == [factor * 1.0, factor * 2.0, factor * 4.0]
    assert labels.blocks.names == ("cant",)
    assert (labels.quantity, labels.frequency_ghz) == (quantity, 2.4)
    distances = np.abs(np.diff(columns[: BLOCKS * BLOCK_ENTRIES].reshape(BLOCKS, -1), axis=1))
    assert np.allclose(labels.blocks.inputs[:, 0], np.log(distances + 1))


def test_files_of_two_frequencies_are_refused(tmp_path, columns):
    write(tmp_path / "output_a_2400000.h5", columns, [1.0] * 4)
    write(tmp_path / "output_b_1200000.h5", columns, [1.0] * 4, 1_200_000)
    with pytest.raises(InputError):
        published_labels(tmp_path, "time")


@pytest.mark.parametrize("labels", [[1.0], [1.0, np.nan, 1.0, 1.0], [1.0, 0.0, 1.0, 1.0]])
def test_labels_that_are_missing_or_not_above_zero_are_refused(tmp_path, columns, labels):
    write(tmp_path / "output_a_2400000.h5", columns, labels)
    with pytest.raises(InputError):
        published_labels(tmp_path, "time")


def test_what_is_no_such_file_is_refused(tmp_path):
    with pytest.raises(InputError):
        published_labels(tmp_path, "time")
    (tmp_path / "notes.h5").write_text("not HDF5")
    with pytest.raises(InputError):
        published_labels(tmp_path, "time")
