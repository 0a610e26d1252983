"""Prefill on chips of its own: ratios of the book, and laws."""

import random
from dataclasses import replace

import pytest
from comparison import wrong_columns
from oracle import step_table
from oracle.quantities import exact
from oracle.step_values import cache_of_one, times
from oracle.steps import Step
from random_sweeps import BITS

import rooflines

EIGHT = {"chip": "h100-no-hops", "split": {"tp": 8}}
CHIPS = {
    "h100-no-hops": {"base": "h100-sxm", "source": "a test", "networks.nvlink.hop_latency_s": 0},
    "v5e-no-hops": {"base": "tpu-v5e", "source": "a test", "networks.ici.hop_latency_s": 0},
}


def rows_of(**keys):
    sweep = {
        "models": "llama-3.1-70b",
        "grid": {"B": [32, 64, 128]},
        "dtypes": "bf16",
        "requests": [{"input": 8192, "output": 512}],
        "pools": {"prefill": EIGHT, "decode": EIGHT},
        **keys,
    }
    config = rooflines.load_config({"chips": CHIPS, "model-sweeps": {"pools": sweep}})
    return rooflines.rows(config, "pools").collect()


def test_ratios_of_the_book_for_answers_of_512_and_of_16k_tokens():
    """Llama 70B, bf16 on 16 v5e each, 40 % of the peak: 3 : 1, and 1 : 11 with equal steps."""
    sixteen = {"chip": "v5e-no-hops", "split": {"tp": "4x4"}}
    short, long = (
        rows_of(
            grid={"B": 32},
            efficiency={"math": 0.4},
            requests=[{"input": 8192, "output": output}],
            pools={"prefill": sixteen, "decode": sixteen},
        ).row(0, named=True)
        for output in (512, 16384)
    )
    assert round(short["prefill_servers"]) == 3
    equal_steps = long["prefill_servers"] * long["tpot_serial_s"] / short["tpot_serial_s"]
    assert round(1 / equal_steps) == 11
    assert long["prefill_servers"] < equal_steps  # caches of 24k tokens take longer to read


def test_a_pool_that_decodes_stands_for_the_keys_of_the_sweep():
    decode = {"chip": "h100-no-hops", "split": {"tp": 4, "dp": 2}, "network": "infiniband"}
    of_pool = rows_of(pools={"prefill": EIGHT, "decode": decode})
    beside = {"chips": decode["chip"], "splits": decode["split"], "network": decode["network"]}
    assert rows_of(pools={"prefill": EIGHT}, **beside).equals(of_pool)
    assert set(of_pool["network"]) == {"infiniband"}


def test_prompts_and_answers_of_both_pools_balance():
    two = {"chip": "h100-no-hops", "split": {"tp": 4, "dp": 2}}
    rows = rows_of(pools={"prefill": two, "decode": EIGHT})
    prompts = rows["prefill_servers"] * 2 / rows["ttft_pool_s"]
    answers = rows["B"] / (512 * rows["tpot_serial_s"])
    assert prompts.to_list() == pytest.approx(answers.to_list(), rel=1e-12)
    dollars = rows["usd_per_mtok_input"] * 8192 / 1e6 * prompts / rows["prefill_servers"] * 3600
    hourly = (
        rows["usd_per_mtok_serial"] * rows["tokens_per_s_serial"] * 3600 / 1e6
    )  # also of 8 chips
    assert dollars.to_list() == pytest.approx(hourly.to_list(), rel=1e-12)


def test_without_decode_every_chip_and_split_of_the_sweep_has_a_row():
    splits = [{"tp": 8}, {"tp": 4}]
    rows = rows_of(pools={"prefill": EIGHT}, chips=["h100-no-hops", "b200"], splits=splits)
    assert rows.height == 2 * 2 * 3
    assert rows["prefill_servers"].null_count() == 0


