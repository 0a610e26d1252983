"""The documents that are computed, and which of them are out of date."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import gallery
from accuracy_page import ACCURACY, JUDGED_RUNS, judged_text, with_errors
from answers import with_answers
from command_output import MEASURE, TRACE, with_output
from config_page import CONFIG_REFERENCE, CONTRIBUTING, with_reference, with_tolerances
from docstring_tables import MAP, with_guarantees, with_rooms
from documents import PICTURES, README, RESULTS, ROOT, SCHEMA, VEGA, config_schema, vega_script
from excerpts import with_excerpts
from held_out import FAQ, with_held_out_errors
from memory_page import MEMORY, with_starts
from outputs import with_outputs
from performance import (
    CONFIG,
    KERNELS,
    SCALING,
    TUTORIAL,
    with_calls,
    with_estimate,
    with_performance,
    with_rows,
    with_run_time,
    with_times,
)
from serving_page import SERVE, with_serving_values
from training_page import BOOK, TRAIN, with_book_numbers, with_step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

FIX = "run python docs/build"


def _schema(_: str) -> str:
    return json.dumps(config_schema(), indent=2, ensure_ascii=False) + "\n"


TEXTS: Mapping[Path, tuple[Callable[[str], str], ...]] = {
    SCHEMA: (_schema,),
    README: (with_run_time, with_excerpts, with_held_out_errors),
    JUDGED_RUNS: (judged_text,),
    ACCURACY: (with_errors,),
    SERVE: (with_output, with_serving_values),
    MEMORY: (with_output, with_starts),
    TRAIN: (with_output, with_step),
    CONFIG: (with_rows,),
    CONFIG_REFERENCE: (with_reference,),
    CONTRIBUTING: (with_tolerances, with_guarantees),
    MAP: (with_rooms,),
    KERNELS: (with_calls,),
    SCALING: (with_performance, with_estimate),
    TUTORIAL: (with_answers, with_times, with_excerpts),
    FAQ: (with_held_out_errors,),
    **dict.fromkeys(gallery.PAGES, (gallery.with_gallery,)),
    MEASURE: (gallery.with_gallery, with_output),
    TRACE: (with_output,),
    BOOK: (gallery.with_gallery, with_book_numbers),
    RESULTS: (with_outputs, gallery.with_gallery),
}
"""Functions from a document's text to its current text: whole, or the generated blocks."""


def current(page: Path) -> str:
    """The current text of a document."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    for renewed in TEXTS[page]:
        text = renewed(text)
    return text


def out_of_date() -> Iterator[str]:
    """A line for each document that is not the current one, notebooks aside."""
    stale = [page for page in TEXTS if current(page) != page.read_text(encoding="utf-8")]
    if gzip.decompress(VEGA.read_bytes()) != gzip.decompress(vega_script()):
        stale.append(VEGA)
    digests = PICTURES / gallery.DIGESTS
    if json.loads(digests.read_text("utf-8")) != gallery.digests(gallery.charts_of_pages()):
        stale.append(digests)
    yield from (f"{page.relative_to(ROOT)} is out of date: {FIX}" for page in stale)
