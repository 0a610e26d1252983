"""Random calibrations, and sweeps with them, as `lots`."""

import tempfile
from hashlib import sha256
from pathlib import Path

import lots
import yaml
from random_sweeps import COMPUTE, configs, fractions_of_one

BOUNDS = ("compute", "memory", "network", "mixed")


@lots.composite
def fits(draw, of=BOUNDS):
    """Draw what every fit states: bands of some bounds, and nothing of note."""
    errors = {"n": 30, "median": 0.05, "mean": 0.06, "p90": 0.1}
    bounds = draw(lots.sets(lots.sampled_from(of)))
    return {
        "bands": {
            bound: [0.9, draw(lots.sampled_from([1, 1.125, 1.3]))] for bound in sorted(bounds)
        },
        "fitted": errors,
        "source": "made up",
        "date": "2026-01-01",
        **{name: draw(values) for name, values in REACHES.items() if draw(lots.booleans())},
    }


REACHES = {
    "sizes": lots.sampled_from(
        [
            {"B": [1, 2], "D": [16, 4096], "F": [64, 512], "S": [2, 64]},
            {"D": [4096, 4096], "S": [1000, 100_000]},
            {"bytes": [2**10, 2**20], "shards": [2, 8]},
        ]
    ),
    "outside": lots.sampled_from([[0.5, 1.1], [0.9, 3]]),
    "elsewhere": lots.sampled_from([[0.3, 1], [1, 4]]),
}
"""Range of a fit, and its bands beyond."""


@lots.composite
def fitted_matmuls(draw):
    """Draw a calibration of matmuls, often without most of its pieces."""
    further = {
        "activation_passes": lots.sampled_from([0, 0.01, 7, 3.25]),
        "mixed_math": lots.sampled_from([0.5, 1, 1.7, 4]),
        "mixed_memory": lots.sampled_from([0.35, 0.8, 2]),
        "mixed_activations": lots.sampled_from([0.1, 2]),
        "mixed_depth_s": lots.sampled_from([3.3e-10, 1e-9]),
        "sustained": lots.sampled_from([0.1, 0.4, 3]),
        "tile": lots.sampled_from([2, 7, 64, 128]),
    }
    return {
        "math": draw(fractions_of_one),
        "memory": draw(fractions_of_one),
        "overhead_s": draw(lots.sampled_from([0, 3.2e-6])),
        **{name: draw(values) for name, values in further.items() if draw(lots.booleans())},
        **draw(fits()),
    }


@lots.composite
def fitted_attention(draw):
    """Draw a calibration of attention."""
    numbers = {"math": draw(fractions_of_one), "memory": draw(fractions_of_one)}
    further = {
        "mixed_depth_s": lots.sampled_from([3.3e-10, 1e-9]),
        "mixed_head_s": lots.sampled_from([3e-8, 1e-6]),
        "bulk_overhead_s": lots.sampled_from([0, 2.5e-5]),
        "bulk": lots.sampled_from([0.5, 0.97, 3]),
    }
    return {
        **numbers,
        "overhead_s": draw(lots.sampled_from([0, 1.1e-5])),
        **{name: draw(values) for name, values in further.items() if draw(lots.booleans())},
        **draw(fits()),
    }


@lots.composite
def fitted_collectives(draw):
    """Draw a calibration of a collective."""
    return {
        "overhead_s": draw(lots.sampled_from([0, 7e-6])),
        "low_latency": draw(lots.sampled_from([0.1, 0.25, 1])),
        "bulk_overhead_s": draw(lots.sampled_from([0, 1.5e-5])),
        "bulk": draw(lots.sampled_from([0.65, 0.9])),
        "hop_s": draw(lots.sampled_from([0, 1e-6])),
        **draw(fits(["network"])),
    }


@lots.composite
def files_of_fits(draw, chips):
    """Draw a file of calibrations of chips by two kinds of software."""
    matmuls = lots.dictionaries(lots.sampled_from(COMPUTE), fitted_matmuls(), min_size=2)
    names = [f"decode-{cache}{end}" for cache in COMPUTE for end in ("", "-mha")]
    names += [f"prefill-{dtype}-{cache}" for dtype in COMPUTE for cache in COMPUTE]
    phases = lots.sampled_from(names)
    attention = lots.dictionaries(phases, fitted_attention(), min_size=1)
    kinds = lots.sampled_from(["all-gather", "reduce-scatter", "all-reduce", "all-to-all"])
    collectives = lots.dictionaries(kinds, fitted_collectives(), min_size=2)
    return {
        kind: {
            f"{chip}/{software}": draw(entries) for chip in chips for software in ("mine", "other")
        }
        for kind, entries in (
            ("calibrations", matmuls),
            ("attention", attention),
            ("collectives", collectives),
        )
    }


@lots.composite
def calibrated_configs(draw):
    """Draw a config whose sweep names software, and a file with calibrations of its chips."""
    config = draw(configs())
    (sweep,) = config["sweeps"].values()
    sweep["calibration"] = draw(lots.sampled_from(["mine", ["mine", "other"], ["other", "mine"]]))
    text = yaml.safe_dump(draw(files_of_fits(list(config["chips"]))))
    file = Path(tempfile.gettempdir()) / f"rooflines-{sha256(text.encode()).hexdigest()[:16]}.yaml"
    file.write_text(text)
    return {**config, "calibrations": [str(file)]}
