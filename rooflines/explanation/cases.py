"""Several cases of one question, a row each: chips, dtypes, memory levels, sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import RooflinesError, quote
from rooflines.basics.text import count, significant
from rooflines.critical.thresholds import sweep_thresholds
from rooflines.explanation.phrases import asked
from rooflines.explanation.question import operation_sweep
from rooflines.explanation.wording import percent, seconds
from rooflines.model.columns import ALWAYS, FOUND, NEVER
from rooflines.model.resources import MEMORY
from rooflines.settings.model_sweeps import AXES
from rooflines.sweep.rows import OperationTable, StepTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rooflines.explanation.question import Known
    from rooflines.sweep.operations import Sweep
    from rooflines.sweep.steps import ModelSweep

MOST_CASES = 500
"""Rows of a table on a screen [1]."""

KEYS = ("chip", "memory", "network", "dtypes")
"""What cases can differ in besides their sizes."""

UP_AND_DOWN = {"up": ("column", "D", "F"), "down": ("contracting/all-reduce", "F", "D")}
"""The two matmuls of a layer in tensor parallelism: how each is split, and its D and F."""


@dataclass(frozen=True)
class Cases:
    """The answers to a question of several cases.

    Attributes:
        asked: What they have in common.
        rows: Rows of the table by column, with `compute_bound_from`: the critical size of `axis`.
        columns: The columns shown, each with its form.
        axis: The size that thresholds are of.
        notes: What was left out, and what binds.
    """

    asked: str
    rows: Sequence[Mapping[str, Any]]
    columns: Mapping[str, Callable[[Any], str]]
    axis: str
    notes: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {
            "asked": self.asked,
            "axis": self.axis,
            "rows": [dict(row) for row in self.rows],
            "notes": [*self.notes],
        }

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The names of the columns, and the cells as text."""
        names = {
            "t_lower_s": "time",
            "t_estimate_s": "estimate",
            "t_ops_s": "a step",
            "utilization": "of peak",
            "mfu_ops": "of peak",
            "tokens_per_s_per_chip": "tokens/s/chip",
            "tokens_per_s_per_chip_ops": "tokens/s/chip",
            "max_B": "largest B",
            "usd_per_mtok_ops": "$/Mtok",
            "compute_bound_from": f"compute-bound from {self.axis} =",
        } | ({"t_lower_s": "at least"} if "t_ops_s" in self.columns else {})
        cells = [[form(row[name]) for name, form in self.columns.items()] for row in self.rows]
        return [names.get(name, name) for name in self.columns], cells


def _text(value: object) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _yes(value: object) -> str:
    return {None: "?", True: "yes", False: "no"}[value]  # type: ignore[index]  # a truth value or null


def _dollars(value: float | None) -> str:
    return "-" if value is None else significant(value)


OF_OPERATIONS: Mapping[str, Callable[[Any], str]] = {
    "t_lower_s": seconds,
    "bound": str,
    "utilization": percent,
    "compute_bound_from": str,
    "fits": _yes,
}
OF_MODELS: Mapping[str, Callable[[Any], str]] = {
    "t_ops_s": seconds,
    "t_lower_s": seconds,
    "bound": str,
    "tokens_per_s_per_chip_ops": count,
    "mfu_ops": percent,
    "compute_bound_from": str,
    "fits": _yes,
    "max_B": _text,
    "usd_per_mtok_ops": _dollars,
}
"""What is shown of every case, and how."""


def operation_cases(sweep: Sweep) -> Cases:
    """The cases of a sweep of operations.

    Raises:
        RooflinesError: There are too many.
    """
    _check(sweep.rows)
    rows = OperationTable(sweep).stored_frame().collect().to_dicts()
    several = [dim for dim in sweep.op.dims if len({row[dim] for row in rows}) > 1]
    axis = (several or sweep.op.dims)[0]
    solved = [each for each in sweep_thresholds(sweep).to_dicts() if each["share"] == 1]
    return _cases(rows, solved, sweep.op.dims, axis, OF_OPERATIONS, _skipped(sweep))


def model_cases(sweep: ModelSweep) -> Cases:
    """The cases of a sweep of a model.

    Raises:
        RooflinesError: There are too many.
    """
    _check(sweep.rows)
    rows = StepTable(sweep).frame().collect().to_dicts()
    sizes = [letter for letter in ("B", "S", "T") if letter in rows[0]]
    return _cases(
        rows, sweep_thresholds(sweep).to_dicts(), sizes, AXES[0], OF_MODELS, _skipped(sweep)
    )


