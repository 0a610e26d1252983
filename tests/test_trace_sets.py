"""Traces in a config: what is refused, what the plan depends on, tables, comparison and page."""

import json
from itertools import chain
from urllib.parse import parse_qsl

import polars as pl
import pytest
from example_trace import write_examples
from traced import event, kernel, launch, write_trace

from rooflines.basics.errors import RooflinesError
from rooflines.loading import load_config
from rooflines.results.folders import TRACE_CHANGES_FILE, TRACE_TABLES
from rooflines.run.plan import plan
from rooflines.run.trace_jobs import explorer_address, write_trace_changes
from rooflines.run.trace_jobs import write_trace as write_outputs
from rooflines.site.pages import TEMPLATES
from rooflines.site.trace_page import trace_files, trace_views
from rooflines.traces.call_frames import call_frame
from rooflines.traces.laid_traces import lay_trace

CONFIG = """
charts: []
traces:
  decode: {file: step.json}
  tuned: {file: [after.json], before: decode, chip: h100}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A config with two traces, and the results of their jobs."""
    path = tmp_path_factory.mktemp("traces")
    write_examples(path)
    (path / "config.yaml").write_text(CONFIG, encoding="utf-8")
    planned = plan(load_config(path / "config.yaml"))
    results = path / "results"
    (results / "tables" / "traces").mkdir(parents=True)
    (results / "traces").mkdir()
    for name in ("decode", "tuned"):
        table = f"{TRACE_TABLES}/{name}.parquet"
        write_outputs(planned.spec(table), results / table, results / "traces" / name)
    write_trace_changes(planned.spec(TRACE_CHANGES_FILE), results / TRACE_CHANGES_FILE)
    return path


def test_a_table_adds_up_to_the_span(folder):
    calls = pl.read_parquet(folder / "results" / TRACE_TABLES / "decode.parquet")
    span_s = (calls["start_s"] + calls["seconds"]).max()
    idle = calls.select(pl.sum_horizontal("idle_host_s", "idle_call_s", "idle_device_s"))
    assert calls["seconds"].sum() + idle.sum().item() == pytest.approx(span_s)


def test_a_comparison_closes_on_both_spans(folder):
    changes = pl.read_csv(folder / "results" / TRACE_CHANGES_FILE)
    for name, column in (("decode", "before_s"), ("tuned", "after_s")):
        calls = pl.read_parquet(folder / "results" / TRACE_TABLES / f"{name}.parquet")
        idle = calls.select(pl.sum_horizontal("idle_host_s", "idle_call_s", "idle_device_s"))
        span_s = calls["seconds"].sum() + idle.sum().item()
        assert changes[column].sum() == pytest.approx(span_s, abs=1e-12)
    assert changes["shape"][0] == "64x4096 4096x6144"
    assert changes["change_s"][0] == pytest.approx(-98e-6)


def test_the_page_has_screens_pictures_and_changes(folder):
    results = folder / "results"
    folders = ((results / place).iterdir() for place in ("traces", TRACE_TABLES))
    outputs = [*chain(*folders), results / TRACE_CHANGES_FILE]
    views = {view["name"]: view for view in trace_views(sorted(outputs))}
    files = dict(trace_files(outputs))
    assert "kernels take 1.53 times their bound" in views["decode"]["screens"][0]
    assert {picture["path"] for view in views.values() for picture in view["pictures"]} <= {*files}
    assert views["decode"]["changes"] == []
    assert views["tuned"]["changes"][-1] == ("the span: the sum", "1.34 ms", "1.2 ms", "-135 µs")
    page = TEMPLATES.get_template("traces.html").render(
        policy="",
        version="",
        site={},
        has_traces=True,
        has_scenarios=False,
        card="",
        card_text="",
        file="",
        traces=[*views.values()],
    )
    assert "What changed since decode" in page
    assert page.count("<img src=") == 1 + 6


def test_a_changed_file_changes_what_its_job_depends_on(folder, tmp_path):
    write_examples(tmp_path)
    text = (tmp_path / "step.json").read_text(encoding="utf-8")
    (tmp_path / "step.json").write_text(f"{text} ", encoding="utf-8")
    (tmp_path / "config.yaml").write_text(CONFIG, encoding="utf-8")
    digests = [
        [
            *json.loads(plan(load_config(path / "config.yaml")).spec(table))["traces"][0][
                "paths"
            ].values()
        ]
        for path in (folder, tmp_path)
        for table in (f"{TRACE_TABLES}/decode.parquet", f"{TRACE_TABLES}/tuned.parquet")
    ]
    assert digests[0] != digests[2]
    assert digests[1] == digests[3]


def test_a_decode_step_of_a_model_opens_in_the_explorer(tmp_path):
    layer = (
        "rmsnorm",
        "gemm_qkv",
        "rope",
        "flash_fwd",
        "gemm_o",
        "rmsnorm",
        "gemm_up",
        "gemm_down",
    )
    events = [launch(1, 50.0, name="cudaGraphLaunch")]
    for place, name in enumerate([*layer * 36, "rmsnorm", "gemm_head"]):
        events.append(kernel(name, 1, 100.0 + 1000.0 * place, 1000.0))
    sums = "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)"
    events.append(event("user_annotation", sums, 0.0, 1000.0 * len(events)))
    laid = lay_trace(write_trace(tmp_path / "graph.json", events), model="qwen3-8b")
    address = explorer_address(laid, call_frame(laid)) or ""
    state = dict(parse_qsl(address.partition("#")[2]))
    step_s = laid.span_s - laid.total.break_ns / 1e9
    assert state["measured"] == f"{step_s * 1e3:.6g}ms"
    assert (state["chips"], state["model"], state["B"], state["S"]) == (
        *("h100-sxm", "qwen3-8b"),
        *("32", "1025"),
    )


def test_a_trace_has_another_name_than_the_files_of_tables(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(RooflinesError, match=r"traces.part-0 is a name of"):
        load_config({"traces": {"part-0": {"file": "step.json"}}})


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        ({"file": "absent.json"}, "traces.decode.file.*absent.json, which does not exist"),
        ({"file": "step.json", "chip": "h1000"}, "traces.decode.chip is 'h1000'"),
        ({"file": "step.json", "model": "blah"}, "traces.decode.model is 'blah'"),
        ({"file": "step.json", "before": "other"}, "traces.decode.before is 'other'"),
        ({"file": "step.json", "before": "decode"}, "'decode', the trace itself"),
        ({"file": "step.json", "tp": 0}, "traces.decode.tp is 0"),
        ({"file": "step.json", "capture": "no.json"}, "traces.decode.capture"),
        ({"files": "step.json"}, "traces.decode"),
    ],
)
def test_a_mistake_in_a_trace_names_its_place(folder, monkeypatch, trace, message):
    monkeypatch.chdir(folder)
    with pytest.raises(RooflinesError, match=message):
        load_config({"traces": {"decode": trace}})
