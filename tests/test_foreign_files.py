"""Files of other tools: every command names them, reads them, or says what makes what it reads."""

import gzip
import json
import sqlite3
from fractions import Fraction

import polars as pl
import pytest
from case_files import CASES, case
from command_line import said

from rooflines.basics.errors import RooflinesError
from rooflines.basics.file_kinds import FIXES, check_kind, file_kind, file_kinds
from rooflines.cli.main import run
from rooflines.fits.named_devices import device_note
from rooflines.fits.nsight import read_launches
from rooflines.fits.rocm_counters import read_dispatches
from rooflines.fits.timing_tables import read_timings

FILES, LAYOUTS = CASES / "foreign", CASES / "layouts"
TABLE = case("foreign")

SQLITE = {"nsys.sqlite": "CUPTI_ACTIVITY_KIND_KERNEL", "rocprofv3.db": "rocpd_kernel_dispatch"}
"""Databases, with a table of each."""

COMMANDS = {
    "kernels": ["measured", "kernels", "FILE", "--chip", "h100-sxm"],
    "calibrate": ["measured", "calibrate", "FILE", "--chip", "h100-sxm", "--software", "mine"],
    "join": ["measured", "join", "FILE", "--where", "chip=h100-sxm"],
    "judge": ["measured", "judge", "FILE", "--where", "chip=h100-sxm"],
    "models": ["list", "models", "FILE"],
    "explain": ["explain", "h100-sxm", "FILE", "B=1", "S=1024"],
    "train": ["train", "h100-sxm", "FILE", "B=8", "S=1024"],
    "check": ["check", "FILE"],
    "config": ["explain", "h100-sxm", "64x64x64", "--config", "FILE"],
    "fits": ["measured", "join", str(CASES / "timings.csv"), "--calibrations", "FILE"],
    "shapes": ["measured", "measure", "--backend", "numpy", "--shapes", "FILE"],
}

MORE = {
    "GEMM.csv": {"calibrate": ["--dtype", "bf16"]},
    "hipblaslt-bench.txt": {"calibrate": ["--dtype", "bf16"]},
    "m-n-k-us.txt": {"calibrate": ["--dtype", "bf16"], "join": ["--where", "compute=bf16"]},
    "mnk.csv": {"calibrate": ["--dtype", "bf16"], "join": ["--where", "compute=bf16"]},
    "aiconfigurator-nccl.csv": {"calibrate": ["--software", "nccl"]},
    "aiconfigurator-attention.csv": {"calibrate": ["--software", "vllm"]},
    "aiconfigurator-moe.csv": {"calibrate": ["--software", "vllm"]},
    "vllm-serve.json": {"join": ["--where", "tp=1"]},
    "sglang-serve.jsonl": {"join": ["--where", "tp=1", "--where", "model=llama-3.1-8b"]},
    "pmc_perf.csv": {"kernels": ["--chip", "mi300x"]},
    "rocprofv3-counters.csv": {"kernels": ["--chip", "mi300x"]},
}
"""Options for commands with facts that a file does not state."""

SAME_AS = {"judge": "join", "train": "explain", "config": "check"}
"""Commands that read what another one reads."""

AMD = ("rocprof", "pmc_perf", "hipblaslt", "torch-trace", "rocprofv3")


