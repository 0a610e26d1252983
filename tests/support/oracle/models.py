"""Parameters, caches and work of models, from their formulas, one layer after another."""

from fractions import Fraction
from typing import Any, NamedTuple

Entry = dict[str, Any]


class Piece(NamedTuple):
    """Parameters of a layer: how many, and how many a token uses [1]."""

    held: int
    used: Fraction | int


class Chunk(int):
    """Tokens of a chunk: a token attends to those since the last multiple of it."""


def each_mixer(entry):
    """Every layer with a mixer, and its tokens. Which layers they are does not matter here."""
    count = entry["layers"]
    if entry.get("single"):
        count -= sum((entry.get(part) or {}).get("layers", 0) for part in ("mlp", "moe"))
    found: list[tuple[str, int | None]] = []
    if (entry.get("state") or {}).get("beside"):
        count += entry["state"]["layers"]
    for kind in ("window", "sparse", "state"):
        if part := entry.get(kind):
            tokens = part.get("tokens")
            found += [(kind, Chunk(tokens) if part.get("chunked") else tokens)] * part["layers"]
    for index, part in enumerate(entry.get("variants") or []):
        if part.get("attention"):
            count -= part["layers"]
        elif part.get("K"):
            found += [(f"variants.{index}", None)] * part["layers"]
    return [("full", None)] * (count - len(found)) + found


def attention_in(entry, kind):
    """The attention of layers with a mixer of this kind."""
    part, _, index = kind.partition(".")
    if index:
        return {**entry["attention"], "K": entry[part][int(index)]["K"]}
    return (entry.get(part) or {}).get("attention") or entry["attention"]


def mlp_widths(entry):
    """Widths of the MLPs of all layers without experts, the usual one first."""
    variants = entry.get("variants") or []
    widths = [part["F"] for part in variants if part.get("F") for _ in range(part["layers"])]
    lacking = sum(part["layers"] for part in variants if part.get("mlp"))
    return [entry["mlp"]["F"]] * (each_mlp(entry).count("dense") - len(widths) - lacking) + widths


def without(entry, instead):
    """Parts of layers in whose place there is a matrix, or nothing [1]."""
    return sum(
        part["layers"] * (part.get(name) == instead)
        for part in entry.get("variants") or []
        for name in ("attention", "mlp")
    )


def each_mlp(entry):
    """The layers with an MLP, and those with experts."""
    mlp, moe = entry.get("mlp"), entry.get("moe")
    dense, sparse = ((part or {}).get("layers") for part in (mlp, moe))
    if entry.get("variants"):  # the widths of all are apart
        return ["dense"] * entry["layers"]
    if dense is None:
        dense = entry["layers"] - (sparse or 0) if mlp else 0
    if sparse is None:
        sparse = entry["layers"] - dense if moe else 0
    return ["dense"] * dense + ["moe"] * sparse


def _plain(elements):
    return Piece(elements, elements)


