"""Plans of a served model: worked values, laws, the search against brute force, wrong questions."""

import json
import math
import re
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import pytest
from brute_plans import MAX_BATCH, BrutePlans
from brute_plans import Limits as Question
from command_line import refused, said, table

import rooflines
from rooflines.answers.question import QuestionCatalogues, model_question, question_sweep
from rooflines.hardware.chip_catalogue import chip_entries, resolve_chips
from rooflines.models.split import Split
from rooflines.serving import deployments as serving_deployments
from rooflines.serving import servers as serving_servers
from rooflines.serving.deployments import (
    MIXED,
    POOLS,
    Limits,
    Search,
    handover,
    is_tie,
)
from rooflines.serving.front import front
from rooflines.serving.servers import ESTIMATE_KEY, LOWER_KEY, SERIAL_KEY, ServerTable
from rooflines.sweep.prompt_times import longest_step

ROOMY = {"base": "h100-sxm", "memory.hbm.capacity_bytes": 1e13}
"""An H100 whose memory ends no batch."""

LINEAR_FLOPS = 2 * (70_553_706_496 - 2 * 128_256 * 8192) * (8192 + 1024)
"""FLOPs of linear weights in the layers of Llama 3.1 70B, for a request's tokens [FLOP]."""

LINEAR_BYTES = 2 * (70_553_706_496 - 2 * 128_256 * 8192)
"""Bytes of the same weights in bf16, which every step reads [byte]."""

FP8 = tuple(
    {
        "weights": "fp8",
        "head": "fp8",
        "cache": "fp8",
        "activations": "bf16",
        "compute": "fp8",
        "attention": "bf16",
    }.items()
)


@cache
def servers(  # noqa: PLR0913, PLR0917, the parts of a question
    chip="h100-sxm",
    model="llama-3.1-70b",
    dtypes="bf16",
    lengths=(8192, 1024),
    chips=16,
    stages=2,
):
    """Servers of a question; `roomy` is an H100 whose memory ends no batch."""
    catalogues = QuestionCatalogues(
        chip_entries() | resolve_chips({"roomy": ROOMY}, chip_entries())
    )
    formats = dtypes if isinstance(dtypes, str) else dict(dtypes)
    question = model_question(chip, model, {"B": 1}, formats, catalogues)
    request = {"input": lengths[0], "output": lengths[1]}
    sweep: Any = question_sweep(question, catalogues, requests=[request])
    return ServerTable(sweep, chips, max_stages=stages)


def milliseconds(seconds):
    return float(f"{seconds * 1e3:.6g}")


def tpot(server, basis, batch, *, mixed, table=None):
    (table or servers()).evaluate({server.name: {batch}})
    return server.tpot(basis, batch, mixed=mixed)


@pytest.mark.parametrize(
    ("basis", "mixed", "batch", "expected"),
    [
        (LOWER_KEY, True, 1, 5.29322),
        (LOWER_KEY, True, 64, 12.0044),
        (LOWER_KEY, True, 117, 19.8591),
        (LOWER_KEY, True, 176, 29.8735),
        (LOWER_KEY, False, 139, 19.9803),
        (LOWER_KEY, False, 233, 29.9846),
        (SERIAL_KEY, True, 1, 5.47736),
        (SERIAL_KEY, True, 64, 23.7891),
        (SERIAL_KEY, True, 50, 19.7198),
        (SERIAL_KEY, False, 134, 19.9576),
    ],
)
def test_tpot_of_llama_70b_on_8_h100(basis, mixed, batch, expected):
    server = servers().servers["tp8"]
    assert milliseconds(tpot(server, basis, batch, mixed=mixed)) == expected


@pytest.mark.parametrize(
    ("basis", "limit", "mixed", "batch", "per_chip"),
    [
        (LOWER_KEY, 0.02, True, 117, 736.438),
        (LOWER_KEY, 0.03, True, 176, 736.438),
        (LOWER_KEY, 0.02, False, 139, 869.607),
        (LOWER_KEY, 0.03, False, 233, 971.332),
        (SERIAL_KEY, 0.02, True, 50, 316.940),
        (SERIAL_KEY, 0.02, False, 134, 839.280),
    ],
)
def test_the_largest_batch_that_keeps_tpot(basis, limit, mixed, batch, per_chip):
    roomy = servers("roomy")
    found = roomy.largest_batches(basis, limit, mixed=mixed, names=["tp8"])
    assert found == {"tp8": batch}
    server = roomy.servers["tp8"]
    time = tpot(server, basis, batch, mixed=mixed, table=roomy)
    assert float(f"{batch / time / 8:.6g}") == per_chip
    assert time <= limit < tpot(server, basis, batch + 1, mixed=mixed, table=roomy)


def test_prompts_of_llama_70b_on_8_h100():
    server = servers().servers["tp8"]
    assert [milliseconds(server.ttft(basis)) for basis in (LOWER_KEY, SERIAL_KEY)] == [
        152.866,
        186.469,
    ]
    rates = [server.prompts_per_s(basis) for basis in (LOWER_KEY, SERIAL_KEY)]
    assert [float(f"{rate:.6g}") for rate in rates] == [6.54168, 5.36282]


def test_serialized_values_of_a_second_model():
    other = servers("b200", "qwen3-32b", FP8, (1024, 1024), 1)
    server = other.servers["tp1"]
    times = [tpot(server, basis, 32, mixed=True, table=other) for basis in (LOWER_KEY, SERIAL_KEY)]
    assert [*map(milliseconds, times)] == [4.9912, 5.51096]
    assert [milliseconds(server.ttft(basis)) for basis in (LOWER_KEY, SERIAL_KEY)] == [
        14.6915,
        14.7936,
    ]


