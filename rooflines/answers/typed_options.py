"""Question options: those typed as words and with dashes, as sweep keys.

Chip counts become splits, prompt and answer tokens become a request, and quantities with a unit
become numbers in SI units. The question's notes say what was assumed.
"""

from __future__ import annotations

import math
import re
from itertools import combinations_with_replacement, product
from typing import TYPE_CHECKING, Any

from rooflines.answers.question_sizes import MODEL_SIZES, values_of
from rooflines.answers.question_words import EVERY_SPLIT, FSDP
from rooflines.answers.word_forms import ACCUMULATION, ENGINES
from rooflines.basics.errors import RooflinesError, at_path, quote
from rooflines.basics.numbers import whole
from rooflines.basics.quantities import measured_value, quantity
from rooflines.models.architecture import DECODE, PREFILL, TRAIN
from rooflines.theory.network import TORUS, axes_text
from rooflines.theory.tori import parse_typed
from rooflines.training.parallel_plan import TrainingPlan, sharded_replicas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.answers.question_words import Question
    from rooflines.basics.quantities import Kind
    from rooflines.hardware.entries import Chip

QUANTITIES: Mapping[str, Kind] = {"within": "time", "tokens": "tokens", "price": "money"}
"""Kinds of options that are quantities."""

COUNTS = ("tp", "dp", "ep", "pp", "cp")
"""Keys of a split that are numbers of chips."""

MAX_AXES = 3
"""Axes of a torus that a number of chips is split over [1]."""


