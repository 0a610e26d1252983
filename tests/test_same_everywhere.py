"""Results do not depend on threads, cores, the size of parts, locale, time zone, or the seed of Python's hashes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import hashlib, json, sys, locale
from pathlib import Path
import polars as pl
import rooflines
from rooflines.run.jobs import write_part, write_skipped, write_thresholds
from rooflines.run.plan import plan

locale.setlocale(locale.LC_ALL, "")
config = json.loads(sys.argv[1])
folder = Path(sys.argv[2])
for rows in map(int, sys.argv[3].split(",")):
    for sweep in config["sweeps"].values():
        sweep["rows_per_part"] = rows
    made = plan(rooflines.load_config(config))
    for part in made.parts:
        write_part(part.spec, folder / str(rows) / f"{part.name}.parquet")
    tables = {name: pl.read_parquet(folder / str(rows) / name / "*.parquet").write_csv() for name in config["sweeps"]}
    write_thresholds(made.thresholds_spec, folder / "t.parquet", folder / "t.csv")
    write_skipped(made.skipped_spec, folder / "s.csv")
    whole = json.dumps([tables, (folder / "t.csv").read_text("utf-8"), (folder / "s.csv").read_text("utf-8"), [p.stop for p in made.parts]])
    same = json.dumps([tables, (folder / "t.csv").read_text("utf-8"), (folder / "s.csv").read_text("utf-8")])
    specs = "".join(part.spec for part in made.parts)
    print(json.dumps([hashlib.sha256(same.encode()).hexdigest(), hashlib.sha256(specs.encode()).hexdigest(), len(made.parts),
        pl.thread_pool_size(), str(hash("a")), locale.getlocale()[0]]))
"""

CONFIG = {
    "sweeps": {
        "split": {
            "operation": "matmul",
            "grid": {
                "B": {"from": 1, "to": 4096, "factor": 1.5},
                "D": [512, 1000, 4096],
                "F": [4096, 14336],
            },
            "dtypes": ["bf16", "fp8", "w-mxfp4-x-bf16", "int8"],
            "chips": ["tpu-v5e", "h100-sxm", "a100-sxm-80gb"],
            "sharding": ["none", "column/gather-x", "contracting/all-reduce"],
            "shards": [1, 2, 3, 8, 16],
            "thresholds": ["B", "D", "shards"],
        },
        "shaped": {
            "operation": "sequence-matmul",
            "grid": {"B": [1, 8, 64], "S": [128, 4096]},
            "shapes": [
                {"name": "é, ça", "D": 4096, "F": 14336},
                {"name": "down", "D": 14336, "F": 4096},
            ],
            "dtypes": ["bf16"],
            "chips": ["tpu-v5e", "h100-sxm"],
            "memory": ["hbm", "l2"],
        },
    },
    "charts": [],
}
PLACES = [
    {"POLARS_MAX_THREADS": "1", "PYTHONHASHSEED": "1", "TZ": "UTC", "LC_ALL": "C"},
    {
        "POLARS_MAX_THREADS": "2",
        "PYTHONHASHSEED": "2",
        "TZ": "Pacific/Kiritimati",
        "LC_ALL": "C.UTF-8",
    },
    {
        "POLARS_MAX_THREADS": "7",
        "PYTHONHASHSEED": "0",
        "TZ": "America/St_Johns",
        "LC_ALL": "POSIX",
        "PYTHONUTF8": "0",
    },
    {
        "POLARS_MAX_THREADS": "16",
        "PYTHONHASHSEED": "4294967295",
        "TZ": ":nonsense",
        "LC_ALL": "",
        "LANG": "",
        "PYTHONOPTIMIZE": "2",
    },
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[list[list[object]]]:
    """The same config in several environments, each with several sizes of parts."""
    found = []
    for place in PLACES + [{"LC_ALL": name} for name in comma_locales()]:
        folder = tmp_path_factory.mktemp("place")
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT, json.dumps(CONFIG), folder, "1000000,999,101"],
            env={**os.environ, **place},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert run.returncode == 0, run.stderr
        found.append([json.loads(line) for line in run.stdout.splitlines() if line.startswith("[")])
    return found


def comma_locales() -> list[str]:
    """Locales of this machine that write 1,5 for one and a half; there may be none."""
    known = subprocess.run(
        ["locale", "-a"],
        capture_output=True,
        text=True,
        check=False,  # noqa: S607
    ).stdout.split()
    return [name for name in known if name.startswith(("de_DE", "fr_FR", "tr_TR"))][:2]


def test_the_environments_differ(runs: list[list[list[object]]]) -> None:
    """Threads, hashes and parts were really varied."""
    assert len({str(run[0][3]) for run in runs}) >= 4
    assert len({str(run[0][4]) for run in runs}) >= 3
    assert [part[2] for part in runs[0]] == sorted({part[2] for part in runs[0]})  # type: ignore[type-var]


def test_every_number_is_the_same_everywhere(runs: list[list[list[object]]]) -> None:
    """All rows, thresholds and skipped rows, to the last digit, whatever the threads, hashes, locale, time zone and size of parts."""
    assert len({str(part[0]) for run in runs for part in run}) == 1


def test_what_a_job_depends_on_is_the_same_everywhere(runs: list[list[list[object]]]) -> None:
    """A part's description has the same text in every environment, or jobs would run again for nothing."""
    for of_one_size in zip(*runs, strict=True):
        assert len({str(part[1]) for part in of_one_size}) == 1


def test_no_module_asks_for_the_locale_or_the_time() -> None:
    """What computes and writes tables reads no clock, no locale, no environment and no chance."""
    package = Path(__file__).resolve().parent.parent / "rooflines"
    rows = (
        "numbers",
        "sizes",
        "operation",
        "sharding",
        "work",
        "resources",
        "combinations",
        "axes",
        "sweep",
        "space",
        "table_rows",
    )
    for module in (
        *rows,
        "solving",
        "critical",
        "critical_sizes",
        "critical_shards",
        "dictionary",
        "jobs",
        "parts",
    ):
        text = (package / f"{module}.py").read_text(encoding="utf-8")
        for word in (
            "import time",
            "datetime",
            "locale",
            "os.environ",
            "getenv",
            "random",
            "import os",
        ):
            assert word not in text, (module, word)
