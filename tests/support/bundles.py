"""A small site: a run of a config with hostile names, and with charts, thresholds and timings."""

import polars as pl
from case_files import case, config
from processes import on_a_terminal

CONFIG = case("configs/site")
HOSTILE = CONFIG["site"]["title"]
"""A name that runs as code wherever it is not escaped."""

CHARTS = ["roofline-shapes", "critical-long", "chips-shapes", "measured-grid"]
"""The charts of the site, in the order of its list."""


RUNS = 40
"""Runs of a served model [1]."""


def matmul_timings():
    """Timings of matmuls on two chips, by three libraries, some below the bound, some in int4."""
    peaks = {"h100-sxm": (989e12, 3.35e12), "b200": (2.25e15, 8e12)}
    rows = []
    for software, factor in (("trtllm", 1.0), ("sglang", 1.3), (HOSTILE, 0.98)):
        for chip, (peak, rate) in peaks.items():
            for dtype, width in (("bf16", 2), ("fp8", 1), ("int4", 0.5)):
                for n, B in enumerate(2**power for power in range(14)):  # noqa: N806, the letter
                    D, F = 4096, 4096 * (1 + n % 3)  # noqa: N806, the letters
                    math = 2 * B * D * F * width / 2 / peak
                    memory = width * (B * D + D * F + B * F) / rate
                    seconds = factor * (1.0 + 0.02 * n) * max(math, memory) + 2e-6 * (n % 4)
                    stored = dict.fromkeys(("dtype_x", "dtype_w", "compute"), dtype)
                    about = {"chip": chip, "software": software, **stored, "dtype_out": "bf16"}
                    rows.append({**about, "B": B, "D": D, "F": F, "seconds": seconds})
    return pl.DataFrame(rows)


def run_small_site(folder):
    """Make the site in a folder, with all that it is made from; `said.txt` is what the run said."""
    matmul_timings().write_csv(folder / "grid.csv")
    head = "chip,software,collective,shards,bytes,seconds"
    (folder / "nccl.csv").write_text(f"{head}\nh100-sxm,nccl,all-gather,8,1073741824,5e-3\n")
    head = "model,chip,software,linear,input_tokens,output_tokens,concurrency,ttft_s,tpot_s"
    same = "llama-3.1-8b,h200-sxm,vllm,fp8,1024,1024"
    runs = (f"{same},{n},0.1,{0.004 + n / 5e3}" for n in range(1, RUNS + 1))
    (folder / "served.csv").write_text("\n".join([head, *runs]) + "\n")
    (folder / "my.yaml").write_text(config("site"), encoding="utf-8")
    status, said = on_a_terminal(folder, "run", "my.yaml", "--cores", "2")
    assert status == 0, said
    (folder / "said.txt").write_text(said, encoding="utf-8")
