"""A config of 24 rows, of which 12 are supported, and the keys of a small sweep."""

SMALL = """
sweeps:
  a:
    operation: matmul
    grid: {B: [1, 64, 4096], D: [1024, 8192], F: D}
    dtypes: [bf16, mxfp4]
    chips: [tpu-v5e, mine]
    thresholds: [B]
chips:
  mine: {base: h100-sxm, memory.hbm.bytes_per_s: 4.0e+12, source: mine}
charts: []
"""


def matmul(**keys):
    """A sweep of a row, or with other keys."""
    one = {"operation": "matmul", "grid": {"B": 8, "D": 64, "F": 64}, "dtypes": ["bf16"]}
    return {**one, "chips": ["h100-sxm"], **keys}