@pytest.fixture
def path_of(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def path(name):
        if name not in SQLITE:
            return FILES / name
        with sqlite3.connect(tmp_path / name) as database:
            database.execute(f"CREATE TABLE {SQLITE[name]} (start INTEGER, end INTEGER)")
        return tmp_path / name

    return path


FEW = ("ncu-raw.csv", "torch-trace.json", "GEMM.csv", "vllm-serve.json", "config.json", "own.yaml")
"""Files that are also given to commands that read what another one does."""

READ = (("config", "own.yaml"), ("fits", "own.yaml"))
"""Files of the chips of a config, which these commands read."""


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (c, name)
        for c in COMMANDS
        for name in TABLE
        if (c not in SAME_AS or name in FEW) and (c, name) not in READ
    ],
)
def test_every_command_reads_a_file_or_says_what_it_is(name, command, path_of, capsys):
    expected, path = TABLE[name], str(path_of(name))
    of = SAME_AS.get(command, command)
    more = MORE.get(name, {}).get(of, [])
    words = [path if word == "FILE" else word for word in COMMANDS[command]]
    status = run([*words, *more])
    printed = capsys.readouterr()
    if of in expected:
        read = {"judge": "errors", "train": "per step", "config": ""}.get(command, expected[of])
        text = printed.out + printed.err
        assert read in text or command in SAME_AS
        if of == "join":
            assert text.startswith(f"{path}, {expected['name']}: ")
        assert f"is {expected['name']}" not in text
        return
    if status == 0 and of in expected.get("may_read", ()):
        return
    assert status == 2
    assert printed.out == ""
    first = printed.err.splitlines()[0] if "as the model" not in printed.err else printed.err
    refused = expected.get("refused", {}).get(of, "")
    assert f"{path} is {expected['name']}" in first
    assert refused in printed.err
    assert printed.err.count("\n  fix: ") == 1
    assert not (name.startswith(AMD) and "ncu --import" in printed.err)


TOLD = [
    ('{"traceEvents": []}', "chrome-trace"),
    ('[{"name": "x", "ph": "B", "ts": 1}]', "chrome-trace"),
    ('{"rocprofiler-sdk-tool": []}', "rocprofv3-json"),
    ("Index,KernelName,gpu-id,queue-id\n0,k,0,0\n", "rocprof"),
    ("workload_name,gpu_model,gpu_arch\nrun,MI300X,gfx942\n", "rocprof-compute-report"),
    ("# nThread 1 nGpus 8 minBytes 8\n", "nccl-tests-log"),
    ('{"results": [{"out_of_place": {"time": 1, "bus_bw": 2}}]}', "nccl-tests-json"),
    ("nccl_dtype,num_gpus,message_size,op_name,latency\n", "aiconfigurator"),
    ('"ID","Issues Detected","Function Name","Demangled Name","Duration"\n', "ncu-window"),
    ("==12== NVPROF is profiling process 12\n", "nvprof"),
    (" ** CUDA Summary:\n\n Time (%)  Total Time (ns)  Instances\n", "nsys-table"),
    ('[{"Time (%)": 51.2, "Total Time (ns)": 912}]', "nsys-table"),
    ("Time (%),Total Time (us),Instances\n", "nsys-table"),
    ("  Name    Self CPU %      Self CPU   CPU total %\n", "pytorch-table"),
    ('{"schema": "1.1.1-chakra", "pid": 1, "nodes": []}', "execution-trace"),
    ('{"byCategory": {}, "byProgram": {}, "deviceType": "TPU v5p"}', "xprof-table"),
    ("Rank,Host/device,Type,Operation,#Occurrences\n", "xprof-table"),
    ("transA,transB,M,N,K,rocblas-Gflops,us\n", "rocblas-bench"),
    ("idx,m,n,k,us\n", "sized"),
    (
        '{"request_latency": {}, "time_to_first_token": {}, "inter_token_latency": {}}',
        "genai-perf",
    ),
    ("Metric,avg,min,max\nInter Token Latency (ms),9,8,10\n", "genai-perf"),
    ("============ Serving Benchmark Result ============\n", "serving-text"),
    ('{"metrics": {"time_to_first_token_ms": {}}}', "guidellm"),
    ('[{"build_commit": "a", "avg_ts": 8393.4}]', "llama-bench"),
    ('{"successful_requests": 64, "last_gen_throughput": 1.0}', "sglang-offline"),
    ('[{"name": "vLLM benchmark", "metric": "requests_per_second"}]', "vllm-throughput"),
    ('{"peft_type": "LORA", "r": 16}', "adapter"),
    ('{"_class_name": "FluxPipeline", "_diffusers_version": "0.30"}', "diffusers"),
    ('{"bits": 4, "group_size": 128, "sym": true}', "quantize-config"),
    ('{"backend": "vllm", "request_throughput": 1.0, "itls": [[0.1', "vllm-serve"),
    ("name: CI\nsteps:\n- run: make\n", None),
    ('{"mean_tpot_ms": 3, "mean_ttft_ms": 3}', "served"),
    ('{"producer": {}, "quantization": {"quant_algo": "FP8"}}', "quant-config"),
    ("<!DOCTYPE html>\n<html>", "html"),
    ("B,D,F\n1,2,3\n", None),
    ("", None),
]
"""Beginnings of files, and their kinds."""


