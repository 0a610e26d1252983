"""A profiler's trace laid on its bound: each nanosecond of a device gets one name.

`trace_records` are what readers fill and rules return: activities, launches, operators, costs.
`traced_chips` names the chip by what the file says about its devices.
"""
