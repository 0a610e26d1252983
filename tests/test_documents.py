"""Generated documents are current: JSON Schema, pictures, keys, answers, measured figures."""

import gzip
import inspect
import json
import re
from fractions import Fraction

import command_output
import config_page
import gallery
import jsonschema
import performance
import pytest
from accuracy_page import outside_bands
from answers import critical_batches
from blocks import with_values
from case_files import case
from documents import PICTURES, README, SCHEMA, VEGA, vega_script
from generated import FIX, TEXTS, current, out_of_date
from pages import text_of, words_of
from performance import CONFIG, SCALING, default_rows

import rooflines
from rooflines import charts
from rooflines.basics.yaml_file import read_yaml
from rooflines.cli.keys import every_key
from rooflines.fits.calibration_files import CALIBRATIONS_FILE

CHART_FUNCTIONS = {
    name
    for name in charts.__all__
    if inspect.signature(getattr(charts, name)).return_annotation == "alt.LayerChart"
    and name not in ("measured", "kernel", "requests")
}
"""Functions that draw a chart; the default config has no timings, kernels or engines to draw."""

DIGESTS = json.loads((PICTURES / gallery.DIGESTS).read_text(encoding="utf-8"))

MOST_BYTES = 500_000
"""Size of all pictures in the repository [byte]."""


@pytest.fixture(scope="module")
def validator():
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_a_generated_document_is_current(page):
    assert page.read_text(encoding="utf-8") == current(page), FIX


def test_a_document_out_of_date_is_named_with_what_to_run(monkeypatch):
    monkeypatch.setattr("generated.TEXTS", {SCHEMA: (lambda text: f"{text} ",)})
    monkeypatch.setattr("gallery.charts_of_pages", lambda: None)
    monkeypatch.setattr("gallery.digests", lambda _: DIGESTS)
    assert list(out_of_date()) == [
        "workflow/schemas/config.schema.json is out of date: run python docs/build"
    ]


def test_the_pictures_are_those_of_the_snippets(default_results):
    specs = gallery.charts_of_pages(default_results)
    assert {function for function, _ in specs.values()} == CHART_FUNCTIONS
    assert gallery.digests(specs) == DIGESTS, FIX
    assert {path.stem for path in PICTURES.glob("*.png")} == {*specs}
    assert sum(path.stat().st_size for path in PICTURES.iterdir()) < MOST_BYTES


def test_the_script_of_the_site_is_that_of_the_installed_vega():
    assert gzip.decompress(VEGA.read_bytes()) == gzip.decompress(vega_script()), FIX


def test_the_default_config_is_valid_by_the_schema(repository, validator):
    assert not [
        error.message
        for error in validator.iter_errors(read_yaml(repository / "config" / "config.yaml"))
    ]


BY_SCHEMA = [
    pytest.param(config, kind == "valid", id=name)
    for kind, configs in case("schema").items()
    for name, config in configs.items()
]


@pytest.mark.parametrize(("config", "valid"), BY_SCHEMA)
def test_the_schema_accepts_what_is_a_config_and_nothing_else(config, valid, validator):
    assert validator.is_valid(config) == valid


def test_every_key_is_explained():
    assert every_key().filter(meaning="").rows() == []


# ------------------------------------------------------------------ answers of pages

PEAK, RATE, WIDTH = Fraction(989 * 10**12), Fraction(3350 * 10**9), 8192
"""An H100 SXM: FLOP/s in bf16, bytes/s of memory; the layer's D and F."""


