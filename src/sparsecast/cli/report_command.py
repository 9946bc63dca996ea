"""sparsecast report MATRIX, sparsecast report MATRIX|FOLDER..."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from sparsecast.cli import options
from sparsecast.cli.profile_choice import profile_for
from sparsecast.errors import InputError


def command(
    matrices: Annotated[
        list[str],
        typer.Argument(
            metavar="MATRIX|FOLDER...", help="A file or gallery matrix; or a collection: folders, several."
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.html", help="NAME.html here by default.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace pages that are there.")] = False,
    iterations: Annotated[int, typer.Option(min=1, help="Products that the plan is for.")] = 1000,
    models: Annotated[
        str | None,
        typer.Option(metavar="NAME[,NAME]", help="Of a collection: models to score; all by default."),
    ] = None,
    profile: options.ProfileOption = None,
    threads: options.ThreadsOption = None,
    dtype: options.DtypeOption = None,
    model: options.ModelOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Write a page about a matrix, or pages about a collection, to look at and to send. Measures nothing."""
    from sparsecast.reports.pages import rendering

    rendering.refuse_undrawable()
    asked: dict[str, Any] = {"iterations": iterations, "threads": threads, "dtype": dtype, "model": model}
    if len(matrices) > 1 or Path(matrices[0]).is_dir():
        names = None if models is None or models == "all" else models.split(",")
        _of_collection(matrices, output, force, profile, names, asked, as_json)
    elif models is not None:
        raise InputError(f"--models {models} for one matrix: expected a collection; name its --model")
    else:
        _of_matrix(matrices[0], output, force, profile, asked, as_json)


def _of_matrix(
    matrix: str, output: Path | None, force: bool, profile: str | None, asked: dict[str, Any], as_json: bool
) -> None:
    from sparsecast import api
    from sparsecast.reports.pages import rendering
    from sparsecast.reports.pages.matrix_page import matrix_page

    found = api.read_matrix(matrix)
    path = output or Path(f"{rendering.file_name(found.name)}.html")
    options.refuse_unwritable(path)
    _refuse_taken(path, force)
    chosen = profile_for(found, profile, asked["threads"], asked["dtype"], None)
    report = api.matrix_report(found, chosen, **asked)
    options.warn(report.prediction.notes)
    written = rendering.write(matrix_page(report), path)
    document = {"matrix": found.name, "profile": chosen.name, "path": str(path), "bytes": written}
    options.show(as_json, document, f"{path}: {written / 1e6:.1f} MB; open it in a browser.")


def _of_collection(
    matrices: list[str],
    output: Path | None,
    force: bool,
    profile: str | None,
    models: list[str] | None,
    asked: dict[str, Any],
    as_json: bool,
) -> None:
    """Write a page for each matrix into a folder, then the page that tells of all and links to them."""
    from sparsecast import api
    from sparsecast.benchmark.replay import FOLDS
    from sparsecast.matrices.reading import collected
    from sparsecast.reports import documents
    from sparsecast.reports.pages import rendering
    from sparsecast.reports.pages.collection_page import collection_page
    from sparsecast.reports.pages.matrix_page import matrix_page
    from sparsecast.reports.progress import counted_bar

    fits = FOLDS * sum(len(each.compared) for each in api.chosen_models(models))
    problems, refused = api.named_problems(collected(matrices))
    path = output or Path(f"{rendering.file_name(Path(matrices[0]).resolve().name)}.html")
    folder = path.with_name(f"{path.stem}-pages")
    for place in (path, folder):
        _refuse_taken(place, force)
    first = api.first_readable(problems, refused)
    chosen = profile_for(first, profile, asked["threads"], asked["dtype"], None)
    paths = {name: folder / file for name, file in rendering.file_names(problems).items()}
    reports = {}
    with counted_bar(options.screen(), "writing pages", len(problems)) as advance:
        for name, report in api.matrix_reports(problems, chosen, refused, **asked):
            rendering.write(matrix_page(report), paths[name])
            reports[name] = report.released()
            advance()
    with counted_bar(options.screen(), "fitting", fits) as advance:
        scored: dict[str, Any] = {"model": asked["model"], "models": models, "on_fold": advance}
        found = api.collection_report(matrices, reports, chosen, refused, **scored)
    links = {name: quote(f"{folder.name}/{paths[name].name}") for name in reports}
    written = rendering.write(collection_page(found, links), path)
    unmeasured = found.unmeasured
    document = {
        "matrices": [
            {"matrix": name, "path": str(paths[name]), "measured": name not in unmeasured} for name in reports
        ],
        "profile": chosen.name,
        "path": str(path),
        "bytes": written,
        "models": documents.evaluation(found.evaluation)["models"],
        "refused": refused,
    }
    measured = len(reports) - len(unmeasured)
    said = f"{path}: {len(reports):,} matrices, {measured:,} of them measured; open it in a browser."
    options.show(as_json, document, said, *(f"Left out: {name}: {why}" for name, why in refused.items()))


def _refuse_taken(path: Path, force: bool) -> None:
    """Raise if nothing can be written there, or something is there that nobody asked to replace."""
    if not path.is_dir():
        options.refuse_unwritable(path)
    if path.exists() and not force:
        raise InputError(
            f"{path} is there already: expected a new name; name another with -o, or replace it by --force"
        )
