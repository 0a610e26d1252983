"""Decoder-only transformers: parameters, KV cache, memory, splits, step kernels, exact.

>>> from rooflines import models
>>> model = models.load("llama-3.1-70b")               # or models.from_hf("config.json")
>>> model.parameters().total
70553706496
>>> model.kv_cache_bytes(8192, "bf16")                    # per sequence
2684354560
"""

from rooflines.models.groups import Step, work
from rooflines.models.hf.config_json import from_hf
from rooflines.models.library import load
from rooflines.models.model import Model

__all__ = ["Model", "Step", "from_hf", "load", "work"]
