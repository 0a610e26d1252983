"""`rooflines measure`: which shapes, how they are timed, and what is kept; no time is asserted."""

import sys
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import yaml
from command_line import refused

from rooflines.answers.question_words import read_words
from rooflines.basics.errors import RooflinesError
from rooflines.cli import measure
from rooflines.fits.timing_tables import read_timings
from rooflines.fits.timings import DTYPES
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.loading import load_config
from rooflines.measured import blas
from rooflines.measured.blas import Blas
from rooflines.measured.machine import Host, chip_of, config_text, this_processor, timings_source
from rooflines.measured.multiplier import REFERENCE, STREAM_COUNT, MachineState, Multiplier
from rooflines.measured.session import Session
from rooflines.measured.timed_shapes import MatmulSizes, choose_shapes, read_shapes

MACHINE = Host("Example CPU (R) 9000 @ 3.00GHz", 2, 2**20, 2**34, "openblas", "openblas 1, numpy 2")

FLOPS_PER_S, BYTES_PER_S = 1e11, 2e10
"""Rates of the multiplication that is made up."""


class Known(Blas):
    """A multiplication that takes known times: the first run of a shape is the slowest."""

    def __init__(self, dtypes="fp32"):
        Multiplier.__init__(self, dtypes, MACHINE, [REFERENCE])
        self.calls: list[MatmulSizes] = []
        self.stop_after: int | None = None

    def seconds(self, shape):
        """A time in proportion to the work, longer by the number of the run modulo three."""
        self.calls.append(shape)
        if self.stop_after is not None and len(self.calls) > self.stop_after:
            raise KeyboardInterrupt
        run = self.calls.count(shape)
        return 2 * shape.B * shape.D * shape.F / FLOPS_PER_S * (1 + 0.1 * (run % 3))

    def bytes_per_s(self):
        return BYTES_PER_S

    def state(self):
        """A known clock, and a power that grows."""
        return MachineState(1755, len(self.calls))


SHAPES = [MatmulSizes(B, 2048, 1024) for B in range(2, 32)]
"""Thirty shapes: a block of twenty, and one of ten."""


def session(path, machine=MACHINE, chip=None):
    return Session.resume(path, machine, chip or machine.id, {"date": "2026-01-01"})


def test_shapes_fill_the_ranges():
    shapes = choose_shapes(90, Blas.SHAPE_RANGE, [], 1e12, "fp32")
    assert shapes == choose_shapes(90, Blas.SHAPE_RANGE, [], 1e12, "fp32")
    assert len(set(shapes)) == 90
    assert all(2 <= shape.B <= 4096 for shape in shapes)
    middle = [shape for shape in shapes if 65 <= shape.B <= 1024]
    assert len(middle) >= 30
    assert min(shape.B for shape in shapes) < 5
    assert max(shape.B for shape in shapes) > 3000
    assert len({(shape.D, shape.F) for shape in shapes}) > 40


def test_shapes_are_read(tmp_path):
    (tmp_path / "s.csv").write_text("F,D,B\n3000,1000,7\n70,512,9\n", encoding="utf-8")
    assert read_shapes(tmp_path / "s.csv") == (
        [MatmulSizes(7, 1000, 3000), MatmulSizes(9, 512, 70)],
        [],
    )
    (tmp_path / "s.csv").write_text("D,F\n1000,3000\n512,70\n1000,3000\n", encoding="utf-8")
    assert read_shapes(tmp_path / "s.csv") == ([], [(1000, 3000), (512, 70)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("D,G\n1,2\n", "s.csv lacks F."),
        ("D,F\n", "s.csv has no rows."),
        ("D,F\n0,2\n", "s.csv: row 1.D is 0"),
        ("D,F\n1,2.5\n", "s.csv: row 1.F is 2.5, which is no whole number"),
        ("", "s.csv is empty."),
    ],
)
def test_wrong_shapes_are_told(tmp_path, text, message):
    path = tmp_path / "s.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RooflinesError) as raised:
        read_shapes(path)
    assert message in str(raised.value).replace(str(tmp_path) + "/", "")