def _attention(a, width):
    if a.get("kind") == "shared-kv":
        heads, low = a["N"] * a["H"], a["o_groups"] * a["o_rank"]
        yield _plain(width * a["q_rank"] + a["q_rank"] * heads + width * a["H"])
        yield _plain(a["o_groups"] * (heads // a["o_groups"]) * a["o_rank"] + low * width)
        yield _plain(a["q_rank"] + a["H"] + (a["N"] if a.get("sinks") else 0))
        return
    if a.get("kind") == "mla":
        heads, key, value = a["N"], a["nope"] + a["rope"], a["v"]
        yield _plain(width * a["kv_rank"] + width * a["rope"])
        yield _plain(a["kv_rank"] * heads * a["nope"] + a["kv_rank"] * heads * value)
        yield _plain(heads * value * width * (2 if a.get("gate") else 1))
        rank = a.get("q_rank")
        query = width * rank + rank * heads * key if rank else width * heads * key
        yield _plain(query)
        yield _plain(a["kv_rank"] + (rank or 0))
        return
    q, k, out = a["N"] * a["H"], a["K"] * a["H"], a["N"] * (a.get("v") or a["H"])
    v = 0 if a.get("one_tensor") else a["K"] * (a.get("v") or a["H"])
    gates = {"element": out, "head": a["N"]}.get(str(a.get("gate")), 0)
    yield _plain(width * q + width * k + width * v + width * gates + out * width)
    biases = {"qkv": q + k + v, "qkvo": q + k + v + width}.get(str(a.get("bias")), 0)
    norms = {"head": a["H"] + a["H"], "all": q + k}.get(str(a.get("qk_norm")), 0)
    yield _plain(biases + norms + (a["N"] if a.get("sinks") else 0))


def compressors(entry):
    """The compressors of every layer: part, size of what it makes, whether keys of an indexer."""
    for part in entry.get("compressed") or []:
        for _ in range(part["layers"]):
            yield part, entry["attention"]["H"], False
            if part.get("entries"):
                yield part, part["dim"], True


def _compressors(entry):
    """Their projections, gates, norms and positions; the queries and weights of indexers."""
    width = entry["D"]
    for part, made, _ in compressors(entry):
        wide = made + made if part.get("overlap") else made
        yield _plain(width * wide + width * wide)
        yield _plain(made + part["tokens"] * wide)
    for part in entry.get("compressed") or []:
        if part.get("entries"):
            queries = entry["attention"]["q_rank"] * part["heads"] * part["dim"]
            yield _plain(part["layers"] * (queries + width * part["heads"]))


def _streams(entry):
    """The hyper-connections: two in each layer, and one that ends the streams."""
    if streams := entry.get("streams"):
        inside = streams * entry["D"]
        for _ in range(2 * entry["layers"]):
            weights = streams + streams + streams * streams
            yield _plain(inside * weights + weights + len(("in", "out", "between")))
        yield _plain(inside * streams + streams + 1)


def _indexers(entry):
    """The indexers of layers that have one of their own."""
    sparse, width = entry["sparse"], entry["D"]
    queries = sparse["heads"] * sparse["dim"]
    for _ in range(indexers(entry)):
        yield _plain((entry["attention"].get("q_rank") or width) * queries)
        yield _plain(width * sparse["dim"])
        yield _plain(width * sparse["heads"] if sparse.get("weighted", True) else 0)
        yield _plain(2 * sparse["dim"])


def indexers(entry):
    """Layers with an indexer [1]."""
    sparse = entry.get("sparse") or {}
    return int(sparse.get("indexer_layers") or sparse.get("layers", 0))


def _state(s, width):
    heads, keys, values = s["heads"], s["groups"] * s["key"], s["heads"] * s["value"]
    if s["kind"] == "short-conv":  # two gates beside what is convolved
        yield _plain(width * values + 2 * width * values + values * width)
        yield _plain(s["conv"] * values)
        return
    if s["kind"] == "lightning":
        yield _plain(width * (keys + keys + values) + width * values + values * width)
        yield _plain(values)  # norm
        return
    if s["kind"] == "mamba1":  # a channel is a head
        yield _plain(width * values + width * values + values * width)
        yield _plain(values * (s["rank"] + 2 * s["key"]) + s["rank"] * values)
        yield _plain(s["conv"] * values + values + values)  # convolution, its bias, that of steps
        yield _plain(values * s["key"] + values)  # decays, skips
        yield _plain(s["rank"] + 2 * s["key"])  # norms
        return
    convolved = keys + keys + values
    yield _plain(width * convolved + width * heads + values * width)
    yield _plain(s["conv"] * convolved + heads)  # convolution, decays
    if s["kind"] == "mamba2":
        yield _plain(width * values)
        yield _plain(convolved + heads + heads)  # its bias, steps, skips
        yield _plain(values if s.get("norm", True) else 0)
        return
    yield _plain(s["value"])  # norm
    if s["kind"] == "gated-delta":
        yield _plain(width * values + width * heads)
        yield _plain(heads)
        return
    low = s["value"]
    yield _plain(width * low + low * heads * s["key"])
    full = s.get("full_gate", True)
    yield _plain(width * values if full else width * low + low * values)
    yield _plain(heads * s["key"])


def _mlp(width, hidden, part, *, bias):
    """Elements of the matrices of an MLP, and of its biases."""
    up = 2 if part.get("gated", True) else 1
    return (up + 1) * width * hidden, (up * hidden + width if bias else 0)


def routed_among(m):
    """Experts that a router chooses among, with weights or without [1]."""
    return m["E"] + m.get("zero_experts", 0)


def mean_chosen(m):
    """Experts with weights that a token uses on average [1]."""
    return m["k"] * Fraction(m["E"], routed_among(m))


def _experts(m, width):
    inner = m.get("latent") or width
    matrices, biases = _mlp(inner, m["Fe"], m, bias=m.get("expert_bias", False))
    if biases:
        biases += width - inner
    yield Piece(m["E"] * (matrices + biases), mean_chosen(m) * (matrices + biases))
    yield _plain(m.get("shared", 0) * _mlp(width, m["Fe"], m, bias=False)[0])
    gate = 1 if m.get("shared_gate") and m.get("shared") else 0
    yield _plain((routed_among(m) + gate) * width)
    yield _plain(routed_among(m) if m.get("router_bias") else 0)
    if m.get("latent"):
        yield _plain(width * inner + inner * width)
        yield _plain(inner if m.get("latent_norm") else 0)


def attention_parameters(entry):
    """Parameters of the full attention of a layer [1]."""
    return sum(piece.held for piece in _attention(entry["attention"], entry["D"]))


def norm(entry):
    """Parameters of a norm of width D [1]."""
    return entry["D"] * (2 if entry.get("norm_bias") else 1)


def layer_norms(entry):
    """Parameters of the norms of width D of a layer [1]."""
    return entry.get("norms_per_layer", 2) * norm(entry)


def layer_vectors(entry):
    """Parameters of norms and biases of a layer, but of its MLP or experts [1]."""
    *_, vectors = _attention(entry["attention"], entry["D"])
    return layer_norms(entry) + vectors.held


def indexer_parameters(entry):
    """Parameters of an indexer [1]."""
    return sum(piece.held for piece in _indexers(entry)) // indexers(entry)


def state_parameters(entry):
    """Parameters of a layer's state, but its norms of width D [1]."""
    return sum(piece.held for piece in _state(entry["state"], entry["D"]))


def attending(entry):
    """Tokens that every layer with attention sees; None: all."""
    return [tokens for kind, tokens in each_mixer(entry) if kind != "state"]


def layers_by_part(entry):
    """Layers with attention, an indexer, a state, an MLP, and experts [1]."""
    feeds = each_mlp(entry)
    states = (entry.get("state") or {}).get("layers", 0)
    mixers = {"attention": len(attending(entry)), "indexer": indexers(entry), "state": states}
    return {**mixers, "dense": feeds.count("dense"), "moe": feeds.count("moe")}


def last_vectors(entry):
    """Parameters of norms beside the layers, and of the bias of the unembedding [1]."""
    return entry.get("model_norms", 1) * norm(entry) + entry["V"] * bool(entry.get("head_bias"))


def mlp_parameters(entry):
    """Parameters of an MLP [1]."""
    mlp = entry["mlp"]
    learned = mlp.get("learned", 0)
    return learned + sum(_mlp(entry["D"], mlp["F"], mlp, bias=mlp.get("bias", False)))


def experts_parameters(entry):
    """Parameters of a layer's experts, of its router and the shared ones too [1]."""
    return sum(piece.held for piece in _experts(entry["moe"], entry["D"]))


def pieces(entry):
    """All parameters but the token tables."""
    width = entry["D"]
    for kind, _ in each_mixer(entry):
        if kind == "state":
            yield from _state(entry["state"], width)
        else:
            yield from _attention(attention_in(entry, kind), width)
    if entry.get("sparse"):
        yield from _indexers(entry)
    yield from _compressors(entry)
    yield from _streams(entry)
    if (moe := entry.get("moe") or {}).get("router_bias"):
        yield _plain(-moe.get("hash_layers", 0) * routed_among(moe))
    for _ in range(each_mlp(entry).count("moe")):
        yield from _experts(entry["moe"], width)
    for hidden in mlp_widths(entry) if entry.get("mlp") else []:
        mlp = entry["mlp"]
        matrices, biases = _mlp(width, hidden, mlp, bias=mlp.get("bias", False))
        yield _plain(matrices + biases + mlp.get("learned", 0))
    yield _plain(without(entry, "linear") * width * width)
    norms = entry["layers"] * entry.get("norms_per_layer", 2) + entry.get("model_norms", 1)
    norms -= without(entry, "none") * entry.get("norms_per_layer", 2) // 2
    yield _plain(norms * width + (norms * width if entry.get("norm_bias") else 0))
    yield _plain(entry["V"] if entry.get("head_bias") else 0)


def with_drafter(entry):
    """A model with its layer for multi-token prediction as one more of its last layers."""
    last = each_mlp(entry)[-1]
    layers = {"dense": "mlp", "moe": "moe"}[last]
    more = {layers: {**entry[layers], "layers": each_mlp(entry).count(last) + 1}}
    if sparse := entry.get("sparse"):
        own = {"layers": sparse["layers"] + 1, "indexer_layers": indexers(entry) + 1}
        more["sparse"] = {**sparse, **own}
    return {**entry, **more, "layers": entry["layers"] + 1}


def drafter(entry):
    """The MTP layer as a model."""
    grown = with_drafter(entry)
    last = {"dense": "mlp", "moe": "moe"}[each_mlp(entry)[-1]]
    alone = {**entry, "layers": 1, "state": None, "mlp": None, "moe": None}
    alone[last] = {**grown[last], "layers": 1}
    if sparse := entry.get("sparse"):
        alone["sparse"] = {**sparse, "layers": 1, "indexer_layers": 1}
    return alone


def merging(entry):
    """Further tensors: norms of a token and of the state before it, a projection, a norm."""
    width = entry["D"]
    return width + width + 2 * width * width + width


def parameters(entry):
    """All parameters [1]."""
    tables = (1 if entry.get("tied") else 2) * entry["V"] * entry["D"]
    tables += entry.get("positions", 0) * entry["D"]
    return tables + sum(piece.held for piece in pieces(entry))


def active(entry):
    """Parameters of one token by the three conventions [1]."""
    idle = round(sum((piece.held - piece.used for piece in pieces(entry)), Fraction(0)))
    table, used = entry["V"] * entry["D"], sum(piece.held for piece in pieces(entry)) - idle
    return {
        "active": used + table,
        "active_with_embedding": used
        + table * (1 if entry.get("tied") else 2)
        + entry.get("positions", 0) * entry["D"],
        "active_without_tables": used,
    }


def attends(position, other, window):
    """True if the token at a position, from 1, attends to another one."""
    if isinstance(window, Chunk):
        return other <= position and (other - 1) // window == (position - 1) // window
    return other <= position and (window is None or position - other < window)


def attended(position, window):
    """Tokens that the token at a position, from 1, attends to [1]."""
    return len([p for p in range(1, position + 1) if attends(position, p, window)])


def kept(context, window):
    """Entries of one layer that a token so far attended to at most [1]."""
    return max(attended(position, window) for position in range(1, context + 1))


def moved(context, new, window):
    """Entries of one layer that a step touches: those that any new token attends to [1]."""
    needed = {
        p
        for position in range(context - new + 1, context + 1)
        for p in range(1, position + 1)
        if attends(position, p, window)
    }
    return len(needed)
