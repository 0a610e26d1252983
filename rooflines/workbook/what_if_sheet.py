"""Sheet What-if: an operation's times as formulas, for other sizes, peaks and bandwidths.

The formulas are written from the polynomials of `theory.costs`, so they agree with the tables.
Their values are computed by the package, for programs that do not compute formulas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from xlsxwriter.utility import xl_rowcol_to_cell

from rooflines.dictionary.columns import METRICS, NEVER, SOLUTION
from rooflines.evaluation.row_frames import OperationTable
from rooflines.solvers.threshold_frames import sweep_thresholds
from rooflines.sweep.recipes import sweep_of
from rooflines.theory.extents import Product, Size
from rooflines.theory.operation import OPERANDS
from rooflines.theory.resources import MATH, MEMORY
from rooflines.workbook.summary_sheet import never_rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from xlsxwriter import Workbook
    from xlsxwriter.worksheet import Worksheet

    from rooflines.basics.yaml_file import JSON
    from rooflines.sweep.operation_sweep import Sweep
    from rooflines.theory.costs import Workload

Terms = Mapping[Product, Fraction]
"""The coefficient of each product, by the names of its factors."""

MAX_ROWS = 200
"""Rows of chips and dtypes; where there are more, each chip has its first dtypes only [1]."""

MAX_BARS = 40
"""Rows in the chart [1]."""

SIZES_ROW, UNITS_ROW, FIRST_ROW = 3, 6, 8
"""Where the sizes stand, the header of the chips, and the first chip."""

ROUNDING = "(1-1E-12)"
"""A real size this close above an integer is that integer: formulas are computed in Float64."""

INTEGER, SCIENTIFIC, PERCENT = "#,##0", "0.000E+00", "0.0%"
NUMBER = "[=0]0;[<0.01]0.000E+00;#,##0.00"

INPUTS = {
    "peak": ("FLOP/s", SCIENTIFIC),
    "peak_efficiency": ("", PERCENT),
    "bytes_per_s": ("byte/s", SCIENTIFIC),
    "memory_efficiency": ("", PERCENT),
    **{f"{operand}_bits": ("bit", "0.###") for operand in OPERANDS},
}
"""The numbers of a chip and its dtypes that can be changed, with their units and formats."""

ESTIMATES = ("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s")
"""The estimate and its band: they stand before the bound where a row has them. Their formulas have
the table's values at its sizes and inputs, and no value elsewhere."""

OTHER_INPUTS = "other inputs"
"""Text in place of an estimate whose sizes or inputs are changed."""

FORMATS = {
    **dict.fromkeys(ESTIMATES, SCIENTIFIC),
    "flops": INTEGER,
    "memory_bytes": INTEGER,
    "memory_intensity": NUMBER,
    "t_math_s": SCIENTIFIC,
    "t_memory_s": SCIENTIFIC,
    "t_lower_s": SCIENTIFIC,
    "bound": "",
    "attained_flops_per_s": SCIENTIFIC,
    "utilization": PERCENT,
    "critical_exact": NUMBER,
    "critical": INTEGER,
}
"""The columns with formulas, named as in the tables and thresholds, and their formats."""

YELLOW = {"bg_color": "#FEF9C3", "border": 1}
"""The look of a cell that the reader may change."""

HEADING, UNIT = {"bold": True, "bottom": 1}, {"italic": True, "font_color": "#6B7280"}

RIGHT, INDENTED = {"align": "right"}, {"indent": 1}

TEXTS = ("chip", "dtypes", "bound", "")
"""The columns of text, and those under the chart."""

ANSWERS = ("t_lower_s", "bound", "utilization", "critical")
"""The columns that people come for: they stand first, then inputs, the chart, and the rest."""

CHART_COLUMNS = ("",) * 10
"""Columns without names, under the chart: 64 pixels each."""

WIDEST = 200
"""Width of the widest column [pixel]."""


