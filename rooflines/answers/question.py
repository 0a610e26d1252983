"""A question about an operation, or a model, as a sweep of one row or a few."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from rooflines.answers.lever_options import LEVER_OPTIONS, take_lever_keys
from rooflines.answers.name_search import (
    Match,
    check_chip,
    find_chip,
    find_dtypes,
    search_chip,
)
from rooflines.answers.question_sizes import HOW_MODEL, sizes_of_model, sizes_of_operation
from rooflines.answers.question_words import LIST_CHIPS, WRITTEN_OUT, Question
from rooflines.answers.word_forms import ROLE_KEYS
from rooflines.basics.errors import Mistakes, RooflinesError, at_path, check_choice, quote
from rooflines.config.model_fields import SERVING_AXES, TRAINING_AXES, ModelSweepConfig
from rooflines.fits.calibration_files import Calibrations, merge_calibrations, shipped_calibrations
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.hardware.entry_forms import validate_entry
from rooflines.hardware.support import default_route, hint_fewer_chips, need_of
from rooflines.models.architecture import TRAIN
from rooflines.models.library import find_model
from rooflines.models.model import Model
from rooflines.models.split import Split
from rooflines.models.tensor_dtypes import format_dtypes, step_dtypes, training_dtypes
from rooflines.sweep.cases import Skipped
from rooflines.sweep.checks import checked_sweep
from rooflines.sweep.operation_sweep import Sweep
from rooflines.sweep.training_sweep import sweep_of_models
from rooflines.theory.network import TORUS, parse_axes
from rooflines.theory.operation import MATRIX, parse_operation
from rooflines.theory.sharding import NAMED_SHARDINGS, SHARDS
from rooflines.training.parallel_plan import TrainingKeys, TrainingPlan

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from rooflines.basics.errors import KeyPath
    from rooflines.hardware.entries import Chip
    from rooflines.hardware.entry_forms import Entry
    from rooflines.models.engine_rules import Engine
    from rooflines.sweep.step_sweep import ModelSweep

NAME = "explain"
"""The name of the sweep of a question."""

OPERATION, FORMAT = "matmul", "bf16"
"""The operation that sizes without one are of, and the format of what is typed without dtypes."""

NO_ESTIMATE = "none"
"""Calibration of a question that asks for no estimate; null in a config."""

WEIGHTS_ALONE = ("w4a16", "w-int4-x-fp16")
"""Combinations that a message offers, whose weights alone are narrow: in bf16 and in fp16."""

COMPUTED = ("bf16", "fp16", "fp8", "mxfp8", "nvfp4")
"""Formats of weights that are computed in as they are, where the chip has a peak for it."""

SHARES = (1, 0.9)
"""The shares of peak solved for: compute-bound, and nearly so [1]."""

AS_TYPED = ("sharding", *LEVER_OPTIONS)
"""Options whose case counts: dimensions in a long form, units."""

ALL = "all"
"""Every memory level of a chip that has a bandwidth."""

UNSPLIT = (None, "none")
"""Shardings of one chip."""

LIST_DTYPES = "use a combination of the dtype catalogue, such as bf16 or w8a16"
LIST_FORMATS = (
    "name a format such as bf16, a combination such as w4a16, or write "
    "weights=fp8,cache=fp8,activations=bf16,compute=fp8"
)

ONE_FORMAT = "name a format such as bf16, or write weights=fp8,compute=fp8,activations=bf16"
"""The same in training, which has no combinations."""

PLACES = {
    "": "the question",
    "chips": "chip",
    "grid": "sizes",
    "thresholds": "operation",
    "splits": "split",
    "cache_split": "cache-split",
}
"""Config keys whose word in a question is another."""


class QuestionCatalogues(NamedTuple):
    """Chips and calibrations that a question can name.

    Attributes:
        chips: By id.
        calibrations: By chip and software; None: those of the package, which are read where a
            question names software.
        engines: Serving engines by id; None: those of the package.
    """

    chips: Mapping[str, Chip]
    calibrations: Calibrations | None = None
    engines: Mapping[str, Engine] | None = None


class HasCatalogues(Protocol):
    """A config, or anything else with chips and calibrations."""

    @property
    def chips(self) -> Mapping[str, Chip]:
        """Chips by id."""

    @property
    def calibrations(self) -> Calibrations | None:
        """Calibrations by chip and software; None: those of the package."""

    @property
    def engines(self) -> Mapping[str, Engine] | None:
        """Serving engines by id; None: those of the package."""


def catalogues_in(config: HasCatalogues | None) -> QuestionCatalogues:
    """Names that a question can use: from a config, or the package's catalogues."""
    if config is None:
        return QuestionCatalogues(chip_entries())
    return QuestionCatalogues(config.chips, config.calibrations, config.engines)


