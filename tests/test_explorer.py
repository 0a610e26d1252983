"""The explorer has Python's numbers, thresholds and sentences: random states, two browsers."""

import csv
import random
import re
from pathlib import Path

import effort
import explorer
import polars as pl
import pytest
from case_files import case
from conftest import IN_BOTH
from faces import show
from playwright.sync_api import expect
from shown import NUMBER, rounds_to, unexplained
from visits import visiting

import rooflines.site
from rooflines import RooflinesError, explain, explain_model, load_config, thresholds
from rooflines.answers.claims import Ranking, Sentence, broken
from rooflines.basics.quantities import measured_value
from rooflines.cli.main import run
from rooflines.fits.calibration_files import AUTO_ENGINES
from rooflines.hardware.chip_catalogue import base_chips, chip_entries
from rooflines.site.explorer import PLANS, offered_plans
from rooflines.theory.operation import MATRIX
from rooflines.training.parallel_plan import TrainingPlan

VERDICTS = case("verdicts")
STATES = effort.cases(100)
DRAWS = (explorer.random_matmul, explorer.random_step, explorer.random_training)


@pytest.fixture(scope="module")
def visit(browser, site):
    with visiting(browser, site.as_uri(), "index.html") as one:
        yield one


@pytest.mark.parametrize("phase", ["decode", "prefill"])
@pytest.mark.parametrize("split", ["tp1", "tp1-dp8-ep8"])
def test_estimates_are_those_of_the_phase_and_of_the_split(visit, phase, split):
    sizes = {
        "split": split,
        "phase": phase,
        "B": 64,
        "S": 6095,
        "basis": "calibrated",
        "custom": {},
    }
    state = {
        "subject": "model",
        "chips": "h100-sxm",
        "model": "gpt-oss-120b",
        "format": "bf16",
        **sizes,
    }
    show(visit.page, explorer.address_of(state))
    value = explorer.explained(state)
    assert value
    assert value["time"] > 0
    assert explorer.wrong_answer(visit.page, value) == {}


BASIS = "() => EXPLORER.readState().basis"


@pytest.mark.parametrize(
    ("asked", "basis"),
    [
        ({"chips": "h100-sxm,b200"}, "calibrated"),
        ({"chips": "h100-sxm,tpu-v6e"}, "bound"),
        ({"chips": "h100-sxm,tpu-v5e", "dtypes": "fp8"}, "calibrated"),  # one lacks the dtype
        ({"subject": "model", "chips": "h100-sxm,b200"}, "calibrated"),
        ({"subject": "model", "chips": "h100-sxm,mi300x"}, "bound"),
        ({"subject": "model", "chips": "b200", "phase": "train"}, "calibrated"),
        ({"subject": "model", "chips": "h100-sxm", "phase": "train"}, "calibrated"),
        ({"subject": "model", "chips": "mi300x", "phase": "train"}, "bound"),
        ({"subject": "model", "chips": "h100-sxm", "custom": "h100-sxm.memory:4e12"}, "bound"),
        ({"chips": "h100-sxm,tpu-v6e", "basis": "calibrated"}, "calibrated"),
        ({"chips": "h100-sxm", "basis": "bound"}, "bound"),
    ],
    ids=str,
)
def test_estimates_are_shown_where_all_chips_have_them(visit, asked, basis):
    show(visit.page, asked)
    assert visit.page.evaluate(BASIS) == basis


@pytest.mark.parametrize("compute", ["bf16", "fp8", "fp16"])
def test_the_software_of_a_fit_is_that_of_the_command(visit, compute):
    fits = visit.page.evaluate("EXPLORER.readState().data.fits")
    sizes, seen = {"B": 128, "D": 4096, "F": 4096}, set()
    for chip in [one for one, by_dtype in fits.items() if compute in by_dtype]:
        answer = explain(chip, sizes, compute)
        fit = fits[chip][compute]
        assert fit["calibration"] == "auto"
        assert answer.softwares == [fit["software"]], chip
        seen.add(fit["software"])
    assert seen
    assert seen <= {*AUTO_ENGINES}


