"""Logs of serving engines: steady lines, medians, the question they ask, and refusals."""

import gzip
import json

import pytest

from rooflines.basics.errors import RooflinesError
from rooflines.cli.main import run
from rooflines.measured.engine_logs import read_engine_log
from rooflines.measured.log_question import log_question
from rooflines.measured.logged_steps import logged_step

VLLM_START = (
    "INFO Initializing a V1 LLM engine (v0.11.0) with config: model='/hub/Qwen/Qwen3-8B', "
    "dtype=torch.bfloat16, tensor_parallel_size=2, quantization=None, kv_cache_dtype=fp8\n"
    "INFO GPU KV cache size: 640,000 tokens\n"
)


def vllm(rate, running, use=10.0, prompts=0.0, engine=0):
    return (
        f"(APIServer pid=1) INFO [loggers.py:236] Engine {engine:03d}: Avg prompt throughput: "
        f"{prompts} tokens/s, Avg generation throughput: {rate} tokens/s, Running: {running} reqs, "
        f"Waiting: 2 reqs, GPU KV cache usage: {use}%, Prefix cache hit rate: 0.0%\n"
    )


def sglang(rate, running, tokens, rank=0, accepted=""):
    return (
        f"[2025-09-03 18:33:19 TP{rank}] Decode batch. #running-req: {running}, #token: {tokens}, "
        f"token usage: 0.12, {accepted}cuda graph: True, gen throughput (token/s): {rate}, "
        "#queue-req: 0,\n"
    )


PREFILL = "[2025-09-03 18:33:18 TP0] Prefill batch. #new-seq: 1, #new-token: 103, #running-req: 8\n"


def trtllm(ms, scheduled, prompts=0, tokens=20_000):
    return (
        f"[TRT-LLM] [I] iter = 7, global_rank = 0, rank = 0, num_scheduled_requests = {scheduled}, "
        f"kv_cache_util = 0.125, host_step_time = {ms}ms, prev_device_step_time = 7.5ms, "
        f"states = {{'num_ctx_requests': {prompts}, 'num_ctx_tokens': {512 * prompts}, "
        f"'num_generation_tokens': 16, 'cached_kv_tokens': {tokens}}}\n"
    )


LOADED = (
    VLLM_START
    + vllm(0.0, 0)
    + vllm(900.0, 32, prompts=500.0)
    + "".join(vllm(rate, 32) for rate in (3180.0, 3200.0, 3220.0, 3200.0))
    + vllm(1000.0, 4, 1.0)
    + "".join(vllm(400.0, 4, 1.0) for _ in range(2))
)
"""Idle, a line with prompts, four lines at 32 sequences, and then four sequences."""


def log_of(tmp_path, text):
    path = tmp_path / "server.log"
    path.write_text(text, encoding="utf-8")
    return read_engine_log(str(path))


def test_a_step_is_the_median_of_steady_lines(tmp_path):
    step = logged_step(log_of(tmp_path, LOADED))
    assert (step.sequences, step.steady, step.lines) == (32, 4, 9)
    assert step.step_s == pytest.approx(32 / 3200)
    assert step.tokens_per_s == pytest.approx(3200)
    assert step.left_out == {"idle": 1, "with prompts": 1, "load changed": 1, "at another load": 2}
    assert step.context == pytest.approx(0.1 * 640_000 / 32)
    assert step.context_digit == pytest.approx(0.0005 * 640_000 / 32)
    assert step.other_loads == (4, 4)


def test_another_load_is_taken_by_its_sequences(tmp_path):
    step = logged_step(log_of(tmp_path, LOADED), running=4)
    assert (step.sequences, step.steady) == (4, 2)
    assert step.step_s == pytest.approx(4 / 400)


def test_lines_with_prompts_count_where_no_other_is_steady(tmp_path):
    step = logged_step(log_of(tmp_path, vllm(800.0, 8, prompts=9.0) * 3 + vllm(0.0, 0)))
    assert step.with_prompts
    assert step.steady == 3


def test_replicas_are_summed_and_judged_together(tmp_path):
    log = log_of(tmp_path, VLLM_START + "".join(vllm(1600.0, 16, engine=n % 2) for n in range(6)))
    step = logged_step(log)
    assert (step.replicas, step.sequences) == (2, 32)
    assert step.tokens_per_s == pytest.approx(3200)
    assert log_question(log, step, "h100-sxm").options["split"] == "tp2-dp2"


def test_sglang_counts_tokens_and_notes_prefill_between(tmp_path):
    text = sglang(800, 8, 8000) * 3 + PREFILL + sglang(300, 8, 8000) + sglang(800, 8, 8000, rank=1)
    log = log_of(tmp_path, text)
    step = logged_step(log)
    assert (step.steady, log.copies, step.context) == (3, 1, 1000)
    assert step.left_out == {"with prompts": 1}
    assert step.step_s == pytest.approx(0.01)


