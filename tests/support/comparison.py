"""Comparison of rows and thresholds with those of `oracle`."""

import math
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

import oracle
import yaml
from plain_files import plain_file

import rooflines

ROW_TOLERANCE = Fraction(1, 10**12)
EXACT_INTEGER = 2**53
REAL_TOLERANCE = 1e-9
TIE = Fraction(4, 10**14)
"""Times that differ by a smaller share count as equal in thresholds [1]."""

WHOLE_WORKS = ("flops", "memory_bytes", "footprint_bytes")
"""Works of one chip that are exact as long as Float64 holds them."""

KEYS = ("operation", "chip", "unit", "memory", "network", "dtypes", "sharding", "shards", "shape")

WHOLE = (
    *("outcome", "critical", "critical_memory", "critical_network"),
    *("plateau_estimate", "limit"),
)
REAL = ("critical_exact", "limit_intensity")


def same(found, expected):
    """Say whether a value is the exact one: of Float64 to a relative 1e-12, of others at all."""
    if not isinstance(expected, Fraction) or found is None:
        return found == expected
    return math.isfinite(found) and abs(Fraction(found) - expected) <= ROW_TOLERANCE * abs(expected)


def table_of(config):
    """Return the table of a config's one sweep."""
    (sweep,) = config["sweeps"]
    return rooflines.rows(rooflines.load_config(config), sweep).collect()


def expected_rows(config):
    """Return every requested row of a config's one sweep."""
    ((_, sweep),) = config["sweeps"].items()
    return list(oracle.rows(sweep, *given(config)))


def given(config):
    """Return the chips that a config may name, dtypes, and its calibrations or the package's."""
    chips = {**plain_file("chips.yaml")["chips"], **config["chips"]}
    fits = [yaml.safe_load(Path(file).read_text()) for file in config.get("calibrations", [])]
    return chips, plain_file("dtypes.yaml"), *(fits or [plain_file("calibrations.yaml")])


def row_differences(config):
    """Describe the differences between the rows of a config's one sweep and exact ones."""
    exact = [row.values() for row in expected_rows(config) if row.setting is not None]
    return differences(table_of(config).to_dicts(), exact)


def shown(value):
    """Show a value: a fraction of many digits as a decimal number."""
    long = isinstance(value, Fraction) and value.denominator > EXACT_INTEGER
    return f"{float(value):.17g}" if long else repr(value)


def wrong_columns(found, expected):
    """Describe the columns in which a row differs from the exact one; it may lack some."""
    return [
        f"{name}: {found[name]!r} where {shown(value)} is exact"
        for name, value in expected.items()
        if name in found and not same(found[name], value)
    ]


def wrong_rows(frame, expected, keys, *, beside=()):
    """Describe the rows that a table has too many or too few, or else those that are wrong.

    Args:
        frame: The table.
        expected: Every row that it has to have, by column; in any order.
        keys: The columns that name a row.
        beside: Columns of the table that are not compared.
    """
    wrong = wrong_keys(frame, expected, keys)
    if wrong:
        return wrong
    truth = {tuple(row[key] for key in keys): row for row in expected}
    for row in frame.iter_rows(named=True):
        name = tuple(row[key] for key in keys)
        if others := row.keys() - {*beside} ^ truth[name].keys() - {*beside}:
            return [f"columns {others} are in one of both"]
        compared = {key: value for key, value in truth[name].items() if key not in beside}
        wrong += [f"{each}, at {name}" for each in wrong_columns(row, compared)]
    return wrong


def wrong_keys(frame, expected, keys):
    """Describe the rows, by their keys, that a table has more or less often than expected."""
    found = Counter(frame.select(keys).iter_rows())
    wanted = Counter(tuple(row[key] for key in keys) for row in expected)
    return [
        f"{name}: {found[name]} rows where {wanted[name]} are expected"
        for name in found | wanted
        if found[name] != wanted[name]
    ]


def wrong_skips(skipped, expected, kinds, named):
    """Describe what is skipped too much or too little, or for a reason that does not hold.

    Args:
        skipped: What a sweep lists; None in a field stands for all values.
        expected: Keys of the rows that are to be skipped, with all reasons that hold.
        kinds: What the text of a reason has, by the expectation's name of the reason.
        named: The keys that decide whether a reason holds, each of which has to be named.
    """
    asked, wrong = [*expected], []
    held: list[set[int]] = []
    for each in skipped:
        fields = {key: value for key in SKIP_KEYS if (value := getattr(each, key)) is not None}
        (kind,) = [kind for kind, text in kinds.items() if re.search(text, each.reason)]
        held.append(
            {
                place
                for place, (keys, reasons) in enumerate(asked)
                if kind in reasons and fields.items() <= keys.items()
            }
        )
        if missing := {*named[kind]} - fields.keys():
            wrong.append(f"{each.rows} skipped for {kind} without {missing}, {fields}")
        if not 0 < each.rows <= len(held[-1]):
            wrong.append(
                f"{each.rows} skipped for {kind} where it holds for {len(held[-1])}, {fields}"
            )
    numbers = [each.rows for each in skipped]
    if (number := sum(numbers)) != len(asked):
        wrong.append(f"{number} skipped where {len(asked)} are expected")
    rest = [asked[place] for place in range(len(asked)) if not any(place in of for of in held)]
    wrong += [f"{keys} is not skipped for one of {reasons}" for keys, reasons in rest]
    if not wrong and not share_out(numbers, held):
        wrong.append(f"rows are skipped twice, others never: {[*zip(numbers, held, strict=True)]}")
    return wrong


