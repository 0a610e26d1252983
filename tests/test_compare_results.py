"""benchmarks/compare_results.py names every difference of two results folders."""

from pathlib import Path

import polars as pl
import pytest

from benchmarks.compare_results import differences, main, read_names

TABLE = pl.DataFrame(
    {"chip": ["a", "a", "b"], "B": [1, 2, 3], "t_math_s": [1.0, None, 0.1 + 0.2]},
    schema={"chip": pl.Categorical, "B": pl.Int64, "t_math_s": pl.Float64},
)
SKIPPED = "sweep,reason\ns,none\n"


@pytest.fixture
def folders(tmp_path):
    made = [tmp_path / "old", tmp_path / "new"]
    for folder in made:
        (folder / "tables" / "s").mkdir(parents=True)
        TABLE.write_parquet(folder / "tables" / "s" / "part-00000.parquet")
        TABLE.write_parquet(folder / "thresholds.parquet")
        (folder / "skipped.csv").write_text(SKIPPED, encoding="utf-8")
    return [str(folder) for folder in made]


def test_equal_folders_are_equal(folders, capsys):
    assert main(folders) == 0
    assert capsys.readouterr().out == "3 files with 20 values are equal\n"


T = pl.col("t_math_s")


@pytest.mark.parametrize(
    ("new", "line"),
    [
        (TABLE.with_columns(pl.col("B") + 1), "B differs in 3 of 3 rows: row 0: 1, now 2; row 1: "),
        (
            TABLE.with_columns(T.clip(upper_bound=0.3)),
            "t_math_s differs in 2 of 3 rows: row 0: 1.0, now 0.3; ",
        ),
        (TABLE.with_columns(pl.col("B").cast(pl.Int32)), "B is Int64, now Int32"),
        (TABLE.with_columns(chip=pl.lit("c").cast(pl.Categorical)), "chip differs in 3 of 3 rows"),
        (TABLE.with_columns(more=pl.lit(1)), "columns added: more"),
        (TABLE.drop("B"), "columns removed: B"),
        (TABLE.head(2), "3 rows, now 2"),
        (TABLE.select("B", "chip", "t_math_s"), "order of columns differs"),
    ],
)
def test_a_difference_is_named(new, line):
    (found,) = differences(TABLE, new)
    assert found.startswith(line)


def test_zeros_of_both_signs_differ():
    zero, negative = (pl.DataFrame({"x": [value]}) for value in (0.0, -0.0))
    assert list(differences(zero, zero)) == []
    assert len(list(differences(zero, negative))) == 1


def test_files_are_compared_by_name(folders, tmp_path, capsys):
    (tmp_path / "new" / "thresholds.parquet").rename(tmp_path / "new" / "model-thresholds.parquet")
    (tmp_path / "new" / "skipped.csv").write_text("sweep,reason\ns,other\n", encoding="utf-8")
    assert main(folders) == 1
    assert capsys.readouterr().out.splitlines() == [
        "thresholds.parquet: missing",
        "model-thresholds.parquet: added",
        "skipped.csv: reason differs in 1 of 1 rows: row 0: 'none', now 'other'",
    ]


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="2"):
        main([str(tmp_path), str(tmp_path)])


def test_a_renamed_column_is_compared_under_its_new_name(folders, tmp_path, capsys):
    old, new = map(Path, folders)
    for table in (new / "tables" / "s" / "part-00000.parquet", new / "thresholds.parquet"):
        TABLE.rename({"t_math_s": "t_compute_s"}).write_parquet(table)
    assert main(folders) == 1
    assert "columns removed: t_math_s" in capsys.readouterr().out
    names = tmp_path / "names.txt"
    names.write_text("t_math_s t_compute_s  # one word\n", encoding="utf-8")
    assert main([*folders, "--names", str(names)]) == 0
    assert "20 values are equal" in capsys.readouterr().out
    other = TABLE.rename({"t_math_s": "t_compute_s"}).with_columns(t_compute_s=pl.lit(2.0))
    other.write_parquet(new / "thresholds.parquet")
    assert main([*folders, "--names", str(names)]) == 1
    assert "t_compute_s differs in 3 of 3 rows" in capsys.readouterr().out
    assert old.exists()


def test_a_name_that_no_table_has_is_a_difference(folders, tmp_path, capsys):
    names = tmp_path / "names.txt"
    names.write_text("t_maths_s t_compute_s\n", encoding="utf-8")
    assert main([*folders, "--names", str(names)]) == 1
    assert "t_maths_s: no table of" in capsys.readouterr().out


@pytest.mark.parametrize("line", ["t_math_s", "a b c", "a b\na c", "a c\nb c"])
def test_a_table_of_names_has_two_words_a_line_and_each_once(line, tmp_path):
    path = tmp_path / "names.txt"
    path.write_text(line, encoding="utf-8")
    with pytest.raises(ValueError, match=r"line \d: "):
        read_names(path)
