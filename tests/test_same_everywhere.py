"""Results do not depend on threads, the size of parts, locale, time zone, or hash seed."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rooflines
from rooflines.run.code import closure

SCRIPT = """
import hashlib, json, sys, locale
from pathlib import Path
import polars as pl
import rooflines
from rooflines.run.jobs import write_part, write_skipped
from rooflines.run.solving import write_thresholds
from rooflines.run.plan import plan

locale.setlocale(locale.LC_ALL, "")
config = json.loads(sys.argv[1])
folder = Path(sys.argv[2])
for rows in map(int, sys.argv[3].split(",")):
    for sweep in config["sweeps"].values():
        sweep["rows_per_part"] = rows
    made = plan(rooflines.load_config(config))
    for part in made.parts:
        write_part(part.spec, folder / str(rows) / part.path)
    tables = [
        pl.read_parquet(folder / str(rows) / "tables" / name / "*.parquet").write_csv()
        for name in config["sweeps"]
    ]
    write_thresholds(made.spec("thresholds.parquet"), folder / "t.parquet")
    write_skipped(made.spec("skipped.csv"), folder / "s.csv")
    thresholds = pl.read_parquet(folder / "t.parquet").write_csv()
    texts = [thresholds, (folder / "s.csv").read_text("utf-8")]
    same = json.dumps([tables, *texts])
    specs = "".join(part.spec for part in made.parts)
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in (same, specs)]
    threads, language = pl.thread_pool_size(), locale.getlocale()[0]
    print(json.dumps([*digests, len(made.parts), threads, str(hash("a")), language]))
"""

CONFIG = {
    "sweeps": {
        "split": {
            "operation": "matmul",
            "grid": {
                "B": {"from": 1, "to": 4096, "factor": 16},
                "D": [1000, 4096],
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
ENVIRONMENTS = [
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
def runs(tmp_path_factory):
    outputs = []
    for environment in ENVIRONMENTS + [{"LC_ALL": name} for name in comma_locales()]:
        folder = tmp_path_factory.mktemp("environment")
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT, json.dumps(CONFIG), folder, "1000000,999,101"],
            env={**os.environ, **environment},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert run.returncode == 0, run.stderr
        outputs.append(
            [json.loads(line) for line in run.stdout.splitlines() if line.startswith("[")]
        )
    return outputs


def comma_locales():
    """Locales of this machine with a decimal comma; there may be none."""
    names = subprocess.run(
        ["locale", "-a"],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    return [name for name in names if name.startswith(("de_DE", "fr_FR", "tr_TR"))][:2]


def test_the_environments_differ(runs):
    assert len({str(run[0][3]) for run in runs}) >= 4
    assert len({str(run[0][4]) for run in runs}) >= 3
    parts = [part[2] for part in runs[0]]
    assert parts == sorted(set(parts))


def test_every_number_is_the_same_everywhere(runs):
    assert len({str(part[0]) for run in runs for part in run}) == 1


def test_what_a_job_depends_on_is_the_same_everywhere(runs):
    for of_one_size in zip(*runs, strict=True):
        assert len({str(part[1]) for part in of_one_size}) == 1


def test_no_module_asks_for_the_locale_or_the_time():
    package = Path(rooflines.__file__).parent
    folders = closure("critical")
    files = [file for name in folders for file in (package / name).rglob("*.py")]
    assert len(files) > 20
    modules = ("run/jobs.py", "run/plan.py", "run/parts.py", "results/tables.py")
    files += [package / name for name in modules]
    words = re.compile(r"import time|\bnow\(|\btoday\(|st_mtime|locale|environ|getenv|random")
    offenders = {
        str(file.relative_to(package)): words.findall(file.read_text(encoding="utf-8"))
        for file in files
        if file != package / "basics" / "errors.py"
    }
    assert {file: words for file, words in offenders.items() if words} == {}
