"""A headless Chromium that shows pages of records; a page that errs or asks for anything fails."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lib import viz_records
from weft.viz.html import page

SIZE = {"width": 1400, "height": 850}
PATIENCE = 300_000  # milliseconds: a busy machine is not an error


class Shown:
    """A page in the browser, and what went wrong on it."""

    def __init__(self, tab, file: Path) -> None:
        self.tab = tab
        self.file = file
        self.errors: list[str] = []
        self.requests: list[str] = []
        tab.set_default_timeout(PATIENCE)
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        tab.on("console", self._note)
        tab.on("request", self._request)

    def _note(self, message) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _request(self, request) -> None:
        if request.url.split("#")[0] != self.file.as_uri():
            self.requests.append(request.url[:200])

    def open(self, address: str = "") -> Shown:
        """Load the page anew in the state of an address."""
        self.tab.goto("about:blank")
        self.tab.goto(self.file.as_uri() + address)
        self.wait()
        return self

    def wait(self, name: str = "") -> None:
        """Until a view is complete: any, or the one of that name."""
        wanted = f"[data-shown={name}]" if name else "[data-shown]:not([data-shown=''])"
        self.tab.wait_for_selector(f"body{wanted}, .failure")

    def address(self) -> str:
        """What stands after the # of the page's address, decoded."""
        return self.tab.evaluate("decodeURIComponent(location.hash.slice(1))")

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements that a selector names."""
        return self.tab.eval_on_selector_all(selector, "all => all.map(e => e.textContent)")

    def count(self, selector: str) -> int:
        """How many visible elements a selector names."""
        return self.tab.locator(f"{selector}:visible").count()

    def check(self) -> None:
        """No error, no message of one, no request."""
        assert self.errors == []
        assert self.requests == []
        assert self.texts(".failure") == []


@pytest.fixture(scope="session")
def chromium():
    """One browser a process."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs pip install playwright")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("needs the program chromium (Debian's package of that name)")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def file_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file with the page of a record of ``tests/lib/viz_records.py``."""
    folder = tmp_path_factory.mktemp("pages")

    def write(name: str) -> Path:
        file = folder / f"{name}.html"
        if not file.exists():
            file.write_text(page(getattr(viz_records, name)()), encoding="utf-8")
        return file

    return write


@pytest.fixture
def show(chromium, file_of: Callable[[str], Path]) -> Iterator[Callable[..., Shown]]:
    """``show(record, address)``: opens a page; all of them must have gone well in the end."""
    contexts, pages = [], []

    def open_page(name: str, address: str = "", **settings: object) -> Shown:
        context = chromium.new_context(**{"viewport": SIZE, "color_scheme": "light", **settings})
        contexts.append(context)
        pages.append(Shown(context.new_page(), file_of(name)))
        return pages[-1].open(address)

    yield open_page
    for shown in pages:
        shown.check()
    for context in contexts:
        context.close()
