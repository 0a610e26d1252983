"""Requests on mixed servers, with drafts and cached prefixes, and on given servers in two pools."""

from typing import Any

import pytest
from command_line import table

import rooflines
from rooflines.basics.errors import RooflinesError
from rooflines.theory.attention_window import AttentionWindow


def rows(request, model="llama-3.1-70b", split="tp8", sizes: Any = 64, dtypes="bf16", **keys):
    """Rows of a request in a config."""
    sweep = {
        "models": model,
        "grid": {"B": sizes},
        "requests": [request],
        "dtypes": dtypes,
        "chips": "h100-sxm",
        "splits": [split],
        "layers": False,
        **keys,
    }
    config = rooflines.load_config({"model-sweeps": {"one": sweep}})
    return rooflines.rows(config, "one").collect().to_dicts()


def row(request, **keys):
    """Its row at one batch."""
    (one,) = rows(request, **keys)
    return one


def milliseconds(seconds):
    return float(f"{seconds * 1e3:.6g}")


LONG = {"input": 8192, "output": 1024, "mixed": True}
DRAFT = {"tokens": 3, "accepted": 1.8}


def test_a_mixed_server_reads_prompts_between_tokens():
    one = row(LONG)
    assert milliseconds(one["tpot_mixed_s"]) == 12.0044
    assert milliseconds(one["tpot_mixed_serial_s"]) == 23.7891
    plain = row({key: LONG[key] for key in ("input", "output")})
    assert "tpot_mixed_s" not in plain
    assert all(one[name] == value for name, value in plain.items())


@pytest.mark.parametrize(
    ("split", "bound", "serialized", "prompts"),
    [
        (
            "tp8-pp2",
            {1: 5.29596, 64: 8.67395, 235: 19.9752},
            {64: 14.5678, 101: 19.9459},
            [76.4358, 186.807],
        ),
        (
            "tp8-pp4",
            {1: 5.30144, 64: 7.12635, 469: 19.995},
            {64: 10.0762, 200: 19.9665},
            [38.2248, 187.484],
        ),
    ],
)
def test_a_mixed_server_with_pipeline_stages(split, bound, serialized, prompts):
    """Stages read their layers' part of the prompts that come with a micro-batch."""
    sizes, network = sorted({*bound, *serialized}), [["nvlink", "infiniband"]]
    found = {one["B"]: one for one in rows(LONG, split=split, sizes=sizes, network=network)}
    for batch, expected in bound.items():
        assert milliseconds(found[batch]["tpot_mixed_s"]) == expected
    for batch, expected in serialized.items():
        assert milliseconds(found[batch]["tpot_mixed_serial_s"]) == expected
    first = found[64]
    assert [milliseconds(first[name]) for name in ("ttft_s", "ttft_serial_s")] == prompts
    assert all(one["tpot_mixed_s"] <= one["tpot_mixed_serial_s"] for one in found.values())


WIDE = {"weights": "fp8", "experts": "fp8", "head": "fp8", "cache": "fp8", "compute": "fp8"}
WIDE |= {"activations": "bf16", "combine": "bf16", "attention": "bf16"}
NARROW = {**WIDE, **dict.fromkeys(("weights", "experts", "head", "compute"), "nvfp4")}
ACROSS_NODES = ["nvlink", "infiniband"]


@pytest.mark.parametrize(
    ("chip", "replicas", "dtypes", "expected"),
    [
        ("h200-sxm", 32, WIDE, [14.8715, 11.5399, 25.8537]),
        ("h200-sxm", 64, WIDE, [19.7229, 19.7229, 34.0368]),
        ("gb200", 64, NARROW, [4.94652, 1.78704, 7.41862]),
    ],
)
def test_deepseek_v3_decodes_with_experts_over_all_chips(chip, replicas, dtypes, expected):
    """Across nodes the network binds 64 H200; GB200 in one NVLink domain are compute-bound."""
    network = ["nvlink"] if chip == "gb200" else ACROSS_NODES
    keys = {"model": "deepseek-v3", "chips": chip, "split": f"tp1-dp{replicas}-ep{replicas}"}
    keys |= {"sizes": 128 * replicas, "network": [network], "dtypes": [dtypes]}
    one = row({"input": 4096, "output": 1024}, **keys)
    names = ("tpot_s", "t_network_s", "tpot_serial_s")
    assert [milliseconds(one[name]) for name in names] == expected


def test_gpt_oss_120b_reads_prompts_on_two_h100():
    """Routers are whole on each chip."""
    keys = {"model": "gpt-oss-120b", "split": "tp2", "sizes": 16}
    one = row({"input": 1024, "output": 256, "mixed": True}, **keys)
    assert [milliseconds(one[f"tpot_mixed{end}_s"]) for end in ("", "_serial")] == [
        14.2119,
        16.4843,
    ]


def test_stages_never_yield_more_than_as_many_servers_without():
    """Law: TPOT of pp stages with pp b sequences is at least that of one server with b."""
    columns = ("tpot_s", "tpot_serial_s", "tpot_mixed_s", "tpot_mixed_serial_s", "t_estimate_s")
    keys = {"sizes": [1, 5, 16, 48], "network": [ACROSS_NODES], "calibration": ["vllm"]}
    alone = {one["B"]: one for one in rows(LONG, split="tp8", **keys)}
    for stages in (2, 3, 8):
        sizes = [1, *(batch * stages for batch in alone)]
        staged = rows(LONG, split=f"tp8-pp{stages}", **{**keys, "sizes": sorted({*sizes})})
        for one in staged:
            batch, rest = divmod(one["B"], stages)
            for column in () if rest or batch not in alone else columns:
                assert one[column] >= alone[batch][column] * (1 - 1e-12)
            if one["B"] == 1:  # one token passes all stages in turn
                hop_s = 8192 * 2 / 8 / 5e10 + 2.7e-6
                hops = one["tpot_serial_s"] - alone[1]["tpot_serial_s"]
                assert hops == pytest.approx((stages - 1) * hop_s)


