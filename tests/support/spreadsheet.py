"""The sheet What-if: its formulas computed here, and configs with the same numbers."""

import math
import re
from dataclasses import dataclass
from typing import Any

from threshold_files import write_threshold_files

import rooflines
from rooflines.results.records import RECORDS_FOLDER
from rooflines.run.jobs import write_part
from rooflines.run.plan import plan
from rooflines.workbook.workbook import write_workbook

METRICS = (
    *("flops", "memory_bytes", "memory_intensity", "t_math_s", "t_memory_s", "t_lower_s"),
    *("bound", "attained_flops_per_s", "utilization"),
)
"""Columns of the sheet that a table has."""

TOLERANCE = 1e-12
"""Relative error of formulas, in Float64."""

ADDRESS = re.compile(r"\$?([A-Z]+)\$?(\d+)(?!\()")

FUNCTIONS = {
    "IF": lambda condition, yes, no: yes if condition else no,
    "AND": lambda *conditions: all(conditions),
    "MAX": max,
    "ISNUMBER": lambda value: not isinstance(value, str),
    "ROUNDUP": lambda value, _: math.ceil(value) if not isinstance(value, str) else value,
}


def computed(cells, changed):
    """The values of all cells with formulas, with other numbers in some cells by address."""
    values: dict[str, Any] = {}

    def value(address):
        if address in changed:
            return changed[address]
        if address not in values:
            cell = cells[address]
            values[address] = evaluated(cell.formula) if cell.formula else cell.plain
        return values[address]

    def evaluated(formula):
        code = ADDRESS.sub(lambda match: f'cell("{match[1]}{match[2]}")', formula)
        if "ISNUMBER" in code:  # both branches are computed below, and text has no product
            exact = value(ADDRESS.search(formula)[0])  # type: ignore[index]
            if isinstance(exact, str):
                return exact
        return eval(code, {"__builtins__": {}, "cell": value, **FUNCTIONS})  # noqa: S307

    return {address: value(address) for address, cell in cells.items() if cell.formula}


def written(folder, config):
    """The workbook of a config, with what it is made from."""
    (folder / RECORDS_FOLDER).mkdir(parents=True)
    planned = plan(rooflines.load_config(config))
    path = folder / "rooflines.xlsx"
    inputs = planned.by_path[path.name].inputs
    for output in inputs["thresholds"]:
        write_threshold_files(planned, output.path, folder)
    for part in inputs["tables"]:
        write_part(part.spec, folder / part.path)
    write_workbook(planned.spec(path.name), path)
    return path


@dataclass(frozen=True)
class Question:
    """An operation on a chip, at first in bf16 at sizes of 64, then with other sizes and rates."""

    operation: str
    dims: str
    sizes: tuple[int, ...]
    unit: str = "matrix"
    compute: str = "bf16"
    peak: float = 3e14
    bytes_per_s: float = 2e12

    def config(self):
        """A config whose workbook asks it."""
        return self._config("tpu-v5p", "bf16", dict.fromkeys(self.dims, 64), {})

    def changed(self, cells):
        """The cells that are changed: every input, to weights of four bits among others."""
        inputs = {
            "peak": self.peak,
            "peak_efficiency": 0.75,
            "bytes_per_s": self.bytes_per_s,
            "memory_efficiency": 0.5,
            "w_bits": 4.0,
        }
        columns = columns_of(cells)
        sizes = zip("ABCDEFG", self.sizes, strict=False)
        return {
            **{f"{column}5": float(size) for column, size in sizes},
            **{f"{columns[name]}{HEADER + 1}": value for name, value in inputs.items()},
        }

    def differences(self, cells, values):
        """Columns whose values are not those of a config with the changed numbers."""
        chips = {
            "changed": {
                "base": "tpu-v5p",
                f"units.{self.unit}.{self.compute}.flops_per_s": self.peak,
                "memory.hbm.bytes_per_s": self.bytes_per_s,
                "source": "a test",
            }
        }
        sizes = dict(zip(self.dims, self.sizes, strict=True))
        config = self._config("changed", "int4", sizes, chips)
        config["sweeps"]["asked"]["efficiency"] = {"math": 0.75, "memory": 0.5}
        loaded = rooflines.load_config(config)
        expected = rooflines.rows(loaded, "asked").collect().row(0, named=True)
        (threshold,) = rooflines.thresholds(loaded).to_dicts()
        for name in ("critical", "critical_exact"):
            expected[name] = threshold["outcome"] if threshold[name] is None else threshold[name]
        columns = columns_of(cells)
        shown = {
            name: values[f"{columns[name]}{HEADER + 1}"]
            for name in (*METRICS, "critical_exact", "critical")
        }
        return [
            f"{name}: {value} instead of {expected[name]}"
            for name, value in shown.items()
            if not same(value, expected[name])
        ]

    def _config(self, chip, weights, sizes, chips):
        dtypes = {"x": "bf16", "w": weights, "out": "bf16", "compute": self.compute}
        sweep = {"operation": self.operation, "grid": sizes, "dtypes": [dtypes], "chips": [chip]}
        return {"sweeps": {"asked": sweep}, "chips": chips, "charts": []}


def columns_of(cells):
    """The letters of each column by its name."""
    header = {address: cell.value for address, cell in cells.items()}
    row = re.compile(rf"([A-Z]+){HEADER}")
    found = ((row.fullmatch(address), name) for address, name in header.items())
    return {str(name): match[1] for match, name in found if match and name}


HEADER = 8
"""The row of names of the sheet, counted from 1."""

QUESTIONS = (
    Question("matmul", "BDF", (512, 4096, 1024)),
    Question("per-example-matmul", "BDF", (16, 512, 2048)),
    Question("dot", "D", (4096,), "vector", "fp32", 7e12),
    Question("NQD,NKD->NQK", "NQDK", (4, 1024, 128, 2048)),
)


def same(value, expected, tolerance=TOLERANCE):
    """True if two values are the same text, or numbers within the tolerance."""
    if isinstance(value, int | float) and isinstance(expected, int | float):
        return math.isclose(value, expected, rel_tol=tolerance)
    return value == expected