def model_question(
    chip: str,
    model: str | Model,
    sizes: Mapping[str, object],
    dtypes: object,
    catalogues: QuestionCatalogues,
) -> Question:
    """Question about a model, as a call in Python asks it.

    Args:
        chip: Its id, or a name that the command line takes.
        model: A model, its id, a published name, or the path of a config.json.
        sizes: Size by letter; None: not given.
        dtypes: A format, or dtypes by class of tensors; None: as the model is published.
        catalogues: What can be named.

    Raises:
        RooflinesError: The chip stands in the place of the model.
    """
    chips = catalogues.chips
    if isinstance(model, str) and find_chip(model, chips) and not find_chip(str(chip), chips):
        problem = f"is {quote(chip)}, and model is {quote(model)}, which is a chip"
        raise RooflinesError("chip", problem, "give the chip first, then the model", value=chip)
    return Question(
        [chip],
        model=model or str(model),
        dtypes=[] if dtypes is None else [dtypes],
        sizes={letter: size for letter, size in sizes.items() if size is not None},
    )


def question_sweep(
    question: Question, catalogues: QuestionCatalogues, **options: object
) -> Sweep | ModelSweep:
    """Sweep that answers a question, solved along every size and number of chips.

    Args:
        question: Without dtypes those that a model is published in, or bf16; notes say so.
        catalogues: What can be named.
        **options: Keys of a sweep, `network`, `memory` and `calibration`; of an operation also
            `shards`, `sharding`, `unit` and `flops`; of a model `split`, `phase`, `routing` and
            `cache_split`. None: the default.

    Raises:
        RooflinesError: Something is invalid; places are words of the question, not config keys.
    """
    keys = {
        key: value if key in AS_TYPED else _lowered(value)
        for key, value in options.items()
        if value is not None
    }
    if keys.get("calibration") in (NO_ESTIMATE, [NO_ESTIMATE]):
        keys["calibration"] = None
    if question.model is None:
        return _checked(_of_operation(question, catalogues, **keys), catalogues)
    if (targets := keys.pop("lora_on", None)) is not None:
        keys["lora"] = _adapters(keys.get("lora"), targets)
    keys, model = _of_model(question, catalogues, **keys)
    return _checked(keys, catalogues, model)


def _lowered(value: object) -> object:
    """A name, or names, in lower case, as a config has them; anything else as it is."""
    if isinstance(value, list | tuple):
        return [*map(_lowered, value)]
    return value.lower() if isinstance(value, str) else value


def _of_operation(
    question: Question,
    catalogues: QuestionCatalogues,
    *,
    shards: object = 1,
    sharding: object = None,
    **options: object,
) -> dict[str, Any]:
    """Config for a question about an operation."""
    if question.roles:
        question.dtypes = [*question.dtypes, _of_weights(question.roles)]
    if not question.dtypes:
        question.dtypes = [FORMAT]
        question.notes.append(f"dtypes default to {FORMAT}; `rooflines list dtypes`")
    with Mistakes() as mistakes:
        with mistakes.at():
            options = _on_chips(question, catalogues.chips, options)
        with mistakes.at():
            with at_path("operation"):
                op = parse_operation(str(question.operation or OPERATION))
            grid = sizes_of_operation(question.sizes or question.product, op)
        with mistakes.at("dtypes"):
            named = [_weights_alone(form, question) for form in question.dtypes]
            forms = [_dtypes(form, dtype_entries().combinations) for form in named]
        if sharding in UNSPLIT and str(shards) != "1":
            names = ", ".join(name for name in NAMED_SHARDINGS if name not in UNSPLIT)
            fix = f"choose a sharding with --sharding: {names}"
            mistakes.add(RooflinesError("shards", f"is {shards}, but no sharding is given", fix))
    return {
        "operation": op.name,
        "unit": op.unit,
        "grid": grid,
        "dtypes": forms,
        "chips": question.chips,
        "shards": [shards],
        "sharding": ["none" if sharding is None else sharding],
        "thresholds": [*op.dims, *([] if sharding in UNSPLIT else [SHARDS])],
        "shares": list(SHARES),
        **options,
    }


