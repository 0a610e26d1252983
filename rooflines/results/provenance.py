"""Where a file comes from, and whether it still is what was written: from its record, or from its digest where it was copied.

    python -m rooflines.provenance results/charts/compared/critical-of-layers-light.png
    python -m rooflines.provenance ~/talk/figure.svg --results results
    python -m rooflines.provenance results

It ends with 0 where everything is as it was written, with 1 where something is not or nobody knows, with 2 where it was asked wrongly.
"""

from __future__ import annotations

import argparse
import io
import signal
import sys
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import yaml

from rooflines.basics.errors import RooflinesError, printable
from rooflines.catalogue.chips import chip_sources
from rooflines.results.records import (
    FOLDER,
    LEFTOVER,
    Record,
    digest_of,
    files_in,
    home_of,
    record_of,
    recorded_outputs,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["Origin", "command", "faults_in", "main", "origin"]

WHOLE = "is as it was written"
UNKNOWN = "has no record of what made it (where it is a copy, --results FOLDER says of what)"
COPIED = "has no record, and no file of that content was written to {}"
GARBLED = "does not have the form that this program writes"

NO_RECIPE = (LookupError, TypeError, ValueError, AttributeError, RecursionError)
"""What reading a record or metadata raises that other programs, or none, wrote."""

DEEPEST = 60
"""Levels of nesting of what a record may say; a config has at most 40 [1]."""


@dataclass(frozen=True)
class Origin:
    """Where a file comes from.

    Attributes:
        file: The file or folder that was asked for.
        verdict: How it compares with what was written, in words that follow its name.
        whole: Whether it is as it was written.
        output: The output of the workflow that it is, or is in, or is a copy of; None where nobody knows.
        made_with: Versions of what made it, by name.
        sweeps: By name: the config, the catalogue entries with their sources, and the dtypes that its numbers come from.
        charts: The charts that it shows, as their job was told.
        sha256: Its digest as it is now; empty for folders.
    """

    file: Path
    verdict: str
    whole: bool
    output: Path | None = None
    made_with: Mapping[str, str] = field(default_factory=dict)
    sweeps: Mapping[str, Any] = field(default_factory=dict)
    charts: Sequence[Any] = ()
    sha256: str = ""

    def text(self) -> str:
        """All of it as YAML."""
        known: dict[str, Any] = {"file": str(self.file), "verdict": self.verdict}
        known |= {"sha256": self.sha256} if self.sha256 else {}
        known |= {"output": str(self.output)} if self.output else {}
        known |= {"made_with": dict(self.made_with)} if self.made_with else {}
        known |= {"charts": list(self.charts)} if self.charts else {}
        known |= {"sweeps": dict(self.sweeps)} if self.sweeps else {}
        known |= {"sources": self.sources()} if self.sweeps else {}
        return yaml.safe_dump(known, sort_keys=False, allow_unicode=True, width=140)

    def sources(self) -> dict[str, Any]:
        """What the sources are that the catalogue entries name, as the catalogue has them now."""
        named = {name for sweep in self.sweeps.values() for name in _named(sweep["chips"])}
        return {name: source for name, source in chip_sources().items() if name in named}


def _named(entry: object, *, source: bool = False) -> Iterator[str]:
    """All that stands under `source` anywhere in a catalogue entry."""
    if isinstance(entry, str) and source:
        yield entry
    elif isinstance(entry, list):
        for part in entry:
            yield from _named(part, source=source)
    elif isinstance(entry, dict):
        for name, part in entry.items():
            yield from _named(part, source=source or name == "source")


def origin(file: str | Path, results: str | Path | None = None) -> Origin:
    """Where a table, chart, CSV or folder comes from, and whether it still is what was written.

    Args:
        file: The file, or a folder that the workflow makes as a whole, such as `results/charts/compared`.
        results: The folder of results in which to look for what it is a copy of; by default it is looked for where the file is.

    Returns:
        What is known. Every byte of the file is read.

    Raises:
        RooflinesError: There is no such file, or no folder of results.
    """
    path = Path(file)
    give = "give a file that the workflow made, or a copy of one"
    try:
        if not path.exists():
            raise RooflinesError("", "does not exist", give, file=str(file))
        if not (path.is_file() or path.is_dir()):
            raise RooflinesError("", "is neither a file nor a folder", give, file=str(file))
        digest = digest_of(path) if path.is_file() else ""
        if results is None:
            found = _recorded(path)
            return (
                _known(path, digest, found, found.damage(path))
                if found
                else _by_itself(path, digest, UNKNOWN)
            )
        if not (Path(results) / FOLDER).is_dir():
            raise RooflinesError(
                "",
                f"has no records in {FOLDER}",
                "give the folder that the workflow writes to",
                file=str(results),
            )
        found = _copied_from(digest, Path(results))
        return (
            _known(path, digest, found, None)
            if found
            else _by_itself(path, digest, COPIED.format(results))
        )
    except OSError as error:
        raise unreadable(file, error) from None


def unreadable(file: object, error: OSError) -> RooflinesError:
    """What to do about a file that the system does not let one read."""
    return RooflinesError(
        "",
        f"cannot be read: {error.strerror}",
        "make it readable, or give another path",
        file=str(file),
    )


class Found(NamedTuple):
    """A record that was found for a file.

    Attributes:
        home: The folder of results.
        output: The output of the workflow.
        record: Its record.
        name: Which of its files it is; "." for all of it.
    """

    home: Path
    output: Path
    record: Record
    name: str

    def damage(self, path: Path) -> str | None:
        """How a file, or a whole folder, differs from what was written, in words that follow its name."""
        if self.name == ".":
            return self.record.damage(path)
        if self.name not in self.record.files:
            return "is in a folder of the workflow and was not made by it"
        return Record({}, None, (), {}, {".": self.record.files[self.name]}).damage(path)


def _known(path: Path, digest: str, found: Found, damage: str | None) -> Origin:
    """The origin of a file whose record was found."""
    try:
        return _as_recorded(path, digest, found, damage)
    except NO_RECIPE:
        return Origin(
            path, f"has a record, which {GARBLED}", whole=False, output=found.output, sha256=digest
        )


def _as_recorded(path: Path, digest: str, found: Found, damage: str | None) -> Origin:
    """The origin that a record describes.

    Raises:
        LookupError, TypeError, ValueError, AttributeError, RecursionError: It has another form than the records of this package.
    """
    spec, name = found.record.spec, found.name
    charts = spec.get("charts", []) if isinstance(spec, dict) else []
    shown = [
        c
        for c in charts
        if name in (".", "index.json")
        or name.startswith((f"{c['id']}-light.", f"{c['id']}-dark.", f"{c['id']}."))
    ]
    sweeps = _sweeps(found.home, found.record)
    if shown:
        sweeps = {
            sweep: sweeps[sweep] for sweep in sweeps if sweep in {chart["sweep"] for chart in shown}
        }
    _check_depth([sweeps, shown], DEEPEST)
    return Origin(
        path,
        damage or WHOLE,
        damage is None,
        found.output,
        found.record.made_with,
        sweeps,
        shown,
        digest,
    )


def _check_depth(data: object, levels: int) -> None:
    """Raise ValueError where plain data is nested deeper than so many levels."""
    if isinstance(data, dict | list) and data:
        if not levels:
            raise ValueError
        for part in data.values() if isinstance(data, dict) else data:
            _check_depth(part, levels - 1)


def _by_itself(path: Path, digest: str, verdict: str) -> Origin:
    """The origin of a file without a record: a table says in its own metadata what made it, if not whether it is whole."""
    unknown = Origin(path, verdict, whole=False, sha256=digest)
    if path.suffix != ".parquet" or not path.is_file():
        return unknown
    from rooflines.results.tables import metadata_of  # noqa: PLC0415 - what has a record does not wait for polars

    try:
        about = metadata_of(path)
        charts = [about["chart"]] if "chart" in about else []
        sweeps = merged(about.get("made_from", []))
        _check_depth([sweeps, charts], DEEPEST)
        return replace(
            unknown, made_with={"rooflines": str(about["version"])}, sweeps=sweeps, charts=charts
        )
    except RooflinesError:
        return unknown
    except NO_RECIPE:
        return replace(unknown, verdict=f"{verdict}; its metadata {GARBLED}")


def _recorded(path: Path) -> Found | None:
    """The record of a file that stands where it was written."""
    home, here = home_of(path), path.absolute()
    for output in (here, *here.parents) if home else ():
        if output == home:
            break
        record = record_of(home, output) if home else None
        if home and record:
            return Found(home, output, record, here.relative_to(output).as_posix())
    return None


def _copied_from(digest: str, home: Path) -> Found | None:
    """The record of the output that has, or had, a file of some content; the bundle, which has copies itself, comes last."""
    for output in sorted(recorded_outputs(home), key=lambda output: output.name == "bundle"):
        record = record_of(home, output)
        for name, (_, written) in record.files.items() if record else ():
            if record and written == digest:
                return Found(home, output, record, name)
    return None


def _sweeps(home: Path, record: Record) -> dict[str, Any]:
    """The sweeps that an output's numbers come from: of its recipes, or, for the list of parts, of the parts."""
    spec = record.spec
    recipes = list(record.recipes)
    if isinstance(spec, dict):
        recipes += spec.get("sweeps") or ([spec] if "sweep" in spec else [])
    elif isinstance(spec, list):
        parts = (record_of(home, home / "tables" / row["path"]) for row in spec)
        recipes += [part.spec for part in parts if part is not None]
    return merged(recipes)


def merged(recipes: Iterable[Any]) -> dict[str, Any]:
    """Recipes by the name of their sweep, the chips of all parts together."""
    sweeps: dict[str, Any] = {}
    for recipe in recipes:
        sweep = sweeps.setdefault(
            recipe["sweep"],
            {"config": dict(recipe["config"]), "chips": {}, "dtypes": recipe["dtypes"]},
        )
        sweep["chips"] |= recipe["chips"]
        sweep["config"]["chips"] = list(sweep["chips"])
    return sweeps


def faults_in(results: str | Path) -> Iterator[tuple[Path, str | None]]:
    """Whether everything in a folder of results is as it was written; every byte is read.

    Args:
        results: The folder of results.

    Returns:
        Each output, and each file that is none and stands where readers look for tables and charts, with what is wrong with it, in words
        that follow its name; None where nothing is.
    """
    home = Path(results)
    outputs = recorded_outputs(home)
    for output in outputs:
        record = record_of(home, output)
        if not output.exists():
            yield output, "is not there and was written"
        else:
            yield output, record.damage(output) if record else "has a record that cannot be read"
    known = {file for output in outputs if output.exists() for file in files_in(output).values()}
    for folder in ("tables", "charts"):
        for file in sorted((home / folder).rglob("*")):
            half = any(fnmatch(part, LEFTOVER) for part in file.parts)
            if (
                file.is_file()
                and file not in known
                and not half
                and not any(output in file.parents for output in outputs)
            ):
                yield file, UNKNOWN


def _check_folder(folder: Path) -> bool:
    """Print what is wrong in a folder of results; whether nothing is."""
    found = list(faults_in(folder))
    for path, fault in found:
        if fault:
            print(f"{printable(path)} {printable(fault)}")
    bad = sum(fault is not None for _, fault in found)
    print(
        f"{printable(folder)}: {len(found):,} outputs read, "
        + (f"{bad:,} of them not as they were written" if bad else "all as they were written")
    )
    return not bad


def main(arguments: Sequence[str] | None = None) -> int:
    """Say where files come from.

    Args:
        arguments: The command line's; by default those of this process.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(
        prog="python -m rooflines.provenance",
        description="What made a file, and whether it is as it was written.",
    )
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="a table, chart or CSV; or a results folder, to check all that is in it",
    )
    parser.add_argument(
        "--results",
        type=Path,
        metavar="FOLDER",
        help="the results folder to look in, for files that were copied elsewhere",
    )
    parser.add_argument(
        "--check", action="store_true", help="say only whether they are as they were written"
    )
    asked = parser.parse_args(arguments)
    whole = True
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(
            errors="backslashreplace"
        )  # a name may have letters that the terminal's encoding lacks
    try:
        for number, file in enumerate(asked.files):
            if (file / FOLDER).is_dir():
                whole &= _check_folder(file)
                continue
            found = origin(file, asked.results)
            whole &= found.whole
            text = ("---\n" if number else "") + found.text().rstrip()
            print(
                printable(f"{file} {found.verdict}")
                if asked.check
                else "\n".join(map(printable, text.split("\n")))
            )
    except RooflinesError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(unreadable(error.filename, error), file=sys.stderr)
        return 2
    return 0 if whole else 1


def command() -> NoReturn:
    """`python -m rooflines.provenance`."""
    signal.signal(
        signal.SIGPIPE, signal.SIG_DFL
    )  # `| head` ends it, as it ends every other program
    sys.exit(main())