@pytest.mark.parametrize(
    ("basis", "batch", "expected", "per_chip"),
    [(SERIAL_KEY, 70.535, 12.8444, 343.220), (LOWER_KEY, 121.031, 18.0679, 418.667)],
)
def test_two_pools_that_prefill_limits(basis, batch, expected, per_chip):
    search = Search(servers(), basis, 16, Limits(0.02))
    server = servers().servers["tp8"]
    pools = search.pool(server, server, 1, 1)
    assert pools.limit == "prefill"
    assert pools.prefill_busy == pytest.approx(1)
    assert float(f"{pools.batch:.6g}") == pytest.approx(batch, abs=0.0005)
    assert milliseconds(pools.tpot_s) == expected
    assert float(f"{pools.output_per_chip:.6g}") == per_chip


def best(search):
    return max(search.deployments(), key=lambda one: float(f"{one.output_per_chip:.3g}"))


@pytest.mark.parametrize(
    ("basis", "name", "batch", "expected", "req_per_s"),
    [
        (LOWER_KEY, "2 x tp8", 117, 19.8591, 11.5068),
        (SERIAL_KEY, "4P tp2 + 1D tp8", 132.400, 19.7764, 6.53791),
    ],
)
def test_the_best_of_16_chips_within_20_ms(basis, name, batch, expected, req_per_s):
    found = best(Search(servers(), basis, 16, Limits(0.02, 2.0)))
    assert found.name == name
    assert found.batch == pytest.approx(batch, abs=0.0005)
    assert milliseconds(found.tpot_s) == expected
    assert float(f"{found.req_per_s:.6g}") == req_per_s


@pytest.mark.parametrize(
    ("basis", "load", "users", "chips", "name"),
    [
        (LOWER_KEY, 50, None, 72, "9 x tp8"),
        (LOWER_KEY, None, 2000, 136, "17 x tp8"),
        (SERIAL_KEY, 50, None, 126, "31P tp2 + 8D tp8"),
    ],
)
def test_chips_for_a_load(basis, load, users, chips, name):
    search = Search(servers(), basis, 16, Limits(0.02, 2.0))
    needed = search.needed((MIXED, POOLS), load=load, users=users)[0]
    assert (needed.chips, needed.name) == (chips, name)


def test_a_cache_is_handed_over():
    search = Search(servers(), LOWER_KEY, 16, Limits(0.02))
    server = servers().servers["tp8"]
    sent: Any = handover(search, search.pool(server, server, 1, 1))
    assert (sent.cache_bytes, float(f"{sent.time_s:.6g}")) == (2_684_354_560, 0.00671089)


# ---------------------------------------------------------------- laws


def test_decode_alone_and_estimates_are_rows_of_requests(capsys):
    words = ("explain", "h100-sxm", "llama-3.1-70b", "bf16", "B=64", "isl=8192", "osl=1024", "tp8")
    (row,) = json.loads(said(capsys, *words, "--json"))["rows"]
    server = servers().servers["tp8"]
    assert tpot(server, LOWER_KEY, 64, mixed=False) == row["tpot_s"]
    assert tpot(server, SERIAL_KEY, 64, mixed=False) == row["tpot_serial_s"]
    assert tpot(server, ESTIMATE_KEY, 64, mixed=True) == pytest.approx(
        row["t_estimate_s"], rel=1e-15
    )
    assert server.ttft(LOWER_KEY) == row["ttft_s"]
    assert server.max_batch == row["max_B"]


