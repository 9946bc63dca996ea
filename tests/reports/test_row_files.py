"""The file of the rows of an evaluation."""

import pyarrow.parquet
import pytest

from sparsecast.cli.options import refuse_no_parquet
from sparsecast.errors import InputError
from sparsecast.results.evaluation import EVALUATION_ROW
from sparsecast.system.tabular import document


def test_rows_are_written_with_the_keys_of_the_document(evaluation, tmp_path):
    path = tmp_path / "rows.parquet"
    evaluation.write_rows(path)
    lines = pyarrow.parquet.read_table(path).to_pylist()
    assert len(lines) == len(evaluation.rows) == 20
    for line, row in zip(lines, evaluation.rows, strict=True):
        expected = document(EVALUATION_ROW, row)
        assert set(line) == set(expected)
        known = {name: value for name, value in line.items() if value is not None and name != "parameters"}
        assert known == {k: v for k, v in expected.items() if v is not None and k != "parameters"}
    assert {line["predicted_s"] for line in lines if line["model"] == "joules"} == {None}


def test_rows_that_cannot_be_written_are_said(evaluation, tmp_path):
    (tmp_path / "absent").write_text("a file in the way")
    with pytest.raises(InputError):
        evaluation.write_rows(tmp_path / "absent" / "rows.parquet")
    with pytest.raises(InputError):
        refuse_no_parquet("--rows", str(tmp_path / "rows.csv"))
