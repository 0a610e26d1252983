"""Kinds of kernels: worked values, laws, and an independent model in exact arithmetic.

The worked values are tests/cases/kernel_kinds.yaml; the model is tests/support/oracle/kernel_kinds.
"""
# Sizes have the letters of the docs.
# ruff: noqa: N806

import random
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import oracle.kernel_kinds as oracle
import polars as pl
import pytest
from case_files import case
from random_kernels import FLAGS, ROLES, dtypes_of, options_of, question, sizes_of

import rooflines
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.kinds.kernel_forms import kernel_form, kernel_sizes, with_letters
from rooflines.kinds.kernel_results import RESULT_COLUMNS
from rooflines.kinds.kind_table import BY_NAME, KINDS
from rooflines.kinds.placed_kernels import KernelRates, PlacedKernel, kernel_rates
from rooflines.models.architecture import Phase
from rooflines.models.groups import groups_of
from rooflines.models.library import load, model_entries
from rooflines.training.parallel_plan import TrainingPlan
from rooflines.training.training_kernels import ModelKernels

CASES = case("kernel_kinds")
EXACTLY = 1e-14
"""Relative error of a number with a few dozen roundings [1]."""

EACH = pytest.mark.parametrize("kind", KINDS)
PRODUCTS = pytest.mark.parametrize("kind", sorted(oracle.PRODUCTS))
AMOUNTS = ("flops", "memory_bytes", "vector_flops", "exponentials", "pairs", "touched")


def asked(text):
    """Arguments of a call that a case writes as words: kind, letters, options, dtypes."""
    kind, *words = text.split()
    arguments: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        arguments[name] = int(value) if value.isdigit() else value if equals else True
    dtypes = arguments.pop("dtypes", "bf16")
    if ":" in dtypes:
        dtypes = dict(part.split(":") for part in dtypes.split(","))
    return kind, {"dtypes": dtypes, **arguments}


def printed(value, text):
    """True if a number is the printed one, to half of its last digit."""
    if not isinstance(text, str):
        return value == text
    known = Decimal(text.replace(",", ""))
    last = Decimal(1).scaleb(int(known.as_tuple().exponent))
    return abs(Decimal(value) - known) <= last / 2


def close(found, known):
    """True if a number is a known one but for rounding, or both are null."""
    if found is None or known is None:
        return found is known
    return found == pytest.approx(float(known), rel=EXACTLY)


# ------------------------------------------------------------ worked values


@pytest.mark.parametrize("known", CASES["values"], ids=lambda known: known["name"])
def test_a_kernel_has_its_worked_values(known):
    kind, arguments = asked(known["ask"])
    wrong: dict[tuple[str, str], Any] = {}
    for chip, micros in known.get("us", {"h100": {}}).items():
        result = rooflines.kernel(chip, kind, **arguments)
        seconds: dict[str, Any] = {
            "math": result.t_math_s,
            "memory": result.t_memory_s,
            "exp": result.t_exp_s,
            "lower": result.t_lower_s,
        }
        values = {name: getattr(result, name) for name in known.get("is", {})}
        wrong |= {
            (chip, name): values[name]
            for name, text in known.get("is", {}).items()
            if not printed(values[name], text)
        }
        wrong |= {
            (chip, name): seconds[name]
            for name, text in micros.items()
            if name != "bound" and not printed(seconds[name] * 1e6, text)
        }
        if micros.get("bound", result.bound) != result.bound:
            wrong[chip, "bound"] = result.bound
    assert wrong == {}


@pytest.mark.parametrize("known", CASES["critical"], ids=lambda known: known["name"])
def test_a_critical_size_is_the_worked_one(known):
    kind, arguments = asked(known["ask"])
    found = rooflines.kernel(known["chip"], kind, **arguments).threshold(known["along"])
    if "critical" not in known:
        assert found.outcome == known["outcome"]
        assert found.critical is None
    else:
        assert (found.outcome, found.critical) == ("found", known["critical"])
    if "real" in known:
        assert printed(found.real, known["real"])
    if "limit" in known:
        assert printed(found.limit_intensity, known["limit"])


def test_every_kind_has_a_worked_value():
    assert {asked(known["ask"])[0] for known in CASES["values"]} == {*KINDS}


