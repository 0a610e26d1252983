"""Models from a Hugging Face `config.json`, for the families in `families.yaml`.

An unknown key could change a parameter count, so it is refused, as are families without a shape.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rooflines.basics.errors import RooflinesError, at_path, close_to, printable, quote
from rooflines.basics.file_kinds import named_kind
from rooflines.basics.files import bounded_text
from rooflines.basics.numbers import whole
from rooflines.basics.text import si
from rooflines.hardware.entry_forms import validate_entry
from rooflines.models.architecture import Gqa, Shape
from rooflines.models.hf.config_keys import ENCODER_REASON, MTP_KEYS, VISION_REASON, Keys, tables
from rooflines.models.hf.families import families, form_of
from rooflines.models.hf.params_json import PARAMS_JSON, config_of_params, is_params
from rooflines.models.hf.stored_dtypes import QUANTIZATIONS, Published, published_dtypes
from rooflines.models.matrix import MAX_MATRIX_SIZE
from rooflines.models.model import MTP_NOTES, Model
from rooflines.models.tensor_dtypes import model_dtypes

CONFIG_JSON = "config.json"
"""File with a published model's architecture."""

QUANTIZED_JSON = "hf_quant_config.json"
"""File beside it with the dtypes, for checkpoints quantized by NVIDIA's ModelOpt."""

MAX_FILE_BYTES = 16 * 2**20
"""Limit on a config.json's size [byte]; a larger file is a mistake."""

SHARED_KEYS = ("tie_word_embeddings", "torch_dtype", "dtype", *QUANTIZATIONS)
"""Top-level keys that hold for the text part too."""

HEAD_KEYS = ("architectures", "id2label", "label2id", "num_labels")
"""Top-level keys that determine the head."""

TEXT_NOTE = "the text part, without its encoders"

SPEECH_NOTE = "without the parts that speak"

PARALLEL_NOTE = (
    "attention and MLP may be parallel: under tp two all-reduces of a layer are counted, where one "
    "can do"
)

TEXT_CONFIGS = ("text_config", "llm_config", "language_config")
"""Keys with the text part's config, in models with encoders."""

THINKER = "thinker_config"
"""Key with the part that writes text, in models that also speak."""

INDEX_JSON = "model.safetensors.index.json"
"""File beside it with the weights' total bytes."""

WEIGHT_FILES = ("model", "consolidated")
"""Prefixes in names of weight files."""

SHARD = re.compile(r"-of-(\d+)\.safetensors$")
"""File count, in weight files' names."""

MAX_INDEX_BYTES = 64 * 2**20
"""Limit on an index file's size [byte]."""

MAX_INDEX_ERROR = 0.01
"""Tolerance between an index's bytes and the counted bytes, as a share of these [1]."""

TIED = "tie_word_embeddings"

MAX_ROTARY_FACTOR = 1024
"""Largest factor of a longer context that is understood [1]."""

MIN_TIES_VERSION = 5
"""First transformers version in which the top-level key wins where the two differ."""

SKIP_DTYPES = object()
"""Value for `dtypes` that skips the file's, since a sweep states its steps' dtypes."""

SCORE_HEAD = "ForSequenceClassification"
"""Suffix of architectures with a score head."""

WITHOUT_HEAD, WITH_HEAD = "Model", "LMHeadModel"
"""Suffix of architectures without a head; suffix of a few with an LM head."""

OTHER_HEADS = ("ForTokenClassification", "ForQuestionAnswering", "RewardModel")
"""Suffixes of architectures whose head has layers that are not modelled."""

DEFAULT_LABELS = 2
"""Default outputs of a score head [1]."""

ENCODER_KEYS = ("vision_config", "audio_config", "vision_tower", "mm_vision_tower")
"""Keys in models with an image or sound encoder."""


