# ruff: noqa: F401, other modules take these names from here
"""An independent implementation of the model in exact rational arithmetic: row by row, and slow.

It reads the plain YAML forms of sweeps, chips, formats and models, and imports nothing of the
package. Everything is a :class:`fractions.Fraction`. A number in a config means its decimal value:
``0.1`` is 1/10 and ``8.19e11`` is 819000000000, never the nearest binary number. Thresholds are
found without a closed form: each is the first size at which the difference of two evaluated times
is not negative, found by doubling and bisection. The only assumption is that the difference is
affine, so that its sign changes at most once.

An operation is one kernel, a step a list of them. The modules are to be read in this order:
quantities, network, kernels, fits, values; of operations: operations, setting, sweeps, table,
critical_sizes, critical_chips, critical; of whole models: models, steps, step_values, step_table,
step_limits, training.

Conventions, where the model leaves a choice (those of steps are in step_table):

- Dimensions are ordered by first appearance in the einsum. An einsum that is written like a named
  operation is that operation.
- The order of rows, slowest first: chip, memory, the first dimension (where it is a grid axis of
  its own), dtypes, sharding, shards, shape, the other dimensions. A dimension that is tied to
  another, or that the shapes give, is no axis.
- ``none`` is combined with one chip only, which ``shards`` must then contain; every other sharding
  with every entry of ``shards``.
- A range has exact steps up to and including ``to``; its values are rounded half up, without
  duplicates.
- A network is needed from two chips on. On one chip it is null if the chip has none, or none of the
  given name; rows of one chip with a null network occur once, even if several networks are asked.
- In a mesh a chip sends over N-1 links, at most over all it has; without a given domain it joins
  one chip more than a chip has links. Any other domain that is not given is unknown: two chips are
  joined, more are not supported.
- On two levels the domain of an outer switch counts chips, that of an outer mesh or torus counts
  groups. An all-to-all on two levels sends 1/n of a chip's share inside for n groups.
- Tiles: flops and memory count whole tiles of the local sizes, network and footprint count the
  sizes themselves; a dimension without a tile is one tile of its local size. ``critical_exact`` is
  the real number of tiles times the tile, times the number of chips if the dimension is split.
  Along a tiled dimension a size is compute-bound from a threshold on if every size in its tile is:
  the network is taken at the last one.
- Efficiency of a resource: the sweep's, else the chip's own, else 1. It applies to rates, not to
  the latency of a hop.
- A calibration gives estimates and nothing else, from nominal times (efficiency 1). A chip's own
  is the overhead, plus the largest of the times over the fitted shares; a missing share is 1. Hops
  take their typical time, over no share. That of a software has further pieces, and a collective's
  own numbers where it is one collective over the chip's first interconnect.
- A resource without work takes no time: its critical is 1.
- ``limit``: below ``critical``, the resource whose own critical is largest (never counts as
  infinite; among several that are never reached the one that takes longest as the size goes to
  infinity; memory before network); null if ``critical`` is 1. A critical of 2^62 or more is null,
  and only ``critical_exact`` has it.
- Along ``shards`` there are no thresholds for ``none`` and on a chip without a network; if the
  split dimension is tiled, they are refused. ``critical`` is the largest joined number of chips
  that is compute-bound; ``limit`` is the bottleneck on the next number of chips, null if
  ``critical`` is the whole domain. A whole domain of unknown size is ``domain-unknown``.
- A share q of the peak: t_math counts 1/q times.
"""

from oracle.critical import thresholds
from oracle.network import Link, link_of, why_not_joined
from oracle.operations import NAMED, operation_of, sharding_of
from oracle.quantities import as_list, exact, sizes_of
from oracle.setting import LABEL, PLAIN_LINK, RESOURCES, Setting
from oracle.sweeps import axes_of, combination_of, exactly, resolve_chips, routes, stored_bits
from oracle.table import rows
