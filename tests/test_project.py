"""Dependencies are pinned with hashes, and the project's files agree with each other."""

import json
import re
import tomllib
from itertools import combinations

import jsonschema
import pytest
import yaml
from documents import ROOT

from rooflines.cli.run import SNAKEMAKE

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

COMMANDS_NEED = ("workflow", "measure", "calibrate")
"""The extras that commands need."""

LOCKS = ("build", "run", "dev", "engines", "engines-dev")


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def locked(name):
    text = text_of(f"requirements/{name}.lock")
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_a_hash_for_every_package_and_no_address(name):
    text = text_of(f"requirements/{name}.lock")
    requirements = re.split(r"\n(?=\S)", text.strip())
    assert all(
        re.match(r"[a-z0-9-]+==\S+", requirement) and "--hash=sha256:" in requirement
        for requirement in requirements
    )
    assert "://" not in text
    assert not re.search(r"^\s*-(?!-hash=)", text, re.MULTILINE), "an option"


def test_the_locks_agree():
    for first, second in combinations(map(locked, LOCKS), 2):
        both = first.keys() & second
        assert {name: first[name] for name in both} == {name: second[name] for name in both}


def test_the_setup_has_what_every_command_needs():
    extras, makefile = PROJECT["optional-dependencies"], text_of("Makefile")
    needed = [*PROJECT["dependencies"], *(n for extra in COMMANDS_NEED for n in extras[extra])]
    names = {re.split("[<>=]", each)[0].lower() for each in needed}
    assert names <= locked("run").keys()
    assert all(f"--extra {extra} " in makefile for extra in COMMANDS_NEED)
    assert SNAKEMAKE in extras["workflow"]


def test_nothing_installs_a_package_of_this_name():
    files = [*ROOT.glob("rooflines/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    install = r"pip install ['\"]?rooflines"
    assert [path.name for path in files if re.search(install, path.read_text("utf-8"))] == []


def test_every_dependency_says_what_it_is_for():
    lines = [
        line
        for line in text_of("pyproject.toml").splitlines()
        if re.match(r'    "[A-Za-z-]+[<>=]', line)
    ]
    assert len(lines) > len(PROJECT["dependencies"])
    assert all("# " in line for line in lines)


def test_guarantees_name_tests_that_there_are():
    guarantees = text_of("CONTRIBUTING.md").partition("## Guarantees")[2]
    named = set(re.findall(r"`((?:tests)/[^`]+\.py)`", guarantees))
    assert len(named) > 30
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("name", ["pages", "tests", "weekly"])
def test_a_workflow_of_github_follows_the_schema_and_runs_what_exists(name):
    workflow = yaml.safe_load(text_of(f".github/workflows/{name}.yml"))
    jsonschema.validate(workflow, json.loads(text_of("tests/support/actions.schema.json")))
    jobs, makefile = workflow["jobs"], text_of("Makefile")
    assert all(job["needs"] in jobs for job in jobs.values() if "needs" in job)
    commands = [
        step["run"].split() for job in jobs.values() for step in job["steps"] if "run" in step
    ]
    assert commands
    for command, *arguments in commands:
        if command == "make":
            assert [target for target in arguments if f"\n{target}:" not in makefile] == []
        else:
            assert command in ("sudo", ".venv/bin/pytest") or (ROOT / command).is_file()


def test_the_pages_workflow_uploads_the_bundle():
    jobs = yaml.safe_load(text_of(".github/workflows/pages.yml"))["jobs"].values()
    steps = [step.get("with", {}) for job in jobs for step in job["steps"]]
    (uploaded,) = (step["path"] for step in steps if "path" in step)
    assert uploaded.replace("results/", "<results>/") in text_of("workflow/rules/bundle.smk")
    assert {"pages": "write", "id-token": "write"} in [job.get("permissions") for job in jobs]


def test_the_catalog_of_workflows_finds_what_it_needs():
    assert (ROOT / "workflow/Snakefile").is_file()
    assert (ROOT / "config/README.md").is_file()
    entry = yaml.safe_load(text_of(".snakemake-workflow-catalog.yml"))
    assert list(entry) == ["usage"]
    usage = entry["usage"]
    assert set(usage) == {"mandatory-flags", "software-stack-deployment", "report"}
    assert set(usage["mandatory-flags"]) == {"desc", "flags"}
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    assert usage["software-stack-deployment"] == {"conda": "conda:" in rules}
    assert usage["report"] == ("report(" in rules)


def test_the_citation_has_the_metadata_of_the_package():
    cited = yaml.safe_load(text_of("CITATION.cff"))
    assert (cited["cff-version"], cited["type"]) == ("1.2.0", "software")
    assert (cited["title"], cited["version"]) == (PROJECT["name"], PROJECT["version"])
    assert (cited["license"], cited["abstract"]) == (PROJECT["license"], PROJECT["description"])
    assert cited["authors"] == PROJECT["authors"]
    assert cited["keywords"] == PROJECT["keywords"]


README_COMMANDS = re.findall(r"^    (make \S+)", text_of("README.md"), re.MULTILINE)


def test_readme_has_the_set_up_the_main_job_and_the_tests():
    assert README_COMMANDS == ["make setup", "make sweep", "make setup-test", "make test"]
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    assert {command.removeprefix("make ") for command in README_COMMANDS} <= targets


def test_ci_runs_the_set_up_and_the_tests_of_readme():
    lines = text_of(".ci/run").splitlines()
    expected = [command for command in README_COMMANDS if command != "make sweep"]
    assert [line for line in lines if line in README_COMMANDS] == expected


def test_the_package_names_pages_that_exist():
    sources = [path for folder in ("rooflines", "workflow") for path in (ROOT / folder).rglob("*")]
    texts = [path.read_text("utf-8") for path in sources if path.suffix in (".py", ".smk", ".yaml")]
    named = {name for text in texts for name in re.findall(r"\bdocs/[a-z-]+\.md", text)}
    assert "docs/write-a-config.md" in named
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


def test_contributing_repeats_no_command_of_readme():
    text = text_of("CONTRIBUTING.md")
    assert [name for name in README_COMMANDS if re.search(rf"{name}(?![a-z-])", text)] == []
