"""Results in notebooks: tables of HTML, and frames with one row for each of their rows."""

import pandas
import pytest

import sparsecast as sc
from sparsecast.api import replay


@pytest.fixture(scope="module")
def results(recorded):
    A = sc.gallery("circuit", n=3000)
    return {
        "prediction": sc.predict(A, recorded, threads=1),
        "plan": sc.plan(A, recorded, threads=1),
        "structure": sc.structure(A),
        "profile": recorded,
        "evaluation": replay(sc.session(recorded, threads=1), models=["linear"]),
    }


@pytest.mark.parametrize("name", ["prediction", "plan", "structure", "profile", "evaluation"])
def test_a_result_is_a_table_and_a_frame(results, name):
    result = results[name]
    table = result.table()
    assert len(result.to_frame()) == len(table.rows) > 0
    assert result._repr_html_().count("<tr>") == 1 + min(len(table.rows), 30)
    assert table.title in result._repr_html_()
    assert len(result.to_csv().splitlines()) == 1 + len(table.rows)
    assert len(result.to_markdown().splitlines()) == 2 + len(table.rows)


def test_times_are_numbers_of_the_forecasts(results):
    prediction, frame = results["prediction"], results["prediction"].to_frame()
    assert frame["time_s"].tolist() == [forecast.time_s for forecast in prediction]
    assert isinstance(frame, pandas.DataFrame) and frame["energy_j"].isna().all()
