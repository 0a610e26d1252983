"""Origin of a file, and whether it is unchanged.

A file in a results folder has a record. A table has its metadata anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rooflines.basics.errors import RooflinesError
from rooflines.hardware.chip_catalogue import chip_sources
from rooflines.results import records
from rooflines.results.atomic import LEFTOVER
from rooflines.results.folders import (
    FOLDERS,
    MEASURED_FOLDER,
    SCENARIOS_FOLDER,
    TRACES_FOLDER,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

UNCHANGED = "is as it was written"
NO_RECORD = "has no record of what made it"


@dataclass(frozen=True)
class Origin:
    """Origin of a file or folder.

    Attributes:
        file: The file or folder.
        verdict: Comparison with the content written, in words that follow the file's name.
        whole: Whether the content is as it was written.
        output: The workflow's output that contains the file; None if unknown.
        made_with: Versions of the software that made it, by name.
        sweeps: Config, catalogue entries with sources, and dtypes behind the numbers, by sweep.
        measurements: Config, entries and dtypes behind timings, their file with its digest, and
            the method, by set.
        traces: Config, files with their digests, and chip behind traces, by name.
        charts: Charts in the file, as specified to their job.
        sha256: Digest now; empty for folders.
        models: Documents with the models' architectures, by model.
    """

    file: Path
    verdict: str
    whole: bool
    output: Path | None = None
    made_with: Mapping[str, str] = field(default_factory=dict)
    sweeps: Mapping[str, Any] = field(default_factory=dict)
    charts: Sequence[Any] = ()
    sha256: str = ""
    models: Mapping[str, str] = field(default_factory=dict)
    measurements: Mapping[str, Any] = field(default_factory=dict)
    traces: Mapping[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """Whole origin as YAML."""
        parts = {
            "charts": list(self.charts),
            "sweeps": dict(self.sweeps),
            "models": dict(self.models),
            "measurements": dict(self.measurements),
            "traces": dict(self.traces),
        }
        if self.sweeps or self.measurements:
            parts["sources"] = self.sources()
        return self._yaml(parts)

    def summary(self) -> str:
        """Origin without configs and numbers: names of charts, sweeps, chips, models, sources."""
        made_from = {"sweeps": self.sweeps, "measurements": self.measurements}
        parts: dict[str, Any] = {"charts": ", ".join(chart["id"] for chart in self.charts)}
        for kind, recipes in made_from.items():
            parts[kind] = {name: _names_in(recipe) for name, recipe in recipes.items()}
        parts["notes"] = notes_of(self.sweeps.values())
        if self.sweeps or self.measurements:
            parts["sources"] = ", ".join(self.sources())
        return self._yaml(parts)

    def _yaml(self, parts: Mapping[str, Any]) -> str:
        """File, verdict, software versions, and further parts that are not empty, as YAML."""
        content: dict[str, Any] = {"file": str(self.file), "verdict": self.verdict}
        optional = {
            "sha256": self.sha256,
            "output": str(self.output or ""),
            "made_with": dict(self.made_with),
            **parts,
        }
        content |= {name: value for name, value in optional.items() if value}
        return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=140)

    def sources(self) -> dict[str, Any]:
        """Sources that the catalogue entries name, as in the catalogue now."""
        made_from = (*self.sweeps.values(), *self.measurements.values())
        named = {name for recipe in made_from for name in _source_names(recipe["chips"])}
        return {name: source for name, source in chip_sources().items() if name in named}


def notes_of(recipes: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Notes about omissions and assumptions, by model that has one."""
    models = (model for recipe in recipes for model in recipe.get("models", {}).items())
    return {name: entry["note"] for name, entry in models if "note" in entry}


def _names_in(recipe: Mapping[str, Any]) -> dict[str, str]:
    """Names of a recipe's catalogue entries, by catalogue."""
    dtypes = {**recipe["dtypes"].get("combinations", {}), **recipe["dtypes"].get("formats", {})}
    named = {"chips": recipe["chips"], "models": recipe.get("models", {}), "dtypes": dtypes}
    return {kind: ", ".join(entries) for kind, entries in named.items() if entries}


def _source_names(entry: object, *, source: bool = False) -> Iterator[str]:
    """Iterate over all text under `source` anywhere in a catalogue entry."""
    if isinstance(entry, str) and source:
        yield entry
    elif isinstance(entry, list):
        for part in entry:
            yield from _source_names(part, source=source)
    elif isinstance(entry, dict):
        for name, part in entry.items():
            yield from _source_names(part, source=source or name == "source")


def origin(file: str | Path) -> Origin:
    """Find the origin of a table, chart, CSV or folder, and whether it is unchanged.

    Args:
        file: The file, or a folder that a job writes as a whole, such as `results/charts/compared`.

    Returns:
        The recorded origin. Every byte of the file is read.

    Raises:
        RooflinesError: The file does not exist.
    """
    path = Path(file)
    if not path.exists():
        fix = "give a file that the workflow made"
        raise RooflinesError("", "does not exist", fix, file=str(file))
    digest = records.digest_of(path) if path.is_file() else ""
    home, absolute = records.results_root(path), path.absolute()
    for output in (absolute, *absolute.parents) if home else ():
        if output == home:
            break
        record = records.record_of(home, output) if home else None
        if home and record:
            return _origin_from_record(path, digest, output, record)
    return _origin_without_record(path, digest)


def read_error(file: object, error: OSError) -> RooflinesError:
    """Error for a file that the system does not allow to read."""
    fix = "make it readable, or give another path"
    return RooflinesError("", f"cannot be read: {error.strerror}", fix, file=str(file))


