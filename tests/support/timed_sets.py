"""Two files of timings as users have them, with metadata beside one of them."""

HEAD = "chip,software,dtype_x,dtype_w,dtype_out,compute,B,D,F,seconds\n"
BF16 = "trtllm,bf16,bf16,bf16,bf16"

TIMINGS = (
    f"{HEAD}"
    f"h100-sxm,{BF16},1024,8192,8192,2e-4\n"
    f"h100-sxm,{BF16},1,4096,4096,9e-6\n"
    f"mine,{BF16},1024,8192,8192,2e-3\n"
    f"mine,{BF16},0,8192,8192,2e-3\n"
    "mine,trtllm,bf16,nvfp4,bf16,nvfp4,1024,8192,8192,2e-3\n"
)
"""Compute-bound; below the bound of 33,570,816 B / 3.35 TB/s = 10.02 us, in cache; of another chip;
with no rows; of a dtype that the chip lacks."""

COLLECTIVES = "chip,collective,shards,bytes,seconds\nh100-sxm,all-gather,8,1073741824,5e-3\n"


def write_timings(path):
    """Write the timings into a folder."""
    folder = path / "timed"
    folder.mkdir()
    (folder / "grid.csv").write_text(TIMINGS, encoding="utf-8")
    (folder / "grid.csv.yaml").write_text("licence: MIT\ntimer: graph\n", encoding="utf-8")
    (folder / "nccl.csv").write_text(COLLECTIVES, encoding="utf-8")
