"""Random steps of training, of every kind of model and of plan, against exact arithmetic."""

import random
from itertools import product

import pytest
from comparison import wrong_keys, wrong_rows, wrong_skips
from failing import check_each, check_one
from oracle import training_table
from oracle.quantities import sizes_of
from oracle.training_limits import wrong_threshold
from predicates import check_table
from random_sweeps import BITS
from random_training import CATALOGUE, configs, one_by_one
from serving_tables import KINDS, NAMED, sweep_of

from rooflines.evaluation.row_frames import KernelTable, StepTable
from rooflines.solvers.threshold_frames import sweep_thresholds

SIZES = ("B", "S")
ROW = (*training_table.KEYS, *SIZES)


def cases_of(config):
    """The sweep of a config as it is written, and its cases."""
    (form,) = config["model-sweeps"].values()
    fits = config.get("fits")
    return form, [*training_table.cases(form, CATALOGUE, config["chips"], BITS, fits)]


def check_rows(config):
    """Check rows, kernels, and what is skipped."""
    form, known = cases_of(config)
    rows = [*training_table.training_rows(form, known)]
    truth = [{**row.keys, **row.values} for row in rows if row.values is not None]
    sweep = sweep_of(config)
    table = StepTable(sweep).frame().collect()
    assert wrong_rows(table, truth, ROW) == []
    assert table.select(ROW).rows() == [tuple(row[key] for key in ROW) for row in truth]
    check_table(table, sweep.columns)
    skipped = [(row.keys, row.reasons) for row in rows if row.values is None]
    assert wrong_skips(sweep.skipped, skipped, KINDS, NAMED) == []
    kernels = KernelTable(sweep).frame().collect()
    parts = [*training_table.layer_rows(form, known)]
    assert wrong_rows(kernels, parts, (*ROW, "group")) == []
    check_table(kernels, sweep.layer_columns)


def test_every_row_and_kernel_of_every_kind_of_training_is_the_exact_one():
    check_each(configs(), check_rows)


@pytest.mark.parametrize("network", ["switch", "two"])
def test_plans_of_a_sweep_share_nothing_in_which_they_differ(network):
    check_one(one_by_one(network), check_rows)


AXES = ("B", "S", "micro_batch", "tp", "dp", "chips")
SOLVED = ("model", "chip", "memory", "network", "dtypes", "split")


def thresholds_of(axis, keys, batches, contexts):
    """The keys of the thresholds of a case; what is solved for and has no say in it is null."""
    sizes = {
        "B": product([None], contexts),
        "S": product(batches, [None]),
        **dict.fromkeys(("tp", "chips"), product([None], contexts)),
    }
    for batch, context in sizes.get(axis, product(batches, contexts)):
        yield {**keys, "axis": axis, "B": batch, "S": context}


def check_thresholds(config):
    """Check the keys of all thresholds, and one threshold along every axis."""
    form, known = cases_of(config)
    form["thresholds"] = [*AXES]
    cases, asked = {}, []
    for keys, case, why in known:
        if why:
            continue
        together = keys["dp"] * keys["micro_batch"]
        batches = [size for size in sizes_of(form["grid"]["B"]) if size % together == 0]
        contexts = [size for size in sizes_of(form["grid"]["S"]) if size % keys["cp"] == 0]
        cases[tuple(keys[key] for key in SOLVED)] = case
        for axis in AXES if batches and contexts else ():
            asked += thresholds_of(axis, keys, batches, contexts)
    table = sweep_thresholds(sweep_of(config))
    assert table.height <= sweep_of(config).max_thresholds()
    assert wrong_keys(table, asked, (*SOLVED, "axis", *SIZES)) == []
    for _, rows in table.group_by("axis", maintain_order=True):
        row = random.choice(rows.to_dicts())
        case = cases[tuple(row[key] for key in SOLVED)]
        assert wrong_threshold(case, row) == [], row


def test_thresholds_of_every_kind_of_training_hold_on_both_sides():
    check_each(configs(), check_thresholds)
