"""Least operator work from its arguments: FLOP, bytes, and the dtype of products.

Each rule binds arguments to a kernel of the package; `operators.yaml` says which operator has which
rule, and where its arguments are. Bytes are compulsory traffic: every argument read once, every
result written once. FLOP are products of matrices, convolutions and attention; everything else is
bound by its bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflines.basics.yaml_file import read_package_yaml
from rooflines.traces.convolutions import convolution_sizes
from rooflines.traces.kernel_works import KernelWork, kernel_work, matmul_work
from rooflines.traces.tensors import RecordedArguments, recorded_arguments
from rooflines.traces.trace_records import OperatorCost

if TYPE_CHECKING:
    from rooflines.traces.tensors import TensorArgument
    from rooflines.traces.trace_records import Arguments

OPERATORS_FILE = Path(__file__).with_name("operators.yaml")

Places = Mapping[str, Any]
"""Places of arguments by their role in a rule, and a rule's options."""

Rule = Callable[[RecordedArguments, Places], OperatorCost | None]

ATEN = "aten::"

FOREACH = "aten::_foreach"
"""Beginning of operators on lists of tensors, element by element."""

TRITON = "triton_"
"""Beginning of kernels that Inductor writes; `triton_red` and `triton_per` reduce."""

TRITON_REDUCTIONS = ("triton_red", "triton_per")

UNREADABLE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    StopIteration,
    TypeError,
    ValueError,
)
"""Errors of a rule whose arguments are not recorded as its operator has them."""

TF32 = re.compile(r"tf32|s1688|xf32|_S_B_", re.IGNORECASE)
"""Kernel names of fp32 products in tf32, on the matrix unit."""

VECTOR_UNIT = re.compile(r"simt|sgemm|ffma|gemv|_SB_|dot_kernel", re.IGNORECASE)
"""Kernel names of fp32 products on the vector unit."""

FP32, FP32_VECTOR = "fp32", "fp32 vector"
"""Compute of fp32 products: on the faster unit, tf32 included; on the vector unit."""

SCALAR_FLOAT = "6"
"""PyTorch's number of dtype float."""

NUMBER_BYTES = 8
"""Bytes of a Python number that a device holds [byte]."""

PACKED_DIMS = 3
"""Dims of queries whose sequences are packed: tokens, heads, size [1]."""

ADAM_LISTS = 4
"""Lists of Adam: parameters, gradients, two moments [1]."""

HALF_TENSOR_BYTES = 2
"""Bytes per element of results of products in formats of one byte [byte]."""


# ------------------------------------------------------------ products


def unit_of_fp32(compute: str | None, kernels: Sequence[str]) -> str | None:
    """Compute dtype; for fp32 products with the unit that kernel names tell."""
    if compute != FP32:
        return compute
    if any(TF32.search(name) for name in kernels):
        return "tf32"
    return FP32_VECTOR if any(VECTOR_UNIT.search(name) for name in kernels) else FP32


def _matmul(recorded: RecordedArguments, places: Places) -> OperatorCost:
    x, w = recorded.tensor(places["x"]), recorded.tensor(places["w"])
    if places.get("transposed"):
        rows, columns, batch = prod(x.dims[:-1]), w.dims[0], 1
    else:
        rows, columns, batch = x.dims[-2], w.dims[-1], prod(x.dims[:-2])
    sizes = {"G": batch, "B": rows, "D": x.dims[-1] * x.packed, "F": columns * w.packed}
    if not places.get("transposed") and w.packed > 1:
        sizes["F"] = columns  # packed along D
    arguments = {"x": [x], "w": [w], "scales": recorded.tensors(places.get("scales", ()))}
    added = recorded.find(places.get("added"))
    if added is not None and recorded.value(places.get("beta")) not in ("0", "0."):
        is_bias = not places.get("transposed") or added.dims == (columns,)
        arguments["added"] = [added] if is_bias else []
    out = recorded.find(places.get("out"))
    out_bytes = out.element_bytes if out else _result_bytes(x, recorded, places)
    work = matmul_work(sizes, arguments, out_bytes)
    wider = w if w.element_bytes > x.element_bytes else x
    return OperatorCost(
        "matmul",
        work.flops,
        wider.format,
        work.memory_bytes,
        sizes={"batch": batch, **{letter: sizes[letter] for letter in "BDF"}},
        dtypes={"x": x.dtype, "w": w.dtype, "out": out.dtype if out else x.dtype},
    )


