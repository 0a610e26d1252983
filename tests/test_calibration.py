"""Calibrations: fits that find known numbers, and the shipped file."""

import math
import os
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest
from case_files import case
from catalogues import NOMINAL, shipped
from timed import SIZES, timings

from benchmarks.calibration import OWN, public_tables
from benchmarks.calibration import fitted as refitted
from rooflines.basics.errors import RooflinesError
from rooflines.fits.calibrate import FitRequest, calibrate
from rooflines.fits.calibration_files import (
    CALIBRATIONS_FILE,
    Calibrations,
    FittedAttention,
    FittedExperts,
    FittedMatmul,
    attention_name,
    calibrations_yaml,
    read_calibrations,
    shipped_calibrations,
)
from rooflines.fits.fit_errors import BIN, BINS, MIN_BAND_TIMINGS, bands, with_band, with_errors
from rooflines.fits.fit_keys import FitKey, Software
from rooflines.fits.fitting import (
    ATTENTION_FIT,
    COLLECTIVE_FIT,
    POOR,
    median_error,
    with_estimate_errors,
)
from rooflines.fits.held_out import held_out, held_out_below, with_folds
from rooflines.fits.least_squares import Problem
from rooflines.fits.nominal import with_nominal_times
from rooflines.fits.prior import prior_of
from rooflines.fits.time_form import CollectiveNumbers
from rooflines.fits.timing_tables import read_timings
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.measured.join import join_timings
from rooflines.theory.times import FitRange

GIVEN = case("fits")
KNOWN, ORDINARY = GIVEN["known"], GIVEN["ordinary"]


def fitted(tmp_path, frame, form="pieces", prior=None):
    """The fit of a table of bf16 timings on an h100-sxm."""
    path = tmp_path / "timings.parquet"
    frame.write_parquet(path)
    chosen = read_timings(path).of_system("h100-sxm", "mine")
    entry = chip_entries()["h100-sxm"]
    request = FitRequest(chosen, "h100-sxm", entry, "made up", "2026-01-01", form, prior)
    (result,) = calibrate(request)
    return result


def numbers_of(result):
    assert isinstance(result.entry, FittedMatmul)
    return {
        name: float(number) for name, number in vars(result.entry.numbers).items() if float(number)
    }


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("h100-sxm/trtllm", FitKey("h100-sxm", Software("trtllm"))),
        ("h100-sxm/trtllm-block-2", FitKey("h100-sxm", Software("trtllm", "block-2"))),
        ("vllm", FitKey(None, Software("vllm"))),
        ("a/b/c", FitKey("a", Software("b/c"))),
        ("a-/-b-", FitKey("a-", Software("", "b-"))),
        ("", FitKey(None, Software(""))),
    ],
)
def test_a_key_of_fits_has_the_text_that_files_have(text, key):
    assert FitKey.parse(text) == key
    assert str(key) == text


def test_a_copy_with_other_fits_finds_these():
    shipped = shipped_calibrations()
    assert shipped.step("h200-sxm", "vllm") is not None
    assert shipped.model_copy(update={"steps": {}}).step("h200-sxm", "vllm") is None


def test_the_fit_finds_known_numbers(tmp_path):
    result = fitted(tmp_path, timings(KNOWN))
    assert numbers_of(result) == pytest.approx({**KNOWN, "network": 1, "tile": 1}, rel=0.02)
    assert result.entry.held == []
    assert result.entry.held_out is not None
    assert result.entry.held_out.median < 1e-3
    assert result.entry.fitted.n + result.entry.held_out.n == 250


def test_noise_becomes_the_band(tmp_path):
    result = fitted(tmp_path, timings(KNOWN, noise=0.04))
    assert numbers_of(result)["math"] == pytest.approx(KNOWN["math"], rel=0.01)
    assert result.entry.fitted.median == pytest.approx(0.04, abs=0.01)
    assert result.entry.bands.keys() == {"compute", "memory", "mixed"}
    for band in result.entry.bands.values():
        assert band == pytest.approx((1 / 1.04, 1.04), abs=0.02)


