"""Build the wheel and the source distribution, and try them with every Python that is here: ``make package``.

Each is installed into an environment of its own, outside of the source, and asked for a forecast of a machine
that comes with the package. Of OLDEST to NEWEST, a Python that is not here is named, and left out. With the
first one, pip, pipx and uvx then run the command from a folder that is the only index they have. Exit status
1 where something fails. A tag on the commit must be that of the version.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path

ROOT = Path(__file__).parents[1]

#: Minor versions of Python 3.
OLDEST, NEWEST = 11, 14

#: Files that only an installed package shows to be in it, and what reads them.
_DATA = """
from importlib.resources import files
pages = files("sparsecast.reports.pages")
for name in ("base.html", "page.css", "page.js"):
    assert pages.joinpath(name).is_file(), name
"""


#: Fields that the metadata must have. Home page and repository are missing: the project has no address yet.
_FIELDS = (
    *("Summary", "Author", "License-Expression", "License-File", "Keywords", "Requires-Python"),
    "Description-Content-Type",
)

#: Forecasts at once: no matrix is read and no kernel is compiled.
_ASKED = ("predict", "counts:rows=1000&cols=1000&nnz=5000", "--profile", "nvidia-v100", "--json")

_QUIETLY = ("--disable-pip-version-check", "--quiet")


def refuse_incomplete(wheel: Path) -> None:
    """Raise if a wheel is not for every platform, or its metadata lack a field or a Python that is tried."""
    if not wheel.name.endswith("-py3-none-any.whl"):
        raise SystemExit(f"{wheel.name}: expected a wheel of Python alone; take what is compiled out of it")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = HeaderParser().parsestr(archive.read(name).decode("utf-8"))
    classifiers = metadata.get_all("Classifier") or []
    pythons = [f"Programming Language :: Python :: 3.{minor}" for minor in range(OLDEST, NEWEST + 1)]
    lacking = [field for field in _FIELDS if not metadata[field]]
    if lacking := [*lacking, *(each for each in pythons if each not in classifiers)]:
        raise SystemExit(f"{wheel.name}: expected {lacking[0]} in its metadata; add it to pyproject.toml")


def pythons() -> Iterator[tuple[str, str | None]]:
    """Yield each version of Python from OLDEST to NEWEST with its program, None where it is not here."""
    names = _output("pyenv", "versions", "--bare").split() if shutil.which("pyenv") else []
    kept = [f"{_output('pyenv', 'prefix', name).strip()}/bin/python" for name in names if "/" not in name]
    for minor in range(OLDEST, NEWEST + 1):
        version = f"3.{minor}"
        candidates = [*filter(None, [shutil.which(f"python{version}")]), *kept, sys.executable]
        yield version, next((each for each in candidates if _version(each) == version), None)


def _version(program: str) -> str:
    """Return the version of a Python, such as 3.12; empty where it does not start, as a shim may."""
    asked = [program, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def tried(program: str, package: Path, version: str) -> None:
    """Install a package into an environment of its own, and use it."""
    with tempfile.TemporaryDirectory(prefix="sparsecast-package-") as name:
        folder = Path(name)
        _run(program, "-m", "venv", str(folder / "env"))
        python, command = str(folder / "env/bin/python"), str(folder / "env/bin/sparsecast")
        # Most of what is installed is never imported here: to compile all of it takes half of the time.
        _run(python, "-m", "pip", "install", *_QUIETLY, "--no-compile", str(package))
        inside = {"cwd": folder, "env": os.environ | {"SPARSECAST_HOME": str(folder / "home")}}
        assert _output(command, "--version", **inside) == f"sparsecast {version}\n"
        _run(python, "-c", _DATA, **inside)
        _run(command, "structure", "gallery:poisson2d?n=30", "--json", **inside)
        asked = ("predict", "gallery:poisson2d?n=30", "--profile", "nvidia-v100", "--json")
        assert json.loads(_output(command, *asked, **inside))["forecasts"][0]["time_s"] > 0


def run_from_index(program: str, wheel: Path) -> Iterator[tuple[str, str]]:
    """Run the command by its name alone with pip, pipx and uvx; yield each with why it could not be tried.

    Their only index is a folder with the wheel and what it needs. pipx takes its own pip from there, too.
    """
    with tempfile.TemporaryDirectory(prefix="sparsecast-index-") as name:
        folder = Path(name)
        index = folder / "index"
        alone = ("--no-index", "--find-links", str(index))
        env = {name: text for name, text in os.environ.items() if not name.startswith(("PIP", "UV_"))}
        env |= {"PIPX_HOME": str(folder / "pipx"), "UV_CACHE_DIR": str(folder / "uv"), "PATH": os.defpath}
        inside = {"cwd": folder, "env": env | {"SPARSECAST_HOME": str(folder / "home")}}
        pip = _made(program, folder / "pip")
        _run(str(pip / "pip"), "download", *_QUIETLY, "--dest", str(index), str(wheel), "pip")
        _run(str(pip / "pip"), "install", *_QUIETLY, "--no-compile", *alone, "sparsecast", **inside)
        lines = {
            "pip install": (str(pip / "sparsecast"),),
            "pipx run": ("pipx", "run", "--python", program, f"--pip-args={' '.join(alone)}", "sparsecast"),
            "uvx": ("uvx", *alone, "--python", program, "sparsecast"),
        }
        for way, (command, *arguments) in lines.items():
            if way != "pip install":
                tool = _made(program, folder / command)
                asked = (str(tool / "pip"), "install", *_QUIETLY, "uv" if command == "uvx" else command)
                done = subprocess.run(asked, capture_output=True, text=True, check=False)
                if done.returncode:
                    yield way, f"not tried, because it cannot be installed: {done.stderr.strip()[-200:]}"
                    continue
                command = str(tool / command)
            forecasts = json.loads(_output(command, *arguments, *_ASKED, **inside))["forecasts"]
            assert forecasts[0]["time_s"] > 0
            yield way, "forecasts, from a folder as its index"


def _made(program: str, folder: Path) -> Path:
    """Make an environment; return the folder of its programs."""
    _run(program, "-m", "venv", str(folder))
    return folder / "bin"


def refuse_other_versions(version: str) -> None:
    """Raise if the citation, the changes or a tag on the commit are of another version."""
    for name, wanted in (("CITATION.cff", f"\nversion: {version}\n"), ("CHANGELOG.md", f"\n## {version} ")):
        if wanted not in (ROOT / name).read_text(encoding="utf-8"):
            raise SystemExit(f"{name}: expected {wanted.strip()!r}, the version in version.py; correct it")
    if not (ROOT / ".git").exists():
        return
    tags = _output("git", "-C", str(ROOT), "tag", "--points-at", "HEAD").split()
    if tags and f"v{version}" not in tags:
        raise SystemExit(
            f"tag {tags[0]}: expected v{version}, the version in version.py; correct one of them"
        )
    if tags and f"\n## {version} - not released" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        raise SystemExit(f"CHANGELOG.md: expected the date of {version} beside the tag; write it")


def _run(*command: str, **options: object) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **options)  # type: ignore[call-overload]


def _output(*command: str, **options: object) -> str:
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload]
    return str(done.stdout)


def main() -> int:
    """Build, try, and say what was done; return the exit status."""
    with tempfile.TemporaryDirectory(prefix="sparsecast-dist-") as name:
        _run(sys.executable, "-m", "build", "--outdir", name, str(ROOT))
        (wheel,), (sdist,) = Path(name).glob("*.whl"), Path(name).glob("*.tar.gz")
        _run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist))
        refuse_incomplete(wheel)
        version = wheel.name.split("-")[1]
        refuse_other_versions(version)
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes; {sdist.name}: {sdist.stat().st_size:,} bytes")
        found = dict(pythons())
        here = [(version_of, program) for version_of, program in found.items() if program is not None]
        if not here:
            print("no Python that Sparsecast supports is here: install one of 3.11 to 3.14", file=sys.stderr)
            return 1
        for number, (version_of, program) in enumerate(here):
            for package in (wheel, sdist) if number == 0 else (wheel,):
                tried(program, package, version)
                kind = "wheel" if package is wheel else "source distribution"
                print(f"Python {version_of}: the {kind} is installed, and forecasts", flush=True)
        for way, result in run_from_index(here[0][1], wheel):
            print(f"{way}: {result}", flush=True)
        missing = [version_of for version_of, program in found.items() if program is None]
        if missing:
            print(f"not tried, because no such Python is here: {', '.join(missing)}")
        shutil.rmtree(ROOT / "dist", ignore_errors=True)  # the folder is uploaded whole
        (ROOT / "dist").mkdir()
        for package in (wheel, sdist):
            shutil.copy(package, ROOT / "dist")
    return 0


if __name__ == "__main__":
    sys.exit(main())
