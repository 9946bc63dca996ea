"""Documents have exactly the keys that the columns of their results list, and CSV files the table."""

import csv

import pytest

SMALL = "gallery:poisson2d?n=30"
MACHINES = ("--machines", "{foreign},nvidia-a100")

#: Commands that measure nothing, by the name of their document.
COMMANDS = {
    "structure": ("structure", SMALL),
    "partition": ("partition", SMALL, "--ranks", "4"),
    "predict": ("predict", SMALL, "--profile", "{foreign}"),
    "plan": ("plan", SMALL, "--profile", "{foreign}"),
    "plan --where PLACE,PLACE": ("plan", SMALL, "--where", "{foreign},nvidia-a100"),
    "compare": ("compare", SMALL, *MACHINES),
    "cluster": ("cluster", SMALL, "--ranks", "4,16", "--profile", "xeon-gold-6154-edr"),
    "machines": ("machines",),
    "machines show": ("machines", "show", "{foreign}"),
    "doctor": ("doctor",),
    "paper": ("paper",),
    "evaluate": ("evaluate", "--replay", "--models", "linear", "--profile", "{foreign}", "--threads", "1"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_documents_have_exactly_the_listed_keys(run, exact, foreign, name):
    outcome = run(*(part.format(foreign=foreign) for part in COMMANDS[name]), "--json")
    exact(outcome, name)


@pytest.mark.parametrize("name", ["predict", "partition", "cluster", "doctor"])
def test_csv_files_have_the_table_beside_the_text(run, foreign, tmp_path, name):
    path, page = tmp_path / "table.csv", tmp_path / "page.md"
    arguments = (part.format(foreign=foreign) for part in COMMANDS[name])
    outcome = run(*arguments, "--csv", path, "--markdown", page)
    assert outcome.status == 0 and outcome.out
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 1 and all(len(row) > 1 for row in rows)
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("**") and lines[3].startswith("| ---") and len(lines) >= len(rows) + 3