def what_if_sheet(book: Workbook, sheet: Worksheet, recipes: Iterable[JSON]) -> None:
    """Write the sheet for the sweep with the most chips among those without tiles.

    Args:
        book: The workbook.
        sheet: The sheet.
        recipes: Recipes for operation and kernel sweeps.
    """
    operations = (recipe for recipe in recipes if "tile" in recipe["config"])
    untiled = [recipe for recipe in operations if not recipe["config"]["tile"]]
    if not untiled:
        sheet.write_string(0, 0, "The config has no sweep of operations without tiles.")
        return
    sweep = _one_size(max(untiled, key=lambda recipe: len(recipe["config"]["chips"])))
    op, shown = sweep.op, _shown(sweep)
    rows = [*_rows(sweep, shown)]
    has_estimates = any(values[ESTIMATES[0]] is not None for _, values in rows)
    answers = [*(ESTIMATES if has_estimates else ()), *ANSWERS]
    names = ["chip", "dtypes", *answers, *INPUTS, *CHART_COLUMNS]
    names += [name for name in FORMATS if name not in (*ESTIMATES, *ANSWERS)]
    sizes = _head(book, sheet, sweep, names)
    formats = {
        name: book.add_format({"num_format": form, **RIGHT}) if form else book.add_format(INDENTED)
        for name, form in FORMATS.items()
    }
    inputs = {
        name: book.add_format({**YELLOW, "num_format": form}) for name, (_, form) in INPUTS.items()
    }
    for row, (workload, values) in enumerate(rows, start=FIRST_ROW):
        cells = {name: xl_rowcol_to_cell(row, column) for column, name in enumerate(names)}
        formulas = _formulas(workload, sweep.solved[0], {**sizes, **cells})
        unchanged = {sizes[dim]: float(sweep.size_columns[dim][0]) for dim in op.dims}
        unchanged |= {cells[name]: values[name] for name in INPUTS}
        formulas |= _estimate_formulas(values, unchanged)
        for column, name in enumerate(names):
            if name in formulas:
                formula = f"={formulas[name]}"
                sheet.write_formula(row, column, formula, formats[name], values[name])
            elif name:
                sheet.write(row, column, values[name], inputs.get(name))
    last = FIRST_ROW + len(shown) - 1
    _colour(book, sheet, names, last)
    several = len({sweep.cases[index].chip for index in shown}) < len(shown)
    _draw_bars(book, sheet, names, min(last, FIRST_ROW + MAX_BARS - 1), several=several)
    sheet.autofit(WIDEST)
    for column, name in enumerate(names):
        if FORMATS.get(name) in (SCIENTIFIC, PERCENT, NUMBER):  # autofit counts every digit
            sheet.set_column(column, column, len(name) + 2)
    title = f"{op.x},{op.w}->{op.out} on one chip, as in sweep {sweep.name}"
    sheet.write_string(0, 0, title, book.add_format({"bold": True, "font_size": 14}))
    notes = ["Change the yellow cells: bounds, and the chart beside them, follow."]
    if has_estimates:
        notes += ["Estimates, with 80% of the timings from p10 to p90, are of the first inputs."]
    if len(shown) < sweep.rows:
        notes += [f"Shown are {len(shown)} of {sweep.rows:,} rows: the first dtypes of a chip."]
    sheet.write_string(1, 0, " ".join(notes))
    sheet.freeze_panes(FIRST_ROW, 2)
    sheet.repeat_rows(UNITS_ROW, FIRST_ROW - 1)


def _head(book: Workbook, sheet: Worksheet, sweep: Sweep, names: Sequence[str]) -> dict[str, str]:
    """Write sizes, column names and units; return each size's cell."""
    size = book.add_format({**YELLOW, "num_format": INTEGER})
    heading, unit = book.add_format(HEADING), book.add_format(UNIT)
    over_number, unit_over = (book.add_format({**form, **RIGHT}) for form in (HEADING, UNIT))
    sizes = {}
    for column, dim in enumerate(sweep.op.dims):
        sheet.write_string(SIZES_ROW, column, dim, heading)
        sheet.write_number(SIZES_ROW + 1, column, float(sweep.size_columns[dim][0]), size)
        sizes[dim] = xl_rowcol_to_cell(SIZES_ROW + 1, column, row_abs=True, col_abs=True)
    units = {column.name: column.unit for column in (*METRICS, *SOLUTION)}
    units |= {name: input_unit for name, (input_unit, _) in INPUTS.items()}
    units |= dict.fromkeys(("critical", "critical_exact"), f"from {sweep.solved[0]} =")
    for column, name in enumerate(names):
        text = name in TEXTS
        column_unit = units.get(name, "").removeprefix("1")
        sheet.write_string(UNITS_ROW, column, column_unit, unit if text else unit_over)
        sheet.write_string(UNITS_ROW + 1, column, name, heading if text else over_number)
    return sizes


def _colour(book: Workbook, sheet: Worksheet, names: Sequence[str], last: int) -> None:
    """Colour peak shares by their size, and sizes that do not exist."""
    share, critical = names.index("utilization"), names.index("critical")
    scale = {"type": "2_color_scale", "min_type": "num", "max_type": "num"}
    ends = {"min_value": 0, "max_value": 1, "min_color": "#FFFFFF", "max_color": "#93C5FD"}
    sheet.conditional_format(FIRST_ROW, share, last, share, {**scale, **ends})
    sheet.conditional_format(FIRST_ROW, critical, last, critical, never_rule(book))