def from_hf(
    source: str | Path | Mapping[str, Any], dtypes: object = None, *, family: str | None = None
) -> Model:
    """Read a model from a config.json, with the hf_quant_config.json beside it, if there is one.

    Args:
        source: The file, its folder, or its content; also a params.json.
        dtypes: A format, or `{weights: , experts: , head: , cache: }`, instead of the files'
            dtypes, which are then not read.
        family: Family to read the file as, for any `model_type`; further keys are ignored, and the
            model's name and note say so. None: the file's.

    Returns:
        The model with the files' dtypes; the text part, if it has encoders.

    Raises:
        RooflinesError: A file is unreadable or incomplete, its family or its way to state dtypes is
            unknown, or it has keys that could change a count.
    """
    if isinstance(source, Mapping):
        return _model(source, CONFIG_JSON, None, dtypes, family)
    if not isinstance(source, str | Path):
        fix = "give the path of a config.json, or its content as a mapping"
        raise RooflinesError(CONFIG_JSON, f"is {quote(source)}", fix, value=source)
    path = Path(source)
    try:
        path = _config_path(path) if path.is_dir() else path
    except (OSError, ValueError):
        raise RooflinesError(
            CONFIG_JSON, f"cannot be at {quote(source)}", "give the path of a file"
        ) from None
    quant_config = None if dtypes is not None else _read_quant_config(path)
    with named_kind(path, "model"), at_path(file=printable(path)):
        model = _model(_read_object(path), str(path), quant_config, dtypes, family)
    return model if dtypes is not None else _check_bytes(model, path)


def _config_path(folder: Path) -> Path:
    """Find the file with the architecture in a folder."""
    config, params = folder / CONFIG_JSON, folder / PARAMS_JSON
    return params if params.is_file() and not config.exists() else config


def _check_bytes(model: Model, path: Path) -> Model:
    """Add a note if the weights beside a config differ from the counted bytes by more than 1%.

    Bytes are the index's, else the files'.
    """
    try:
        stored = _stored_bytes(path)
    except (OSError, ValueError):  # no path can be like that
        return model
    if model.dtypes is None or stored is None:
        return model
    name, size = stored
    weight_bytes = float(model.weights_bytes())
    if abs(size / weight_bytes - 1) <= MAX_INDEX_ERROR:
        return model
    note = (
        f"{name} has {si(size, 'B')}, {size / weight_bytes - 1:+.1%} of the "
        f"{si(weight_bytes, 'B')} that are counted"
    )
    return replace(model, note="; ".join(filter(None, [model.note, note])))


def _stored_bytes(path: Path) -> tuple[str, int] | None:
    """Weights beside a config: file name, and bytes [byte]; None: unknown."""
    index = path.with_name(INDEX_JSON)
    if index.is_file():
        with at_path(file=printable(index)):
            metadata = _read_object(index, MAX_INDEX_BYTES).get("metadata")
        size = metadata.get("total_size") if isinstance(metadata, Mapping) else None
        return (INDEX_JSON, size) if type(size) is int and size > 0 else None
    if path.name not in (CONFIG_JSON, PARAMS_JSON):
        return None
    for first in WEIGHT_FILES:
        files = sorted(path.parent.glob(f"{first}*.safetensors"))
        parts = SHARD.search(files[0].name) if files else None
        if files and len(files) == int(parts[1] if parts else 1):
            size = sum(file.stat().st_size for file in files)
            return files[0].name if parts is None else f"{first}-*.safetensors", size
    return None


def _read_quant_config(path: Path) -> Mapping[str, Any] | None:
    """Read the hf_quant_config.json beside a config.json; None: there is none."""
    quant_path = path.with_name(f"{path.name.removesuffix(CONFIG_JSON)}{QUANTIZED_JSON}")
    try:
        if not path.name.endswith(CONFIG_JSON) or not quant_path.exists():
            return None
    except (OSError, ValueError):  # no path can be like that
        return None
    with at_path(file=printable(quant_path)):
        return _read_object(quant_path)


def _read_object(path: Path, max_bytes: int = MAX_FILE_BYTES) -> Mapping[str, Any]:
    """Read the object in a JSON file with at most `max_bytes` bytes [byte]."""
    text = bounded_text(path, max_bytes, "give the config.json, not the weights")
    try:
        value = json.loads(text)
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


