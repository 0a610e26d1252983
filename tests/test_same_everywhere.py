"""Threads, part size, locale, time zone and hash seed change no result."""

import json
import os
import re
import subprocess
from itertools import chain
from pathlib import Path

import pytest
from case_files import case
from processes import python

import rooflines
from rooflines.run.code_digests import closure

SCRIPT = """
import hashlib, json, sys, locale
from pathlib import Path
import polars as pl

sys.path.insert(0, sys.argv[4])
from outputs_made import make_outputs

locale.setlocale(locale.LC_ALL, "")
config = json.loads(sys.argv[1])
folder = Path(sys.argv[2])
for rows in map(int, sys.argv[3].split(",")):
    for sweep in config["sweeps"].values():
        sweep["rows_per_part"] = rows
    results = folder / str(rows)
    made = make_outputs(config, results, "thresholds.parquet", "skipped.csv")
    tables = [
        pl.read_parquet(results / "tables" / name / "*.parquet").write_csv()
        for name in config["sweeps"]
    ]
    thresholds = pl.read_parquet(results / "thresholds.parquet").write_csv()
    texts = [thresholds, (results / "skipped.csv").read_text("utf-8")]
    same = json.dumps([tables, *texts])
    specs = "".join(part.spec for part in made.parts)
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in (same, specs)]
    print(json.dumps([*digests, len(made.parts), pl.thread_pool_size(), str(hash("a"))]))
"""

CONFIG = case("configs/same-everywhere")
ENVIRONMENTS = case("environments")
SUPPORT = Path(__file__).parent / "support"


def comma_locales():
    """Environments with a decimal comma; this machine may have none."""
    command = ["locale", "-a"]
    names = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    commas = [name for name in names if name.startswith(("de_DE", "fr_FR", "tr_TR"))]
    return [{"LC_ALL": name} for name in commas[:2]]


@pytest.mark.slow
def test_numbers_and_specs_are_the_same_everywhere(tmp_path):
    """Of every environment and size of parts the numbers, of every environment the specs."""
    runs = []
    for number, environment in enumerate([*ENVIRONMENTS, *comma_locales()]):
        folder = tmp_path / str(number)
        folder.mkdir()
        words = (SCRIPT, json.dumps(CONFIG), folder, "1000000,999,101", SUPPORT)
        printed = python("-c", *words, env={**os.environ, **environment}, cwd=folder).stdout
        runs.append([json.loads(line) for line in printed.splitlines() if line.startswith("[")])
    numbers, specs, parts, threads, hashes = zip(*chain(*runs), strict=True)
    assert len(set(threads)) >= len(ENVIRONMENTS)
    assert len(set(hashes)) >= len(ENVIRONMENTS)
    assert len(set(numbers)) == 1
    assert len(set(parts)) == 3
    assert len(set(zip(parts, specs, strict=True))) == 3


def test_no_module_asks_for_the_locale_or_the_time():
    package = Path(rooflines.__file__).parent
    folders = closure("solvers")
    files = [file for name in folders for file in (package / name).rglob("*.py")]
    assert len(files) > 20
    modules = ("run/jobs.py", "run/plan.py", "run/table_parts.py", "results/tables.py")
    files += [package / name for name in modules]
    words = re.compile(
        r"import time|\bnow\(|\btoday\(|st_mtime|import locale|environ|getenv|random"
    )
    offenders = {
        str(file.relative_to(package)): words.findall(file.read_text(encoding="utf-8"))
        for file in files
        if file not in (package / "basics" / "errors.py", package / "basics" / "cache.py")
    }
    assert {file: words for file, words in offenders.items() if words} == {}