def layer_cases(  # noqa: PLR0913, PLR0917, the parts of a question
    chips: Sequence[str],
    sizes: str | Mapping[str, object],
    dtypes: Sequence[object],
    known: Known,
    split: str,
    options: Mapping[str, Any],
) -> Cases:
    """A layer, up and down again, whose chips share it by tensor parallelism.

    Up is split by columns and sends nothing; down is split where it contracts, and one all-reduce
    adds the parts.

    Args:
        chips: Ids.
        sizes: Of the way up, as of `operation_sweep`.
        dtypes: As of `operation_sweep`.
        known: What can be named.
        split: `tp=N`.
        options: As of `operation_sweep`.

    Raises:
        RooflinesError: Something is invalid, or the chips cannot do it.
    """
    tp = split.replace(" ", "").partition("tp=")[2]
    if split.replace(" ", "") != f"tp={tp}" or not tp:
        problem = f"is {quote(split)}, but chips share a matmul by tp alone"
        raise RooflinesError("split", problem, "write tp=8, or name a model such as llama-3.1-70b")
    for key in ("sharding", "shards", "operation"):
        if options.get(key) is not None:
            problem = f"stands beside --{key}, which says how a single operation is split"
            raise RooflinesError("split", problem, "leave one of them out")
    rows: list[dict[str, Any]] = []
    thresholds: list[dict[str, Any]] = []
    skipped: list[str] = []
    grid: dict[str, object] = {}
    for part, (sharding, wide, long) in UP_AND_DOWN.items():
        shared = {"shards": tp, "sharding": sharding} if tp != "1" else {}
        asked_sizes = {**grid, "D": grid[wide], "F": grid[long]} if grid else sizes
        sweep = operation_sweep(chips, asked_sizes, dtypes, known, **options, **shared)
        _check(sweep.rows)
        found = OperationTable(sweep).stored_frame().collect().to_dicts()
        grid = grid or {dim: [row[dim] for row in found] for dim in sweep.op.dims}
        rows += [{"part": part, **row} for row in found]
        solved = sweep_thresholds(sweep).to_dicts()
        thresholds += [{"part": part, **each} for each in solved if each["share"] == 1]
        skipped += _skipped(sweep)
    cases = _cases(rows, thresholds, ("B", "D", "F"), "B", OF_OPERATIONS, dict.fromkeys(skipped))
    varied = [key for key in (*KEYS, "B") if len({row[key] for row in rows}) > 1]
    times: dict[str, float] = {}
    for row in rows:
        case = " ".join(str(row[key]) for key in varied if key != "network")
        times[case] = times.get(case, 0.0) + row["t_lower_s"]
    both = ", ".join(f"{case} {seconds(time_s)}".strip() for case, time_s in times.items())
    notes = [f"Up and down, one after the other: {both}.", *cases.notes]
    head = f"{cases.asked} · tp={tp}: up by columns, down with one all-reduce"
    return replace(cases, asked=head, columns={"part": str} | dict(cases.columns), notes=notes)


def _check(rows: int) -> None:
    if rows > MOST_CASES:
        fix = "ask for fewer, or write a config: `rooflines new matmul`"
        problem = f"has {rows:,} cases, more than the {MOST_CASES} of a table"
        raise RooflinesError("the question", problem, fix)


def _cases(  # noqa: PLR0913, PLR0917, the parts of a table
    rows: list[dict[str, Any]],
    thresholds: Sequence[Mapping[str, Any]],
    sizes: Sequence[str],
    axis: str,
    forms: Mapping[str, Callable[[Any], str]],
    skipped: Iterable[str],
) -> Cases:
    """Rows with their critical sizes; columns are what they differ in, then what follows."""
    along = [each for each in thresholds if each["axis"] == axis]
    keys = ("part", *KEYS, *sizes)
    for row in rows:
        row["compute_bound_from"] = next(
            (
                _critical(each)
                for each in along
                if all(each.get(key) in (None, row.get(key)) for key in keys)
            ),
            "-",
        )
    varied = [
        key for key in (*KEYS, *sizes) if len({row[key] for row in rows}) > 1 and key != "network"
    ]
    shown = {
        name: form for name, form in forms.items() if any(row[name] is not None for row in rows)
    }
    same = {size: rows[0][size] for size in sizes if size not in varied}
    head = (
        asked({**rows[0], "sharding": "none"}, same) if "part" in rows[0] else asked(rows[0], same)
    )
    parts = head.split(" · ")
    parts = parts[1:] if "chip" in varied else parts
    if "dtypes" in varied:
        parts.remove(rows[0]["dtypes"])
    notes = [f"Left out: {each}." for each in skipped]
    if varied == ["memory"]:
        slowest = max(rows, key=lambda row: row["t_lower_s"])
        binds = f"{slowest['memory']} binds, if all bytes pass every level"
        if slowest["bound"] != MEMORY.bound:
            binds = f"No memory level binds: {slowest['bound']}-bound on each"
        notes.insert(0, f"{binds}: {seconds(slowest['t_lower_s'])}.")
    return Cases(" · ".join(parts), rows, dict.fromkeys(varied, _text) | shown, axis, notes)


def _critical(threshold: Mapping[str, Any]) -> str:
    """A critical size in a cell."""
    outcome: str = threshold["outcome"]
    if outcome == FOUND:
        return f"{threshold['critical']:,}"
    return {ALWAYS: "any", NEVER: f"never ({threshold['limit']})"}.get(outcome, outcome)


def _skipped(sweep: Sweep | ModelSweep) -> list[str]:
    """What the chips cannot do, and why."""
    return list(dict.fromkeys(f"{each.chip}: {each.reason}" for each in sweep.skipped))
