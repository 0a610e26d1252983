"""The sheet What-if: the times of an operation as formulas, for other sizes, peaks and bandwidths.

The formulas are written from the polynomials of `model.costs`, so they are those of the tables.
Their values are computed by the package, for programs that do not compute formulas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from xlsxwriter.utility import xl_rowcol_to_cell

from rooflines.critical.thresholds import sweep_thresholds
from rooflines.model.columns import METRICS, NEVER, SOLUTION
from rooflines.model.operation import OPERANDS
from rooflines.model.resources import MATH, MEMORY
from rooflines.sweep.recipes import sweep_of
from rooflines.sweep.rows import OperationTable
from rooflines.workbook.cells import Heading

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.model.costs import Workload
    from rooflines.sweep.operations import Sweep
    from rooflines.workbook.cells import Sheet, Value

Terms = Mapping[tuple[str, ...], Fraction]
"""The coefficient of each product, by the names of its factors."""

MOST_ROWS = 200
"""Rows of chips and dtypes; where there are more, each chip has its first dtypes only [1]."""

MOST_BARS = 40
"""Rows in the chart [1]."""

SIZES_ROW, UNITS_ROW, FIRST_ROW = 3, 6, 8
"""Where the sizes stand, the header of the chips, and the first chip."""

ROUNDING = "(1-1E-12)"
"""A real size this close above an integer is that integer: formulas are computed in Float64."""

INPUTS = {
    "peak": "FLOP/s",
    "peak_efficiency": "1",
    "bytes_per_s": "byte/s",
    "memory_efficiency": "1",
    **{f"{operand}_bits": "bit" for operand in OPERANDS},
}
"""The numbers of a chip and its dtypes that can be changed, with their units."""

INPUT_STYLES = {"FLOP/s": "rate", "byte/s": "rate", "1": "share", "bit": "bits"}
"""The formats of these cells by unit."""

STYLES = {
    "flops": "integer",
    "memory_bytes": "integer",
    "memory_intensity": "number",
    "t_math_s": "scientific",
    "t_memory_s": "scientific",
    "t_lower_s": "scientific",
    "bound": "text",
    "attained_flops_per_s": "scientific",
    "utilization": "percent",
    "critical_exact": "number",
    "critical": "integer",
}
"""The columns with formulas, named as in the tables and thresholds, and their formats."""

ANSWERS = ("t_lower_s", "bound", "utilization", "critical")
"""The columns that people come for: they stand first, then inputs, the chart, and the rest."""

CHART_COLUMNS = ("",) * 8
"""Columns without names, under the chart."""

TEXTS = ("chip", "dtypes", "bound")
"""The columns of text."""


def what_if_sheet(sheet: Sheet, recipes: Iterable[JSON]) -> None:
    """Write the sheet for the sweep with most chips, of those without tiles.

    Args:
        sheet: The sheet.
        recipes: The recipes of sweeps of operations.
    """
    untiled = [recipe for recipe in recipes if not recipe["config"]["tile"]]
    if not untiled:
        sheet.note(0, "The config has no sweep of operations without tiles.")
        return
    sweep = _one_size(max(untiled, key=lambda recipe: len(recipe["config"]["chips"])))
    op = sweep.op
    sheet.note(0, f"{op.x},{op.w}->{op.out} on one chip, as in sweep {sweep.name}", "title")
    notes = ["Change the yellow cells: all other numbers, and the chart beside them, follow."]
    shown = _shown(sweep)
    if len(shown) < sweep.rows:
        notes += [f"Shown are {len(shown)} of {sweep.rows:,} rows: the first dtypes of a chip."]
    sheet.note(1, " ".join(notes))
    sizes = {}
    for column, dim in enumerate(op.dims):
        sheet.put(SIZES_ROW, column, dim, "heading")
        sheet.put(SIZES_ROW + 1, column, float(sweep.size_columns[dim][0]), "size")
        sizes[dim] = xl_rowcol_to_cell(SIZES_ROW + 1, column, row_abs=True, col_abs=True)
    rest = [name for name in STYLES if name not in ANSWERS]
    names = ["chip", "dtypes", *ANSWERS, *INPUTS, *CHART_COLUMNS, *rest]
    units = {column.name: column.unit for column in (*METRICS, *SOLUTION)} | INPUTS
    headings = [Heading(name, units.get(name, ""), name not in TEXTS) for name in names]
    sheet.header(UNITS_ROW, headings)
    for row, (workload, values) in enumerate(_rows(sweep, shown), start=FIRST_ROW):
        cells = {name: xl_rowcol_to_cell(row, column) for column, name in enumerate(names)}
        formulas = _formulas(workload, sweep.solved[0], {**sizes, **cells})
        for column, name in enumerate(names):
            if name in formulas:
                style = STYLES[name]
                sheet.formula(row, column, f"={formulas[name]}", values[name], style)
            elif name:
                sheet.put(row, column, values[name], INPUT_STYLES.get(INPUTS.get(name, ""), ""))
    last = FIRST_ROW + len(shown) - 1
    share, critical = names.index("utilization"), names.index("critical")
    sheet.colour_shares((FIRST_ROW, share), (last, share))
    sheet.colour_never((FIRST_ROW, critical), (last, critical), NEVER)
    bars = min(last, FIRST_ROW + MOST_BARS - 1)
    title = "Share of peak at the sizes in yellow"
    sheet.bars(title, (FIRST_ROW, names.index("")), (FIRST_ROW, bars), share)
    sheet.freeze(FIRST_ROW, 2)
    sheet.fit()


def _one_size(recipe: JSON) -> Sweep:
    """A sweep at one of its sizes, on one chip."""
    sweep = sweep_of(recipe)
    sizes = {dim: sweep.size_columns[dim] for dim in sweep.op.dims}
    config = {
        **recipe["config"],
        "grid": {dim: int(values[len(values) // 2]) for dim, values in sizes.items()},
        "thresholds": [sweep.first_solved or sweep.op.dims[0]],
        "memory": [sweep.blocks[0].place.memory],
        "calibration": None,
    }
    alone = {"shapes": None, "sharding": ["none"], "shards": [1], "network": None, "shares": [1]}
    base: Sweep = sweep_of({**recipe, "config": {**config, **alone}})
    return base


def _shown(sweep: Sweep) -> list[int]:
    """The rows of a sweep of one size that are shown: `MOST_ROWS` at most."""
    if sweep.rows <= MOST_ROWS:
        return list(range(sweep.rows))
    chips = [case.chip for case in sweep.cases]
    return sorted(chips.index(chip) for chip in dict.fromkeys(chips))[:MOST_ROWS]


def _rows(sweep: Sweep, shown: Sequence[int]) -> Iterator[tuple[Workload, dict[str, Value]]]:
    """The workload and the values of all columns, of rows of a sweep of one size."""
    table = OperationTable(sweep).frame(0, sweep.rows).collect()
    solved = {(row["chip"], row["dtypes"]): row for row in sweep_thresholds(sweep).to_dicts()}
    for index in shown:
        case, row = sweep.cases[index], table.row(index, named=True)
        target, workload = case.target, case.workload
        inputs = {
            "peak": target.peak,
            "peak_efficiency": target.efficiency[MATH.name],
            "bytes_per_s": target.level.bytes_per_s,
            "memory_efficiency": target.efficiency[MEMORY.name],
            **{f"{operand}_bits": bits for operand, bits in workload.bits.items()},
        }
        found = solved[row["chip"], row["dtypes"]]
        outcome = {
            name: found["outcome"] if found[name] is None else found[name]
            for name in ("critical_exact", "critical")
        }
        yield workload, {**row, **{name: float(n) for name, n in inputs.items()}, **outcome}


# ---------------------------------------------------------------- formulas


def _formulas(workload: Workload, axis: str, cells: Mapping[str, str]) -> dict[str, str]:
    """The formulas of a row.

    Args:
        workload: The costs; its bits are read from cells.
        axis: The dimension whose critical size is computed.
        cells: The cell of each dimension and of each column.
    """
    flops, memory = workload.costs[MATH.work], _memory_terms(workload)
    peak = f"{cells['peak']}*{cells['peak_efficiency']}"
    bandwidth = f"{cells['bytes_per_s']}*{cells['memory_efficiency']}"
    (flops_slope, flops_rest), (memory_slope, memory_rest) = (
        [f"({_sum(part, cells)})" for part in _along(terms, axis)] for terms in (flops, memory)
    )
    # Compute-bound where growth * size >= rest.
    growth = f"{flops_slope}*{bandwidth}-{memory_slope}*{peak}"
    rest = f"{memory_rest}*{peak}-{flops_rest}*{bandwidth}"
    never = f'IF(AND({growth}>=0,{rest}<=0),0,"{NEVER}")'
    exact = cells["critical_exact"]
    return {
        "flops": _sum(flops, cells),
        "memory_bytes": _sum(memory, cells),
        "memory_intensity": f"{cells['flops']}/{cells['memory_bytes']}",
        "t_math_s": f"{cells['flops']}/({peak})",
        "t_memory_s": f"{cells['memory_bytes']}/({bandwidth})",
        "t_lower_s": f"MAX({cells['t_math_s']},{cells['t_memory_s']})",
        "bound": f'IF({cells["t_math_s"]}>={cells["t_memory_s"]},"{MATH.bound}","{MEMORY.bound}")',
        "attained_flops_per_s": f"{cells['flops']}/{cells['t_lower_s']}",
        "utilization": f"{cells['attained_flops_per_s']}/{cells['peak']}",
        "critical_exact": f"IF({growth}>0,MAX(0,({rest})/({growth})),{never})",
        "critical": f'IF(ISNUMBER({exact}),MAX(1,ROUNDUP({exact}*{ROUNDING},0)),"{NEVER}")',
    }


def _memory_terms(workload: Workload) -> dict[tuple[str, ...], Fraction]:
    """The bytes of the memory, as products of dimensions and of the bits of an operand."""
    terms = {}
    for operand in OPERANDS:
        bits = {other: Fraction(int(other == operand)) for other in OPERANDS}
        for dims, coefficient in replace(workload, bits=bits).costs[MEMORY.work].items():
            terms[*dims, f"{operand}_bits"] = coefficient
    return {names: coefficient for names, coefficient in terms.items() if coefficient}


def _along(terms: Terms, axis: str) -> tuple[Terms, Terms]:
    """A cost as `slope * size + rest` of an axis; costs are linear in every dimension."""
    slope = {
        tuple(name for name in names if name != axis): value
        for names, value in terms.items()
        if axis in names
    }
    return slope, {names: value for names, value in terms.items() if axis not in names}


def _sum(terms: Terms, cells: Mapping[str, str]) -> str:
    """A sum of products as a formula."""
    products = [[str(value), *map(cells.__getitem__, names)] for names, value in terms.items()]
    return "+".join(map("*".join, products)) or "0"
