"""Collectives, chains and estimates of kernels asked alone, against worked values and models."""

from fractions import Fraction

import pytest
from command_line import said

import rooflines
from rooflines.answers.kernel_cases import kernel_cases
from rooflines.answers.kernel_estimate import KernelChip, kernel_estimate
from rooflines.answers.kernel_question import parse_kernel_words
from rooflines.answers.question import QuestionCatalogues
from rooflines.basics.errors import RooflinesError
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.kinds.chains import parse_chain
from rooflines.kinds.collectives import COLLECTIVE_MEANINGS, placed_collective
from rooflines.kinds.kernel_forms import kernel_form, with_letters

CHIPS = chip_entries()

MIB_64 = 1 << 26


def answer(text, **options):
    """The answer to a question typed as words."""
    question = parse_kernel_words(text.split(), CHIPS, options)
    assert question is not None
    return kernel_cases(question, QuestionCatalogues(CHIPS), options)


def micros(seconds):
    """A time in microseconds, to six digits as worked values have them."""
    return float(f"{float(seconds) * 1e6:.6g}")


# chip, chips, collective: bytes a chip, time in us, smallest payload bound by bandwidth
COLLECTIVES = [
    ("h100-sxm", 8, "all-reduce", 117_440_512, 260.979, 308_572),
    ("b200", 8, "all-reduce", 117_440_512, 130.489, 617_143),
    ("mi300x", 8, "all-reduce", 117_440_512, 262.144, 409_600),
    ("mi300x", 4, "all-reduce", 100_663_296, 524.288, 204_800),
    ("h100-sxm", 8, "all-gather", 58_720_256, 130.489, 308_572),
    ("mi300x", 4, "all-gather", 50_331_648, 262.144, 204_800),
    ("h100-sxm", 8, "reduce-scatter", 58_720_256, 130.489, 308_572),
    ("h100-sxm", 8, "all-to-all", 58_720_256, 130.489, 308_572),
    ("h100-sxm", 8, "gather", 58_720_256, 130.489, 308_572),
    ("h100-sxm", 8, "scatter", 58_720_256, 130.489, 308_572),
    ("h100-sxm", 8, "broadcast", MIB_64, 149.131, 270_000),
    ("b200", 8, "broadcast", MIB_64, 74.5654, 540_000),
    ("mi300x", 8, "broadcast", MIB_64, 149.797, 358_400),
    ("h100-sxm", 8, "reduce", MIB_64, 149.131, 270_000),
    ("h100-sxm", 8, "send", MIB_64, 149.131, 270_000),
    ("h100-sxm", 8, "permute", MIB_64, 149.131, 270_000),
]


@pytest.mark.parametrize("worked", COLLECTIVES)
def test_collectives_take_their_worked_times(worked):
    chip, chips, kind, sent, time, smallest = worked
    placed = placed_collective(CHIPS[chip], chip, kind, chips)
    (level,) = placed.levels(MIB_64)
    assert level.sent_bytes == sent
    assert micros(placed.network_s(MIB_64)) == time
    assert placed.bandwidth_bound_from() == smallest
    (at,) = placed.levels(smallest)
    (before,) = placed.levels(smallest - 1)
    assert at.sent_bytes / at.bytes_per_s >= at.latency_s
    assert before.sent_bytes / before.bytes_per_s < before.latency_s


def test_every_collective_has_a_worked_time():
    assert {kind for _, _, kind, *_ in COLLECTIVES} == {*COLLECTIVE_MEANINGS}


def test_two_levels_send_a_part_outside():
    route = ["nvlink", "infiniband"]
    levels = {}
    for kind in COLLECTIVE_MEANINGS:
        placed = placed_collective(CHIPS["h100-sxm"], "h100-sxm", kind, 16, route)
        levels[kind] = [level.sent_bytes for level in placed.levels(MIB_64)]
    assert levels["all-reduce"] == [117_440_512, 8_388_608]
    assert levels["broadcast"] == levels["reduce"] == [58_720_256, 8_388_608]
    assert levels["all-gather"] == levels["gather"] == levels["scatter"] == [58_720_256, 4_194_304]
    assert levels["all-to-all"] == [29_360_128, 33_554_432]
    assert levels["send"] == levels["permute"] == [0, MIB_64]


