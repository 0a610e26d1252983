"""The cache changes no number: damaged or foreign files, or a read-only folder, cost only time."""

import errno
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from processes import python

from rooflines.basics import cache
from rooflines.basics.errors import RooflinesError
from rooflines.basics.yaml_file import read_package_yaml, read_yaml
from rooflines.dictionary.columns import COLUMNS_FILE
from rooflines.fits import calibration_files
from rooflines.hardware import chip_catalogue, dtype_catalogue
from rooflines.hardware.entry_cache import cached_entries
from rooflines.hardware.entry_forms import Entry
from rooflines.models import library
from rooflines.models.hf import config_keys, quantization

CATALOGUES = {
    "chips": (chip_catalogue, chip_catalogue._catalogue.__wrapped__),  # noqa: SLF001
    "dtypes": (dtype_catalogue, dtype_catalogue.dtype_entries.__wrapped__),
    "models": (library, library.model_entries.__wrapped__),
    "calibrations": (calibration_files, calibration_files.shipped_calibrations.__wrapped__),
}
"""Modules, and functions that read their catalogues."""

QUESTIONS = (
    "explain h100 llama-3.1-70b B=64 S=8k --split tp=8 --calibration trtllm,nccl --json",
    "explain b200 mi355x 128x8192x28672 fp8 --csv",
)

SMALL = "a: [1, 2.5, text]\nb: null\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(folder))
    return folder


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A small file of plain data, as one of the package's."""
    monkeypatch.setattr(cache, "CONFIG_DIR", tmp_path)
    source = tmp_path / "small.yaml"
    source.write_text(SMALL)
    return source


def without(monkeypatch, read):
    with monkeypatch.context() as patched:
        patched.setenv(cache.FOLDER_VARIABLE, "")
        return read()