def test_the_critical_batch_is_the_one_by_hand():
    found = critical_batches()
    for dtypes, weight in (
        ("bf16", Fraction(2)),
        ("w8a16", Fraction(1)),
        ("w4a16", Fraction(1, 2)),
    ):
        ridge = PEAK / RATE
        batch = ridge * weight / 2 / (1 - 2 * ridge / WIDTH)
        assert found["h100-sxm", dtypes] == str(-(-batch.numerator // batch.denominator))
    assert ("tpu-v5e", "fp8-out-bf16") not in found
    assert f"| `h100-sxm` | {found['h100-sxm', 'bf16']} | " in text_of("tutorial.md")


def test_values_of_a_page_are_named_and_begin_no_line():
    assert with_values("a <!--b-->2<!--/--> c", {"b": "3"}) == "a <!--b-->3<!--/--> c"
    with pytest.raises(KeyError, match="b"):
        with_values("a <!--b--><!--/-->", {})
    with pytest.raises(ValueError, match="begins a line"):
        with_values("a\n<!--b--><!--/-->", {"b": "3"})


def test_a_long_axis_is_listed_by_its_ends():
    assert config_page.listed(range(1, 10)) == "1, 2, 3, 4, 5, 6, ..., 8, 9"
    assert config_page.listed(range(1, 9)) == "1, 2, 3, 4, 5, 6, 7, 8"


def test_a_limit_that_is_no_power_is_refused():
    assert config_page.power(2**53, 2) == "2^53"
    with pytest.raises(ValueError, match="1000 is no power of 2"):
        config_page.power(1000, 2)


def test_the_rows_of_the_default_config_are_one_number():
    texts = (page.read_text(encoding="utf-8") for page in (README, CONFIG, SCALING))
    said = [re.findall(r"([\d.]+ million) rows(?:,| t)", text)[0] for text in texts]
    assert said == [f"{default_rows() / 1e6:.3g} million"] * 3


@pytest.mark.parametrize(
    ("seconds", "words"), [(31.26, "30 seconds"), (57.9, "a minute"), (1100, "18.5 minutes")]
)
def test_a_time_in_words(seconds, words):
    assert performance.about(seconds) == words


def test_figures_follow_from_the_results():
    """By hand: the writer's share, core columns against all, and the core-hours of 10^12 rows."""
    rows, by = (performance.results()["rows"][key] for key in ("rows", "by"))
    text = " ".join(SCALING.read_text(encoding="utf-8").split())
    assert f"`columns: core` | {by['core']['rows_s'] / by['rooflines']['rows_s']:.2f} ×" in text
    writing = 1 - by["unwritten"]["rows_s"] / by["rooflines"]["rows_s"]
    assert f"polars' Parquet writer takes <!--writing-->{writing:.0%}<" in text
    hours = re.findall(r"core-hours[^|]*\| ([\d.]+)", SCALING.read_text(encoding="utf-8"))
    expected = 1e12 / rows * by["rooflines"]["rows_s"] / 3600
    assert float(hours[0]) == pytest.approx(expected, 0.01)


def test_a_screen_keeps_its_number_of_lines_where_it_is_cut():
    """A whole screen has all lines; one with a cut in between is left to its writer."""
    whole = f"```text\n$ rooflines list dtypes\n{command_output.printed('list dtypes')}```\n"
    assert command_output.with_output("```text\n$ rooflines list dtypes\n```\n") == whole
    lines = command_output.printed("list dtypes").splitlines()
    cut = command_output.with_output("```text\n$ rooflines list dtypes\nold\nolder\n...\n```\n")
    assert cut.splitlines()[2:5] == [*lines[:2], "..."]
    between = "```text\n$ rooflines list dtypes\nold\n...\nolder\n```\n"
    assert command_output.with_output(between) == between
    with pytest.raises(ValueError, match="h100-smx"):
        command_output.printed("list chips h100-smx")


def test_held_out_errors_come_before_those_in_sample():
    """By hand from the file of fits: the served model's error by chip and engine, and its range."""
    steps = read_yaml(CALIBRATIONS_FILE)["steps"]
    errors = {key: fit["decode"]["held_out"]["median"] for key, fit in steps.items()}
    by_engine = [100 * error for key, error in errors.items() if "/" in key]
    page = words_of("accuracy.md")
    in_sample = f"{100 * steps['all']['decode']['fitted']['median']:.1f} %"
    unseen = f"off by {100 * errors['all']:.1f} % in the median"
    assert 0 < page.index(unseen) < page.index("| b200 | SGLang |") < page.index(in_sample)
    assert f"is {min(by_engine):.0f} to {max(by_engine):.0f} %." in page
    assert f"| h200-sxm | vLLM | 164 | {100 * errors['h200-sxm/vllm']:.1f} % |" in page


def test_bands_that_hold_too_few_or_too_many_runs_are_named():
    """A chip with one engine is named once; ends count as within."""
    runs = {
        "model a": 70,
        "model b": 97,
        "chip c": 10,
        "key c/e": 10,
        "key d/e": 69,
        "dtypes f": 90,
    }
    lines = [
        f"{name}  left out  1,234  -  5.0  6.0, {share} % in band" for name, share in runs.items()
    ]
    assert outside_bands("\n".join(lines)) == "c (10 %), d/e (69 %), b (97 %)"


def test_the_model_names_modules_that_exist(repository):
    modules = re.findall(r"`(\w+/\w+\.py)`", words_of("model.md"))
    assert len(modules) > 10
    assert [name for name in modules if not (repository / "rooflines" / name).is_file()] == []


@pytest.mark.parametrize(("page", "names"), [("docs/model.md", 5), ("CONTRIBUTING.md", 5)])
def test_a_page_names_what_its_modules_define(page, names, repository):
    text = " ".join((repository / page).read_text(encoding="utf-8").split())
    named = re.findall(r"`(\w+)` in `(\w+/\w+\.py)`", text)
    assert len(named) >= names
    for name, module in named:
        source = (repository / "rooflines" / module).read_text(encoding="utf-8")
        assert re.search(rf"^(?:def |class | +def )?{name}\b", source, re.MULTILINE), (name, module)


def test_the_memory_time_by_hand_is_the_one_that_the_model_page_works_out():
    (worked,) = re.findall(
        r"`rooflines (explain [^`]+)`: (.+?) bytes / (\S+) bytes/s = (\S+) µs", words_of("model.md")
    )
    command, moved, rate, shown = worked
    size, width, out = (int(part) for part in command.split()[-1].split("x"))
    assert moved == f"2 ({size} * {width} + {width} * {out} + {size} * {out})"
    row = rooflines.explain("h100", (size, width, out)).row
    assert f"{row['t_memory_s'] * 1e6:.3g}" == shown
    by_hand = Fraction(2 * (size * width + width * out + size * out)) / Fraction(rate)
    assert row["t_memory_s"] == pytest.approx(float(by_hand), rel=1e-14)
