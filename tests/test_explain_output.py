"""`rooflines explain` on a terminal, in a pipe, as JSON, as a card in a notebook."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from command_line import refused, said
from explained import EXAMPLE, FOLDER, MODEL

import rooflines
from rooflines.cli.main import run
from rooflines.explanation.text import WIDTH, as_text


def test_the_json_is_the_whole_answer(capsys):
    expected = rooflines.explain("h100-sxm", "128x8192x8192", "bf16").to_dict()
    assert json.loads(said(capsys, "explain", *EXAMPLE.split(), "--json")) == expected


@pytest.mark.parametrize(
    ("words", "extra", "coloured"),
    [(EXAMPLE, {}, True), (MODEL, {}, True), (EXAMPLE, {"NO_COLOR": "1"}, False)],
)
def test_a_terminal_has_colour_unless_it_is_unwanted(words, extra, capsys, *, coloured):
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
    assert plain == said(capsys, "explain", *words.split())
    assert (b"\x1b[" in text) == coloured


def _read(file):
    """What a pseudo-terminal has; nothing once the other end is closed."""
    try:
        return os.read(file, 65536)
    except OSError:
        return b""


def test_a_pipe_without_utf8_gets_plain_ascii():
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


def test_help_is_quick_and_shows_examples_that_work(capsys):
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
        said(capsys, "explain", *shlex.split(example))


def test_an_unknown_command_and_ctrl_c_are_one_line_each(capsys, monkeypatch):
    text = refused(capsys, "explian")
    assert "rooflines has no command 'explian'." in text
    assert "close to it: explain" in text

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rooflines.explanation.answer.explained", interrupted)
    assert run(["explain", *EXAMPLE.split()]) == 130
    assert capsys.readouterr().err.strip() == "Interrupted."


class Tags(HTMLParser):
    """The tags of a page, its text, and whether every tag is closed."""

    def __init__(self):
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        """Remember an opening tag."""
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        """A closing tag closes the last one that is open."""
        assert self.open.pop() == tag

    def handle_data(self, data):
        """Collect the text."""
        self.text += data


def test_the_card_escapes_what_a_config_says(monkeypatch):
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
    for shown in ("at most 416 TFLOP/s, 42% of peak", "crossover 318.16", "× 2.379"):
        assert shown in example.text
    model = Tags()
    of_model = rooflines.explain_model("h100-sxm", "llama-3.1-70b", B=64, S=8192, split="tp=8")
    model.feed(of_model._repr_html_())
    assert model.open == []
    assert model.tags == card.tags | example.tags
    for shown in ("memory-bound: 11.7 ms a step", "attention × 80", "≤ 1476", "× 8.934"):
        assert shown in model.text


def test_the_largest_sizes_still_fit_a_screen():
    sizes = {"A": 2**53, "B": 2**53, "C": 2**53}
    text = str(rooflines.explain("h100-sxm", sizes, "bf16", operation="AB,BC->AC"))
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "1.46e+48 FLOP at 989 TFLOP/s" in text
