"""A profiler's trace laid on its bound: each nanosecond of a chip gets one name.

`trace_records` are what readers fill and rules return: activities, launches, operators, costs.

Read: `trace_files` tells a file's kind. `chrome_events` reads Chrome's JSON in bounded memory, and
`chrome_traces` makes records from its events, of operators those that `operator_columns` finds
around launches; `nsys_export` and `kernel_csv` read the others.
`traced_chips` names the chip by what the file says about its devices.

Account: `host_tree` leads from a kernel to its launch and operator, `step_annotations` to its step.
`device_accounts` gives each nanosecond its owner.

Work: `tensors` are an operator's arguments. `operator_rules` binds them to kernels of the package
(`kernel_works`), by the table `operators.yaml`; `convolutions`, `engine_attention`,
`collective_rules` and `copy_rules` have the rest. `bound_times` divides work by a chip's rates, and
says why a call beats its bound.

Without shapes: `captures` takes operators from a graph's capture. `kernel_names` tells kinds of
kernels, `model_step` has the work of a model's groups, `model_layers` lays kernels on them, and
`model_calls` makes calls of that; `model_estimates` estimates them. `trace_timings` are matmuls
for calibrations.

Answer: `trace_calls` groups activities by call, `span_parts` adds up the parts of the span, and
`laid_traces` joins all. `call_frames` are its tables, `trace_screen` its text, `trace_json` JSON.
`rank_waits` compares ranks, `trace_changes` a run before and after a change. `trace_sets` are the
traces that a config names.
"""