def test_no_kind_is_without_a_file():
    """But those that are told by the end of a name or the first bytes alone."""
    named = {entry["name"] for entry in TABLE.values()}
    others = {"image", "pdf", "html", "zip", "workbook", "sqlite", "xprof-plane", "nsys-export"}
    others |= {"rocprofv3-json", "rocprofv3-trace-other", "rocprof-compute-report", "chrome-trace"}
    others |= {"nccl-tests-log", "served", "sglang-batch", "quant-config", "rocprof", "ncu-window"}
    others |= {"perfetto", "otf2", *(kind for _, kind in TOLD if kind)}
    assert {kind.id for kind in file_kinds() if kind.name not in named} <= others


@pytest.mark.parametrize(("text", "kind"), TOLD)
def test_kinds_are_told_by_content(text, kind, tmp_path):
    path = tmp_path / "x"
    path.write_text(text, encoding="utf-8")
    found = file_kind(path)
    assert (found and found.id) == kind


def test_neither_a_byte_order_mark_nor_packing_hides_a_kind(tmp_path):
    texts = [name for name in TABLE if name.endswith((".csv", ".txt", ".json", ".jsonl"))]
    for name in texts:
        content, path = (FILES / name).read_bytes(), tmp_path / name
        for other in (b"\xef\xbb\xbf" + content, gzip.compress(content)):
            path.write_bytes(other)
            assert file_kind(path) == file_kind(FILES / name)


def test_rates_and_labels_are_amounts():
    """By hand: 1,000 GB/s and (100 + 400) operations in each of 15,000 cycles, for 10 us."""
    (launch,) = read_launches(FILES / "ncu-raw.csv")
    assert launch.memory_bytes == 10**7
    assert launch.flops == {("vector", "fp32"): 500 * 15_000}
    (launch,) = read_launches(FILES / "ncu-details.csv")
    assert (launch.seconds, launch.memory_bytes) == (Fraction(1, 10**4), 134_000_000)
    assert launch.flops == {}
    (launches,) = read_launches(FILES / "ncu-summary.csv")
    assert (launches.count, launches.seconds) == (4, Fraction(4, 10**4))


