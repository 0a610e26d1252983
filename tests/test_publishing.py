"""Files that services read: the GitHub Pages workflow, the workflow catalog, the citation."""

import json
import tomllib
from typing import Any

import jsonschema
import pytest
import yaml


@pytest.fixture
def schema(repository):
    text = (repository / "tests/support/actions.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@pytest.fixture
def pages(repository):
    text = (repository / ".github/workflows/pages.yml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


@pytest.mark.parametrize("name", ["pages", "tests", "weekly"])
def test_a_workflow_follows_the_schema_and_runs_what_exists(name, schema, repository):
    text = (repository / f".github/workflows/{name}.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    jsonschema.validate(yaml.safe_load(text), schema)
    assert all(job["needs"] in jobs for job in jobs.values() if "needs" in job)
    makefile = (repository / "Makefile").read_text(encoding="utf-8")
    commands = [
        step["run"].split() for job in jobs.values() for step in job["steps"] if "run" in step
    ]
    assert commands
    for command, *arguments in commands:
        if command == "make":
            assert [target for target in arguments if f"\n{target}:" not in makefile] == []
        else:
            assert command in ("sudo", ".venv/bin/pytest") or (repository / command).is_file()


def test_the_pages_workflow_uploads_the_bundle(pages, repository):
    jobs = pages["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    (uploaded,) = (step["with"]["path"] for step in steps if "path" in step.get("with", {}))
    assert uploaded.replace("results/", "<results>/") in (
        repository / "workflow/rules/bundle.smk"
    ).read_text(encoding="utf-8")
    assert {"pages": "write", "id-token": "write"} in [
        job.get("permissions") for job in jobs.values()
    ]


def test_the_catalog_of_workflows_finds_what_it_needs(repository):
    assert (repository / "workflow/Snakefile").is_file()
    assert (repository / "config/README.md").is_file()
    entry = yaml.safe_load((repository / ".snakemake-workflow-catalog.yml").read_text())
    assert list(entry) == ["usage"]
    usage = entry["usage"]
    assert set(usage) == {"mandatory-flags", "software-stack-deployment", "report"}
    assert set(usage["mandatory-flags"]) == {"desc", "flags"}
    rules = "".join(path.read_text() for path in (repository / "workflow/rules").glob("*.smk"))
    assert usage["software-stack-deployment"] == {"conda": "conda:" in rules}
    assert usage["report"] == ("report(" in rules)


def test_the_citation_has_the_metadata_of_the_package(repository):
    cited = yaml.safe_load((repository / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (cited["cff-version"], cited["type"]) == ("1.2.0", "software")
    assert (cited["title"], cited["version"]) == (project["name"], project["version"])
    assert (cited["license"], cited["abstract"]) == (project["license"], project["description"])
    assert cited["authors"] == project["authors"]
    assert cited["keywords"] == project["keywords"]
