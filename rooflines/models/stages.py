"""Pipeline stages of a model that serves: whole layers, as a model of their own.

Layers with an MLP come before those with experts, as in training. Which layers have a window, a
state or other sizes is not part of a shape: they are taken as spread evenly over the depth.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from rooflines.models.architecture import Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class StageShape(Shape):
    """Layers of one pipeline stage.

    Attributes:
        first: Whether it has the embedding.
        last: Whether it has the head.
    """

    first: bool = False
    last: bool = False

    @property
    def is_first(self) -> bool:
        """True if steps begin here, with the embedding."""
        return self.first

    @property
    def is_last(self) -> bool:
        """True if steps end here, with the head."""
        return self.last

    @property
    def table(self) -> int:
        """Embedding table parameters: V D; 0 where neither embedding nor a tied head is [1]."""
        return super().table if self.first or (self.last and self.tied) else 0


def stage_layers(layers: int, stages: int) -> tuple[int, ...]:
    """Layers by stage: numbers differ by one at most; the last and the first have fewer [1].

    Args:
        layers: All layers [1].
        stages: Pipeline stages [1].
    """
    fewest, larger = divmod(layers, stages)
    order = [*range(1, stages - 1), 0, stages - 1] if stages > 1 else [0]
    larger_stages = set(order[:larger])
    return tuple(fewest + (index in larger_stages) for index in range(stages))


def stage_shapes(shape: Shape, stages: int) -> tuple[tuple[StageShape, int], ...]:
    """Kinds of stages: the shape of each kind, with the number of such stages.

    Args:
        shape: The model.
        stages: Pipeline stages [1].
    """
    bounds = [0, *accumulate(stage_layers(shape.layers, stages))]
    layer_kinds = [*zip(*_partitions(shape), strict=True)]
    kinds: list[StageShape] = []
    counts: list[int] = []
    for index, (start, end) in enumerate(pairwise(bounds)):
        parts = Counter(kind for layer in layer_kinds[start:end] for kind in layer)
        ends = {"first": index == 0, "last": index == stages - 1}
        crossed = shape.crossed * end // shape.layers - shape.crossed * start // shape.layers
        stage = _stage_shape(shape, parts, {**ends, "layers": end - start, "crossed": crossed})
        if stage in kinds:
            counts[kinds.index(stage)] += 1
        else:
            kinds.append(stage)
            counts.append(1)
    return tuple(zip(kinds, counts, strict=True))


def spread_kinds(counts: Mapping[str, int]) -> list[str]:
    """Kinds of layers, spread evenly: each layer is of the kind that lags behind most.

    Args:
        counts: Layers by kind; their sum is the number of layers [1].
    """
    total, so_far = sum(counts.values()), dict.fromkeys(counts, 0)
    kinds = []
    for layer in range(1, total + 1):
        lags = {kind: count * layer - so_far[kind] * total for kind, count in counts.items()}
        kind = max(lags, key=lags.__getitem__)
        so_far[kind] += 1
        kinds.append(kind)
    return kinds


VARIANT = "variant"
"""Start of the kinds of layers with other sizes."""


def _partitions(shape: Shape) -> Iterator[Sequence[str]]:
    """Kinds of every layer, by what divides the layers: mixers, MLPs and experts, and others."""
    window, sparse, state = shape.window, shape.sparse, shape.state
    compressed = {f"compressed{index}": part.layers for index, part in enumerate(shape.compressed)}
    limited = {
        **compressed,
        "window": 0 if window is None else window.layers - sum(compressed.values()),
        "sparse": 0 if sparse is None else sparse.layers,
    }
    mixers = {"full": shape.attention_layers - sum(limited.values()), **limited}
    if state is not None and not state.beside:
        mixers["state"] = state.layers
    feeds = {"mlp": shape.mlp_layers, "experts": shape.moe_layers}
    if shape.single:
        yield spread_kinds({**mixers, **feeds})
    elif shape.variants:
        varied = {f"{VARIANT}{index}": part.layers for index, part in enumerate(shape.variants)}
        yield spread_kinds({"": shape.layers - sum(varied.values()), **varied})
    else:
        yield spread_kinds(mixers)
        yield [kind for kind, count in feeds.items() for _ in range(count)]
    if shape.moe is not None and (hashed := shape.moe.hash_layers):
        dense = shape.layers - shape.moe_layers
        yield [*[""] * dense, *["hashed"] * hashed, *[""] * (shape.moe_layers - hashed)]
    for kind, count in (
        ("beside", state.layers if state is not None and state.beside else 0),
        ("indexer", 0 if sparse is None else sparse.indexers),
    ):
        if count:
            yield spread_kinds({kind: count, "": shape.layers - count})


def _stage_shape(shape: Shape, parts: Counter[str], ends: Mapping[str, Any]) -> StageShape:
    """Shape of one stage.

    Args:
        shape: The model.
        parts: Layers by kind [1].
        ends: Further keys: what its ends have, its layers.
    """
    keys: dict[str, Any] = {name: getattr(shape, name) for name in type(shape).model_fields}
    keys |= ends
    compressed = tuple(
        part.model_copy(update={"layers": parts[f"compressed{index}"]})
        for index, part in enumerate(shape.compressed)
    )
    keys["compressed"] = tuple(part for part in compressed if part.layers)
    if shape.window is not None:
        layers = parts["window"] + sum(part.layers for part in compressed)
        keys["window"] = shape.window.model_copy(update={"layers": layers})
    if shape.sparse is not None:
        counts = {"layers": parts["sparse"], "indexer_layers": parts["indexer"]}
        keys["sparse"] = shape.sparse.model_copy(update=counts) if any(counts.values()) else None
    if shape.state is not None:
        layers = parts["beside" if shape.state.beside else "state"]
        state = shape.state.model_copy(update={"layers": layers})
        keys["state"] = state if layers else None
    if shape.variants:
        varied = [
            part.model_copy(update={"layers": parts[f"{VARIANT}{index}"]})
            for index, part in enumerate(shape.variants)
        ]
        keys["variants"] = tuple(part for part in varied if part.layers)
        alike = ends["layers"] - sum(part.layers for part in varied if part.F or part.mlp)
        keys["mlp"] = shape.mlp and shape.mlp.model_copy(update={"layers": alike})
    else:
        keys["mlp"] = shape.mlp and shape.mlp.model_copy(update={"layers": parts["mlp"]})
    if shape.moe is not None:
        counts = {"layers": parts["experts"], "hash_layers": parts["hashed"]}
        keys["moe"] = shape.moe.model_copy(update=counts)
    if not ends["last"]:
        keys |= {"scores": 0, "model_norms": 0, "mtp": False, "head_bias": False}
    if not ends["first"]:
        keys |= {"positions": 0, "encoder": 0}
    return StageShape.model_construct(**keys)
