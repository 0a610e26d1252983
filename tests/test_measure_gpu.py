"""`rooflines measured measure --backend torch`, on a torch that is made up."""

import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from rooflines.basics.errors import RooflinesError
from rooflines.cli import main as cli
from rooflines.measured import gpu
from rooflines.measured.gpu import FORMATS, Gpu
from rooflines.measured.timed_shapes import MatmulSizes

MATMUL_S = 2e-6
"""The time of every matmul."""


class Tensor:
    """A flat array, or a matrix of it: where it starts and how long it is."""

    def __init__(self, length, start=0):
        self.length, self.start = length, start
        self.nbytes, self.dtype = 4 * length, "bfloat16"
        self.sub_ = self.to = self.t = self.reshape = lambda *_: self

    def __len__(self):
        return self.length

    def __getitem__(self, part):
        return Tensor(part.stop - part.start, part.start)


class Torch:
    """Stand-in for torch: time passes where a matmul runs, and graphs repeat it."""

    def __init__(self, capability):
        self.now = 0.0
        self.starts: list[int] = []
        facts = SimpleNamespace(name="NVIDIA H200", L2_cache_size=2**20, total_memory=2**34)
        self.cuda = SimpleNamespace(
            is_available=lambda: capability is not None,
            get_device_capability=lambda *_: capability,
            get_device_properties=lambda _: facts,
            mem_get_info=lambda: (2**30, 2**34),
            Event=lambda **_: self.event(),
            CUDAGraph=lambda: SimpleNamespace(replay=self.replay),
            graph=lambda _: self.captured(),
            clock_rate=self.no_nvml,
        )
        self.backends = SimpleNamespace(cuda=SimpleNamespace(matmul=SimpleNamespace()))
        self.__version__ = "2"
        kind = SimpleNamespace(itemsize=2)
        self.bfloat16 = self.float16 = self.float8_e4m3fn = kind
        self.rand = self.empty = lambda count, **_: Tensor(count)
        self.ones = lambda *_, **__: None
        self._scaled_mm = lambda x, w, *_, **__: self.mm(x, w, None)
        self.add = self.dot = lambda *_, **__: self.mm(Tensor(1), None, None)

    def no_nvml(self):
        raise ModuleNotFoundError

    def mm(self, x, w, out):
        del w, out
        self.starts.append(x.start)
        self.now += MATMUL_S

    def captured(self):
        self.starts.clear()
        return nullcontext()

    def replay(self):
        self.now += MATMUL_S * len(self.starts)

    def event(self):
        made = SimpleNamespace(synchronize=lambda: None)
        made.record = lambda: setattr(made, "at", self.now)
        made.elapsed_time = lambda end: 1000 * (end.at - made.at)
        return made


@pytest.fixture
def torch_of(monkeypatch):
    """Puts a torch in place that sees a GPU of a compute capability; None: no GPU."""

    def put(capability):
        made = Torch(capability)
        monkeypatch.setitem(sys.modules, "torch", made)
        gpu._torch.cache_clear()  # noqa: SLF001
        return made

    yield put
    gpu._torch.cache_clear()  # noqa: SLF001


@pytest.mark.parametrize("dtypes", ["bf16", "fp8-out-bf16"])
@pytest.mark.parametrize("shape", [MatmulSizes(1, 64, 64), MatmulSizes(512, 1024, 2048)])
def test_a_graph_passes_more_than_the_cache(torch_of, dtypes, shape):
    torch = torch_of((9, 0))
    timed = Gpu(dtypes, Gpu.machine(), [shape])
    assert timed.seconds(shape) == pytest.approx(MATMUL_S)
    bytes_each = 2 * (shape.B * shape.D + shape.D * shape.F + shape.B * shape.F)
    assert len(torch.starts) * bytes_each >= 2 * 2**20 or len(torch.starts) == gpu.MAX_MATMULS
    assert len(torch.starts) * MATMUL_S >= gpu.GRAPH_S * 0.999
    assert all(start % 256 == 0 for start in torch.starts)
    assert timed.contents == ("static scales" if dtypes.startswith("fp8") else None)
    assert timed.state() == (None, None)


@pytest.mark.parametrize(
    ("add_s", "dot_s", "moved"), [(2e-6, 2e-6, 3 / 2e-6), (2e-6, 1e-6, 2 / 1e-6)]
)
def test_the_memory_rate_is_that_of_the_faster_of_adding_and_reading(torch_of, add_s, dot_s, moved):
    """Three arrays pass in an addition, two in a dot product, of a sixteenth of what is free."""
    torch = torch_of((9, 0))
    shape = MatmulSizes(1, 64, 64)
    timed = Gpu("bf16", Gpu.machine(), [shape])

    def taking(seconds):
        return lambda *_, **__: setattr(torch, "now", torch.now + seconds)

    torch.add, torch.dot = taking(add_s), taking(dot_s)
    assert timed.bytes_per_s() == pytest.approx(moved * 2**30 / 16)


def test_usual_dtypes_are_those_of_the_gpu(torch_of):
    for capability, usual in (((7, 5), "fp16"), ((8, 0), "bf16"), ((9, 0), "bf16,fp8-out-bf16")):
        torch_of(capability)
        assert Gpu.default_dtypes() == usual
        assert Gpu.machine().version == "torch 2"


@pytest.mark.parametrize(
    ("capability", "typed", "message"),
    [
        (None, "", "finds no GPU with torch"),
        ((7, 5), "--dtypes bf16", "is 'bf16', which NVIDIA H200 does not multiply"),
        ((9, 0), "--dtypes int8", "no dtype that torch multiplies here"),
        ((9, 0), "--chip h300", "--chip is 'h300', which is no chip"),
    ],
)
def test_what_torch_cannot_time_is_told(torch_of, capsys, capability, typed, message):
    torch_of(capability)
    assert cli.run(["measure", "--backend", "torch", *typed.split()]) == 2
    assert message in capsys.readouterr().err


def test_a_chip_is_named_as_elsewhere(torch_of, capsys, tmp_path, monkeypatch):
    torch_of((9, 0))
    monkeypatch.chdir(tmp_path)
    assert cli.run(["measure", "--backend", "torch", "--chip", "h100", "--out", "x.csv"]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("h100 is taken as h100-sxm, the usual one")
    assert "--out is 'csv', which is no format" in printed
    assert "NVIDIA H200 is measured as h100-sxm, as --chip says" in printed
    assert cli.run(["measure", "--backend", "torch", "--chip", "h200", "--out", "x.csv"]) == 2
    assert "is measured as" not in capsys.readouterr().err


def test_fp8_takes_sides_in_steps(torch_of):
    torch_of((9, 0))
    with pytest.raises(RooflinesError, match="D=100 and F=64; torch multiplies fp8-out-bf16 in mu"):
        Gpu("fp8-out-bf16", Gpu.machine(), [MatmulSizes(3, 100, 64)])
    assert FORMATS["fp8-out-bf16"].step == 16


def test_torch_may_be_missing(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    gpu._torch.cache_clear()  # noqa: SLF001
    assert cli.run(["measure", "--backend", "torch"]) == 2
    assert "needs torch, which is not installed" in capsys.readouterr().err