# ------------------------------------------------------------ an independent model


@EACH
def test_random_kernels_equal_fractions(kind):
    for _ in range(40):
        chip, options, dtypes, sizes = question(kind)
        known = oracle.work(kind, options, sizes, dtypes)
        found = rooflines.kernel(chip, kind, dtypes=dtypes, **options, **sizes)
        what = (chip, options, dtypes, sizes)
        for name in AMOUNTS:
            value, exact = getattr(found, name), known[name]
            whole = exact is None or Fraction(exact).denominator == 1
            # a mean over routings can be whole by chance, and has a few roundings
            nearly = exact is not None and abs(value - exact) <= 1e-14 * abs(exact)
            assert value == exact or nearly if whole else close(value, exact), (name, what)
        math, memory = oracle.times(chip, kind, options, sizes, dtypes)
        assert close(found.t_memory_s, memory), what
        assert close(found.t_math_s, math), what
        assert found.t_lower_s == max(found.t_memory_s, found.t_math_s or 0)
        assert close(found.t_upper_s, memory + (math or 0)), what
        if math is not None and abs(math / memory - 1) > EXACTLY:
            assert found.bound == ("compute" if math > memory else "memory")


@EACH
def test_a_frame_has_the_numbers_of_single_calls(kind):
    chip, options, dtypes = "h100", options_of(kind), dtypes_of(kind, "h100-sxm")
    shapes: list[dict[str, Any]] = []
    while len(shapes) < 20:
        sizes = sizes_of(kind, options)
        if not shapes or sizes.keys() == shapes[0].keys():
            shapes.append(sizes)
    frame = pl.DataFrame(shapes).with_row_index("shape")
    found = rooflines.kernels(frame, chip, kind, dtypes=dtypes, **options)
    lazy = rooflines.kernels(frame.lazy(), chip, kind, dtypes=dtypes, **options).collect()
    assert found.equals(lazy)
    assert found.columns == [*frame.columns, *RESULT_COLUMNS]
    for row, sizes in zip(found.to_dicts(), shapes, strict=True):
        single = rooflines.kernel(chip, kind, dtypes=dtypes, **options, **sizes)
        for column in RESULT_COLUMNS:
            known = getattr(single, column)
            equal = row[column] == known if column == "bound" else close(row[column], known)
            assert equal, (column, options, dtypes, sizes)


LARGEST = {("attention", "K"), ("experts", "E"), ("muon", "F")}
"""Letters whose growth makes a kernel memory-bound."""


def ends(kind, axis, options, sizes):
    """Smallest and largest size along a letter."""
    if kind in ("attention", "mla", "mla-expanded") and axis == "S":
        fixed = "T" in sizes and options.get("mask") != "full"
        return sizes["T"] if fixed else 1, None
    if (kind, axis) in {("attention", "K"), ("attention", "window")}:
        return 1, sizes["N" if axis == "K" else "S"]
    if (kind, axis) in {("experts", "E"), ("muon", "F")}:
        return sizes["k" if axis == "E" else "D"], None
    return 1, {("experts", "k"): sizes.get("E"), ("muon", "D"): sizes.get("F")}.get((kind, axis))


def moved(kind, axis, options, sizes, size):
    """Sizes with another one along a letter; new tokens come after the same earlier ones."""
    if axis == "T" and kind in ("attention", "mla", "mla-expanded"):
        if options.get("mask") == "full":
            return {**sizes, "T": size}
        decode = options.get("phase", "decode" if kind == "mla" else "prefill") == "decode"
        new = sizes.get("T", 1 if decode else sizes["S"])
        return {**sizes, "T": size, "S": sizes["S"] - new + size}
    return {**sizes, axis: size}


def holding(scanned, chip, kind, options, sizes, dtypes, axis):  # noqa: PLR0913, PLR0917, a question
    """Sizes along a letter, and whether the kernel is compute-bound there, in fractions."""
    return {
        size: oracle.is_compute_bound(
            chip, kind, options, moved(kind, axis, options, sizes, size), dtypes
        )
        for size in scanned
    }