def test_every_plan_of_training_has_the_numbers_of_python(visit):
    sizes = {"B": 64, "S": 8192, "micro_batch": 2, "basis": "bound", "custom": {}}
    state = {"subject": "model", "chips": "b200", "phase": "train", "format": "bf16", **sizes}
    for plan in PLANS:
        model = "gpt-oss-120b" if "ep" in plan else "llama-3.1-8b"
        asked = {**state, "model": model, "plan": TrainingPlan.model_validate(plan).name}
        show(visit.page, explorer.address_of(asked))
        value = explorer.explained(asked)
        assert value
        assert None not in (value["longest"], value["cost"])
        assert explorer.wrong_answer(visit.page, value) == {}, asked


@pytest.mark.parametrize("model", ["deepseek-v3.2", "nemotron-3-super", "kimi-k3"])
def test_states_and_chosen_tokens_train_with_the_numbers_of_python(visit, model):
    sizes = {"B": 64, "S": 8192, "micro_batch": 2, "basis": "bound", "custom": {}}
    state = {"subject": "model", "chips": "b200", "phase": "train", "format": "bf16", **sizes}
    for plan in ("dp8-fsdp", "tp2-dp4", "ep8-dp8"):
        asked = {**state, "model": model, "plan": plan}
        show(visit.page, explorer.address_of(asked))
        assert explorer.wrong_answer(visit.page, explorer.explained(asked)) == {}, asked


THROUGHPUT = """() => {
  const [draw, drawn] = [SVG.draw, []];
  SVG.draw = (_, { marks }) => drawn.push(marks);
  PLOTS.draw(EXPLORER.readState(), EXPLORER.chipRows(), () => {});
  SVG.draw = draw;
  const lines = drawn[0].filter(({ kind }) => kind === "line").map(({ points }) => points);
  return [lines, EXPLORER.chipRows().map(({ userRate, chipRate }) => [userRate, chipRate])];
}"""
"""The lines of the picture of throughput, and speed for a user and rate of a chip of each row."""


@pytest.mark.parametrize(
    "asked",
    [
        {"phase": "decode", "split": "tp8", "B": 64, "S": 8192},
        {"phase": "prefill", "split": "tp1", "B": 1, "S": 1024},
        {"phase": "train", "plan": "tp2-cp4", "B": 8, "S": 8192},
    ],
    ids=lambda asked: asked["phase"],
)
def test_lines_of_throughput_pass_through_the_numbers_of_the_table(visit, asked):
    show(
        visit.page, {"subject": "model", "model": "llama-3.1-8b", "chips": "h100-sxm,b200", **asked}
    )
    lines, rows = visit.page.evaluate(THROUGHPUT)
    assert len(lines) == len(rows) == 2
    for line, (user, rate) in zip(lines, rows, strict=True):
        point = [asked["S"] if asked["phase"] == "train" else user, rate]
        assert pytest.approx(point) in line


DRAWN = """() => {
  const [draw, drawn] = [SVG.draw, []];
  SVG.draw = (_, { marks }) => drawn.push(marks);
  PLOTS.draw(EXPLORER.readState(), EXPLORER.chipRows(), () => {});
  SVG.draw = draw;
  return drawn.map((marks) => marks.filter(({ text }) => text === "measured")
    .map(({ points: [point] }) => point));
}"""
"""Dots of the measured number, by plot."""


def test_a_measured_number_is_a_dot_in_the_plots(visit):
    show(visit.page, {"chips": "h100-sxm,b200", "B": 128, "measured": "200TFLOP/s"})
    ((left,), (right,)) = visit.page.evaluate(DRAWN)
    assert left[1] == right[1] == pytest.approx(200e12)
    assert right[0] == 128
    state = {"subject": "model", "model": "llama-3.1-8b", "chips": "h100-sxm", "split": "tp2"}
    show(visit.page, {**state, "B": 64, "measured": "20ms"})
    ((front,), _) = visit.page.evaluate(DRAWN)
    assert front == pytest.approx([50, 64 * 50 / 2])
    assert "Measured: 20 ms" in visit.page.locator("#right .note").inner_text()


