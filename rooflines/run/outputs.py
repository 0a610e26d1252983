"""The outputs of a run: what each depends on, which job makes it, and from what."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from rooflines.results.folders import CHARTS, FOLDERS, INDEX

Asked = Callable[[object], int | str]
"""What Snakemake asks of a rule with wildcards."""

LARGE_ROWS = 8_000_000
"""A part of this many rows gets two threads [1]; a smaller one spends too much time starting."""

MANY_LARGE = 4
"""From this many large parts on, each gets one thread: together they fill the cores [1]."""

MEMORY_MB_PER_THREAD = 150
"""Memory for the data of each further thread of a part's job [MB]."""

CHARTS_PER_PROCESS = 3
"""Charts that are worth a process of their own: its start takes as long as half a chart [1]."""

BRACE_IN_STRING = re.compile(r'\{(?!["}])')
"""A brace inside a string of JSON: one of JSON itself is followed by a quote or another brace."""


@dataclass(frozen=True)
class Output:
    """A file or folder that a run makes.

    Attributes:
        path: Its path below the results.
        job: The function that makes it, such as `run.jobs.write_part`.
        spec: Everything it depends on besides its inputs, as JSON.
        inputs: The outputs that its job reads, by their name in its rule.
        memory_mb: Most memory of its job [MB].
        rows: Its rows, of a part of a table [1].
        sweep, number: The sweep and the number of a part.
        recorded_inputs: Whether its record has its inputs: then it is made again when their content
            has changed.
    """

    path: str
    job: str
    spec: str
    inputs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    memory_mb: int = 500
    rows: int = 0
    sweep: str = ""
    number: int = 0
    recorded_inputs: bool = False

    @property
    def folder(self) -> str:
        """The first folder of its path."""
        return self.path.partition("/")[0]


class Rule(NamedTuple):
    """The answers to a rule of the workflow; functions where its output has wildcards."""

    spec: str | Asked
    threads: int | Asked
    memory_mb: int | Asked


@dataclass(frozen=True)
class Plan:
    """All outputs of a config; its methods are views of the list.

    Attributes:
        outputs: The outputs; the parts of a table are in order.
    """

    outputs: tuple[Output, ...]

    @cached_property
    def by_path(self) -> Mapping[str, Output]:
        """The outputs by their path below the results."""
        return {output.path: output for output in self.outputs}

    def spec(self, path: str) -> str:
        """What an output depends on, as JSON; empty if the config has no such output."""
        return self.by_path[path].spec if path in self.by_path else ""

    def inputs(self, path: str) -> dict[str, list[str]]:
        """The inputs of an output, as its rule has them."""
        named = self.by_path[path].inputs
        return {name: [f"<results>/{each}" for each in paths] for name, paths in named.items()}

    def paths(self, *folders: str) -> list[str]:
        """The paths of all outputs, or of those in folders, without lists of parts."""
        return [
            output.path
            for output in self.outputs
            if not folders or (output.folder in folders and not output.path.endswith(INDEX))
        ]

    @cached_property
    def parts(self) -> tuple[Output, ...]:
        """The parts of all tables."""
        return self.parts_in(*FOLDERS)

    def parts_in(self, *folders: str) -> tuple[Output, ...]:
        """The parts of tables in folders."""
        return tuple(output for output in self.outputs if output.rows and output.folder in folders)

    @property
    def indexes(self) -> dict[str, str]:
        """The list of the parts in each folder of tables, as JSON."""
        return {folder: self.spec(f"{folder}/{INDEX}") for folder in FOLDERS}

    def rule(self, path: str) -> Rule:
        """The answers to the rule of an output.

        Args:
            path: Its path below the results, with wildcards as in the rule.
        """
        if "{" not in path:
            output = self.by_path[path]
            return Rule(output.spec, 1, output.memory_mb)

        def of(wildcards: object) -> Output:
            return self.by_path[path.format(**vars_of(wildcards))]

        def memory_mb(wildcards: object) -> int:
            further = self._threads(of(wildcards)) - 1
            return of(wildcards).memory_mb + MEMORY_MB_PER_THREAD * further

        return Rule(
            lambda wildcards: of(wildcards).spec,
            lambda wildcards: self._threads(of(wildcards)),
            memory_mb,
        )

    def _threads(self, output: Output) -> int:
        """Threads of the job of a part [1]."""
        many = self._large.get(output.folder, 0) >= MANY_LARGE
        return 2 if output.rows >= LARGE_ROWS and not many else 1

    @cached_property
    def _large(self) -> Mapping[str, int]:
        """Large parts by folder [1]."""
        counts: dict[str, int] = {}
        for output in self.outputs:
            counts[output.folder] = counts.get(output.folder, 0) + (output.rows >= LARGE_ROWS)
        return counts

    def families(self) -> list[str]:
        """The families of charts that are drawn."""
        return [path.partition("/")[2] for path in self.paths(CHARTS)]

    def charts_inputs(self) -> dict[str, list[str]]:
        """The inputs of the charts: those of every family."""
        return self.inputs(self.paths(CHARTS)[0]) if self.paths(CHARTS) else {}

    def charts_spec(self) -> str:
        """Everything that the charts of all families depend on, as JSON."""
        specs = {name: json.loads(self.spec(f"{CHARTS}/{name}")) for name in self.families()}
        return as_param({"families": specs})

    def charts_digest(self) -> str:
        """The SHA-256 of `charts_spec`."""
        return hashlib.sha256(self.charts_spec().encode()).hexdigest()

    def drawing_threads(self) -> int:
        """Processes that draw the charts [1]; Snakemake starts no more than there are cores."""
        families = json.loads(self.charts_spec())["families"].values()
        return max(1, -(-sum(len(family["charts"]) for family in families) // CHARTS_PER_PROCESS))


def vars_of(wildcards: object) -> dict[str, str]:
    """Wildcards of a job by name; Snakemake's and any other namespace."""
    items = getattr(wildcards, "items", None)
    return dict(items()) if items else vars(wildcards)


def as_param(recipe: object) -> str:
    """JSON that Snakemake passes on unchanged: no text in it reads as a wildcard or an HTML tag."""
    text = json.dumps(recipe, ensure_ascii=False, separators=(",", ":"))
    return BRACE_IN_STRING.sub(r"\\u007b", text.replace("<", r"\u003c"))
