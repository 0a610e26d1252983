"""Tables from docstrings: rooms of the package in docs/map.md, guarantees in CONTRIBUTING."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from blocks import table, with_block
from documents import DOCS, ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MAP = DOCS / "map.md"

ADDITIONS: Mapping[str, str] = {
    "basics/": "file kind",
    "theory/": "resource, collective, operation",
    "dictionary/": "column",
    "hardware/": "chip or dtype key",
    "kinds/": "kind of kernel",
    "models/": "layer or attention kind",
    "models/hf/": "family, quantization method",
    "training/": "schedule, state sharding",
    "fits/": "timing layout, fit form",
    "config/": "config key",
    "sweep/": "sweep kind",
    "evaluation/": "metric, any column of a row",
    "solvers/": "threshold",
    "serving/": "deployment kind",
    "answers/": "question, phrase",
    "results/": "output format",
    "measured/": "judgement, profile reader",
    "traces/": "trace reader, rule for an operator",
    "charts/": "chart kind",
    "site/": "page",
    "workbook/": "sheet",
    "loading.py": "-",
    "run/": "job",
    "api.py": "public function",
    "cli/": "command",
}
"""Rooms in import order, and additions that go there."""

GUARANTEES = (
    "verify/test_kills",
    "test_faults",
    "verify/test_broken_folders",
    "test_stale",
    "test_results_kept",
    "test_workflow",
    "test_charts_job",
    "test_edits",
    "test_provenance",
    "test_default_config",
    "test_properties",
    "test_worked_values",
    "test_book",
    "test_models",
    "test_models_hf",
    "test_serving_values",
    "verify/test_public_data",
    "verify/test_whole_tables",
    "test_same_everywhere",
    "test_chips",
    "test_faces",
    "test_explorer",
    "test_charts",
    "test_sentences",
    "test_chart_claims",
    "test_workbook",
    "test_refused",
    "test_readme",
    "test_how_to",
    "test_documents",
    "test_bad_input",
    "test_cache",
    "test_hostile_texts",
    "test_wrong_input",
    "test_plausibility",
    "test_project",
)
"""Test modules whose docstring states a guarantee to users."""


def summary(module: Path) -> str:
    """The first paragraph of a module's docstring, without the full stop."""
    docstring = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    return " ".join(docstring.partition("\n\n")[0].split()).removesuffix(".")


def room_summary(room: str) -> str:
    """The summary of a sub-package or module of the package."""
    path = ROOT / "rooflines" / room
    return summary(path / "__init__.py" if path.is_dir() else path)


def with_rooms(page: str) -> str:
    """docs/map.md with the current table of rooms."""
    rows = [(f"`{room}`", room_summary(room), new) for room, new in ADDITIONS.items()]
    return with_block(page, "rooms", table(("room", "content", "a new ... goes here"), rows))


def with_guarantees(page: str) -> str:
    """CONTRIBUTING with the current table of guarantees."""
    tests = [f"tests/{name}.py" for name in GUARANTEES]
    rows = [(summary(ROOT / test), f"`{test}`") for test in tests]
    return with_block(page, "guarantees", table(("claim", "test"), rows))