LABELS = """() => {
  const [draw, drawn] = [SVG.draw, []];
  SVG.draw = (_, { marks }) => drawn.push(marks);
  PLOTS.draw(EXPLORER.readState(), EXPLORER.chipRows(), () => {});
  SVG.draw = draw;
  return drawn[1].flatMap(({ label }) => label ?? []);
}"""
"""Labels in the plot of step time."""


def test_passes_of_a_layer_are_one_part_of_a_training_step(visit):
    show(visit.page, {"subject": "model", "phase": "train", "model": "llama-3.1-8b"})
    page, layers = visit.page, {"gate-up", "down", "attention", "qkv", "o", "unembed"}
    assert layers < {*page.evaluate(LABELS)}
    state = {"subject": "model", "phase": "train", "chips": "b200", "measured": "6s"}
    show(page, state)
    (row,) = page.evaluate(explorer.NUMBERS)
    text = page.locator("#right .rule-text").text_content() or ""
    assert rounds_to(text.partition(": ")[2], row["time"])
    assert "Shares by the bound. Measured: 6 s" in page.locator("#right .note").inner_text()


def test_a_measured_number_is_typed_into_a_field_and_kept_in_the_address(visit):
    show(visit.page, {"chips": "h100-sxm"})
    field = visit.page.get_by_label("my measurement")
    field.fill("250us")
    field.press("Enter")
    expect(visit.page.locator("#rest")).to_contain_text("Measured 250 µs")
    assert "measured=250us" in visit.page.url
    field.fill("250 apples")
    field.press("Enter")
    expect(visit.page.locator("#unknown")).to_contain_text("measured 250 apples: no number above 0")


TYPED = ["30ms", "1.5 s", "250µs", "2e3us", "9,500 tok/s/gpu", "45 tokens/s/user", "12ktok/s"]
TYPED += ["41%mfu", "41 %MFU", "0.41mfu", "55%mbu", "620TFLOP/s", "0ms", "-3ms", "30", "41%", "ms"]
TYPED += ["140%mfu", "3 apples"]


@pytest.mark.parametrize("text", TYPED)
def test_a_measured_number_is_read_as_commands_read_it(visit, text):
    value = visit.page.evaluate(
        "(text) => MEASUREMENT.parse(text, EXPLORER.readState().data.measured_scales)", text
    )
    try:
        expected = measured_value(text)
    except RooflinesError:
        assert value is None
        return
    assert value["kind"] == expected.kind
    assert [value["value"], value["rounding"]] == pytest.approx([expected.value, expected.rounding])


CRITICAL = """([asked]) => {
  const data = EXPLORER.readState().data;
  const chips = new Map(data.chips.map((chip) => [chip.id, chip]));
  const dtypes = new Map(data.dtypes.map((one) => [one.name, one]));
  return asked.map(([chip, dtype, sharding, shards, share, D, F]) => {
    const state = { data, custom: {}, sharding, shards, D, F, dtypes: dtypes.get(dtype) };
    const workload = STATE.matmulWorkload(state, chips.get(chip));
    const { outcome, size } = EVALUATION.critical(workload, share);
    return outcome === "never" ? null : size;
  });
}"""
"""Critical sizes of cases."""


def random_sweep():
    every = [chip for chip in base_chips() if "bf16" in chip_entries()[chip].units.get(MATRIX, {})]
    return {
        "operation": "matmul",
        "grid": {dim: explorer.random_size(16) for dim in "BDF"},
        "dtypes": ["bf16", "w8a16", random.choice(["fp8-out-bf16", "w4a16-g128", "int8"])],
        "chips": every,
        "sharding": ["none", random.choice(explorer.SHARDINGS)],
        "shards": [1, 2, *random.sample(range(3, 70), 4)],
        "thresholds": ["B"],
        "shares": [1, random.choice([0.9, 0.5])],
    }


