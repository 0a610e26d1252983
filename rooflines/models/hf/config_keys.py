"""Keys of a config.json: read, ignored with a note, or refused.

A key that could change a count, but that no formula uses, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import Mistakes, RooflinesError, at_path, close_to, quote
from rooflines.basics.numbers import whole
from rooflines.basics.yaml_file import read_package_yaml
from rooflines.models.matrix import MAX_MATRIX_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

VISION_REASON = "it has an encoder of images or sound, which is not modelled"
ENCODER_REASON = "it is an encoder, or an encoder with a decoder; decoder-only models are known"
"""Reasons to refuse a model."""

MAX_LAYERS = 10_000
"""Upper limit on layers, more than any model has [1]."""

OFF_VALUES: tuple[object, ...] = (None, False, 0, [], {})
"""Values that switch a feature off."""

WORD_LISTS = ("harmless", "harmless-endings", "sizing-words", "changing-words", "by-function")
"""Tables that are word lists."""

MTP_KEYS = ("num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers")
"""Keys with the number of MTP layers, which are not counted as parameters."""

NON_COUNTING = (
    "like",
    "names",
    "defaults",
    "types",
    "absent",
    "ignore",
    "mtp",
    "crossed",
    "only",
    "per_layer",
    "unmodelled",
    "parallel",
)
"""Entries in a family's table whose texts are no keys that change a count."""

FILE = Path(__file__).with_name("families.yaml")


@cache
def tables() -> Mapping[str, Any]:
    """Load tables of keys: `families`, `text-parts`, `refused`; word lists as tuples."""
    content = read_package_yaml(FILE)
    return {**content, **{name: tuple(content[name].split()) for name in WORD_LISTS}}