def typed_options(
    question: Question, chips: Mapping[str, Chip], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Options by key: those in the question's words, and those with dashes.

    Args:
        question: The question; its splits, count and request become options.
        chips: Chips by id.
        options: Those with dashes, or from a caller.

    Raises:
        RooflinesError: An option is given twice, or is no such quantity.
    """
    merged = _merged(question, options)
    for key in merged.keys() & QUANTITIES.keys():
        with at_path(f"--{key}"):
            merged[key] = quantity(merged[key], QUANTITIES[key])
    if "measured" in merged:
        with at_path("--measured"):
            merged["measured"] = measured_value(merged["measured"])
    split_names(merged)
    splits = _splits(question, merged.pop("split", None))
    if question.model is None:
        _refuse_request(question)
        if question.count is not None and not splits:
            splits = [{"tp": str(question.count)}]
        _check_one(splits)
        return merged | ({"split": splits[0]} if splits else {})
    phase = merged.get("phase", DECODE)
    if question.request:
        merged |= _request(question, phase)
    if phase == TRAIN:
        splits = _of_search(merged, splits)
    splits = _of_count(question, merged, splits)
    searches = question.count and not splits and _searches(question, merged, phase)
    if splits == [EVERY_SPLIT] or searches:
        if question.count is not None:
            merged.setdefault("chips", question.count)
        return {**merged, "split": EVERY_SPLIT}
    chip = chips.get(question.chips[0]) if len(question.chips) == 1 else None
    if question.count and not splits and phase == TRAIN:
        splits = [TrainingPlan.keys_of(FSDP)]
        question.notes.append(f"{FSDP}, where no split is typed")
    filled = [_filled(question, keys, chip, trains=phase == TRAIN) for keys in splits or [{}]]
    if splits or question.count:
        merged["split"] = filled if len(filled) > 1 else filled[0]
    return merged


def _refuse_request(question: Question) -> None:
    """Refuse tokens of a request in a question about an operation.

    Raises:
        RooflinesError: There are some.
    """
    if question.request:
        typed = " ".join(_typed(question.request))
        problem = f"has tokens of a request, {typed}, and no model is named"
        fix = "leave it out; dtypes of a matmul are written x,w->out@compute: fp8,fp8->bf16@fp8"
        raise RooflinesError("the question", problem, fix)


def _merged(question: Question, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as typed, those in words with those with dashes."""
    merged = {**options}
    for key, value in question.options.items():
        if merged.get(key, value) != value:
            twice = f"is given twice, {quote(value)} and {quote(merged[key])}"
            raise RooflinesError(key, twice, "leave out one of them")
        merged[key] = value
    if ACCUMULATION in merged:
        fix = "leave it out, or type `rooflines train`"
        raise RooflinesError(ACCUMULATION, "is of training", fix)
    return merged


ENGINE_OPTIONS = (
    *("utilization", "max_batched_tokens", "max_seqs"),
    *("engine_reserve", "peak", "prefix_caching", "full_windows", "standalone_draft"),
)
"""Options of a serving engine."""

ENGINE_VERSION = re.compile(r"\s*([^:=@\s]+)(?:[:=@\s]+([\d.]+))?\s*")
"""A serving engine as typed, perhaps with its version: vllm:0.21."""

PROMPT = "1024"
"""Tokens of a prompt that none are typed for, beside those of an answer."""

YES, NO = ("yes", "true", "on", "1", ""), ("no", "false", "off", "0")
"""Words for an option that is on, or off."""


def split_names(merged: dict[str, Any]) -> None:
    """Replace names of calibrations and engines as typed by those that a sweep has.

    Args:
        merged: Options by key, changed in place.

    Raises:
        RooflinesError: An option of an engine is given without one.
    """
    if isinstance(merged.get("calibration"), str):
        merged["calibration"] = merged["calibration"].split(",")
    merged |= _engine_keys(merged)


def _engine_keys(merged: dict[str, Any]) -> dict[str, Any]:
    """Engines of a sweep, from an engine's options, which are taken out.

    Raises:
        RooflinesError: An option is given without an engine.
    """
    options = {key: merged.pop(key) for key in ENGINE_OPTIONS if key in merged}
    named = merged.pop("engine", None)
    if named is None:
        if options:
            option = next(iter(options)).replace("_", "-")
            raise RooflinesError(f"--{option}", "is of a serving engine", "add --engine vllm")
        return {}
    for key in ("prefix_caching", "full_windows", "standalone_draft"):
        if isinstance(options.get(key), str):
            options[key] = _switch(key, options[key])
    if not isinstance(named, str):
        return {"engine": named}
    engines = []
    for text in named.split(","):
        match = ENGINE_VERSION.fullmatch(text)
        name, version = match.groups() if match else (text, None)
        name = ENGINES.get(name.lower(), "") or name
        engines.append(
            {"name": name, **({} if version is None else {"version": version}), **options}
        )
    return {"engine": engines}


def _switch(key: str, text: str) -> bool:
    """Value of an option that is on or off."""
    if text.lower() in (*YES, *NO):
        return text.lower() in YES
    option = key.replace("_", "-")
    raise RooflinesError(f"--{option}", f"is {quote(text)}", "write yes or no", value=text)


def _of_count(question: Question, options: dict[str, Any], splits: list[Any]) -> list[Any]:
    """Splits where chips are counted by an option: every split without one, else theirs alone."""
    count = str(options.get("chips", ""))
    if not count.isdigit():
        return splits
    counted = all(isinstance(keys, dict) and not keys.keys() & {*COUNTS} for keys in splits)
    if counted and (splits or "measured" in options):  # fsdp alone, or one plan to judge
        question.count = int(count)
        options.pop("chips")
        return splits
    if not splits:
        question.notes.append(f"every split of {count} chips is compared")
        return [EVERY_SPLIT]
    products = {
        math.prod(_chips(keys.get(key, 1)) or 0 for key in ("tp", "dp", "pp", "cp"))
        for keys in splits
        if isinstance(keys, dict)
    }
    if products == {int(count)} and EVERY_SPLIT not in splits:
        options.pop("chips")
    return splits


def _searches(question: Question, options: Mapping[str, Any], phase: str) -> bool:
    """Check for a question in which a number of chips asks for the best split."""
    typed = [str(size) for size in question.sizes.values()]
    if "within" in options and any("," in size or ".." in size for size in typed):
        return False
    count = question.count or 1
    if phase != TRAIN and count & (count - 1) and "measured" not in options:  # no heads for tp72
        return True
    return (phase == TRAIN and "measured" not in options) or "within" in options


def _of_search(merged: dict[str, Any], splits: list[Any]) -> list[Any]:
    """Splits, with keys of a plan beside `auto` among the options, which its search keeps.

    Raises:
        RooflinesError: A key is given twice.
    """
    keys = [keys for keys in splits if isinstance(keys, dict)]
    if EVERY_SPLIT not in splits or len(keys) != 1 or len(splits) > len(keys) + 1:
        return splits
    layout = dict[str, int]()
    for key, value in keys[0].items():
        if key in COUNTS:
            with at_path(key):
                layout[key] = whole(value)
        elif key in merged:
            raise RooflinesError(key, "is given twice, in a word and an option", "leave out one")
        else:
            merged[key] = value
    if layout:
        merged["layout"] = layout
    return [EVERY_SPLIT]


def _check_one(splits: Sequence[Any]) -> None:
    if len(splits) > 1:
        raise RooflinesError("split", f"is given {len(splits)} times", "ask for one of a matmul")


def _splits(question: Question, option: object) -> list[Any]:
    """Splits in the words, or in `--split`: keys each, or `auto`."""
    if option is None:
        return question.splits
    if question.splits:
        twice = f"is given twice, as {quote(option)} and as a word"
        raise RooflinesError("split", twice, "leave out one of them")
    if not isinstance(option, str):
        return [option]
    if option.lower() == EVERY_SPLIT:
        return [EVERY_SPLIT]
    if question.model is not None and (keys := _keyed(option)) is not None:
        return [keys]
    names = option.split(",")
    if question.model is not None and all(TrainingPlan.keys_of(name) for name in names):
        return [TrainingPlan.keys_of(name) for name in names]
    return [option]


def _keyed(option: str) -> dict[str, str] | None:
    """Split typed by key and number, tp=8,ep=8; None: it is typed otherwise."""
    pairs = [part.partition("=") for part in option.split(",")]
    keys = {key.strip().lower(): value.strip() for key, _, value in pairs}
    if len(keys) < len(pairs) or None in map(_chips, keys.values()):
        return None
    if FSDP in keys and "dp" not in keys:
        keys |= sharded_replicas(keys.pop(FSDP))
    return keys if keys.keys() <= {*COUNTS, "shard", "share_over_pods"} else None


def _request(question: Question, phase: str) -> dict[str, Any]:
    """Sweep requests from prompt and answer tokens; in a prefill its S.

    Raises:
        RooflinesError: Prompt or answer is missing, or S is given as well.
    """
    request, sizes = question.request, question.sizes
    if given := [letter for letter in sizes if letter.upper() in MODEL_SIZES[1:]]:
        problem = f"is given beside {' and '.join(_typed(request))}, which set the tokens"
        raise RooflinesError(f"size {given[0]}", problem, "leave out one of them")
    if phase in (PREFILL, TRAIN):
        if "input" in request:
            sizes["S"] = request["input"]
        if "output" in request:
            question.notes.append(f"osl={request['output']} is not of a {phase} step: left out")
        return {}
    if "output" not in request:
        raise RooflinesError("sizes", "lack osl", "add osl=1024, or the phase prefill")
    if "input" not in request:
        request["input"] = PROMPT
        question.notes.append(f"isl={PROMPT}, where none is typed")
    prompts, answers = (values_of(request[key], key) for key in ("input", "output"))
    return {
        "requests": [
            {"input": prompt, "output": answer} for prompt, answer in product(prompts, answers)
        ]
    }


def _typed(request: Mapping[str, str]) -> list[str]:
    """Request words."""
    words = {"input": "isl", "output": "osl"}
    return [f"{words[key]}={value}" for key, value in request.items()]


def _filled(question: Question, split: Any, chip: Chip | None, *, trains: bool) -> Any:  # noqa: ANN401, keys or as typed
    """Split keys with what its words leave open: axes, replicas, experts' chips."""
    if not isinstance(split, dict):
        return split
    keys = dict(split)
    if not trains:
        keys |= _product_of_axes(question, "dp", keys)
    numbers = {key: _chips(keys.get(key, 1)) for key in COUNTS}
    if None in numbers.values():
        return keys
    tp, dp, ep, pp, cp = (numbers[key] or 1 for key in COUNTS)
    if not trains and ep > 1 and tp * dp != ep and "dp" not in keys and not ep % tp:
        keys["dp"] = str(ep // tp)
        dp = ep // tp
        question.notes.append(f"ep{keys['ep']} is taken as {_name(keys)}: dp replicas of attention")
    total = tp * dp * pp * cp
    if question.count and total != question.count:
        keys |= _shared(question, keys, total, None if trains else chip, trains=trains)
    if chip is not None and not trains:
        keys |= _along_axes(question, keys, chip)
    return keys


def _shared(
    question: Question, keys: Mapping[str, Any], total: int, chip: Chip | None, *, trains: bool
) -> dict[str, str]:
    """Keys that spread a split over the chip count that was typed beside them."""
    count = question.count or 1
    network = next(iter(chip.networks.values()), None) if chip else None
    domain = network.domain if network and network.topology != TORUS else None
    if total == 1 and isinstance(domain, int) and count > domain and not count % domain:
        shared = {"tp": str(domain), "dp": str(count // domain)}
        question.notes.append(f"{count} chips share the model by {_name(shared)}")
        return shared
    if total == 1:
        key = "dp" if trains else "tp"
        note = f"{count} chips share the model by {key}{count}; `auto` tries every split"
        question.notes.append(note)
        return {key: str(count)}
    if count % total or "dp" in keys:
        problem = f"is {_name(keys)}, {total} chips, but {count} are named"
        raise RooflinesError("split", problem, "leave out the number of chips, or correct it")
    question.notes.append(f"{count} chips of {_name(keys)} are {count // total} replicas")
    return {"dp": str(count // total)}


def _name(keys: Mapping[str, Any]) -> str:
    """Split name in a note."""
    return "-".join(f"{key}{keys[key]}" for key in COUNTS if key in keys)


def _chips(value: object) -> int | None:
    """Chip count for a key; None: no such number [1]."""
    try:
        typed, pods = parse_typed(str(value))
    except ValueError:
        return None
    return math.prod(typed.chips) * pods


def _product_of_axes(question: Question, key: str, keys: Mapping[str, Any]) -> dict[str, str]:
    """Chip count for a key that has axes, where a step has none for it."""
    value = str(keys.get(key, ""))
    count = _chips(value) if "x" in value.lower() else None
    if count is None:
        return {}
    question.notes.append(f"{key}{value} is taken as {key}{count}")
    return {key: str(count)}


def _along_axes(question: Question, keys: Mapping[str, Any], chip: Chip) -> dict[str, str]:
    """Torus axes for chips that one axis is too short for."""
    network = next(iter(chip.networks.values()), None)
    if network is None or network.topology != TORUS or not isinstance(network.domain, int):
        return {}
    axes = {}
    for key in ("tp", "ep"):
        value = str(keys.get(key, ""))
        if value.isdigit() and int(value) > network.domain:
            lengths = _balanced(int(value), network.domain)
            if lengths:
                axes[key] = axes_text(lengths)
                question.notes.append(
                    f"{key}{value} is taken as {key}{axes[key]}: an axis joins "
                    f"{network.domain} chips"
                )
    return axes


def _balanced(chips: int, longest: int) -> tuple[int, ...]:
    """Nearly equal axes whose product is a chip count; empty: there are none."""
    lengths = [length for length in range(2, longest + 1) if not chips % length]
    for number in range(2, MAX_AXES + 1):
        choices = [
            axes
            for axes in combinations_with_replacement(lengths, number)
            if math.prod(axes) == chips
        ]
        if choices:
            return min(choices, key=lambda axes: axes[-1] - axes[0])
    return ()