def test_thresholds_are_those_of_the_tables_to_the_integer(visit):
    wanted, seen, outcomes = effort.cases(50_000), 0, set[str]()
    while seen < wanted:
        config = load_config({"sweeps": {"random": random_sweep()}})
        frame = thresholds(config).with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
        frame = frame.filter(pl.col("critical").fill_null(1) < 2**53)
        keys = ["chip", "dtypes", "sharding", "shards", "share", "D", "F"]
        cases = [list(row) for row in frame.select(keys).iter_rows()]
        sizes = visit.page.evaluate(CRITICAL, [cases])
        found = zip(cases, sizes, frame["critical"], strict=True)
        assert [each for each in found if each[1] != each[2]] == []
        seen += len(cases)
        outcomes |= set(frame["outcome"])
    assert outcomes >= {"found", "never"}


UNFINISHED = r"null|undefined|NaN|Infinity|\[object|  |\.\.|(?<![\d.])0 s\b"
"""Texts that no sentence has: values without a text, and a time of zero."""


def claims(text, lead, rows, state):
    """The sentences of a verdict as Python's rules take them, and the one that is withheld."""
    timed = [row for row in rows if row.get("time") and row["fits"] is not False]
    timed.sort(key=lambda row: row["time"])
    first = [row for row in rows if "unsupported" not in row and row["label"] in lead][:1]
    if found := re.search(r"(\w+)-bound", lead):
        yield Sentence(text=lead, rows=[{"bound": first[0]["binds"]}], blames=found[1])
    if found := re.search(r"each token adds more (\w+) time", lead):
        yield Sentence(text=lead, rows=[{"limit": first[0]["limit"]}], blames=found[1])
    if found := re.search(r"[^.]* over (?!the|such)\w+ takes[^.]*", lead):
        yield Sentence(text=found[0], rows=[{"network_bytes": first[0]["sent"]}], moves="network")
    if state["subject"] == "model" and lead and (name := re.search(r"published in ([\w-]+)", text)):
        yield Sentence(text=text, rows=first, published=name[1])
    if len(timed) > 1:
        offs = [row["off"] for row in timed[:2]]
        spreads = tuple(off["p90"] / off["p10"] for off in offs) if all(offs) else ()
        ranking = Ranking(timed[1]["time"], timed[0]["time"], spreads)
        said = next(
            line
            for line in re.split(r"(?<=[.]) (?=[A-Z])", text)
            if re.search("fastest of the chosen|too close to call|no lead", line)
        )
        every = [row["chip"] for row in timed]
        one = Sentence(text=f"bound: {said}", rows=timed, every=every, ranks=ranking)
        times = [row["time"] for row in timed]
        bare = re.sub("|".join(re.escape(row["label"]) for row in timed), "", said)
        assert unexplained(bare, [times, times[1] / times[0]]) == [], said
        if "fastest of the chosen" in said:
            assert spreads or "alone" in said, said
            yield one
        else:
            assert "within the error" in (broken(one) or ""), said


def test_a_verdict_keeps_the_rules_of_sentences(visit):
    """Random states: what is said is complete, and breaks no rule that holds for Python's."""
    kept = 0
    for _ in range(STATES):
        for state in [draw() for draw in DRAWS]:
            several = {"chips": f"{state['chips']},b200,tpu-v6e"}
            show(visit.page, explorer.address_of(state) | several)
            text = visit.page.evaluate(explorer.WORDS)
            assert not re.search(UNFINISHED, text), state
            assert text.endswith("."), state
            chips = [*visit.page.locator("#chosen li").all_inner_texts()]
            assert any(chip.split("\n")[0] in text for chip in chips), state
            rows = visit.page.evaluate(explorer.NUMBERS)
            for sentence in claims(text, visit.page.locator("#lead").inner_text(), rows, state):
                assert broken(sentence) is None, (state, sentence)
                kept += 1
    assert kept > STATES


def test_a_changed_digit_of_a_verdict_is_noticed(visit):
    """Nine in ten of them: of small whole numbers another one is often in the data, too."""
    planted = noticed = 0
    while planted < 5 * STATES:
        value = explorer.explained(random.choice(DRAWS)())
        if value is None:
            continue
        show(visit.page, explorer.address_of(value["state"]))
        text, data = explorer.verdict(visit.page, value), [*explorer.behind(value)]
        for number in NUMBER.finditer(text):
            at = random.choice([at for at in range(*number.span()) if text[at].isdigit()])
            digit = random.choice([each for each in "123456789" if each != text[at]])
            noticed += bool(unexplained(f"{text[:at]}{digit}{text[at + 1 :]}", data))
            planted += 1
    assert noticed > 0.75 * planted