@pytest.mark.parametrize("chips", [2, 3, 4, 8])
def test_an_all_reduce_in_the_switch_is_no_slower_than_the_ring(chips):
    placed = placed_collective(CHIPS["h100-sxm"], "h100-sxm", "all-reduce", chips)
    ring, in_switch = placed.network_s(1 << 30), placed.in_switch_s(1 << 30)
    assert in_switch is not None
    assert in_switch <= ring
    assert (in_switch == ring) == (chips in (2, 3))
    share = min(Fraction(2 * (chips - 1), chips), Fraction(chips + 1, chips))
    assert in_switch == share * (1 << 30) / (18 * Fraction(25 * 10**9))


def test_a_measured_bus_bandwidth_is_laid_on_ring_and_switch():
    screen = str(answer("h100-sxm all-reduce 1GiB", shards=8, measured="480GB/s"))
    assert "1.07 times as fast as the ring" in screen
    assert "1.46 times the bound of that" in screen
    algbw = answer("h100-sxm all-reduce 1GiB", shards=8, measured="algbw=274.2857GB/s")
    assert "1.07 times as fast as the ring" in str(algbw)
    head = screen.partition("Sources")[0]
    assert "at least 4.18 ms" not in head


# text, sizes, dtypes of the rest: FLOP, bytes alone, bytes that move
CHAINS = [
    ("add + rmsnorm + quantise", (4096, 8192, 0), 0, 436_224_000, 167_788_544),
    ("rmsnorm residual + quantise", (4096, 8192, 0), 0, 369_115_136, 234_897_408),
    ("matmul + bias + swiglu", (4096, 4096, 14336), 962_072_674_304, 1_325_457_408, 385_933_312),
]

TIMES = {
    "add + rmsnorm + quantise": {"h100-sxm": 50.0861, "mi300x": 31.6582},
    "rmsnorm residual + quantise": {"h100-sxm": 70.1186, "mi300x": 44.3203},
    "matmul + bias + swiglu": {"h100-sxm": 972.773, "tpu-v5p": 2096.02},
}
"""Bounds of fused chains in us, by chip."""


@pytest.mark.parametrize(("text", "sizes", "flops", "alone", "fused"), CHAINS)
def test_fused_chains_move_their_worked_bytes(text, sizes, flops, alone, fused):
    letters = {name: size for name, size in zip("BDF", sizes, strict=True) if size}
    chain = parse_chain(text, letters, {"out": "fp8"} if "quantise" in text else {})
    assert (chain.flops, chain.part_bytes, chain.memory_bytes) == (flops, alone, fused)
    for chip, expected in TIMES[text].items():
        times = chain.times(chain.rates(CHIPS[chip], chip))
        assert micros(times.lower) == expected
        assert times.lower <= times.overlapped <= times.ops <= times.upper


# B, chip: lower, overlapped, one after another in us; bytes that move, bytes handed on
SEQUENCES = [
    (128, "h100-sxm", 105.799, 112.998, 112.998, 354_426_880, 24_117_248),
    (128, "b200", 46.0295, 49.1616, 49.1616, 354_426_880, 24_117_248),
    (4096, "h100-sxm", 1459.16, 1459.16, 1584.37, 419_438_592, 771_751_936),
]


@pytest.mark.parametrize("worked", SEQUENCES)
def test_sequences_take_their_worked_times(worked):
    rows, chip, lower, overlapped, ops, moved, handed = worked
    text = "rmsnorm, matmul, swiglu, matmul"
    chain = parse_chain(text, {"B": rows, "D": 4096, "F": 14336}, {})
    assert (chain.memory_bytes, chain.activation_bytes) == (moved, handed)
    times = chain.times(chain.rates(CHIPS[chip], chip))
    assert [micros(t) for t in (times.lower, times.overlapped, times.ops)] == [
        lower,
        overlapped,
        ops,
    ]
    assert times.ops <= times.upper
    assert times.upper == times.math + times.vector + times.memory + times.activation


