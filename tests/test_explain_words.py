"""Words of `rooflines explain`: free order, and one message for mistakes."""

from __future__ import annotations

import re

import pytest
from command_line import offered, refused, said
from explained import CONFIG_FORM, EXAMPLE

import rooflines
from rooflines.catalogue.chips import chip_entries, dtype_entries
from rooflines.catalogue.unsupported import Reason
from rooflines.model.operation import NAMED
from rooflines.models.library import model_entries
from rooflines.sweep import cases

SAME = (
    "bf16 128x8192x8192 h100-sxm",
    "128X8192X8192 bf16 h100-sxm",
    "h100-sxm bf16 F=8192 B=128 D=8192",
    "h100-sxm matmul 128x8_192x8.192e3 bf16",
    "h100-sxm BD,DF->BF 128x8192x8192 bf16",
    "h100-sxm 128 8192 8k bf16",
    "h100-sxm 128x8k 8192",
    "h100-sxm 128x8192x8192 bf16 --operation matmul --unit matrix --memory hbm --flops leading",
)


@pytest.mark.parametrize("words", SAME)
def test_the_order_of_words_is_free(words, capsys):
    assert said(capsys, "explain", *words.split()) == said(capsys, "explain", *EXAMPLE.split())


def test_no_word_can_be_two_things():
    aliases = [alias for entry in model_entries().values() for alias in entry.aliases]
    names = [*chip_entries(), *dtype_entries().combinations, *NAMED, *model_entries(), *aliases]
    assert len(names) == len(set(names))
    assert not [name for name in names if name[0].isdigit() or "=" in name or "->" in name]