def test_accepted_tokens_lengthen_a_step(tmp_path):
    start = "server_args=ServerArgs(model_path='Qwen/Qwen3-8B', speculative_num_draft_tokens=4)\n"
    log = log_of(tmp_path, start + sglang(800, 8, 8000, accepted="accept len: 2.50, ") * 3)
    step = logged_step(log)
    assert step.step_s == pytest.approx(8 * 2.5 / 800)
    assert log_question(log, step, "h100-sxm").options["draft"] == "tokens=3,accepted=1.5"


def test_drafted_tokens_that_the_log_lacks_are_asked_for(tmp_path):
    log = log_of(tmp_path, sglang(800, 8, 8000, accepted="accept len: 2.50, ") * 3)
    with pytest.raises(RooflinesError, match="does not say how many are drafted"):
        log_question(log, logged_step(log), "h100-sxm", model="qwen3-8b")


def test_iterations_of_tensorrt_llm_have_their_time(tmp_path):
    step = logged_step(log_of(tmp_path, trtllm(20.0, 11, prompts=1) + trtllm(8.0, 10) * 5))
    assert (step.sequences, step.steady, step.context) == (10, 5, 2000)
    assert step.step_s == pytest.approx(0.008)
    assert step.tokens_per_s == pytest.approx(1250)


def test_start_lines_give_model_split_and_dtypes(tmp_path):
    log = log_of(tmp_path, LOADED)
    question = log_question(log, logged_step(log), "h100-sxm")
    assert question.words == ("h100-sxm", "qwen3-8b", "B=32", "S=2000", "bf16", "kv=fp8")
    assert question.options == {"split": "tp2", "measured": "10ms"}


def test_experts_of_replicas_are_shared(tmp_path):
    start = (
        "INFO Initializing a V1 LLM engine with config: model='models--deepseek-ai--DeepSeek-V3/x',"
        " dtype=torch.bfloat16, tensor_parallel_size=1, data_parallel_size=8, quantization=fp8\n"
        "INFO GPU KV cache size: 400,000 tokens\n"
    )
    log = log_of(tmp_path, start + vllm(900.0, 32) * 3)
    question = log_question(log, logged_step(log), "h200-sxm")
    assert question.options["split"] == "dp8-ep8"
    assert "B=256" in question.words
    assert question.assumed == ["of 8 replicas 1 logs; the others take as many"]


