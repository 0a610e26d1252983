"""Formats by name: grouped integers follow from their name, all others are entries."""

import pytest

from rooflines.hardware.dtype_catalogue import StoredFormats, dtype_entries


@pytest.mark.parametrize(
    ("name", "bits", "scale_bits", "block"),
    [
        ("int3", 3, None, None),
        ("int7", 7, None, None),
        ("int4-g64", 4, 16, 64),
        ("int4-g1", 4, 16, 1),
        ("int8-g32-zp", 8, 16 + 8, 32),
        ("int3-g128-zp", 3, 16 + 3, 128),
        ("int3-g128-bias", 3, 16 + 16, 128),
    ],
)
def test_an_integer_format_follows_from_its_name(name, bits, scale_bits, block):
    formats = StoredFormats()
    assert name in formats
    assert formats[name].model_dump(exclude_none=True) == {
        "bits": bits,
        **({} if block is None else {"scale_bits": scale_bits, "block": block}),
    }
    assert dtype_entries().formats[name] == formats[name]


@pytest.mark.parametrize("name", ["int4-g0", "int4-g64-x", "int", "uint4", "int4g64", 4, None])
def test_any_other_name_is_no_format(name):
    formats = StoredFormats(dtype_entries().formats)
    assert name not in formats
    assert formats.get(name) is None
    with pytest.raises((KeyError, TypeError)):
        formats[name]