@pytest.mark.parametrize("case", VERDICTS["said"], ids=lambda case: str(case["state"]))
def test_a_verdict_says_what_matters(visit, case):
    show(visit.page, case["state"])
    if "beside" in case:
        assert case["beside"] in visit.page.locator("#right .messages").inner_text()
        return
    text = visit.page.evaluate(explorer.WORDS)
    assert case.get("says", "") in text
    assert text.startswith(case.get("starts", ""))


def test_how_far_off_a_time_is_stands_beside_it(visit):
    show(visit.page, {"chips": "h100-sxm,tpu-v6e"})
    cells = visit.page.evaluate(explorer.CELLS)
    assert [row["measuredRatio"] for row in cells] == ["1.16–1.4 ×", "–"]


def test_all_columns_of_the_table_of_chips_are_in_a_window_of_1280_pixels(visit):
    assert visit.page.viewport_size["width"] == 1280
    longest = {"chips": "h100-sxm,b200,rtx-pro-6000-server,a100-sxm-80gb", "rows": "all"}
    subjects = [
        {},
        *({"subject": "model", "phase": each} for each in ("decode", "prefill", "train")),
    ]
    for subject in subjects:
        for basis in ("bound", "calibrated"):
            show(visit.page, {**longest, **subject, "basis": basis, "model": "llama-3.1-70b"})
            table = visit.page.locator(".scroll:has(#chips-table)")
            wide = table.evaluate("(one) => one.scrollWidth - one.clientWidth")
            assert wide <= 0, (subject, basis)
            assert table.locator("thead").inner_text().strip().endswith("$/Mtok")