@pytest.mark.parametrize(("name", "number", "batches"), GIVEN["extensions"])
def test_many_timings_find_an_extension(tmp_path, name, number, batches):
    frame = timings({**KNOWN, name: number}, sizes=(*SIZES, 3072), batches=batches)
    found = numbers_of(fitted(tmp_path, frame))
    assert found[name] == pytest.approx(number, rel=0.05)
    assert found.keys() == {*KNOWN, "network", "tile", name}


def test_what_is_fitted_is_chosen_by_sites_that_choose_alone(tmp_path):
    """Batches that are multiples of 128 do not tell whole tiles of 128 rows from none."""
    ((name, number, batches),) = (each for each in GIVEN["extensions"] if each[0] == "tile")
    whole, others = (
        with_folds(timings({**KNOWN, name: number}, sizes=(*SIZES, 3072), batches=of))
        for of in (range(128, 17 * 128, 128), batches)
    )
    rest = whole.filter(~held_out(held_out_below(whole)))
    inner = held_out(held_out_below(rest, inner=True), inner=True)
    frame = pl.concat([whole.filter(~inner), others.filter(inner)]).drop("fold")
    assert numbers_of(fitted(tmp_path, frame))[name] == number


def test_the_band_beyond_the_sizes_is_by_a_fit_that_does_not_know_them(tmp_path):
    frame = timings(KNOWN)
    at_ends = pl.any_horizontal(
        pl.col(size).is_in([frame[size].min(), frame[size].max()]) for size in "DF"
    )
    slower = pl.col("seconds") * pl.when(at_ends).then(1.5).otherwise(1)
    result = fitted(tmp_path, frame.with_columns(seconds=slower))
    assert result.entry.outside == pytest.approx((1.5, 1.5), rel=0.05)


def few_small():
    """Timings that do not tell the share of the memory's rate."""
    large = timings(KNOWN, sizes=(4096, 8192), batches=(2048, 4096, 8192, 16384))
    return pl.concat([large, timings(KNOWN, sizes=(4096,), batches=(1, 2))])


def test_what_timings_do_not_tell_is_held(tmp_path):
    result = fitted(tmp_path, few_small())
    assert "memory" in result.entry.held
    assert numbers_of(result)["memory"] == float(prior_of("bf16").memory)
    assert "math" not in result.entry.held


def test_another_fit_is_a_prior(tmp_path):
    other = {"bf16": {**NOMINAL, "memory": 0.84}}
    prior = Calibrations.model_validate({"calibrations": {"a/b": other}})
    result = fitted(tmp_path, few_small(), prior=prior)
    assert numbers_of(result)["memory"] == 0.84
    with pytest.raises(RooflinesError, match="has 0 calibrations in fp8, not one"):
        prior_of("fp8", prior)


def test_held_out_sites_are_not_fitted(tmp_path):
    frame = timings(KNOWN)
    sites = frame.select("D", "F").unique()
    clean = fitted(tmp_path, frame)
    changed = 0
    for depth, width in sites.iter_rows():
        here = (pl.col("D") == depth) & (pl.col("F") == width)
        times = pl.when(here).then(pl.col("seconds") * 3).otherwise(pl.col("seconds"))
        result = fitted(tmp_path, frame.with_columns(seconds=times))
        same = numbers_of(result) == numbers_of(clean)
        assert same == (result.entry.fitted == clean.entry.fitted)
        changed += not same
    assert 0.6 * sites.height < changed < 0.9 * sites.height


def at(sites):
    every = timings(KNOWN, sizes=sorted({size for site in sites for size in site}))
    chosen = pl.DataFrame(sites, schema=["D", "F"], orient="row")
    return every.join(chosen, on=["D", "F"], how="semi", maintain_order="left")


@pytest.mark.parametrize(
    ("sites", "kept"),
    [(ORDINARY, 2), (ORDINARY[:6], 1), (ORDINARY[2:], 1), (ORDINARY[6:] + ORDINARY[:1], 1)],
)
def test_a_quarter_of_few_sites_is_held_out(sites, kept, tmp_path):
    result = fitted(tmp_path, at(sites))
    assert result.entry.held_out is not None
    assert (result.entry.fitted.n, result.entry.held_out.n) == (10 * (len(sites) - kept), 10 * kept)
    folded = with_folds(at(sites)).filter(held_out(result.entry.held_out_below))
    assert folded.select("D", "F").unique().height == kept


