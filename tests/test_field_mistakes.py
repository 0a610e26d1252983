"""Known mistakes of other roofline tools: the outputs of the workflow do not have them."""

import pytest
from written import Written, run_cases

H100_FLOPS_PER_S = 9.89e14
H100_BYTES_PER_S = 3.35e12


@pytest.fixture(scope="session", name="files")
def _files(once):
    return Written(once("worked-values", run_cases) / "results")


def test_memory_time_counts_bytes_not_elements(files):
    row = files.row("h100", dtypes="bf16", B=256, D=8192)
    elements = 2 * 256 * 8192 + 8192 * 8192
    assert row["t_memory_s"] == pytest.approx(2 * elements / H100_BYTES_PER_S, rel=1e-12)
    assert elements / H100_BYTES_PER_S < row["t_math_s"] < row["t_memory_s"]
    assert row["bound"] == "memory"


def test_a_gigabyte_is_decimal(files):
    """The bandwidth from bytes and times is 3.35e12 bytes/s, not 3350 * 2^30."""
    table = files.table("h100")
    implied = (table["memory_bytes"] / table["t_memory_s"]).to_list()
    assert implied == pytest.approx([H100_BYTES_PER_S] * table.height, rel=1e-12)


def test_a_multiply_and_an_add_are_two_flops(files):
    row = files.row("h100", dtypes="bf16", B=128, D=8192)
    assert row["flops"] == 2 * 128 * 8192 * 8192
    assert row["t_math_s"] == pytest.approx(2 * 128 * 8192 * 8192 / H100_FLOPS_PER_S, rel=1e-12)


def test_activations_are_summed_not_their_maximum_taken(files):
    row = files.row("h100", dtypes="bf16", B=65536, D=1024)
    everything = 2 * (65536 * 1024 + 1024 * 1024 + 65536 * 1024)
    assert (row["memory_bytes"], row["footprint_bytes"]) == (everything, everything)


@pytest.mark.parametrize(
    ("dtypes", "compute"), [("nvfp4", "nvfp4"), ("w4a4", "int4"), ("mxfp4", "mxfp4")]
)
def test_no_rate_is_invented_for_a_dtype_that_the_chip_lacks(files, dtypes, compute):
    assert files.table("no-such-rate").filter(dtypes=dtypes).height == 0
    skipped = files.skipped().filter(sweep="no-such-rate", chip="h100-sxm", dtypes=dtypes)
    assert skipped["rows"].to_list() == [2]
    assert compute in skipped["reason"].item()
    assert files.thresholds().filter(sweep="no-such-rate", dtypes=dtypes).height == 0


def test_what_the_chip_can_do_is_not_skipped(files):
    assert files.table("no-such-rate")["dtypes"].to_list() == ["bf16", "bf16"]
    assert set(files.skipped()["dtypes"]) == {"nvfp4", "w4a4", "mxfp4"}


def test_weights_are_read_once_for_the_whole_batch(files):
    table = files.table("h100").filter(dtypes="bf16", D=8192).sort("B")
    assert table["memory_intensity"].is_sorted()
    assert table["memory_intensity"].to_list()[-1] > 3600
    assert table["bound"].to_list() == ["memory", "memory", "compute", "compute"]


def test_rule_of_thumb_takes_the_bytes_of_the_weights(files):
    assert (
        f"{files.threshold('h100', dtypes='w8a16', axis='B', D=8192)['critical_rule']:.0f}" == "148"
    )
    assert (
        f"{files.threshold('h100', dtypes='bf16', axis='B', D=8192)['critical_rule']:.0f}" == "295"
    )


def test_three_tensors_have_three_widths(files):
    """With int8 weights and B = 4096, x and out have two bytes per element: 201,326,592 bytes."""
    row = files.row("h100", dtypes="w8a16", B=4096, D=8192)
    assert row["memory_bytes"] == 2 * 4096 * 8192 + 1 * 8192 * 8192 + 2 * 4096 * 8192 == 201_326_592


def test_the_reference_case_is_memory_bound_up_to_318(files):
    """17,179,869,184 FLOP, 138,412,032 bytes, 17.371 us, 41.317 us; compute-bound from B = 319."""
    row = files.row("h100", dtypes="bf16", B=128, D=8192)
    assert (row["flops"], row["memory_bytes"]) == (17_179_869_184, 138_412_032)
    assert (f"{row['t_math_s'] * 1e6:.3f}", f"{row['t_memory_s'] * 1e6:.3f}") == (
        "17.371",
        "41.317",
    )
    assert row["bound"] == "memory"
    threshold = files.threshold("h100", dtypes="bf16", axis="B", D=8192)
    assert f"{threshold['critical_exact']:.1f}" == "318.2"
    assert threshold["critical"] == 319
