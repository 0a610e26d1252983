"""Comparison of results folders: a screen with the largest changes first, and their picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import RooflinesError, at_path, check_choices
from rooflines.basics.lazy import pl
from rooflines.basics.text import counted
from rooflines.charts.change_pictures import changes_view
from rooflines.charts.kit.render import picture
from rooflines.cli import output
from rooflines.cli.picture_form import TABLE, picture_form
from rooflines.config.chart_fields import FORMATS
from rooflines.dictionary.columns import CHANGES
from rooflines.results.atomic import write_bytes
from rooflines.results.change_texts import COLUMNS, group_row, input_lines, table_lines
from rooflines.results.run_changes import (
    RunChanges,
    compare_runs,
    compare_scenario,
    has_results,
    scenarios_in,
)
from rooflines.results.tables import write_parquet
from rooflines.run.jobs import about

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_GROUPS = 20
"""Maximum groups of changes on screen [1]."""

PAIR = 2
"""Folders in a comparison [1]."""


def read_changes(words: Sequence[str]) -> list[RunChanges]:
    """Comparisons that the words of a command name; none if they name no results.

    Args:
        words: Two results folders, or one and scenarios in it, all of them if none is named.

    Raises:
        RooflinesError: A folder has no results or no such scenario, or a table cannot be read.
    """
    folders = [Path(word) for word in words]
    with_results = [folder for folder in folders if has_results(folder)]
    if not with_results:
        return []
    if len(folders) == len(with_results) == PAIR:
        return [compare_runs(*folders)]
    first, *names = words
    scenarios = scenarios_in(folders[0])
    if with_results == folders[:1] and scenarios:
        with at_path("scenario"):
            check_choices(names, scenarios, f"no scenario in {first}")
        return [compare_scenario(folders[0], name, scenarios[name]) for name in names or scenarios]
    fix = "give two folders that `rooflines run` wrote, or one with scenarios"
    if rest := [folder for folder in folders if folder not in with_results]:
        problem = f"is compared with the results in {with_results[0]}, and has none"
        raise RooflinesError("", problem, fix, file=str(rest[0]))
    problem = f"names {counted(len(folders), 'folder')} of results, not two"
    raise RooflinesError("compare", problem, fix)


def compared_runs(
    compared: Sequence[RunChanges], out: str | None, size: str | None, *, dark: bool, force: bool
) -> output.Printed:
    """Screens of comparisons; write the picture or the table that is asked for.

    Args:
        compared: The comparisons.
        out: File to write; None: none.
        size: Size of the picture; None: the format's.
        dark: Whether the picture is dark.
        force: Whether a file of that name is replaced.

    Raises:
        RooflinesError: The file exists, there is nothing to draw, or more than one picture.
    """
    form = picture_form(out, size, "changes.png", dark=dark)
    frame = _frame(compared)
    if out is not None:
        output.check_new(out, force=force)
        if form == TABLE:
            write_parquet(frame.lazy(), out, about([], CHANGES))
        else:
            _draw(compared, out, form, size or FORMATS[form], dark=dark)
    plain = [*map(as_plain, compared)]
    screens = ("\n".join(_lines(changes)) for changes in compared)
    return frame, "\n\n".join(screens), plain[0] if len(plain) == 1 else plain


def _frame(compared: Sequence[RunChanges]) -> pl.DataFrame:
    """Changed numbers; of several comparisons, with the scenario."""
    if len(compared) == 1:
        return compared[0].frame()
    frames = [
        changes.frame().select(pl.lit(changes.names[1]).alias("scenario"), pl.all())
        for changes in compared
    ]
    return pl.concat(frames, how="diagonal_relaxed")


def _draw(compared: Sequence[RunChanges], out: str, form: str, size: str, *, dark: bool) -> None:
    """Write the picture of one comparison."""
    if len(compared) > 1:
        problem = f"is one picture, and {counted(len(compared), 'scenario')} are compared"
        raise RooflinesError("--out", problem, "name one of them after the folder")
    view = changes_view(compared[0])
    if view is None:
        problem = "has nothing to show: no number changed"
        raise RooflinesError("--out", problem, "leave it out")
    write_bytes(out, picture(view.spec(), form, size, dark=dark))


def _lines(changes: RunChanges) -> Iterator[str]:
    """Screen of a comparison."""
    before, after = changes.names
    sweeps = dict.fromkeys(table.sweep for table in changes.tables)
    in_both = counted(len(sweeps), "sweep")
    yield f"{before} -> {after}: {in_both}; ratio is {after} / {before}"
    inputs = [*input_lines(changes)] or ["none"]
    yield from ("", "Inputs that differ:", *(f"  {line}" for line in inputs))
    yield from ("", "Rows:", *(f"  {line}" for line in table_lines(changes)), "")
    if not changes.groups:
        yield "No threshold, time or cost differs in these rows."
        return
    shown = [group_row(group) for group in changes.groups[:MAX_GROUPS]]
    yield output.as_table(COLUMNS, [[*row.values()] for row in shown])
    if rest := len(changes.groups) - len(shown):
        yield f"{counted(rest, 'more group')} of rows changed; --csv has every changed number"


def as_plain(changes: RunChanges) -> dict[str, Any]:
    """Comparison as JSON: inputs, counts of rows, labels and groups."""
    return {
        "before": changes.names[0],
        "after": changes.names[1],
        "versions": [*changes.versions],
        "inputs": [change._asdict() for change in changes.inputs],
        "sweeps_removed": [*changes.removed],
        "sweeps_added": [*changes.added],
        "tables": [
            {
                "sweep": table.sweep,
                "table": table.kind,
                "shared": table.shared,
                "unchanged": table.unchanged,
                "removed": table.removed,
                "added": table.added,
                "paired": {name: [*values] for name, values in table.paired.items()},
                "labels": [change._asdict() for change in table.labels],
            }
            for table in changes.tables
        ],
        "groups": [group._asdict() for group in changes.groups],
    }