def test_where_too_few_are_left_all_are_fitted_and_no_site_is_held_out(tmp_path):
    few = pl.concat([site.gather_every(4) for _, site in at(ORDINARY[:4]).group_by("D", "F")])
    assert held_out_below(with_folds(few).with_columns(bound=pl.lit("compute"))) > 0
    result = fitted(tmp_path, few)
    assert result.entry.fitted.n == few.height
    assert (result.entry.held_out, result.entry.held_out_below) == (None, 0)


def test_each_batch_is_in_one_bin():
    frame = pl.DataFrame({"B": [1, 2, 16, 17, 64, 65, 256, 257, 1024, 1025, 2**40]})
    named = frame.select(**BINS).unpivot(variable_name="bin").filter("value")
    assert named["bin"].to_list() == [
        *["B 1 to 16"] * 3,
        *["B 17 to 64"] * 2,
        *["B 65 to 256"] * 2,
        *["B 257 to 1,024"] * 2,
        *["B from 1,025"] * 2,
    ]
    assert frame.select(BIN.alias("bin"))["bin"].to_list() == named["bin"].to_list()


def test_a_fit_to_little_says_so(tmp_path):
    (two, judged) = fitted(tmp_path, at(ORDINARY[:2])).notes[::-1]
    assert two.startswith("20 timings of 2 sites hardly determine 7 numbers: ")
    assert judged.startswith("no site is held out")
    assert fitted(tmp_path, timings(KNOWN)).notes == ()


def test_timings_in_a_cache_and_repeats_are_left_out(tmp_path):
    frame = timings(KNOWN)
    cached = (pl.col("B") == 1) & (pl.col("D") <= 2048) & (pl.col("F") <= 2048)
    times = pl.when(cached).then(pl.col("seconds") / 50).otherwise(pl.col("seconds"))
    repeated = pl.concat([frame.with_columns(seconds=times), frame.filter(pl.col("B") == 256)])
    result = fitted(tmp_path, repeated)
    assert result.notes == (
        "25 repeated timings: their median is taken",
        "4 timings left out: faster than memory, they fit a cache",
    )
    assert numbers_of(result)["memory"] == pytest.approx(KNOWN["memory"], rel=5e-3)


def test_the_best_of_several_starts_counts():
    """Of ln(estimate) = ((x^2 - 4) / 4)^2 + (2 - x) / 10 the minimum at x = 2 is the lower one."""

    def estimate_s(numbers):
        x = math.log(numbers["a"])
        return np.exp(np.full(50, ((x * x - 4) / 4) ** 2 + (2 - x) / 10))

    starts = [{"a": math.exp(-2)}, {"a": math.exp(2)}]
    for order in (starts, starts[::-1]):
        problem = Problem(np.ones(50), estimate_s, {"a": Fraction(1)}, order)
        found, _ = problem.solve(["a"])
        assert math.log(found["a"]) == pytest.approx(2, abs=0.1)


def test_a_piece_with_few_timings_has_the_band_of_all():
    few, many = MIN_BAND_TIMINGS - 1, MIN_BAND_TIMINGS
    frame = pl.DataFrame(
        {
            "estimate_bound": ["memory"] * few + ["compute"] * many,
            "ratio": [2.0] * few + [1.0] * many,
        }
    )
    assert bands(frame) == {"compute": (1.0, 1.0), "memory": (1.0, 2.0)}


def test_a_collective_by_hand_and_found_again(tmp_path):
    known = CollectiveNumbers(
        overhead_s=6e-6, low_latency=0.2, bulk_overhead_s=2e-5, bulk=0.7, hop_s=1.2e-6
    )
    per_s = 18 * 25e9  # NVLink of an h100-sxm
    rows = []
    for shards in (2, 4, 8):
        for power in range(9, 30):
            network = 2 * (shards - 1) / shards * 2**power / per_s
            seconds = min(6e-6 + network / 0.2, 26e-6 + network / 0.7)
            seconds += 1.2e-6 * 2 * (shards - 1)
            rows.append({"shards": shards, "bytes": 2**power, "seconds": seconds})
    path = tmp_path / "collectives.csv"
    frame = pl.DataFrame(rows).with_columns(
        chip=pl.lit("h100-sxm"), collective=pl.lit("all-reduce")
    )
    frame.write_csv(path)
    chosen = read_timings(path).of_system("h100-sxm", "mine")
    of = "h100-sxm", chip_entries()["h100-sxm"], "all-reduce"
    nominal, _ = with_nominal_times(chosen, *of)
    assert with_estimate_errors(nominal, known)["error"].to_list() == pytest.approx(
        [0] * nominal.height, abs=1e-12
    )
    found = COLLECTIVE_FIT.fit(nominal)
    assert found.at_prior == ()
    others = pl.concat([frame, frame.head(3).with_columns(shards=pl.Series([1, 16, 9000]))])
    others.write_csv(path)
    chosen = read_timings(path).of_system("h100-sxm", "mine")
    same, noted = with_nominal_times(chosen, *of)
    assert same.equals(nominal)
    assert noted.notes == ("3 timings left out: not on 2 to 8 chips, as the network joins",)
    assert {name: float(number) for name, number in vars(found.numbers).items()} == pytest.approx(
        vars(known), rel=5e-3
    )