@PRODUCTS
def test_every_critical_size_holds_and_its_neighbour_does_not(kind):
    chips = chip_entries()
    for _ in range(12):
        chip, options, dtypes, sizes = question(kind, most=random.choice([8, 64, 1024]))
        form = with_letters(kernel_form(kind, dtypes, options), sizes)
        sizes = kernel_sizes(form, sizes)
        placed = PlacedKernel(form, kernel_rates(chips[chip], chip, form))
        for axis in placed.axes(sizes):
            found = placed.critical(axis, sizes)
            low, high = ends(kind, axis, options, sizes)
            largest = (kind, axis) in LARGEST
            assert found.largest == largest

            top = high or 1 << 20
            scanned = {low, top, *(min(top, low + 3**power) for power in range(12))}
            scanned |= {random.randint(low, top) for _ in range(5)}
            what = (kind, axis, chip, options, dtypes, sizes, found)
            if found.outcome == "found":
                assert found.critical is not None
                assert found.real is not None
                assert low <= found.critical <= top or high is None, what
                near = {found.critical - 1, found.critical, found.critical + 1}
                scanned |= {size for size in near if size >= low and size <= (high or size)}
                assert not largest or found.critical >= low
                expected = {
                    size: size <= found.critical if largest else size >= found.critical
                    for size in scanned
                }
                assert holding(scanned, chip, kind, options, sizes, dtypes, axis) == expected, what
                assert abs(found.real - found.critical) <= 1, what
            else:
                assert found.outcome in ("always", "never"), what
                always = found.outcome == "always"
                found_bounds = holding(scanned, chip, kind, options, sizes, dtypes, axis)
                assert {*found_bounds.values()} == {always}, what


# ------------------------------------------------------------ laws


def amounts(result):
    """Amounts of a result."""
    return {name: getattr(result, name) for name in AMOUNTS}


def h100(kind, **arguments):
    return rooflines.kernel("h100-sxm", kind, **arguments)


HEADS = {"N": 32, "K": 8, "H": 128}


@pytest.fixture
def tokens():
    """Sizes of some sequences."""
    S = random.randint(2, 10**5)
    return {"B": random.randint(1, 64), "S": S, "T": random.randint(1, S)}


def test_a_window_of_all_tokens_is_no_window(tokens):
    wide = {"window": tokens["S"] + random.randint(0, 100)}
    assert amounts(h100("attention", **HEADS, **tokens, **wide)) == amounts(
        h100("attention", **HEADS, **tokens)
    )


def test_one_new_token_sees_all(tokens):
    one = {**HEADS, **tokens, "T": 1}
    full = h100("attention", **one, mask="full")
    assert amounts(full) == amounts(h100("attention", **one, phase="decode"))


def test_full_attention_of_one_head_has_the_flops_of_its_einsums(tokens):
    H, Hv = random.randint(1, 512), random.randint(1, 512)
    B, T, S = (tokens[letter] for letter in "BTS")
    found = h100("attention", **tokens, N=1, K=1, H=H, Hv=Hv, mask="full")
    scores = h100("linear-cross-entropy", B=B * T, D=H, V=S).flops
    values = h100("linear-cross-entropy", B=B * T, D=S, V=Hv).flops
    assert found.flops == scores + values


def test_decode_intensity_rises_with_context_and_stays_below_its_limit():
    for cache, bytes_each in (("bf16", 2), ("fp8", 1)):
        sizes = [2**power for power in range(4, 30)]
        found = [
            h100("attention", B=3, S=S, T=4, **HEADS, dtypes={"cache": cache}).memory_intensity
            for S in sizes
        ]
        assert found == sorted(set(found))
        assert found[-1] < 2 * 32 * 4 / (bytes_each * 8)


@pytest.mark.parametrize(
    ("kind", "letter"), [("attention", "B"), ("attention", "H"), ("experts", "D")]
)
def test_some_letters_change_neither_bound_nor_intensity(kind, letter):
    for _ in range(10):
        options, dtypes = options_of(kind), dtypes_of(kind, "h100-sxm")
        sizes = {name: size for name, size in sizes_of(kind, options).items() if name != "Hv"}
        one, other = (
            h100(kind, dtypes=dtypes, **options, **{**sizes, letter: size})
            for size in random.sample(range(1, 4096), 2)
        )
        if kind == "experts" and options.get("part", "both") != "both":
            continue  # rows of one part are F wide on one side
        assert one.memory_intensity == pytest.approx(other.memory_intensity, rel=1e-12)
        assert one.bound == other.bound


