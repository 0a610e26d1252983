"""Result files of serving benchmarks: which objects they have, and what cannot be compared."""

import json

import pytest

from rooflines.basics.errors import RooflinesError
from rooflines.fits.bench_files import read_bench

RUN = {
    "model_id": "m",
    "completed": 10,
    "total_input_tokens": 10_000,
    "total_output_tokens": 1_000,
    "max_concurrency": 4,
    "mean_ttft_ms": 120.0,
    "mean_tpot_ms": 8.0,
}
OTHER = {**RUN, "max_concurrency": 8, "mean_tpot_ms": 9.0}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([RUN, OTHER]),
        json.dumps([RUN, 7, "text", OTHER]),
        f"{json.dumps(RUN)}\n\n{json.dumps(OTHER)}\n",
        f"\ufeff{json.dumps([RUN, OTHER])}",
    ],
    ids=["list", "list with others", "lines", "byte order mark"],
)
def test_runs_are_in_a_list_or_on_lines(text):
    frame = read_bench(text, "vllm-bench")
    assert frame.select("concurrency", "tpot_s", "ttft_s").rows() == [
        (4, 0.008, 0.12),
        (8, pytest.approx(0.009, rel=1e-15), 0.12),
    ]
    assert frame.select("input_tokens", "output_tokens").unique().rows() == [(1000, 100)]


def test_one_run_is_one_row():
    assert read_bench(json.dumps(RUN), "vllm-bench").height == 1


def test_a_mean_of_less_than_half_a_token_is_a_token():
    (row,) = read_bench(json.dumps({**RUN, "total_input_tokens": 4}), "vllm-bench").to_dicts()
    assert (row["input_tokens"], row["output_tokens"]) == (1, 100)


@pytest.mark.parametrize("text", [json.dumps(RUN)[:-5], "", "no JSON", f"{json.dumps(RUN)}\n{{"])
def test_a_file_that_is_cut_off_is_none(text):
    with pytest.raises(RooflinesError):
        read_bench(text, "vllm-bench")


@pytest.mark.parametrize("text", ["[]", "7", '"text"', "[[1]]"])
def test_a_file_without_objects_has_no_result(text):
    with pytest.raises(RooflinesError, match="has no result of a benchmark"):
        read_bench(text, "vllm-bench")
