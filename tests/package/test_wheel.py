"""The wheel in a fresh environment: its metadata, its files, and the commands of a first visit."""

import email
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def wheel(repository, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "uv", "build", "--quiet", "--no-build-isolation"]
    subprocess.run([*build, "--out-dir", folder, repository], check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def environment(repository, wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin/python"
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--quiet", "--python", python]
    install = [*pip, "install", "--no-deps", "--no-build-isolation", "--no-compile"]
    for lock in ("build", "run"):
        requirements = repository / "requirements" / f"{lock}.lock"
        subprocess.run([*install, "--require-hashes", "--requirement", requirements], check=True)
    subprocess.run([*install, f"{wheel}[workflow]"], check=True)
    subprocess.run([*pip, "check"], check=True)
    return folder / "bin"


@pytest.fixture
def run(environment, tmp_path):
    def command(*arguments):
        return subprocess.run(
            [environment / "rooflines", *arguments],
            cwd=tmp_path,
            env={"PATH": f"{environment}:{os.environ['PATH']}", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    return command


def test_the_metadata_are_ready_for_an_index(wheel):
    with zipfile.ZipFile(wheel) as file:
        (name,) = (name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        text = file.read(name).decode()
    metadata = email.message_from_string(text)
    assert metadata["License-Expression"] == "MIT"
    assert metadata["License-File"] == "LICENSE"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata["Requires-Python"] == ">=3.11"
    assert {"workflow", "measure", "calibrate"} <= set(metadata.get_all("Provides-Extra") or [])
    assert "Typing :: Typed" in (metadata.get_all("Classifier") or [])
    header = text.partition("\n\n")[0]
    assert not re.search(r"file:|localhost|@ ", header)


def test_the_wheel_has_types_catalogues_and_the_workflow(wheel):
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
    assert names >= {
        "rooflines/py.typed",
        "rooflines/data/chips.yaml",
        "rooflines/data/config.yaml",
        "rooflines/data/dtypes.yaml",
        "rooflines/data/models.yaml",
        "rooflines/workflow/Snakefile",
        "rooflines/workflow/rules/bundle.smk",
        "rooflines/workflow/profiles/default/config.yaml",
        "rooflines/workflow/schemas/config.schema.json",
    }
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"rooflines"}


def test_the_first_commands_answer(run, repository):
    explained = run("explain", "h100-sxm", "128x8192x8192", "bf16")
    assert explained.returncode == 0, explained.stderr
    first = explained.stdout.splitlines()[0]
    assert first in (repository / "README.md").read_text(encoding="utf-8")
    assert "at most 42%" in explained.stdout
    listed = run("chips")
    assert listed.returncode == 0, listed.stderr
    assert "h100-sxm" in listed.stdout


def test_a_run_makes_results(run, tmp_path):
    written = run("new", "matmul", "-o", "matmul.yaml")
    assert written.returncode == 0, written.stderr
    done = run("run", "matmul.yaml", "--cores", "2", "--", "workbook", "summary")
    assert done.returncode == 0, done.stderr
    assert zipfile.is_zipfile(tmp_path / "results/rooflines.xlsx")
    assert (tmp_path / "results/summary.csv").read_text(encoding="utf-8").count("\n") > 1
