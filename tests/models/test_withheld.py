"""Questions that know less than the Records: a model that learned with as little, and its intervals."""

import dataclasses
from statistics import fmean

import pytest

from sparsecast import api
from sparsecast.errors import FeatureError
from sparsecast.features.analysis import structure
from sparsecast.features.structure import Structure
from sparsecast.machines.profile import MatrixEntry
from sparsecast.matrices.gallery import gallery
from sparsecast.models.model import HELD_OUT_SUITE
from sparsecast.models.training import ROW_ORDER, TrainingSet, Withheld, with_even_rows

MATRIX = gallery("circuit", n=20000)
WHOLE = structure(MATRIX, threads=1)
COUNTS = Structure(WHOLE.rows, WHOLE.cols, WHOLE.nnz)


def without(*names):
    groups = {name: group for name, group in WHOLE.groups.items() if name not in names}
    return Structure(WHOLE.rows, WHOLE.cols, WHOLE.nnz, groups)


@pytest.fixture
def asked(recorded, data_folder):
    """Forecasts of a Structure from the recorded profile."""
    return lambda found, **named: api.predict(found, recorded, threads=1, drift_correction=False, **named)


def test_intervals_are_those_of_held_out_matrices_of_which_as_little_is_known(asked, recorded):
    notes = asked(without("locality")).notes
    assert any("without locality" in note for note in notes)
    inside, found = [], {}
    for record in recorded.select(dtype="float64", threads=1, suite=HELD_OUT_SUITE):
        if record.matrix not in found:
            known = recorded.structure(record)
            found[record.matrix] = asked(Structure(known.rows, known.cols, known.nnz))
        inside += [
            f.low_s <= record.time_s <= f.high_s
            for f in found[record.matrix]
            if f.candidate == record.candidate and f.low_s
        ]
    assert len(inside) > 10 and fmean(inside) >= 0.8


def test_what_is_known_is_read_from_stored_structures_as_from_structures(recorded):
    """Also of an older version that is still read, and not of one that is not."""
    older = WHOLE.to_dict()
    older["symmetry"] = {"version": 1, "triangle_nnz": None}
    older["bands"] = {**older["bands"], "version": 0}
    entry = MatrixEntry("gallery:circuit?n=20000", "circuit", older)
    record = dataclasses.replace(recorded.records[0], matrix=entry.specification)
    training = TrainingSet(recorded.machine, (record,), {entry.specification: entry})
    assert Withheld.of(COUNTS, training).names == {*WHOLE.groups, ROW_ORDER} - {"bands"}


def test_counts_alone_stand_for_even_rows_and_that_is_said(asked):
    found = asked(COUNTS)
    assert found.structure == COUNTS  # what was known, not what was assumed
    assert any("row lengths" in note and "equally long" in note for note in found.notes)
    assert {"csr", "coo", "ell"} <= {f.candidate.format for f in found}
    assert {"bcsr", "dia"} & set(found.refused)


def test_the_training_set_loses_what_the_question_lacks(recorded):
    training = TrainingSet.of(recorded)
    withheld = Withheld.of(without("locality", "bands"), training)
    assert withheld.names == {"locality", "bands"}
    less = withheld.training(training)
    assert all(less.structure(r).lacks(["locality", "bands"]) for r in less.records)
    assert less.fingerprint != training.fingerprint
    assert less.having(["locality"]).records == ()  # not computed again from the matrices
    assert Withheld.of(WHOLE, training).training(training) is training
    assert ROW_ORDER in Withheld.of(COUNTS, training).names


@pytest.mark.parametrize(("rows", "nnz"), [(0, 0), (3, 0), (3, 7), (10, 10)])
def test_even_rows_are_rows_that_a_matrix_can_have(rows, nnz):
    found = with_even_rows(Structure(rows, 10, nnz)).checked()
    lengths = found.row_lengths
    assert lengths.max - lengths.min <= 1 and lengths.changes is None


def test_what_the_model_cannot_do_without_is_said(asked, monkeypatch):
    from sparsecast.models import DEFAULT_MODEL, MODELS

    monkeypatch.setattr(MODELS.get(DEFAULT_MODEL), "groups", ("row_lengths", "locality"))
    with pytest.raises(FeatureError):
        asked(COUNTS)
