"""sparsecast report MATRIX, sparsecast report MATRIX|FOLDER..."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from sparsecast import api
from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.options import argument, option
from sparsecast.cli.output import Output
from sparsecast.cli.reading import counted_bar, profile_for, read_matrix, shown_parts
from sparsecast.errors import InputError
from sparsecast.system.texts import counted


@command("report", Panel.MEASUREMENTS)
def report(
    matrices: Annotated[
        list[str],
        argument(
            "MATRIX|FOLDER...", "A file or gallery matrix; several of them, or folders, are a collection."
        ),
    ],
    output: Annotated[
        Path | None,
        option("FILE.html", "Output file; NAME.html in this folder by default.", "--output", "-o"),
    ] = None,
    force: options.ForceOption = False,
    products: options.ProductsOption = 1000,
    models: Annotated[
        str | None, option("NAME[,NAME]", "Models to score on a collection; all by default.")
    ] = None,
    profile: options.ProfileOption = None,
    threads: options.ThreadsOption = None,
    dtype: options.DtypeOption = None,
    device: options.ForecastDeviceOption = None,
    library: options.LibraryOption = None,
    model: options.ModelOption = None,
) -> Output:
    """Write an HTML page about a matrix or a collection; no format is measured."""
    from sparsecast.reports.pages import rendering

    rendering.refuse_undrawable()
    setting = {"threads": threads, "dtype": dtype, "device": device, "library": library, "model": model}
    is_collection = len(matrices) > 1 or Path(matrices[0]).is_dir()
    if models is not None and not is_collection:
        raise InputError(f"--models {models} for one matrix: expected a collection; name its --model")
    request = _Request(output, force, profile, setting, products)
    if not is_collection:
        return _of_matrix(matrices[0], request)
    names = None if models is None or models == "all" else models.split(",")
    return _of_collection(matrices, names, request)


@dataclass(frozen=True, slots=True)
class _Request:
    """The options, those of a session in `setting`."""

    output: Path | None
    force: bool
    profile: str | None
    setting: dict[str, Any]
    products: int

    def path(self, name: str) -> Path:
        """Return where the page goes that is named so by default; refuse what cannot be written there."""
        from sparsecast.reports.pages.rendering import file_name

        path = self.output or Path(f"{file_name(name)}.html")
        options.refuse_unwritable(path)
        options.refuse_taken(path, self.force)
        return path

    def session(self, matrix: api.Problem) -> api.Session:
        """Return the session that forecasts, with this machine calibrated first if need be."""
        asked = {name: self.setting[name] for name in ("threads", "dtype", "device")}
        return api.session(profile_for(matrix, self.profile, **asked), **self.setting)


def _of_matrix(matrix: str, request: _Request) -> Output:
    from sparsecast.reports.pages import rendering
    from sparsecast.reports.pages.matrix_page import matrix_page
    from sparsecast.results.reports import DOCUMENTS

    problem = read_matrix(matrix)
    path = request.path(problem.name)
    session = request.session(problem)
    with shown_parts():
        report = api.matrix_report(session, problem, products=request.products)
    written = rendering.write(matrix_page(report), path)
    item = {
        "matrix": problem.name,
        "profile": report.profile.name,
        "path": str(path),
        "bytes": written,
        "next_steps": report.next_steps,
    }
    shown = [f"{path}: {written / 1e6:.1f} MB; open it in a browser."]
    shown += [step.sentence() for step in report.next_steps]
    return Output(DOCUMENTS["report"], item, shown, report.prediction.notes)


def _of_collection(matrices: list[str], models: list[str] | None, request: _Request) -> Output:
    """Write a page for each matrix into a folder, then the page that tells of all and links to them."""
    from sparsecast.reports.pages import rendering
    from sparsecast.reports.pages.collection_page import collection_page
    from sparsecast.reports.pages.matrix_page import matrix_page
    from sparsecast.results.reports import DOCUMENTS
    from sparsecast.system.tabular import lines_of

    fits = api.fits_of(models)
    problems, refused = api.named_problems(matrices)
    path = request.path(Path(matrices[0]).resolve().name)
    folder = path.with_name(f"{path.stem}-pages")
    options.refuse_taken(folder, request.force)
    with shown_parts():
        first = api.first_readable(problems, refused)
    session = request.session(first)
    profile, _ = session.question(first)
    paths = {name: folder / file for name, file in rendering.file_names(problems).items()}
    reports = {}
    with counted_bar("writing pages", len(problems)) as advance:
        for name, report in api.matrix_reports(session, problems, refused, products=request.products):
            rendering.write(matrix_page(report), paths[name])
            reports[name] = report.released()
            advance()
    model = request.setting["model"]
    with counted_bar("fitting", fits) as advance:
        collection = api.collection_report(
            matrices, reports, profile, refused, model=model, models=models, on_fold=advance
        )
    links = {name: quote(f"{folder.name}/{paths[name].name}") for name in reports}
    written = rendering.write(collection_page(collection, links), path)
    unmeasured = collection.unmeasured
    pages = [
        {"matrix": name, "path": str(paths[name]), "measured": name not in unmeasured} for name in reports
    ]
    item = {
        "matrices": pages,
        "profile": profile.name,
        "path": str(path),
        "bytes": written,
        "evaluation": collection.evaluation,
        "refused": refused,
    }
    measured = f"{len(reports) - len(unmeasured):,} of them measured"
    shown = [f"{path}: {counted(len(reports), 'matrix')}, {measured}; open it in a browser."]
    shown += [f"Left out: {line}" for line in lines_of(refused)]
    return Output(DOCUMENTS["report FOLDER"], item, shown)