def test_half_the_cache_bits_halve_keys_and_values_alone(tokens):
    whole, half, none = (
        h100("attention", **HEADS, **tokens, dtypes={"x": "bf16", "cache": cache})
        for cache in ("bf16", "fp8", "fp32")
    )
    assert whole.flops == half.flops
    assert none.memory_bytes - whole.memory_bytes == 2 * (whole.memory_bytes - half.memory_bytes)
    assert whole.memory_bytes - half.memory_bytes == tokens["B"] * tokens["S"] * 8 * 256


def test_routings_touch_more_experts_in_order():
    for _ in range(50):
        sizes = sizes_of("experts", {})
        same, uniform, spread, every = (
            h100("experts", **sizes, routing=routing)
            for routing in ("same", "uniform", "spread", "all")
        )
        counts = [result.touched for result in (same, uniform, spread, every)]
        assert sorted(counts) == pytest.approx(counts, rel=EXACTLY)
        assert every.touched == sizes["E"]
        assert h100("experts", **{**sizes, "B": 1}).touched == sizes["k"]
        assert h100("experts", **{**sizes, "k": sizes["E"]}).touched == sizes["E"]
        assert amounts(uniform.strict) == amounts(same)
        assert every.strict is every


def test_one_expert_is_the_fused_mlp_and_its_part_a_matmul():
    B, D, F = (random.randint(1, 4096) for _ in range(3))
    one = {"B": B, "D": D, "F": F, "E": 1, "k": 1}
    mlp = h100("experts", **one)
    assert mlp.flops == 6 * B * D * F
    assert mlp.memory_bytes == 2 * (3 * D * F + 2 * B * D)
    down = h100("experts", **one, part="down")
    row = rooflines.explain("h100-sxm", f"{B}x{F}x{D}", "bf16").row
    assert (down.flops, down.memory_bytes) == (row["flops"], row["memory_bytes"])
    assert down.t_lower_s == pytest.approx(row["t_lower_s"], rel=EXACTLY)


def test_a_convolution_of_single_pixels_is_a_matmul():
    B, C, HW, F = (random.randint(1, 256) for _ in range(4))
    conv = h100("conv2d", B=B, C=C, HW=HW, F=F, k=1)
    row = rooflines.explain("h100-sxm", f"{B * HW * HW}x{C}x{F}", "bf16").row
    assert (conv.flops, conv.memory_bytes) == (row["flops"], row["memory_bytes"])
    assert conv.t_upper_s == pytest.approx(row["t_upper_s"], rel=EXACTLY)


@pytest.mark.parametrize("kind", ["delta-net", "mamba2"])
def test_chunks_do_at_least_the_recurrent_work(kind):
    sizes = {letter: random.randint(1, 256) for letter in ("B", "T", "N", "K", "H", "Hv")}
    recurrent = h100(kind, **sizes)
    chunked = [h100(kind, **sizes, chunk=chunk) for chunk in (1, 16, 64)]
    assert all(result.flops >= recurrent.flops for result in chunked)
    assert {result.memory_bytes for result in chunked} == {recurrent.memory_bytes}


MODELS = {
    "A1": ("llama-3.1-8b", "prefill", {"B": 1, "S": 8192}, "bf16", "attention"),
    "A2": ("llama-3.1-8b", "decode", {"B": 8, "S": 8192}, "bf16", "attention"),
    "M1": ("deepseek-v3", "decode", {"B": 128, "S": 4096}, "bf16", "attention"),
    "E1": ("deepseek-v3", "decode", {"B": 128, "S": 4096}, "fp8", "experts"),
    "E2": ("mixtral-8x7b", "decode", {"B": 16, "S": 4096}, "bf16", "experts"),
}