def _weights_alone(form: object, question: Question) -> object:
    """Combination for a format that is of weights alone, such as int4; others as they are."""
    entries = dtype_entries()
    name = find_dtypes(form) if isinstance(form, str) else None
    if name is None or name in entries.combinations or name not in entries.formats:
        return form
    combination = _of_weights({"weights": name})
    question.notes.append(f"{name} is taken as {combination}: weights {name}, activations {FORMAT}")
    return combination


def _of_weights(roles: Mapping[str, str]) -> str:
    """Combination for a matmul whose weights alone have a format: w4a16 for int4.

    Raises:
        RooflinesError: Other roles are typed, or no combination has such weights.
    """
    stored = roles.get("weights")
    for name, form in dtype_entries().combinations.items():
        if roles.keys() == {"weights"} and form.w == stored and {form.x, form.compute} == {FORMAT}:
            return name
    typed = " ".join(f"{role}={form}" for role, form in roles.items())
    raise RooflinesError("dtypes", f"are {typed}, which is of models", LIST_DTYPES)


def _of_model(
    question: Question,
    catalogues: QuestionCatalogues,
    *,
    split: object = None,
    draft: object = None,
    **options: object,
) -> tuple[dict[str, Any], Model]:
    """Config for a question about a model, and the model."""
    if question.product is not None:
        problem = f"has {quote(question.product)}, which is no size of a model"
        raise RooflinesError("the question", problem, HOW_MODEL)
    trains = options.get("phase") == TRAIN
    family = options.pop("as", None)
    with Mistakes() as mistakes:
        with mistakes.at():
            options = _on_chips(question, catalogues.chips, options)
        with mistakes.at():
            model = question.model
            if not isinstance(model, Model):
                read_as = None if family is None else str(family)
                model = find_model(str(model), question.dtypes or None, read_as)
        with mistakes.at():
            grid = sizes_of_model(question.sizes, "B" if options.get("requests") else "BS")
        with mistakes.at("dtypes"):
            formats = dtype_entries().formats | dtype_entries().combinations
            forms = [_dtypes(form, formats, of_model=True) for form in question.dtypes]
        with mistakes.at("split"):
            parts = typed_splits(split)
            if trains and not options.get("network"):
                options["network"] = _joining(question, catalogues.chips, parts)
            elif not options.get("network"):
                options |= _several_networks(question, catalogues.chips, parts)
        with mistakes.at("draft"):
            if isinstance(draft, str):
                draft = by_key(draft, "write tokens=3,accepted=1.8")
        levers: dict[str, Any] = {}
        with mistakes.at():
            levers = take_lever_keys(options, has_draft=draft is not None)
    if not forms:
        published = None if trains else model.dtypes
        default_dtypes = (
            FORMAT
            if trains
            else as_published(model, (catalogues.chips[chip] for chip in question.chips))
        )
        forms, dtypes_text = [default_dtypes], default_dtypes
        if not isinstance(default_dtypes, str):
            dtypes_text = ", ".join(
                f"{key} {form}"
                for key, form in default_dtypes.items()
                if isinstance(form, str) and key != "name"
            )
        chosen = "are {}, as the model is published" if published else "default to {}"
        if "weights" not in question.roles:
            question.notes.append(f"dtypes {chosen.format(dtypes_text)}")
    computed = _common_formats(question.chips, catalogues.chips)
    if question.roles:
        with at_path("dtypes"):
            by_class = [with_roles(form, question.roles, computed, trains=trains) for form in forms]
        forms = [*by_class]
        for named in by_class:
            text = ", ".join(f"{role} {form}" for role, form in named.items() if role != "name")
            question.notes.append(f"dtypes are {text}")
    elif not trains:
        forms = [dtypes_on_chips(form, computed) for form in forms]
    keys = {
        "models": [model.name],
        "grid": grid,
        "dtypes": forms,
        "chips": question.chips,
        "splits": parts,
        "draft": draft,
        **options,
        **levers,
        "thresholds": [
            *(TRAINING_AXES if trains else SERVING_AXES),
            *levers.get("thresholds", ()),
        ],
    }
    return keys, model


