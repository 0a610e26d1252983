"""Only changed charts are drawn again, in one process or several."""

import json
import multiprocessing
import os
from typing import Any

import pytest
from case_files import case
from processes import python
from threshold_files import write_threshold_files

import rooflines
from rooflines import RooflinesError
from rooflines.charts import chart_job
from rooflines.charts.chart_job import write_charts
from rooflines.results.records import RECORDS_FOLDER, files_in, made_with, record_of
from rooflines.run.plan import plan

CONFIG: dict[str, Any] = case("configs/three-charts")
IDS = ("chips-own", "watts", "critical-own")


def planned(**keys):
    return plan(rooflines.load_config({**CONFIG, **keys}))


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "results"
    (folder / RECORDS_FOLDER).mkdir(parents=True)
    write_threshold_files(planned(), "thresholds.parquet", folder)
    return folder


def draw(results, of):
    """Run the job; the inode of each file of the charts, by its name."""
    write_charts(of.charts_spec(), results, results.parent)
    files = (results / "charts").rglob("*")
    return {
        file.name: file.stat().st_ino
        for file in files
        if file.is_file() and file.name != "index.json"
    }


def redrawn(before, after):
    return {
        chart
        for chart in IDS
        for name, inode in after.items()
        if name.startswith((f"{chart}.", f"{chart}-")) and before.get(name) != inode
    }


def test_an_edit_redraws_one_chart_of_a_family(results):
    first = draw(results, planned())
    assert redrawn({}, first) == set(IDS)
    titled = [{**CONFIG["charts"][0], "title": "Other words"}, *CONFIG["charts"][1:]]
    second = draw(results, planned(charts=titled))
    assert redrawn(first, second) == {"chips-own"}
    assert "Other words" in (results / "charts/chips/chips-own.vl.json").read_text()
    for family in (titles := planned(charts=titled)).families():
        record = record_of(results, results / "charts" / family)
        assert record is not None
        assert record.spec == json.loads(titles.spec(f"charts/{family}"))
        assert record.damage(results / "charts" / family) is None
    assert len(list((results.parent / "drawn").glob("*/*"))) == len(IDS) + 1, "old ones are removed"


def test_an_edit_of_a_chip_changes_the_charts_that_show_it():
    def shown(bytes_per_s):
        own = {"base": "b200", "memory.hbm.bytes_per_s": bytes_per_s, "source": "a test"}
        sweep = {**CONFIG["sweeps"]["own"], "chips": ["h100-sxm", "own"]}
        with_it, without_it = CONFIG["charts"][2], {**CONFIG["charts"][1], "chips": ["h100-sxm"]}
        keys = {"sweeps": {"own": sweep}, "charts": [with_it, without_it]}
        specs = json.loads(planned(**keys, chips={"own": own}).charts_spec())["families"]
        return {name: family["shown"] for name, family in specs.items()}

    before, after = shown(8e12), shown(7e12)
    assert before["critical"] != after["critical"]
    assert before["chips"] == after["chips"]


def test_a_drawn_chart_that_was_changed_or_is_of_other_versions_is_not_used_again(
    results, monkeypatch
):
    first = draw(results, planned())
    picture = results / "charts/chips/chips-own.png"
    content = picture.read_bytes()
    with picture.open("r+b") as file:
        file.write(b"\0")
    second = draw(results, planned())
    assert redrawn(first, second) == {"chips-own"}
    assert picture.read_bytes() == content
    now = made_with()
    monkeypatch.setattr(chart_job, "made_with", lambda: {**now, "altair": "0"})
    assert redrawn(second, draw(results, planned())) == set(IDS)


def test_formats_are_those_of_the_config(results):
    always = {"-small.png", ".vl.json", "-views.json", ".csv", ".parquet"}
    pictures = {"svg": {".svg"}, "png": {".png"}, "pdf": {".pdf"}}
    for formats in (["svg"], ["png", "pdf"]):
        draw(results, planned(charts=CONFIG["charts"][2:], formats=formats))
        names = {
            name.removeprefix("critical-own") for name in files_in(results / "charts/critical")
        }
        assert names == always.union({"index.json"}, *(pictures[each] for each in formats))
    with pytest.raises(RooflinesError, match=r"formats\[0\] is 'gif'.\n  fix: use 'png'"):
        planned(formats=["gif"])


SEVERAL = """
import json, sys
from pathlib import Path
from rooflines.charts.chart_job import write_charts
spec, results, drawn = sys.argv[1:]
write_charts(spec, results, Path(drawn), 2)
"""


def test_several_processes_draw_the_same(results, tmp_path):
    draw(results, planned())
    alone = {file: file.read_bytes() for file in results.rglob("charts/*/*") if file.is_file()}
    spec = planned().charts_spec()
    python("-c", SEVERAL, spec, results, tmp_path / "again")
    assert {file: file.read_bytes() for file in alone} == alone
    wrong = json.loads(spec)
    wrong["families"]["critical"]["charts"][0]["chips"] = ["none"]
    wrong["families"]["critical"]["shown"] = ["0"]
    done = python("-c", SEVERAL, json.dumps(wrong), results, tmp_path / "third", status=1)
    assert "RooflinesError" in done.stderr
    assert "'none'" in done.stderr


def test_a_process_that_draws_ends_with_the_job():
    fork = multiprocessing.get_context("fork")
    read, write = os.pipe()

    def parent():
        def child():
            chart_job._end_with_parent()  # noqa: SLF001, the start of each process
            multiprocessing.Event().wait()

        fork.Process(target=child).start()
        os._exit(0)

    starter = fork.Process(target=parent)
    starter.start()
    starter.join()
    os.close(write)
    assert os.read(read, 1) == b"", "the pipe is open as long as one of them lives"
