"""Traces that a config names, checked, and as JSON for their job."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rooflines.answers.name_search import find_chip
from rooflines.basics.errors import Mistakes, RooflinesError, check_choice, quote
from rooflines.basics.files import named_file
from rooflines.config.trace_fields import TraceConfig
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.entries import Chip
from rooflines.models.library import find_model
from rooflines.results.records import digest_of
from rooflines.traces.laid_traces import LaidTrace, lay_trace
from rooflines.traces.model_calls import AUTO_MODEL

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rooflines.basics.yaml_file import JSON

PART_NAME = re.compile(r"part-\d")
"""Begin of the names that files of a sweep's table have."""


@dataclass(frozen=True, repr=False)
class TraceSet:
    """A trace in a config, or those of several ranks, checked but not read.

    Attributes:
        name: Its name.
        config: Its part in the config.
        paths: Its files; the capture is the last one where the config has one.
        chip: Chip id; None: the one that the file names.
        own_chips: The config's own chips by id.
    """

    name: str
    config: TraceConfig
    paths: tuple[Path, ...]
    chip: str | None
    own_chips: Mapping[str, Chip]

    def __repr__(self) -> str:
        """Name and files."""
        return f"<TraceSet {self.name}: {', '.join(self.config.file)}>"

    def recipe(self) -> dict[str, Any]:
        """Set as JSON: config, paths with digests, chip, and the config's own chips."""
        return {
            "trace": self.name,
            "config": self.config.model_dump(mode="json"),
            "paths": {str(path.absolute()): digest_of(path) for path in self.paths},
            "chip": self.chip,
            "chips": {name: entry.plain for name, entry in self.own_chips.items()},
        }


def checked_traces(
    configs: Mapping[str, TraceConfig], chips: Mapping[str, Chip], folder: Path, mistakes: Mistakes
) -> dict[str, TraceSet]:
    """Traces of a config whose keys are valid.

    Args:
        configs: Their parts in the config, by name.
        chips: All chips by id.
        folder: Folder at which relative paths start.
        mistakes: Receives what is wrong: files that cannot be read, unknown chips, models and
            names.
    """
    catalogue = chip_entries()
    own_chips = {name: entry for name, entry in chips.items() if name not in catalogue}
    sets: dict[str, TraceSet] = {}
    for name, config in configs.items():
        with mistakes.at(name) as part:
            if PART_NAME.match(name):
                part.add(RooflinesError("", "is a name of a table's file", "use another name"))
            paths: list[Path] = []
            chip = None
            with part.at("file"):
                paths += [named_file(folder, file) for file in config.file]
            if config.capture is not None:
                with part.at("capture"):
                    paths.append(named_file(folder, config.capture))
            if config.chip is not None:
                with part.at("chip"):
                    chip = _chip_id(config.chip, chips)
            if config.model not in (None, AUTO_MODEL):
                with part.at():
                    find_model(str(config.model))
            if config.before is not None:
                with part.at("before"):
                    _check_before(name, config.before, configs)
            sets[name] = TraceSet(name, config, tuple(paths), chip, own_chips)
    return sets


def _chip_id(word: str, chips: Mapping[str, Chip]) -> str:
    """Id for the chip that a word names."""
    match = find_chip(word, chips)
    if match is None:
        check_choice(word, chips, "no chip", "see `rooflines list chips`")
        return word
    return match.name


def _check_before(name: str, before: str, configs: Mapping[str, TraceConfig]) -> None:
    """Refuse a comparison with an unknown trace, or with itself."""
    check_choice(before, configs, "no trace of this config", "name one below `traces:`")
    if before == name:
        problem = f"is {quote(before)}, the trace itself"
        raise RooflinesError("", problem, "name the trace before the change")


def laid_traces(recipe: JSON) -> list[LaidTrace]:
    """Traces laid on their bound, one a file.

    Args:
        recipe: From `TraceSet.recipe`.

    Raises:
        RooflinesError: A file is no trace with device events, or the model did not run.
    """
    config = TraceConfig.model_validate(recipe["config"])
    chips = {
        **chip_entries(),
        **{name: Chip.model_validate(entry) for name, entry in recipe["chips"].items()},
    }
    paths = [*recipe["paths"]]
    capture = paths.pop() if config.capture is not None else None
    return [
        lay_trace(
            path,
            recipe["chip"],
            chips,
            capture=capture,
            model=config.model,
            tp=config.tp,
            context=config.context,
        )
        for path in paths
    ]