def _adapters(rank: object, targets: object) -> dict[str, object]:
    """Adapters from a rank and projections.

    Raises:
        RooflinesError: The rank is missing.
    """
    if rank is None:
        problem = f"is {quote(targets)}, but no adapters are asked for"
        raise RooflinesError("lora-on", problem, "add --lora 16, their rank, or leave it out")
    keys = dict(rank) if isinstance(rank, dict) else {"rank": rank}
    return {**keys, "on": targets}


def _common_formats(names: Iterable[str], chips: Mapping[str, Chip]) -> set[str]:
    """Formats that the matrix units of all chips compute in."""
    computed = [{*formats_on(chips[name])} for name in names]
    return set.intersection(*computed) if computed else set()


def _joining(
    question: Question, chips: Mapping[str, Chip], splits: Sequence[object]
) -> list[list[str]] | None:
    """Interconnects that join every plan's chips, for a question with one kind of chip."""
    if len(question.chips) != 1 or question.chips[0] not in chips:
        return None
    count = max(validate_entry(TrainingPlan, split).chips for split in splits)
    return [default_route(chips[question.chips[0]], count)] if count > 1 else None


def _several_networks(
    question: Question, chips: Mapping[str, Chip], splits: Sequence[object]
) -> dict[str, Any]:
    """Interconnects for a split on more chips than the first joins; a note says so."""
    named = [chips[name] for name in question.chips if name in chips]
    firsts = [next(iter(chip.networks.values()), None) for chip in named]
    if not named or any(first is None or first.topology == TORUS for first in firsts):
        return {}
    try:
        parallel = [validate_entry(Split, split) for split in splits]
    except RooflinesError:  # said later, at its place
        return {}
    widest = max(parallel, key=_joined_chips)
    count = _joined_chips(widest)
    routes = [default_route(chip, count) for chip in named]
    route = routes[0]
    if len(route) == 1 or any(chip_route != route for chip_route in routes):
        return {}
    name = f"ep{widest.ep}" if 1 < math.prod(widest.exchange_axes) == count else widest.name
    joined = f"{name} is more chips than one {route[0]} joins: the network is {','.join(route)}"
    question.notes.append(joined)
    return {"network": [route]}


def _joined_chips(split: Split) -> int:
    """Most chips of a split that a network has to join [1]."""
    return max(math.prod(group) for group in split.groups)


def _config_type(model: Model | None) -> type[Entry]:
    """Config type for a question: operation or model."""
    if model is not None:
        return ModelSweepConfig
    from rooflines.config.schema import SweepConfig  # noqa: PLC0415, loaded on use

    return SweepConfig