def forms(value):
    """A value with all its types, and with the fields that were set."""
    if isinstance(value, Entry):
        parts = {name: forms(getattr(value, name)) for name in type(value).model_fields}
        return type(value), parts, value.model_fields_set
    if isinstance(value, dict):
        return type(value), [(key, forms(part)) for key, part in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [forms(part) for part in value]
    return type(value), value


def refuse(*_):
    raise AssertionError


@pytest.mark.parametrize("name", CATALOGUES)
def test_a_catalogue_is_the_same_from_its_file_and_from_the_cache(name, folder, monkeypatch):
    module, read = CATALOGUES[name]
    expected = without(monkeypatch, read)
    read()
    (file,) = folder.iterdir()
    assert file.name.startswith(name)
    monkeypatch.setattr(module, "read_yaml", refuse)
    assert forms(read()) == forms(expected)


@pytest.mark.parametrize("path", [COLUMNS_FILE, config_keys.FILE, quantization.FILE])
def test_data_of_the_package_are_the_same_from_the_cache(path, folder):
    expected = read_yaml(path)
    read_package_yaml(path)
    assert len([*folder.iterdir()]) == 1
    assert forms(read_package_yaml(path)) == forms(expected)


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_are_the_same_with_and_without_the_cache(question, tmp_path):
    words = ("-m", "rooflines", *question.split())
    outputs = [
        python(*words, cwd=tmp_path, env={**os.environ, cache.FOLDER_VARIABLE: path}).stdout
        for path in ("", str(tmp_path / "cache"), str(tmp_path / "cache"))
    ]
    assert outputs[0]
    assert outputs[0] == outputs[1] == outputs[2]
    assert {file.name.partition("-")[0] for file in (tmp_path / "cache").iterdir()} > {"chips"}


def damaged(content):
    yield b""
    yield content[:-1]
    yield content[: cache.DIGEST_DIGITS]
    yield content.replace(b"2.5", b"2.6")
    yield content.replace(b'"a"', b'"\xff"')
    yield content[cache.DIGEST_DIGITS :]
    yield b"[" * 10**6


def test_a_damaged_file_is_made_again(folder, source):
    data = read_package_yaml(source)
    (file,) = folder.iterdir()
    content = file.read_bytes()
    for damage in damaged(content):
        file.write_bytes(damage)
        assert forms(read_package_yaml(source)) == forms(data)
        assert file.read_bytes() == content


def test_a_file_of_another_state_is_not_taken(folder, source):
    read_package_yaml(source)
    (old,) = folder.iterdir()
    source.write_text("a: 7\n")
    assert read_package_yaml(source) == {"a": 7}
    (new,) = {*folder.iterdir()} - {old}
    old.replace(new)
    assert read_package_yaml(source) == {"a": 7}


@pytest.mark.parametrize(
    "put", [Path.mkdir, os.mkfifo, lambda file: file.symlink_to("/dev/zero"), None]
)
def test_another_thing_in_place_of_a_file_is_not_read(put, folder, source):
    data = read_package_yaml(source)
    (file,) = folder.iterdir()
    if put is None:
        file.chmod(0o666)  # anybody may have written it
        content = file.read_bytes()
        digest = content[: cache.DIGEST_DIGITS]
        assert content != digest
    else:
        file.unlink()
        put(file)
    assert read_package_yaml(source) == data


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_folder_that_others_can_write_to_is_not_used(mode, folder, source):
    folder.mkdir()
    folder.chmod(mode)
    assert read_package_yaml(source) == read_yaml(source)
    assert [*folder.iterdir()] == []


def test_files_of_another_user_are_not_used(folder, source, monkeypatch):
    read_package_yaml(source)
    (file,) = folder.iterdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    monkeypatch.setattr("json.loads", refuse)
    file.write_bytes(b"")
    assert read_package_yaml(source) == read_yaml(source)
    assert file.read_bytes() == b""


def test_a_folder_that_cannot_be_made_costs_time_only(tmp_path, source, monkeypatch):
    (tmp_path / "file").write_text("")
    for place in ("file", "file/below", "x" * 300):
        monkeypatch.setenv(cache.FOLDER_VARIABLE, str(tmp_path / place))
        assert read_package_yaml(source) == read_yaml(source)
    monkeypatch.setenv(cache.FOLDER_VARIABLE, "/proc/rooflines")
    assert read_package_yaml(source) == read_yaml(source)


def test_a_full_disk_leaves_nothing_behind(folder, source, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(Path, "replace", full)
    assert read_package_yaml(source) == read_yaml(source)
    assert [*folder.iterdir()] == []


def test_processes_that_fill_the_cache_at_once_agree(tmp_path):
    code = "from rooflines.hardware.chip_catalogue import chip_entries; print(chip_entries())"
    environment = {**os.environ, cache.FOLDER_VARIABLE: str(tmp_path / "cache")}

    def read(_):
        return subprocess.check_output([sys.executable, "-c", code], env=environment)

    with ThreadPoolExecutor(3) as pool:
        assert len({*pool.map(read, range(4))}) == 1
    names = sorted(file.name.partition("-")[0] for file in (tmp_path / "cache").iterdir())
    assert names == ["chips", "dtypes"]


def test_an_edit_in_place_is_seen_at_once(folder, source):
    assert read_package_yaml(source)["a"][0] == 1
    state = source.stat()
    with source.open("r+") as file:
        file.write(SMALL.replace("1", "3"))
    os.utime(source, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert (source.stat().st_mtime_ns, source.stat().st_size) == (state.st_mtime_ns, len(SMALL))
    assert read_package_yaml(source)["a"][0] == 3
    assert len([*folder.iterdir()]) == 2


def test_an_edited_catalogue_of_dtypes_counts_for_chips(tmp_path, folder, monkeypatch):
    monkeypatch.setattr(cache, "CONFIG_DIR", tmp_path)
    chips, dtypes = tmp_path / "chips.yaml", tmp_path / "dtypes.yaml"
    chips.write_bytes(chip_catalogue.CHIPS_FILE.read_bytes())
    dtypes.write_bytes(dtype_catalogue.DTYPES_FILE.read_bytes())
    monkeypatch.setattr(chip_catalogue, "CHIPS_FILE", chips)
    monkeypatch.setattr(dtype_catalogue, "DTYPES_FILE", dtypes)
    _, read = CATALOGUES["chips"]
    read()
    dtypes.write_text(f"{dtypes.read_text()}\n")
    read()
    assert len([file for file in folder.iterdir() if file.name.startswith("chips")]) == 2


def test_an_edit_of_code_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "PACKAGE", tmp_path)
    for room in cache.ROOMS:
        (tmp_path / room).mkdir(parents=True)
        (tmp_path / room / "module.py").write_text("a = 1\n")
    state = cache._code_state.__wrapped__  # noqa: SLF001
    states = {state()}
    for room in cache.ROOMS:
        (tmp_path / room / "module.py").write_text("a = 10\n")
        states.add(state())
    assert len(states) == 1 + len(cache.ROOMS)


def test_the_code_that_counts_is_all_that_catalogues_import(tmp_path):
    modules = "rooflines.fits.calibration_files, rooflines.models.library"
    code = f"import {modules}, sys; print(*(m for m in sys.modules if m.count('.') > 1))"
    names = [name.split(".") for name in python("-c", code, cwd=tmp_path).stdout.split()]
    rooms = {"/".join(parts[1:-1]) for parts in names if parts[0] == "rooflines"}
    assert {"hardware", "fits"} < rooms <= {*cache.ROOMS}


def test_a_mistake_is_said_each_time(folder, source):
    source.write_text("a: [\n")
    for _ in range(2):
        with pytest.raises(RooflinesError, match="line 2"):
            read_package_yaml(source)
    assert not folder.exists()


def test_a_file_of_a_user_is_not_put_into_the_cache(folder, tmp_path):
    (tmp_path / "own.yaml").write_text(SMALL)
    assert read_package_yaml(tmp_path / "own.yaml")["b"] is None
    assert not folder.exists()


@pytest.mark.parametrize("value", [{"#": "Chip"}, {"a": {1, 2}}, {"a": object()}])
def test_what_json_does_not_keep_is_not_put_into_the_cache(value, folder, source):
    assert cached_entries("odd", [source], lambda: value, ()) is value
    assert not folder.exists()


def test_the_newest_states_stay(folder, source):
    for number in range(cache.MAX_STATES + 3):
        source.write_text(f"a: {number}\n")
        assert read_package_yaml(source) == {"a": number}
    assert len([*folder.iterdir()]) == cache.MAX_STATES


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "/home/me/.cache/rooflines"),
        ("linux", {"XDG_CACHE_HOME": "/scratch/me"}, "/scratch/me/rooflines"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, None),
        ("linux", {"HOME": "relative"}, None),
        ("darwin", {}, "/home/me/Library/Caches/rooflines"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/rooflines"),
        ("linux", {cache.FOLDER_VARIABLE: "/mine"}, "/mine"),
        ("linux", {cache.FOLDER_VARIABLE: ""}, None),
    ],
)
def test_the_folder_is_the_platforms(platform, variables, expected, monkeypatch):
    for name in (cache.FOLDER_VARIABLE, "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    for name, value in {"HOME": "/home/me", **variables}.items():
        monkeypatch.setenv(name, value)
    folder = cache.cache_folder()
    assert (None if folder is None else folder.as_posix()) == expected