def _origin_from_record(path: Path, digest: str, output: Path, record: records.Record) -> Origin:
    """Build the origin that a record describes.

    Args:
        path: The file or folder.
        digest: The file's digest.
        output: The workflow's output that contains it.
        record: The output's record.
    """
    spec, name = record.spec, path.absolute().relative_to(output).as_posix()
    charts = spec.get("charts", [])
    if name not in (".", "index.json"):
        file_charts = [
            chart for chart in charts if name.startswith((f"{chart['id']}-", f"{chart['id']}."))
        ]
        charts = sorted(file_charts, key=lambda chart: len(chart["id"]))[-1:]
    recipes = _recipes(records.results_root(output), record)
    if charts:
        names = {chart["sweep"] for chart in charts}
        chips = {chip for chart in charts for chip in chart["chips"]}
        recipes = [
            {
                **recipe,
                "chips": {chip: recipe["chips"][chip] for chip in recipe["chips"] if chip in chips},
            }
            for recipe in recipes
            if recipe.get("sweep", recipe.get("measurement")) in names
        ]
    sweeps, measurements = merge_recipes(recipes), _by_measurement(recipes)
    damage = _damage(path, record, name)
    return Origin(
        path,
        damage or UNCHANGED,
        damage is None,
        output,
        record.made_with,
        sweeps,
        charts,
        digest,
        _model_sources(spec, sweeps),
        measurements,
        {recipe["trace"]: recipe for recipe in recipes if "trace" in recipe},
    )


RECIPE_KINDS = ("sweeps", "measurements", "traces")
"""Keys of a spec with recipes."""


def _recipes(home: Path | None, record: records.Record) -> list[Any]:
    """Recipes of sweeps and timings behind an output: in its record, or in those of its inputs."""
    spec = record.spec
    recipes = [recipe for kind in RECIPE_KINDS for recipe in spec.get(kind, [])]
    recipes += [spec] if "sweep" in spec else []
    names = spec.get("inputs", []) if home and not recipes else []
    inputs = (records.record_of(home, home / name) for name in names if home)
    return recipes + [
        recipe for input_record in inputs if input_record for recipe in _recipes(home, input_record)
    ]


def _damage(path: Path, record: records.Record, name: str) -> str | None:
    """Difference from the content written, in words that follow the name; None without one."""
    if name == ".":
        return record.damage(path)
    if name not in record.files:
        return "is in a folder of the workflow and was not made by it"
    return replace(record, files={".": record.files[name]}).damage(path)


def _by_measurement(recipes: Iterable[Any]) -> dict[str, Any]:
    """Recipes of timings by set name."""
    return {
        recipe["measurement"]: {key: recipe[key] for key in recipe if key != "measurement"}
        for recipe in recipes
        if "measurement" in recipe
    }


def _model_sources(spec: Mapping[str, Any], sweeps: Mapping[str, Any]) -> dict[str, str]:
    """Documents with model architectures, by model: from the catalogue, or from sweeps."""
    if isinstance(spec.get("models"), list):
        return {row["model"]: row["source"] for row in spec["models"]}
    return {
        name: model["source"]
        for sweep in sweeps.values()
        for name, model in sweep.get("models", {}).items()
    }


def _origin_without_record(path: Path, digest: str) -> Origin:
    """Build the origin of a file without a record: a table still has metadata."""
    unknown = Origin(path, NO_RECORD, whole=False, sha256=digest)
    if path.suffix != ".parquet" or not path.is_file():
        return unknown
    from rooflines.results.tables import metadata_of  # noqa: PLC0415 - a record alone does not wait for polars

    try:
        metadata = metadata_of(path)
    except RooflinesError:
        return unknown
    recipes = metadata["made_from"]
    return replace(
        unknown,
        made_with={"rooflines": str(metadata["version"])},
        sweeps=merge_recipes(recipes),
        charts=[metadata["chart"]] if "chart" in metadata else [],
        measurements=_by_measurement(recipes),
    )


def merge_recipes(recipes: Iterable[Any]) -> dict[str, Any]:
    """Merge recipes of sweeps by name, with models and chips from all parts."""
    sweeps: dict[str, Any] = {}
    for recipe in (recipe for recipe in recipes if "sweep" in recipe):
        sweep = sweeps.setdefault(
            recipe["sweep"],
            {"config": dict(recipe["config"]), "dtypes": recipe["dtypes"]},
        )
        for key in ("chips", "models") if "models" in recipe else ("chips",):
            sweep[key] = {**sweep.get(key, {}), **recipe[key]}
            sweep["config"][key] = list(sweep[key])
    return sweeps


def check_results(results: str | Path) -> Iterator[tuple[Path, str | None]]:
    """Check that everything in a results folder is as it was written; every byte is read.

    Args:
        results: The results folder.

    Yields:
        Each output, and each further file in the folders of tables and charts, with the problem in
        words that follow its name; None without one.
    """
    home = Path(results)
    outputs = records.recorded_outputs(home)
    for output in outputs:
        record = records.record_of(home, output)
        if not output.exists():
            yield output, "is not there and was written"
        else:
            yield output, record.damage(output) if record else "has a record that cannot be read"
    recorded = {
        file for output in outputs if output.exists() for file in records.files_in(output).values()
    }
    for folder in (*FOLDERS, MEASURED_FOLDER, TRACES_FOLDER, SCENARIOS_FOLDER, "charts"):
        for file in sorted((home / folder).rglob("*")):
            temporary = any(fnmatch(part, LEFTOVER) for part in file.parts)
            if (
                file.is_file()
                and file not in recorded
                and not temporary
                and not any(output in file.parents for output in outputs)
            ):
                yield file, NO_RECORD
