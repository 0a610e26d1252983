"""Rows are exactly the requested ones: none missing, none twice."""

from collections import Counter


def key_differences(rows, columns, expected):
    """The keys that are missing, and those that nobody asked for or that are there twice.

    Args:
        rows: Rows as mappings, or a frame.
        columns: The columns of a key.
        expected: The keys that are asked for, such as `itertools.product(chips, sizes)`.
    """
    listed = rows if isinstance(rows, list) else rows.select(columns).to_dicts()
    found = Counter(tuple(row[column] for column in columns) for row in listed)
    asked = Counter(dict.fromkeys(map(tuple, expected), 1))
    missing, unasked = asked - found, found - asked
    return sorted(missing.elements(), key=repr), sorted(unasked.elements(), key=repr)