def test_kernels_without_counters_of_operations_have_no_bound(capsys):
    words = ["measured", "kernels", str(FILES / "ncu-details.csv"), "--chip", "h100-sxm"]
    assert run([*words, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["flops"], row["bound"], row["compute"]) == (None, None, None)
    assert row["t_lower_s"] == pytest.approx(134e6 / 3.35e12)


def test_operations_of_tensor_cores_that_no_counter_has_are_not_those_of_threads(tmp_path):
    """A matmul on tensor cores whose threads add a little is not taken for those additions."""
    text = (FILES / "ncu-raw.csv").read_text()
    active = "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active"
    counter = "sm__ops_path_tensor_src_bf16_dst_fp32.sum"
    for named, share, counted in (
        (active, "55.10", False),
        (active, "0.00", True),
        (counter, "n/a", False),
        (counter, "nan", False),
    ):
        path = tmp_path / "k.csv"
        name = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
        path.write_text(text.replace(name, named).replace("55.10", share))
        (launch,) = read_launches(path)
        assert bool(launch.flops) == counted
    text = (FILES / "pmc_perf.csv").read_text()
    path.write_text(text.replace("SQ_INSTS_VALU_MFMA_MOPS_BF16", "SQ_INSTS_VALU_MFMA_BF16"))
    (launch,) = read_dispatches(path)
    assert launch.flops == {}


def test_counters_of_amd_are_operations_and_bytes():
    """512 of a matrix counter, 64 and 128 of instructions; requests of 128, 64 and 32 byte."""
    for name in ("rocprofv3-counters.csv", "pmc_perf.csv"):
        (launch,) = read_dispatches(FILES / name)
        assert launch.flops == {
            ("vector", "fp32"): 64 * (1000 + 2 * 2000),
            ("matrix", "bf16"): 512 * 2**28,
        }
        reads = 128 * 100_000 + 64 * (400_000 - 100_000 - 50_000) + 32 * 50_000
        assert launch.memory_bytes == reads + 64 * 150_000 + 32 * (200_000 - 150_000)
        assert launch.seconds == Fraction(5, 10**4)


@pytest.mark.parametrize(
    ("name", "chip", "says"),
    [
        ("ncu-details.csv", "h200-sxm", None),
        ("ncu-details.csv", "b200", "names compute capability 9.0 (Hopper)"),
        ("ncu-text.txt", "a100-sxm-80gb", "names compute capability 9.0 (Hopper)"),
        ("ncu-summary.csv", "mi300x", "is an export of Nsight Compute, for devices of NVIDIA"),
        ("ncu-summary.csv", "h100-sxm", None),
        ("pmc_perf.csv", "h100-sxm", "is counters of rocprof-compute, for devices of AMD"),
        ("rocprofv3-counters.csv", "mi300x", None),
        ("rocprofv3-counters.csv", "h100-sxm", "is counters of rocprofv3, for devices of AMD"),
        ("hipblaslt-bench.txt", "mi300x", None),
        ("hipblaslt-bench.txt", "mi355x", "names AMD Instinct MI300X"),
        ("nccl-alltoall.txt", "b200", "names NVIDIA H800"),
        ("aiconfigurator-moe.csv", "h200-sxm", "names NVIDIA H100"),
        ("vllm-serve.json", "b200", None),
        ("absent.csv", "b200", None),
    ],
)
def test_a_device_other_than_the_chip_is_said(name, chip, says):
    note = device_note(FILES / name, chip)
    assert note == (says and f"the file {says}, and the chip given is {chip}")


@pytest.mark.parametrize(
    ("text", "chip", "says"),
    [
        ('{"mean_tpot_ms": 1, "gpu_name": "H100"}', "h100-pcie", None),
        ('{"mean_tpot_ms": 1, "gpu_name": "H100"}', "h200-sxm", "names H100"),
        ('{"mean_tpot_ms": 1, "device": "cuda"}', "h200-sxm", None),
        ('{"device_name": "NVIDIA GB200"}', "b200", "names NVIDIA GB200"),
        ("GPU,m,n,k,us\nRTX 5090,1,2,3,4\n", "rtx-5090", None),
        ("GPU,m,n,k,us\nRTX 5090,1,2,3,4\n", "rtx-4090", "names RTX 5090"),
        ("hw,m\nMI355X,1\nMI300X,1\n", "h100-sxm", "names MI300X and MI355X"),
        ("hw,m\nMI355X,1\nMI300X,1\n", "mi300x", None),
        ("Name: gfx942\n", "mi355x", "names gfx942 (CDNA 3)"),
        ("Name: gfx942\n", "mi325x", None),
    ],
)
def test_devices_are_told_by_their_names_and_architectures(text, chip, says, tmp_path):
    file = tmp_path / "some.txt"
    for content in (text.encode(), gzip.compress(text.encode())):
        file.write_bytes(content)
        note = device_note(file, chip)
        assert note == (says and f"the file {says}, and the chip given is {chip}")


def test_a_device_may_be_named_in_columns_or_beside_counters(tmp_path, capsys):
    timed = {"device": ["NVIDIA H100 80GB HBM3"], "dtype": ["bf16"], "m": [64], "n": [512]}
    pl.DataFrame({**timed, "k": [512], "latency": [0.1]}).write_parquet(tmp_path / "gemm.parquet")
    assert device_note(tmp_path / "gemm.parquet", "h100-sxm") is None
    note = "the file names NVIDIA H100, and the chip given is b200"
    assert device_note(tmp_path / "gemm.parquet", "b200") == note
    (tmp_path / "pmc_perf.csv").write_bytes((FILES / "pmc_perf.csv").read_bytes())
    (tmp_path / "sysinfo.csv").write_text("workload,gpu_model,gpu_arch\nrun,MI300X_A1,gfx942\n")
    note = "the file names MI300X_A1, and the chip given is mi325x"
    assert note in said(capsys, "measured", "kernels", str(tmp_path), "--chip", "mi325x")
    assert "the file" not in said(capsys, "measured", "kernels", str(tmp_path), "--chip", "mi300x")


def test_join_and_judge_say_the_device_of_a_file(capsys):
    file = str(LAYOUTS / "aiconfigurator-gemm.csv")
    for command in ("join", "judge"):
        printed = said(capsys, "measured", command, file, "--where", "chip=b200")
        assert "  the file names NVIDIA H100, and the chip given is b200\n" in printed
        same = said(capsys, "measured", command, file, "--where", "chip=h100-sxm")
        assert "the file names" not in same


def test_counters_of_a_dispatch_may_be_apart_and_those_of_two_devices_alike(tmp_path):
    """Of passes that are joined, and of dispatches of the same number on two GPUs."""
    head, *rows = (FILES / "rocprofv3-counters.csv").read_text().splitlines()
    agent = head.replace('"', "").split(",").index("Agent_Id")
    others = []
    for row in rows:
        cells = row.split(",")
        others.append(",".join([*cells[:agent], '"Agent 9"', *cells[agent + 1 :]]))
    path = tmp_path / "k.csv"
    pairs = zip(rows, others, strict=True)
    path.write_text("\n".join([head, *(row for pair in pairs for row in pair)]))
    launches = list(read_dispatches(path))
    assert launches == [next(read_dispatches(FILES / "rocprofv3-counters.csv"))] * 2


def test_a_folder_of_rocprof_compute_is_its_table_of_counters(tmp_path, capsys):
    folder = tmp_path / "run" / "MI300X_A1"
    folder.mkdir(parents=True)
    words = ["measured", "kernels", str(folder.parent), "--chip", "mi300x"]
    assert run(words) == 2
    assert "is a directory with no file pmc_perf.csv" in capsys.readouterr().err
    (folder / "pmc_perf.csv").write_bytes((FILES / "pmc_perf.csv").read_bytes())
    assert run(words) == 0
    assert "137 G  41.6 MB" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["utf-16", "utf-8-sig", "gzip"])