def test_fields_of_own_numbers_show_the_data_sheet_in_the_unit_of_their_head(visit):
    chips = ["h100-sxm", "tpu-v6e"]
    show(visit.page, {"chips": ",".join(chips)})
    shown = visit.page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll("#custom-table input")].map(
            (input) => [input.dataset.custom, [input.placeholder, input.dataset.scale]]))"""
    )
    for chip in chips:
        entry = chip_entries()[chip]
        (link, *_) = entry.networks.values()
        for name, value in (
            ("peak", entry.units[MATRIX]["bf16"].flops_per_s),
            ("memory", entry.memory["hbm"].bytes_per_s),
            ("capacity", entry.memory["hbm"].capacity_bytes),
            ("link", link.bytes_per_s),
        ):
            text, unit = shown[f"{chip}.{name}"]
            assert float(text.replace(",", "")) * float(unit) == pytest.approx(value, rel=1e-3)


def test_the_layer_of_an_expert_counts_its_tokens(visit):
    layers = visit.page.evaluate("EXPLORER.readState().data.layers")
    layer = next(one for one in layers if "expert" in one["name"])
    show(visit.page, {size: layer[size] for size in "DF"})
    assert "B counts its tokens alone" in visit.page.evaluate(explorer.WORDS)


def test_models_open_in_their_published_format(visit):
    show(visit.page, {"subject": "model", "model": "gpt-oss-120b"})
    assert visit.page.locator("#format").input_value() == "mxfp4-experts"
    visit.page.locator("#model").select_option("deepseek-v3.2")
    expect(visit.page.locator("#format")).to_have_value("fp8")


@pytest.mark.parametrize("model", ["llama-3.1-70b", "gpt-oss-120b", "deepseek-v3.2"])
def test_dense_models_and_those_with_experts_have_bands_of_their_own(visit, model):
    question = {"model": model, "split": "tp8", "format": "bf16", "B": 64, "S": 4096}
    show(visit.page, {"subject": "model", **question})
    bands = {row["chip"]: row["band"] for row in visit.page.evaluate(explorer.NUMBERS)}
    answer = explain_model("h100-sxm", model, B=64, S=4096, dtypes="bf16", split="tp8")
    expected = [answer.row["t_estimate_p10_s"], answer.row["t_estimate_p90_s"]]
    assert bands["h100-sxm"] == pytest.approx(expected, rel=1e-6)


@IN_BOTH
def test_the_keyboard_is_enough(visit):
    page = visit.open("index.html#chips=h100-sxm,b200,mi300x,tpu-v6e")
    page.locator("#add").focus()
    page.keyboard.type("h200 sx")
    page.keyboard.press("Enter")  # no ArrowDown: the browser's list may be a letter behind
    expect(page.locator("#chosen")).to_contain_text("H200 SXM")
    assert "chips=h100-sxm,b200,mi300x,tpu-v6e,h200-sxm" in page.url
    page.get_by_label("Remove B200").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#chosen")).not_to_contain_text("B200")
    for name in ("% peak", "Remove TPU v6e", "% peak", "Remove MI300X"):
        page.locator("#chips-table").get_by_role("button", name=name).focus()
        page.keyboard.press("Enter")
        expect(page.locator("#chips-table button:focus")).to_have_count(1)
    page.locator("#size-B").fill("4096")
    page.keyboard.press("Enter")
    expect(page.locator("#lead")).to_contain_text("compute-bound")
    expect(page.locator("#announcement")).to_contain_text("compute-bound")
    assert page.locator("#announcement").get_attribute("aria-live") == "polite"
    page.get_by_role("radio", name="D × F").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name="Chip × dtypes")).to_be_checked()
    expect(page.locator("#panel")).to_contain_text("D = 28,672, F = 8,192")
    page.locator(".panel summary").click()
    page.get_by_label("Memory of H100 SXM, GB/s").fill("4800")
    page.keyboard.press("Enter")
    expect(page.locator("#custom-note")).to_be_visible()
    assert "custom=h100-sxm.memory:4800000000000" in page.url
    page.get_by_label("Memory of H100 SXM, GB/s").fill("-4,800")
    page.keyboard.press("Enter")
    expect(page.locator("#unknown")).to_contain_text("h100-sxm.memory:-4800: of no chip, or no num")
    expect(page.locator("#custom-note")).to_be_hidden()


def test_back_undoes_a_choice_and_keeps_what_a_slider_did(visit):
    page = visit.open("index.html#B=128")
    page.locator("#dtypes").select_option("w8a16")
    expect(page.locator("body")).to_have_attribute("data-drawn", re.compile("dtypes=w8a16"))
    page.get_by_label("B, slider").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("body")).to_have_attribute("data-drawn", re.compile("B=152"))
    page.go_back()
    expect(page.locator("body")).to_have_attribute("data-drawn", "#B=128")


def test_the_command_of_the_page_is_one(visit):
    for state in VERDICTS["commands"]:
        show(visit.page, state)
        program, *words = visit.page.locator("#command").inner_text().split()
        assert program == "rooflines"
        assert run(words) == 0, words


def test_training_shows_what_it_has_and_tells_the_rest(visit):
    state = {"subject": "model", "phase": "train", "model": "llama-3.1-8b", "plan": "dp8-fsdp"}
    show(visit.page, state)
    assert "On 8 × H100 SXM a step of training of Llama" in visit.page.evaluate(explorer.WORDS)
    (head, *_) = visit.page.locator("#chips-table thead").all_inner_texts()
    assert "MFU" in head
    assert "tok/s user" not in head
    assert not visit.page.locator("#split").is_visible()
    visit.page.get_by_label("B, slider").focus()
    visit.page.keyboard.press("ArrowRight")
    expect(visit.page.locator("body")).to_have_attribute("data-drawn", re.compile(r"B=\d"))
    assert int(visit.page.locator("#size-B").input_value()) % 8 == 0
    assert not visit.page.locator("#unknown").is_visible()
    show(visit.page, state | {"B": 12, "micro_batch": 2, "tab": "context"})
    told = visit.page.locator("#unknown").inner_text()
    assert "B 12: no multiple of 16 from 16 to 16,777,216; shown is 16" in told
    assert "tab context" in told
    show(visit.page, state | {"chips": "b300", "model": "gpt-oss-120b", "plan": "dp8"})
    assert "of states and" in visit.page.evaluate(explorer.WORDS)
    show(visit.page, state | {"model": "nemotron-3-super", "plan": "tp2-cp4-dp1"})
    assert "a state passes from token to token" in visit.page.evaluate(explorer.WORDS)
    show(visit.page, state | {"basis": "calibrated"})
    assert "times the compute time with the bubble, as in 9 measured steps" in visit.page.evaluate(
        explorer.WORDS
    )
    show(visit.page, {"subject": "model", "phase": "train", "chips": "b200"})
    assert "On 8 × B200 a step of training of Llama 3.1 8B" in visit.page.evaluate(explorer.WORDS)
    assert "2.04 times the latter, as in 43 measured steps (Megatron)" in visit.page.evaluate(
        explorer.WORDS
    )
    show(visit.page, {"subject": "model", "model": "llama-3.1-8b"})
    assert visit.page.locator("#split").is_visible()
    assert not visit.page.locator("#plan").is_visible()


def test_the_offered_plans_a_config_are_offered_besides():
    own = {"tp": 2, "pp": 2, "dp": 2, "interleave": 2, "shard": "gradients"}
    splits = [{"tp": 1}, {**own, "micro_batch": 2}, {"dp": 2, "recompute": "full"}]
    sweep = {"models": ["llama-3.1-8b"], "chips": ["b200"], "dtypes": ["bf16"], "phase": "train"}
    grid = {"B": [8], "S": [1024]}
    config = load_config({"model-sweeps": {"own": {**sweep, "splits": splits, "grid": grid}}})
    assert offered_plans(config.model_sweeps.values()) == [*PLANS, own]


PURE = ("number-formats", "numbers", "evaluation", "measurement", "kernels", "state", "sentences")
"""Scripts that need no page."""


def test_answers_and_sentences_need_no_page(visit, site):
    scripts = [(site / "assets" / f"{name}.js").read_text() for name in PURE]
    code = "\n".join(script.replace('"use strict";', "") for script in scripts)
    show(visit.page, {"chips": "h100-sxm,b200", "B": 300})
    text = visit.page.evaluate(
        """([code]) => {
          const end = `
            const state = STATE.read(new URLSearchParams(asked), data);
            const rows = state.chips.map((chip) => STATE.evaluateChip(state, chip));
            return SENTENCES.verdict(state, rows).lead;`;
          const run = new Function("document", "window", "asked", "data", code + end);
          return run(undefined, undefined, location.hash.slice(1), EXPLORER.readState().data);
        }""",
        [code],
    )
    assert text == visit.page.locator("#lead").inner_text()


SIZE = 248_000
"""Limit of what the page loads before a picture is asked for [byte].