@pytest.mark.parametrize("basis", [LOWER_KEY, SERIAL_KEY, ESTIMATE_KEY])
def test_the_search_equals_brute_force(basis):
    small = servers("h100-sxm", "llama-3.1-8b", "bf16", (512, 128), 4)
    limits = Limits(0.006, 0.05)
    small.evaluate({name: range(1, 513) for name in small.servers})
    search = Search(small, basis, 4, limits)
    rates = []

    def largest(server, *, mixed):
        kept = [
            batch
            for batch in range(1, 513)
            if server.tpot(basis, batch, mixed=mixed) <= limits.tpot_s
        ]
        rate = [batch / (server.output * server.tpot(basis, batch, mixed=mixed)) for batch in kept]
        return max(rate, default=0.0)

    usable = [s for s in small.servers.values() if s.ttft(LOWER_KEY) <= limits.ttft_s]
    rates += [4 // server.chips * largest(server, mixed=True) for server in usable]
    for first, second in product(usable, small.servers.values()):
        for count, decodes in product(range(1, 5), repeat=2):
            if count * first.chips + decodes * second.chips <= 4:
                prompts = count * first.prompts_per_s(basis)
                rates.append(min(prompts, decodes * largest(second, mixed=False)))
    assert max(one.batch for one in search.mixed()) < 512
    found = max(one.req_per_s for one in search.deployments())
    assert found == pytest.approx(max(rates), rel=1e-9)


def test_small_questions_equal_brute_force_over_rows_of_requests(monkeypatch):
    """Servers with two shards or stages, and two pools; the long tests have 1,000 questions."""
    for module in (serving_servers, serving_deployments):
        monkeypatch.setattr(module, "MAX_BATCH", MAX_BATCH)
    plans = BrutePlans("llama-3.1-70b", "h100-sxm", "fp8", 2048, 256, 2)
    shared, names = servers("h100-sxm", "llama-3.1-70b", "fp8", (2048, 256), 2), set[str]()
    latencies = [*product((0.015, 0.03, 0.06), (0.1, 2.0)), (0.2, 2.0)]
    for (tpot_s, ttft_s), basis in product(latencies, (LOWER_KEY, SERIAL_KEY, ESTIMATE_KEY)):
        found = Search(shared, basis, 2, Limits(tpot_s, ttft_s)).deployments()
        expected = plans.best(Question(2, basis, tpot_s, ttft_s))
        for kind, rate in expected.items():
            rates = [one.req_per_s for one in found if one.kind == kind]
            assert max(rates, default=0.0) == pytest.approx(rate, rel=1e-9)
        names |= {one.name for one in found}
    assert {"1 x tp2", "2 x tp1", "1P tp1 + 1D tp1"} <= names


@pytest.mark.parametrize("basis", [LOWER_KEY, SERIAL_KEY, ESTIMATE_KEY])
def test_deployments_keep_what_is_asked(basis):
    limits = Limits(0.03, 0.5)
    capacity = chip_entries()["h100-sxm"].memory["hbm"].capacity_bytes or 0
    found = Search(servers(), basis, 16, limits).deployments()
    assert {one.kind for one in found} == {MIXED, POOLS}
    for one in found:
        assert one.tpot_s <= limits.tpot_s
        assert one.ttft_lower_s <= limits.ttft_s
        assert one.tpot_lower_s <= one.tpot_s * (1 + 1e-12)
        assert one.req_per_s <= one.req_per_s_bound * (1 + 1e-12)
        assert one.chips_used <= one.chips
        assert one.memory_bytes <= capacity
        assert one.req_per_s * LINEAR_FLOPS <= one.chips * 989.4e12
        steps_per_s = one.req_per_s * 1024 / (one.servers * one.batch)
        assert steps_per_s * LINEAR_BYTES <= one.decode.chips * 3.36e12
        in_flight = one.req_per_s * (one.ttft_s + 1024 * one.tpot_s)
        assert one.concurrency == pytest.approx(in_flight)


def test_more_time_and_more_chips_never_lower_the_rate():
    for basis in (LOWER_KEY, SERIAL_KEY):
        rates = [
            max(one.req_per_s for one in Search(servers(), basis, 16, Limits(limit)).deployments())
            for limit in (0.015, 0.02, 0.05, math.inf)
        ]
        assert rates == pytest.approx(sorted(rates))
        half = servers("h100-sxm", chips=8)
        by_chips = [
            max(one.req_per_s for one in Search(known, basis, chips, Limits(0.03)).deployments())
            for known, chips in ((half, 8), (servers(), 16))
        ]
        assert by_chips[1] >= 2 * by_chips[0] * (1 - 1e-12)


def test_pools_never_beat_mixed_servers_by_the_bound():
    search = Search(servers(), LOWER_KEY, 16, Limits())
    for name in ("tp4", "tp8"):
        server = servers().servers[name]
        pools = search.pool(server, server, 1, 1)
        mixed = {one.decode.name: one for one in search.mixed()}[name]
        assert pools.req_per_s / 2 <= mixed.req_per_s / mixed.servers * (1 + 1e-12)


def test_ties_by_kind_and_chips():
    search = Search(servers(), ESTIMATE_KEY, 16, Limits(0.03))
    (first, *_) = sorted(search.deployments(), key=lambda one: -one.output_per_chip)
    rate = first.req_per_s
    other_kind = MIXED if first.kind == POOLS else POOLS
    for ratio, kind, expected in [
        (1.9, other_kind, True),
        (2.1, other_kind, False),
        (1.4, first.kind, True),
        (1.6, first.kind, False),
    ]:
        assert is_tie(first, replace(first, kind=kind, req_per_s=rate / ratio)) is expected
    smaller = replace(first, decode=servers().servers["tp4"], req_per_s=rate / 1.2)
    assert not is_tie(first, smaller)


# ---------------------------------------------------------------- fronts


@pytest.mark.parametrize("basis", [LOWER_KEY, SERIAL_KEY, ESTIMATE_KEY])
def test_no_point_of_a_front_exceeds_what_a_search_finds_within_its_tpot(basis):
    """The search takes the best batch and counts for a limit; a front only evaluated batches."""
    small = servers("h100-sxm", "llama-3.1-8b", "bf16", (512, 128), 4)
    points = front(Search(small, basis, 4, Limits()), (MIXED, POOLS))
    assert {point.kind for point in points} == {MIXED, POOLS}
    for kind in (MIXED, POOLS):
        one_kind = [point for point in points if point.kind == kind]
        rates = [(point.user_rate, point.output_per_chip) for point in one_kind]
        assert rates == sorted(rates, key=lambda rate: (-rate[0], rate[1]))
        for point in (one_kind[0], one_kind[len(one_kind) // 2], one_kind[-1]):
            search = Search(small, basis, 4, Limits(point.tpot_s * (1 + 1e-9)))
            best_rate = max(one.output_per_chip for one in search.deployments([kind]))
            assert point.output_per_chip <= best_rate * (1 + 1e-9)
            assert point.output_per_chip >= best_rate * 0.7


def test_a_front_is_drawn_on_a_screen(capsys):
    words = ("serve", "llama-3.1-8b", "--on", "h100,h200", "--chips", "4", "isl=512", "osl=128")
    text = said(capsys, *words, "bf16", "--tpot", "8ms")
    lines = text.splitlines()
    (head,) = (n for n, line in enumerate(lines) if line.startswith("output tok/s/chip"))
    for part in ("h mixed h100-sxm", "H two pools h100-sxm", "a mixed h200-sxm", ": TPOT 8 ms"):
        assert part in lines[head]
    drawn = lines[head + 1 : head + 10]
    assert all("|" in line for line in drawn)
    assert {*"hHaA:"} <= {*"".join(drawn)}
    assert "tokens/s/user" in lines[head + 11]


# ---------------------------------------------------------------- the command

QUESTION = ("serve", "llama-3.1-70b", "16xh100-sxm", "isl=8192", "osl=1024", "bf16")


def test_a_plan_on_a_screen(capsys):
    text = said(capsys, *QUESTION, "--tpot", "30ms", "--ttft", "2s", "--load", "50")
    lines = text.splitlines()
    assert lines[1].startswith("Best by the estimate: ")
    assert "it carries only" in lines[1]
    assert "output tokens/s/chip" in lines[1]
    assert any(line.startswith("50 requests/s: ") for line in lines)
    assert "waiting is not in it" in text


def test_rows_of_a_plan_agree_with_python(capsys):
    rows = table(capsys, *QUESTION, "--tpot", "20ms", "--calibration", "none")
    plan = rooflines.serve(
        "llama-3.1-70b",
        "h100-sxm",
        chips=16,
        isl=8192,
        osl=1024,
        tpot_s=0.02,
        dtypes="bf16",
        calibration="none",
    )
    frame = plan.deployments
    assert [row["deployment"] for row in rows] == frame["deployment"].to_list()
    assert [float(row["req_per_s"]) for row in rows] == pytest.approx(frame["req_per_s"].to_list())
    first = rows[0]
    assert (first["deployment"], first["basis"]) == ("4P tp2 + 1D tp8", "serialized")
    money = [float(first[f"usd_per_mtok_{part}"]) for part in ("input", "output")]
    per_request = (money[0] * 8192 + money[1] * 1024) / 1e6
    assert per_request == pytest.approx(float(first["usd_per_request"]))


def test_parts_of_a_plan_in_python():
    plan = rooflines.serve(
        "llama-3.1-8b", "h100-sxm", chips=4, isl=512, osl=128, tpot_s=0.005, dtypes="bf16"
    )
    assert plan.best == plan.deployments.row(0, named=True)
    assert plan.ties["tie"].unique().to_list() in ([], ["="])
    assert repr(plan).startswith("llama-3.1-8b · isl = 512")
    for kind in (MIXED, POOLS):
        points = plan.front.filter(kind=kind)
        rates = points.select("tokens_per_s_per_user", "output_tokens_per_s_per_chip").rows()
        assert rates == sorted(rates, key=lambda rate: (-rate[0], rate[1]))
    on_front = {(row["deployment"], row["batch"]): row for row in plan.front.to_dicts()}
    shared = [
        (row, on_front[row["deployment"], row["batch"]])
        for row in plan.deployments.to_dicts()
        if (row["deployment"], row["batch"]) in on_front
    ]
    assert shared
    for row, point in shared:
        names = row.keys() & point.keys()
        assert {"usd_per_mtok_input", "usd_per_mtok_output", "ttft_s", "basis"} < names
        assert {name: row[name] for name in names} == {
            name: pytest.approx(point[name]) if isinstance(point[name], float) else point[name]
            for name in names
        }
    lost = plan.not_possible.to_dicts()
    assert [(row["split"], row["reason"]) for row in lost] == [("tp1", "tpot")]
    assert "at the smallest batch" in lost[0]["text"]
    everything = rooflines.serve("llama-3.1-8b", "h100-sxm", chips=1, isl=512, osl=128)
    assert everything.not_possible.height == 0
    assert everything.not_possible.columns == plan.not_possible.columns


@pytest.mark.parametrize(
    ("words", "problem", "fix"),
    [
        (("--tpot", "30"), "--tpot is 30 seconds", "write 30ms"),
        (("--tpot", "2ms"), "the quickest token takes", "allow that"),
        (("--ttft", "50ms"), "takes at least 76.4 ms on tp8-pp2 on h100-sxm", "allow that"),
        (("--load", "50", "--users", "9"), "two loads", "give one of them"),
        (("--goal", "latency"), "goal is 'latency', which is no goal", "min-chips or cost"),
        (("--cached", "50"), "--cached is 50", "--cached 50%"),
        (("--cached", "1"), "its last token is always computed", "such as 0.5"),
        (("--draft", "tokens=3"), "without the mean number", "write tokens=3,accepted=1.8"),
        (("--busy", "2"), "--busy is 2, which is no share", "such as 0.9"),
        (("--engine", "tgi"), "engine is 'tgi'", "vllm, sglang or trtllm"),
        (("--calibration", "tgi"), "calibration is 'tgi'", "use one of"),
        (("--only", "both"), "only is 'both'", "mixed, pools"),
        (("B=4",), "a plan searches the batch", "leave them out"),
        (("--split", "tp8-pp3"), "takes 24 chips", "--chips 24"),
        (("--split", "tp1-pp13"), "no divisor of 13 is one", "leave the split out"),
        (("--ttft-p95", "1s"), "percentiles and waiting", "--ttft"),
        (("--max-cost=0.02",), "is no limit of a plan", "--goal cost"),
        (("--price", "b200=3"), "--price has 'b200', which is no chip", "h100-sxm=2.5"),
        (("--price", "b200=3", "--goal", "cost"), "--price has 'b200'", "h100-sxm=2.5"),
        (("--pp", "0"), "--pp is '0'", ""),
        (("--split", "tp32"), "takes 32 chips, but 16 are given", "--chips 32"),
        (("measured=3ms",), "which a plan does not take", "leave it out"),
    ],
)
def test_a_wrong_plan_is_refused_with_a_fix(capsys, words, problem, fix):
    message = refused(capsys, *QUESTION, *words)
    assert problem in message
    assert fix in message


def test_several_wrong_limits_are_said_at_once_with_one_line_that_runs(capsys):
    wrong = ("--tpot", "30", "--cached", "50", "--draft", "tokens=3", "--only", "mixed")
    message = refused(capsys, *QUESTION, *wrong)
    for part in ("--tpot is 30 seconds", "--cached is 50", "--draft is tokens=3"):
        assert part in message
    (line,) = (line for line in message.splitlines() if line.startswith("  try: "))
    for part in ("--tpot 30ms", "--cached 50%"):
        assert part in line
    assert "--draft" not in line, "what a draft gets accepted is measured, not proposed"
    assert "Best" in said(capsys, *line.split()[2:])


def test_missing_parts_are_said_at_once(capsys):
    message = refused(capsys, "serve", "llama-3.1-70b", "isl=0")
    for part in ("chip is missing", "isl is '0'"):
        assert part in message


def test_too_few_chips_are_answered_with_enough(capsys):
    message = refused(capsys, "serve", "llama-3.1-70b", "1xh100-sxm", "isl=8192", "osl=64", "bf16")
    assert "use at least 2 h100-sxm (tp2)" in message


def test_without_chips_the_fewest_that_keep_the_limits(capsys):
    words = (
        "serve",
        "llama-3.1-70b",
        "h100-sxm",
        "isl=8192",
        "osl=1024",
        "bf16",
        "--only",
        "mixed",
    )
    rows = table(capsys, *words, "--tpot", "20ms", "--ttft", "400ms")
    assert [row["deployment"] for row in rows] == ["1 x tp4"]
    assert {row["keeps_ttft"] for row in rows} == {"false"}
    text = said(capsys, *words, "--tpot", "20ms", "--ttft", "400ms")
    assert "over: TTFT 400 ms is kept by the bound of a prompt alone, not by its estimate" in text
    assert "No deployment keeps TTFT 400 ms by the estimate of a prompt alone" in text
    assert "which no deployment keeps" in refused(capsys, *words, "--tpot", "1ms")


@pytest.mark.parametrize("chips", ["h100-sxm,mi300x", "mi300x,h100-sxm"])
def test_a_token_time_that_no_chip_keeps_names_the_quickest_of_all(capsys, chips):
    words = "serve", "llama-3.1-70b", "--chips", "8", "isl=8k", "osl=1k", "bf16", "--tpot", "1ms"
    by_chip = {chip: refused(capsys, *words, "--on", chip) for chip in chips.split(",")}
    assert "keeps by the estimate: the quickest token takes" in by_chip["h100-sxm"]
    assert "keeps by the serialized time: the quickest token takes" in by_chip["mi300x"]
    message = refused(capsys, *words, "--on", chips)
    (line,) = (line for line in message.splitlines() if "which no deployment keeps" in line)
    assert line in by_chip["mi300x"], "its token is quicker"


@pytest.mark.parametrize("chips", ["h100-sxm,mi300x", "mi300x,h100-sxm"])
def test_waiting_is_of_estimated_chips_alone(capsys, chips):
    words = "serve", "llama-3.1-70b", "--chips", "8", "isl=8k", "osl=1k", "bf16", "--tpot", "50ms"
    lines = said(capsys, *words, "--on", chips).splitlines()
    (waiting,) = (line for line in lines if line.startswith("Waiting: "))
    assert "of vllm on h100-sxm:" in waiting


def test_deployments_that_keep_ttft_by_the_estimate_come_first(capsys):
    words = "serve", "16xh100-sxm", "llama-3.1-70b", "fp8", "isl=4096", "osl=500", "--tpot", "40ms"
    rows = table(capsys, *words, "--ttft", "100ms")
    kept = [row["keeps_ttft"] == "true" for row in rows]
    assert kept[0]
    assert not kept[-1]
    assert kept == sorted(kept, reverse=True)
    for row, keeps in zip(rows, kept, strict=True):
        assert (float(row["ttft_s"]) <= 0.1) == keeps
        assert float(row["ttft_lower_s"]) <= 0.1
        assert row["tie"] != "=" or keeps, "what keeps TTFT and what does not are no ties"
    highest = max(float(row["output_tokens_per_s_per_chip"]) for row in rows)
    assert float(rows[0]["output_tokens_per_s_per_chip"]) < highest


def test_a_deployment_that_carries_less_than_the_load_is_no_tie(capsys):
    words = "serve", "16xh100-sxm", "llama-3.1-70b", "fp8", "isl=4096", "osl=500", "--tpot", "40ms"
    rows = table(capsys, *words, "--load", "10rps", "--engine", "vllm")
    carried = [row["tie"] for row in rows if float(row["req_per_s"]) < 9.9]
    assert carried
    assert "=" not in carried


def test_a_chip_without_a_calibration_leaves_the_estimates_of_others(capsys):
    words = "serve", "llama-3.1-8b", "--chips", "2", "isl=512", "osl=64", "bf16", "--tpot", "30ms"
    rows = table(capsys, *words, "--on", "h100-sxm,trainium2")
    alone = table(capsys, *words, "--on", "h100-sxm")
    assert [row["deployment"] for row in rows if row["chip"] == "h100-sxm"] == [
        row["deployment"] for row in alone
    ]
    bases = [row["basis"] for row in rows]
    assert bases == sorted(bases)
    assert {(row["chip"], row["basis"]) for row in rows} == {
        ("h100-sxm", "estimate"),
        ("trainium2", "serialized"),
    }
    text = said(capsys, *words, "--on", "h100-sxm,trainium2")
    assert "no calibration of trainium2 in bf16" in text
    assert "do not rank beside estimates" in text
    assert "Best by the estimate" in text


def test_each_chip_may_have_a_price(capsys):
    service = "llama-3.1-8b", "--chips", "2", "isl=512", "osl=64", "bf16", "--tpot", "30ms"
    words = "serve", *service, "--on", "h100-sxm,b200", "--price", "h100=2,b200-sxm=5.5"
    hours = {row["chip"]: float(row["usd_per_hour"]) for row in table(capsys, *words)}
    assert hours == {"h100-sxm": 4.0, "b200": 11.0}
    text = said(capsys, *words, "--goal", "cost")
    assert "$ a request" in text


def test_a_plan_has_no_cost_without_a_price(capsys):
    words = ("serve", "llama-3.1-8b", "8xgaudi3", "isl=512", "osl=64", "bf16")
    assert "gaudi3 has no dated price" in refused(capsys, *words, "--goal", "cost")
    assert "a request" in said(capsys, *words, "--goal", "cost", "--price", "2.5")


def test_a_price_and_an_engine_are_words(capsys):
    words = ("serve", "llama-3.1-8b", "2xh100-sxm", "isl=512", "osl=64", "bf16", "--only", "mixed")
    (*_, row) = table(capsys, *words, "2.5$/h", "vllm")
    assert float(row["usd_per_hour"]) == 2 * 2.5


def test_a_split_alone_is_planned(capsys):
    rows = table(capsys, *QUESTION, "--split", "tp8", "--only", "mixed", "--tpot", "30ms")
    assert [row["deployment"] for row in rows] == ["2 x tp8"]


def test_pipeline_stages_pay_where_memory_or_ttft_ends_servers_without(capsys):
    """Llama 70B in bf16 does not fit on one H100; on two its KV cache ends the batch."""
    staged_servers = servers(stages=3)
    found = Search(staged_servers, LOWER_KEY, 16, Limits(0.1, 2.0))
    staged = {one.name: one for one in found.deployments() if one.stages > 1}
    assert {"2 x tp2-pp3", "1 x tp8-pp2"} <= {*staged}
    assert all(one.chips_used <= 16 for one in staged.values())
    ended = [one for one in found.mixed() if one.stages == 1 and one.limit == "tpot"]
    assert not {f"{one.decode.name}-pp2" for one in ended} & {
        s.decode.name for s in staged.values()
    }
    early = Search(staged_servers, SERIAL_KEY, 16, Limits(0.03, 0.08))
    assert {one.name for one in early.mixed()} == {"1 x tp8-pp2"}
    assert not any(
        one.stages > 1 for one in Search(staged_servers, LOWER_KEY, 16, Limits(0.02)).mixed()
    )
    text = said(capsys, *QUESTION, "--split", "tp8-pp2", "--tpot", "30ms")
    assert "(no run with pp)" in text
    assert "No published run has pipeline stages" in text


def test_a_plan_with_pipeline_stages_has_the_rows_of_requests(capsys):
    typed = ("--split", "tp8-pp2", "--only", "mixed", "--tpot", "60ms")
    (plan,) = table(capsys, *QUESTION, *typed)
    batch = int(float(plan["batch"]))
    words = ("explain", "h100-sxm", "llama-3.1-70b", "bf16", "isl=8192", "osl=1024", "tp8-pp2")
    network = ("--network", "nvlink,infiniband")
    (row,) = json.loads(said(capsys, *words, f"B={batch}", *network, "--json"))["rows"]
    pairs = {
        "t_estimate_s": "tpot_s",
        "ttft_s": "ttft_lower_s",
        "footprint_bytes": "footprint_bytes",
    }
    for column, shown in pairs.items():
        assert row[column] == float(plan[shown])
    assert batch <= row["max_B"]
    assert (plan["pp"], plan["micro_batches"], plan["tpot_p90_s"]) == ("2", "2", "")
    hop_s = batch / 2 * 8192 * 2 / 8 / 5e10 + 2.7e-6
    assert float(plan["hop_s"]) == pytest.approx(hop_s)


def test_experts_that_chips_share_unevenly_are_tried_in_groups():
    """8 experts on 16 chips: one each on groups of two; 256 on 72: four slots each, some empty."""
    wide = servers("h200-sxm", "mixtral-8x7b", "bf16", (512, 64), 16)
    assert {"tp2-dp8-ep8", "tp4-dp4-ep8"} <= wide.servers.keys()
    assert "tp1-dp16-ep16" not in wide.servers
    uneven = servers("gb200", "deepseek-v3", "nvfp4", (512, 64), 72)
    assert {"tp1-dp72-ep72", "tp8-dp9-ep36"} <= uneven.servers.keys()
    assert "tp8-dp8-ep32" not in uneven.servers  # 64 chips have as many whole experts


def test_the_pool_of_an_engine_ends_batches(capsys):
    words = ("serve", "gemma-3-27b", "4xh100-sxm", "isl=8192", "osl=256", "bf16", "--only", "mixed")
    exact = {row["deployment"]: row for row in table(capsys, *words)}
    pool = {row["deployment"]: row for row in table(capsys, *words, "--engine", "vllm")}
    one = ("explain", "h100-sxm", "gemma-3-27b", "isl=8192", "osl=256", "bf16", "B=1", "tp2")
    (row,) = table(capsys, *one, "--engine", "vllm")
    assert float(pool["2 x tp2"]["batch"]) == int(float(row["concurrency"]))
    assert pool["2 x tp2"]["limit"] == "pool"
    shared = pool.keys() & exact.keys()  # stages are tried where memory ends a server
    assert "2 x tp2" in shared
    assert all(float(pool[name]["batch"]) < float(exact[name]["batch"]) for name in shared)


def test_replicas_of_dense_models_are_servers_of_their_own():
    assert {server.split.dp for server in servers().servers.values()} == {1}
    experts = servers("h200-sxm", "qwen3-30b-a3b", "bf16", (512, 64), 4)
    splits = [server.split for server in experts.servers.values()]
    assert Split(tp=1, pp=1, dp=4, ep=4) in splits
    assert all(split.ep == (split.tp * split.dp if split.dp > 1 else 1) for split in splits)


PLAN_CONFIGS = {
    "two limits": (("2xh100-sxm", "bf16", "--tpot", "6ms,20ms"), ESTIMATE_KEY),
    "bound": (("2xh100-sxm", "bf16", "--tpot", "8ms", "--bound"), LOWER_KEY),
    "own numbers": (("2xh100-sxm", "bf16", "--set", "hbm=3TB/s", "--price", "2.5"), SERIAL_KEY),
    "prompts on another chip": (("--on", "h100+b200", "--chips", "2", "bf16"), ESTIMATE_KEY),
    "load": (("2xh100-sxm", "bf16", "--tpot", "20ms", "--load", "40"), ESTIMATE_KEY),
    "draft": (("2xh100-sxm", "bf16", "--draft", "tokens=3,accepted=1.8"), ESTIMATE_KEY),
    "experts": (("qwen3-30b-a3b", "4xh200-sxm", "bf16", "--tpot", "20ms"), ESTIMATE_KEY),
    "across nodes": (
        ("--on", "h100,h200", "--chips", "16", "fp8", "--only", "mixed", "--tpot", "20ms"),
        ESTIMATE_KEY,
    ),
}
"""Plans and their bases."""

TIMES = {
    MIXED: {
        LOWER_KEY: ("tpot_mixed_s", "ttft_s"),
        SERIAL_KEY: ("tpot_mixed_serial_s", "ttft_serial_s"),
        ESTIMATE_KEY: ("t_estimate_s", "prefill_estimate_s"),
    },
    POOLS: {
        LOWER_KEY: ("tpot_s", "ttft_pool_lower_s"),
        SERIAL_KEY: ("tpot_serial_s", "ttft_pool_s"),
        ESTIMATE_KEY: ("t_estimate_s", "ttft_pool_estimate_s"),
    },
}
"""Columns with TPOT and TTFT in tables, by kind and basis."""

SUFFIXES = {LOWER_KEY: "", SERIAL_KEY: "_serial", ESTIMATE_KEY: "_estimate"}


def rows_of_config(path):
    """Rows of a written config, by the lines above it that say which deployment they are."""
    config = rooflines.load_config(path)
    tables = {name: rooflines.rows(config, name).collect() for name in config.model_sweeps}
    placed: dict[str, list[Any]] = {}
    for line in path.read_text().splitlines():
        if line.startswith("# ") and ": sweep " in line:
            deployment, place = line.removeprefix("# ").split(": sweep ")
            sweep, split, batches = place.split(", ")
            sizes = [int(text) for text in batches.removeprefix("B = ").split(" and ")]
            rows = tables[sweep].filter(split=split.removeprefix("split "))
            placed.setdefault(deployment, []).append((rows, sizes))
    return config, placed


@pytest.mark.parametrize(("words", "basis"), PLAN_CONFIGS.values(), ids=PLAN_CONFIGS)
def test_a_written_config_has_the_rows_of_a_plan(words, basis, tmp_path, capsys):
    """Its times and rates are those of a deployment, or on both sides where a batch is real."""
    path = tmp_path / "plan.yaml"
    model = () if words[0].startswith("qwen") else ("llama-3.1-8b",)
    typed = ("serve", *model, *words, "isl=512", "osl=128")
    printed = table(capsys, *typed, "--write-config", str(path))
    config, placed = rows_of_config(path)
    drawn = {chart.chart for chart in config.charts}
    assert drawn == (set() if "--draft" in words else {"front"})  # it has one token a step
    yielded = 2.8 if "--draft" in words else 1.0
    compared = []
    for line in printed:
        for frame, sizes in placed.get(line["deployment"], ()):
            batch = float(line["batch"])
            if not (sizes[0] <= max(batch, float(line["dp"])) <= sizes[-1]):
                continue  # another limit
            rows = frame.filter(chip=line["chip"]).to_dicts()
            around = [row for row in rows if row["B"] in sizes]
            if around:
                compared.append(line["deployment"])
                check_rows(around, line, basis, yielded)
    kinds = {line["deployment"] for line in printed if line["kind"] == MIXED}
    assert kinds <= {*compared}
    pools = [line for line in printed if line["kind"] == POOLS and line["deployment"] in compared]
    assert pools or "--only" in words
    assert "cannot be written" in refused(capsys, *typed, "--write-config", str(path))


def check_rows(around, line, basis, yielded):
    """Compare rows of a config with a printed deployment."""
    kind = line["kind"]
    tpot, ttft = TIMES[kind][basis]
    exact = len(around) == 1 and float(line["batch"]) == around[0]["B"]
    scale = yielded if tpot == "t_estimate_s" else 1.0
    times = [row[tpot] / scale for row in around]
    if exact:
        assert times == [pytest.approx(float(line["tpot_s"]), rel=1e-12)]
    else:
        assert times[0] * (1 - 1e-9) <= float(line["tpot_s"]) <= times[-1] * (1 + 1e-9)
    for row in around if line["dp"] == "1" or ttft != "prefill_estimate_s" else ():
        assert row[ttft] == pytest.approx(float(line["ttft_s"]), rel=1e-12)
    if exact:
        names = ("weights_footprint_bytes", "kv_cache_footprint_bytes", "footprint_bytes")
        assert [float(line[name]) for name in names] == [
            pytest.approx(around[0][name], rel=1e-12) for name in names
        ]
    used = float(line["chips_used"]) / float(line["chips"])
    if kind == MIXED:
        count = float(line["servers"]) / float(line["chips"])
        rates = [row["B"] / time * count for row, time in zip(around, times, strict=True)]
    else:
        suffix = SUFFIXES[basis]
        rates = [row[f"output_tokens_per_s_per_chip{suffix}"] * used for row in around]
    printed = float(line["output_tokens_per_s_per_chip"])
    if exact:
        assert rates == [pytest.approx(printed, rel=1e-12)]
    elif float(line["batch"]) >= around[0]["B"]:
        assert rates[0] * (1 - 1e-9) <= printed <= rates[-1] * (1 + 1e-9)
    if kind == POOLS and line["limit"] == "prefill":
        assert rates[-1] == pytest.approx(printed, rel=1e-9)
        assert around[-1][f"prefill_busy{SUFFIXES[basis]}"] == pytest.approx(1)


def test_numbers_of_ones_own_stand_in_a_written_config(tmp_path, capsys):
    path = tmp_path / "plan.yaml"
    words = ("serve", "llama-3.1-8b", "4xh100-sxm", "isl=512", "osl=128", "bf16", "2.5$/h")
    (*_, line) = table(capsys, *words, "--set", "hbm=3TB/s", "--write-config", str(path))
    config = rooflines.load_config(path)
    assert line["chip"] == "h100-sxm-set"
    assert config.chips["h100-sxm-set"].memory["hbm"].bytes_per_s == 3e12
    price = config.chips["h100-sxm-set"].lowest_price()
    assert price is not None
    assert price.usd_per_hour == 2.5
    own, other = tmp_path / "own.yaml", tmp_path / "other.yaml"
    own.write_text("chips: {mine: {base: h100-sxm, memory.hbm.bytes_per_s: 3.0e+12}}\n")
    typed = ("serve", "llama-3.1-8b", "2xmine", "isl=512", "osl=128", "bf16", "--only", "mixed")
    table(capsys, *typed, "--config", str(own), "--write-config", str(other))
    assert rooflines.load_config(other).chips["mine"].memory["hbm"].bytes_per_s == 3e12


def test_numbers_of_ones_own_hold_for_both_chips_of_a_pair(capsys):
    words = ("serve", "llama-3.1-8b", "--on", "h100+b200", "--chips", "8", "isl=512", "osl=128")
    rows = table(capsys, *words, "bf16", "--set", "hbm=3TB/s", "--price", "2")
    assert {(row["prefill_chip"], row["chip"]) for row in rows} == {("h100-sxm-set", "b200-set")}
    assert {float(row["usd_per_hour"]) for row in rows} == {16.0}


# ---------------------------------------------------------------- caches, drafts, loads, two chips


def rows_of(chip="h100-sxm", **keys):
    keys = {"chips": 8, "isl": 2048, "osl": 256, "tpot_s": 0.02, "dtypes": "bf16", **keys}
    return rooflines.serve("llama-3.1-8b", chip, **keys).deployments.to_dicts()


def test_a_cached_prefix_and_a_draft_yield_more():
    plain, cached = rows_of(), rows_of(cached=0.5)
    drafted = rows_of(draft={"tokens": 3, "accepted": 1.8})
    rates = [rows[0]["req_per_s"] for rows in (plain, cached, drafted)]
    assert rates[0] < rates[1]
    assert rates[0] < rates[2] <= 2.8 * rates[0]
    by_name = {row["deployment"]: row for row in plain}
    for row in cached:
        if row["deployment"] in by_name:
            assert row["ttft_lower_s"] < by_name[row["deployment"]]["ttft_lower_s"]


def test_batches_fall_to_what_a_load_needs():
    full = {row["deployment"]: row for row in rows_of()}
    half = min(row["req_per_s"] for row in full.values()) / 2
    for row in rows_of(load=half):
        assert row["req_per_s"] == pytest.approx(half)
        assert row["limit"] == "load"
        same = full.get(row["deployment"])
        assert same is None or (row["batch"] < same["batch"] and row["tpot_s"] <= same["tpot_s"])
    most = max(row["req_per_s"] for row in full.values())
    assert [row["req_per_s"] for row in rows_of(load=2 * most)] == [
        row["req_per_s"] for row in full.values()
    ]


def test_chips_beyond_a_load_are_said(capsys):
    words = ("serve", "llama-3.1-8b", "2xh100-sxm", "isl=2048", "osl=256", "bf16", "--load", "500")
    assert "more than are given" in said(capsys, *words, "--tpot", "20ms")


def test_the_fewest_chips_for_a_load():
    rows = rows_of(goal="min-chips", load=200)
    assert [row["chips"] for row in rows] == sorted(row["chips"] for row in rows)
    assert all(row["req_per_s"] >= 200 * (1 - 1e-9) for row in rows)
    assert all(row["chips"] == row["chips_used"] for row in rows)
    assert rows_of(goal="min-chips")[0]["chips"] == 1


@pytest.mark.parametrize("only", [MIXED, POOLS])
def test_a_plan_for_users_is_of_the_batch_that_holds_them(only):
    given, counted = rows_of(users=300, only=only), rows_of(chips=None, users=300, only=only)
    assert any(row["limit"] == "load" for row in given)
    for row in given:
        if row["limit"] == "load":
            assert row["concurrency"] == pytest.approx(300, rel=1e-9)
    assert [row["chips"] for row in counted] == sorted(row["chips"] for row in counted)
    assert all(row["concurrency"] >= 0.99 * 300 for row in counted)
    assert all(row["chips"] == row["chips_used"] for row in counted)
    full = {row["deployment"]: row for row in rows_of(only=only)}
    assert all(row["tpot_s"] <= full[row["deployment"]]["tpot_s"] * (1 + 1e-12) for row in given)


def test_the_goal_typed_leads_the_headline(capsys):
    words = ("serve", "llama-3.1-8b", "h100-sxm", "isl=2048", "osl=256", "bf16")
    _, headline, *_ = said(capsys, *words, "$/Mtok").splitlines()
    assert re.search(r"h100-sxm: \$\d+\.\d\d/M output tokens, \$\d", headline)
    _, headline, *_ = said(capsys, *words, "100", "users").splitlines()
    assert re.match(r"For 100 requests in flight .*, \d+ chips?, \$\S+ an hour: TPOT", headline)


def test_p90_keeps_the_limit_if_it_has_to():
    assert max(row["tpot_p90_s"] for row in rows_of()) > 0.02
    assert max(row["tpot_p90_s"] for row in rows_of(sure=True)) <= 0.02 * (1 + 1e-12)


def test_prefill_is_no_busier_than_asked():
    busy = [row["prefill_busy"] for row in rows_of(busy=0.8, only="pools")]
    assert max(busy) <= 0.8 * (1 + 1e-12)
    assert max(row["prefill_busy"] for row in rows_of(only="pools")) > 0.8


def test_prompts_on_another_kind_of_chip():
    rows = rows_of("h100-sxm+b200")
    assert {(row["kind"], row["prefill_chip"], row["chip"]) for row in rows} == {
        ("pools", "h100-sxm", "b200")
    }
    alone = {row["deployment"]: row for row in rows_of(only="pools")}
    shared = next(row for row in rows if row["deployment"] in alone)
    assert shared["ttft_s"] == alone[shared["deployment"]]["ttft_s"]
    prices = {name: chip_entries()[name].lowest_price() for name in ("h100-sxm", "b200")}
    reading, writing = (price.usd_per_hour for price in prices.values() if price)
    spread = shared["usd_per_hour"]
    assert 8 * min(reading, writing) < spread < 8 * max(reading, writing)
    in_out = shared["usd_per_mtok_input"] * 2048 + shared["usd_per_mtok_output"] * 256
    assert in_out / 1e6 == pytest.approx(shared["usd_per_request"])


def test_the_longest_gap_between_tokens():
    """64 sequences beside a chunk of 8,128 tokens: 152.894 ms, in an eighth of the steps."""
    server = servers().servers["tp8"]
    gap: Any = longest_step(server.case, server.request, 64, 8192)
    assert gap.seconds.lower == pytest.approx(0.152894, abs=1e-6)
    assert gap.share == 0.125
    assert longest_step(server.case, server.request, 64, 64) is None


def test_a_plan_without_chips_in_python():
    rows = rows_of(chips=None, ttft_s=0.2)
    assert {row["chips"] for row in rows} == {1}


def test_laws_of_money_and_goodput():
    for row in rows_of(ttft_s=1.0):
        parts = row["usd_per_mtok_input"] * 2048 + row["usd_per_mtok_output"] * 256
        assert parts == pytest.approx(row["usd_per_mtok_total"] * (2048 + 256))
        assert row["goodput_req_per_s"] in (0, row["req_per_s"])
        assert row["footprint_share"] <= 1
        latency = row["ttft_s"] + 256 * row["tpot_s"]
        assert row["concurrency"] == pytest.approx(row["req_per_s"] * latency)
