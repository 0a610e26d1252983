"""Payoffs: the whole sizes at which a lever gains time, as ends with their side.

A gain is what a step takes without the lever, minus what it takes with it, at a whole size [s]. On
every piece between two bends it is convex, so that it changes its sign at most twice.
All gains are exact, so a lever pays at an end and does not beyond it.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.numbers import MAX_SIZE, first
from rooflines.dictionary.columns import ALWAYS, FOUND, FROM, NEVER, TO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Span = tuple[int, int]
"""First and last size of a range in which a lever pays [1]."""

LOWER_TIME, SERIAL_TIME, UPPER_TIME, ESTIMATED_TIME = (
    "t_lower_s",
    "t_serial_s",
    "t_upper_s",
    "t_estimate_s",
)
"""Times that thresholds of levers are by."""


class End(NamedTuple):
    """End of a range in which a lever pays.

    Attributes:
        outcome: `found`, `always` or `never`.
        side: `from`: the lever pays from `critical` on; `to`: up to it; None: always or never.
        critical: Last size, at the end, at which it pays; None: always or never [1].
        exact: Real size at which nothing is gained, on the line between two whole sizes [1].
    """

    outcome: str
    side: str | None = None
    critical: int | None = None
    exact: float | None = None


def ends_of(
    gain: Callable[[int], Fraction],
    low: int = 1,
    high: int = MAX_SIZE,
    bends: Iterable[int] = (),
    *,
    ties: bool = False,
) -> list[End]:
    """Ends of the ranges in which a lever pays: gain > 0.

    Args:
        gain: Time that it saves, by size.
        low: The smallest size [1].
        high: The largest size [1].
        bends: Last sizes of the pieces on which the gain is convex [1].
        ties: Whether it also pays where nothing is gained: a transfer that just hides.

    Returns:
        One end without a side for a lever that always or never pays; else ends by size.
    """
    gain = cache(gain)

    def pays(size: int) -> bool:
        return gain(size) > 0 or (ties and gain(size) == 0)

    lasts = sorted({bend for bend in bends if low <= bend < high})
    starts = [low, *(last + 1 for last in lasts)]
    pieces = zip(starts, [*lasts, high], strict=True)
    spans = [*_merged(chain.from_iterable(_spans(gain, pays, *piece) for piece in pieces))]
    if not spans:
        return [End(NEVER)]
    if spans == [(low, high)]:
        return [End(ALWAYS)]
    ends: list[End] = []
    for start, last in spans:
        if start > low:
            ends.append(End(FOUND, FROM, start, _zero(gain, start - 1)))
        if last < high:
            ends.append(End(FOUND, TO, last, _zero(gain, last)))
    return ends


def doubled_ends(pays: Callable[[int], bool], low: int, doublings: int) -> list[End]:
    """Ends where it is tried at doubled sizes whether a lever pays; no real sizes.

    Args:
        pays: Whether it does, at a size.
        low: The smallest size [1].
        doublings: Number of sizes that are tried [1].
    """
    sizes = [low << doubling for doubling in range(doublings)]
    ends: list[End] = []
    for start, last in pairwise(sizes):
        before = pays(start)

        def turns(size: int, before: bool = before) -> bool:  # noqa: FBT001, bound in the loop
            return pays(size) != before

        if turns(last):
            turned = first(turns, start, last)
            ends.append(End(FOUND, TO, turned - 1) if before else End(FOUND, FROM, turned))
    return ends or [End(ALWAYS if pays(low) else NEVER)]


def _spans(
    gain: Callable[[int], Fraction], pays: Callable[[int], bool], start: int, last: int
) -> Iterator[Span]:
    """Ranges on a piece where the gain is convex: at its start, at its end, or all of it."""
    if not pays(start) and not pays(last):
        return
    least = first(lambda size: size == last or gain(size + 1) >= gain(size), start, last)
    if pays(least):
        yield start, last
        return
    if pays(start):
        yield start, first(lambda size: not pays(size), start, least) - 1
    if pays(last):
        yield first(pays, least, last), last


def _merged(spans: Iterable[Span]) -> Iterator[Span]:
    """Ranges, with neighbours joined."""
    current: Span | None = None
    for start, last in spans:
        if current is not None and start == current[1] + 1:
            current = current[0], last
            continue
        if current is not None:
            yield current
        current = start, last
    if current is not None:
        yield current


def _zero(gain: Callable[[int], Fraction], before: int) -> float:
    """Real size between two whole ones at which a gain is zero, along a line [1]."""
    left, right = gain(before), gain(before + 1)
    return float(before + left / (left - right))


def pull_threshold(  # noqa: PLR0913, the terms of a formula
    *,
    token_s: float,
    square_s: float = 0.0,
    pull_token_s: float,
    delay_s: float = 0.0,
    weights_s: float = 0.0,
    slowdown: float = 1.0,
) -> list[End]:
    """Prefix lengths at which pulling a KV cache takes less time than computing it.

    Pulling S tokens pays where slowdown * max(token_s S + square_s S^2, weights_s) > delay_s +
    pull_token_s S. Times may be measured ones; from shapes they are 2 W / C a token, A / (2 C) a
    square, and bytes a token over the link's rate. Exact for the typed decimals.

    Args:
        token_s: Compute time per token [s].
        square_s: Compute time per squared token: attention [s].
        pull_token_s: Transfer time per token [s].
        delay_s: Transfer time of no tokens: latency, states [s].
        weights_s: Time to read the weights, which short prefixes take at least [s].
        slowdown: Real time over the compute time [1].

    Returns:
        Ends of the ranges in which pulling pays.
    """
    numbers = (token_s, square_s, pull_token_s, delay_s, weights_s, slowdown)
    token, square, pulled, delay, weights, factor = (Fraction(str(value)) for value in numbers)

    def gain(size: int) -> Fraction:
        computing = max(token * size + square * size * size, weights)
        return factor * computing - delay - pulled * size

    return ends_of(gain)


class ServerPools(NamedTuple):
    """Batches of a decode server that keep a TPOT, and what separate prefill servers gain.

    Attributes:
        mixed: Real batch whose step, with a share of its prompts, keeps the TPOT [1].
        apart: Real batch whose step keeps it, prompts on other servers [1].
        servers: Prefill servers of as many chips for each decode server [1].
        gain: Tokens/s per chip of both, over those of mixed servers [1].
    """

    mixed: Fraction
    apart: Fraction
    servers: Fraction
    gain: Fraction


def server_pools(
    step_s: Callable[[int], Fraction], prompt_s: Fraction, tpot_s: Fraction, least: int = 1
) -> ServerPools | None:
    """Batches that keep a TPOT on mixed and on separate servers; None: no batch does.

    With a step of w + k B: mixed (tpot - w) / (k + p), apart (tpot - w) / k with p B / tpot prefill
    servers each, gain tpot (k + p) / (k tpot + p (tpot - w)). Between whole batches a step is on a
    line.

    Args:
        step_s: Step time by batch, which never falls [s].
        prompt_s: p, time of a prompt over its output tokens, per sequence [s].
        tpot_s: Limit on the time per output token [s].
        least: The smallest batch [1].
    """

    def largest(sequence_s: Fraction) -> Fraction | None:
        """Largest real batch, with a further time per sequence."""

        def spare(batch: int) -> Fraction:
            return tpot_s - step_s(batch) - sequence_s * batch

        if spare(least) < 0 or spare(MAX_SIZE) >= 0:
            return None
        last = first(lambda batch: spare(batch) < 0, least, MAX_SIZE) - 1
        return last + spare(last) / (spare(last) - spare(last + 1))

    mixed, apart = largest(prompt_s), largest(Fraction(0))
    if mixed is None or apart is None:
        return None
    servers = prompt_s * apart / tpot_s
    return ServerPools(mixed, apart, servers, apart / (mixed * (1 + servers)))


def pools_threshold(
    *, weights_s: float, sequence_s: float, prompt_s: float, tpot_s: float
) -> ServerPools | None:
    """Batches and gain of separate prefill servers, from typed or measured times.

    Args:
        weights_s: w, time of a decode step without sequences [s].
        sequence_s: k, what a sequence adds to it [s].
        prompt_s: p, time of a prompt over its output tokens [s].
        tpot_s: Limit on the time per output token [s].

    Returns:
        See `ServerPools`; None where no sequence keeps the limit.
    """
    weights, sequence, prompt, tpot = (
        Fraction(str(value)) for value in (weights_s, sequence_s, prompt_s, tpot_s)
    )
    return server_pools(lambda batch: weights + sequence * batch, prompt, tpot)