Settings, columns and splits of served models are in it, their search is loaded on demand.
"""


def test_the_page_is_small(site):
    text = (site / "index.html").read_text()
    named = re.findall(r'(?:src|href)="((?:assets|data)/[^"]+\.(?:js|css|svg))"', text)
    files = {"index.html", "data/explorer.js", "data/steps.js", *named}
    assert len(files) > 10
    assert sum((site / name).stat().st_size for name in files) < SIZE


def test_lines_of_scripts_are_short():
    scripts = [*(Path(rooflines.site.__file__).parent / "assets").glob("*.js")]
    assert max(len(line) for path in scripts for line in path.read_text().splitlines()) <= 100


def test_the_table_is_saved_in_si_units_with_all_digits(visit):
    show(visit.page, {"chips": "h100-sxm,tpu-v5e", "dtypes": "fp8", "basis": "bound"})
    with visit.page.expect_download() as download:
        visit.page.locator("#save-csv").click()
    able, lacking = csv.DictReader(Path(download.value.path()).read_text().splitlines())
    row = explain("h100-sxm", {"B": 128, "D": 28672, "F": 8192}, "fp8").row
    assert float(able["time_s"]) == pytest.approx(row["t_lower_s"], rel=1e-12)
    assert float(able["share_of_peak"]) == pytest.approx(row["utilization"], rel=1e-12)
    assert able["bound"] == row["bound"]
    assert lacking["chip"] == "tpu-v5e"
    assert lacking["time_s"] == "no published fp8 peak"