def test_timings_are_medians_of_interleaved_runs(tmp_path):
    blas = Known()
    session(tmp_path / "t.parquet").time(blas, SHAPES[:2], lambda _: None)
    frame = read_timings(tmp_path / "t.parquet").frame
    row = frame.row(0, named=True)
    alone = 2 * 2 * 2048 * 1024 / FLOPS_PER_S
    assert row["seconds"] == pytest.approx(1.1 * alone)
    assert row["seconds_min"] == pytest.approx(alone)
    assert row["seconds_iqr"] == pytest.approx(0.2 * alone)
    assert row["runs"] == 7 * 20  # each visit of 84 µs is filled with twenty runs
    ring = 2 * 2**20 + 3 * 4 * 2048**2
    assert row["copies"] == ring // (4 * (2 * 2048 + 2048 * 1024 + 2 * 1024))
    assert row["clock_mhz"] == 1755
    assert (row["chip"], row["software"], row["compute"]) == (MACHINE.id, "openblas", "fp32")
    visits = [one for one, other in zip(blas.calls, blas.calls[1:], strict=False) if one != other]
    assert visits.count(SHAPES[0]) >= 7


def test_a_session_goes_on_where_it_was_interrupted(tmp_path):
    path = tmp_path / "t.parquet"
    blas = Known()
    done: list[int] = []
    blas.stop_after = 2900  # the first block takes 21 + 7 * (20 * 20 + 1) runs
    with pytest.raises(KeyboardInterrupt):
        session(path).time(blas, SHAPES, done.append)
    assert done == [20]
    again = session(path)
    left = again.missing("fp32", SHAPES)
    assert left == SHAPES[20:]
    assert again.missing("fp64", SHAPES) == SHAPES
    again.time(Known(), left, done.append)
    assert done == [20, 10]
    sizes = read_timings(path).frame.select("B", "D", "F").rows()
    assert sizes == [tuple(shape) for shape in SHAPES]


def test_a_session_of_another_machine_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    session(path).time(Known(), SHAPES[:1], lambda _: None)
    others = (replace(MACHINE, threads=1), None), (MACHINE, "h100-sxm")
    for machine, chip in others:
        with pytest.raises(RooflinesError, match="holds timings of 'Example CPU"):
            session(path, machine, chip)
    pl.DataFrame({"a": [1]}).write_parquet(path)
    with pytest.raises(RooflinesError, match="does not say what made it"):
        session(path)


def test_the_machine_becomes_a_chip(tmp_path):
    one = session(tmp_path / "t.parquet")
    one.time(Known(), SHAPES[:1], lambda _: None)
    chip = chip_of(one.about)
    assert chip.units["matrix"]["fp32"].flops_per_s == FLOPS_PER_S
    assert chip.memory["hbm"].bytes_per_s == BYTES_PER_S
    assert chip.memory["hbm"].capacity_bytes == 2**34
    cache = chip.last_level_cache
    assert cache is not None
    assert cache.capacity_bytes == 2**20
    config = load_config(yaml.safe_load(config_text(one.about, None)))
    assert config.sweep("matmul").rows > 10
    assert list(config.sweeps["matmul"].rows_by_chip()) == ["example-cpu-9000-3-00ghz-2-threads"]
    unknown = {**one.about, "machine": {**one.about["machine"], "cache_bytes": None}}
    assert chip_of(unknown).last_level_cache is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("AMD EPYC(TM) 9654 96-Core Processor", "amd-epyc-9654-96-core-processor-2-threads"),
        ("???", "cpu-2-threads"),
        ("x" * 99, f"{'x' * 60}-2-threads"),
    ],
)
def test_an_id_is_a_name(name, expected):
    assert replace(MACHINE, name=name).id == expected


@pytest.fixture
def pieces(monkeypatch):
    import numpy as np  # noqa: PLC0415, an extra

    found: list[tuple[int, int]] = []
    matmul = np.matmul

    def seen(x, w, out):
        for operand in (x, w):
            start = operand.__array_interface__["data"][0]
            found.append((start, start + operand.nbytes))
        matmul(x, w, out=out)

    monkeypatch.setattr(np, "matmul", seen)
    return found


@pytest.mark.parametrize(
    "shape", [MatmulSizes(2, 64, 64), MatmulSizes(64, 300, 500), MatmulSizes(3, 700, 900)]
)
def test_operands_have_left_the_cache(shape, pieces):
    machine = replace(MACHINE, cache_bytes=2**20)
    blas = Blas("fp32", machine, [shape])
    for _ in range(400):
        assert blas.seconds(shape) > 0
    read, last = 0, dict[int, int]()
    for start, end in pieces:
        read += end - start
        if start in last:
            assert read - last[start] >= 2**20
        last[start] = read
    assert len(pieces) > len(last)  # some were used again


