"""Generate the documents that are computed: `python docs/build`; `--check` only compares.

The config's JSON Schema; README's answers; pictures and their tables, and whole pages in docs;
pages with figures of benchmarks/results.json; the script of Vega for the site; and what `--check`
leaves out: pictures of the explorer, and outputs of the notebooks (`make verify`).
"""

from __future__ import annotations

import argparse
import sys

import explorer_picture
import gallery
from documents import PICTURES, VEGA, vega_script
from generated import TEXTS, current, out_of_date

from notebooks import run_notebooks


def main() -> int:
    """Write every generated document into the repository, or name those out of date."""
    parser = argparse.ArgumentParser(prog="python docs/build", description=__doc__)
    parser.add_argument("--check", action="store_true", help="name what is out of date; exit 1")
    if parser.parse_args().check:
        stale = list(out_of_date())
        print(*(stale or ["All generated documents are current"]), sep="\n")
        return int(bool(stale))
    for page in TEXTS:
        page.write_text(current(page), encoding="utf-8")
    gallery.draw(PICTURES)
    explorer_picture.draw(PICTURES)
    VEGA.write_bytes(vega_script())
    run_notebooks()
    return 0


if __name__ == "__main__":
    sys.exit(main())
