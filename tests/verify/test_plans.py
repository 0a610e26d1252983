"""Plans of a served model equal brute force over every split, batch and number of servers."""

import random
from typing import Any

import pytest
from brute_plans import MAX_BATCH, STAGES, BrutePlans, Limits

import rooflines
from rooflines.basics.errors import RooflinesError
from rooflines.serving import deployments, servers

QUESTIONS = 100
"""Questions about each service [1]."""

SERVICES = [
    ("llama-3.1-8b", "h100-sxm", "bf16", 512, 128, 8),
    ("llama-3.1-8b", "b200", "bf16", 8192, 64, 6),
    ("llama-3.1-70b", "h100-sxm", "fp8", 2048, 256, 8),
    ("llama-3.1-70b", "h100-sxm", "bf16", 1024, 1024, 8),
    ("llama-3.1-70b", "b200", "fp8", 8192, 1024, 6),
    ("qwen3-32b", "h100-sxm", "fp8", 8192, 256, 6),
    ("qwen3-32b", "b200", "bf16", 128, 64, 4),
    ("qwen3-30b-a3b", "h100-sxm", "bf16", 1024, 256, 4),
    ("gpt-oss-120b", "h100-sxm", "bf16", 2048, 256, 6),
    ("mixtral-8x7b", "h200-sxm", "fp8", 2048, 128, 8),
]

OPTIONS: dict[str, Any] = {
    "bound": {"bound": True},
    "serialized": {"calibration": "none"},
    "estimate": {},
}
"""Options by the basis that they decide on."""


@pytest.mark.parametrize("service", SERVICES)
def test_the_search_equals_brute_force(service, monkeypatch):
    monkeypatch.setattr(servers, "MAX_BATCH", MAX_BATCH)
    monkeypatch.setattr(deployments, "MAX_BATCH", MAX_BATCH)
    model, chip, dtypes, prompt, answer, most = service
    plans, choose = BrutePlans(*service), random.Random(f"{service}")
    found_any = 0
    for _ in range(QUESTIONS):
        limits = Limits(
            choose.choice([chips for chips in (2, 3, 4, 6, 8) if chips <= most]),
            choose.choice([*OPTIONS]),
            choose.choice([0.008, 0.015, 0.03, 0.06, 0.2]),
            choose.choice([0.02, 0.1, 0.3, 2.0]),
        )
        try:
            rows = rooflines.serve(
                model,
                chip,
                isl=prompt,
                osl=answer,
                chips=limits.chips,
                tpot_s=limits.tpot_s,
                ttft_s=limits.ttft_s,
                dtypes=dtypes,
                pp=max(STAGES),
                **OPTIONS[limits.basis],
            ).deployments.to_dicts()
        except RooflinesError:
            rows = []
        expected = plans.best(limits)
        for kind, rate in expected.items():
            rates = [row["req_per_s"] for row in rows if row["kind"] == kind]
            assert max(rates, default=0.0) == pytest.approx(rate, rel=1e-9), (limits, kind)
        if rows:
            assert {row["basis"] for row in rows} == {limits.basis}
            highest = max(expected.values()) * answer / limits.chips
            first = rows[0]["output_tokens_per_s_per_chip"]
            assert float(f"{first:.3g}") == float(f"{highest:.3g}")
            found_any += 1
    assert found_any > QUESTIONS // 4
