"""A profiler's trace: readers, the identity of time, launches and operators, screen and table."""

import pytest

from rooflines.traces.trace_records import TracedDevice
from rooflines.traces.traced_chips import traced_chip


@pytest.mark.parametrize(
    ("device", "chip"),
    [
        (TracedDevice("NVIDIA H100 80GB HBM3"), "h100-sxm"),
        (TracedDevice("NVIDIA A100-PG509-200"), "a100-sxm-40gb"),
        (TracedDevice("AMD Instinct MI300X VF"), "mi300x"),
        (TracedDevice("", 9, 4, 304, 205822885888.0), "mi300x"),
        (TracedDevice("", 9, 4, 304, 274877906944.0), "mi325x"),
        (TracedDevice("", 9, 0, 132, 85e9), None),
        (TracedDevice("ARTEMIS"), None),
        (TracedDevice("AMD Radeon Graphics", 9, 0, 104, 68702699520.0), None),
    ],
)
def test_a_device_is_told_by_its_name_else_by_its_numbers(device, chip):
    assert traced_chip([device]).chip == chip
    assert traced_chip([TracedDevice(), device]).chip == chip
