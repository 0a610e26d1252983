"""docs/worked-models.md: worked numbers of How to Scale Your Model about whole models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from markdown_tables import table
from worked import Worked, comes_out
from worked_models import WORKED_NUMBERS

if TYPE_CHECKING:
    from collections.abc import Callable

WORKED = Path(__file__).parents[1] / "worked-models.md"

HEAD = """\
# Whole models: worked numbers of How to Scale Your Model

What the book works out about whole models, and what this package computes. `python docs/build`
writes this page, `tests/test_book_models.py` checks it.

Chapters: *transformers* is "All the Transformer Math You Need to Know", *inference* "All About
Transformer Inference", *serving* "Serving LLaMA 3-70B on TPUs", *training* "Training LLaMA 3 on
TPUs". As in the book, chips share a model and its caches evenly, and a step takes its t_memory
unless the row says otherwise. The book has 8.1e11 and 8.2e11 bytes/s for a TPU v5e; each row has
the one of its place. Llama 3.1 has the sizes of Llama 3. Models of the book's own are written out
in `docs/build/book_models.py`.
"""

AGREEING = """\
## Numbers that come out

Equal to the printed digits, rounded or cut off, or within 2 %.
"""

DIFFERING = """\
## Numbers that differ by more
"""

OPEN = """\
## Questions that the book leaves open
"""

REST = """\
## Not covered

- Training: optimizer states, saved activations, FLOP and days of a run, data parallelism and its
  mixture with tensor parallelism (chapters on training).
- Limits of splitting a single matrix, and MLPs without a gate: they are operations, not models
  (chapters on inference and serving).
- Collectives, networks and GPUs: see [networks.md](networks.md).
- Caches that leave and enter a batch, pipelines.
"""


def worked_page() -> str:
    """The text of the page."""
    numbered = list(
        enumerate((chapter, each) for chapter in WORKED_NUMBERS for each in WORKED_NUMBERS[chapter])
    )

    def rows(wanted: Callable[[Worked], bool]) -> str:
        return table(
            ("#", "chapter", "quantity", "printed", "here", "reason"),
            (
                (
                    number + 1,
                    chapter,
                    worked.quantity,
                    worked.printed or "",
                    f"{float(worked.here()):.6g}",
                    worked.why or comes_out(worked) or "",
                )
                for number, (chapter, worked) in numbered
                if wanted(worked)
            ),
        )

    parts = {
        AGREEING: lambda worked: comes_out(worked) is not None,
        DIFFERING: lambda worked: worked.printed is not None and comes_out(worked) is None,
        OPEN: lambda worked: worked.printed is None,
    }
    tables = [f"{head}\n{rows(wanted)}\n" for head, wanted in parts.items()]
    return "\n".join([HEAD, *tables, REST])