def test_a_chain_of_one_kind_is_that_kind():
    sizes = {"B": 4096, "D": 8192}
    alone = kernel_form("rmsnorm").work(sizes)
    chain = parse_chain("rmsnorm", sizes, {})
    assert (chain.memory_bytes, chain.vector_flops) == (alone.memory_bytes, alone.vector_flops)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("top-k + softmax", "softmax cannot follow top-k"),
        ("rmsnorm + attention", "attention does not work on rows alone"),
        ("matmul 4096->8192 + swiglu + matmul 8192->4096", "follows rows 4,096 wide"),
    ],
)
def test_chains_that_do_not_fit_are_refused(text, problem):
    sizes = {"B": 64, "D": 4096, "F": 14336, "V": 128256, "k": 50}
    with pytest.raises(RooflinesError, match=problem):
        parse_chain(text, sizes, {})


def test_estimates_are_those_of_the_same_kernels_in_a_model():
    config = rooflines.load_config(
        {
            "model-sweeps": {
                "dense": {
                    "models": "llama-3.1-8b",
                    "phase": "decode",
                    "grid": {"B": 8, "S": 8192},
                    "dtypes": "bf16",
                    "chips": "h100-sxm",
                },
                "heads": {
                    "models": "llama-3.1-8b",
                    "phase": "decode",
                    "grid": {"B": 8, "S": 64},
                    "dtypes": "bf16",
                    "chips": "h100-sxm",
                    "calibration": "trtllm",  # has a time for each KV head
                },
                "experts": {
                    "models": "mixtral-8x7b",
                    "phase": "decode",
                    "grid": {"B": 16, "S": 1024},
                    "dtypes": "bf16",
                    "chips": "h100-sxm",
                },
            }
        }
    )
    heads = {"N": 32, "K": 8, "H": 128}
    cases = {
        ("dense", "attention"): ("attention", {"B": 8, "S": 8192, **heads}),
        ("heads", "attention"): ("attention", {"B": 8, "S": 64, **heads}),
        ("experts", "experts"): ("experts", {"B": 16, "D": 4096, "F": 14336, "E": 8, "k": 2}),
    }
    for (sweep, kernel), (kind, sizes) in cases.items():
        layers = rooflines.model_layers(config, sweep).collect()
        (row,) = [row for row in layers.to_dicts() if row["group"] == kernel]
        form = kernel_form(kind, "bf16", {"phase": "decode"} if kind == "attention" else {})
        form = with_letters(form, sizes)
        softwares = ["trtllm"] if sweep == "heads" else ["auto"]
        target = KernelChip("h100-sxm", CHIPS["h100-sxm"], calibration=softwares)
        estimate = kernel_estimate(form, form.complete(sizes), target)
        assert estimate is not None
        assert estimate.time_s == pytest.approx(row["t_estimate_s"], rel=1e-12)
        assert estimate.columns()["t_estimate_p10_s"] == pytest.approx(row["t_estimate_p10_s"])
        assert estimate.columns()["t_estimate_p90_s"] == pytest.approx(row["t_estimate_p90_s"])


def test_a_chunk_of_a_prompt_has_no_estimate():
    whole = answer("h100-sxm attention B=1 S=8192 N=32 K=8 H=128")
    chunk = answer("h100-sxm attention B=1 S=8192 T=512 N=32 K=8 H=128")
    assert whole.estimate is not None
    assert chunk.estimate is None


def test_a_table_of_kernels_has_a_row_for_every_case():
    table = answer("h100-sxm b200 attention B=1,8 S=1k..4k N=32 K=8 H=128 decode bf16,fp8")
    keys = [(row["chip"], row["dtypes"], row["B"], row["S"]) for row in table.rows]
    expected = {
        (chip, dtypes, batch, context)
        for chip in ("h100-sxm", "b200")
        for dtypes in ("bf16", "fp8")
        for batch in (1, 8)
        for context in (1024, 2048, 4096)
    }
    assert len(keys) == len(expected)
    assert {*keys} == expected


def test_chips_of_a_collective_may_be_an_option(capsys):
    words = "explain", "b200", "all-to-all", "64MB"
    alone = said(capsys, "explain", "64xb200", *words[2:])
    assert said(capsys, *words, "--chips", "64") == alone
    assert said(capsys, *words, "--shards", "64") == alone
    assert "64 chips over nvlink and infiniband" in alone
