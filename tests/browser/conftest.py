"""Pages in a browser: what draws and shows them, and the pages."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scipy.io import mmwrite

import sparsecast as sc
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

#: The name of a matrix that is markup, if a page takes it for that.
MARKUP = "<img src=x onerror=alert(1)>"


@dataclass
class Browser:
    """Chromium on a page, with what it logged and asked for since the page was opened."""

    driver: Any
    asked: list[str]

    def open(self, page: Path, *, width: int = 1280, is_dark: bool = False, has_script: bool = True) -> None:
        """Show a page, and wait until its charts are drawn again."""
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.tell("Emulation.setDeviceMetricsOverride", **metrics)
        self.tell("Emulation.setEmulatedMedia", media="screen", features=[scheme])
        self.tell("Emulation.setScriptExecutionDisabled", value=not has_script)
        self.logged()
        self.asked.clear()
        self.driver.get(page.as_uri())
        if has_script:
            from selenium.webdriver.support.ui import WebDriverWait

            drawn = "return document.querySelectorAll('[data-chart]:not(:has(.vega-embed svg))').length == 0"
            WebDriverWait(self.driver, 20).until(lambda driver: driver.execute_script(drawn))

    def tell(self, command: str, **values: Any) -> Any:
        """Send a command of the protocol of Chromium's tools."""
        return self.driver.execute_cdp_cmd(command, values)

    def run(self, script: str, *values: Any) -> Any:
        """Return what a function body gives on the page."""
        return self.driver.execute_script(script, *values)

    def logged(self) -> list[str]:
        """Return what was logged since the last call, and note what was asked for."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self.asked.append(message["params"]["request"]["url"])
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def shot(self, path: Path) -> None:
        """Keep a picture of the whole page."""
        width, height = self.run("return [innerWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        found = self.tell("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(found["data"]))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium; skips where it, its driver or Selenium is missing."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="no Selenium: make test-browser installs it")
    chromium, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if not (chromium and driver):
        pytest.skip("no chromium and chromedriver on the path: make test-browser says where they are from")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield Browser(started, [])
    started.quit()


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that pictures are kept in: SPARSECAST_SCREENSHOTS, or a temporary one."""
    named = os.environ.get("SPARSECAST_SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def collection(recorded_path: Path, keep_times: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a collection: two matrices that were measured, one of them called MARKUP, one that was not.

    The pages of the matrices are beside it.
    """
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("matrices")
    page, profile = tmp_path_factory.mktemp("pages") / "all.html", Profile.load(recorded_path)
    matrices = {"even": sc.gallery("poisson2d", n=40), MARKUP: sc.gallery("circuit", n=900)}
    for name, A in (matrices | {"new": sc.gallery("arrow", n=500)}).items():
        mmwrite(folder / f"{name}.mtx", A)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARSECAST_HOME", str(home))
        for name, factor in zip(matrices, (1.2, 3.0), strict=True):
            keep_times(profile, Problem.named(folder / f"{name}.mtx"), factor)
        code = "from sparsecast.cli.main import main; main()"
        asked = ("--profile", recorded_path, "--threads", "1", "--models", "linear,guo", "-o", page)
        line = [sys.executable, "-c", code, "report", folder, *asked]
        done = subprocess.run(list(map(str, line)), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return page


@pytest.fixture(scope="session")
def matrix(collection: Path) -> Path:
    """The page of a matrix that was measured."""
    return collection.with_name("all-pages") / "even.html"


@pytest.fixture(params=["collection", "matrix"])
def page(request: pytest.FixtureRequest) -> Path:
    """Each page in turn."""
    found: Path = request.getfixturevalue(request.param)
    return found
