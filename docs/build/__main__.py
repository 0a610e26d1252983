"""Generate the documents that are computed: `python docs/build`.

The config's JSON Schema; README's answers; pictures and their tables, and whole pages in docs;
pages with figures of benchmarks/RESULTS.md; and the script of Vega for the site;
and the outputs of the notebooks.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import gallery
from answers import SERVED, with_answers, with_judgement
from documents import PICTURES, README, SCHEMA, config_schema
from faq_page import FAQ, faq_page
from measured import (
    CONFIG,
    PERFORMANCE,
    SCALING,
    performance_page,
    with_measured,
    with_rows,
    with_run_time,
)
from outputs import OUTPUTS, with_outputs
from training_page import TRAINING, with_runs
from vega import VEGA, vega_script

from notebooks import run_notebooks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def main() -> None:
    """Write every generated document into the repository."""
    schema = json.dumps(config_schema(), indent=2, ensure_ascii=False)
    SCHEMA.write_text(schema + "\n", encoding="utf-8")
    rewrite(README, with_answers)
    rewrite(README, with_run_time)
    rewrite(SERVED, with_judgement)
    rewrite(CONFIG, with_rows)
    rewrite(SCALING, with_measured)
    rewrite(OUTPUTS, with_outputs)
    rewrite(TRAINING, with_runs)
    PERFORMANCE.write_text(performance_page(), encoding="utf-8")
    for page in gallery.PAGES:
        rewrite(page, gallery.with_gallery)
    gallery.draw(PICTURES)
    FAQ.write_text(faq_page(), encoding="utf-8")
    VEGA.write_bytes(vega_script())
    run_notebooks()


def rewrite(page: Path, current: Callable[[str], str]) -> None:
    """Replace the generated blocks of a page."""
    page.write_text(current(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
