"""Models by name: from the catalogue `config/models.yaml`, a config.json, or written out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from rooflines.basics.cache import cached
from rooflines.basics.errors import Mistakes, RooflinesError, at_path, close_to, quote
from rooflines.basics.file_kinds import named_kind
from rooflines.basics.files import CONFIG_DIR, named_file
from rooflines.basics.text import normalize_name
from rooflines.basics.yaml_file import in_file, read_yaml
from rooflines.hardware.dtype_catalogue import DTYPES_FILE
from rooflines.hardware.entry_cache import cached_entries
from rooflines.hardware.entry_forms import Entry, Text, validate_entry
from rooflines.models.architecture import SHAPE_TYPES, Shape
from rooflines.models.hf.config_json import CONFIG_JSON, SKIP_DTYPES, from_hf
from rooflines.models.hf.params_json import PARAMS_JSON
from rooflines.models.model import Model
from rooflines.models.tensor_dtypes import ModelDtypes

if TYPE_CHECKING:
    from collections.abc import Sequence

MODELS_FILE = CONFIG_DIR / "models.yaml"

Convention = Literal["active", "active_with_embedding", "active_without_tables"]
CONVENTIONS: tuple[Convention, ...] = ("active", "active_with_embedding", "active_without_tables")
"""Conventions for active parameters: with the LM head, with both token tables, or without."""


NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,99}")


PrintedCount = int | str
"""Count: a whole number, or as printed, such as 1026.41B."""


class PublishedCounts(Entry):
    """Parameter counts that the publisher prints."""

    total: PrintedCount = Field(description="all parameters, as printed [1]")
    active: PrintedCount | None = Field(None, description="active parameters, as printed [1]")
    convention: Convention | None = Field(
        None, description="convention of `active`; null: none of the three gives it"
    )
    match: Literal["exact", "surplus", "rounded", "near"] = Field(
        description=(
            "exact: the shape gives `total` to the last parameter; surplus: with `surplus` it "
            "does; rounded: with `surplus`, if any, it rounds to `total`; near: within one per "
            "cent, and `note` says what else `total` counts"
        )
    )
    surplus: int = Field(
        0, description="parameters that `total` counts besides those of the shape [1]"
    )
    note: Text | None = Field(None, description="explanation of the surplus or difference")


class ModelEntry(Shape):
    """Model in the catalogue."""

    name: Text = Field(description="display name")
    aliases: list[Text] = Field(
        default_factory=list, description="published names with the same shape"
    )
    dtypes: ModelDtypes | None = Field(None, description="published dtypes")
    published: PublishedCounts = Field(description="counts that the publisher prints")
    source: Text = Field(description="document with the shape")
    note: Text | None = Field(None, description="further notes")

    def model(self, name: str) -> Model:
        """Build the model under a name."""
        return Model(name, self, self.dtypes, self.note)


ENTRY_TYPES = (ModelEntry, PublishedCounts, ModelDtypes, *SHAPE_TYPES)
"""Types of a model in the catalogue and of its parts."""


def check_model_name(name: object) -> None:
    """Refuse an invalid model name.

    Raises:
        RooflinesError: It has more than lower-case letters, digits, dots and hyphens.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise RooflinesError(
            "",
            f"is {quote(name)}, which is no name of a model",
            "use lower-case letters, digits, dots and hyphens, a letter or digit first",
            value=name,
        )


@cache
def model_entries() -> dict[str, ModelEntry]:
    """Catalogue models by id.

    Raises:
        RooflinesError: The file is invalid.
    """
    return cached_entries("models", [MODELS_FILE, DTYPES_FILE], _read_models, ENTRY_TYPES)


def _read_models() -> dict[str, ModelEntry]:
    content = read_yaml(MODELS_FILE)
    with in_file(MODELS_FILE, "models"), Mistakes() as mistakes:
        entries = {}
        for name, value in content["models"].items():
            with mistakes.at(name):
                entries[name] = validate_entry(ModelEntry, value)
    return entries


def load(name: str) -> Model:
    """Load a model from the catalogue.

    Args:
        name: Its id, such as `llama-3.1-70b`, or a published name, such as
            `meta-llama/Llama-3.1-70B`, also without the publisher; case and hyphens do not count.

    Raises:
        RooflinesError: The catalogue has no such model; the message lists close names.
    """
    with at_path("model"):
        return catalogue_model(name, "read its config.json with rooflines.models.from_hf")


def catalogue_model(name: object, otherwise: str) -> Model:
    """Find a model in the catalogue; as `load`, but errors have no key path.

    Args:
        name: As for `load`.
        otherwise: Alternative for the error message, where the catalogue has no such name.
    """
    if model_id := _ids().get(normalize_name(str(name))):
        return model_entries()[model_id].model(model_id)
    raise RooflinesError(
        "",
        f"is {quote(name)}, which is no model of the catalogue",
        f"see `rooflines list models`, or {otherwise}",
        value=name,
        close=close_models(name),
    )


