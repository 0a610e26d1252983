"""Plans of a served model by brute force: every split, batch and number of servers, from rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import rooflines
from rooflines.basics.errors import RooflinesError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MAX_BATCH = 400
"""Largest batch [1]."""

STAGES = (1, 2, 3, 4)
"""Numbers of pipeline stages [1]."""

DECODE_S = {
    "bound": lambda row: row["tpot_s"],
    "serialized": lambda row: row["tpot_serial_s"],
    "estimate": lambda row: row["t_estimate_s"] - row["prompts_estimate_s"],
}
"""TPOT of a server that reads no prompts, by basis [s]."""

MIXED_S = {"bound": "tpot_mixed_s", "serialized": "tpot_mixed_serial_s", "estimate": "t_estimate_s"}
"""Columns with the TPOT of a mixed server, by basis."""

SUFFIXES = {"bound": "", "serialized": "_serial", "estimate": "_estimate"}
"""Ends of columns with rates of two pools, by basis."""


@dataclass(frozen=True)
class Limits:
    """Question about a service.

    Attributes:
        chips: Given chips [1].
        basis: `bound`, `serialized` or `estimate`.
        tpot_s, ttft_s: Limits [s].
    """

    chips: int
    basis: str
    tpot_s: float
    ttft_s: float


@dataclass(frozen=True)
class BruteServer:
    """Server with its rows.

    Attributes:
        tp, dp, ep, pp: Its split [1].
        rows: Rows of requests by batch, those that fit.
        row: A row, whether it fits or not.
        prompts_per_s: Prompts a second by basis [1/s].
    """

    tp: int
    dp: int
    ep: int
    pp: int
    rows: Mapping[int, Mapping[str, Any]]
    row: Mapping[str, Any]
    prompts_per_s: Mapping[str, float]

    @property
    def chips(self) -> int:
        """Chips [1]."""
        return self.tp * self.dp * self.pp

    @property
    def fits(self) -> bool:
        """True if a sequence on each replica fits."""
        return bool(self.rows)

    def tpot(self, batch: int, basis: str, *, mixed: bool) -> float:
        """TPOT [s]."""
        row = self.rows[batch]
        return float(row[MIXED_S[basis]] if mixed else DECODE_S[basis](row))

    def best_rate(self, limits: Limits, *, mixed: bool) -> float:
        """Most requests/s over all batches that keep TPOT; 0: none does [1/s]."""
        output = self.row["output"]
        times = ((batch, self.tpot(batch, limits.basis, mixed=mixed)) for batch in self.rows)
        kept = (batch / (output * time) for batch, time in times if time <= limits.tpot_s)
        return max(kept, default=0.0)

    def is_ended_by_tpot(self, limits: Limits, *, mixed: bool) -> bool:
        """Check whether TPOT, not memory, ends its batch."""
        largest = max(self.rows, default=0)
        return self.fits and self.tpot(largest, limits.basis, mixed=mixed) > limits.tpot_s


@dataclass(frozen=True)
class BrutePlans:
    """All servers of a model on up to some chips, from tables of a config.

    Attributes:
        model, chip, dtypes: What serves.
        input, output: Tokens of a request [1].
        most: Chips at most [1].
    """

    model: str
    chip: str
    dtypes: str
    input: int
    output: int
    most: int

    @cached_property
    def servers(self) -> list[BruteServer]:
        """All servers, splits that the model does not allow left out."""
        return [*self._servers()]

    def _servers(self) -> Iterator[BruteServer]:
        model = rooflines.models.load(self.model)
        for tp, dp, pp in product(range(1, self.most + 1), range(1, self.most + 1), STAGES):
            if tp * dp * pp > self.most or (dp > 1 and model.shape.moe is None):
                continue
            chips = tp * dp
            groups = [part for part in range(2, chips + 1) if chips % part == 0]
            experts = model.shape.moe.E if model.shape.moe else 1
            uneven = tp > 1 and experts % chips
            for ep in [1] if dp == 1 else groups if uneven else [chips]:
                try:
                    yield self._server({"tp": tp, "dp": dp, "ep": ep, "pp": pp})
                except RooflinesError:
                    continue

    def _server(self, split: dict[str, int]) -> BruteServer:
        batches = [*range(split["dp"], MAX_BATCH + 1)]
        pools: Any = {"prefill": {"chip": self.chip, "split": split}}
        pools["servers"] = {"prefill": 1, "decode": 1}
        rows = self._rows(split, batches, mixed=True)
        (pool,) = self._rows(split, batches[:1], pools=pools)
        rates = {
            basis: pool[f"req_per_s{end}"] / pool[f"prefill_busy{end}"]
            for basis, end in SUFFIXES.items()
        }
        # `fits` is by the mean over replicas, `max_B` by whole sequences on each.
        fitting = {row["B"]: row for row in rows if row["fits"] and row["B"] <= row["max_B"]}
        return BruteServer(**split, rows=fitting, row=rows[0], prompts_per_s=rates)

    def _rows(
        self, split: Mapping[str, int], batches: Sequence[int], *, mixed: bool = False, **keys: Any
    ) -> list[dict[str, Any]]:
        """Rows of requests in a config."""
        request = {"input": self.input, "output": self.output, **({"mixed": True} if mixed else {})}
        sweep = {
            "models": self.model,
            "chips": self.chip,
            "dtypes": self.dtypes,
            "splits": [dict(split)],
            "grid": {"B": [*batches]},
            "requests": [request],
            "layers": False,
            "calibration": "auto",
            **keys,
        }
        config = rooflines.load_config({"model-sweeps": {"brute": sweep}})
        return rooflines.rows(config, "brute").collect().to_dicts()

    def best(self, limits: Limits) -> dict[str, float]:
        """Most requests/s by kind: `mixed` and `pools`; 0: none [1/s]."""
        servers = [*self._sized(limits)]
        mixed = [
            limits.chips // server.chips * server.best_rate(limits, mixed=True)
            for server in servers
            if server.fits
            and self._keeps_ttft(server, limits)
            and self._pays(server, limits, mixed=True)
        ]
        decode = [
            (server, server.best_rate(limits, mixed=False))
            for server in servers
            if server.fits and self._pays(server, limits, mixed=False)
        ]
        pools = [0.0]
        for first in servers:
            if not (first.fits and self._keeps_ttft(first, limits) and self._pays(first, limits)):
                continue
            for second, rate in decode:
                for decodes in range(1, (limits.chips - first.chips) // second.chips + 1):
                    left = limits.chips - decodes * second.chips
                    prompts = left // first.chips * first.prompts_per_s[limits.basis]
                    pools.append(min(prompts, decodes * rate))
        return {"mixed": max(mixed, default=0.0), "pools": max(pools)}

    def _sized(self, limits: Limits) -> Iterator[BruteServer]:
        """Yield servers on as many chips as a search tries."""
        for server in self.servers:
            size = server.tp * server.dp
            is_power = math.log2(size).is_integer()
            if server.chips <= limits.chips and (is_power or limits.chips % size == 0):
                yield server

    def _keeps_ttft(self, server: BruteServer, limits: Limits) -> bool:
        return bool(server.row["ttft_s"] <= limits.ttft_s)

    def _pays(self, server: BruteServer, limits: Limits, *, mixed: bool | None = None) -> bool:
        """Check whether memory or TTFT ends servers with fewer stages; prefill servers by both."""
        for other in self.servers:
            same = (other.tp, other.dp, other.ep) == (server.tp, server.dp, server.ep)
            if not same or other.pp >= server.pp or server.pp % other.pp:
                continue
            keeps = self._keeps_ttft(other, limits) or mixed is False
            is_enough = mixed is None or other.is_ended_by_tpot(limits, mixed=mixed)
            if other.fits and keeps and is_enough:
                return False
        return True
