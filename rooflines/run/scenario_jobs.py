"""Job on a scenario: numbers that it changes as a table, and groups with their picture."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

from rooflines.basics.text import counted
from rooflines.charts.change_pictures import changes_view
from rooflines.charts.kit.render import png
from rooflines.dictionary.columns import CHANGES
from rooflines.results.atomic import atomic_folder
from rooflines.results.change_texts import group_row, input_lines, table_lines
from rooflines.results.folders import SCENARIO_INDEX
from rooflines.results.records import recorded
from rooflines.results.run_changes import compare_scenario
from rooflines.results.tables import write_parquet
from rooflines.run.jobs import about

SIZES_DRAWN, THEMES = ("web", "paper"), ("light", "dark")
"""Pictures on the page: for wide and narrow screens, in both themes."""


@recorded
def write_scenario(spec: str, table: str | Path, folder: str | Path) -> str:
    """Write a scenario's changed numbers as Parquet, and a folder with groups and pictures.

    Args:
        spec: What they depend on, from `Plan.spec`: `scenario`, `pairs`, its sweeps by the
            sweeps as written, and `sweeps`, their recipes.
        table: The Parquet file to write, in the results.
        folder: The folder to write; an earlier one is replaced.

    Returns:
        A line for the log: how many groups changed.
    """
    recipe = json.loads(spec)
    results = Path(table).absolute().parents[1]
    changes = compare_scenario(results, recipe["scenario"], recipe["pairs"])
    write_parquet(changes.frame().lazy(), table, about(recipe["sweeps"], CHANGES))
    view = changes_view(changes)
    with atomic_folder(folder) as temporary:
        pictures: list[str] = []
        if view is not None:
            for size, theme in product(SIZES_DRAWN, THEMES):
                pictures.append(f"changes-{size}-{theme}.png")
                drawn = png(view.spec(), size, dark=theme == "dark")
                (temporary / pictures[-1]).write_bytes(drawn)
        index = {
            "name": recipe["scenario"],
            "pairs": recipe["pairs"],
            "title": view.title if view is not None else "",
            "pictures": pictures,
            "inputs": [*input_lines(changes)],
            "rows": [*table_lines(changes)],
            "groups": [[*group_row(group).values()] for group in changes.groups],
        }
        (temporary / SCENARIO_INDEX).write_text(json.dumps(index, indent=1), encoding="utf-8")
    return counted(len(changes.groups), "group")
