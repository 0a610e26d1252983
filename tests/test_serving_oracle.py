"""The oracle of whole models agrees with plain counting, on random sweeps."""

from fractions import Fraction

import model_oracle
import random_serving
import serving_limits as limits
import serving_oracle
from hypothesis import given
from hypothesis import strategies as st
from random_sweeps import BITS, check
from serving_kernels import Step, entries_held, entries_moved, pairs, touched
from serving_values import bound_of, model_values, times


@check(200)
@given(context=st.integers(1, 30), new=st.integers(1, 30), window=st.none() | st.integers(1, 40))
def test_pairs_and_entries_are_those_counted_one_by_one(context, new, window):
    new = min(new, context)
    positions = range(context - new + 1, context + 1)
    assert pairs(context, new, window) == sum(model_oracle.attended(p, window) for p in positions)
    assert entries_moved(context, new, window) == model_oracle.moved(context, new, window)
    assert entries_held(context, window) == model_oracle.kept(context, window)


@check(200)
@given(chosen=st.integers(1, 8), tokens=st.fractions(0, 50, max_denominator=16))
def test_touched_experts_of_a_fraction_of_tokens_have_sixty_digits(chosen, tokens):
    untouched = 1 - touched(8, chosen, tokens, "uniform") / 8
    power = Fraction(8 - chosen, 8) ** tokens.numerator
    assert abs(untouched**tokens.denominator - power) <= power / 10**55


def supported(config):
    """The cases of a random config that its chips support."""
    sweep = config["model-sweeps"]["random"]
    found = serving_oracle.cases(sweep, {}, config["chips"], BITS)
    return [(keys, case) for keys, case, _ in found if case is not None]


@check(60)
@given(config=random_serving.configs(), context=st.integers(8, 400))
def test_thresholds_of_batches_are_those_found_by_trying(config, context):
    for _, case in supported(config)[:2]:
        least, most = case.dp, case.dp + 60
        steps = {b: model_values(case, Step(b, 1, context)) for b in range(least, most)}
        critical = limits.critical_batch(case, context)
        bound = {b: row["bound"] == "compute" for b, row in steps.items()}
        tried = limits.first_by_trying(bound.__getitem__, least, most - 1)
        assert critical == tried or (critical or most) >= most
        for time in ("t_lower_s", "t_ops_s"):
            target = steps[least + 20][time]
            within = limits.largest_batch_within(case, context, target, time)
            assert within is not None
            assert within >= least + 20
            assert within >= most or steps[within][time] == target
        assert limits.largest_batch_that_fits(case, context) == steps[least]["max_B"]


@check(60)
@given(config=random_serving.configs(), new=st.integers(1, 6))
def test_context_ceilings_are_those_found_by_trying(config, new):
    for keys, case in supported(config)[:2]:
        if keys["phase"] == "prefill":
            continue
        most = limits.turn(case) + new + 60
        good = [
            context
            for context in range(new, most + 1)
            if bound_of(times(case, Step(limits.FAR, new, context))) == "compute"
        ]
        found = limits.context_ceiling(case, new)
        if found is None or (isinstance(found, int) and found <= most):
            assert found == max(good, default=None)
        elif not (case.entry.get("window") or {}).get("chunked"):  # else a sawtooth
            assert not good or good[-1] == most


@check(100)
@given(config=random_serving.configs())
def test_bounds_of_random_rows_are_in_order(config):
    sweep = config["model-sweeps"]["random"]
    rows = list(serving_oracle.model_rows(sweep, {}, config["chips"], BITS))
    layers = list(serving_oracle.layer_rows(sweep, {}, config["chips"], BITS))
    for row in rows:
        assert (row.values is None) == bool(row.reasons)
        if row.values is None:
            continue
        found = row.values
        assert found["t_lower_s"] <= found["t_ops_s"] <= found["t_upper_s"]
        assert 0 < found["mfu"] <= 1
        assert 0 < found["mbu"] <= 1
        mine = [each for each in layers if row.keys.items() <= each.items()]
        for name in ("flops", "memory_bytes", "network_bytes", "t_ops_s"):
            assert sum(each["count"] * each[name] for each in mine) == found[name]


@check(30)
@given(config=random_serving.request_configs())
def test_tokens_of_random_requests_take_as_long_as_steps_between_first_and_last(config):
    sweep = config["model-sweeps"]["random"]
    rows = list(serving_oracle.request_rows(sweep, {}, config["chips"], BITS))
    for keys, case in supported(config):
        for row in rows:
            if row.values is None or not keys.items() <= {**row.keys, "phase": "decode"}.items():
                continue
            batch, before, new = (row.keys[name] for name in ("B", "input", "output"))
            first, last = (times(case, Step(batch, 1, before + n)) for n in (1, new))
            assert first["t_lower_s"] <= row.values["tpot_s"] <= last["t_lower_s"]
            assert first["t_ops_s"] <= row.values["tpot_ops_s"] <= last["t_ops_s"]
            assert row.values["ttft_s"] <= row.values["ttft_ops_s"]