def test_without_scipy_one_message(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(
        RooflinesError, match=r"needs scipy.*\n.*`make setup`.*`pip install 'scipy'`"
    ):
        fitted(tmp_path, timings(KNOWN))


def test_a_file_is_read_as_it_was_written(tmp_path):
    text = CALIBRATIONS_FILE.read_text(encoding="utf-8")
    assert text.endswith(calibrations_yaml(shipped_calibrations()))
    path = tmp_path / "again.yaml"
    path.write_text(calibrations_yaml(shipped_calibrations()), encoding="utf-8")
    assert read_calibrations(path) == shipped_calibrations()


def test_shipped_calibrations_are_of_chips_and_dtypes_that_exist():
    shipped = shipped_calibrations()
    chips = {key.partition("/")[0] for key in shipped.calibrations}
    assert chips <= set(chip_entries())
    for key, entries in shipped.calibrations.items():
        peaks = chip_entries()[key.partition("/")[0]].units["matrix"]
        assert set(entries) <= set(peaks)
        for entry in entries.values():
            assert entry.held_out is not None
            assert entry.held_out.median < 0.1
            own = key.endswith("/torch") and entry.source.startswith("rooflines measured measure")
            assert own or "Apache-2.0, (c) NVIDIA" in entry.source
            assert all(low < 1 < high for low, high in entry.bands.values())
    for key, collectives in shipped.collectives.items():
        for name, collective in collectives.items():
            assert collective.held_out is not None
            assert collective.held_out.median < 0.25
            assert "Apache-2.0, (c) NVIDIA" in collective.source
            assert (collective.elsewhere is not None) == (name == "all-reduce")
            if key.endswith("/nccl"):
                assert collective.numbers.low_latency < collective.numbers.bulk < 1


def test_fp16_takes_the_numbers_of_bf16():
    shipped = shipped_calibrations()
    of = ("h100-sxm", ["vllm"])
    assert shipped.matmul(*of, "fp16") == shipped.matmul(*of, "bf16") != None  # noqa: E711
    assert shipped.subset([FitKey.parse("h100-sxm/vllm")], ["fp16"]).matmul(*of, "fp16") is not None
    assert shipped.matmul(*of, "int8") is None


@pytest.mark.parametrize(("contents", "software"), GIVEN["contents"])
def test_timings_are_joined_with_the_fit_of_their_contents(contents, software):
    assert shipped_calibrations().variant("b200", "trtllm", "fp8", contents) == software


DATA = os.environ.get("ROOFLINES_PUBLIC_DATA")


def test_the_shipped_file_follows_from_the_timings():
    """The fits of torch from the project's own; with the public ones all."""
    again = refitted([*(public_tables() if DATA else ()), *OWN], "2026-01-01")[0]
    for kind in ("calibrations", "attention", "experts", "collectives"):
        found, stored = getattr(again, kind), getattr(shipped_calibrations(), kind)
        names = {key: list(fits) for key, fits in stored.items() if DATA or key.endswith("/torch")}
        assert {key: list(fits) for key, fits in found.items()} == names
        for key, fits in found.items():
            for name, fit in fits.items():
                held = stored[key][name]
                about, known = ((of.held, of.contents, of.source) for of in (fit, held))
                assert about == known
                numbers, floats = (
                    {name: float(value) for name, value in vars(of.numbers).items()}
                    for of in (fit, held)
                )
                assert numbers == pytest.approx(floats, rel=1e-3)


def attention_by_hand(rows):
    """Attention in bf16 on an H100 at 40 % of its peak and 80 % of its memory rate [s]."""
    entry = chip_entries()["h100-sxm"]
    peak, rate = entry.units["matrix"]["bf16"].exact, entry.memory["hbm"].exact.bytes_per_s
    for B, S, N, phase in rows:  # noqa: N806, letters of the docs
        T = 1 if phase == "decode" else S  # noqa: N806, the same
        flops = 4 * N * 128 * B * sum(range(S - T + 1, S + 1))
        moved = B * 2 * (2 * 8 * 128 * S + 2 * N * 128 * T)
        seconds = 2e-5 + max(flops / float(peak) / 0.4, moved / float(rate) / 0.8)
        sizes = {"B": B, "S": S, "T": T, "N": N, "K": 8, "H": 128}
        dtypes = {"compute": "bf16", "cache": "bf16"}
        yield {"chip": "h100-sxm", "phase": phase, **dtypes, **sizes, "seconds": seconds}


def test_attention_has_a_fit_of_each_phase(tmp_path):
    cases = [
        (B, S, N, phase)
        for phase in ("decode", "prefill")
        for B in (1, 8, 64)
        for S in (64, 512, 2048, 8192)
        for N in (16, 24, 32, 40, 48, 64)
    ]
    path = tmp_path / "attention.csv"
    pl.DataFrame(attention_by_hand(cases)).write_csv(path)
    timings = read_timings(path)
    request = FitRequest(timings, "h100-sxm", chip_entries()["h100-sxm"], "by hand", "2026-01-01")
    decode, prefill = calibrate(request)
    assert isinstance(decode.entry, FittedAttention)
    assert isinstance(prefill.entry, FittedAttention)
    assert [decode.name, prefill.name] == ["decode-bf16", "prefill-bf16-bf16"]
    assert decode.entry.memory == pytest.approx(0.8, rel=0.02)
    assert prefill.entry.math == pytest.approx(0.4, rel=0.02)
    assert prefill.entry.overhead_s == pytest.approx(2e-5, rel=0.05)
    assert prefill.entry.held_out is not None
    assert prefill.entry.held_out.median < 0.01
    assert not decode.entry.bulk
    assert not prefill.entry.bulk
    own = {"h100-sxm/mine": {each.name: each.entry for each in (decode, prefill)}}
    fits = shipped_calibrations().model_copy(update={"attention": own})
    catalogues = replace(shipped(), fits=fits)
    named = replace(timings, frame=timings.frame.with_columns(software=pl.lit("mine")))
    rows = join_timings(named, catalogues).frame
    assert rows["t_estimate_s"].to_list() == pytest.approx(rows["seconds"].to_list(), rel=0.1)
    assert set(rows["bound"]) == {"compute", "memory"}
    assert set(rows["calibration"]) == {"h100-sxm/mine"}
    assert rows["ratio_lower"].gt(1).all()
    far = named.frame.filter(phase="prefill", S=8192).with_columns(S=2**18, T=2**18, seconds=3e3)
    wider = join_timings(replace(named, frame=far), catalogues).frame
    low, high = (wider[f"t_estimate_{end}_s"] / wider["t_estimate_s"] for end in ("p10", "p90"))
    assert prefill.entry.outside == pytest.approx((low[0], high[0]))


def test_a_fit_of_attention_is_of_at_most_32_query_heads_a_kv_head(tmp_path):
    path, sizes = tmp_path / "attention.csv", product((1, 8, 64), (2048, 8192))
    cases = [(B, S, 8 * heads, "decode") for B, S in sizes for heads in (4, 31, 32, 33, 48)]
    pl.DataFrame(attention_by_hand(cases)).write_csv(path)
    of_chip = "h100-sxm", chip_entries()["h100-sxm"], "decode-bf16"
    chosen, noted = with_nominal_times(read_timings(path), *of_chip)
    assert set(chosen["N"]) == {8 * 4, 8 * 31, 8 * 32}
    assert "12 timings left out: more than 32 query heads share a KV head" in noted.notes


def test_attention_that_one_memory_rate_misses_has_two_and_a_time_for_each_head(tmp_path):
    """Small caches at 20 % of the memory rate, large ones at 95 % after 90 us; 400 ns a head."""
    rows = []
    for N, K in product((8, 16, 24, 32, 48, 64), (1, 2, 4, 8)):  # noqa: N806, letters of the docs
        for B, S in product((1, 8, 64, 512), (128, 512, 2048, 8192, 32768)):  # noqa: N806, the same
            moved = B * 2 * (2 * K * 128 * S + 2 * N * 128)
            memory_s = moved / float(chip_entries()["h100-sxm"].memory["hbm"].exact.bytes_per_s)
            bulk_s = min(memory_s / 0.2, 9e-5 + memory_s / 0.95)
            seconds = 1e-5 + max(bulk_s, 4e-7 * B * K + 0.3 * memory_s)
            sizes = {"B": B, "S": S, "T": 1, "N": N, "K": K, "H": 128}
            told = {"chip": "h100-sxm", "phase": "decode", "compute": "bf16", "cache": "bf16"}
            rows.append({**told, **sizes, "seconds": seconds})
    path = tmp_path / "attention.csv"
    pl.DataFrame(rows).write_csv(path)
    chosen = read_timings(path).where("attention", "decode-bf16")
    entry = chip_entries()["h100-sxm"]
    (found,) = calibrate(FitRequest(chosen, "h100-sxm", entry, "by hand", "2026-01-01"))
    assert isinstance(found.entry, FittedAttention)
    numbers = found.entry
    assert numbers.memory == pytest.approx(0.2, rel=0.05)
    assert numbers.bulk == pytest.approx(0.95, rel=0.05)
    assert numbers.bulk_overhead_s == pytest.approx(9e-5, rel=0.1)
    assert numbers.mixed_head_s == pytest.approx(4e-7, rel=0.1)
    assert found.entry.held_out is not None
    assert found.entry.held_out.median < 0.01
    frame, _ = with_nominal_times(chosen, "h100-sxm", entry, "decode-bf16")
    without = replace(ATTENTION_FIT, extensions=()).fit(frame).numbers
    assert median_error(frame, without) > POOR


@pytest.mark.parametrize(
    ("asked", "shared", "name"),
    [
        (("prefill", "bf16", "fp8"), True, "prefill-bf16-fp8"),
        (("decode", "bf16", "fp8"), True, "decode-fp8"),
        (("decode", "bf16", "fp8"), False, "decode-fp8-mha"),
    ],
)
def test_a_fit_of_attention_has_the_dtypes_that_decide_in_its_name(asked, shared, name):
    assert attention_name(*asked, shared=shared) == name


def test_a_band_beyond_the_timings_is_no_narrower_than_within():
    """By side and bound the wider of both; without one of sizes beyond, that within."""
    rows = {"D": [64, 65, 64, 1], "estimate_bound": ["memory", "memory", "compute", "compute"]}
    frame = pl.DataFrame({**rows, "t_estimate_s": [1.0, 10.0, 100.0, 1000.0]})
    within = {"memory": (0.9, 1.3), "compute": (0.7, 1.1)}

    def ends(outside):
        found = with_band(frame, within, FitRange({"D": (8, 64), "window": (1, 2)}, outside))
        return [found[f"t_estimate_p{end}_s"].to_list() for end in (10, 90)]

    assert ends((0.8, 1.2)) == [[0.9, 8.0, 70.0, 700.0], [1.3, 13.0, pytest.approx(110), 1200.0]]
    assert ends(None) == [[0.9, 9.0, 70.0, 700.0], [1.3, 13.0, pytest.approx(110), 1100.0]]


def experts_by_hand(shapes, per_expert=2e-7):
    """Experts in fp8 on an H100 at a quarter of its peak and 80 % of its memory rate [s]."""
    entry = chip_entries()["h100-sxm"]
    peak, rate = entry.units["matrix"]["fp8"].exact, entry.memory["hbm"].exact.bytes_per_s
    for (D, Fe, k, E), tokens, (tp, ep) in product(  # noqa: N806, letters of the docs
        shapes, (1, 8, 64, 512, 4096), ((1, 1), (4, 1), (1, 8))
    ):
        weights = 3 * D * Fe / tp
        activated = E / ep * (1 - (1 - k / E) ** tokens)
        moved = weights * activated + 2 * 2 * tokens * k / ep * D
        seconds = 3e-5 + per_expert * activated + 20 * 2 * tokens * D / float(rate)
        seconds += max(2 * tokens * k / ep * weights / float(peak) * 4, moved / float(rate) / 0.8)
        sizes = {"D": D, "Fe": Fe, "k": k, "E": E, "tp": tp, "ep": ep, "tokens": tokens}
        yield {**sizes, "seconds": seconds}


def test_routed_experts_have_a_fit_of_their_own(tmp_path):
    shapes = [(7168, 2048, 8, 256), (3072, 1536, 8, 256), (4096, 1536, 8, 128), (2048, 768, 8, 128)]
    path = tmp_path / "experts.csv"
    told = {"chip": "h100-sxm", "dtype": "fp8_block", "kernel": "one"}
    pl.DataFrame([{**told, **row} for row in experts_by_hand(shapes)]).write_csv(path)
    timings = read_timings(path, {"software": "mine"})
    assert set(timings.frame["contents"]) == {"block scales"}
    request = FitRequest(timings, "h100-sxm", chip_entries()["h100-sxm"], "by hand", "2026-01-01")
    (found,) = calibrate(request)
    assert isinstance(found.entry, FittedExperts)
    assert found.name == "fp8"
    assert found.entry.math == pytest.approx(0.25, rel=0.1)
    assert found.entry.memory == pytest.approx(0.8, rel=0.05)
    assert found.entry.expert_s == pytest.approx(2e-7, rel=0.2)
    assert found.entry.token_passes > 10
    assert found.entry.held_out is not None
    assert found.entry.held_out.n == timings.frame.height  # each shape is left out once
    assert found.entry.held_out.median < 0.05
    fits = shipped_calibrations().model_copy(
        update={"experts": {"h100-sxm/mine": {"fp8": found.entry}}}
    )
    rows = join_timings(timings, replace(shipped(), fits=fits)).frame
    assert with_errors(rows).select("error").median().item() < 0.05
    assert set(rows["dtypes"]) == {"fp8"}


def test_a_band_of_experts_is_that_of_shapes_that_are_left_out(tmp_path):
    """Two of four shapes take 1.4 and 0.8 times as long: a fit to the others is as far off."""
    factors = {7168: 1.0, 3072: 1.4, 4096: 1.0, 2048: 0.8}
    shapes = [(7168, 2048, 8, 256), (3072, 1536, 8, 256), (4096, 1536, 8, 128), (2048, 768, 8, 128)]
    told = {"chip": "h100-sxm", "dtype": "fp8_block", "kernel": "one"}
    rows = [
        {**told, **row, "seconds": row["seconds"] * factors[row["D"]]}
        for row in experts_by_hand(shapes)
    ]
    path = tmp_path / "experts.csv"
    pl.DataFrame(rows).write_csv(path)
    timings = read_timings(path, {"software": "mine"})
    request = FitRequest(timings, "h100-sxm", chip_entries()["h100-sxm"], "by hand", "2026-01-01")
    (found,) = calibrate(request)
    for low, high in found.entry.bands.values():
        assert low == pytest.approx(0.65, abs=0.05)
        assert high == pytest.approx(1.52, abs=0.05)
    assert found.entry.held_out is not None
    assert found.entry.held_out.median > 3 * found.entry.fitted.median


def test_experts_are_without_a_gate_where_a_kernel_says_so(tmp_path):
    path = tmp_path / "moe_perf.csv"
    sizes = {"num_tokens": 8, "hidden_size": 2688, "inter_size": 1856, "topk": 6}
    split = {"num_experts": 128, "moe_tp_size": 1, "moe_ep_size": 1, "latency": 0.1}
    rows = [
        {"moe_dtype": "bfloat16", "kernel_source": kernel, **sizes, **split, "hidden_size": width}
        for kernel, width in (("cutlass", 4096), ("cutlass", 2688), ("nongated", 2688))
    ]
    pl.DataFrame(rows).write_csv(path)
    read = read_timings(path, {"chip": "h100-sxm", "software": "trtllm"}).frame
    assert read.select("D", "matrices").rows() == [(4096, 3), (2688, 2), (2688, 2)]
    assert read["seconds"].to_list() == pytest.approx([1e-4] * 3)
