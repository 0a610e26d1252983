"""The shapes of a sweep written out from config/models.yaml, without the package."""

from oracle import as_list
from plain_files import plain_file


def written_out(shapes):
    """Return shapes by name and size, the layers of models among them."""
    return [shape for form in as_list(shapes) for shape in _of(form)]


def _of(form):
    if "models" not in form:
        yield form
        return
    for model in as_list(form["models"]):
        every = matrices(plain_file("models.yaml")["models"][model])
        layers = form.get("layers", "all")
        for layer in every if layers == "all" else as_list(layers):
            rows, columns = every[layer]
            name = f"{model}-{layer}"
            yield {"name": name, "model": model, "layer": layer, "D": rows, "F": columns}


def matrices(model):
    """Return the rows and columns of every matrix of a model's entry."""
    width, heads = model["D"], model["attention"]
    found = {}
    if heads.get("kind") == "mla":
        key = heads["nope"] + heads["rope"]
        if "q_rank" in heads:
            found["q-a"] = width, heads["q_rank"]
            found["q-b"] = heads["q_rank"], heads["N"] * key
        else:
            found["q"] = width, heads["N"] * key
        found["kv-a"] = width, heads["kv_rank"] + heads["rope"]
        found["kv-b"] = heads["kv_rank"], heads["N"] * (heads["nope"] + heads["v"])
        found["o"] = heads["N"] * heads["v"], width
    else:
        q, k = heads["N"] * heads["H"], heads["K"] * heads["H"]
        gates = {"element": q, "head": heads["N"]}.get(heads.get("gate"), 0)
        value = 0 if heads.get("one_tensor") else k
        fused = q + k + value + gates
        found |= {"q": (width, q), "k": (width, k), "qkv": (width, fused), "o": (q, width)}
    for prefix, part, size in (("", "mlp", "F"), ("expert-", "moe", "Fe")):
        if part in model:
            own = model[part]
            into, hidden = own.get("latent", width), own[size]
            found[f"{prefix}up"] = into, hidden
            if own.get("gated", True):
                found[f"{prefix}gate-up"] = into, hidden + hidden
            found[f"{prefix}down"] = hidden, into
    return {**found, "unembed": (width, model["V"])}
