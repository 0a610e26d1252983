"""`rooflines list keys`: every key in configs, catalogues and calibrations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, get_args, get_origin

import click
import polars as pl

from rooflines.basics.errors import at_path
from rooflines.cli.output import WithExamples, filter_dictionary, prints_frame
from rooflines.config.schema import ConfigFile
from rooflines.fits.calibration_files import Calibrations
from rooflines.hardware.dtype_catalogue import DtypeFile
from rooflines.hardware.entries import Chip
from rooflines.hardware.entry_forms import Entry
from rooflines.models.library import ModelEntry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic.fields import FieldInfo

    from rooflines.cli.output import Printed

CONFIG = "config"
"""The place of the keys at the top of a config."""

ROOTS: Mapping[str, object] = {
    CONFIG: ConfigFile,
    "chips": Chip,
    "models": ModelEntry,
    "formats": DtypeFile.model_fields["formats"].annotation,
    "combinations": DtypeFile.model_fields["combinations"].annotation,
    **{key: field.annotation for key, field in Calibrations.model_fields.items()},
}
"""The types of the mappings that users write, by their place; places below follow from them."""


@click.command("keys", cls=WithExamples)
@click.argument("place", required=False, metavar="[PLACE]")
@prints_frame
def command(place: str | None) -> Printed:
    """Explain the keys of a config and of the catalogues, or of one place: default, and meaning.

    PLACE is such as sweeps, model-sweeps, charts, chips, chips.memory, models.moe or calibrations;
    config is the top level of a config. Or it is a key, wherever it is.

    Examples:
        rooflines list keys
        rooflines list keys sweeps
        rooflines list keys chips.networks
        rooflines list keys calibration
    """
    frame = every_key()
    main = [
        place_name
        for place_name in frame["place"].unique(maintain_order=True)
        if "." not in place_name
    ]
    fix = f"use one of {', '.join(main)}, or one below, such as chips.networks, or a key"
    with at_path("place"):
        return filter_dictionary(frame, place, "no place of keys, and no key", fix)


def every_key() -> pl.DataFrame:
    """Every key that can be written: its place, name, default and meaning."""
    rows = dict.fromkeys(
        (place, field.alias or key, _default(field), _meaning(field))
        for root, kind in ROOTS.items()
        for place, form in _mappings(root, kind)
        for key, field in form.model_fields.items()
        if field.description or not field.exclude
    )
    return pl.DataFrame([*rows], schema=["place", "key", "default", "meaning"], orient="row")


def _mappings(place: str, kind: object) -> Iterator[tuple[str, type[Entry]]]:
    """Typed mappings in a type and below, by place."""
    if not (isinstance(kind, type) and issubclass(kind, Entry)):
        for part in get_args(kind):
            yield from _mappings(place, part)
        return
    yield place, kind
    above = "" if place == CONFIG else f"{place}."
    for key, field in kind.model_fields.items():
        yield from _mappings(f"{above}{field.alias or key}", field.annotation)


def _meaning(field: FieldInfo) -> str:
    """Meaning of a key, and its allowed words."""
    words = [*_words(field.annotation)]
    choices = f"one of {', '.join(words)}" if len(words) > 1 else "".join(words)
    return "; ".join(filter(None, (field.description, choices)))


def _words(kind: object) -> Iterator[str]:
    """Words that a type allows."""
    if get_origin(kind) is Literal:
        yield from (word for word in get_args(kind) if isinstance(word, str))
    elif not (isinstance(kind, type) and issubclass(kind, Entry)):
        for part in get_args(kind):
            yield from _words(part)


def _default(field: FieldInfo) -> str:
    """Default for a key, in YAML."""
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    return json.dumps(default, default=lambda entry: entry.model_dump(exclude_none=True))