WRONG: dict[str, tuple[str, str]] = {
    "h100-smx 128x8192x8192 bf16": (
        "chip is 'h100-smx', which is no chip.",
        "close to it: h100-sxm",
    ),
    "a100-pcie 1x2x3 bf16": ("chip is 'a100-pcie', which 2 chips have", "a100-pcie-80gb"),
    "h100 1x2x3 bf16 --set hbm=1": ("--set hbm names no number", "memory.hbm.bytes_per_s"),
    "h100 1x2x3 bf16 --set memory.hbm.bytes_per_s=4.8": (
        "--set memory.hbm.bytes_per_s is 4.8, 1.43e-12 times",
        "write 4.8e+12 if it is in TB/s.",
    ),
    "h100 1x2x3 bf16 --set memory.hbm.bytes_per_s": ("has no number", "=4.8e12"),
    "h100 1x2x3 bf16 --price 3": ("names no model, but has --price of models.", "llama-3.1-70b"),
    "h100 1x2x3 bf16 --split dp=2": ("split is 'dp=2', but chips share a matmul by tp", "tp=8"),
    "h100 B=9..3 D=2 F=3 bf16": ("size B is '9..3', whose first is above", "write 3..9."),
    "h100 B=1.3k D=2 F=3 bf16": ("size B is '1.3k', which is no whole", "k is 1,024"),
    "h100-sxm 128x8192x8192 bf61": (
        "dtypes is 'bf61', which is no dtype combination.",
        "close to it: bf16",
    ),
    "bf16 128x8192x8192": ("chip is missing.", "h100-sxm"),
    "m3 1x2x3 bf16": ("chip is 'm3', which is no chip.", "h100-sxm"),
    "h100-sxm 1x2x3 fp4": ("dtypes is 'fp4', which is no dtype", "close to it: mxfp4"),
    "h100-sxm bf16": ("sizes are missing.", "128x8192x8192"),
    "h100-sxm 128x8192 bf16": ("sizes are 2 in '128x8192', but matmul has 3", "BxDxF"),
    "h100-sxm 4 dot 5 bf16": ("sizes are 2 in '4x5', but dot has 1", "write one size"),
    "h100-sxm 1x2x3 B=3 bf16": ("sizes are given twice, '1x2x3' and 'B=3'", "leave one"),
    "h100-sxm B=1 D=2 bf16": ("sizes lack F: matmul has the dimensions B, D, F.", "add F=8192"),
    "h100-sxm B=1 B=2 bf16": ("size B is given twice, '1' and '2'.", "one size"),
    "h100-sxm B=1 D=2 F=3 Z=4 bf16": ("size Z is of no dimension: matmul has", "BxDxF"),
    "h100-sxm 0x8192x8192 bf16": ("size B is '0', which is less than 1.", "whole number from 1"),
    "h100-sxm B=-4 D=1 F=1 bf16": ("size B is '-4', which is less than 1.", "from 1"),
    "h100-sxm -4x1x1 bf16": ("rooflines explain has no option '-4'.", "sizes above zero"),
    "h100-sxm 1.5x1x1 bf16": ("size B is '1.5', which is no whole number.", "whole number"),
    "h100-sxm 1xx1 bf16": ("size D is '', which is no number.", "plain number"),
    "h100-sxm 1x1e17x1 bf16": ("size D is '1e17', which is more than 9,007", "from 1 to"),
    "v100-sxm2-32gb 1x2x3 bf16": (
        "the question asks v100-sxm2-32gb for bf16, but it has no bf16 peak of its matrix unit.",
        "fp16, w-int8-x-fp16, w-int4-x-fp16",
    ),
    "h100-sxm 1x2x3 bf16 --shards 4": ("shards is 4, but nothing is split.", "batch/gather-w"),
    "h100-sxm 1x2x3 bf16 --shards 16 --sharding batch": (
        "the question asks h100-sxm for batch, 16 shards, but it has 8 chips at most",
        "choose the network nvlink,infiniband or infiniband.",
    ),
    "h100-sxm 1x2x3 bf16 --shards 4x4 --sharding batch": (
        "needs one torus",
        "numbers of chips, such as 8.",
    ),
    "gb200 1x2x3 bf16 --shards 99999 --sharding batch": (
        "chips at most",
        "of chips, such as 64, or",
    ),
    "h100-sxm BSD,DF->BSF 1x2x3x4 bf16 --shards 2 --sharding batch": (
        "could split any of B, S",
        "{split: S",
    ),
    "h100-sxm 1x2x3 bf16 --shards 0 --sharding batch": ("shards is '0'", "from 1"),
    "h100-sxm 1x2x3 bf16 --sharding bach": ("sharding is 'bach'", "close to it: batch"),
    "h100-sxm 1x2x3 bf16 --network nvlik": ("network is 'nvlik'", "close to it: nvlink"),
    "h100-sxm 1x2x3 bf16 --memory l1": ("no published bandwidth of memory level l1", "hbm, l2"),
    "h100-sxm 1x2x3 bf16 --unit tensor": ("unit is 'tensor'.", "'matrix' or 'vector'"),
    "h100-sxm 1x2x3 bf16 --operation matmull": ("operation is 'matmull'", "close to it: matmul"),
    "h100-sxm BD,DF->BZ 1x2x3 bf16": ("whose result has Z", "drop Z"),
    "h100-sxm 1x2x3 bf16 dott": ("the question has 'dott', which is no operation", "dot"),
    "h100-sxm 1x2x3 bf16 --jsn": ("rooflines explain has no option '--jsn'.", "--json"),
    "h100-sxm 1x2x3 bf16 --shards": ("rooflines explain is used wrongly: option '--shards'", "-h"),
    "h100-sxm 1x2x3 bf16 --config nope.yaml": ("nope.yaml does not exist.", "path"),
    "": ("rooflines explain needs CHIP... [MODEL] SIZES [DTYPES].", "rooflines explain -h"),
}