class Keys:
    """Reader for a config.json's keys, which also judges keys that were not read.

    Keys in a nested object are `object.key`.

    Args:
        config: The mapping.
        family: Its family, for messages.
        defaults: Defaults in the family's classes, by key.

    Attributes:
        used_defaults: Sizes taken from the defaults, by key [1].
        assumptions: Further assumptions, in words.
        unknown_keys: Unknown keys, assumed to change no count.
    """

    def __init__(
        self, config: Mapping[str, Any], family: str, defaults: Mapping[str, object] | None = None
    ) -> None:
        self.config, self.family, self.defaults = config, family, defaults or {}
        self.read_keys: set[str] = set()
        self.used_defaults: dict[str, int] = {}
        self.assumptions: list[str] = []
        self.unknown_keys: list[str] = []

    def get(self, name: str, default: object = None) -> Any:  # noqa: ANN401, any JSON value
        """Read a value; where it is absent or null, the family's default, or `default`.

        Raises:
            RooflinesError: A synonym for the key has a different value.
        """
        self._open(name)
        self.read_keys.add(name)
        value = self.config.get(name)
        for synonym in tables()["same-keys"].get(name, ()):
            if (synonym_value := self.config.get(synonym)) is not None:
                self.read_keys.add(synonym)
                if value is not None and synonym_value != value:
                    problem = f"is {quote(value)}, and {synonym} {quote(synonym_value)}"
                    raise RooflinesError(name, problem, "correct one of them")
                value = synonym_value
        if value is None:
            value = self.defaults.get(name, default)
            if type(value) is int and name in self.defaults:
                self.used_defaults[name] = value
        return value

    def _open(self, name: str) -> None:
        """Flatten the object that contains a key into `object.key` entries.

        Raises:
            RooflinesError: It is no object.
        """
        outer, dot, _ = name.partition(".")
        if not dot or (inner := self.config.get(outer)) is None:
            return
        if not isinstance(inner, Mapping):
            fix = f"add {outer}: the file may be incomplete"
            raise RooflinesError(outer, f"is {quote(inner)}, which is no object", fix, value=inner)
        outer_keys = {key: value for key, value in self.config.items() if key != outer}
        self.config = {**outer_keys, **{f"{outer}.{key}": value for key, value in inner.items()}}

    def first_set(self, *names: str) -> str:
        """Find the first key with a value; the first name if none has one."""
        return next((name for name in names if self.get(name) is not None), names[0])

    def size(self, name: str, default: int | None = None, minimum: int = 1) -> int:
        """Read a whole number.

        Raises:
            RooflinesError: It is absent without a default, differs per layer, or is no size.
        """
        value = self.get(name, default)
        if value is None:
            unknown_keys = [key for key in map(str, self.config) if key not in self.read_keys]
            fix = f"add {name}: the file may be incomplete"
            raise RooflinesError("", f"lacks {name}", fix, close=close_to(name, unknown_keys))
        with at_path(name):
            if isinstance(value, list | Mapping):
                raise RooflinesError(
                    "",
                    "differs per layer, which is not modelled",
                    "write the model out as docs/write-a-config.md says if its layers are equal",
                )
            return whole(value, minimum=minimum, maximum=MAX_MATRIX_SIZE)

    def layers(self) -> int:
        """Read the number of layers.

        Raises:
            RooflinesError: As for `size`, or it exceeds `MAX_LAYERS`.
        """
        layers = self.size("num_hidden_layers")
        if layers > MAX_LAYERS:
            problem = f"is {layers:,}, more than any model has"
            raise RooflinesError(
                "num_hidden_layers", problem, f"write a whole number up to {MAX_LAYERS:,}"
            )
        return layers

    def indices(self, name: str) -> list[int]:
        """Read distinct layer indices, from 0; empty where absent or null.

        Raises:
            RooflinesError: It is no list of layer indices.
        """
        values, layers = self.items(name), self.layers()
        with at_path(name):
            layer_indices = [whole(value, minimum=0, maximum=layers - 1) for value in values]
            if len(set(layer_indices)) < len(layer_indices):
                raise RooflinesError(
                    "", f"is {quote(values)}, with a layer twice", "name it once", value=values
                )
        return layer_indices

    def optional_size(self, name: str) -> int | None:
        """Read a whole number above zero; None where null or false, or absent without default."""
        self._open(name)
        if name in self.config and self.config[name] in (None, False):
            self.read_keys.add(name)
            return None
        return None if self.get(name) is None else self.size(name)

    def per_layer(self, name: str, allowed: Sequence[object]) -> list[Any]:
        """Read a list with one allowed value per layer; empty where absent or null.

        MTP layers may follow at its end.

        Raises:
            RooflinesError: It has a value that is not allowed, or a wrong length.
        """
        values, layers = self.items(name), self.layers()
        for index, value in enumerate(values):
            if value not in allowed or isinstance(value, bool):
                fix = f"use a model whose layers are of {', '.join(map(str, allowed))}"
                raise RooflinesError((name, index), f"is {quote(value)}", fix, value=value)
        lengths_with_mtp = {
            layers + self.config[key] for key in MTP_KEYS if type(self.config.get(key)) is int
        }
        if len(values) in lengths_with_mtp:
            return values[:layers]
        if values and len(values) != layers:
            problem = f"has {len(values)} layers, and num_hidden_layers is {layers}"
            raise RooflinesError(name, problem, "correct one of them")
        return values

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Read true or false.

        Raises:
            RooflinesError: It is neither.
        """
        value = self.get(name, default)
        if not isinstance(value, bool):
            raise RooflinesError(name, f"is {quote(value)}", "write true or false", value=value)
        return value

    def items(self, name: str) -> list[Any]:
        """Read a list; empty where absent or null.

        Raises:
            RooflinesError: It is no list.
        """
        value = self.get(name, [])
        if not isinstance(value, list):
            raise RooflinesError(
                name, f"is {quote(value)}, which is no list", "write a list", value=value
            )
        return value

    def require(self, name: str, *allowed: object) -> None:
        """Refuse a value that the family's shape does not cover.

        Args:
            name: The key.
            allowed: Allowed values, besides absent and null.

        Raises:
            RooflinesError: The value is not allowed.
        """
        value = self.get(name)
        if value is not None and (value, type(value)) not in [
            (choice, type(choice)) for choice in allowed
        ]:
            choices = " or ".join(quote(choice) for choice in allowed)
            problem = f"is {quote(value)}: counts of {self.family} are known for {choices} alone"
            raise RooflinesError(name, problem, "use a config of a model with it, or write it out")

    def check_modelled(self, reasons: Mapping[str, str]) -> None:
        """Refuse keys that switch on a feature that is not modelled.

        Args:
            reasons: Reasons, by key.

        Raises:
            RooflinesError: One of the keys is set.
        """
        for name, reason in reasons.items():
            if self.get(name) not in OFF_VALUES:
                raise RooflinesError(name, f"is set: {reason}", "remove it, or use another model")

    def set_default(self, name: str, value: object) -> None:
        """Set a key derived from further keys, where the config has no value."""
        self.config = {name: value, **self.config}

    def assume_absent(self, absent: Mapping[str, str]) -> None:
        """Record assumptions for absent keys, for the model's note."""
        self.assumptions += [
            f"{name} is absent: {text}" for name, text in absent.items() if self.get(name) is None
        ]

    def ignore(self, *names: str) -> None:
        """Mark keys that change no count in this family as read."""
        self.read_keys.update(names)

    def check(self, *, forced: bool = False) -> None:
        """Record keys that were not read, for the note; refuse keys that could change a count.

        A value that switches off, or is zero, changes none. Otherwise a key that changes a count
        in some family is refused, as is a size by its name or value.

        Args:
            forced: Whether to refuse none.

        Raises:
            RooflinesError: Such keys exist; each is a mistake.
        """
        fix = (
            f"remove it if it changes neither weights nor cache, read the file with --as "
            f"{self.family}, or write the model out as docs/write-a-config.md says"
        )
        with Mistakes() as mistakes:
            for key, value in map(_text_item, self.config.items()):
                parent, _, last = key.rpartition(".")
                if key in self.read_keys or _is_harmless(last, value):
                    continue
                if forced or not (last in counting_keys() or _is_sizing(last, value)):
                    self.unknown_keys.append(key)
                    continue
                siblings = (
                    name.rpartition(".") for name in {*self.read_keys, *tables()["harmless"]}
                )
                close = close_to(last, [name for place, _, name in siblings if place == parent])
                with mistakes.at(key):
                    problem = f"is a key that configs of {self.family} are not known to have"
                    raise RooflinesError(
                        "", f"{problem}, and could change a count", fix, close=close
                    )


