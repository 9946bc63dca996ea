"""sparsecast paper gahvari-2007 on stored Records: its tables, and what is refused."""

import dataclasses
from itertools import product

import pytest

from sparsecast.benchmark.journal import journal
from sparsecast.devices import DEVICES
from sparsecast.formats.bcsr import BLOCK_SIDES
from sparsecast.machines.profile import MatrixEntry, Profile
from sparsecast.matrices.problem import Problem
from sparsecast.papers.gahvari_2007.real_matrices import REAL_SUITE, TWINS, real_journal
from sparsecast.papers.gahvari_2007.search_space import UNBLOCKED, Point, Series
from sparsecast.papers.gahvari_2007.summary import AGAIN, SUITE
from sparsecast.records import Parameters

WHOLE, PART = Problem.named("gallery:poisson2d?n=20"), Problem.named("gallery:poisson2d?n=10")


@pytest.fixture
def stored(recorded, data_folder):
    """Keep made-up speeds: CSR 100 MFLOP/s, blocks 100 times their rows, the paper's twin 80, ours 100."""
    csr, bcsr = (recorded.select(format=name, dtype="float64", threads=1)[0] for name in ("csr", "bcsr"))

    def record(template, matrix, suite, mflops, **changed):
        candidate = dataclasses.replace(template.candidate, **changed)
        return dataclasses.replace(
            template,
            matrix=matrix,
            suite=suite,
            time_s=2e-6 * template.nnz / mflops,
            candidate=candidate,
            kernel_version=DEVICES.get("cpu").kernels.get(candidate.format).version,
        )

    points = [Point(series, d, 29) for series in (UNBLOCKED, Series((2, 2))) for d in (512, 1024)]
    records = [
        record(csr, point.name, suite, 100.0 * point.series.block[0])
        for suite in (SUITE, AGAIN)
        for point in points
    ]
    entries = [MatrixEntry(point.name, point.name, WHOLE.structure) for point in points]
    profile = Profile(recorded.machine, ()).with_records(records, entries)
    path = data_folder / "rated.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    profile.save(path)
    with journal(real_journal(recorded.machine)) as add:
        for problem, heights in ((WHOLE, BLOCK_SIDES), (PART, BLOCK_SIDES[:2])):
            name = problem.specification
            for r, c in product(heights, BLOCK_SIDES):
                if (r, c) != (1, 1):
                    block = Parameters({"block": (r, c)})
                    add(problem, [record(bcsr, name, REAL_SUITE, 100.0 * r, parameters=block)])
                if c == BLOCK_SIDES[-1]:
                    add(problem, [record(csr, name, REAL_SUITE, 100.0)])
        for kind, mflops in zip(TWINS, (80.0, 100.0), strict=True):
            twin = WHOLE.twin(kind, 1)
            add(twin, [record(csr, twin.specification, REAL_SUITE, mflops)])
    return path


def test_stored_matrices_stand_next_to_the_figures(run, exact, stored, tmp_path):
    outcome = run("paper", "gahvari-2007", "--from", stored, "--figure", tmp_path / "page", "--json")
    report = exact(outcome, "paper NAME")
    assert all(row for table in report["tables"] for row in table["rows"])
    figures, _, space, scores, twins, matrices = (table["rows"] for table in report["tables"])
    assert figures[0]["unblocked_median_mflops"] == pytest.approx(100)
    ours = {row["quantity"]: row["ours"] for row in space}
    assert (ours["real matrices"], ours["generated ones, and twins of real ones"]) == (0, 1)
    (matrix,) = matrices
    assert matrix["matrix"] == WHOLE.name, "what was measured in part is left out"
    assert (matrix["untuned_mflops"], matrix["tuned_mflops"]) == pytest.approx((100, 800))
    assert matrix["block"].startswith("8x")
    assert (scores[0]["untuned_error"], scores[0]["tuned_error"]) == pytest.approx((0, 0.75))
    assert scores[0]["max_ratio"] == pytest.approx(0.25)
    assert {row["twin"]: row["median_error"] for row in twins} == pytest.approx(
        {"again": 0, "banded": 0.25, "ours": 0}
    )
    page = (tmp_path / "page" / "gahvari-2007.md").read_text(encoding="utf-8")
    for figure in ("figures-3-to-5", "figures-8-to-10", "figures-11-to-13"):
        assert f"gahvari-2007-{figure}.svg" in page
        assert (tmp_path / "page" / f"gahvari-2007-{figure}.svg").exists()