def test_profiles_are_read_as_shells_write_them(form, tmp_path):
    """PowerShell writes UTF-16."""
    text, path = (FILES / "ncu-raw.csv").read_text(encoding="utf-8"), tmp_path / "k.csv"
    lines = text.replace("\n", "\r\n")
    path.write_bytes(gzip.compress(lines.encode()) if form == "gzip" else lines.encode(form))
    assert list(read_launches(path)) == list(read_launches(FILES / "ncu-raw.csv"))


MATMULS = {"B": [4096, 64], "D": [8192, 8192], "F": [8192, 8192]}


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("GEMM.csv", [900e-6, 60e-6]),
        ("hipblaslt-bench.txt", [800e-6, 40.5e-6]),
        ("m-n-k-us.txt", [900.5e-6, 60.25e-6]),
        ("mnk.csv", [900e-6, 60e-6]),
    ],
)
def test_matmuls_of_tools_are_timings(name, seconds):
    found = read_timings(FILES / name, {"chip": "h100-sxm"}, {"compute": "bf16"}).frame
    assert found.select(MATMULS.keys()).equals(pl.DataFrame(MATMULS))
    assert found["seconds"].to_list() == pytest.approx(seconds)
    fp8 = name == "hipblaslt-bench.txt"
    assert found["dtype_w"].to_list() == ["bf16", "fp8" if fp8 else "bf16"]
    assert found["dtype_out"].to_list() == ["bf16", "bf16"]