def test_a_gpu_of_the_catalogue_is_no_new_chip(tmp_path):
    gpu = Host("NVIDIA H200", None, 60 * 2**20, 2**37, "torch", "torch 2")
    one = session(tmp_path / "t.parquet", gpu, "h200-sxm")
    one.time(Known("fp8-out-bf16"), SHAPES[:2], lambda _: None)
    row = one.frame.row(0, named=True)
    assert [row[name] for name in DTYPES] == ["fp8", "fp8", "bf16", "fp8"]
    assert (row["chip"], row["software"]) == ("h200-sxm", "torch")
    assert one.missing("fp8-out-bf16", SHAPES) == SHAPES[2:]
    assert one.missing("bf16", SHAPES) == SHAPES
    assert list(one.about["flops_per_s"]) == ["fp8"]
    assert one.about["watts"]["fp8-out-bf16"] > 100
    assert chip_of(one.about) is chip_entries()["h200-sxm"]
    made = yaml.safe_load(config_text(one.about, "../calibrations/h200-sxm-torch.yaml"))
    assert "chips" not in made
    assert made["calibrations"] == ["../calibrations/h200-sxm-torch.yaml"]
    assert made["sweeps"]["matmul"]["calibration"] == "torch"
    assert gpu.id == "nvidia-h200"
    assert timings_source(one.about) == "rooflines measured measure, torch 2"


def test_every_driver_name_is_of_one_chip():
    chips = chip_entries()
    for name, chip in chips.items():
        for alias in chip.aliases or ():
            assert read_words([alias], chips).chips == [name]


def test_arrays_beyond_the_memory_are_refused():
    machine = replace(MACHINE, cache_bytes=2**30, memory_bytes=2**32)
    with pytest.raises(RooflinesError, match=r"would need 4\.\d+ GB of the 4\.29 GB of memory"):
        Blas("fp64", machine, [REFERENCE])


def test_this_processor_is_known():
    machine = this_processor()
    import scipy.linalg  # noqa: F401, PLC0415, brings a BLAS library of its own

    assert this_processor() == machine
    assert machine.name
    assert (machine.threads or 0) >= 1
    assert machine.memory_bytes > 2**28
    assert machine.software in machine.version


def test_the_memory_rate_counts_every_byte_of_the_faster_of_adding_and_reading(monkeypatch):
    """On a clock by which each of them takes a millisecond: adding passes three arrays, not two."""
    import numpy as np  # noqa: PLC0415, an extra

    added: list[int] = []
    add = np.add

    def seen(one, other, out):
        added.append(one.nbytes + other.nbytes + out.nbytes)
        add(one, other, out=out)

    ticks = count()
    monkeypatch.setattr(np, "add", seen)
    clock = SimpleNamespace(perf_counter=lambda: next(ticks) / 1000)
    monkeypatch.setattr(blas, "time", clock)
    machine = replace(this_processor(), cache_bytes=2**20)
    rate = Blas("fp64", machine, [MatmulSizes(8, 64, 64)]).bytes_per_s()
    assert rate == pytest.approx(sum(added) / STREAM_COUNT / 1e-3)
    assert sum(added) / STREAM_COUNT > 3 * 2**20  # arrays beyond the cache


def test_numpy_may_be_missing(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    error = refused(capsys, "measure")
    assert "needs threadpoolctl, which is not installed" in error
    assert "`make setup`" in error
    assert "`pip install 'threadpoolctl'`" in error


def test_the_drift_of_a_session_is_of_its_slowest_time_over_its_fastest(
    tmp_path, monkeypatch, capsys
):
    for name, nothing in (("_rates", ()), ("_calibrate", None)):
        monkeypatch.setattr(measure, name, lambda *_, nothing=nothing: nothing)
    monkeypatch.setattr(measure, "config_text", lambda *_: "")
    times = {"fp32": [1.0, 1.5, 1.0], "fp64": [2.0, 2.1, 2.0]}
    about, frame = {"reference_s": times}, pl.DataFrame({"seconds": [1.0]})
    made: Any = SimpleNamespace(about=about, frame=frame, path=tmp_path / "m.parquet")
    measure._finish(made, Known)  # noqa: SLF001, what a session ends with
    shown = capsys.readouterr().out
    assert "fp32: the reference matmul drifted by up to 50%" in shown
    assert "fp64: the same" not in shown