FIXED: dict[str, str] = {
    "h100-smx 128x8192x8192 bf16": "h100-sxm 128x8192x8192 bf16",
    "a100-pcie 1x2x3 bf16": "a100-pcie-80gb 1x2x3 bf16",
    "h100 1x2x3 bf16 --set hbm=1": "h100 1x2x3 bf16 --set memory.hbm.bytes_per_s=4.8e12",
    "h100 1x2x3 bf16 --set memory.hbm.bytes_per_s=4.8": (
        "h100 1x2x3 bf16 --set memory.hbm.bytes_per_s=4.8e+12"
    ),
    "h100 1x2x3 bf16 --set memory.hbm.bytes_per_s": (
        "h100 1x2x3 bf16 --set memory.hbm.bytes_per_s=4.8e12"
    ),
    "h100 1x2x3 bf16 --price 3": "h100 llama-3.1-70b B=1 S=1 bf16 --price 3",
    "h100 1x2x3 bf16 --split dp=2": "h100 1x2x8 bf16 --split tp=8",
    "h100 B=9..3 D=2 F=3 bf16": "h100 B=3..9 D=2 F=3 bf16",
    "h100 B=1.3k D=2 F=3 bf16": "h100 B=1 D=2 F=3 bf16",
    "h100-sxm 128x8192x8192 bf61": "h100-sxm 128x8192x8192 bf16",
    "bf16 128x8192x8192": "bf16 128x8192x8192 h100-sxm",
    "m3 1x2x3 bf16": "h100-sxm 1x2x3 bf16",
    "h100-sxm 1x2x3 fp4": "h100-sxm 1x2x3 bf16",
    "h100-sxm bf16": "h100-sxm bf16 128x8192x8192",
    "h100-sxm 128x8192 bf16": "h100-sxm sequence-matmul 1x1x128x8192 bf16",
    "h100-sxm 4 dot 5 bf16": "h100-sxm 4 dot bf16",
    "h100-sxm 1x2x3 B=3 bf16": "h100-sxm 1x2x3 bf16",
    "h100-sxm B=1 D=2 bf16": "h100-sxm B=1 D=2 F=8192 bf16",
    "h100-sxm B=1 B=2 bf16": "h100-sxm B=64,128 D=64 F=64 bf16",
    "h100-sxm B=1 D=2 F=3 Z=4 bf16": "h100-sxm 128x8192x8192 bf16",
    "h100-sxm 0x8192x8192 bf16": "h100-sxm 1x8192x8192 bf16",
    "h100-sxm B=-4 D=1 F=1 bf16": "h100-sxm B=1 D=1 F=1 bf16",
    "h100-sxm -4x1x1 bf16": "h100-sxm 128x8192x8192 bf16",
    "h100-sxm 1.5x1x1 bf16": "h100-sxm 1x1x1 bf16",
    "h100-sxm 1xx1 bf16": "h100-sxm 1x4096x1 bf16",
    "h100-sxm 1x1e17x1 bf16": "h100-sxm 1x1x1 bf16",
    "v100-sxm2-32gb 1x2x3 bf16": "v100-sxm2-32gb 1x2x3 w-int8-x-fp16",
    "h100-sxm 1x2x3 bf16 --shards 4": "h100-sxm 8x8x8 bf16 --shards 4 --sharding batch/gather-w",
    "h100-sxm 1x2x3 bf16 --shards 16 --sharding batch": (
        "h100-sxm 1x2x3 bf16 --shards 16 --sharding batch --network infiniband"
    ),
    "h100-sxm 1x2x3 bf16 --shards 4x4 --sharding batch": (
        "h100-sxm 1x2x3 bf16 --shards 8 --sharding batch"
    ),
    "gb200 1x2x3 bf16 --shards 99999 --sharding batch": (
        "gb200 1x2x3 bf16 --shards 64 --sharding batch"
    ),
    "h100-sxm BSD,DF->BSF 1x2x3x4 bf16 --shards 2 --sharding batch": (
        "h100-sxm BSD,DF->BSF 1x2x3x4 bf16 --shards 2 --sharding {split:@S,@first:@all-gather@w}"
    ),
    "h100-sxm 1x2x3 bf16 --shards 0 --sharding batch": (
        "h100-sxm 1x2x3 bf16 --shards 1 --sharding batch"
    ),
    "h100-sxm 1x2x3 bf16 --sharding bach": "h100-sxm 1x2x3 bf16 --sharding batch",
    "h100-sxm 1x2x3 bf16 --network nvlik": "h100-sxm 1x2x3 bf16 --network nvlink",
    "h100-sxm 1x2x3 bf16 --memory l1": "h100-sxm 1x2x3 bf16 --memory l2",
    "h100-sxm 1x2x3 bf16 --unit tensor": "h100-sxm 1x2x3 bf16 --unit matrix",
    "h100-sxm 1x2x3 bf16 --operation matmull": "h100-sxm 1x2x3 bf16 --operation matmul",
    "h100-sxm BD,DF->BZ 1x2x3 bf16": "h100-sxm 1x2x3 bf16",
    "h100-sxm 1x2x3 bf16 dott": "h100-sxm 128x8192x8192 bf16",
    "h100-sxm 1x2x3 bf16 --jsn": "h100-sxm 1x2x3 bf16 --json",
    "h100-sxm 1x2x3 bf16 --shards": "-h",
    "h100-sxm 1x2x3 bf16 --config nope.yaml": "h100-sxm 1x2x3 bf16",
    "": "-h",
}
"""What a reader of each message types next."""