def test_every_run_in_a_log_of_collectives_has_its_own_ranks(tmp_path):
    text = (FILES / "nccl-alltoall.txt").read_text(encoding="utf-8")
    fewer = "\n".join(line for line in text.splitlines() if "Rank  3" not in line)
    path = tmp_path / "log.txt"
    path.write_text(f"{text}\n+ all_reduce_perf -b 8\n{fewer.replace('alltoall', 'all_reduce')}")
    found = read_timings(path, {"chip": "h100-sxm"}).frame
    runs = [("all-to-all", 4), ("all-reduce", 3)]
    assert found.select("collective", "shards").unique(maintain_order=True).rows() == runs


def test_dtypes_of_a_table_of_tracelens_are_those_of_torch(tmp_path):
    """Products of fp8 are kept in bf16; a pair that differs has the first as its input."""
    names = {
        "('c10::BFloat16', 'c10::BFloat16')": ("bf16", "bf16", "bf16"),
        "('torch.float8_e4m3fn', 'c10::Float8_e4m3fn')": ("fp8", "fp8", "bf16"),
        "('c10::Half', 'c10::Float8_e4m3fn')": ("fp16", "fp8", "fp16"),
        "('float', 'float')": ("fp32", "fp32", "fp32"),
        "('c10::complex<double>', 'float')": None,
    }
    head = 'name,"param: M","param: N","param: K","param: dtype_A_B",Kernel Time (µs)_mean\n'
    lines = [f'mm,{4096 + row},512,64,"{name}",900\n' for row, name in enumerate(names)]
    path = tmp_path / "GEMM.csv"
    path.write_text("".join([head, *lines]), encoding="utf-8")
    found = read_timings(path, {"chip": "h100-sxm"})
    stored = found.frame.select("dtype_x", "dtype_w", "dtype_out").rows()
    assert stored == [three for three in names.values() if three]
    assert found.frame["compute"].to_list() == found.frame["dtype_x"].to_list()
    assert found.frame.select("B", "D", "F").row(0) == (4096, 64, 512)
    assert "1 row of the file left out: they have a dtype that is not modelled" in found.notes


def test_batches_of_a_table_of_tracelens_are_left_out(tmp_path):
    path = tmp_path / "GEMM.csv"
    head = 'name,"param: M","param: N","param: K","param: B",Kernel Time (µs)_mean\n'
    path.write_text(f"{head}bmm,128,128,64,32,30\nmm,4096,8192,8192,1,900\n", encoding="utf-8")
    found = read_timings(path, {"chip": "h100-sxm"}, {"compute": "bf16"})
    assert found.frame["B"].to_list() == [4096]
    assert found.left_out == {"are batches": 1}


def test_payloads_of_collectives_are_in_bytes():
    found = read_timings(FILES / "aiconfigurator-nccl.csv", {"chip": "h200-sxm"})
    assert found.frame.select("collective", "shards", "bytes", "seconds", "software").rows() == [
        ("all-reduce", 8, 2**20, pytest.approx(30e-6), "nccl"),
        ("all-gather", 4, 2**20, pytest.approx(20e-6), "nccl"),
    ]
    assert found.left_out == {"are of another collective or dtype": 1}


def test_attention_of_decode_has_the_tokens_before_and_the_new_one():
    found = read_timings(FILES / "aiconfigurator-attention.csv", {"chip": "h100-sxm"}).frame
    assert found.select("phase", *"BSTNKH", "compute", "cache", "software").rows() == [
        ("decode", 8, 4096, 1, 32, 8, 128, "bf16", "fp8", "vllm"),
        ("prefill", 1, 4096, 4096, 32, 8, 128, "bf16", "bf16", "vllm"),
    ]
    assert found["seconds"].to_list() == pytest.approx([5e-5, 2e-3])