def _model(
    config: Mapping[str, Any],
    name: str,
    quant_config: Mapping[str, Any] | None,
    dtypes: object,
    read_as: str | None,
) -> Model:
    if is_params(config):
        config = config_of_params(config)
    config, note = _text_part(config)
    family = _check_family(read_as or config.get("model_type"))
    for key in ENCODER_KEYS:
        if config.get(key):
            raise RooflinesError(key, f"is set: {VISION_REASON}", "use a model of text alone")
    if config.get("is_encoder_decoder"):
        raise RooflinesError(
            "is_encoder_decoder", f"is true: {ENCODER_REASON}", "use another model"
        )
    table = families()[family]
    config = {table.names.get(key, key): value for key, value in config.items()}
    keys = Keys(config, family, table.defaults)
    shape_form, layer_types = form_of(keys, table)
    scores = _scores(config)
    if scores is not None:
        shape_form.pop("mtp", None)
    shape = validate_entry(Shape, {"family": family, "scores": scores, **shape_form})
    shape = shape.model_copy(update={"rotary_elements": rotary_elements(config, shape)})
    if dtypes is None:
        published = published_dtypes(keys, shape, layer_types, quant_config)
    else:
        published = Published(None if dtypes is SKIP_DTYPES else model_dtypes(dtypes))
        keys.ignore("torch_dtype", "dtype", *QUANTIZATIONS)
    keys.check(forced=read_as is not None)
    filled_defaults = ", ".join(f"{key} {value}" for key, value in keys.used_defaults.items())
    notes = [
        f"read as {family}, whatever its model_type" if read_as else None,
        note,
        _head_note(scores),
        MTP_NOTES[0] if any(config.get(key) for key in MTP_KEYS) else None,
        f"defaults of the family: {filled_defaults}" if filled_defaults else None,
        PARALLEL_NOTE if table.parallel else None,
        *keys.assumptions,
        published.note,
        f"ignored: {', '.join(keys.unknown_keys)}" if keys.unknown_keys else None,
    ]
    note = "; ".join(filter(None, notes)) or None
    name = f"{name} as {family}" if read_as else name
    return Model(name, shape, published.dtypes, note, weight_only=published.weight_only)


def rotary_elements(config: Mapping[str, Any], shape: Shape) -> int | None:
    """Elements in tables of rotary angles, where they are not context x head size [1].

    Linear scaling lengthens the table, and a partial factor makes its rows shorter. Local layers
    with a base of their own have a second table, which is not scaled.

    Source: `get_rope` in vLLM, vllm/model_executor/layers/rotary_embedding.

    Args:
        config: The text part's config.
        shape: The model.

    Returns:
        None: context x head size, or the config says nothing that is understood.
    """
    scaling = config.get("rope_scaling") or config.get("rope_parameters")
    scaling = scaling if isinstance(scaling, Mapping) else {}
    by_layer = scaling.get("full_attention")
    scaled = by_layer if isinstance(by_layer, Mapping) else scaling
    factor, share = scaled.get("factor", 1), config.get("partial_rotary_factor")
    share = scaled.get("partial_rotary_factor", 1) if share is None else share
    if scaled.get("rope_type", scaled.get("type")) != "linear":
        factor = 1
    numbers = [number for number in (factor, share) if isinstance(number, int | float)]
    if len(numbers) < 2 or not isinstance(shape.attention, Gqa) or shape.context is None:  # noqa: PLR2004, both
        return None
    tables = factor + (bool(by_layer) or config.get("rope_local_base_freq") is not None)
    is_plain = tables == 1 and share == 1
    if is_plain or not 0 < share <= 1 or not 1 <= factor <= MAX_ROTARY_FACTOR:
        return None
    return int(shape.context * tables) * int(shape.attention.H * share)


def _scores(config: Mapping[str, Any]) -> int | None:
    """Read the outputs of a score head [1]; 0: no head; None: an LM head.

    Raises:
        RooflinesError: The architecture's head is not modelled, or the labels are no object.
    """
    names = config.get("architectures") or []
    for name in names if isinstance(names, list) else []:
        if not isinstance(name, str) or name.endswith(WITH_HEAD):
            continue
        if name.endswith(OTHER_HEADS):
            fix = "use its base model, or write the model out as docs/write-a-config.md says"
            raise RooflinesError(
                "architectures", f"is {quote(name)}, whose head is not modelled", fix, value=name
            )
        if name.endswith(SCORE_HEAD):
            labels = config.get("id2label") or {}
            if not isinstance(labels, Mapping):
                fix = "correct it: its entries are the outputs of the score head"
                raise RooflinesError(
                    "id2label", f"is {quote(labels)}, which is no object", fix, value=labels
                )
            with at_path("num_labels"):
                return len(labels) or whole(
                    config.get("num_labels") or DEFAULT_LABELS, maximum=MAX_MATRIX_SIZE
                )
        if name.endswith(WITHOUT_HEAD):
            return 0
    return None


