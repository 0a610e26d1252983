"""Output and refusals of the command line are as reviewed; each fix works when typed."""

import json
import random
import re
import shlex
import shutil

import pytest
from case_files import CASES
from command_line import refused, said
from hf_configs import config_of
from small_config import SMALL
from test_kernels import ONE, raw
from transcripts import asked_in

from rooflines.cli.main import run

REFUSED, SAID = (asked_in(CASES / f"{name}.txt") for name in ("refused", "said"))

SIZES = re.compile(r"[A-Z=\d.,x]+")
"""Sizes, of which a fix says the range."""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """The files of cases/said, a config, a config.json, and a profile of a kernel that copies."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(CASES / "said", tmp_path, dirs_exist_ok=True)
    (tmp_path / "my.yaml").write_text(SMALL)
    (tmp_path / "config.json").write_text(json.dumps(config_of("llama-3.1-8b")))
    (tmp_path / "copied.csv").write_text(raw(ONE))
    return tmp_path


@pytest.mark.parametrize("asked", SAID, ids=lambda asked: asked.typed)
def test_a_command_prints_what_was_reviewed(asked, capsys, reviewed):
    text = said(capsys, *asked.words)
    reviewed(asked, text)
    assert not re.search(r"\d\n\s+[mµn]?s\b", text), "a line ends between a time and its unit"


@pytest.mark.parametrize("asked", REFUSED, ids=lambda asked: asked.typed)
def test_a_mistake_gives_the_message_that_was_reviewed(asked, here, capsys, reviewed):
    before = {*here.iterdir()}
    message = refused(capsys, *asked.words)
    reviewed(asked, message)
    assert {*here.iterdir()} == before
    said = re.sub(r"^answered by .*\n", "", message)
    mistakes = re.split(r"\n(?! )", said.rstrip())
    assert [each.count("\n  fix: ") for each in mistakes] == [1] * len(mistakes)


@pytest.mark.parametrize(
    "asked", [each for each in REFUSED if each.typed_next], ids=lambda asked: asked.typed
)
def test_the_fix_that_is_offered_works_when_typed(asked, capsys):
    """A reader of the message knows every word to type next; `{...}` has a long form."""
    known = f"{asked.output} {asked.typed} -h config.json my.yaml other.yaml"
    for word in asked.next_words:
        plain = word.rpartition("=")[2]
        assert word.startswith(("--", "{")) or SIZES.fullmatch(word) or plain in known, word
    if asked.typed_next not in TRIED.findall(asked.output):  # a line of these was answered
        said(capsys, *asked.next_words)


TRIED = re.compile(r"^  try(?: \(without .*\))?: rooflines (.*)$", re.MULTILINE)
"""The corrected line below a message."""

CORRECTED = [line for each in REFUSED for line in TRIED.findall(each.output)]


def test_corrected_lines_run(capsys):
    """Some of them: a message has a line only if it was answered, as its own test saw."""
    for line in random.sample([*dict.fromkeys(CORRECTED)], 12):
        said(capsys, *shlex.split(line))


def test_two_of_three_questions_have_a_corrected_line():
    """A line that leaves out a chip, a limit, a measured number or a price is not offered."""
    questions = [each for each in REFUSED if each.words[0] in ("explain", "train")]
    corrected = [each for each in questions if TRIED.findall(each.output)]
    assert len(corrected) > 2 / 3 * len(questions)


def test_every_network_that_is_offered_joins_the_chips(capsys):
    offers = re.compile(r"choose the network (.*)\.$", re.MULTILINE)
    offered = [(each, found[1]) for each in REFUSED if (found := offers.search(each.output))]
    assert len(offered) > 4
    for asked, networks in offered:
        for network in networks.split(" or "):
            said(capsys, *asked.words, "--network", network)


def test_a_name_of_thousands_of_letters_is_one_short_message(capsys):
    long = "x" * 5000
    for words in (("compare", long, "b200"), ("draw", "--results", long), ("run", long)):
        assert len(refused(capsys, *words)) < 500
    assert run(["explain", "h100-sxm", "bf16", long]) == 2