def _text_item(item: tuple[object, Any]) -> tuple[str, Any]:
    return str(item[0]), item[1]


def _is_harmless(name: str, value: object) -> bool:
    """Check for a key that changes no count in any family, or is switched off."""
    endings = tables()["harmless-endings"]
    return (
        name in tables()["harmless"] or name.endswith(endings) or value in OFF_VALUES or value == ""
    )


def _is_sizing(name: str, value: object) -> bool:
    """Check for a key that is a size: by whole numbers, or by its name."""
    if isinstance(value, Mapping):
        entries = map(_text_item, value.items())
        return any(not _is_harmless(key, item) and _is_sizing(key, item) for key, item in entries)
    if isinstance(value, list):
        return any(_is_sizing(name, item) for item in value if item not in OFF_VALUES)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return not {*name.split("_")}.isdisjoint(tables()["changing-words"])
    return isinstance(value, int) or not {*name.split("_")}.isdisjoint(tables()["sizing-words"])


@cache
def counting_keys() -> frozenset[str]:
    """Keys that change a count in some family."""
    content = tables()
    words = {*content["by-function"]}
    for table in (*content["bases"].values(), *content["families"].values()):
        parts = {key: part for key, part in table.items() if key not in NON_COUNTING}
        words |= {word.rpartition(".")[2] for word in _texts(parts)}
        words |= {*table.get("only", {}), *(table.get("per_layer") or {})}
    return frozenset(word for word in words if word not in content["harmless"])


def _texts(value: object) -> Iterator[str]:
    """Find all texts in a table, which are config keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)