def _head_note(scores: int | None) -> str | None:
    """Note for a model without an LM head."""
    if scores is None:
        return None
    return f"a score head of {scores} in place of an LM head" if scores else "without an LM head"


def _text_part(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], str | None]:
    """Extract the text part from a config with encoders, with the top-level keys that it needs.

    Returns:
        The text part's config, or the whole one; and a note.

    Raises:
        RooflinesError: It is no object, or contradicts a top-level key.
    """
    if isinstance(config.get(THINKER), Mapping):
        thinker = {**config[THINKER], "model_type": config.get("model_type")}
        written, text_note = _text_part(thinker)
        return written, "; ".join(filter(None, [text_note, SPEECH_NOTE]))
    family, parts = config.get("model_type"), tables()["text-parts"]
    part = parts.get(family) if isinstance(family, str) else None
    key = next((key for key in TEXT_CONFIGS if config.get(key) is not None), None)
    text_config = None if key is None else config[key]
    is_known = isinstance(family, str) and family in families()
    if is_known and text_config is None:
        return config, None
    if part is None:
        inner = text_config.get("model_type") if isinstance(text_config, Mapping) else None
        inner = inner if isinstance(inner, str) else None
        if is_known or not (inner in parts or inner in families()):
            return config, None
        part = parts.get(inner, inner)
    if text_config is None or key is None:
        encoders = any(config.get(key) for key in ENCODER_KEYS)
        flat = {key: value for key, value in config.items() if key not in ENCODER_KEYS}
        return {**flat, "model_type": part}, TEXT_NOTE if encoders else None
    if not isinstance(text_config, Mapping):
        raise RooflinesError(
            key, f"is {quote(text_config)}, which is no object", "correct it", value=text_config
        )
    shared = _shared(config, text_config, key)
    head_keys = {key: config[key] for key in HEAD_KEYS if key in config}
    text_family = text_config.get("model_type") or part
    return {
        **text_config,
        "model_type": parts.get(text_family, text_family),
        **shared,
        **head_keys,
    }, TEXT_NOTE


def _shared(config: Mapping[str, Any], text: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Select top-level keys that hold for the text part.

    Args:
        config: The whole config.
        text: Its text part.
        key: The text part's key.

    Raises:
        RooflinesError: The two contradict each other.
    """
    shared = {key: config[key] for key in SHARED_KEYS if config.get(key) is not None}
    by_text = config.get("model_type") in tables()["tied-by-text"]
    if shared.get(TIED) is True and text.get(TIED) is False and by_text:
        del shared[TIED]
    newer = str(config.get("transformers_version")).partition(".")[0]
    for name, value in shared.items():
        if name == TIED and newer.isdecimal() and int(newer) >= MIN_TIES_VERSION:
            continue
        if text.get(name, value) not in (value, None):
            problem = f"is {quote(value)}, and {quote(text[name])} in {key}"
            raise RooflinesError(name, problem, "correct one of them")
    return shared


def _check_family(family: object) -> str:
    """Refuse a family without a shape."""
    fix = "use a model of a family of docs/serve.md, or write it out as docs/write-a-config.md says"
    if family is None:
        raise RooflinesError("", "lacks model_type", "add it: the file may be incomplete")
    if not isinstance(family, str):
        raise RooflinesError(
            "model_type", f"is {quote(family)}, which is no text", fix, value=family
        )
    family_names, refused = [*families(), *tables()["text-parts"]], tables()["refused"]
    if family in families():
        return family
    if family in refused:
        reason = refused[family]
        if "encoder" not in reason:
            fix += "; --as llama forces it, and counts a Llama of its sizes, without these parts"
        raise RooflinesError("model_type", f"is {quote(family)}: {reason}", fix, value=family)
    problem = f"is {quote(family)}, which is no family that is known"
    fix = f"{fix}; with the keys of a known family, read it with --as llama"
    raise RooflinesError("model_type", problem, fix, close=close_to(family, family_names))