def _result_bytes(x: TensorArgument, recorded: RecordedArguments, places: Places) -> int:
    """Bytes per element in a product's result [byte]."""
    if recorded.value(places.get("out_type")) == SCALAR_FLOAT:
        return 4
    return HALF_TENSOR_BYTES if x.element_bytes == 1 else x.element_bytes


def _experts(recorded: RecordedArguments, places: Places) -> OperatorCost | None:
    x, chosen = recorded.tensor(places["x"]), recorded.tensor(places["chosen"])
    up, down = recorded.tensor(places["up"]), recorded.tensor(places["down"])
    experts, columns, stored_width = up.dims
    width = x.dims[-1]
    packed, rest = divmod(width, stored_width)  # weights of 4 bit: two in a byte
    if rest or packed not in (1, 2):
        return None
    letters = {"B": x.elements // width, "D": width, "F": down.dims[-1] * packed}
    letters |= {"E": experts, "k": chosen.dims[-1]}
    gate = {"gate": "gated" if columns > letters["F"] else "ungated"}
    weight_bytes = up.element_bytes / packed
    arguments = {"x": [x], "out": [x]}
    work = kernel_work("experts", letters, arguments, weight_bytes, options=gate)
    compute = up.format if x.element_bytes == 1 else x.format
    return OperatorCost(
        "experts", work.flops, compute, work.memory_bytes, exact=False, sizes=letters
    )


def _convolution(recorded: RecordedArguments, places: Places) -> OperatorCost:
    x, w = recorded.tensor(0), recorded.tensor(1)
    sizes = convolution_sizes(x, w, recorded, places)
    bias = recorded.find(2)
    arguments = {"x": [x], "w": [w], "out": [x.with_dims(*sizes.out_dims)]}
    if bias is not None and len(bias.dims) == 1:
        arguments["bias"] = [bias]
    work = kernel_work("conv2d", sizes.letters, arguments)
    return OperatorCost("convolution", work.flops, x.format, work.memory_bytes)


def _convolution_backward(recorded: RecordedArguments, places: Places) -> OperatorCost:
    x, w = recorded.tensor(places["x"]), recorded.tensor(places["w"])
    sizes = convolution_sizes(x, w, recorded, places)
    mask = recorded.numbers(places["mask"]) or [True, True]
    gradient = {"out": [recorded.tensor(places["grad"])], "x": [], "w": []}
    moved = kernel_work("conv2d", sizes.letters, gradient)
    flops, memory_bytes = 0.0, moved.memory_bytes
    whole_x, whole_w = x.with_dims(*x.dims), w.with_dims(*w.dims)
    for is_wanted, read, written in ((mask[0], w, whole_x), (mask[1], x, whole_w)):
        if is_wanted:
            work = kernel_work("conv2d", sizes.letters, {"x": [read], "w": [written], "out": []})
            flops, memory_bytes = flops + work.flops, memory_bytes + work.memory_bytes
    return OperatorCost("convolution", flops, x.format, memory_bytes)


# ------------------------------------------------------------ attention


def _attention(recorded: RecordedArguments, places: Places) -> OperatorCost:
    return _attention_cost(recorded, places, None)


def _attention_backward(recorded: RecordedArguments, places: Places) -> OperatorCost:
    return _attention_cost(recorded, places, "backward")


def _attention_cost(recorded: RecordedArguments, places: Places, flag: str | None) -> OperatorCost:
    """Attention work on queries, keys and values as one kernel."""
    q, k, v = recorded.tensors(range(places["q"], places["q"] + 3))
    batch: int = q.dims[0]
    new: int | Fraction
    context: int | Fraction
    if len(q.dims) == PACKED_DIMS:  # sequences of mean length have the least pairs
        lengths = recorded.find(places.get("lengths"))
        batch = lengths.dims[0] - 1 if lengths and lengths.dims else 1
        new, context = Fraction(q.dims[0], batch), Fraction(k.dims[0], batch)
        heads, kv_heads = q.dims[1], k.dims[1]
    elif places.get("heads-first"):
        heads, kv_heads, new, context = q.dims[1], k.dims[1], q.dims[2], k.dims[2]
    else:
        heads, kv_heads, new, context = q.dims[2], k.dims[2], q.dims[1], k.dims[1]
    size, value_size = q.dims[-1], v.dims[-1]
    left = recorded.number(places.get("window"), -1)
    is_causal = recorded.flag(places.get("causal")) or left >= 0
    letters = {"B": batch, "N": heads, "K": kv_heads, "H": size, "Hv": value_size, "S": context}
    letters["T"] = min(new, context) if is_causal else new
    letters["window"] = min(left + 1, context) if left >= 0 else context
    out = v.with_dims(q.stored_elements // size, value_size)
    arguments = {"q": [q], "kv": [k, v], "out": [out]}
    if flag is not None:
        arguments |= {"grad_out": [out], "grad_q": [q], "grad_kv": [k, v]}
    mask = {"mask": "causal" if is_causal else "full"}
    work = kernel_work("attention", letters, arguments, options=mask, flag=flag)
    name = "attention" if flag is None else "attention backward"
    sizes = {"B": batch, "N": heads, "K": kv_heads, "H": size}
    sizes |= {"T": round(new), "S": round(context), "causal": int(is_causal)}
    return OperatorCost(name, work.flops, q.format, work.memory_bytes, sizes=sizes)


# ------------------------------------------------------------ norms and activations


def _width_of(x: TensorArgument, recorded: RecordedArguments) -> int:
    """Columns that a norm's weight has; without a weight, those in x [1]."""
    vectors = [tensor for tensor in recorded.flat(1) if len(tensor.dims) == 1]
    return vectors[0].elements if vectors else x.dims[-1]


def _rows(elements: int, width: int) -> dict[str, int | Fraction]:
    """Row letters."""
    return {"B": Fraction(elements, max(width, 1)), "D": width}


def _norm(recorded: RecordedArguments, places: Places) -> OperatorCost:
    x = recorded.tensor(places["x"])
    parameters = [tensor for tensor in recorded.flat() if tensor is not x]
    letters = _rows(x.elements, _width_of(x, recorded))
    arguments = {"x": [x], "w": parameters}
    work = kernel_work(places.get("kind", "layernorm"), letters, arguments, x.element_bytes)
    return _bytes_alone("norm", work)


def _norm_backward(recorded: RecordedArguments, places: Places) -> OperatorCost:
    grad, x = recorded.tensor(places["grad"]), recorded.tensor(places["x"])
    w = recorded.find(places["w"])
    weights = [w] if w is not None else []
    mask = recorded.numbers(places.get("mask")) or [True, True, True]
    kind = places.get("kind", "layernorm")
    gradients = [w for wanted in mask[1:] if wanted and w is not None]
    arguments = {"grad_out": [grad], "x": [x], "w": weights, "grad_w": gradients}
    arguments |= {} if mask[0] else {"grad_x": []}
    letters = _rows(x.elements, _width_of(x, recorded))
    work = kernel_work(kind, letters, arguments, x.element_bytes, flag="backward")
    return _bytes_alone("norm", work)


def _residual_norm(recorded: RecordedArguments, places: Places) -> OperatorCost:
    x, residual, w = (recorded.tensor(places[name]) for name in ("x", "residual", "w"))
    arguments = {"x": [x], "residual": [residual], "w": [w], "out": [x], "sum": [residual]}
    return _bytes_alone("norm", kernel_work("rmsnorm", {}, arguments, flag="residual"))


def _softmax(recorded: RecordedArguments, places: Places) -> OperatorCost:
    x = recorded.tensor(places["x"])
    work = kernel_work("softmax", _rows(x.elements, x.dims[-1]), {"x": [x]}, x.element_bytes)
    return _bytes_alone("softmax", work)


def _softmax_backward(recorded: RecordedArguments, places: Places) -> OperatorCost:
    grad, x = recorded.tensor(places["grad"]), recorded.tensor(places["x"])
    arguments = {"grad_out": [grad], "x": [x]}
    letters = _rows(grad.elements, grad.dims[-1])
    work = kernel_work("softmax", letters, arguments, grad.element_bytes, flag="backward")
    return _bytes_alone("softmax", work)


def _gated(recorded: RecordedArguments, places: Places) -> OperatorCost:
    out, x = recorded.tensor(places["out"]), recorded.tensor(places["x"])
    kind = places.get("kind", "swiglu")
    work = kernel_work(kind, {}, {"gate_up": [x], "out": [out]})
    return _bytes_alone("elementwise", work)


def _rotary(recorded: RecordedArguments, places: Places) -> OperatorCost:
    rotated = recorded.tensors((places["q"], places["k"]))
    return _bytes_alone("rotary", kernel_work("rotary", {}, {"qk": rotated, "out": rotated}))


# ------------------------------------------------------------ copies, rows, sums


def _copy(recorded: RecordedArguments, places: Places) -> OperatorCost:
    out, x = recorded.tensor(places["out"]), recorded.tensor(places["x"])
    whole = out.with_dims(*out.dims)
    read = x if x.stored_elements <= whole.elements else x.with_dims(*out.dims)
    return _bytes_alone("copy", kernel_work("copy", {}, {"x": [read], "out": [whole]}))


def _fill(recorded: RecordedArguments) -> OperatorCost:
    out = recorded.find(0)
    if out is None:
        return OperatorCost("fill", memory_bytes=NUMBER_BYTES)
    return _bytes_alone("fill", kernel_work("fill", {}, {"out": [out]}))


def _concatenate(recorded: RecordedArguments) -> OperatorCost | None:
    parts = recorded.places[0]
    if not isinstance(parts, tuple) or not recorded.lists:
        return None
    tensors = [*recorded.lists[0]]
    return _bytes_alone("copy", kernel_work("copy", {}, {"x": tensors, "out": tensors}))


def _cache_write(recorded: RecordedArguments, places: Places) -> OperatorCost:
    k, v, cache_tensor = (recorded.tensor(places[name]) for name in ("k", "v", "cache"))
    letters = {"B": 1, "D": k.stored_elements + v.stored_elements}
    arguments = {"x": [k, v]}
    work = kernel_work("scatter-rows", letters, arguments, cache_tensor.element_bytes)
    return _bytes_alone("cache write", work)


def _table_rows(recorded: RecordedArguments, places: Places) -> OperatorCost:
    table, index = recorded.tensor(places["table"]), recorded.tensor(places["index"])
    letters = {"B": index.elements, "V": table.dims[0], "D": prod(table.dims[1:])}
    work = kernel_work("embedding", letters, {"index": [index]}, table.element_bytes)
    return replace(_bytes_alone("gather", work), exact=False)


def _gather(recorded: RecordedArguments, places: Places) -> OperatorCost:
    """One element for each index: both are read, the result is written."""
    table, index = recorded.tensor(places["table"]), recorded.tensor(places["index"])
    element = table.with_dims(*index.dims)
    arguments = {"x": [element, index], "out": [element]}
    return replace(_bytes_alone("gather", kernel_work("copy", {}, arguments)), exact=False)


def _reduction(recorded: RecordedArguments) -> OperatorCost:
    x = next(recorded.flat())
    lists = (value for value in recorded.values if value.startswith("["))
    axes = next(map(_axes, lists), None)
    if axes is None:
        axis = recorded.value(1)
        axes = [int(axis)] if re.fullmatch(r"-?\d+", axis) else []
    rank = max(len(x.dims), 1)
    summed = {axis % rank for axis in axes} if axes else set(range(rank))
    left = prod(size for axis, size in enumerate(x.dims) if axis not in summed)
    letters = _rows(x.elements, x.elements // max(left, 1)) | {"B": left}
    return _bytes_alone("reduction", kernel_work("sum", letters, {"x": [x]}, x.element_bytes))


def _axes(text: str) -> list[int]:
    """Axes in a text such as `[-1]`."""
    return [int(axis) for axis in re.findall(r"-?\d+", text)]


def _optimizer(recorded: RecordedArguments) -> OperatorCost | None:
    """Adam step: all is read, and all but the gradients written."""
    if len(recorded.lists) < ADAM_LISTS:
        return None
    states, gradients, *moments = (
        sum(tensor.stored_bytes for tensor in part) for part in recorded.lists[:ADAM_LISTS]
    )
    letters = {"parameters": 1, "state_bytes": states + sum(moments), "gradient_bytes": gradients}
    return _bytes_alone("optimizer", kernel_work("adam", letters, {}, 1))


# ------------------------------------------------------------ bytes alone


def _bytes_alone(kind: str, work: KernelWork) -> OperatorCost:
    """Cost without products."""
    return OperatorCost(kind, memory_bytes=work.memory_bytes)


def _streamed(
    kind: str,
    arguments: Sequence[TensorArgument],
    *results: TensorArgument,
    exact: bool = True,
) -> OperatorCost | None:
    """Arguments read once, results written once, as a copy does; None: there are none."""
    if not arguments:
        return None
    work = kernel_work("copy", {}, {"x": arguments, "out": results})
    return OperatorCost(kind, memory_bytes=work.memory_bytes, exact=exact)


def _arguments_once(recorded: RecordedArguments, places: Places) -> OperatorCost | None:
    return _streamed(places["kind"], [*recorded.flat()])


def _result_like_first(recorded: RecordedArguments, places: Places) -> OperatorCost | None:
    tensors = [*recorded.flat()]
    return _streamed(places["kind"], tensors, *(t.with_dims(*t.dims) for t in tensors[:1]))


def _upsample(recorded: RecordedArguments) -> OperatorCost | None:
    """Image with another size, which is a number list; else the image is scaled, and read alone."""
    x = recorded.tensor(0)
    lists = (recorded.numbers(place) for place in range(1, len(recorded.values)))
    sides = next((sizes for sizes in lists if len(sizes) == len(x.dims) - 2), None)
    return _streamed("upsample", [x], *([x.with_dims(*x.dims[:2], *sides)] if sides else []))


def _elementwise(recorded: RecordedArguments, places: Places) -> OperatorCost | None:
    """Element by element: in place, into `out=`, or into a result of the promoted dtype."""
    name, tensors = places["name"], [*recorded.flat()]
    if not tensors:
        return OperatorCost("elementwise", memory_bytes=NUMBER_BYTES * len(recorded.places))
    if name.endswith("_"):
        return _streamed("elementwise", tensors, tensors[0])
    if any(recorded.flat(places["before_out"])):
        return _streamed("elementwise", tensors)
    work = kernel_work("copy", {}, {"x": tensors, "out": []})
    written = prod(_broadcast(tensors)) * _promoted_bytes(name, tensors, boolean=places["boolean"])
    return OperatorCost("elementwise", memory_bytes=work.memory_bytes + written)


def _promoted_bytes(name: str, tensors: Sequence[TensorArgument], *, boolean: bool) -> int:
    """Bytes per result element [byte]: the wider dtype, among tensors with dims if any."""
    if boolean:
        return 1
    joined = [tensor for tensor in tensors if name != "where" or tensor.dtype != "bool"] or tensors
    widest = max(tensor.element_bytes for tensor in joined)
    with_dims = [tensor.element_bytes for tensor in tensors if tensor.dims]
    if widest == NUMBER_BYTES and any(size < NUMBER_BYTES for size in with_dims):
        return max(with_dims)
    return widest


def _broadcast(tensors: Sequence[TensorArgument]) -> list[int]:
    """Dims that tensors are broadcast to [1]."""
    rank = max(len(tensor.dims) for tensor in tensors)
    padded = [(1,) * (rank - len(tensor.dims)) + tensor.dims for tensor in tensors]
    return [0 if 0 in sizes else max(sizes) for sizes in zip(*padded, strict=True)]


def _foreach(recorded: RecordedArguments, places: Places) -> OperatorCost | None:
    """Lists with tensors, the first is written; a copy writes what it has listed."""
    lists = recorded.lists
    tensors = [tensor for part in lists for tensor in part]
    written = lists[0] if lists and places["name"] != "_foreach_copy_" else ()
    return _streamed("elementwise", tensors, *written)


def _triton(recorded: RecordedArguments, places: Places) -> OperatorCost | None:
    """Inductor kernel: its last numbers say how many elements it goes over."""
    numbers = [int(value) for value in recorded.values if re.fullmatch(r"\d+", value)]
    used = 2 if places["name"].startswith(TRITON_REDUCTIONS) else 1
    if len(numbers) < used:
        return None
    over = prod(numbers[-used:])
    tensors = [
        tensor if tensor.stored_elements <= over else tensor.with_dims(over)
        for tensor in recorded.flat()
    ]
    return _streamed("fused", tensors, exact=False)


# ------------------------------------------------------------ the table


RULES: Mapping[str, Rule] = {
    "matmul": _matmul,
    "experts": _experts,
    "convolution": _convolution,
    "convolution-backward": _convolution_backward,
    "attention": _attention,
    "attention-backward": _attention_backward,
    "norm": _norm,
    "norm-backward": _norm_backward,
    "residual-norm": _residual_norm,
    "gated": _gated,
    "rotary": _rotary,
    "cache-write": _cache_write,
    "rows": _table_rows,
    "gather": _gather,
    "softmax": _softmax,
    "softmax-backward": _softmax_backward,
    "copy": _copy,
    "arguments-once": _arguments_once,
    "result-like-first": _result_like_first,
    "elementwise": _elementwise,
    "foreach": _foreach,
    "triton": _triton,
}
"""Rules by the name that `operators.yaml` has for them."""

RULES_WITHOUT_PLACES: Mapping[str, Callable[[RecordedArguments], OperatorCost | None]] = {
    "fill": _fill,
    "concatenate": _concatenate,
    "reduction": _reduction,
    "optimizer": _optimizer,
    "upsample": _upsample,
}
"""Rules whose operators all have their arguments at the same places."""


@cache
def operator_table() -> Mapping[str, tuple[str, Places]]:
    """Rule and places by operator."""
    content = read_package_yaml(OPERATORS_FILE)
    return dict(_entries(content))


def _entries(content: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, Places]]]:
    boolean = {*content["boolean"]}
    for rule, operators in content.items():
        if rule == "boolean":
            continue
        if rule == "elementwise":
            for before_out, names in operators.items():
                for name in (form for base in names for form in (base, f"{base}_")):
                    places = {"name": name, "before_out": int(before_out)}
                    yield f"{ATEN}{name}", (rule, places | {"boolean": name in boolean})
        elif isinstance(operators, Sequence):
            yield from ((f"{ATEN}{name}", (rule, {})) for name in operators)
        elif rule in ("arguments-once", "result-like-first"):
            for kind, names in operators.items():
                yield from ((name, (rule, {"kind": kind})) for name in names)
        else:
            yield from ((name, (rule, places)) for name, places in operators.items())


def _entry(name: str) -> tuple[str, Places] | None:
    """Rule and places for an operator; None: it has none."""
    if name.startswith(FOREACH):
        return "foreach", {"name": name.removeprefix(ATEN)}
    if name.startswith(TRITON):
        return "triton", {"name": name}
    entry = operator_table().get(name)
    return entry if entry and entry[0] in {*RULES, *RULES_WITHOUT_PLACES} else None


def has_rule(name: str) -> bool:
    """True for an operator with a rule for its work."""
    return _entry(name) is not None


def operator_cost(
    name: str, arguments: Arguments, kernels: Sequence[str] = ()
) -> OperatorCost | None:
    """Least work in a call; None: its operator has no rule, or its shapes are not recorded.

    Args:
        name: The operator.
        arguments: Its arguments.
        kernels: Names of the kernels that it launched, which tell dtypes in lists, and the unit for
            fp32 products.
    """
    if not arguments.input_dims:
        return None
    return _cached_cost(name, arguments, tuple(sorted({*kernels}))[:4])


@lru_cache(1 << 16)
def _cached_cost(name: str, arguments: Arguments, kernels: tuple[str, ...]) -> OperatorCost | None:
    entry = _entry(name)
    if entry is None:
        return None
    rule, places = entry
    with suppress(*UNREADABLE):
        recorded = recorded_arguments(arguments, kernels)
        plain_rule = RULES_WITHOUT_PLACES.get(rule)
        cost = plain_rule(recorded) if plain_rule else RULES[rule](recorded, places)
        if cost is not None:
            return replace(
                cost,
                compute=unit_of_fp32(cost.compute, kernels),
                repeated_bytes=float(_repeated_bytes(recorded)),
            )
    return None


def _repeated_bytes(recorded: RecordedArguments) -> int:
    """Bytes in tensors with the dims and dtype of another argument: they may be the same."""
    seen, repeated = set[tuple[tuple[int, ...], str]](), 0
    for tensor in recorded.flat():
        key = (tensor.dims, tensor.dtype)
        repeated += tensor.stored_bytes if key in seen else 0
        seen.add(key)
    return repeated