def _checked(
    keys: Mapping[str, Any], catalogues: QuestionCatalogues, model: Model | None = None
) -> Sweep | ModelSweep:
    """Build a config's sweep; drop the threshold along shards where it has no closed form.

    Raises:
        RooflinesError: It is invalid; places are words of the question.
    """
    try:
        config: Any = validate_entry(_config_type(model), keys)
        named, fits = config.calibration or (), catalogues.calibrations
        if fits is None:
            fits = shipped_calibrations() if named else merge_calibrations([])
        with at_path("calibration"):
            fits.check_softwares(named)
        sweep_inputs = catalogues.chips, dtype_entries(), fits
        if model is None:
            return checked_sweep(Sweep(NAME, config, *sweep_inputs, fastest_axes=True))
        sweep = sweep_of_models(NAME, config, *sweep_inputs, {model.name: model})
        return checked_sweep(replace(sweep, fastest_axes=True, engines=catalogues.engines))
    except RooflinesError as error:
        real = [mistake for mistake in error.errors if mistake.path[:1] != ("thresholds",)]
        if not real and SHARDS in keys["thresholds"]:
            dims = [axis for axis in keys["thresholds"] if axis != SHARDS]
            return _checked({**keys, "thresholds": dims}, catalogues, model)
        raise RooflinesError.combine(
            _in_words(mistake, keys, catalogues.chips) for mistake in real or error.errors
        ) from None


def _in_words(
    error: RooflinesError, keys: Mapping[str, Any], chips: Mapping[str, Chip]
) -> RooflinesError:
    """Sweep error with a question's words in place of config keys."""
    cause = error.cause
    if isinstance(cause, Skipped):
        place, problem = cause.combination, f"is not possible: {cause.reason}"
        if cause.chip is not None:
            place, problem = cause.chip, f"does not support {cause.combination}: {cause.reason}"
        fix = _fix(cause, keys, chips)
        return error.changed(place=place, problem=problem, fix=fix, typed_fix="")
    fix = error.typed_fix
    if "models" in keys and error.path[:1] == ("dtypes",) and not error.close:
        fix = ONE_FORMAT if keys.get("phase") == TRAIN else LIST_FORMATS
    return error.changed(place=_word(error.path), fix=fix, typed_fix="")


def _word(path: KeyPath) -> str:
    """Word of a question for a key path of its sweep, such as `size B` for `grid.B`."""
    head, *rest = [key for key in path if isinstance(key, str)] or [""]
    if head == "splits" and rest and rest[0] in TrainingKeys.model_fields:  # typed apart
        head, *rest = rest
    if head == "grid" and rest:
        head = "size"
    if head == "engine" and rest and rest[0] not in ("name", "version"):
        return f"--{rest[0].replace('_', '-')}"
    if rest == ["name"]:
        rest = []
    return " ".join([PLACES.get(head, head), ".".join(rest)]).strip()


def _fix(cause: Skipped, keys: Mapping[str, Any], chips: Mapping[str, Chip]) -> str:
    """Fix for a chip without the requested dtype, memory level or network."""
    chip, need = chips[cause.chip or keys["chips"][0]], need_of(cause.reason)
    if need == "memory":
        return f"choose one of its memory levels with a bandwidth: {', '.join(levels_of(chip))}"
    if need == "network":
        if "models" not in keys:
            return hint_fewer_chips(
                chip, "other numbers of chips", parse_axes(str(keys["shards"][0]))
            )
        trains = keys.get("phase") == TRAIN
        kind = TrainingPlan if trains else Split
        groups = validate_entry(kind, keys["splits"][0]).groups
        return hint_fewer_chips(chip, "fewer chips", *groups)
    return FIXES.get(need) or _other_peak(chip, keys)


FIXES = {
    None: "ask for another split, such as --split tp=8, or for none",
    "axes": "write a split that fills a slice, such as --split dp=64 --shard weights",
    "groups": "ask for a split that fills them, or for another number of chips",
    "sequences": "ask for more sequences, such as B=64, or fewer replicas",
    "multiple": "ask for a multiple of it, or for another split",
    "model": "ask for another model, or for --phase decode",
    "adapters": "name some of these with --lora-on, or leave it out",
    "lora": "leave out --lora, or ask for another model",
    "optimizer": "leave that dtype out, or write --optimizer adam",
    "host": "leave out --offload, or ask for another chip",
    "once": "write B as many, with a larger --micro-batch, or leave out --gradients freed",
}
"""Fixes for needs that no chip lacks, by need."""