def test_a_table_of_sizes_may_have_a_dtype(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("m,n,k,dtype,us\n64,128,256,torch.bfloat16,9\n64,128,256,fp8,9\n")
    found = read_timings(path, {"chip": "h100-sxm"}).frame
    assert found.select("dtype_x", "dtype_out").rows() == [("bf16", "bf16"), ("fp8", "bf16")]


def test_a_table_without_a_dtype_is_told_to_say_it(capsys):
    words = ["measured", "calibrate", str(FILES / "mnk.csv"), "--chip", "h100-sxm"]
    assert run([*words, "--software", "x"]) == 2
    assert "is a table of matmuls that does not say their dtype" in capsys.readouterr().err


def test_results_of_benchmarks_are_served_rows():
    where = {"chip": "h100-sxm", "tp": "1"}
    (vllm,) = read_timings(FILES / "vllm-serve.json", where).frame.to_dicts()
    assert (vllm["model"], vllm["software"]) == ("llama-3.1-8b", "vllm")
    assert (vllm["input_tokens"], vllm["output_tokens"], vllm["concurrency"]) == (1024, 1024, 8)
    assert (vllm["ttft_s"], vllm["tpot_s"]) == pytest.approx((0.06, 0.009))
    sglang = read_timings(FILES / "sglang-serve.jsonl", {**where, "model": "llama-3.1-8b"})
    assert sglang.frame["concurrency"].to_list() == [8, 16]
    assert sglang.assumed == ("weights in bf16; of others add --where linear=fp8",)
    (trtllm,) = read_timings(FILES / "trtllm-bench.json", {"chip": "h100-sxm"}).frame.to_dicts()
    assert (trtllm["tp"], trtllm["linear"], trtllm["concurrency"]) == (2, "fp8", 32)


@pytest.mark.parametrize("reader", ["model", "config", "shapes", "fits"])
def test_a_file_of_another_command_is_refused_with_what_this_one_reads_too(reader):
    for path in sorted(FILES.iterdir()):
        kind = file_kind(path)
        if kind is None or reader in kind.readers:
            continue
        with pytest.raises(RooflinesError) as caught:
            check_kind(path, reader)
        fixes = FIXES[reader]
        assert caught.value.fix.endswith(fixes.get(kind.maker, fixes[""]))
        assert not kind.command or kind.command in caught.value.fix


def test_requests_that_arrive_slowly_are_fewer_at_once(tmp_path):
    """By hand: 0.5 requests in a second, of 6 s each."""
    path = tmp_path / "vllm-serve.json"
    result = json.loads((FILES / path.name).read_text(encoding="utf-8"))
    slow = {"request_throughput": 0.5, "mean_e2el_ms": 6000.0}
    for rate, at_once in (("inf", 8), (0.5, 3)):
        path.write_text(json.dumps({**result, **slow, "request_rate": rate}))
        (served,) = read_timings(path, {"chip": "h100-sxm", "tp": "1"}).frame.to_dicts()
        assert served["concurrency"] == at_once


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("trtllm-bench.json", '"pp_size": 1', '"pp_size": 2', "of 2 pipeline stages"),
        (
            "vllm-serve.json",
            '"duration"',
            '"spec_decode_acceptance_length": 2.4, "duration"',
            "draft",
        ),
        ("sglang-serve.jsonl", '"accept_length": null', '"accept_length": 2.4', "speculative"),
    ],
)
def test_runs_whose_steps_are_not_those_of_the_model_are_refused(name, old, new, said, tmp_path):
    path = tmp_path / name
    path.write_text((FILES / name).read_text(encoding="utf-8").replace(old, new))
    where = {"chip": "h100-sxm", "tp": "1", "model": "llama-3.1-8b"}
    with pytest.raises(RooflinesError) as caught:
        read_timings(path, where)
    assert said in str(caught.value)


