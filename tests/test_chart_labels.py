"""Labels of charts: numbers with a prefix, shortened text, and places that do not overlap."""

import math
from itertools import combinations

import pytest
from case_files import case
from hypothesis import given
from hypothesis import strategies as st

from rooflines.basics.text import count, seconds, si, significant
from rooflines.charts.kit.chart_text import listed, shorten, sizes_text, width_em, wrapped
from rooflines.charts.kit.label_placement import (
    DOT,
    END_CLEARANCE,
    LINE_HEIGHT,
    Box,
    Label,
    LabelPlacer,
    Plane,
    _beside,
)
from rooflines.charts.kit.themes import Margins
from rooflines.charts.kit.titles import fitted_title, title_fits, title_room

SHOWN = case("labels")

PLANE = Plane((1.0, 100.0), (0.0, 8.0), linear=True)
points = st.tuples(st.floats(1.0, 100.0), st.floats(0.0, 8.0))
labels = st.lists(
    st.builds(Label, st.sampled_from(["a", "1,234", "H100 SXM"]), st.tuples(points)), max_size=12
)


@pytest.mark.parametrize(("value", "unit", "digits", "text"), SHOWN["quantities"])
def test_a_quantity_has_a_prefix_and_few_digits(value, unit, digits, text):
    assert si(value, unit, digits) == text


@pytest.mark.parametrize(("kind", "show"), [("seconds", seconds), ("counts", count)])
def test_times_and_counts(kind, show):
    assert {value: show(value) for value in SHOWN[kind]} == SHOWN[kind]


@given(st.floats(1e-9, 1e20), st.integers(1, 6))
def test_a_number_is_off_by_half_a_digit_at_most(value, digits):
    shown = float(significant(value, digits).replace(",", ""))
    last_digit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    assert abs(shown - value) <= 0.5000001 * max(last_digit, 1.0 if value > 10**digits else 0.0)


def test_sizes_and_lists():
    assert sizes_text("B", [1_250_000, 246, 300]) == "B = 246 to 1,250,000"
    assert sizes_text("B", [7, 7]) == "B = 7"
    assert [[sizes, listed(sizes)] for sizes, _ in SHOWN["lists"]] == SHOWN["lists"]


@pytest.mark.parametrize(("name", "short"), SHOWN["shortened"].items())
def test_a_shortened_name_keeps_its_numbers(name, short):
    assert shorten(name, 9.5, tail=True) == short
    assert width_em(short) <= 9.5
    assert "…" in shorten("1234567890 1234567890", 9.5, tail=True)


@given(
    text=st.text("abcdefgh -", min_size=1, max_size=60),
    most=st.floats(1.0, 30.0),
    tail=st.booleans(),
)
def test_shortened_text_fits_and_is_the_longest_that_does(text, most, *, tail):
    short = shorten(text, most, tail=tail)
    assert width_em(short) <= most
    if width_em(text) <= most:
        assert short == text
    else:
        start, _, end = short.partition("…")
        assert text.startswith(start)
        assert text.endswith(end)


def test_a_subtitle_has_at_most_two_lines():
    assert wrapped("short enough", 20.0) == ["short enough"]
    first, second = wrapped("several words that take " * 5, 20.0)
    assert max(width_em(first), width_em(second)) <= 20.0
    assert second.endswith("…")


@given(labels)
def test_placed_labels_overlap_no_label_and_no_point(labels):
    dots = [(label.points[0], DOT) for label in labels]
    room = LabelPlacer((40.0, 40.0), PLANE, dots=dots)
    boxes = {}
    for index, label in enumerate(labels):
        point, place = room.place(label)
        if place is not None:
            boxes[index] = label.box(room.at(point), place)
    assert not [pair for pair in combinations(boxes.values(), 2) if pair[0].overlaps(pair[1])]
    assert all(Box(0.0, 0.0, 40.0, 40.0).contains(box) for box in boxes.values())
    for index, box in boxes.items():
        own = labels[index].points[0]
        assert not any(box.overlaps(dot) for point, dot in room.dots if point != own)