def server(low):
    """A chip whose every number is drawn: peaks, rates, two networks, and its price."""
    rates = [random.randrange(10**5, 10**6) for _ in range(5)]
    return {
        "source": "made up",
        "units": {"matrix": {dtype: {"flops_per_s": rates[0] * 1e8} for dtype in ("bf16", "fp8")}},
        "memory": {"hbm": {"bytes_per_s": rates[1] * 1e6, "capacity_bytes": 1e12}},
        "networks": {
            "near": {"bytes_per_s": rates[2] * 1e5, "topology": "switch", "domain": 8, "links": 3},
            "far": {
                "bytes_per_s": rates[3] * low,
                "topology": "switch",
                "domain": "unlimited",
                "links": random.randint(2, 4),
            },
        },
        "prices": [{"usd_per_hour": rates[4] / 1e5, "provider": "Nobody", "date": "2026-01-01"}],
    }


ATTENTION = [
    {"N": 16, "K": 8, "H": 24},
    {"N": 16, "K": 4, "H": 24, "v": 40},
    {"kind": "mla", "N": 16, "q_rank": 24, "kv_rank": 32, "nope": 12, "rope": 8, "v": 20},
]


@pytest.mark.parametrize("slower", ["prefill", "decode"])
@pytest.mark.parametrize("attention", ATTENTION, ids=["heads", "values", "latent"])
def test_servers_of_two_kinds_have_the_values_of_the_oracle(attention, slower):
    """Unlike in every number; the slower end of the network decides how long caches take."""
    chips = {name: server(1e1 if name == slower else 1e3) for name in ("prefill", "decode")}
    splits = {"prefill": {"tp": 2, "dp": 3}, "decode": {"tp": 4, "dp": 2}}
    model = {"name": "small", "layers": 3, "D": 100, "V": 1000, "attention": attention}
    model |= {"mlp": {"F": 300}}
    request, batch = {"input": 170, "output": 9}, 10
    asked = {"models": [model], "dtypes": [{"name": "narrow", **NARROW}, "bf16"]}
    pools = {name: {"chip": name, "split": splits[name]} for name in chips}
    sweep = {**asked, "grid": {"B": batch}, "requests": [request], "pools": pools}
    config = rooflines.load_config({"chips": chips, "model-sweeps": {"pools": sweep}})
    rows = rooflines.rows(config, "pools").collect().to_dicts()
    assert [row["dtypes"] for row in rows] == ["narrow", "bf16"]
    both = (
        step_table.cases(
            {**asked, "phase": phase, "chips": [phase], "splits": [split]}, {}, chips, BITS
        )
        for phase, split in splits.items()
    )
    for row, (_, prefill, _), (_, decode, _) in zip(rows, *both, strict=True):
        values = values_of_pools(prefill, decode, request, batch, chips, slower)
        assert wrong_columns(row, values) == []


def values_of_pools(prefill, decode, request, batch, chips, slower):  # noqa: PLR0913, PLR0917, a question
    """Prefill servers per decode server, from steps one by one."""
    prompt, answer = request["input"], request["output"]
    first_s = times(prefill, Step(prefill.dp, prompt, prompt))["t_serial_s"] / prefill.dp
    steps = [times(decode, Step(batch, 1, prompt + n + 1))["t_serial_s"] for n in range(answer)]
    servers = first_s * batch / sum(steps)
    moved = cache_of_one(replace(prefill, axes=(1,)), prompt)
    ends = {}
    for name, case in (("prefill", prefill), ("decode", decode)):
        link = chips[name]["networks"]["far"]
        ends[name] = exact(link["bytes_per_s"]) * link["links"] * case.tp
    assert min(ends, key=lambda name: ends[name]) == slower
    usd_per_s = {name: exact(chips[name]["prices"][0]["usd_per_hour"]) / 3600 for name in chips}
    of_both = decode.chips + servers * prefill.chips
    return {
        "ttft_pool_s": first_s * prefill.dp,
        "prefill_servers": servers,
        "tokens_per_s_per_chip_pools": batch * answer / sum(steps) / of_both,
        "usd_per_mtok_input": prefill.chips * usd_per_s["prefill"] * first_s / prompt * 10**6,
        "usd_per_mtok_serial": decode.chips
        * usd_per_s["decode"]
        * (sum(steps) / answer / batch)
        * 10**6,
        "kv_transfer_bytes": moved,
        "kv_transfer_s": moved / ends[slower],
    }


