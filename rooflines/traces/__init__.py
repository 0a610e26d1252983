"""A profiler's trace laid on its bound: each nanosecond of a device gets one name.

`trace_records` are what readers fill and rules return: activities, launches, operators, costs.

Read: `trace_files` tells a file's kind. `chrome_events` reads Chrome's JSON in bounded memory, and
`chrome_traces` makes records from its events; `nsys_export` and `kernel_csv` read the others.
`traced_chips` names the chip by what the file says about its devices.

Account: `host_tree` leads from a kernel to its launch and operator, `step_annotations` to its step.
`device_accounts` gives each nanosecond its owner.
"""
