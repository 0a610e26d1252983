"""Lever options of a question as sweep keys: pull, pools, chunk, slowdown, host link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import RooflinesError, at_path, check_choice, quote
from rooflines.basics.numbers import number, whole
from rooflines.basics.quantities import quantity
from rooflines.models.architecture import DECODE, TRAIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.basics.quantities import Kind

FREE, AUTO_LINK = "free", "auto"
"""A chunk that takes no time; a host link that the chip has."""

PULL_FIX = "write 12.5GB/s, or 12.5GB/s,latency=28ms"
CHUNK_FIX = "write free, 20ms, or 20ms,after=4096"

SERVING_OPTIONS = ("pull", "pools", "chunk")
TRAINING_OPTIONS = ("host_link", "pays")
LEVER_OPTIONS = (*SERVING_OPTIONS, "slowdown", *TRAINING_OPTIONS)
"""Options about levers."""

PAYS: Mapping[str, tuple[str, ...]] = {
    "zero": ("S_zero", "batches_zero"),
    "recompute": ("micro_batch_recompute",),
}
"""Axes of thresholds by lever of a training plan."""


def asked_levers(options: Mapping[str, Any]) -> list[str]:
    """Lever options of a question, as typed."""
    names = (name for name in LEVER_OPTIONS if options.get(name) is not None)
    return [f"--{name.replace('_', '-')}" for name in names]


def take_lever_keys(options: dict[str, Any], *, has_draft: bool) -> dict[str, Any]:
    """Take lever options out of a question's options.

    Args:
        options: Options as `typed_options` has them; those of levers are taken out.
        has_draft: Whether the question has a draft, whose thresholds are solved, too.

    Returns:
        Sweep keys: `levers`, `targets`, and axes under `thresholds`; empty without levers.

    Raises:
        RooflinesError: An option is no such quantity, or is for another question.
    """
    phase, requests = options.get("phase") or DECODE, options.get("requests")
    typed = {name: options.pop(name, None) for name in LEVER_OPTIONS}
    _check_phase(typed, str(phase), has_requests=bool(requests))
    axes: list[str] = []
    keys: dict[str, Any] = {}
    levers: dict[str, Any] = {}
    if has_draft and phase == DECODE and not requests:
        axes += ["B_draft", "accepted_draft"]
    if typed["pull"] is not None:
        axes.append("S_pull")
        levers["pull"] = _link(typed["pull"])
    if typed["pools"] is not None:
        axes.append("B_pools")
        keys["targets"] = {"t_step_s": [_positive(typed["pools"], "pools", "time")]}
    if typed["chunk"] is not None:
        axes.append("chunk")
        limit, earlier = _chunk(typed["chunk"])
        levers["earlier"] = earlier
        if limit is not None:
            keys["targets"] = {"t_step_s": [limit]}
    offloaded = str(options.get("offload") or "")
    if typed["host_link"] is not None or offloaded:
        every = typed["host_link"] is not None
        axes += ["S_offload"] if every or "saved" in offloaded else []
        axes += ["X_offload"] if every or "states" in offloaded else []
        if typed["host_link"] is not None and typed["host_link"] != AUTO_LINK:
            rate = _positive(typed["host_link"], "host-link", "bandwidth")
            levers["host_bytes_per_s"] = rate
    for lever in str(typed["pays"]).split(",") if typed["pays"] is not None else ():
        with at_path("--pays"):
            check_choice(lever, PAYS, "no lever of a training plan")
        axes += [axis for axis in PAYS[lever] if axis not in axes]
    if typed["slowdown"] is not None:
        with at_path("--slowdown"):
            slowdown = number(str(typed["slowdown"]).removesuffix("x"))
            if slowdown <= 0 or not axes:
                problem = "is not above 0" if slowdown <= 0 else "is given without a lever"
                fix = "write 2" if slowdown <= 0 else "add a lever, such as --chunk free"
                raise RooflinesError("", problem, fix, value=typed["slowdown"])
        levers["slowdown"] = slowdown
    if not axes:
        return {}
    return {**keys, "thresholds": axes, **({"levers": levers} if levers else {})}


def _check_phase(typed: Mapping[str, Any], phase: str, *, has_requests: bool) -> None:
    """Refuse options of another phase, and those that need requests, or none."""
    for name, value in typed.items():
        place = f"--{name.replace('_', '-')}"
        if value is None or name == "slowdown":
            continue
        if (name in TRAINING_OPTIONS) != (phase == TRAIN):
            subject = "serving" if phase == TRAIN else "training"
            command = "explain" if phase == TRAIN else "train"
            fix = f"leave it out, or ask `rooflines {command}`"
            raise RooflinesError(place, f"is of {subject}, not of {phase}", fix)
        if phase not in (DECODE, TRAIN) and name != "pull":
            raise RooflinesError(place, f"is of decode, not of {phase}", "leave out the phase")
        if name == "pools" and not has_requests:
            fix = "add isl=8192 osl=512 in place of S"
            raise RooflinesError(place, "needs the tokens of prompt and answer", fix)
        if name == "chunk" and has_requests:
            fix = "give S in place of isl and osl"
            raise RooflinesError(place, "needs a batch and its context", fix)


def _positive(value: object, name: str, kind: Kind) -> int | float:
    """Quantity above zero."""
    with at_path(f"--{name}"):
        amount = quantity(value, kind)
        if amount <= 0:
            raise RooflinesError("", f"is {quote(value)}, not above 0", "write a number above 0")
        return amount


def _parts(text: object, key: str, fix: str) -> tuple[str, str | None]:
    """Quantity, and what follows a comma, under its key or alone."""
    head, comma, rest = (part.strip() for part in str(text).partition(","))
    if not comma:
        return head, None
    named, equals, value = (part.strip() for part in rest.partition("="))
    if equals and named != key:
        raise RooflinesError("", f"has {quote(named)}, which is no key here", fix)
    return head, value if equals else rest


def _link(value: object) -> dict[str, int | float]:
    """Link of a pulled cache: its bandwidth, and a latency behind a comma."""
    with at_path("--pull"):
        rate, latency = _parts(value, "latency", PULL_FIX)
        if latency is not None and quantity(latency, "time") < 0:
            raise RooflinesError("", f"is {quote(value)}, with a latency below 0", PULL_FIX)
    link = {"bytes_per_s": _positive(rate, "pull", "bandwidth")}
    return link if latency is None else {**link, "latency_s": quantity(latency, "time")}


def _chunk(value: object) -> tuple[int | float | None, int]:
    """Limit on the step time, none for a free chunk, and the tokens before it."""
    with at_path("--chunk"):
        limit, after = _parts(value, "after", CHUNK_FIX)
        earlier = 0 if after is None else whole(after, minimum=0)
    return None if limit == FREE else _positive(limit, "chunk", "time"), earlier
