"""Models from the `config.json` of the Hugging Face format, of the families that are known.

A key that nobody knows could change a count: it is refused, as is every family without a shape.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rooflines.basics.errors import RooflinesError, close_to, placed, printable, quote
from rooflines.catalogue.forms import checked
from rooflines.models.families import FAMILIES
from rooflines.models.hf_dtypes import published_dtypes
from rooflines.models.keys import ENCODER, VISION, Keys
from rooflines.models.model import Model
from rooflines.models.shape import Shape

CONFIG_JSON = "config.json"
"""The file of a published model that has its shape."""

QUANTIZED_JSON = "hf_quant_config.json"
"""The file beside it that has the dtypes of a checkpoint quantized by NVIDIA's ModelOpt."""

LARGEST_FILE = 2 * 2**20
"""Bytes of a config.json [byte]; a larger one is a mistake."""

TEXT_PARTS = {"gemma3": "gemma3_text", "llama4": "llama4_text"}
"""Families with images whose text part, under `text_config`, is a family that is known."""

TEXT_NOTE = "the text part; the encoder of images is not counted"

MTP_KEYS = ("num_nextn_predict_layers", "num_mtp_modules")
MTP_NOTE = "without the layers for multi-token prediction"

ENCODER_KEYS = ("vision_config", "audio_config", "vision_tower", "mm_vision_tower")
"""Keys of models that have an encoder of images or sound."""


def from_hf(source: str | Path | Mapping[str, Any]) -> Model:
    """A model from a config.json.

    Args:
        source: The file, the folder that has it, or its content.

    Returns:
        The model, with the dtypes that the config states. Of gemma3 and llama4, the text part.

    Raises:
        RooflinesError: The file cannot be read, is incomplete, its dtypes are in another file, its
            family is not known, or it has keys that could change a count.
    """
    if isinstance(source, Mapping):
        return _model(source, CONFIG_JSON)
    if not isinstance(source, str | Path):
        fix = "give the path of a config.json, or its content as a mapping"
        raise RooflinesError(CONFIG_JSON, f"is {quote(source)}", fix)
    path = Path(source)
    try:
        path = path / CONFIG_JSON if path.is_dir() else path
    except (OSError, ValueError):
        raise RooflinesError(
            CONFIG_JSON, f"cannot be at {quote(source)}", "give the path of a file"
        ) from None
    with placed(file=printable(path)):
        _check_alone(path)
        return _model(_content(path), str(path))


def _check_alone(path: Path) -> None:
    """Refuse a config.json whose dtypes are in a file beside it, which is not read.

    Raises:
        RooflinesError: There is such a file.
    """
    beside = path.with_name(f"{path.name.removesuffix(CONFIG_JSON)}{QUANTIZED_JSON}")
    try:
        quantized = path.name.endswith(CONFIG_JSON) and beside.exists()
    except (OSError, ValueError):  # no path can be like that
        return
    if quantized:
        problem = f"has {printable(beside.name)} beside it, which says the dtypes and is not read"
        fix = "copy the config.json to a folder of its own, and give the dtypes by hand"
        raise RooflinesError("", problem, fix)


def _content(path: Path) -> Mapping[str, Any]:
    """The mapping in a JSON file."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise RooflinesError("", "does not exist", "give the path of a file that does") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RooflinesError("", f"cannot be read: {reason}", "make it readable") from None
    if len(content) > LARGEST_FILE:
        problem = f"has more than {LARGEST_FILE:,} bytes, more than a config.json can sensibly have"
        raise RooflinesError("", problem, "give the config.json, not the weights")
    try:
        value = json.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise RooflinesError("", "is not text in UTF-8", "give the config.json") from None
    except json.JSONDecodeError as error:
        problem = f"is not valid JSON: {error.msg}, line {error.lineno}, column {error.colno}"
        fix = "download it again: it may be truncated"
        raise RooflinesError("", problem, fix) from None
    except (RecursionError, ValueError):
        raise RooflinesError("", "has JSON too deep or numbers too long", "mend the file") from None
    if not isinstance(value, Mapping):
        fix = "give a config.json, which is an object"
        raise RooflinesError("", f"has {quote(value)}, which is no object", fix)
    return value


def _model(config: Mapping[str, Any], name: str) -> Model:
    family = config.get("model_type")
    note = None
    if isinstance(family, str) and family in TEXT_PARTS:
        config, family, note = _text_part(config, family)
    family = _checked_family(family)
    for key in ENCODER_KEYS:
        if config.get(key):
            raise RooflinesError(key, f"is set: {VISION}", "use a model of text alone")
    if config.get("is_encoder_decoder"):
        raise RooflinesError("is_encoder_decoder", f"is true: {ENCODER}", "use another model")
    keys = Keys(config, family)
    form = FAMILIES[family](keys)
    dtypes, assumed = published_dtypes(keys)
    keys.check()
    without = MTP_NOTE if any(config.get(key) for key in MTP_KEYS) else None
    shape = checked(Shape, {"family": family, **form})
    notes = "; ".join(filter(None, [note, without, assumed]))
    return Model(_name(config, name), shape, dtypes, notes or None)


def _name(config: Mapping[str, Any], name: str) -> str:
    """What the config calls the model, else its file."""
    stated = config.get("_name_or_path")
    return stated if isinstance(stated, str) and stated and stated.isprintable() else name


def _text_part(config: Mapping[str, Any], family: str) -> tuple[Mapping[str, Any], str, str | None]:
    """The text part of a config with images, with what is stated for the whole model."""
    text = config.get("text_config")
    if text is None:
        return config, TEXT_PARTS[family], None
    if not isinstance(text, Mapping):
        raise RooflinesError("text_config", f"is {quote(text)}, which is no object", "correct it")
    whole = ("tie_word_embeddings", "torch_dtype", "dtype", "quantization_config", "_name_or_path")
    shared = {key: config[key] for key in whole if key in config}
    return {**shared, **text}, text.get("model_type", TEXT_PARTS[family]), TEXT_NOTE


def _checked_family(family: object) -> str:
    """The family, refused without a shape."""
    fix = f"use a model of {', '.join(FAMILIES)}, or write it out as docs/own-model.md says"
    if family is None:
        raise RooflinesError("", "lacks model_type", "add it: the file may be incomplete")
    if not isinstance(family, str):
        raise RooflinesError("model_type", f"is {quote(family)}, which is no text", fix)
    if family in FAMILIES:
        return family
    known = [*FAMILIES, *TEXT_PARTS]
    problem = f"is {quote(family)}, which is no family that is known"
    raise RooflinesError("model_type", problem, fix, close=close_to(family, known))