@cache
def _ids() -> dict[str, str]:
    """Model ids by squeezed id, display name or published name, also without the publisher.

    They are in the cache apart: most questions about operations need no entry.
    """
    return cached("model-names", [MODELS_FILE, DTYPES_FILE], _read_ids)


def _read_ids() -> dict[str, str]:
    return {
        normalize_name(name): model_id
        for model_id, entry in model_entries().items()
        for alias in (model_id, entry.name, *entry.aliases)
        for name in (alias, alias.rpartition("/")[2])
    }


def is_named(text: str) -> bool:
    """Check for the name of a catalogue model."""
    return normalize_name(text) in _ids()


def catalogue_id(text: str) -> str:
    """Id of the catalogue model that a text names.

    Raises:
        KeyError: It names none.
    """
    return _ids()[normalize_name(text)]


def close_models(name: object) -> list[str]:
    """Model ids close to a name, which may be a published one."""
    text = str(name)
    close = close_to(text, model_entries())
    close += [_ids()[name] for name in close_to(normalize_name(text).rpartition("/")[2], _ids())]
    numbers = set(NUMBER.findall(text))
    alike = [name for name in model_entries() if _letters(name) == _letters(text)]
    ranked = sorted(
        dict.fromkeys([*close, *alike]),
        key=lambda name: len(numbers & set(NUMBER.findall(name))),
        reverse=True,
    )
    sized = [name for name in ranked if set(SIZE.findall(text)) & set(SIZE.findall(name))]
    return list(dict.fromkeys([*sized, *ranked]))[:4]


NUMBER = re.compile(r"\d+(?:\.\d+)?b?")
"""A number in a model's name, perhaps its size."""

SIZE = re.compile(r"\d+(?:\.\d+)?b")
"""A model's size in its name."""


def _letters(name: str) -> str:
    """First letters in a model's name, its family."""
    return re.split(r"[^a-z]", name.rpartition("/")[2].lower())[0]


# ------------------------------------------------------------ of a catalogue, a file, a config


def find_model(text: str, dtypes: object = None, family: str | None = None) -> Model:
    """Find a model by id, published name, or path: a config.json or its folder.

    Args:
        text: The name or path.
        dtypes: Dtypes that the question states, if any; then the file's are not read.
        family: Family to read a file as; None: as the file says.

    Raises:
        RooflinesError: There is no such model; the message lists close names.
    """
    if is_path(text):
        return from_hf(text, None if dtypes is None else SKIP_DTYPES, family=family)
    if family is not None:
        problem = f"is {quote(family)}, but {quote(text)} is no file"
        raise RooflinesError("--as", problem, "leave it out, or give the path of a config.json")
    with named_kind(text, "model"), at_path("model"):
        return catalogue_model(text, "give the path of its config.json")


def is_path(text: str) -> bool:
    """Check for the path of a JSON file, or a folder with a config.json."""
    try:
        names = (Path(text) / name for name in (CONFIG_JSON, PARAMS_JSON))
        return text.endswith(".json") or any(name.is_file() for name in names)
    except (OSError, ValueError):  # no path can be like that
        return False


def models_of(forms: Sequence[object], folder: Path | None = None) -> dict[str, Model]:
    """Models by their name in tables.

    Args:
        forms: Ids or published names, `{name: , hf: }`, or `{name: , layers: , ...}` as in
            `config/models.yaml`.
        folder: Base for relative config.json paths; by default the working folder.

    Raises:
        RooflinesError: A model is unknown or invalid, or two have one name.
    """
    models: dict[str, Model] = {}
    with Mistakes() as mistakes:
        for index, form in enumerate(forms):
            with mistakes.at(index):
                model = _model(form, folder or Path())
                if model.name in models:
                    problem = f"is {quote(model.name)}, which is listed twice"
                    raise RooflinesError("", problem, "name every model once")
                models[model.name] = model
    return models


def _model(form: object, folder: Path) -> Model:
    if not isinstance(form, Mapping):
        return catalogue_model(
            form, "write {name: , hf: } with its config.json, or {name: , layers: , ..}"
        )
    name = form.get("name")
    with at_path("name"):
        check_model_name(name)
    parts = {key: value for key, value in form.items() if key != "name"}
    if "hf" not in parts:
        return Model(str(name), validate_entry(Shape, parts))
    with at_path("hf"):
        if extra_keys := sorted(set(parts) - {"hf", "as"}):
            problem = f"stands beside {', '.join(extra_keys)}"
            raise RooflinesError("", problem, "give a config.json, or the sizes")
        source = parts["hf"]
        if isinstance(source, str):
            source = named_file(folder, source, inside=CONFIG_JSON)
        model = from_hf(source, SKIP_DTYPES, family=parts.get("as"))
        return replace(model, name=str(name))