def _other_peak(chip: Chip, keys: Mapping[str, Any]) -> str:
    if "models" in keys:
        formats = ", ".join(formats_on(chip))
        computed = () if keys.get("phase") == TRAIN else dtypes_on(chip, MATRIX)
        offered = next((name for name in WEIGHTS_ALONE if name in computed), None)
        narrower = f"; weights alone can be narrower: {offered}" if offered else ""
        return f"choose a format that its matrix unit computes: {formats}{narrower}"
    if has := dtypes_on(chip, keys["unit"]):
        fix = f"choose dtypes that its {keys['unit']} unit computes: {', '.join(has)}"
        wanted = {form for form in keys["dtypes"] if isinstance(form, str)}
        other_unit = next((unit for unit in chip.units if wanted & {*dtypes_on(chip, unit)}), None)
        return fix if other_unit is None else f"add --unit {other_unit}, or {fix}"
    return f"choose another chip, or one of its units: {', '.join(chip.units)}"


def resolve_chip(name: str, chips: Mapping[str, Chip]) -> Match:
    """Chip that a name means.

    Raises:
        RooflinesError: It means none, or several.
    """
    match = find_chip(str(name), chips) or search_chip(str(name), chips)
    with at_path("chip"):
        check_chip(match.name if match else str(name), chips, LIST_CHIPS)
    return match or Match(name)


