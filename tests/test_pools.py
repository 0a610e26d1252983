"""Prefill on chips of its own: ratios of the book, and laws."""

import pytest

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
    equal_steps = long["prefill_servers"] * long["tpot_ops_s"] / short["tpot_ops_s"]
    assert round(1 / equal_steps) == 11
    assert long["prefill_servers"] < equal_steps  # caches of 24k tokens take longer to read


def test_prompts_and_answers_of_both_pools_balance():
    two = {"chip": "h100-no-hops", "split": {"tp": 4, "dp": 2}}
    rows = rows_of(pools={"prefill": two, "decode": EIGHT})
    prompts = rows["prefill_servers"] * 2 / rows["ttft_pool_s"]
    answers = rows["B"] / (512 * rows["tpot_ops_s"])
    assert prompts.to_list() == pytest.approx(answers.to_list(), rel=1e-12)
    dollars = rows["usd_per_mtok_input"] * 8192 / 1e6 * prompts / rows["prefill_servers"] * 3600
    hourly = rows["usd_per_mtok_ops"] * rows["tokens_per_s_ops"] * 3600 / 1e6  # also of 8 chips
    assert dollars.to_list() == pytest.approx(hourly.to_list(), rel=1e-12)


def test_without_decode_every_chip_and_split_of_the_sweep_has_a_row():
    splits = [{"tp": 8}, {"tp": 4}]
    rows = rows_of(pools={"prefill": EIGHT}, chips=["h100-no-hops", "b200"], splits=splits)
    assert rows.height == 2 * 2 * 3
    assert rows["prefill_servers"].null_count() == 0
