"""What the command line refuses: one message that was reviewed, whose fix works when typed."""

import json
import re

import pytest
from case_files import CASES
from command_line import refused, said
from hf_configs import config_of
from small_config import SMALL
from test_kernels import ONE, raw
from transcripts import asked_in

from rooflines.cli.main import run

REFUSED = asked_in(CASES / "refused.txt")

TIMED = """\
chip,software,dtype_x,dtype_w,dtype_out,compute,B,D,F,seconds
h100-sxm,trtllm,bf16,bf16,bf16,bf16,4096,8192,8192,8e-4
"""

SIZES = re.compile(r"[A-Z=\d.,x]+")
"""Sizes, of which a fix says the range."""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder with a config, a config.json, timings, and a profile of a kernel that copies."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.yaml").write_text(SMALL)
    (tmp_path / "config.json").write_text(json.dumps(config_of("llama-3.1-8b")))
    (tmp_path / "timed.csv").write_text(TIMED)
    (tmp_path / "copied.csv").write_text(raw(ONE))
    return tmp_path


@pytest.mark.parametrize("asked", REFUSED, ids=lambda asked: asked.typed)
def test_a_mistake_gives_the_message_that_was_reviewed(asked, here, capsys, reviewed):
    before = {*here.iterdir()}
    message = refused(capsys, *asked.words)
    reviewed(asked, message)
    assert {*here.iterdir()} == before
    mistakes = re.split(r"\n(?! )", message.rstrip())
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
    said(capsys, *asked.next_words)


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
        assert len(refused(capsys, *words)) < 400
    assert run(["explain", "h100-sxm", "bf16", long]) == 2