def test_the_answer_is_that_of_explain(tmp_path, capsys):
    path = tmp_path / "server.log.gz"
    path.write_bytes(gzip.compress(f"\x1b[36m{LOADED}".encode()))
    assert run(["measured", "log", str(path), "--chip", "h100-sxm", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    question = ["h100-sxm", "qwen3-8b", "B=32", "S=2000", "bf16", "kv=fp8", "--split", "tp2"]
    assert run(["explain", *question, "--measured", "10ms", "--json"]) == 0
    assert answer["answer"] == json.loads(capsys.readouterr().out)
    assert answer["log"]["logged_step_s"] == pytest.approx(0.01)


VARIANTS = {
    "vllm v0": (
        "INFO 01-22 18:27:20 metrics.py:449] Avg prompt throughput: 0.0 tokens/s, Avg generation "
        "throughput: 640.0 tokens/s, Running: 16 reqs, Swapped: 0 reqs, Pending: 3 reqs, GPU KV "
        "cache usage: 20.0%, CPU KV cache usage: 0.0%.\n"
    ),
    "vllm of 2026, with a connector": (
        "(APIServer pid=646) INFO 06-13 11:03:45 [loggers.py:271] Engine 000: Avg prompt "
        "throughput: 0.0 tokens/s, Avg generation throughput: 640.0 tokens/s, Running: 16 reqs, "
        "Waiting: 3 reqs, GPU KV cache usage: 20.0%, Prefix cache hit rate: 0.0%, External prefix "
        "cache hit rate: 1.2%\n"
    ),
    "vllm in docker compose, in colours": (
        "\x1b[36mvllm-1  | \x1b[0m\x1b[KINFO 08-11 [loggers.py:118] Engine 000: Avg prompt "
        "throughput: 0.0 tokens/s, Avg generation throughput: 640.0 tokens/s, Running: 16 reqs, "
        "Waiting: 3 reqs, GPU KV cache usage: 20.0%, Prefix cache hit rate: 0.0%   \n"
    ),
    "vllm as docker's JSON": (
        '{"log":"INFO 08-11 09:20:10 [loggers.py:118] Engine 000: Avg prompt throughput: 0.0 '
        "tokens/s, Avg generation throughput: 640.0 tokens/s, Running: 16 reqs, Waiting: 3 reqs, "
        'GPU KV cache usage: 20.0%, Prefix cache hit rate: 0.0%\\n","stream":"stderr"}\n'
    ),
    "vllm's iterations": (
        "(EngineCore_DP0 pid=10) INFO 12-22 21:44:40 [core.py:349] Iteration(515): 0 context "
        "requests, 0 context tokens, 16 generation requests, 16 generation tokens, iteration "
        "elapsed time: 25.00 ms\n"
    ),
    "sglang of 2024": (
        "[2024-10-02 10:00:00 TP0] Decode batch. #running-req: 16, #token: 32000, token usage: "
        "0.20, gen throughput (token/s): 640.00, #queue-req: 3\n"
    ),
    "sglang of 2026 behind ray and a time": (
        "2026-03-22T13:53:38.123456789Z \x1b[36m(SGLangEngine pid=41820, ip=10.0.0.2)\x1b[0m "
        "[2026-03-22 13:53:38 TP0] Decode batch, #running-req: 16, #token: 32000, token usage: "
        "0.20, cuda graph: True, gen throughput (token/s): 640.00, #queue-req: 3,\n"
    ),
    "sglang with a hybrid cache": (
        "[2026-01-05 20:02:51 DP0 TP0] Decode batch, #running-req: 16, #full token: 32000, full "
        "token usage: 0.20, #swa token: 90, swa token usage: 0.01, cuda graph: True, gen "
        "throughput (token/s): 640.00, #queue-req: 3,\n"
    ),
    "sglang with a sparse cache": (
        "[2026-04-08 14:09:56 TP0] Decode batch, #running-req: 16, #gpu-token: 208, gpu token "
        "usage: 0.29, #cpu-token: 32000, cpu token usage: 0.29, cuda graph: True, gen throughput "
        "(token/s): 640.00, #queue-req: 3\n"
    ),
    "sglang behind its logger's name": (
        "2025-12-04 20:35:53 INFO 151972 [scheduler_metrics_mixin.py:287] Decode batch. "
        "#running-req: 16, #token: 32000, token usage: 0.20, cuda graph: False, gen throughput "
        "(token/s): 640.00, #queue-req: 3,\n"
    ),
    "tensorrt-llm of April 2025": (
        "[04/28/2025-09:56:44] [TRT-LLM] [I] iter = 198, global_rank = 0, rank = 0, "
        "currank_total_requests = 0/0, elapsed_time = 0.025s, timestamp = 2025-04-28 09:56:44, "
        "num_scheduled_requests: 16, states = {'num_ctx_requests': 0, 'num_ctx_tokens': 0, "
        "'num_generation_tokens': 20}\n"
    ),
    "tensorrt-llm of 2026": (
        "[07/13/2026-09:56:44] [TRT-LLM] [RANK 0] [I] iter = 198, global_rank = 0, rank = 0, "
        "currank_total_requests = 3/3, host_step_time = 25.0ms, prev_device_step_time = 24.1ms, "
        "timestamp = 2026-07-13 09:56:44, num_scheduled_requests = 16, kv_cache_util = N/A, "
        "cached_kv_len = 32000, states = {'num_ctx_requests': 0, 'num_ctx_tokens': 0, "
        "'num_generation_tokens': 20, 'cached_kv_tokens': 32000}, num_active = 16, "
        "num_fetched = 0, num_dummy = 1, num_unscheduled = 0\n"
    ),
}
"""A line at 16 sequences and 25 ms a step, by engine, age and what writes before it."""


@pytest.mark.parametrize("name", VARIANTS)
def test_lines_of_all_ages_and_behind_any_prefix_are_read(name, tmp_path):
    log = log_of(tmp_path, VARIANTS[name] * 3)
    step = logged_step(log)
    assert (log.engine, step.sequences, step.steady) == (
        name.split("'")[0].split()[0].replace("tensorrt-llm", "trtllm"),
        16,
        3,
    )
    assert step.step_s == pytest.approx(0.025)
    assert step.replicas == 1
    if not name.startswith(("vllm", "tensorrt-llm of April")):
        assert step.context == 2000


@pytest.mark.parametrize("name", VARIANTS)
def test_a_line_that_is_cut_anywhere_gives_no_other_number(name, tmp_path):
    line = VARIANTS[name].rstrip("\n")
    whole = logged_step(log_of(tmp_path, line * 1 + "\n" + line + "\n"))
    for end in range(0, len(line), 3):
        log = log_of(tmp_path, f"{line}\n{line}\n{line[:end]}")
        for added in log.lines[2:]:
            assert (added.running, added.step_s, added.tokens_per_s) == (
                *(16, log.lines[0].step_s, log.lines[0].tokens_per_s),
            )
        assert logged_step(log).step_s == whole.step_s


def test_zeros_of_a_rotated_log_do_not_matter(tmp_path):
    text = "\0" * 4096 + "".join(vllm(640.0, 16) for _ in range(3))
    assert logged_step(log_of(tmp_path, text)).steady == 3
    path = tmp_path / "windows.log"
    path.write_text(text.replace("\0", ""), encoding="utf-16")
    assert logged_step(read_engine_log(str(path))).steady == 3


def test_iterations_take_cache_use_from_the_periodic_lines(tmp_path):
    text = VLLM_START + vllm(640.0, 16, 5.0) + VARIANTS["vllm's iterations"] * 4
    step = logged_step(log_of(tmp_path, text))
    assert (step.lines, step.steady) == (4, 4)
    assert step.context == pytest.approx(0.05 * 640_000 / 16)


@pytest.mark.parametrize("prefix", ["vllm-{}  | ", "(ServeReplica:llm:x pid={}) "])
def test_servers_in_one_log_are_replicas_where_they_run_at_once(prefix, tmp_path):
    both = [prefix.format(number % 2 + 1) + vllm(640.0, 16) for number in range(6)]
    step = logged_step(log_of(tmp_path, "".join(both)))
    assert (step.replicas, step.sequences, step.tokens_per_s) == (2, 32, 1280)
    again = logged_step(log_of(tmp_path, "".join(sorted(both))))
    assert (again.replicas, again.sequences, again.tokens_per_s) == (1, 16, 640)


def test_hits_of_the_prefix_cache_are_a_share_of_the_prompts(tmp_path):
    hits = (
        "[2025-09-03 18:33:31 TP0] Prefill batch. #new-seq: 1, #new-token: 25, #cached-token: 75\n"
    )
    assert log_of(tmp_path, hits + sglang(640, 16, 32_000)).hit_share == 0.75
    v0 = "INFO 05-25 06:50:29 [metrics.py:502] Prefix cache hit rate: GPU: 12.50%, CPU: 90.00%\n"
    assert log_of(tmp_path, VARIANTS["vllm v0"] + v0).hit_share == 0.125
    assert log_of(tmp_path, vllm(640.0, 16)).hit_share == 0
    assert log_of(tmp_path, sglang(640, 16, 32_000)).hit_share is None


def test_a_shared_prefix_is_said_on_the_screen(tmp_path, capsys):
    path = tmp_path / "server.log"
    path.write_text(LOADED.replace("hit rate: 0.0%", "hit rate: 40.0%"), encoding="utf-8")
    words = ["measured", "log", str(path), "--chip", "h100-sxm"]
    assert run(words) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert "shared the prefix cache had 40% of the prompts' tokens" in screen
    assert "the context is at least this; --context has another" in screen
    assert run([*words, "--context", "3000"]) == 0
    assert "--context has another" not in capsys.readouterr().out
    path.write_text(LOADED, encoding="utf-8")
    assert run(words) == 0
    assert "shared" not in capsys.readouterr().out


def test_starts_with_other_settings_are_said(tmp_path):
    log = log_of(tmp_path, LOADED + VLLM_START.replace("parallel_size=2", "parallel_size=4"))
    question = log_question(log, logged_step(log), "h100-sxm")
    said = "the log has starts with other settings: tp; the first counts"
    assert said in question.assumed
    assert log_of(tmp_path, LOADED + VLLM_START).restarts == []


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("hello\n", (), "has no line on decode steps"),
        ("", (), "has no line on decode steps"),
        ("\0\0\n", (), "is no text"),
        (vllm(0.0, 0) * 2, (), "all 2 lines are idle"),
        (vllm(9.0, 1) + vllm(9.0, 9) + vllm(9.0, 90), (), "--model is needed"),
        (LOADED + sglang(800, 8, 8000), (), "has lines of vllm and sglang"),
        (LOADED, ("--running", "7"), "--running is 7, which no steady line has"),
        (LOADED, ("--model", "blah"), "'blah', which is no model"),
        (LOADED, ("--split", "xx"), "'xx', which is no split"),
        (vllm(800.0, 8) * 3, ("--model", "qwen3-8b"), "--context is needed"),
        (LOADED.replace("Qwen3-8B", "Mine"), (), "the log names '/hub/Qwen/Mine', no model"),
        (LOADED.replace("quant", "pipeline_parallel_size=2, quant"), (), "2 pipeline stages"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path, capsys, text, options, message):
    path = tmp_path / "server.log"
    path.write_text(text, encoding="utf-8")
    assert run(["measured", "log", str(path), "--chip", "h100-sxm", *options]) == 1
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line


def test_files_that_are_no_logs_are_one_line(tmp_path, capsys):
    for path in (tmp_path / "absent.log", tmp_path):
        assert run(["measured", "log", str(path), "--chip", "h100-sxm"]) == 1
        assert len(capsys.readouterr().err.strip().splitlines()) == 1