def test_a_benchmark_of_sglang_says_what_its_server_does(tmp_path):
    path = tmp_path / "serve.jsonl"
    line = (FILES / "sglang-serve.jsonl").read_text(encoding="utf-8").splitlines()[0]
    server = {"model_path": "meta-llama/Llama-3.1-8B", "tp_size": 4, "quantization": "fp8"}
    for split, tp in (({}, 4), ({"dp_size": 2}, None)):
        path.write_text(json.dumps({**json.loads(line), "server_info": {**server, **split}}))
        if tp is None:
            with pytest.raises(RooflinesError, match="does not say its tp"):
                read_timings(path, {"chip": "h100-sxm"})
            continue
        (served,) = read_timings(path, {"chip": "h100-sxm"}).frame.to_dicts()
        assert (served["model"], served["tp"], served["linear"]) == ("llama-3.1-8b", tp, "fp8")


def test_no_more_requests_run_at_once_than_there_are(tmp_path):
    path = tmp_path / "vllm-serve.json"
    text = (FILES / path.name).read_text(encoding="utf-8")
    path.write_text(text.replace('"max_concurrency": 8', '"max_concurrency": 500'))
    (run,) = read_timings(path, {"chip": "h100-sxm", "tp": "1"}).frame.to_dicts()
    assert run["concurrency"] == 64


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("vllm-serve.json", '"completed": 64', '"completed": "many"'),
        ("vllm-serve.json", '"max_concurrency": 8', '"max_concurrency": [8]'),
        ("vllm-serve.json", '"mean_tpot_ms": 9.0', '"mean_tpot_ms": NaN'),
        ("vllm-serve.json", '"total_input_tokens": 65536', '"total_input_tokens": 1e999'),
        ("vllm-serve.json", '"model_id": "meta', '"model_id": {"a": 1}, "x": "meta'),
        ("vllm-serve.json", '"duration"', '"duration'),
        ("trtllm-bench.json", '"world_info": {', '"world_info": [], "x": {'),
        ("trtllm-bench.json", '"avg_tpot_ms": 9.5', '"avg_tpot_ms": null'),
        ("hipblaslt-bench.txt", "T,N,0,1,8192", "T,N,0,x,8192"),
        ("hipblaslt-bench.txt", "800.0", "nan"),
        ("hipblaslt-bench.txt", ",us\n", ",us"),
        ("GEMM.csv", "900.0", "slow"),
        ("nccl-alltoall.txt", "26.72", "N/A"),
        ("aiconfigurator-attention.csv", ",4095,", ",x,"),
        ("aiconfigurator-nccl.csv", ",524288,", ",-1,"),
        ("m-n-k-us.txt", "900.5", "1 2"),
        ("pmc_perf.csv", "1000000,1500000", "1500000,1000000"),
        ("pmc_perf.csv", "TCC_EA0_RDREQ_sum", "TCC_EA0_OTHER_sum"),
        ("rocprofv3-counters.csv", "400000.000000", "n/a"),
        ("ncu-summary.csv", '"4"', '"several"'),
    ],
)
def test_damaged_files_give_one_message(name, old, new, tmp_path, capsys):
    text = (FILES / name).read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / name
    path.write_text(text.replace(old, new), encoding="utf-8")
    command = "kernels" if "kernels" in TABLE[name] else "join"
    words = [str(path) if word == "FILE" else word for word in COMMANDS[command]]
    where = ["--where", "tp=1", "--where", "compute=bf16"] if command == "join" else []
    status = run([*words, *(where if name.startswith(("vllm", "m-n")) else [])])
    message = capsys.readouterr().err
    assert (status, message.count("\n  fix: ")) in {(2, 1), (0, 0)}


def test_a_benchmark_that_does_not_say_its_chips_is_asked(capsys):
    assert run(["measured", "join", str(FILES / "vllm-serve.json")]) == 2
    printed = capsys.readouterr().err
    assert "which does not say its chip, tp" in printed
    assert "--where chip=h100-sxm --where tp=1" in printed
