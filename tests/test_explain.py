"""`rooflines explain` and `rooflines.explain`: what they say is what the tables say."""

# Every line of an explanation, with its values: long, but one thing.

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import yaml
from documents import DOCS, README
from pages import commands

import rooflines
from rooflines.catalogue.chips import chip_entries, dtype_entries
from rooflines.cli.main import run
from rooflines.critical.rates import rate_factor
from rooflines.explanation.text import WIDTH, as_text
from rooflines.model.operation import NAMED
from rooflines.model.resources import RATES
from rooflines.models.library import model_entries

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).parent / "cases" / "explained"
CASES = sorted(FOLDER.glob("*.txt"))
OWN = yaml.safe_load((FOLDER / "own.yaml").read_text(encoding="utf-8"))["chips"]
EXAMPLE = "h100-sxm 128x8192x8192 bf16"
MODEL = "h100-sxm llama-3.1-70b B=64 S=8192 --split tp=8"
MOST_LINES, MOST_MODEL_LINES = 30, 40
"""Lines of a screen, of an operation and of a model, the prompt aside [1]."""


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What the command prints, in this process."""
    assert run(["explain", *words]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The message of a command that is refused, in this process."""
    assert run(list(words)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_an_explanation_is_the_text_that_was_reviewed(
    case: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the character, in one screen of 80 columns."""
    monkeypatch.chdir(FOLDER)
    command, _, expected = case.read_text(encoding="utf-8").partition("\n")
    assert said(capsys, *shlex.split(command)[3:]) == expected
    assert max(map(len, expected.splitlines())) <= WIDTH
    most = MOST_MODEL_LINES if case.stem.startswith("model-") else MOST_LINES
    assert len(expected.splitlines()) <= most


TEXT = README.read_text(encoding="utf-8")


def test_the_first_screen_of_readme_is_what_the_command_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """To the character, before anything else."""
    (screen,) = re.findall(r"^```console\n(.*?)^```$", TEXT, flags=re.DOTALL | re.MULTILINE)
    assert TEXT.index(screen) < TEXT.index("make sweep")
    assert screen == f"$ rooflines explain {EXAMPLE}\n{said(capsys, *EXAMPLE.split())}"


def test_the_examples_of_the_page_work(capsys: pytest.CaptureFixture[str]) -> None:
    """Every command of docs/explain.md."""
    examples = commands(DOCS / "explain.md", "rooflines explain")
    assert len(examples) >= 5
    for example in examples:
        said(capsys, *shlex.split(example)[2:])


def test_the_reviewed_explanations_cover_what_can_be_said() -> None:
    """Every kind of answer is in one of them."""
    text = " ".join(" ".join(case.read_text(encoding="utf-8").split()) for case in CASES)
    for kind in (
        "compute-bound at every size",
        "never",
        "rule of thumb 240.2",
        "estimate 48.9 µs, calibrated",
        "(derived, estimate)",
        "half of the figure with sparsity",
        "its hops alone take",
        "the network takes longer than the math",
        "fits no:",
        "fits not known:",
        "compute-bound as it is",
        "≤ 2",
        "42.7% of peak",
        "99.993% of peak; 90% of peak from 234",
        "99.6% of attainable peak",
        "90% of peak up to 2",
        "at boost clock",
    ):
        assert kind in text


QUESTIONS: dict[str, tuple[tuple[str, Any, Any], dict[str, Any]]] = {
    "matmul": (("h100-sxm", "128x8192x8192", "bf16"), {}),
    "split": (
        ("tpu-v5e", {"B": 512, "D": 8192, "F": 4096}, "int8"),
        {"shards": 16, "sharding": "contracting/all-reduce"},
    ),
    "hops": (
        ("slow-hops", [256, 4096, 8192], "bf16"),
        {"shards": 4, "sharding": "column/gather-x"},
    ),
    "long form": (
        ("h100-sxm", "S=512 B=2 D=4096 F=8192", "bf16,int8->fp32@bf16"),
        {
            "operation": "BSD,DF->BSF",
            "shards": 2,
            "sharding": {"split": "S", "first": "all-gather w"},
        },
    ),
    "two levels": (
        ("h100-sxm", "128x8192x8192", "bf16"),
        {"shards": 16, "sharding": "contracting/all-reduce", "network": "nvlink,infiniband"},
    ),
    "several axes": (
        ("tpu-v4", "4096x8192x4096", "bf16"),
        {"shards": "4x4", "sharding": "column/gather-x"},
    ),
    "all-to-all": (
        ("tpu-v5e", "1024x2048x4096", "int8"),
        {"shards": 16, "sharding": {"split": "B", "first": "all-to-all x"}},
    ),
    "calibrated": (("calibrated", "64x1024x1024", "bf16"), {}),
    "efficient": (("half-efficient", "512x4096x4096", "int8"), {"flops": "exact"}),
}


def as_config(chip: str, sizes: Mapping[str, int], dtypes: Any, asked: Mapping[str, Any]) -> Any:  # noqa: ANN401, a name or a mapping
    """A config that asks the same, written by hand."""
    x, w, out, compute = re.split(r",|->|@", dtypes) if "@" in dtypes else [""] * 4
    split = asked.get("sharding", "none")
    has_form = split != "none" and "x" not in str(asked["shards"]) and "to-all" not in str(split)
    sweep = {
        "operation": "matmul",
        "grid": dict(sizes),
        "chips": chip,
        "dtypes": [{"x": x, "w": w, "out": out, "compute": compute}] if x else dtypes,
        "thresholds": [*sizes, *(["shards"] if has_form else [])],
        "shares": [1, 0.9],
        **asked,
    }
    if "network" in asked:
        sweep["network"] = asked["network"].split(",")
    sweep["sharding"] = [split]
    return {"sweeps": {"explain": sweep}, "chips": OWN}


@pytest.mark.parametrize(("question", "asked"), QUESTIONS.values(), ids=QUESTIONS)
def test_every_number_is_one_of_the_tables(
    question: tuple[str, Any, Any], asked: dict[str, Any]
) -> None:
    """The row, the thresholds, the rates and the chip's numbers, each from its own function."""
    own = rooflines.load_config(FOLDER / "own.yaml").chips
    answer = rooflines.explain(*question, **asked, chips=own)
    found = json.loads(json.dumps(answer.to_dict(), allow_nan=False))
    config = rooflines.load_config(as_config(question[0], answer.sizes, question[2], asked))
    row = rooflines.rows(config, "explain").collect().row(0, named=True)
    assert found["row"] == row
    thresholds = rooflines.thresholds(config, "explain").to_dicts()
    assert found["thresholds"] == thresholds
    for use in found["uses"]:
        assert use["work"] == row[use["column"]]
        assert use["time_s"] == row[f"t_{use['resource']}_s"]
        assert use["intensity"] == row.get(f"{use['resource']}_intensity")
        assert use["time_s"] == pytest.approx(max(use["work"] / use["per_s"], use["latency_s"]))
    sweep = config.sweep("explain")
    chip_variant = (sweep.by_chip[0], sweep.by_chip[0].variants[0])
    for change in found["changes"]:
        exact = rate_factor(sweep, chip_variant, RATES[change["rate"]], answer.sizes)
        assert change["factor"] == (None if exact.factor is None else float(exact.factor))
        assert (change["outcome"], change["limit"]) == (exact.outcome, exact.limit)
    listed = rooflines.chips(config).filter(chip=question[0])
    values = dict(zip(listed["path"], listed["value"], strict=True))
    sources = dict(zip(listed["path"], listed["source"], strict=True))
    for number in found["numbers"]:
        if number["path"] in values:
            assert number["value"] == values[number["path"]]
            assert number["source"] == sources[number["path"]]
        assert number["source"]
    used = {number["path"].rpartition(".")[0] for number in found["numbers"]}
    networks = row["network"].split("+") if row["network_bytes"] else []
    assert {f"networks.{name}" for name in networks} | {"memory.hbm"} <= used
    assert any(path.startswith(f"units.{row['unit']}.") for path in used)


def test_the_other_dtypes_are_those_of_the_unit(config_of_all: pl.DataFrame) -> None:
    """Each with the bound and time that a sweep of all of them has."""
    answer = rooflines.explain("h100-sxm", "128x8192x8192", "bf16")
    expected = config_of_all.filter(pl.col("dtypes") != "bf16").sort("t_lower_s")
    assert [other["dtypes"] for other in answer.dtypes] == expected["dtypes"].to_list()
    assert [other["bound"] for other in answer.dtypes] == expected["bound"].to_list()
    assert [other["t_lower_s"] for other in answer.dtypes] == expected["t_lower_s"].to_list()


@pytest.fixture(scope="module")
def config_of_all() -> pl.DataFrame:
    """The example in every dtype combination."""
    sweep = {
        "operation": "matmul",
        "grid": {"B": 128, "D": 8192, "F": 8192},
        "dtypes": list(dtype_entries().combinations),
        "chips": "h100-sxm",
    }
    return rooflines.rows(rooflines.load_config({"sweeps": {"all": sweep}}), "all").collect()


SAME = (
    "bf16 128x8192x8192 h100-sxm",
    "128X8192X8192 bf16 h100-sxm",
    "h100-sxm bf16 F=8192 B=128 D=8192",
    "h100-sxm matmul 128x8_192x8.192e3 bf16",
    "h100-sxm BD,DF->BF 128x8192x8192 bf16",
    "h100-sxm 128x8192x8192 bf16 --operation matmul --unit matrix --memory hbm --flops leading",
)


@pytest.mark.parametrize("words", SAME)
def test_the_order_of_words_is_free(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Chip, sizes and dtypes are recognised by their form or name."""
    assert said(capsys, *words.split()) == said(capsys, *EXAMPLE.split())


def test_no_word_can_be_two_things() -> None:
    """Chips, dtypes, operations and models have different names, none of which is a size."""
    aliases = [alias for entry in model_entries().values() for alias in entry.aliases]
    names = [*chip_entries(), *dtype_entries().combinations, *NAMED, *model_entries(), *aliases]
    assert len(names) == len(set(names))
    assert not [name for name in names if name[0].isdigit() or "=" in name or "->" in name]


WRONG: dict[str, tuple[str, str]] = {
    "h100 128x8192x8192 bf16": ("chip is 'h100', which is no chip.", "close to it: h100-sxm"),
    "h100-sxm 128x8192x8192 bf61": (
        "dtypes is 'bf61', which is no dtype combination.",
        "close to it: bf16",
    ),
    "bf16 128x8192x8192": ("chip is missing.", "h100-sxm"),
    "h100-sxm 128x8192x8192": ("dtypes is missing.", "bf16"),
    "h100-sxm bf16": ("sizes are missing.", "128x8192x8192"),
    "h100-sxm 128x8192 bf16": ("sizes are 2 in '128x8192', but matmul has 3", "BxDxF"),
    "h100-sxm 4 dot 5 bf16": ("sizes are given twice, '4' and '5'", "one at a time"),
    "h100-sxm 1x2x3 B=3 bf16": ("sizes are given twice, '1x2x3' and 'B=3'", "B=128"),
    "h100-sxm B=1 D=2 bf16": ("sizes lack F: matmul has the dimensions B, D, F.", "add F=SIZE"),
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
        "nvlink, infiniband",
    ),
    "h100-sxm 1x2x3 bf16 --shards 0 --sharding batch": ("shards is '0'", "from 1"),
    "h100-sxm 1x2x3 bf16 --sharding bach": ("sharding is 'bach'", "close to it: batch"),
    "h100-sxm 1x2x3 bf16 --network nvlik": ("network is 'nvlik'", "close to it: nvlink"),
    "h100-sxm 1x2x3 bf16 --memory l1": ("no published bandwidth of memory level l1", "hbm, l2"),
    "h100-sxm 1x2x3 bf16 --unit tensor": ("unit is 'tensor'.", "'matrix' or 'vector'"),
    "h100-sxm 1x2x3 bf16 --operation matmull": ("operation is 'matmull'", "close to it: matmul"),
    "h100-sxm BD,DF->BZ 1x2x3 bf16": ("whose result has Z", "drop Z"),
    "h100-sxm 1x2x3 bf16 tpu-v5e": ("chip is given twice, 'h100-sxm' and 'tpu-v5e'.", "one"),
    "h100-sxm 1x2x3 bf16 dott": ("the question has 'dott', which is no operation", "dot"),
    "h100-sxm 1x2x3 bf16 --jsn": ("rooflines explain has no option '--jsn'.", "--json"),
    "h100-sxm 1x2x3 bf16 --shards": ("rooflines explain is used wrongly: option '--shards'", "-h"),
    "h100-sxm 1x2x3 bf16 --config nope.yaml": ("nope.yaml does not exist.", "path"),
    "": ("rooflines explain needs CHIP [MODEL] SIZES [DTYPES].", "rooflines explain -h"),
}


@pytest.mark.parametrize(("words", "message"), WRONG.items(), ids=WRONG)
def test_a_mistake_gives_one_message(
    words: str, message: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """In words of the command line: what is wrong, close names, a fix; no config keys."""
    text = refused(capsys, "explain", *words.split())
    first, *rest = text.splitlines()
    assert message[0] in first
    assert message[1] in "\n".join(rest)
    assert rest[-1].startswith("  fix: ")
    assert not re.search(r"Traceback|sweeps|grid|\[0\]|Usage", text)


def test_several_mistakes_are_listed_together(capsys: pytest.CaptureFixture[str]) -> None:
    """Each size has a message of its own."""
    text = refused(capsys, "explain", *["h100-sxm", "0x1.5x8", "bf16"])
    assert text.count("fix:") == 2
    assert "size B" in text
    assert "size D" in text


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        ("h100-sxm", ["sizes are missing", "dtypes is missing"]),
        ("B=1", ["chip is missing", "sizes lack D, F", "dtypes is missing"]),
        ("h100-sx 0x1x2 bf61", ["chip is 'h100-sx'", "size B is '0'", "dtypes is 'bf61'"]),
        ("1x2x3 bf16 --shards 4", ["chip is missing", "shards is 4"]),
        ("llama-3.1-70b S=4 --split tp", ["chip is missing", "sizes lack B", "split has 'tp'"]),
    ],
)
def test_the_mistakes_of_all_words_are_in_one_message(
    words: str, wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """What is missing and what is wrong: chip, sizes, dtypes, split."""
    text = refused(capsys, "explain", *words.split())
    places = [line for line in text.splitlines() if not line.startswith("  ")]
    assert len(places) == len(wrong)
    for line, start in zip(places, wrong, strict=True):
        assert start in line


def test_a_wrong_question_from_python_is_a_rooflines_error() -> None:
    """Wrong types too."""
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


def test_the_json_is_the_whole_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` prints what `to_dict()` returns."""
    expected = rooflines.explain("h100-sxm", "128x8192x8192", "bf16").to_dict()
    assert json.loads(said(capsys, *EXAMPLE.split(), "--json")) == expected


@pytest.mark.parametrize(
    ("words", "extra", "coloured"),
    [(EXAMPLE, {}, True), (MODEL, {}, True), (EXAMPLE, {"NO_COLOR": "1"}, False)],
)
def test_a_terminal_has_colour_unless_it_is_unwanted(
    words: str, extra: dict[str, str], capsys: pytest.CaptureFixture[str], *, coloured: bool
) -> None:
    """The text is the same; on a terminal, ANSI codes are added."""
    outer, inner = pty.openpty()
    run_in = {**os.environ, "TERM": "xterm", "PYTHONUTF8": "1", **extra}
    run_in |= {} if extra else {"NO_COLOR": ""}
    command = [sys.executable, "-m", "rooflines", "explain", *words.split()]
    with subprocess.Popen(command, stdout=inner, env=run_in) as process:
        os.close(inner)
        text = b""
        while chunk := _read(outer):
            text += chunk
    assert process.returncode == 0
    plain = re.sub(r"\x1b\[\d*m", "", text.decode()).replace("\r\n", "\n")
    assert plain == said(capsys, *words.split())
    assert (b"\x1b[" in text) == coloured


def _read(file: int) -> bytes:
    """What a pseudo-terminal has; nothing once the other end is closed."""
    try:
        return os.read(file, 65536)
    except OSError:
        return b""


def test_a_pipe_without_utf8_gets_plain_ascii() -> None:
    """No colour, no blocks, and an early end of the reader is no error."""
    command = [sys.executable, "-m", "rooflines", "explain", *EXAMPLE.split()]
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    piped = subprocess.run(command, env=env, capture_output=True, check=True)
    answer = rooflines.explain("h100-sxm", "128x8192x8192", "bf16")
    assert piped.stdout.decode("ascii").rstrip() == as_text(answer.sheet, ascii_only=True)
    assert b"\x1b" not in piped.stdout
    assert "###" in as_text(answer.sheet, ascii_only=True)
    early = [*command, "--json"]
    with subprocess.Popen(early, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_help_is_quick_and_shows_examples_that_work(capsys: pytest.CaptureFixture[str]) -> None:
    """Help imports neither polars nor pydantic."""
    code = (
        "import sys; from rooflines.cli.main import run\n"
        "asked = ['-h'], ['explain', '--help'], ['--version']\n"
        "assert [run(words) for words in asked] == [0, 0, 0]\n"
        "assert not {'polars', 'pydantic', 'yaml'} & set(sys.modules)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert f"rooflines {rooflines.__version__}" in printed
    examples = re.findall(r"^ +rooflines explain (.*)$", printed, flags=re.MULTILINE)
    assert len(examples) >= 4
    for example in examples:
        said(capsys, *shlex.split(example))


def test_an_unknown_command_and_ctrl_c_are_one_line_each(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Close names for one; exit status 130 for the other."""
    text = refused(capsys, "explian")
    assert "rooflines has no command 'explian'." in text
    assert "close to it: explain" in text

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rooflines.explanation.answer.explain", interrupted)
    assert run(["explain", *EXAMPLE.split()]) == 130
    assert capsys.readouterr().err.strip() == "Interrupted."


class Tags(HTMLParser):
    """The tags of a page, its text, and whether every tag is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember an opening tag."""
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """A closing tag closes the last one that is open."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Collect the text."""
        self.text += data


def test_the_card_escapes_what_a_config_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """No scripts, no requests; a name with tags stays text."""
    monkeypatch.chdir(FOLDER)
    chips = rooflines.load_config("own.yaml").chips
    card = Tags()
    answer = rooflines.explain("no-capacity", "64x4096x4096", "bf16", chips=chips)
    html = answer._repr_html_()
    card.feed(html)
    assert card.open == []
    assert card.tags == {"div", "table", "tr", "td", "b", "span"}
    assert card.attributes == {"style", "title"}
    assert "<b>no&nbsp;capacity" in card.text
    assert "url(" not in html
    example = Tags()
    example.feed(rooflines.explain("h100-sxm", "128x8192x8192", "bf16")._repr_html_())
    assert example.tags - card.tags == {"a"}
    for shown in ("memory-bound: 416 TFLOP/s, 42% of peak", "crossover 318.16", "× 2.379"):
        assert shown in example.text
    model = Tags()
    of_model = rooflines.explain_model("h100-sxm", "llama-3.1-70b", B=64, S=8192, split="tp=8")
    model.feed(of_model._repr_html_())
    assert model.open == []
    assert model.tags == card.tags | example.tags
    for shown in ("memory-bound: 11.6 ms a step", "attention × 80", "≤ 1476", "× 8.934"):
        assert shown in model.text


def test_the_largest_sizes_still_fit_a_screen() -> None:
    """Quantities beyond all prefixes have an exponent."""
    sizes = {"A": 2**53, "B": 2**53, "C": 2**53}
    text = str(rooflines.explain("h100-sxm", sizes, "bf16", operation="AB,BC->AC"))
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "1.46e+48 FLOP at 989 TFLOP/s" in text


NEVER: dict[str, tuple[tuple[str, str, str], dict[str, Any]]] = {
    "memory": (("h100-sxm", "128x8192x8192", "bf16"), {}),
    "network": (
        ("h100-sxm", "2048x8192x8192", "bf16"),
        {"shards": 8, "sharding": "batch/gather-w"},
    ),
    "per example": (("tpu-v5e", "64x4096x4096", "int8"), {"operation": "per-example-matmul"}),
    "efficient": (("half-efficient", "512x4096x4096", "bf16"), {}),
}


@pytest.mark.parametrize(("question", "asked"), NEVER.values(), ids=NEVER)
def test_a_hair_above_the_limit_no_size_attains_it_and_a_hair_below_one_does(
    question: tuple[str, str, str], asked: dict[str, Any]
) -> None:
    """The share of the attainable peak that `never` tends to, against thresholds for shares."""
    chips = rooflines.load_config(FOLDER / "own.yaml").chips
    answer = rooflines.explain(*question, **asked, chips=chips)
    config = as_config(question[0], answer.sizes, question[2], {"shards": 1, **asked})
    assert answer.limit_shares
    for axis, share in answer.limit_shares.items():
        around = {"thresholds": [axis], "shares": [share * (1 + 1e-9), share * (1 - 1e-9)]}
        sweep = {"explain": {**config["sweeps"]["explain"], **around}}
        above, below = rooflines.thresholds(rooflines.load_config({**config, "sweeps": sweep}))[
            "outcome"
        ]
        assert above == "never"
        assert below in {"found", "always"}


def test_a_limit_of_exactly_the_peak_is_never_reached() -> None:
    """A ridge of 4, operands of one byte: at D = F = 4 the intensity, 2DF / (D + F), tends to 4."""
    chip = {
        "units": {"matrix": {"int8": {"flops_per_s": 4e12, "source": "made up"}}},
        "memory": {"hbm": {"bytes_per_s": 1e12, "source": "made up"}},
    }
    sweep = {"operation": "matmul", "grid": {"B": 1, "D": 4, "F": 4}, "dtypes": "int8"}
    config = {"sweeps": {"one": {**sweep, "chips": "even"}}, "chips": {"even": chip}}
    chips = rooflines.load_config(config).chips
    answer = rooflines.explain("even", "9x4x4", "int8", chips=chips)
    assert answer.limit_shares == {"B": 1.0}
    assert "B  never  memory intensity tends to 4 FLOP/B, but stays below" in str(answer)


def test_a_peak_at_boost_clock_says_so() -> None:
    """Beside the source of the peak."""
    assert "at boost clock" in str(rooflines.explain("rtx-5090", "128x8192x8192", "bf16"))
    assert "at boost clock" not in str(rooflines.explain("h100-sxm", "128x8192x8192", "bf16"))


def test_the_sizes_by_estimate_are_those_of_the_thresholds() -> None:
    """In text, in JSON and as values; nothing of them without a calibration."""
    options: dict[str, Any] = {"operation": "matmul", "dtypes": ["bf16"], "thresholds": ["B", "D"]}
    options |= {"grid": {"B": 128, "D": 8192, "F": 8192}, "chips": ["h100-sxm", "tpu-v5e"]}
    config = rooflines.load_config({"sweeps": {"s": {**options, "calibration": "trtllm"}}})
    columns = ("axis", "critical_estimate", "outcome_estimate")
    for chip in ("h100-sxm", "tpu-v5e"):
        table = rooflines.thresholds(config, "s").filter(pl.col("chip") == chip).select(columns)
        calibration = "trtllm" if chip == "h100-sxm" else None
        answer = rooflines.explain(chip, "128x8192x8192", "bf16", calibration=calibration)
        found = [each for each in answer.to_dict()["thresholds"] if each["share"] == 1]
        found = [tuple(each[name] for name in columns) for each in found if each["axis"] != "F"]
        assert found == table.rows()
        fitted = chip == "h100-sxm"
        assert [outcome for *_, outcome in found] == (["found", "never"] if fitted else [None] * 2)
        text = " ".join(str(answer).split())
        assert (f"90% of peak from 285; by estimate from {found[0][1]} D" in text) == fitted
        assert ("42.7% of peak; by estimate never F" in text) == fitted
        assert ("by estimate" in text) == fitted


def test_a_size_by_estimate_can_be_any() -> None:
    """Without overheads a matrix unit that is slow is compute-bound from size 1 on."""
    chips = {"slow": OWN["calibrated"] | {"units.matrix.bf16.flops_per_s": 1e9}}
    config = {"sweeps": {"s": {"operation": "matmul", "grid": {"B": 1, "D": 1, "F": 1}}}}
    config["sweeps"]["s"] |= {"dtypes": ["bf16"], "chips": ["slow"]}
    entries = rooflines.load_config({**config, "chips": chips}).chips
    answer = rooflines.explain("slow", "8x64x64", "bf16", chips=entries)
    assert [each["outcome_estimate"] for each in answer.thresholds[::2]] == ["always"] * 3
    assert str(answer).count("by estimate at every size") == 3


def test_an_estimate_names_its_software_and_its_band() -> None:
    """Of the software that are named, the first with a calibration; refused where none has one."""
    question = ("h100-sxm", "128x8192x8192")
    answer = rooflines.explain(*question, "bf16", calibration=["sglang", "trtllm"])
    row = answer.row
    assert answer.software == "trtllm"
    assert row["t_estimate_p10_s"] < row["t_estimate_s"] < row["t_estimate_p90_s"]
    assert f"calibrated to trtllm; {row['estimate_bound']}-bound" in str(answer)
    with pytest.raises(rooflines.RooflinesError, match="without a calibration of h100-sxm in int8"):
        rooflines.explain(*question, "int8", calibration="trtllm")
