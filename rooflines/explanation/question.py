"""A question about an operation, or a model, as a sweep of one row or a few."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rooflines.basics.errors import Mistakes, RooflinesError, close_to, one_of, placed, quote
from rooflines.basics.text import counted
from rooflines.catalogue.chips import dtype_entries
from rooflines.catalogue.forms import checked
from rooflines.catalogue.unsupported import fewer_or, need_of
from rooflines.explanation.words import TIMES, WRITTEN_OUT, by_letter, values_of
from rooflines.model.network import parse_axes
from rooflines.model.operation import MATRIX, NAMED, Operation, operation
from rooflines.model.sharding import NAMED as SHARDINGS
from rooflines.model.sharding import OR_LONG_FORM, SHARDS, sharding
from rooflines.models.model import Model
from rooflines.models.resolve import model_named
from rooflines.models.split import Split
from rooflines.settings.model_sweeps import AXES, ModelSweepConfig
from rooflines.settings.schema import SweepConfig
from rooflines.sweep.cases import Skipped
from rooflines.sweep.checks import checked_sweep
from rooflines.sweep.operations import Sweep
from rooflines.sweep.steps import ModelSweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rooflines.catalogue.entries import Chip
    from rooflines.fits.entries import Calibrations

NAME = "explain"
"""The name of the sweep of a question."""

OPERATION, FORMAT = "matmul", "bf16"
"""The operation that sizes without one are of, and the format of what is typed without dtypes."""

COMPUTED = ("bf16", "fp16", "fp8", "mxfp8", "nvfp4")
"""Formats of weights that are computed in as they are, where the chip has a peak for it."""

SHARES = (1, 0.9)
"""The shares of peak solved for: compute-bound, and nearly so [1]."""

MODEL_SIZES = ("B", "S", "T")
"""Sequences, tokens of each after the step, and new ones of each."""

BLAS = {"M": "B", "K": "D", "N": "F"}
"""Letters of matrix products in other libraries, and those of `matmul` here."""

ALL = "all"
"""Every memory level of a chip that has a bandwidth."""

HOW = (
    "write BxDxF in the order of the operation's letters, such as 128x8192x8192, "
    "or B=128 D=8192 F=8192"
)
HOW_MODEL = "write B sequences of S tokens, such as B=64 S=8192"
LIST_CHIPS = "use a chip of the catalogue, such as h100-sxm or tpu-v5e; `rooflines list chips`"
LIST_DTYPES = "use a combination of the dtype catalogue, such as bf16 or w8a16"
LIST_FORMATS = (
    "name a format such as bf16, or write weights=fp8,cache=fp8,activations=bf16,compute=fp8"
)

PLACES = {
    "": "the question",
    "chips": "chip",
    "grid": "sizes",
    "thresholds": "operation",
    "splits": "split",
    "cache_split": "cache-split",
}
"""Config keys whose word in a question is another."""

KEY = re.compile(r"\b(\w+): ?(?=[,\d]|$)")
"""A key of a config in a fix; a question has `=` behind it."""


SweepT = TypeVar("SweepT", bound="Sweep | ModelSweep")


class Known(NamedTuple):
    """What a question can name.

    Attributes:
        chips: By id.
        calibrations: By chip and software.
    """

    chips: Mapping[str, Chip]
    calibrations: Calibrations


def operation_sweep(  # noqa: PLR0913, the parts of a question
    chips: Sequence[str],
    sizes: str | Mapping[str, object] | Sequence[object],
    dtypes: Sequence[object],
    known: Known,
    *,
    operation: str | None = None,
    shards: int | str = 1,
    sharding: object = None,
    **options: object,
) -> Sweep:
    """The sweep that answers a question about an operation, solved along every dimension.

    Args:
        chips: Ids.
        sizes: `128x8192x8192`, `B=128 D=8192 F=8192`, or the sizes by letter or in order [1]; each
            may be several, such as `64,128` or `1..1024`.
        dtypes: Names of the dtype catalogue, `x,w->out@compute`, or mappings.
        known: What can be named.
        operation: A name or an einsum; None: matmul.
        shards: Number of chips [1].
        sharding: A name or a mapping; None: none.
        **options: Keys of a sweep: `network`, `memory`, `unit`, `flops`, `calibration`; None: the
            default.

    Raises:
        RooflinesError: Something is invalid; places are words of the question, not config keys.
    """
    with Mistakes() as mistakes:
        with mistakes.at():
            options = _on_chips(chips, known.chips, options)
        with mistakes.at():
            op = _operation(str(operation or OPERATION))
            grid = _sizes(sizes, op)
        with mistakes.at("dtypes"):
            forms = [_combination(form) for form in dtypes or [""]]
        if sharding in (None, "none") and str(shards) != "1":
            names = ", ".join(name for name in SHARDINGS if name != "none")
            problem = f"is {shards}, but nothing is split"
            mistakes.add(
                RooflinesError("shards", problem, f"choose a sharding with --sharding: {names}")
            )
    keys = {
        "operation": op.name,
        "grid": grid,
        "dtypes": forms,
        "chips": [*chips],
        "shards": [shards],
        "sharding": ["none" if sharding is None else sharding],
        "thresholds": _solved(op, sharding),
        "shares": list(SHARES),
        **options,
    }
    unit = str(options.get("unit") or op.unit)
    fix = partial(_operation_fix, known.chips, unit, shards)
    return _checked(keys, partial(_operation_sweep, known), fix, known.chips)


def model_sweep(  # noqa: PLR0913, the parts of a question
    chips: Sequence[str],
    model: str | Model,
    sizes: Mapping[str, object],
    known: Known,
    *,
    dtypes: Sequence[object] = (),
    split: object = None,
    **options: object,
) -> ModelSweep:
    """The sweep that answers a question about a model, solved along every axis.

    Args:
        chips: Ids.
        model: A model, its id, a published name, or the path of a config.json.
        sizes: B, S and, in decode, perhaps T, by letter; each may be several [1].
        known: What can be named.
        dtypes: Formats, `weights=,cache=,activations=,compute=`, or mappings; none: as published.
        split: `tp=8,dp=2`, or a mapping; None: one chip.
        **options: Keys of a sweep: `phase`, `routing`, `cache_split`, `memory`, `network`,
            `calibration`; None: the default.

    Raises:
        RooflinesError: Something is invalid; places are words of the question, not config keys.
    """
    with Mistakes() as mistakes:
        with mistakes.at():
            options = _on_chips(chips, known.chips, options)
        with mistakes.at():
            asked = model if isinstance(model, Model) else model_named(str(model), dtypes or None)
        with mistakes.at():
            grid = _model_sizes(sizes)
        with mistakes.at("dtypes"):
            forms = [_format(form) for form in dtypes]
        with mistakes.at("split"):
            how = "write tp=8, or tp=4,dp=2"
            parts = by_key(split, how) if isinstance(split, str) else split or {}
    keys = {
        "models": [asked.name],
        "grid": grid,
        "dtypes": forms or [as_published(asked, (known.chips[chip] for chip in chips))],
        "chips": [*chips],
        "splits": [parts],
        "thresholds": list(AXES),
        **options,
    }

    fix = partial(_model_fix, known.chips, parts)
    return _checked(keys, partial(_model_sweep, known, asked), fix, known.chips)


def _operation_sweep(known: Known, keys: Mapping[str, Any]) -> Sweep:
    """The sweep of a config of one operation."""
    config = checked(SweepConfig, keys)
    with placed("calibration"):
        known.calibrations.check_softwares(config.calibration or ())
    return checked_sweep(Sweep(NAME, config, known.chips, dtype_entries(), known.calibrations))


def _model_sweep(known: Known, model: Model, keys: Mapping[str, Any]) -> ModelSweep:
    """The sweep of a config of one model."""
    config = checked(ModelSweepConfig, keys)
    with placed("calibration"):
        known.calibrations.check_softwares(config.calibration or ())
    catalogues = known.chips, dtype_entries(), known.calibrations
    return checked_sweep(ModelSweep(NAME, config, *catalogues, {model.name: model}))


def _operation_fix(
    chips: Mapping[str, Chip], unit: str, shards: int | str, cause: Skipped, need: str | None
) -> str:
    """What to do where an operation is not supported."""
    chip = chips[cause.chip or next(iter(chips))]
    if need != "peak":
        return fewer_or(chip, "other numbers of chips", parse_axes(str(shards)))
    if has := dtypes_on(chip, unit):
        return f"choose dtypes that its {unit} unit computes: {', '.join(has)}"
    return f"choose another chip, or one of its units: {', '.join(chip.units)}"


def _model_fix(chips: Mapping[str, Chip], parts: object, cause: Skipped, need: str | None) -> str:
    """What to do where a step of a model is not supported."""
    chip = chips[cause.chip or next(iter(chips))]
    if need == "peak":
        return f"choose a format that its matrix unit computes: {', '.join(formats_on(chip))}"
    if need == "sequences":
        return "ask for more sequences, such as B=64, or fewer replicas"
    if need == "network":
        of = checked(Split, parts)
        return fewer_or(chip, "fewer chips", of.axes, of.experts_axes)
    return "ask for another split, such as --split tp=8, or for none"


def _checked(
    keys: Mapping[str, Any],
    build: Callable[[Mapping[str, Any]], SweepT],
    fix: Callable[[Skipped, str | None], str],
    chips: Mapping[str, Chip],
) -> SweepT:
    """The sweep of a config; without the threshold of shards where that has no closed form.

    Args:
        keys: The config.
        build: Checks it.
        fix: What to do where nothing is supported, by what is missing.
        chips: By id.

    Raises:
        RooflinesError: It is invalid; places are words of the question.
    """
    try:
        return build(keys)
    except RooflinesError as error:
        real = [each for each in error.errors if not each.where.startswith("thresholds")]
        if not real and SHARDS in keys["thresholds"]:
            dims = [axis for axis in keys["thresholds"] if axis != SHARDS]
            return _checked({**keys, "thresholds": dims}, build, fix, chips)
        raise RooflinesError.of(
            _in_words(each, fix, chips, of_model="models" in keys) for each in real or error.errors
        ) from None


def _in_words(
    error: RooflinesError,
    fix_of: Callable[[Skipped, str | None], str],
    chips: Mapping[str, Chip],
    *,
    of_model: bool,
) -> RooflinesError:
    """An error of the sweep, with the words of a question in place of config keys."""
    head, _, rest = re.sub(r"\[\d+\]", "", error.where).partition(".")
    place = f"size {rest}" if head == "grid" and rest else PLACES.get(head, head)
    if rest and head != "grid":
        place = f"{place} {rest}"
    problem, fix, cause = error.problem, error.fix.replace(OR_LONG_FORM, ""), error.cause
    if isinstance(cause, Skipped):
        problem, need = cause.problem, need_of(cause.reason)
        fix = fix_of(cause, need)
        if need == "memory" and cause.chip is not None:
            has = ", ".join(levels_of(chips[cause.chip]))
            fix = f"choose one of its memory levels with a bandwidth: {has}"
    elif of_model and place == "dtypes" and not error.close:
        fix = LIST_FORMATS
    elif head in ("dtypes", "splits"):
        fix = KEY.sub(r"\1=", fix)
    return RooflinesError(place, problem, fix, close=error.close, file=error.file)


def _on_chips(
    names: Sequence[object], chips: Mapping[str, Chip], options: Mapping[str, object]
) -> dict[str, Any]:
    """The options of a question about chips, with networks and memory as a config has them.

    Raises:
        RooflinesError: A chip is missing or unknown, or the only one lacks a network.
    """
    with placed("chip"):
        for name in names or [""]:
            _check_given(name, LIST_CHIPS)
            one_of(name, chips, "no chip", LIST_CHIPS)
    given = {key: value for key, value in options.items() if value is not None}
    if given.get("memory") == ALL:
        every = [level for name in names for level in levels_of(chips[str(name)])]
        given["memory"] = list(dict.fromkeys(every))
    if network := given.get("network"):
        levels = network.split(",") if isinstance(network, str) else network
        levels = levels if isinstance(levels, list | tuple) else [levels]
        for level in levels if len(names) == 1 else ():
            with placed("network"):
                one_of(level, chips[str(names[0])].networks, f"no interconnect of {names[0]}")
        given["network"] = levels[0] if len(levels) == 1 else list(levels)
    return given


def _check_given(word: object, fix: str) -> None:
    if word == "":
        raise RooflinesError("", "is missing", fix)


def _operation(text: str) -> Operation:
    with placed("operation"):
        return operation(text)


def _solved(op: Operation, form: object) -> list[str]:
    """The axes to solve for: every dimension and, where something is split, shards."""
    try:
        split = isinstance(form, str | Mapping) and sharding(form, op).split is not None
    except RooflinesError:  # reported with its place when the sweep is checked
        split = False
    return [*op.dims, *([SHARDS] if split else [])]


# ---------------------------------------------------------------- sizes


def _sizes(
    sizes: str | Mapping[str, object] | Sequence[object], op: Operation
) -> dict[str, list[int]]:
    """The sizes of every dimension.

    Raises:
        RooflinesError: A dimension has none or is not the operation's, or a size is no whole number
            above zero.
    """
    lettered = sizes if isinstance(sizes, Mapping) else _in_order(sizes, op)
    given = {_dimension(letter, op): size for letter, size in lettered.items()}
    known = f"{op.name} has the dimensions {', '.join(op.dims)}"
    with Mistakes() as mistakes:
        if len(given) < len(lettered):
            twice = f"are given twice, in {quote(' '.join(lettered))}"
            mistakes.add(RooflinesError("sizes", twice, "give each letter one size"))
        for letter in given:
            if letter not in op.dims:
                close = close_to(letter, op.dims)
                mistakes.add(
                    RooflinesError(
                        f"size {letter}", f"is of no dimension: {known}", HOW, close=close
                    )
                )
        if missing := [dim for dim in op.dims if dim not in given]:
            lack = f"lack {', '.join(missing)}: {known}"
            fix = f"add {' '.join(f'{dim}=8192' for dim in missing)}, or other sizes"
            mistakes.add(RooflinesError("sizes", lack, fix))
        whole_sizes = {}
        for letter, size in given.items():
            with mistakes.at():
                whole_sizes[letter] = values_of(size, letter)
    return whole_sizes


def _dimension(letter: str, op: Operation) -> str:
    """The dimension that a letter names: in any case; M, K and N name those of matmul."""
    if letter in op.dims:
        return letter
    upper = str(letter).upper()
    if op.dims == NAMED_DIMS and upper in BLAS:
        return BLAS[upper]
    return upper if upper in op.dims else letter


NAMED_DIMS = operation(OPERATION).dims
"""The dimensions of `matmul`."""


def _in_order(sizes: str | Sequence[object], op: Operation) -> Mapping[str, object]:
    """Sizes by letter, of a text or of numbers in the order of the letters."""
    if isinstance(sizes, str) and "=" in sizes:
        return by_letter(sizes)
    if not sizes:
        raise RooflinesError("sizes", "are missing", HOW)
    parts = TIMES.split(sizes) if isinstance(sizes, str) else sizes
    if not isinstance(parts, list | tuple):
        parts = [parts]
    if len(parts) != len(op.dims):
        wanted = "x".join(op.dims)
        raise RooflinesError(
            "sizes",
            f"are {len(parts)} in {quote(sizes)}, but {op.name} has "
            f"{counted(len(op.dims), 'dimension')}: {', '.join(op.dims)}",
            f"write one size for each, {wanted}, or name another operation: {', '.join(NAMED)}",
        )
    return dict(zip(op.dims, parts, strict=True))


def _model_sizes(sizes: Mapping[str, object]) -> dict[str, list[int]]:
    given = {str(letter).upper(): size for letter, size in sizes.items()}
    grid = {}
    with Mistakes() as mistakes:
        for letter in given:
            if letter not in MODEL_SIZES:
                mistakes.add(RooflinesError(f"size {letter}", "is no size of a model", HOW_MODEL))
        if missing := [letter for letter in ("B", "S") if letter not in given]:
            mistakes.add(RooflinesError("sizes", f"lack {' and '.join(missing)}", HOW_MODEL))
        for letter in MODEL_SIZES:
            if letter in given:
                with mistakes.at():
                    grid[letter] = values_of(given[letter], letter)
    return grid


# ---------------------------------------------------------------- dtypes and levels


def _combination(form: object) -> object:
    """A dtype combination in the form of a config."""
    if not isinstance(form, str):
        return form
    if match := WRITTEN_OUT.fullmatch(form):
        return dict(zip(("x", "w", "out", "compute"), match.groups(), strict=True))
    _check_given(form, LIST_DTYPES)
    one_of(form, dtype_entries().combinations, "no dtype combination", LIST_DTYPES)
    return form


def as_published(model: Model, chips: Iterable[Chip]) -> str | dict[str, str]:
    """Dtypes of a step of a model as it is published; the format of all where that is not stated.

    Weights in integers or in a format that a chip has no peak for are computed in 16 bit, and so
    is attention; caches that are not stated have 16 bit, too.

    Args:
        model: The model.
        chips: The chips that compute.
    """
    stored = model.dtypes
    if stored is None:
        return FORMAT
    wide = stored.weights if stored.weights in COMPUTED[:2] else FORMAT
    if set(stored.stored.values()) == {wide}:
        return wide
    can = all(stored.weights in chip.units.get(MATRIX, {}) for chip in chips)
    compute = stored.weights if stored.weights in COMPUTED and can else wide
    own = {name: dtype for name in ("experts", "head") if (dtype := getattr(stored, name))}
    own |= {"attention": wide} if compute != wide else {}
    each = {"weights": stored.weights, "cache": stored.cache or wide, "activations": wide}
    return each | own | {"compute": compute}


def _format(form: object) -> object:
    """Dtypes of a model as a config has them: a format, or dtypes by class of tensors."""
    if not isinstance(form, str):
        return form
    if "=" in form:
        return by_key(form, LIST_FORMATS)
    one_of(form, dtype_entries().formats, "no format", LIST_FORMATS)
    return form


def by_key(text: str, fix: str) -> dict[str, str]:
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


def dtypes_on(chip: Chip, unit: object) -> list[str]:
    """The dtype combinations that a unit of a chip computes, in the order of the catalogue."""
    peaks = chip.units.get(unit, {})  # type: ignore[call-overload]  # any text finds no peaks
    combinations = dtype_entries().combinations
    return [name for name, each in combinations.items() if each.compute in peaks]


def formats_on(chip: Chip) -> list[str]:
    """The formats that the matrix unit of a chip computes in, in the order of the catalogue."""
    peaks = chip.units.get(MATRIX, {})
    return [name for name in dtype_entries().formats if name in peaks]


def levels_of(chip: Chip) -> list[str]:
    """The memory levels of a chip that have a bandwidth."""
    return [name for name, level in chip.memory.items() if level.bytes_per_s]