@pytest.mark.parametrize("name", MODELS)
def test_kernels_are_those_of_models(name):
    model, phase, grid, dtypes, group = MODELS[name]
    sweep = {"models": model, "phase": phase, "grid": grid, "dtypes": dtypes, "chips": "h100-sxm"}
    layers = rooflines.model_layers(rooflines.load_config({"model-sweeps": {"one": sweep}}), "one")
    (row,) = layers.filter(pl.col("group") == group).collect().to_dicts()
    (known,) = [value for value in CASES["values"] if value["name"].split()[0] == name]
    kind, arguments = asked(known["ask"])
    found = h100(kind, **arguments)
    assert found.flops == row["flops"]
    parts = ("weight_bytes", "kv_cache_bytes", "activation_bytes")
    weights, cache, handed = (row[part] for part in parts)
    if group == "experts":
        B, D = arguments["B"], arguments["D"]
        assert found.memory_bytes - 4 * B * D == pytest.approx(weights, rel=EXACTLY)
    else:
        assert found.memory_bytes == cache + handed


BOUND: dict[str, tuple[str, Phase, set[str]]] = {
    "attention": ("llama-3.1-8b", "decode", {"attention"}),
    "mla": ("deepseek-v3", "decode", {"attention"}),
    "mla-expanded": ("deepseek-v3", "prefill", {"attention"}),
    "experts": ("deepseek-v3", "decode", {"experts", "shared"}),
    "delta-net": ("qwen3.5-35b-a3b", "decode", {"state"}),
    "mamba2": ("mamba2", "prefill", {"state"}),
}
"""A model, a phase and its groups that are kernels of a kind."""


def model_shape(name):
    """Shape of a model in the catalogue; of the first with a Mamba-2 state."""
    if name != "mamba2":
        return load(name).shape
    states = ((entry, load(entry).shape) for entry in model_entries())
    return next(shape for _, shape in states if shape.state and shape.state.kind == "mamba2")


@pytest.mark.parametrize("kind", BOUND)
def test_a_formula_of_a_kind_is_that_of_models(kind, monkeypatch):
    model, phase, bound = BOUND[kind]
    shape = model_shape(model)
    before = groups_of(shape, phase)
    entry = KINDS[kind]
    thrice = {name: replace_tensor(tensor) for name, tensor in entry.writes.items()}
    changed = replace(entry, flops=f"5*({entry.flops})", writes=thrice)
    monkeypatch.setitem(BY_NAME, kind, changed)
    after = groups_of(shape, phase)
    factor = {group.name: 5 if group.name in bound else 1 for group in before}
    for old, new in zip(before, after, strict=True):
        assert new.flops == {product: factor[old.name] * n for product, n in old.flops.items()}
    outs = {old.name for old, new in zip(before, after, strict=True) if new.writes != old.writes}
    replaced = {"experts"} if kind == "experts" else set[str]()  # rows once an expert
    assert outs == bound - replaced


def replace_tensor(tensor):
    """A tensor with three times the elements."""
    return tensor._replace(elements=f"3*({tensor.elements})")


def test_an_optimizer_of_training_is_adam():
    bits = dict.fromkeys(("master", "moments"), Fraction(32))
    bits |= dict.fromkeys(
        ("weights", "experts", "head", "lm_head", "rest", "gradients", "activations", "combine"),
        Fraction(16),
    )
    model, plan = load("llama-3.1-8b"), TrainingPlan.model_validate({})
    kernels = ModelKernels.with_dtypes(model.shape, bits, ("bf16", "bf16"))
    runs = (run for runs in kernels.over[(), None, None].runs(plan) for run in runs.runs)
    (step,) = (run.kernel for run in runs if run.kernel.name == "optimizer")
    known = h100("adam", parameters=model.parameters().total)
    assert step.work("memory_bytes").at({}) == known.memory_bytes


@PRODUCTS
def test_twice_all_rates_halve_times_and_keep_thresholds(kind):
    chips = chip_entries()
    for _ in range(5):
        chip, options, dtypes, sizes = question(kind, most=256)
        form = with_letters(kernel_form(kind, dtypes, options), sizes)
        rates = kernel_rates(chips[chip], chip, form)
        twice = KernelRates(
            rates.matrix and 2 * rates.matrix,
            rates.vector and 2 * rates.vector,
            2 * rates.memory,
            rates.exp and 2 * rates.exp,
        )
        one, other = PlacedKernel(form, rates), PlacedKernel(form, twice)
        complete = form.complete(sizes)
        assert [time and time / 2 for time in one.times(complete)] == [*other.times(complete)]
        axes = one.axes(sizes)
        assert [one.critical(axis, sizes) for axis in axes] == [
            other.critical(axis, sizes) for axis in axes
        ]


