"""A question of a whole model in a few words, as a sweep of one row."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rooflines.basics.errors import Mistakes, RooflinesError, close_to, one_of, placed, quote
from rooflines.catalogue.chips import dtype_entries
from rooflines.catalogue.forms import checked
from rooflines.catalogue.unsupported import fewer_or, need_of
from rooflines.explanation.question import (
    NAME,
    PRODUCT,
    SIZE,
    on_chip,
    take_size,
)
from rooflines.model.operation import MATRIX, NAMED
from rooflines.models.library import close_models, is_named
from rooflines.models.model import Model
from rooflines.models.resolve import is_path, model_named
from rooflines.models.split import Split
from rooflines.serving.support import SkippedSteps
from rooflines.serving.sweep import checked_model_sweep
from rooflines.settings.model_sweeps import AXES, ModelSweepConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.fits.entries import Calibrations
    from rooflines.serving.sweep import ModelSweep

DEFAULT = "bf16"
"""The format of everything, if a question names none."""

SIZES = ("B", "S", "T")
"""Sequences, tokens of each after the step, and new ones of each."""

PLACES = {
    "": "the question",
    "chips": "chip",
    "grid": "sizes",
    "splits": "split",
    "cache_split": "cache-split",
}
"""Config keys whose word in a question is another."""

KEY = re.compile(r"\b(\w+): ?(?=[,\d]|$)")
"""A key of a config in a fix; a question has `=` behind it."""

HOW = "write B sequences of S tokens, such as B=64 S=8192"
LIST_FORMATS = "name a format such as bf16 or fp8, or write weights=,cache=,activations=,compute="


@dataclass
class ModelWords:
    """The words of a question by what they are; None or empty: not among them."""

    chip: str | None = None
    model: str | None = None
    dtypes: str | None = None
    sizes: dict[str, str] = field(default_factory=dict)

    def take(self, kind: str, word: str) -> None:
        """Keep a word.

        Raises:
            RooflinesError: There is one of this kind already.
        """
        there = getattr(self, kind)
        if there is not None:
            twice = f"is given twice, {quote(there)} and {quote(word)}"
            raise RooflinesError(kind, twice, "ask for one at a time")
        setattr(self, kind, word)


def asks_for_a_model(words: Sequence[str], chips: Mapping[str, Chip]) -> bool:
    """Whether words name a model or, if they name no operation, one is close to a model's name."""
    others = [*chips, *dtype_entries().combinations, *NAMED]
    unknown = [word for word in words if word not in others and "=" not in word]
    if any(is_named(word) or is_path(word) for word in unknown):
        return True
    if any(word in NAMED or "->" in word or PRODUCT.fullmatch(word) for word in words):
        return False
    return any(close_models(word) and not close_to(word, others) for word in unknown)


def read_model_words(words: Iterable[str], chips: Mapping[str, Chip]) -> ModelWords:
    """Words in any order: a chip, a model, sizes, and perhaps dtypes.

    Args:
        words: Such as `h100-sxm llama-3.1-70b B=64 S=8192 fp8`.
        chips: Catalogue entries by id.

    Raises:
        RooflinesError: A word is nothing known, or something is given twice.
    """
    known, formats, unknown = ModelWords(), dtype_entries().formats, []
    for word in words:
        if word in chips:
            known.take("chip", word)
        elif word in formats:
            known.take("dtypes", word)
        elif is_named(word) or is_path(word):
            known.take("model", word)
        elif match := SIZE.fullmatch(word):
            take_size(known.sizes, *match.groups())
        elif "=" in word:
            known.take("dtypes", word)
        else:
            unknown.append(word)
    for word in unknown:
        _place_unknown(known, word, chips)
    return known


def _place_unknown(known: ModelWords, word: str, chips: Iterable[str]) -> None:
    """Take a word as what is missing, by which names are close; it is refused later."""
    kinds: dict[str, list[str]] = {
        "model": close_models(word),
        "chip": close_to(word, chips),
        "dtypes": close_to(word, dtype_entries().formats),
    }
    missing = [kind for kind in kinds if getattr(known, kind) is None]
    alike = [kind for kind in missing if kinds[kind]]
    if not alike and "chip" in missing:
        alike = ["chip"]
    if not alike:
        raise RooflinesError(
            "the question",
            f"has {quote(word)}, which is no model, size, chip or format",
            f"leave it out, or correct it; {HOW}, and a format such as bf16",
            close=[name for close in kinds.values() for name in close],
        )
    known.take(alike[0], word)


