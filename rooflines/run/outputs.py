"""The outputs of a run: what each depends on, which job makes it, and from what."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from rooflines.results.folders import CHARTS, FOLDERS, INDEX
from rooflines.run.code import code_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

CHARTS_PER_PROCESS = 4
"""Charts that are worth a process of their own: its start takes as long as a chart [1]."""

BRACE_IN_STRING = re.compile(r'\{(?!["}])')
"""A brace inside a string of JSON: one of JSON itself is followed by a quote or another brace."""


@dataclass(frozen=True)
class Output:
    """A file or folder that a run makes.

    Attributes:
        path: Its path below the results.
        spec: Everything it depends on besides its inputs, as JSON.
        inputs: The outputs that its job reads, by their name in its rule.
        rows_by_chip: The rows of a part of a table, by chip [1].
        sweep, number: The sweep and the number of a part.
        recorded_inputs: Whether its record has its inputs: then it is made again when their content
            has changed.
    """

    path: str
    spec: str
    inputs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    rows_by_chip: Mapping[str, int] = field(default_factory=dict)
    sweep: str = ""
    number: int = 0
    recorded_inputs: bool = False

    @classmethod
    def of(cls, path: str, job: str, content: Mapping[str, object], **fields: Any) -> Self:  # noqa: ANN401, of the fields
        """An output whose spec is some content, and a digest of the code of its job.

        Args:
            path: Its path below the results.
            job: The function that makes it, such as `run.jobs.write_part`.
            content: What it depends on.
            fields: The other attributes.
        """
        return cls(path, as_param({"code": code_digest(job), **content}), **fields)

    @property
    def rows(self) -> int:
        """The rows of a part of a table; 0 of other outputs [1]."""
        return sum(self.rows_by_chip.values())

    @property
    def folder(self) -> str:
        """The first folder of its path."""
        return self.path.partition("/")[0]


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

    def spec_of(self, path: str) -> Callable[[Any], str]:
        """What each output of a rule depends on, as a function of the rule's wildcards.

        Args:
            path: The output's path below the results, with wildcards as in the rule.
        """
        return lambda wildcards: self.spec(path.format(**dict(wildcards.items())))

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


def as_param(recipe: object) -> str:
    """JSON that Snakemake passes on unchanged: no text in it reads as a wildcard or an HTML tag."""
    text = json.dumps(recipe, ensure_ascii=False, separators=(",", ":"))
    return BRACE_IN_STRING.sub(r"\\u007b", text.replace("<", r"\u003c"))
