"""The models that a config names: of the catalogue, of a config.json, or written out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rooflines.basics.errors import Mistakes, RooflinesError, at_path, quote
from rooflines.basics.files import named_file
from rooflines.catalogue.forms import checked
from rooflines.models.hf import CONFIG_JSON, NOT_READ, from_hf
from rooflines.models.library import checked_model_name, found
from rooflines.models.model import Model
from rooflines.models.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Sequence


def model_named(text: str, dtypes: object = None) -> Model:
    """A model by its id, a published name, or the path of a config.json or of its folder.

    Args:
        text: The name or path.
        dtypes: Those of the question, if it states any; then a file's are not read.

    Raises:
        RooflinesError: There is none; the message lists close names.
    """
    if is_path(text):
        return from_hf(text, None if dtypes is None else NOT_READ)
    with at_path("model"):
        return found(text, "give the path of its config.json")


def is_path(text: str) -> bool:
    """Whether a text is the path of a JSON file, or of a folder with a config.json."""
    try:
        return text.endswith(".json") or (Path(text) / CONFIG_JSON).is_file()
    except (OSError, ValueError):  # no path can be like that
        return False


def models_of(forms: Sequence[object], folder: Path | None = None) -> dict[str, Model]:
    """Models by their name in tables.

    Args:
        forms: Ids or published names, `{name: , hf: }`, or `{name: , layers: , ...}` in the form of
            `config/models.yaml`.
        folder: Where paths of a config.json start; by default the working folder.

    Raises:
        RooflinesError: A model is unknown or wrong, or two have one name.
    """
    models: dict[str, Model] = {}
    with Mistakes() as mistakes:
        for index, form in enumerate(forms):
            with mistakes.at(f"[{index}]"):
                model = _model(form, folder or Path())
                if model.name in models:
                    problem = f"is {quote(model.name)}, which is listed twice"
                    raise RooflinesError("", problem, "name every model once")
                models[model.name] = model
    return models


def _model(form: object, folder: Path) -> Model:
    if not isinstance(form, Mapping):
        return found(str(form), "name its config.json: {name: , hf: }")
    name = form.get("name")
    with at_path("name"):
        checked_model_name(name)
    parts = {key: value for key, value in form.items() if key != "name"}
    if "hf" not in parts:
        return Model(str(name), checked(Shape, parts))
    with at_path("hf"):
        if others := sorted(set(parts) - {"hf"}):
            problem = f"stands beside {', '.join(others)}"
            raise RooflinesError("", problem, "give a config.json, or the sizes")
        source = parts["hf"]
        if isinstance(source, str):
            source = named_file(folder, source, inside=CONFIG_JSON)
        model = from_hf(source, NOT_READ)
        return replace(model, name=str(name))
