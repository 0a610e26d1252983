"""Thresholds: critical sizes, context and chip limits, required rates, plateaus.

`threshold_frames` reads the axes in a config's `thresholds` and collects the columns:

Operations:
- a dimension: `critical_sizes`, closed form. A time is a maximum over lines, and t_math overtakes
  each line once. Also the rule of thumb, by leading coefficients as Fractions.
- `shards`: `chip_limit`, closed form. N times a time is a polynomial in the number of chips N, at
  most quadratic, on segments where the topology stays.
- `peak`, `memory_rate`, `network_rate`: `required_rates`, closed form. A factor on one rate scales
  one term in one time.

Kernels:
- a letter: `kind_thresholds`, Fraction search, by doubling, then by halves. A kind's formulas are
  any, so that only the sign of the margin counts, which changes once along a letter.

Serving:
- `B`: `critical_sizes`, closed form; Newton where lines have experts, which are concave in B, so
  that every step stays on one side. The largest batch that fits is a quotient of whole numbers.
- `B` within a target time: `critical_sizes`, whole-number search. A serialized time is a sum of
  maxima over kernels, in whole spans a staircase, but it never falls with B.
- `S` in decode: `context_limit`, whole-number planes. Margins are affine in the chunk and in the
  place in it, so each bounds the chunks at a place; until windows are full they are concave, and a
  Fraction search finds the peak, then the end.
- `chips`: `fewest_chips`, trial of tp = 1, 2, 4, ... Candidates are few, and heads, interconnects
  and memory rule them out one by one.

Training:
- `B`, `S`, `micro_batch`: `training_limits`, Fraction search. Margins are convex, quadratic in S,
  so that one whole number is the first; three points give the real size as a parabola's zero.
- `tp`: `training_limits`, closed form, tp <= 1 + M / N; on a torus, whose axes join some numbers of
  chips only, trial from above.
- `dp`, `chips`: `training_limits`, trial of all divisors of dp * tp, or of 1, 2, 4, ... replicas.

Levers, sizes from which or up to which they pay:
- `S_pull`, `S_offload`: `serving_levers`, `offload_levers`, whole-number search. A gain is convex
  between the ends of attention chunks, so it changes its sign at most twice on each piece.
- `B_draft`: `serving_levers`. Bounds are lines in B between their crossings; with experts every
  batch is tried until all are read. By a calibration signs are tried at doubled batches.
- `accepted_draft`, `X_offload`: closed form, a quotient.
- `S_zero`: `training_limits`, as `S`. `batches_zero`: `training_levers`, closed form by sign, as
  the network time is a line in micro-batches. `micro_batch_recompute`: whole-number search; with as
  large a step the time never rises with the micro-batch.
- `B_pools`, `chunk`: whole-number search. Times never fall with the batch, or the tokens.

Plans over a number of chips: `plan_search`, floors and dominance in Float64, as a table has them.

Plateaus, along a dimension, `B` or `S`: `plateau`, whole-number search. An estimate is a sum of
maxima, without a closed form, but size / t_estimate never falls where spans are full.

Shared parts: `payoffs` finds the ends of ranges with a gain, `size_axis` writes times along one
size as lines, `crossover` solves for the size from which on t_math stays above them,
`first_integer` searches whole numbers in all rows at once. Closed
forms are Float64 with a bound on the relative error, so that a threshold at a whole number is not
rounded past it; `context_limit` and `training_limits` are exact, in Fractions and whole numbers.
"""
