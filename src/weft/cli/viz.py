"""``weft viz MODEL -o page.html``: one page that shows what the compiler did with a model.

For a file of trials (``weft viz trials.jsonl -o page.html``) the page shows the search of
``weft tune``.
"""

from __future__ import annotations

import argparse
import time
import webbrowser
from pathlib import Path

from weft.cli import pictures
from weft.cli.tables import print_table
from weft.runtime.artifact.weft_file import writable_path
from weft.support.errors import IRValueError
from weft.viz.search import HEADINGS, search_page, searches_of
from weft.viz.trace import write_trace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this subcommand."""
    pictures.add_arguments(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="where the page goes: page.html"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the page's data there")
    parser.add_argument(
        "--trace", type=Path, metavar="FILE", help="write the run there, for chrome://tracing"
    )
    parser.add_argument(
        "--no-times", action="store_true", help="do not run the model: the page has no times"
    )
    parser.add_argument("--open", action="store_true", help="show the page in a browser")


def run(options: argparse.Namespace) -> int:
    """Write the page, and print where it is."""
    outputs = [path for path in (options.output, options.json, options.trace) if path is not None]
    if not outputs:
        raise IRValueError("weft viz: expected -o page.html, --json FILE or --trace FILE")
    if options.open and options.output is None:
        raise IRValueError("weft viz: --open needs -o page.html")
    for path in outputs:
        writable_path(path)  # fail before the work, not after it
    if options.model.endswith(".jsonl"):
        return _show_search(options)
    begin = time.perf_counter()
    picture = pictures.picture(options)
    if options.no_times:
        picture.call = None
    if options.json is not None:
        options.json.write_text(picture.json(), encoding="utf-8")
    if options.trace is not None:
        write_trace(options.trace, picture.data)
    if options.output is not None:
        picture.save(options.output)
    seconds = time.perf_counter() - begin
    for path in outputs:
        print(f"{picture.title} -> {path}: {path.stat().st_size / 1e6:.1f} MB, {seconds:.1f} s")
    if options.open:
        webbrowser.open(options.output.resolve().as_uri())
    return 0


def _show_search(options: argparse.Namespace) -> int:
    """Write the page of a search, and print a row for each kernel."""
    if options.output is None:
        raise IRValueError(f"weft viz {options.model}: a search has a page only; give -o page.html")
    path = Path(options.model)
    searches = searches_of(path)
    options.output.write_text(search_page(path.name, searches), encoding="utf-8")
    print_table(f"{path} -> {options.output}", HEADINGS, [search.row() for search in searches])
    if options.open:
        webbrowser.open(options.output.resolve().as_uri())
    return 0
