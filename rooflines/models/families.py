"""The families of config.json that are known: tables of keys, read from `families.yaml`."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

from rooflines.models import family, hybrids
from rooflines.models.family import Every, ExpertKeys, Family
from rooflines.models.keys import tables

if TYPE_CHECKING:
    from collections.abc import Mapping

RULES = {
    rule.__name__: rule
    for rule in (
        family.after_dense,
        family.between,
        family.by_sparse_step,
        family.everywhere,
        family.if_switched_on,
        family.interleaved,
        family.with_rope,
        hybrids.expert_letters,
        hybrids.hybrid_layers,
    )
}
"""Rules that say which layers have something, by name."""

MIXERS = {
    add.__name__: add
    for add in (
        hybrids.chosen_blocks,
        hybrids.chosen_tokens,
        hybrids.gate_of_each_head,
        hybrids.gated_delta,
        hybrids.kimi_delta,
        hybrids.mamba_hybrid,
        hybrids.two_attentions_of_gemma,
        hybrids.two_attentions_of_mimo,
    )
}
"""What adds other mixers to a shape, by name."""


@cache
def families() -> Mapping[str, Family]:
    """The table of every `model_type` that is known."""
    found = tables()["families"]
    return {name: _family(_whole(found, name)) for name in found}


def _whole(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The table of a family, with that of the family that it is like."""
    own = dict(found[name])
    like = own.pop("like", None)
    return own if like is None else _over(_whole(found, like), own)


def _over(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """A table with what differs: tables within it by key, ignored keys added up."""
    merged = dict(base)
    for key, value in own.items():
        before = base.get(key)
        if key == "ignore" and before:
            merged[key] = f"{before} {value}"
        elif isinstance(value, dict) and isinstance(before, dict):
            merged[key] = _over(before, value)
        else:
            merged[key] = value
    return merged


def _family(table: dict[str, Any]) -> Family:
    table["ignore"] = tuple(table.get("ignore", "").split())
    table["window"] = _rule(table.get("window"))
    table["more"] = MIXERS.get(table.get("more", ""))
    table["each"] = table.get("each") or {}
    if "types" in table:
        table["types"] = tuple(table["types"])
    experts = table.get("experts")
    if experts is not None:
        given = {key: value for key, value in experts.items() if value is not None}
        given["layers"] = _rule(given.get("layers", "everywhere"))
        table["experts"] = ExpertKeys(**given)
    return Family(**{each.name: table[each.name] for each in fields(Family) if each.name in table})


def _rule(form: Any) -> Any:  # noqa: ANN401, a name or a table in the file
    return Every(**form) if isinstance(form, dict) else RULES[form] if form else None