NARROW = {
    "weights": "fp8",
    "head": "bf16",
    "cache": "fp8",
    "activations": "bf16",
    "compute": "fp8",
    "attention": "bf16",
}
"""Dtypes by class, of tensors of a model."""


POOL_OF_ONE = {"models": ["llama-3.1-70b"], "dtypes": ["bf16"], "chips": ["h100-sxm"]}


@pytest.mark.parametrize(("tp", "pool", "chip"), [(8, {"tp": 1}, "l4"), (1, {"tp": 8}, "h100-sxm")])
def test_what_does_not_fit_in_a_pool_or_beside_it_has_no_price_and_no_energy(tp, pool, chip):
    keys = {**POOL_OF_ONE, "grid": {"B": [8]}, "requests": [{"input": 64, "output": 4}]}
    keys |= {"splits": [{"tp": tp}], "pools": {"prefill": {"chip": chip, "split": pool}}}
    config = rooflines.load_config({"model-sweeps": {"one": keys}})
    (row,) = rooflines.rows(config, "one").collect().to_dicts()
    assert row["fits"] is False
    assert row["ttft_pool_s"] > 0
    money = "usd_per_mtok", "usd_per_mtok_serial", "usd_per_mtok_input", "j_per_token"
    assert [row[name] for name in (*money, "j_per_token_serial")] == [None] * 5


def test_a_step_that_does_not_fit_has_no_price_and_no_energy():
    row = rooflines.explain_model("l4", "llama-3.1-70b", B=1, S=128, dtypes="bf16").row
    assert (row["fits"], row["usd_per_mtok"], row["j_per_token"]) == (False, None, None)


@pytest.mark.parametrize(
    ("prefill_bytes", "decode_bytes", "fits"),
    [
        (8e10, 8e10, True),
        (1.7e10, 8e10, False),  # the weights, and no room for a prompt of 8,192 tokens
        (8e10, 1e10, False),
        (None, 8e10, None),
        (None, 1e10, False),
        (1e10, None, False),
    ],
)
def test_a_row_fits_where_both_servers_have_room(prefill_bytes, decode_bytes, fits):
    """Weights of llama-3.1-8b in bf16 take 16.06 GB on each chip, a prompt 1.07 GB."""

    def chip(capacity):
        hbm = {"bytes_per_s": 3e12} | ({} if capacity is None else {"capacity_bytes": capacity})
        units = {"matrix": {"bf16": {"flops_per_s": 1e15}}}
        return {"source": "a test", "units": units, "memory": {"hbm": hbm}}

    sweep = {
        "models": "llama-3.1-8b",
        "grid": {"B": [1]},
        "dtypes": "bf16",
        "requests": [{"input": 8192, "output": 512}],
        "pools": {"prefill": {"chip": "first"}, "decode": {"chip": "second"}},
        "thresholds": [],
    }
    chips = {"first": chip(prefill_bytes), "second": chip(decode_bytes)}
    loaded = rooflines.load_config({"chips": chips, "model-sweeps": {"pools": sweep}})
    assert rooflines.rows(loaded, "pools").collect()["fits"].to_list() == [fits]


@pytest.mark.parametrize("dtypes", [["fp8", "int8"], ["int8", "fp8"]])
def test_a_pool_that_computes_no_row_is_refused_by_the_first_reason(dtypes):
    peak = {"matrix": {"bf16": {"flops_per_s": 1e14}}}
    memory = {"hbm": {"bytes_per_s": 1e12, "capacity_bytes": 1e12}}
    keys = {**POOL_OF_ONE, "dtypes": dtypes, "grid": {"B": [8]}, "splits": [{"tp": 8}]}
    keys |= {"requests": [{"input": 64, "output": 4}], "pools": {"prefill": {"chip": "own"}}}
    own = {"units": peak, "memory": memory, "source": "made up"}
    with pytest.raises(rooflines.RooflinesError) as error:
        rooflines.load_config({"chips": {"own": own}, "model-sweeps": {"one": keys}})
    assert f"pools.prefill computes nothing: asks own for {dtypes[0]}, but" in str(error.value)
