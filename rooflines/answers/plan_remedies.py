"""Training plans that fit, in place of one that does not, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.text import counted, seconds, si

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Remedy(NamedTuple):
    """Plan that fits.

    Attributes:
        lever: What is changed.
        row: Its row: `COLUMNS` and `TIMES`.
    """

    lever: str
    row: Mapping[str, Any]

    @property
    def split(self) -> str:
        """Plan's name, as `--split` takes it."""
        return str(self.row["split"])

    @property
    def text(self) -> str:
        """Memory and time of a step."""
        row = self.row
        estimate = row["t_estimate_s"]
        time = seconds(row["t_serial_s"] if estimate is None else estimate)
        pace = " serialized" if estimate is None else ""
        chips = counted(row["chips"], "chip")
        return f"{chips}, {si(row['footprint_bytes'], 'B')} per chip, {time} a step{pace}"


class Remedies(NamedTuple):
    """Plans that fit in place of one that does not.

    Attributes:
        leanest: Row of the plan that needs the least memory on the given chips.
        tried: Plans tried on them [1].
        plans: Those that fit, by lever.
    """

    leanest: Mapping[str, Any]
    tried: int
    plans: Sequence[Remedy]

    def leanest_text(self) -> str:
        """Leanest plan, its bytes and where they go."""
        row = self.leanest
        states, saved = (si(row[f"{part}_bytes"], "B") for part in ("state", "saved"))
        parts = f"{states} of weights, gradients and optimizer states, {saved} of activations"
        return f"{row['split']}: {si(row['footprint_bytes'], 'B')} per chip, {parts}"