def _on_chips(
    question: Question, chips: Mapping[str, Chip], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Resolve chips, networks and memory levels as a config has them.

    Raises:
        RooflinesError: A chip is missing or unknown, or the only one lacks a network.
    """
    if not question.chips or "" in question.chips:
        raise RooflinesError("chip", "is missing", LIST_CHIPS)
    for name in [*question.chips]:
        match = resolve_chip(name, chips)
        if match.name != name:
            question.chips = [match.name if chip == name else chip for chip in question.chips]
            question.notes += [match.note] if match.note else []
    keys = dict(options)
    if keys.get("memory") == ALL:
        all_levels = [level for name in question.chips for level in levels_of(chips[name])]
        keys["memory"] = list(dict.fromkeys(all_levels))
    if network := keys.get("network"):
        levels = network.split(",") if isinstance(network, str) else network
        levels = levels if isinstance(levels, list | tuple) else [levels]
        if len(question.chips) == 1:
            (name,) = question.chips
            for level in levels:
                with at_path("network"):
                    check_choice(level, chips[name].networks, f"no interconnect of {name}")
        keys["network"] = levels[0] if len(levels) == 1 else list(levels)
    return keys


# ---------------------------------------------------------------- dtypes and levels


def _dtypes(form: object, names: Collection[str], *, of_model: bool = False) -> object:
    """Dtypes as a config has them: a name, by operand, or by tensor class."""
    if not isinstance(form, str):
        return form
    if of_model and "=" in form:
        base, _, roles = form.rpartition(" ")
        typed = by_key(roles, LIST_FORMATS)
        keys = {ROLE_KEYS.get(key, key): value for key, value in typed.items()}
        if keys.keys() >= {"weights", "cache", "activations", "compute"}:
            return keys
        weights = keys.get("weights", base or FORMAT)
        return with_roles(weights, keys, names, trains=False)
    if not of_model and (match := WRITTEN_OUT.fullmatch(form)):
        return dict(zip(("x", "w", "out", "compute"), match.groups(), strict=True))
    form = find_dtypes(form) or form
    kind, fix = ("format or", LIST_FORMATS) if of_model else ("dtype", LIST_DTYPES)
    check_choice(form, names, f"no {kind} combination", fix)
    return form


def split_of(split: object) -> object:
    """A split as a config has it, of a name such as tp4-dp2, or keys such as tp=4,dp=2."""
    if not isinstance(split, str):
        return split
    keys = "=" in split
    return (
        by_key(split.lower(), "write tp8, or tp4-dp2")
        if keys
        else TrainingPlan.keys_from_name(split)
    )


def typed_splits(split: object) -> list[object]:
    """Splits as a config has them, from one or a list; None: one chip."""
    if not isinstance(split, list | tuple):
        return [split_of(split) or {}]
    return [split_of(single) or {} for single in split]


def dtypes_on_chips(form: Any, computed: Collection[str]) -> Any:  # noqa: ANN401, as a config has it
    """Dtypes of a step for a format, by the 16-bit formats that chips compute in.

    Args:
        form: A format, a combination, or dtypes by class; only a format changes.
        computed: Formats that the chips compute in.
    """
    is_format = isinstance(form, str) and form in dtype_entries().formats
    return form if not is_format or FORMAT in computed else format_dtypes(form, computed)


def with_roles(
    form: Any,  # noqa: ANN401, as a config has it
    roles: Mapping[str, str],
    computed: Collection[str],
    *,
    trains: bool,
) -> dict[str, Any]:
    """Dtypes with other formats for some classes; the rest follows as engines have it.

    Weights in a narrow format are computed in it; attention over a narrow KV cache is computed in
    the cache's format where the chips compute in it.

    Args:
        form: A format, a combination, or dtypes by class.
        roles: Formats by class.
        computed: Formats that the chips compute in.
        trains: Whether the step is of training.
    """
    form = roles.get("weights", form)
    base = training_dtypes(form) if trains else step_dtypes(dtypes_on_chips(form, computed))
    keys = base.model_dump(exclude_none=True, exclude_defaults=True) | dict(roles)
    cache = roles.get("cache")
    if cache in computed and "attention" not in roles and not trains:
        keys["attention"] = cache
    typed = {key: value for key, value in roles.items() if key != "weights"}
    name = " ".join([base.label, *(f"{KEYS_TYPED.get(key, key)}={typed[key]}" for key in typed)])
    return keys | {"name": name}


KEYS_TYPED = {"cache": "kv"}
"""Words for keys of dtypes that people type otherwise."""


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


def as_published(model: Model, chips: Iterable[Chip]) -> str | dict[str, Any]:
    """Dtypes for a step of a model as published; bf16 for all tensors where none are stated.

    Weights in integers, in a format that a chip has no peak for, or quantized without activations
    are computed in 16 bit, and so is attention; caches that are not stated have 16 bit, too.

    Args:
        model: The model.
        chips: The chips that compute.
    """
    stored = model.dtypes
    if stored is None:
        return FORMAT
    wide = stored.weights if stored.weights in COMPUTED[:2] else FORMAT
    if set(stored.storage_dtypes.values()) == {wide} and not stored.mixed:
        return wide
    can = not model.weight_only
    can = can and all(stored.weights in chip.units.get(MATRIX, {}) for chip in chips)
    compute = stored.weights if stored.weights in COMPUTED and can else wide
    apart = ("experts", "head", "lm_head", "rest")
    by_class = {name: dtype for name in apart if (dtype := getattr(stored, name))}
    by_class |= {"attention": wide} if compute != wide else {}
    by_class |= {"mixed": stored.mixed} if stored.mixed else {}
    common = {"weights": stored.weights, "cache": stored.cache or wide, "activations": wide}
    name = stored.weights if compute == stored.weights else f"{stored.weights}@{compute}"
    classes = {"experts": stored.experts, "kv": stored.cache if stored.cache != wide else None}
    typed = [f"{key}={form}" for key, form in classes.items() if form not in (None, stored.weights)]
    label = {} if stored.mixed else {"name": " ".join([name, *typed])}
    return common | by_class | {"compute": compute} | label


def dtypes_on(chip: Chip, unit: str) -> list[str]:
    """Dtype combinations that a chip's unit computes, in catalogue order."""
    peaks = {dtype for name, rates in chip.units.items() if name == unit for dtype in rates}
    combinations = dtype_entries().combinations
    return [name for name, combination in combinations.items() if combination.compute in peaks]


def formats_on(chip: Chip) -> list[str]:
    """Formats that a chip's matrix unit computes in, in catalogue order."""
    peaks = chip.units.get(MATRIX, {})
    return [name for name in dtype_entries().formats if name in peaks]


def levels_of(chip: Chip) -> list[str]:
    """Memory levels with a bandwidth."""
    return [name for name, level in chip.memory.items() if level.bytes_per_s]