@pytest.mark.parametrize("words", WRONG, ids=WRONG)
def test_the_fix_that_is_offered_works_when_typed(words, capsys):
    message = refused(capsys, "explain", *words.split())
    after = FIXED[words].split()
    assert offered(message, words.split(), after)
    said(capsys, "explain", *(word.replace("@", " ") if "{" in word else word for word in after))


@pytest.mark.parametrize(("words", "message"), WRONG.items(), ids=WRONG)
def test_a_mistake_gives_one_message(words, message, capsys):
    text = refused(capsys, "explain", *words.split())
    first, *rest = text.splitlines()
    assert message[0] in first
    assert message[1] in "\n".join(rest)
    assert rest[-1].startswith("  fix: ")
    if "say which in the long form" not in text:
        assert not CONFIG_FORM.search(rest[-1].removeprefix("  fix:"))
    assert not re.search(r"Traceback|sweeps|grid|\[0\]|Usage", text)


def test_several_mistakes_are_listed_together(capsys):
    text = refused(capsys, "explain", *["h100-sxm", "0x1.5x8", "bf16"])
    assert text.count("fix:") == 2
    assert "size B" in text
    assert "size D" in text


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        ("bf61", ["chip is missing", "sizes are missing", "dtypes is 'bf61'"]),
        ("B=1", ["chip is missing", "sizes lack D, F"]),
        ("h100-smx 0x1x2 bf61", ["chip is 'h100-smx'", "size B is '0'", "dtypes is 'bf61'"]),
        ("1x2x3 bf16 --shards 4", ["chip is missing", "shards is 4"]),
        ("llama-3.1-70b S=4 --split tp", ["chip is missing", "sizes lack B", "split has 'tp'"]),
    ],
)
def test_the_mistakes_of_all_words_are_in_one_message(words, wrong, capsys):
    text = refused(capsys, "explain", *words.split())
    places = [line for line in text.splitlines() if not line.startswith("  ")]
    assert len(places) == len(wrong)
    for line, start in zip(places, wrong, strict=True):
        assert start in line


def test_a_wrong_question_from_python_is_a_rooflines_error():
    for sizes, options in (
        (5, {}),
        (None, {}),
        ({"B": 1, "D": "x", "F": 2}, {}),
        ("1x2x3", {"operation": 7}),
        ("1x2x3", {"network": 3}),
        ("1x2x3", {"sharding": ["batch"], "shards": 2}),
        ("1x2x3", {"shards": "2.5", "sharding": "batch"}),
    ):
        with pytest.raises(rooflines.RooflinesError):
            rooflines.explain("h100-sxm", sizes, "bf16", **options)  # type: ignore[arg-type]
    with pytest.raises(rooflines.RooflinesError, match="dtypes is"):
        rooflines.explain("h100-sxm", "1x2x3", 16)  # type: ignore[arg-type]
    with pytest.raises(rooflines.RooflinesError, match="chip is null"):
        rooflines.explain(None, "1x2x3", "bf16")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("need", "fix"),
    [
        ("peak", "choose dtypes that its matrix unit computes: bf16"),
        ("memory", "choose one of its memory levels with a bandwidth: hbm"),
        ("network", "ask for other numbers of chips, such as 8, or choose the network nvlink"),
    ],
)
def test_the_fix_follows_from_what_is_missing(monkeypatch, need, fix):
    monkeypatch.setattr(cases, "missing_peak_reason", lambda *_: Reason(need, "no luck"))
    with pytest.raises(rooflines.RooflinesError, match="but it has no luck") as caught:
        rooflines.explain("h100-sxm", "8x8x8", "bf16")
    assert caught.value.fix.startswith(fix)