def _draw_bars(
    book: Workbook, sheet: Worksheet, names: Sequence[str], last: int, *, several: bool
) -> None:
    """Draw peak shares as bars, beside the inputs.

    Args:
        book: The workbook.
        sheet: The sheet.
        names: The columns.
        last: The last row with a bar.
        several: Whether a chip has several rows, so that its name alone does not tell them apart.
    """
    share, title = names.index("utilization"), "Share of peak at the sizes in yellow"
    series = {
        "name": title,
        "categories": [sheet.get_name(), FIRST_ROW, 0, last, int(several)],
        "values": [sheet.get_name(), FIRST_ROW, share, last, share],
        "gap": 40,
    }
    chart = book.add_chart({"type": "bar"})
    chart.add_series(series)
    chart.set_title({"name": title})
    chart.set_legend({"none": True})
    chart.set_y_axis({"reverse": True, "interval_unit": 1})
    chart.set_x_axis({"min": 0, "max": 1, "num_format": "0%"})
    chart.set_size({"width": 640, "height": 100 + 22 * (last - FIRST_ROW + 1)})
    sheet.insert_chart(FIRST_ROW, names.index(""), chart)


def _one_size(recipe: JSON) -> Sweep:
    """A sweep at one of its sizes, on one chip."""
    sweep = sweep_of(recipe)
    sizes = {dim: sweep.size_columns[dim] for dim in sweep.op.dims}
    config = {
        **recipe["config"],
        "grid": {dim: int(values[len(values) // 2]) for dim, values in sizes.items()},
        "thresholds": [sweep.first_solved or sweep.op.dims[0]],
        "memory": [sweep.blocks[0].place.memory],
        "measured": None,
    }
    alone = {"shapes": None, "sharding": ["none"], "shards": [1], "network": None, "shares": [1]}
    base: Sweep = sweep_of({**recipe, "config": {**config, **alone}})
    return base


def _shown(sweep: Sweep) -> list[int]:
    """Rows to show from a single-size sweep: at most `MAX_ROWS`."""
    if sweep.rows <= MAX_ROWS:
        return list(range(sweep.rows))
    chips = [case.chip for case in sweep.cases]
    return sorted(chips.index(chip) for chip in dict.fromkeys(chips))[:MAX_ROWS]


def _rows(sweep: Sweep, shown: Sequence[int]) -> Iterator[tuple[Workload, dict[str, Any]]]:
    """Workload and column values for each row in a single-size sweep."""
    table = OperationTable(sweep).frame(0, sweep.rows).collect()
    solved = {(row["chip"], row["dtypes"]): row for row in sweep_thresholds(sweep).to_dicts()}
    for index in shown:
        case, row = sweep.cases[index], table.row(index, named=True)
        machine, workload = case.machine, case.workload
        inputs = {
            "peak": case.peak,
            "peak_efficiency": machine.efficiency[MATH.name],
            "bytes_per_s": machine.level.bytes_per_s,
            "memory_efficiency": machine.efficiency[MEMORY.name],
            **{f"{operand}_bits": bits for operand, bits in workload.bits.items()},
        }
        solution = solved[row["chip"], row["dtypes"]]
        outcome = {
            name: solution["outcome"] if solution[name] is None else solution[name]
            for name in ("critical_exact", "critical")
        }
        yield workload, {**row, **{name: float(n) for name, n in inputs.items()}, **outcome}


# ---------------------------------------------------------------- formulas


def _formulas(workload: Workload, axis: str, cells: Mapping[str, str]) -> dict[str, str]:
    """Formulas in a row.

    Args:
        workload: The costs; its bits are read from cells.
        axis: The dimension whose critical size is computed.
        cells: The cell for each dimension and column.
    """
    flops, memory = workload.costs[MATH.work].terms, _memory_terms(workload)
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


def _estimate_formulas(values: Mapping[str, Any], unchanged: Mapping[str, float]) -> dict[str, str]:
    """Formulas with a row's estimates, as long as no size and no input is changed.

    Args:
        values: The row.
        unchanged: Sizes and inputs by cell.
    """
    same = ",".join(f"{cell}<={value!r},{cell}>={value!r}" for cell, value in unchanged.items())
    return {
        name: f'IF(AND({same}),{values[name]!r},"{OTHER_INPUTS}")'
        for name in ESTIMATES
        if values[name] is not None
    }


def _memory_terms(workload: Workload) -> Terms:
    """Memory bytes as products: dimensions times bits per operand element."""
    terms: dict[Product, Fraction] = {}
    for operand in OPERANDS:
        bits = {stored: Fraction(int(stored == operand)) for stored in OPERANDS}
        cost = replace(workload, bits=bits).costs[MEMORY.work]
        for dims, coefficient in cost.terms.items():
            terms[*dims, Size(f"{operand}_bits")] = coefficient
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
    """A polynomial as a formula."""
    products = [[str(value), *map(cells.__getitem__, names)] for names, value in terms.items()]
    return "+".join(map("*".join, products)) or "0"
