"""Records of many files: merged into one, and compared."""

from __future__ import annotations

from collections.abc import Sequence

from sparsecast.benchmark.journal import measurements_folder
from sparsecast.benchmark.record_differences import differences
from sparsecast.benchmark.record_files import MergedRecords
from sparsecast.results.differences import Differences
from sparsecast.system.addresses import Place


def merge(places: Sequence[Place], output: Place) -> MergedRecords:
    """Write the Records of many files into one Parquet file, a row each, for any program that reads Parquet.

    Its columns are those of a Record, and ``schema``, ``machine``, ``host`` and ``matrix_name``.

    Parameters
    ----------
    places : sequence of paths or addresses
        Profiles, journals, merged files, or folders of them; without any, what is kept here.
    output : path or address
        Such as ``"records.parquet"`` or ``"s3://BUCKET/records.parquet"``.

    Raises
    ------
    InputError
        If nothing is there, or it cannot be read, if one name stands for two machines, or if there are no
        Records.
    ProfileError
        If a file is damaged. A journal whose last line was cut short counts up to there, with a note.
    StorageError
        If the file cannot be written.
    """
    merged = MergedRecords.of(places or [measurements_folder()])
    merged.write(output)
    return merged


def compare_results(a: Place, b: Place) -> tuple[Differences, list[str]]:
    """Return how the measured times of B differ from those of A, and what of the files does not count.

    Parameters
    ----------
    a, b : path or address
        A profile, journal or merged file, or a folder of them. Of several machines, each is compared with
        itself; of one each, one with the other.

    Raises
    ------
    InputError
        As from `merge`, and if they have no machine, or no product, in common.
    ProfileError
        If a file is damaged.
    """
    A, B = MergedRecords.of([a]), MergedRecords.of([b])
    return differences(A, B), [*A.notes, *B.notes]