def model_sweep_of(  # noqa: PLR0913, the parts of a question
    chip: str,
    model: str | Model,
    sizes: Mapping[str, object],
    *,
    chips: Mapping[str, Chip],
    calibrations: Calibrations,
    dtypes: object = None,
    split: object = None,
    **options: object,
) -> ModelSweep:
    """The sweep of one row that answers a question, solved along every axis.

    Args:
        chip: Its id.
        model: A model, its id, a published name, or the path of a config.json.
        sizes: B, S and, in decode, perhaps T, by letter [1].
        chips: Catalogue entries by id.
        calibrations: By chip and software.
        dtypes: A format, `weights=,cache=,activations=,compute=`, or a mapping; None: bf16.
        split: `tp=8,dp=2`, or a mapping; None: one chip.
        **options: Keys of a sweep: `phase`, `routing`, `cache_split`, `memory`, `network`,
            `calibration`; None: the default.

    Raises:
        RooflinesError: Something is invalid; places are words of the question, not config keys.
    """
    with Mistakes() as mistakes:
        with mistakes.at():
            options = on_chip(chip, chips, options)
        with mistakes.at():
            asked = model if isinstance(model, Model) else model_named(str(model))
        with mistakes.at():
            grid = _grid(sizes)
        with mistakes.at():
            form = DEFAULT if dtypes is None else _dtypes(dtypes)
        with mistakes.at():
            parts = {} if split is None else _split(split)
    keys = {
        "models": [asked.name],
        "grid": grid,
        "dtypes": [form],
        "chips": [chip],
        "splits": [parts],
        "thresholds": list(AXES),
        **{key: value for key, value in options.items() if value is not None},
    }
    try:
        config = checked(ModelSweepConfig, keys)
        with Mistakes() as mistakes:
            with mistakes.at("calibration"):
                calibrations.check_softwares(config.calibration or ())
            catalogues = chips, dtype_entries(), calibrations
            sweep = checked_model_sweep(NAME, config, {asked.name: asked}, *catalogues)
    except RooflinesError as error:
        raise RooflinesError.of(
            _in_words(each, chips[chip], parts) for each in error.errors
        ) from None
    return sweep


def _grid(sizes: Mapping[str, object]) -> dict[str, object]:
    with Mistakes() as mistakes:
        for letter in sizes:
            if letter not in SIZES:
                mistakes.add(RooflinesError(f"size {letter}", "is no size of a model", HOW))
        if missing := [letter for letter in ("B", "S") if letter not in sizes]:
            mistakes.add(RooflinesError("sizes", f"lack {' and '.join(missing)}", HOW))
    return {letter: sizes[letter] for letter in SIZES if letter in sizes}


def _dtypes(form: object) -> object:
    """Dtypes as a config has them: a format, or dtypes by class of tensors."""
    with placed("dtypes"):
        if not isinstance(form, str):
            return form
        if "=" in form:
            return _by_key(form, LIST_FORMATS)
        one_of(form, dtype_entries().formats, "no format", LIST_FORMATS)
    return form


def _split(form: object) -> object:
    """A split as a config has it."""
    with placed("split"):
        return _by_key(form, "write tp=8, or tp=4,dp=2") if isinstance(form, str) else form


def _by_key(text: str, fix: str) -> dict[str, str]:
    """Values by key, of a text such as `tp=8,dp=2`.

    Raises:
        RooflinesError: A part is no KEY=VALUE, or a key is there twice.
    """
    values: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise RooflinesError("", f"has {quote(part)}, which is no KEY=VALUE", fix)
        if key in values:
            raise RooflinesError("", f"gives {quote(key)} twice", fix)
        values[key] = value
    return values


def formats_on(chip: Chip) -> list[str]:
    """The formats that the matrix unit of a chip computes in, in the order of the catalogue."""
    peaks = chip.units.get(MATRIX, {})
    return [name for name in dtype_entries().formats if name in peaks]


def _in_words(error: RooflinesError, chip: Chip, split: object) -> RooflinesError:
    """An error of the sweep, with the words of a question in place of config keys.

    Args:
        error: The error.
        chip: The chip.
        split: The split, as a config has it.
    """
    head, _, rest = re.sub(r"\[\d+\]", "", error.where).partition(".")
    place = f"size {rest}" if head == "grid" and rest else PLACES.get(head, head)
    if rest and head != "grid":
        place = f"{place} {rest}"
    problem, fix = error.problem, error.fix
    if isinstance(error.cause, SkippedSteps):
        problem, need = error.cause.problem, need_of(error.cause.reason)
        fix = "ask for another split"
        if need == "peak":
            fix = f"choose a format that its matrix unit computes: {', '.join(formats_on(chip))}"
        elif need == "memory":
            has = ", ".join(name for name, level in chip.memory.items() if level.bytes_per_s)
            fix = f"choose one of its memory levels with a bandwidth: {has}"
        elif need == "sequences":
            fix = "ask for more sequences, or fewer replicas"
        elif need == "network":
            of = checked(Split, split)
            fix = fewer_or(chip, "fewer chips", of.axes, (of.ep,))
    elif head in ("dtypes", "splits"):
        fix = KEY.sub(r"\1=", fix)
    return RooflinesError(place, problem, fix, close=error.close, file=error.file)
