"""Configs as transformers saves them, with the parameters of its classes, by a Python that has it.

Reads `{name: config}` as JSON, and writes `{name: {config: , parameters: }}`; parameters are those
of the class without encoders, with the routing biases that it keeps as buffers. A class that cannot
be built is left out.
"""

import json
import sys
import warnings

warnings.filterwarnings("ignore")

ENCODERS = ("visual", "vision", "audio", "multi_modal_projector")
ROUTING = ("e_score_correction_bias", "expert_bias", "moe_statics")


def saved(config):
    """A config, loaded and saved again, and the parameters of its class."""
    import torch  # type: ignore[import-not-found]  # noqa: PLC0415, of the other Python
    from transformers import (  # type: ignore[import-not-found]  # noqa: PLC0415, the same
        AutoModelForCausalLM,
        AutoModelForImageTextToText,
        logging,
    )
    from transformers.models.auto.configuration_auto import (  # type: ignore[import-not-found]  # noqa: PLC0415, the same
        CONFIG_MAPPING,
    )

    logging.set_verbosity_error()
    given = dict(config)
    loaded = CONFIG_MAPPING[given.pop("model_type")].from_dict(given)
    written = json.loads(loaded.to_json_string(use_diff=True))
    with torch.device("meta"):
        try:
            model = AutoModelForCausalLM.from_config(loaded)
        except ValueError:
            model = AutoModelForImageTextToText.from_config(loaded)
    counts = {name: tensor.numel() for name, tensor in model.named_parameters()}
    counts |= {
        name: tensor.numel()
        for name, tensor in model.named_buffers()
        if name.rpartition(".")[2] in ROUTING
    }
    total = sum(n for name, n in counts.items() if not any(part in name for part in ENCODERS))
    return {"config": written, "parameters": total}


found = {}
for name, config in json.load(sys.stdin).items():
    try:
        found[name] = saved(config)
    except Exception as error:  # noqa: BLE001, whatever a class raises
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
json.dump(found, sys.stdout)