def test_a_text_along_a_line_ends_before_the_line_does():
    room = LabelPlacer((40.0, 20.0), PLANE)
    label = Label("m" * 16, [(1.0, 4.0)], to=(100.0, 4.0))
    places = [place for _, place in (room.place(label) for _ in range(4)) if place]
    assert places
    for place in places:
        assert place.dx - label.wide / 2 > 0
        assert place.dx + label.wide / 2 < 40 - END_CLEARANCE / 2


@pytest.mark.parametrize(
    ("box", "overlaps", "contains"),
    [
        ((0, 0, 4, 3), True, True),
        ((1, 1, 2, 2), True, True),
        ((-1, 1, 2, 2), True, False),  # over one side each
        ((1, -1, 2, 2), True, False),
        ((3, 1, 5, 2), True, False),
        ((1, 2, 2, 5), True, False),
        ((-1, -1, 5, 4), True, False),
        ((4, 0, 6, 3), False, False),  # sides touch
        ((-2, 0, 0, 3), False, False),
        ((0, 3, 4, 5), False, False),
        ((0, -2, 4, 0), False, False),
        ((5, 4, 6, 5), False, False),
    ],
)
def test_boxes_overlap_and_contain_others(box, overlaps, contains):
    plot, other = Box(0, 0, 4, 3), Box(*box)
    assert plot.overlaps(other) == other.overlaps(plot) == overlaps
    assert plot.contains(other) == contains


@pytest.mark.parametrize(
    ("start", "end", "crosses"),
    [
        ((-1, 1), (5, 1), True),
        ((2, -1), (2, 4), True),
        ((1, 1), (2, 2), True),  # inside
        ((-1, 1), (1, 1), True),
        ((-2, 2), (1, 5), False),  # past a corner
        ((-1, -1), (5, 4), True),
    ],
)
def test_a_line_crosses_a_box(start, end, crosses):
    assert Box(0, 0, 4, 3).crosses((*start, *end)) == crosses
    assert Box(0, 0, 4, 3).crosses((*end, *start)) == crosses


LONG = ("nvidia-very-long-name-of-a-chip-12345", "amd-another-quite-long-name-of-a-chip-67890")


def test_a_title_that_fits_stays():
    title = "h100-sxm is compute-bound from B = 300"
    assert title_fits(title, Margins())
    assert fitted_title(title, Margins(), ["h100-sxm"]) == title


def test_the_names_in_a_long_title_are_shortened_and_keep_their_numbers():
    title = f"{LONG[0]} beats {LONG[1]}"
    assert not title_fits(title, Margins())
    short = fitted_title(title, Margins(), LONG)
    assert title_fits(short, Margins())
    first, second = short.split(" beats ")
    assert (first[:4], second[:3]) == ("nvid", "amd")
    assert first.endswith("12345")
    assert second.endswith("67890")
    assert width_em(short, bold=True) > 0.9 * title_room(Margins()), "the room is used"


def test_a_short_name_stays_where_a_long_one_is_shortened():
    title = f"{LONG[1]} beats h100-sxm at every batch size"
    short = fitted_title(title, Margins(), [LONG[1], "h100-sxm"])
    assert title_fits(short, Margins())
    assert short.endswith(" beats h100-sxm at every batch size")


def test_a_long_title_without_names_is_cut_at_its_end():
    short = fitted_title("word " * 30, Margins())
    assert title_fits(short, Margins())
    assert short.endswith("…")


@pytest.mark.parametrize(
    ("side", "place"),
    [
        ("t", (0, -1.5, "center")),
        ("b", (0, 1.5, "center")),
        ("l", (-1, 0, "right")),
        ("r", (1, 0, "left")),
        ("tr", (0.55, -1.25, "left")),
        ("bl", (-0.55, 1.25, "right")),
    ],
)
def test_a_label_stands_beside_its_point(side, place):
    across, down, align = _beside(side, 1.0)
    assert (across, align) == (place[0], place[2])
    line = math.copysign(LINE_HEIGHT / 2 - 0.6, down) if side in ("t", "b") else 0
    assert down == pytest.approx(place[1] + line)