def test_a_cached_prefix_is_attended_to_and_not_computed():
    one = row({**LONG, "cached": 0.5}, sizes=139)
    assert milliseconds(one["ttft_s"]) == 79.2125
    assert milliseconds(one["tpot_mixed_s"]) == 19.9939
    assert one["footprint_bytes"] == row(LONG, sizes=139)["footprint_bytes"]


def test_a_draft_in_requests():
    one = row({**LONG, "draft": DRAFT})
    names = ("tpot_s", "tpot_serial_s", "tpot_mixed_s")
    assert [milliseconds(one[name]) for name in names] == [4.28589, 4.76375, 11.4241]
    assert float(f"{one['tokens_per_s_per_chip']:.6g}") == 1866.59
    assert one["ttft_s"] == row(LONG)["ttft_s"]  # prompts score their last token alone


def test_a_question_has_the_time_per_token_of_a_draft(capsys):
    words = ("explain", "h100-sxm", "llama-3.1-70b", "B=64", "isl=8192", "osl=1024", "bf16", "tp8")
    typed = (*words, "--draft", "tokens=3,accepted=1.8", "--calibration", "none")
    (one,) = table(capsys, *typed)
    assert milliseconds(float(one["tpot_basis_s"])) == 4.76375
    assert float(one["tpot_basis_s"]) == float(one["tpot_serial_s"])


@pytest.mark.parametrize("model", ["gemma-3-27b", "deepseek-v3"])
def test_a_draft_in_requests_is_the_mean_of_its_steps(model):
    """Windows fill up within the answer, and an MTP layer drafts."""
    request, keys = {"input": 1020, "output": 8}, {"model": model, "split": "tp8", "sizes": 16}
    one = row({**request, "draft": DRAFT}, **keys)
    sweep = {
        "models": model,
        "grid": {"B": 16, "S": [*range(1024, 1032)]},
        "draft": DRAFT,
        "dtypes": "bf16",
        "chips": "h100-sxm",
        "splits": ["tp8"],
        "layers": False,
    }
    config = rooflines.load_config({"model-sweeps": {"one": sweep}})
    steps = rooflines.rows(config, "one").collect()
    for name in ("t_lower_s", "t_serial_s", "t_memory_s", "flops"):
        assert one[name] == pytest.approx(steps[name].mean(), rel=1e-12)


def test_counts_of_several_tokens_are_lines():
    for size, new in ((None, 3), (1, 2), (4, 3), (4, 7)):
        window = AttentionWindow(size)
        for amount in (window.pairs, window.entries, window.drafts):
            lines = [*window.lines_of(amount, new)]
            assert sum(line.sum_over(new, 20) for line in lines) == sum(
                amount(context, new) for context in range(new, 21)
            )


def test_one_prompt_takes_one_replica():
    """Experts have the tokens of one prompt; without them a replica takes as long as all."""
    request = {"input": 512, "output": 64}
    one, wide = (
        row(request, model="qwen3-30b-a3b", split=split, sizes=8) for split in ("tp1", "dp8-ep8")
    )
    assert wide["ttft_s"] < one["ttft_s"]
    config = {"grid": {"B": 8, "S": 512}, "phase": "prefill", "requests": None}
    together = row(request, model="qwen3-30b-a3b", split="dp8-ep8", **config)
    assert wide["ttft_s"] < together["t_lower_s"]


def test_servers_in_two_pools_have_rates():
    """Prefill limits 1 + 1 servers; with two for prefill, decode does."""
    pools = {"prefill": {"chip": "h100-sxm", "split": {"tp": 8}}}
    request = {"input": 8192, "output": 1024}
    few, many = (
        row(request, sizes=100, pools={**pools, "servers": {"prefill": count, "decode": 1}})
        for count in (1, 2)
    )
    assert float(f"{few['req_per_s_serial']:.6g}") == 5.36282
    assert few["prefill_busy_serial"] == pytest.approx(1)
    assert many["req_per_s_serial"] == pytest.approx(100 / (1024 * many["tpot_serial_s"]))
    assert many["prefill_busy_serial"] == pytest.approx(many["req_per_s_serial"] / (2 * 5.36282))
    rate = many["req_per_s_serial"] * 1024 / 24
    assert many["output_tokens_per_s_per_chip_serial"] == pytest.approx(rate)
    assert few["req_per_s"] >= few["req_per_s_serial"]


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"cached": 1}, "its last token is always computed"),
        ({"cached": 50}, "write 50%"),
        ({"cached": -0.1}, "less than no token"),
        ({"draft": {"tokens": 3}}, "accepted"),
        ({"draft": {"tokens": 3, "accepted": 4}}, "more than the 3 tokens proposed"),
    ],
)
def test_wrong_parts_of_requests_are_refused(keys, problem):
    with pytest.raises(RooflinesError, match=problem):
        row({**LONG, **keys})
    assert row({**LONG, "cached": "50%"}) == row({**LONG, "cached": 0.5})


def test_a_draft_of_some_requests_alone_is_refused():
    requests = [{**LONG, "draft": DRAFT}, LONG]
    with pytest.raises(RooflinesError, match="have different drafts"):
        row(LONG, requests=requests)
    with pytest.raises(RooflinesError, match="attends in chunks"):
        row({**LONG, "draft": DRAFT}, model="llama-4-scout")
