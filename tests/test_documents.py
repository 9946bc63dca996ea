"""The documents: links lead to files, pages name all packages, toys and decisions, short pages stay short."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "examples/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if "_build" not in page.parts]
SHORT_PAGES = [("README.md", 120), ("docs/design.md", 130), ("docs/glossary.md", 44)]


def test_links_lead_to_files():
    broken = [
        f"{page}: {link}"
        for page in PAGES
        for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists()
    ]
    assert broken == []


@pytest.mark.parametrize(("page", "most"), SHORT_PAGES)
def test_short_pages_stay_short(page, most):
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= most


def test_every_toy_is_named_where_its_change_is_described():
    text = (ROOT / "docs/adding.md").read_text(encoding="utf-8")
    toys = {path.parent.name for path in (ROOT / "tests/proof/toys").glob("*/pyproject.toml")}
    assert {toy for toy in toys if f"`{toy}`" not in text} == set()


def test_the_map_has_the_layers_of_the_contract_in_their_order():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    [layers] = [contract["layers"] for contract in contracts["contracts"] if contract["type"] == "layers"]
    drawing = (ROOT / "docs/design.md").read_text(encoding="utf-8").split("```text")[2]
    drawn = re.findall(r"^[| ]  ?([a-z]+(?: \| [a-z]+)?)  ", drawing, re.MULTILINE)
    assert drawn == [layer.replace("sparsecast.", "") for layer in layers]


def test_the_files_that_the_map_names_exist():
    text = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    names = re.findall(r"`([a-z_]+/[a-z_/]+\.(?:py|toml))`", text)
    assert names and [name for name in names if not (ROOT / "src/sparsecast" / name).exists()] == []


def test_every_decision_is_listed():
    folder = ROOT / "docs/decisions"
    listed = re.findall(r"\((0\d{3}-[\w-]+\.md)\)", (folder / "README.md").read_text(encoding="utf-8"))
    assert listed == sorted(path.name for path in folder.glob("0*.md"))