def skip_differences(config):
    """Describe what a config's one sweep of an operation skips too much or too little."""
    ((name, _),) = config["sweeps"].items()
    skipped = [(row.keys, row.reasons) for row in expected_rows(config) if row.setting is None]
    return wrong_skips(rooflines.load_config(config).sweep(name).skipped, skipped, KINDS, NAMED)


KINDS = {
    "compute dtype": "^no .* peak of its",
    "memory": "memory level",
    "network": "^no interconnect",
    "inner torus": "cannot be the inner of two networks",
    "axes": "^no axes on|too few for",
    "domain": "^no published number of chips|chips at most on (one|an axis)",
    "groups": "^groups of",
}
"""Words in the text of a reason, by the oracle's name of the reason."""

NAMED = {
    "compute dtype": ("chip", "dtypes"),
    "memory": ("chip", "memory"),
    **dict.fromkeys(("network", "inner torus", "axes", "domain", "groups"), ("chip", "shards")),
}
"""The keys that decide whether a reason holds."""

SKIP_KEYS = ("model", "split", "chip", "memory", "dtypes", "sharding", "shards")
"""Columns that name skipped rows."""


def share_out(numbers, held):
    """Say whether parts can have their numbers of elements, each element in one of them.

    Args:
        numbers: The elements of each part; all elements together.
        held: The elements that each part may have.
    """
    parts: list[set[int]] = [set() for _ in numbers]

    def place(element, tried):
        for part, own in enumerate(parts):
            if element not in held[part] or part in tried:
                continue
            tried.add(part)
            if len(own) < numbers[part]:
                own.add(element)
                return True
            for other in [*own]:
                if place(other, tried):
                    own.remove(other)
                    own.add(element)
                    return True
        return False

    return all(place(element, set()) for element in set().union(*held))


def differences(found, expected):
    """Describe the differences between the rows of two tables."""
    if len(found) != len(expected):
        return [f"{len(found)} rows where {len(expected)} are expected"]
    wrong = []
    for number, (row, truth) in enumerate(zip(found, expected, strict=True)):
        assert truth.keys() <= row.keys()
        rounded = [
            f"{name}: {row[name]!r} is rounded"
            for name in WHOLE_WORKS
            if truth["shards"] == 1 and truth[name].denominator == 1
            if truth[name] < EXACT_INTEGER and row[name] != truth[name]
        ]
        wrong += [
            f"row {number}, {each}, in {truth}" for each in wrong_columns(row, truth) + rounded
        ]
    return wrong


def close(found, exact):
    """Say whether a float equals an exact number to a relative 1e-9, or both are null."""
    if found is None or exact is None:
        return found is None and exact is None
    return math.isclose(found, exact, rel_tol=REAL_TOLERANCE)


def threshold_differences(config):
    """Describe the differences between the thresholds of a config's one sweep and exact ones.

    Whole numbers may be those at which times differ by less than a tie.
    """
    ((name, sweep),) = config["sweeps"].items()
    loaded = rooflines.load_config(config)
    frame, most = rooflines.thresholds(loaded, name), loaded.sweep(name).max_thresholds()
    if frame.height > most:
        return [f"{frame.height} thresholds where {most} are counted at most"]
    axes = ["axes"] if "axes" in frame.columns else []
    keys = [*KEYS, *axes, "axis", "share", *oracle.operation_of(sweep["operation"]).dims]
    found = {tuple(row[key] for key in keys): row for row in frame.iter_rows(named=True)}
    expected = expected_thresholds(config)
    named = [tuple(row[key] for key in keys) for row in expected]
    if len(found) != frame.height or found.keys() != {*named}:
        common = len(found.keys() & {*named})
        return [f"{frame.height} thresholds where {len(expected)} are expected, {common} in common"]
    wrong = [
        (place, column)
        for place, truth in enumerate(expected)
        for column in truth.keys() & {*WHOLE, *REAL}
        if not equal(column, found[named[place]][column], truth[column])
    ]
    near = [expected_thresholds(config, off) for off in (-TIE, TIE)] if wrong else []
    return [
        f"{column}: {found[named[place]][column]} where {expected[place][column]} is exact, "
        f"at {named[place]}"
        for place, column in wrong
        if not near_enough(
            column, found[named[place]][column], [rows[place][column] for rows in near]
        )
    ]


def expected_thresholds(config, off=0):
    """Return the thresholds of a config's one sweep, of shares of the peak that are off."""
    (sweep,) = config["sweeps"].values()
    shares = [oracle.exact(share) * (1 + off) for share in oracle.as_list(sweep.get("shares", 1))]
    rate = 25 * Fraction(off)  # an estimate has more roundings
    chips, dtypes, fits = given(config)
    return list(oracle.thresholds({**sweep, "shares": shares}, chips, dtypes, fits, off=rate))


def near_enough(column, found, ends):
    """Say whether a value is one of those at a tie's ends, or a whole number between them."""
    between = column in WHOLE and all(isinstance(number, int) for number in (found, *ends))
    return any(equal(column, found, end) for end in ends) or (
        between and min(ends) <= found <= max(ends)
    )


def equal(column, found, exact):
    """Say whether a whole number or word is the exact one, and a real one close to it."""
    return found == exact if column in WHOLE else close(found, exact)
