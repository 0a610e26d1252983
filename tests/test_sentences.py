"""The rules of a sentence: fifteen that were false or misled are refused, mended ones are said."""

from __future__ import annotations

import pytest

from rooflines.explanation.sentences import Ranking, Sentence, broken, first_true


def rows(**columns):
    """One row."""
    return [columns]


FOUR, ALL = ("a", "b", "c", "d"), ("a", "b", "c", "d", "e", "f")
TILED = {"B": 1, "D": 8192, "F": 8192, "chip": "tpu-v5e"}
DEFECTS: dict[str, tuple[Sentence, Sentence]] = {
    "padding of tiles as work": (
        Sentence(
            text="100 % of peak at B = 1",
            rows=rows(**TILED, t_lower_s=3.5e-4, attained_flops_per_s=1.97e14),
            attains=True,
        ),
        Sentence(
            text="0.385 TFLOP/s at B = 1",
            rows=rows(**TILED, t_lower_s=3.5e-4, attained_flops_per_s=3.8e11),
            attains=True,
        ),
    ),
    "a quotient of two close slopes": (
        Sentence(text="Calibrated 1.17 to 183 x the nominal B", ranks=Ranking(1.026, 1.0, (1.4,))),
        Sentence(text="90 % of the plateau from B = 512 on"),
    ),
    "a split blamed for what one chip lacks too": (
        Sentence(
            text="Split contracting/all-reduce: no D is enough",
            rows=rows(chip="h100-sxm", critical=None, limit="memory"),
            blames="network",
        ),
        Sentence(
            text="No D is enough: memory limits",
            rows=rows(chip="h100-sxm", critical=None, limit="memory"),
            blames="memory",
        ),
    ),
    "a network without a byte": (
        Sentence(
            text="Split batch over NVLink + InfiniBand",
            rows=rows(chip="h100-sxm", network_bytes=0.0),
            moves="network",
        ),
        Sentence(
            text="Split contracting over NVLink",
            rows=rows(chip="h100-sxm", network_bytes=1e6),
            moves="network",
        ),
    ),
    "the best of those shown": (
        Sentence(
            text="Of 4 chips shown, B200 gives most",
            rows=[{"chip": chip} for chip in FOUR],
            every=ALL,
            ranks=Ranking(2.0, 1.0),
        ),
        Sentence(
            text="Of all 6, F gives most by its bound",
            rows=[{"chip": chip} for chip in ALL],
            every=ALL,
            ranks=Ranking(2.0, 1.0),
        ),
    ),
    "prices of two providers": (
        Sentence(
            text="H100 gives 925 PFLOP per dollar, H200 450",
            rows=[
                {"chip": "h100-sxm", "provider": "Nebius", "month": "2026-09"},
                {"chip": "h200-sxm", "provider": "AWS", "month": "2026-09"},
            ],
            ranks=Ranking(925, 450, money=True),
        ),
        Sentence(
            text="At AWS H100 gives most bf16 per dollar",
            rows=[
                {"chip": "h100-sxm", "provider": "AWS", "month": "2026-09"},
                {"chip": "h200-sxm", "provider": "AWS", "month": "2026-09"},
            ],
            ranks=Ranking(900, 450, money=True),
        ),
    ),
    "two data sheets of one memory": (
        Sentence(text="MI355X gives most tokens by its bound", ranks=Ranking(8.0, 7.7)),
        Sentence(text="MI355X and B200 tie within the error"),
    ),
    "tokens of an expert as tokens": (
        Sentence(
            text="The 15 shapes shown need B = 246 to 423",
            rows=rows(chip="h100-sxm", layer="expert-down", critical=423),
        ),
        Sentence(
            text="An expert of Mixtral needs 423 tokens of its own",
            rows=rows(chip="h100-sxm", layer="expert-down", critical=423),
        ),
    ),
    "a ridge without its unit": (
        Sentence(
            text="The ridge of TPU v5e is 241",
            rows=rows(chip="tpu-v5e", unit="matrix", ridge=241.0),
            ridge=True,
        ),
        Sentence(
            text="The matrix unit's bf16 ridge of TPU v5e is 241",
            rows=rows(chip="tpu-v5e", unit="matrix", ridge=241.0),
            ridge=True,
        ),
    ),
    "an unfused product": (
        Sentence(
            text="No Q makes bf16 compute-bound",
            rows=rows(chip="h100-sxm", critical=None),
            writes=True,
        ),
        Sentence(
            text="Unfused, no Q makes bf16 scores compute-bound",
            rows=rows(chip="h100-sxm", critical=None),
            writes=True,
        ),
    ),
    "a model in another format than its own": (
        Sentence(text="gpt-oss-120b in bf16: 24 ms a token", published="mxfp4"),
        Sentence(text="gpt-oss-120b in bf16 (published in mxfp4): 24 ms", published="mxfp4"),
    ),
    "a slower chip as a remedy": (
        Sentence(text="peak x 0.42", factor=0.42),
        Sentence(text="memory x 2.4", factor=2.4),
    ),
    "a number of rows": (
        Sentence(text="4.3 million rows", counts=(4_300_000, 4_157_357 + 11_232 + 93_168)),
        Sentence(text="4,261,757 rows", counts=(4_261_757, 4_157_357 + 11_232 + 93_168)),
    ),
    "the end of a grid": (
        Sentence(
            text="B = 1 on b300 with fp64",
            rows=rows(chip="b300", dtypes="fp64", critical=1),
            starts=1,
        ),
        Sentence(
            text="B = 246 on tpu-v5e with bf16",
            rows=rows(chip="tpu-v5e", dtypes="bf16", critical=246),
            starts=1,
        ),
    ),
    "the answer of another chip": (
        Sentence(
            text="MI300X needs B = 246", rows=rows(chip="mi300x", critical=246), chosen="h100-sxm"
        ),
        Sentence(
            text="H100 SXM needs B = 310",
            rows=rows(chip="h100-sxm", critical=310),
            chosen="h100-sxm",
        ),
    ),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_wrong_sentence_is_refused_and_its_mended_form_said(name):
    wrong, mended = DEFECTS[name]
    assert broken(wrong) is not None
    assert broken(mended) is None
    assert first_true([wrong, mended]) is mended


def test_all_fifteen_are_there():
    assert len(DEFECTS) == 15


def test_a_ranking_of_bounds_says_so():
    assert broken(Sentence(text="B200 gives most", ranks=Ranking(2.0, 1.0))) is not None
    assert broken(Sentence(text="B200 gives most by its bound", ranks=Ranking(2.0, 1.0))) is None


def test_with_nothing_true_to_say_it_fails():
    with pytest.raises(ValueError, match="slower chip"):
        first_true([Sentence(text="peak x 0.42", factor=0.42)])
