"""Random steps of training, of every kind of model and of plan, against exact arithmetic."""

from comparison import wrong_rows, wrong_skips
from oracle import training_table
from predicates import check_table
from random_sweeps import BITS
from random_training import CATALOGUE, configs
from serving_tables import KINDS, sweep_of

from rooflines.sweep.rows import KernelTable, StepTable

SIZES = ("B", "S")
ROW = (*training_table.KEYS, *SIZES)
BESIDE = ("t_estimate_p10_s", "t_estimate_p90_s", "usd")
"""What is not compared: no calibration of these has bands."""


def test_every_row_and_kernel_of_every_kind_of_training_is_the_exact_one():
    for config in configs():
        (form,) = config["model-sweeps"].values()
        known = [*training_table.cases(form, CATALOGUE, config["chips"], BITS)]
        rows = [*training_table.training_rows(form, known)]
        truth = [{**row.keys, **row.values} for row in rows if row.values is not None]
        sweep = sweep_of(config)
        table = StepTable(sweep).frame().collect()
        assert wrong_rows(table, truth, ROW, beside=BESIDE) == []
        assert table.select(ROW).rows() == [tuple(row[key] for key in ROW) for row in truth]
        check_table(table, sweep.columns)
        skipped = [(row.keys, row.reasons) for row in rows if row.values is None]
        assert wrong_skips(sweep.skipped, skipped, KINDS) == []
        kernels = KernelTable(sweep).frame().collect()
        parts = [*training_table.layer_rows(form, known)]
        assert wrong_rows(kernels, parts, (*ROW, "group")) == []
        check_table(kernels, sweep.layer_columns)