@EACH
def test_the_order_of_arguments_changes_nothing(kind):
    chip, options, dtypes, sizes = question(kind)
    arguments = [*options.items(), *sizes.items(), ("dtypes", dtypes)]
    results = []
    for _ in range(3):
        random.shuffle(arguments)
        result = rooflines.kernel(chip, kind, **dict(arguments))
        results.append((amounts(result), result.t_lower_s, result.bound, str(result.kernel)))
    assert results[1:] == results[:-1]


def test_exponentials_enter_the_bound_only_if_asked():
    small_heads: dict[str, Any] = {"B": 1, "S": 8192, "N": 32, "K": 8, "H": 32, "dtypes": "fp8"}
    silent, timed = (h100("attention", **small_heads, exp=exp) for exp in (False, True))
    assert silent.t_exp_s == timed.t_exp_s == timed.t_lower_s > silent.t_lower_s
    assert (silent.bound, timed.bound) == ("compute", "exp")
    frame = pl.DataFrame({"S": [8192]})
    sizes = {name: value for name, value in small_heads.items() if name != "S"}
    for exp, known in ((False, silent), (True, timed)):
        (row,) = rooflines.kernels(frame, "h100", "attention", exp=exp, **sizes).to_dicts()
        assert (row["t_lower_s"], row["bound"]) == (known.t_lower_s, known.bound)


# ------------------------------------------------------------ in Python


def test_an_amount_above_a_double_stays_whole():
    found = h100("attention", B=3, S=2**40 + 1, N=1, K=1, H=1)
    S = 2**40 + 1
    assert found.flops == 2 * 2 * 3 * (S * (S + 1) // 2)


def test_a_share_is_of_the_bound():
    found = h100("rmsnorm", B=4096, D=8192)
    assert found.share(2 * found.t_lower_s) == pytest.approx(0.5)


@pytest.mark.parametrize("wrong", CASES["refused"], ids=lambda wrong: wrong["ask"])
def test_a_mistake_gets_one_message_with_a_fix(wrong):
    kind, arguments = asked(wrong["ask"])
    with pytest.raises(rooflines.RooflinesError) as caught:
        rooflines.kernel(wrong.get("chip", "h100"), kind, **arguments)
    assert str(caught.value) == wrong["says"].rstrip("\n")


def test_a_row_that_breaks_a_condition_is_named_or_null():
    frame = pl.DataFrame({"B": [1, 2, 3], "K": [8, 5, 0]})
    sizes: dict[str, Any] = {"S": 64, "N": 32, "H": 128}
    with pytest.raises(rooflines.RooflinesError, match=r"rows\[1\] K=5 does not divide N=32"):
        rooflines.kernels(frame, "h100", "attention", **sizes)
    rows = rooflines.kernels(frame.lazy(), "h100", "attention", **sizes).collect().to_dicts()
    assert close(rows[0]["t_lower_s"], h100("attention", B=1, K=8, **sizes).t_lower_s)
    assert {row[column] for row in rows[1:] for column in RESULT_COLUMNS} == {None}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"t_lower_s": 1.0}, "t_lower_s is a column of the frame, and of the results"),
        ({"S": 64}, "S is a column and an argument"),
        ({"K": 8.0}, "K is a column of Float64, not of whole numbers"),
    ],
)
def test_a_frame_with_a_mistake_is_refused(change, message):
    frame = pl.DataFrame({"B": [1]}).with_columns(**{name: pl.lit(v) for name, v in change.items()})
    sizes: dict[str, Any] = {"S": 64, "N": 32, "H": 128} | ({} if "K" in change else {"K": 8})
    with pytest.raises(rooflines.RooflinesError, match=message):
        rooflines.kernels(frame, "h100", "attention", **sizes)


def test_random_questions_have_every_flag_and_role():
    flags = {kind.name: {*kind.flags} - {*kind.letters} for kind in BY_NAME.values()}
    roles = {kind.name: {*kind.roles} for kind in BY_NAME.values()}
    assert {name: {*FLAGS.get(name, ())} for name in flags} == flags
    assert {name: {*ROLES.get(name, ("x", "out"))} for name in roles} == roles
