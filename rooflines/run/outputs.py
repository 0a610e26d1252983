"""The outputs of a run: what each depends on, which job makes it, and from what."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

from rooflines.results.folders import CHARTS, FOLDERS
from rooflines.run.code_digests import code_digest

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
        job: Function that takes the spec and the path.
        spec: Everything it depends on, as JSON, with digests of its code and inputs.
        inputs: Outputs that its job reads, by name in its rule.
        rows: Rows in a table part; 0 for other outputs [1].
        sweep, number: A part's sweep and number.
        rule: A file's rule; empty: its rule is written out in `workflow/rules`.
        meaning: Contents of a file by `rule`, for readers.
    """

    path: str
    job: str
    spec: str
    inputs: Mapping[str, Sequence[Output]] = field(default_factory=dict)
    rows: int = 0
    sweep: str = ""
    number: int = 0
    rule: str = ""
    meaning: str = ""

    @classmethod
    def create(
        cls,
        path: str,
        job: str,
        content: Mapping[str, object],
        inputs: Mapping[str, Sequence[Output]] | None = None,
        **fields: Any,  # noqa: ANN401, of the fields
    ) -> Self:
        """Create an output whose spec is some content, and digests: its job's code, its inputs.

        Args:
            path: Its path below the results.
            job: The function that makes it, such as `run.jobs.write_part`.
            content: What it depends on besides.
            inputs: The outputs that its job reads.
            fields: The other attributes.
        """
        read = {output.path: output.digest for output in chain(*(inputs or {}).values())}
        spec = {"code": code_digest(job), **({"inputs": read} if read else {}), **content}
        return cls(path, job, as_param(spec), inputs or {}, **fields)

    @cached_property
    def digest(self) -> str:
        """A digest of its spec."""
        return hashlib.sha256(self.spec.encode()).hexdigest()[:16]

    @property
    def folder(self) -> str:
        """The first folder of its path."""
        return self.path.partition("/")[0]


@dataclass(frozen=True)
class Plan:
    """All outputs for a config; its methods are views on the list.

    Attributes:
        outputs: The outputs; table parts are in order.
    """

    outputs: tuple[Output, ...]

    @cached_property
    def by_path(self) -> Mapping[str, Output]:
        """The outputs by their path below the results."""
        return {output.path: output for output in self.outputs}

    def spec(self, path: str) -> str:
        """Dependencies of an output as JSON; empty if the config has no such output."""
        return self.by_path[path].spec if path in self.by_path else ""

    def spec_of(self, path: str) -> Callable[[Any], str]:
        """Dependencies of a rule's outputs, as a function of the wildcards.

        Args:
            path: The output's path below the results, with wildcards as in the rule.
        """
        return lambda wildcards: self.spec(path.format(**dict(wildcards.items())))

    def inputs(self, *paths: str) -> dict[str, list[str]]:
        """The inputs of outputs, as their rule has them."""
        return {
            name: [f"<results>/{output.path}" for output in outputs]
            for path in paths
            for name, outputs in self.by_path[path].inputs.items()
        }

    @property
    def files(self) -> list[Output]:
        """The outputs with a rule of the plan."""
        return [output for output in self.outputs if output.rule]

    def paths(self, *folders: str) -> list[str]:
        """Paths to all outputs, or to those in folders."""
        return [output.path for output in self.outputs if not folders or output.folder in folders]

    @cached_property
    def parts(self) -> tuple[Output, ...]:
        """The parts of all tables."""
        return self.parts_in(*FOLDERS)

    def parts_in(self, *folders: str) -> tuple[Output, ...]:
        """The parts of tables in folders."""
        return tuple(output for output in self.outputs if output.rows and output.folder in folders)

    def families(self) -> list[str]:
        """The families of charts that are drawn."""
        return [path.partition("/")[2] for path in self.paths(CHARTS)]

    def charts_spec(self) -> str:
        """Everything that the charts of all families depend on, as JSON."""
        specs = {name: json.loads(self.spec(f"{CHARTS}/{name}")) for name in self.families()}
        return as_param({"families": specs})

    def drawing_threads(self) -> int:
        """Processes that draw the charts [1]; Snakemake starts no more than there are cores."""
        families = json.loads(self.charts_spec())["families"].values()
        return max(1, -(-sum(len(family["charts"]) for family in families) // CHARTS_PER_PROCESS))


def as_param(recipe: object) -> str:
    """JSON that Snakemake passes on unchanged: no text in it reads as a wildcard or an HTML tag."""
    text = json.dumps(recipe, ensure_ascii=False, separators=(",", ":"))
    return BRACE_IN_STRING.sub(r"\\u007b", text.replace("<", r"\u003c"))


def short_digest(content: object) -> str:
    """A digest of data."""
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
