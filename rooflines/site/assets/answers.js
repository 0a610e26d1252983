"use strict";
/* Times and thresholds of one side of the page "What if", exactly: the polynomials of formulas.py, evaluated and compared.

   A side has `resources` and `scheme` of the formulas, `bytes` per element by operand, the rates `peak` and `memory`, the
   `network` (null: none) with `slowdown`, its nominal over its own bandwidth, the nominal rates `at`, the number of chips `n`
   and the `sizes` by dimension: all numbers are fractions. `fit` is a calibration of fits.py, whose collectives
   are those of the `first` network; null: none. `row` is the dimension that it counts in whole tiles; null: none. */

const ANSWERS = (() => {
  const { ZERO, ONE, ratio, rational, decimal, plus, minus, times, over, compare, largest, smallest, sum, ceil, polynomial, line, overtakes, above, common, last } = EXACT;
  const [FOUND, ALWAYS, NEVER, BEYOND, ENDLESS, UNKNOWN] = ["found", "always", "never", "beyond", "endless", "unknown"];

  const read = (coefficients) => coefficients.map(rational);
  const whole = (n) => ratio(BigInt(n));

  /** A work of one chip [FLOP or byte]; `network_bytes` is the payload of the collective. */
  function work({ scheme, bytes }, name, n, sizes) {
    const terms = scheme.works[name].map(([operand, dims, coefficients]) =>
      [operand ? bytes[operand] : ONE, ...dims.map((dim) => sizes[dim])].reduce(times, polynomial(read(coefficients), n)));
    return over(sum(terms), n);
  }

  const has = (piece, n) => n >= BigInt(piece.least) && n <= BigInt(piece.most) && n % BigInt(piece.step) === BigInt(piece.offset);

  /** Bytes sent per byte of the payload; seconds per byte, least and typical latency of each level; null: nothing is sent. */
  function transfer({ scheme, network, slowdown }, n, piece = network?.pieces.find((one) => has(one, n.n))) {
    if (!scheme.collective || n.n === 1n) return null;
    const at = (coefficients) => over(polynomial(read(coefficients), n), n);
    const { sent, levels } = piece.collectives[scheme.collective];
    return { sent: at(sent), levels: levels.map((level) => ({ seconds: times(at(level.seconds), slowdown), latency: at(level.latency), typical: at(level.typical) })) };
  }

  /** For each resource the functions of the sizes whose largest value is its time [s]. */
  function lines(side, n, share = ONE, piece = undefined) {
    const sent = transfer(side, n, piece);
    const at = (name) => (sizes) => work(side, name, n, sizes);
    const own = {
      math: (flops) => [(sizes) => over(flops(sizes), times(side.peak, share))],
      memory: (bytes) => [(sizes) => over(bytes(sizes), side.memory)],
      network: (payload) => (sent ? sent.levels.flatMap(({ seconds, latency }) => [(sizes) => times(payload(sizes), seconds), () => latency]) : [() => ZERO]),
    };
    return side.resources.map((resource) => own[resource.name](at(resource.work)));
  }

  const timesAt = (side, n, share, piece) => lines(side, n, share, piece).map((each) => largest(each.map((at) => at(side.sizes))));

  /** The resource that takes longest; of equal ones the first. */
  const longest = (side, seconds) => side.resources[seconds.indexOf(largest(seconds))];

  /** The works, rates and times of a side, and what follows from them. */
  function row(side) {
    const { n, sizes } = side;
    const sent = transfer(side, n);
    const works = side.resources.map(({ name, work: column }) => {
      const amount = work(side, column, n, sizes);
      return name === "network" ? times(amount, sent?.sent ?? ZERO) : amount;
    });
    const rates = [side.peak, side.memory, sent && over(sent.sent, largest(sent.levels.map((level) => level.seconds)))];
    const seconds = timesAt(side, n);
    const lower = largest(seconds);
    return {
      works, rates, seconds, lower,
      upper: sum(seconds),
      bound: longest(side, seconds).bound,
      attained: over(works[0], lower),
      share: over(over(works[0], side.at.peak), lower),
      intensity: over(works[0], works[1]),
      footprint: work(side, "footprint_bytes", n, sizes),
    };
  }

  /** The FLOP/s that an intensity attains: of that many FLOPs with one byte of memory traffic. */
  const roof = ({ peak, memory }, intensity) => over(intensity, largest([over(intensity, peak), over(ONE, memory)]));

  /** From which size on the math takes longest, along a dimension, for a share of the attainable peak. */
  function critical(side, axis, share, beyond) {
    const along = lines(side, side.n, share).map((each) => each.map((at) => line((size) => at({ ...side.sizes, [axis]: size }))));
    const [[math], ...others] = along;
    const reals = others.map((each) => each.map((one) => overtakes(math, one))).map((each) => (each.includes(null) ? null : largest(each)));
    const never = reals.includes(null);
    const ranked = others.map((each, i) => ({ real: reals[i], slope: largest(each.map((one) => one.slope)), bound: side.resources[i + 1].bound }));
    const left = never ? ranked.filter((one) => one.real === null) : ranked;
    const rank = (one) => (never ? one.slope : one.real);
    const limit = left.reduce((a, b) => (compare(rank(b), rank(a)) > 0 ? b : a));
    if (never) return { outcome: NEVER, limit: limit.bound, tends: over(math.slope, limit.slope) };
    const size = ceil(limit.real) > 1n ? ceil(limit.real) : 1n;
    if (size >= beyond) return { outcome: BEYOND, limit: limit.bound };
    return size === 1n ? { outcome: ALWAYS } : { outcome: FOUND, size, limit: limit.bound };
  }

  /** The most chips on which the math still takes longest, for a share of the attainable peak. */
  function shards(side, share, endless) {
    const { network } = side;
    const holds = (n, piece) => {
      const [math, ...others] = timesAt(side, whole(n), share, piece);
      return others.every((other) => compare(math, other) >= 0);
    };
    const most = BigInt(network.most);
    const found = [holds(1n) ? 1n : 0n];
    for (const piece of network.pieces) {
      const [least, step] = [BigInt(piece.least), BigInt(piece.step)];
      const steps = last((BigInt(piece.most) - least) / step - (BigInt(piece.most) < least ? 1n : 0n), (k) => holds(least + k * step, piece));
      if (steps === null) continue;
      found.push(least + steps * step); // where a line of n chips holds, a ring of n does
    }
    const chips = found.reduce((a, b) => (b > a ? b : a));
    const group = BigInt(network.group);
    const next = group && chips >= group ? (chips / group + 1n) * group : chips + 1n;
    const limit = next <= most ? longest(side, timesAt(side, whole(next), share)).bound : null;
    if (chips < 1n) return { outcome: NEVER, limit };
    if (chips >= endless) return { outcome: ENDLESS };
    if (chips < most) return { outcome: FOUND, size: chips, limit };
    return network.published ? { outcome: ALWAYS, size: chips } : { outcome: UNKNOWN };
  }

  // ---------------------------------------------------------------- estimates

  const COMPUTE = "compute";

  /** A size in whole spans. */
  const spans = (size, span) => times(ratio(ceil(over(size, span))), span);

  /** The rows of a tile on all chips; 1 without a tile. */
  const spanOf = ({ fit, row, scheme, n }) => (row ? times(whole(fit.tile), polynomial(read(scheme.rows), n)) : ONE);

  /** The nominal quantities that a calibration weighs; the math is of `counted` sizes. */
  function quantities(side, sizes, counted) {
    const { n, at } = side;
    const sent = transfer(side, n);
    const of = (name) => over(work(side, name, n, sizes), at.memory);
    return {
      "": ONE, math: over(work(side, "flops", n, counted), at.peak), memory: of("memory_bytes"), x: of("x"), out: of("out"), depth: work(side, "depth", n, sizes),
      network: sent ? times(times(work(side, "network_bytes", n, sizes), largest(sent.levels.map((level) => level.seconds))), side.reached) : ZERO,
    };
  }

  const weighed = (affine, amounts) => sum(Object.entries(affine).map(([name, factor]) => times(rational(factor), amounts[name])));

  /** The calibration of the collective of a side; undefined: it has none. */
  const fittedOf = ({ fit, first, scheme }) => (first ? fit.sent[scheme.collective] : undefined);

  /** The pieces of an estimate: the bound of each, and the affine sums of which the least counts. */
  function piecesOf(side) {
    const { fit, n } = side;
    const sent = transfer(side, n);
    const fitted = sent && fittedOf(side);
    const waits = fitted && over(polynomial(read(fitted.waits), n), n);
    return fit.pieces.flatMap(([bound, affine]) => {
      if (bound !== "network") return [{ bound, least: [(amounts) => weighed(affine, amounts)] }];
      if (!sent) return [];
      if (fitted) return [{ bound, least: fitted.protocols.map((each) => (amounts) => plus(weighed(each, amounts), waits)) }];
      return [{ bound, least: [(amounts) => weighed(affine, amounts)] }, { bound, least: [() => largest(sent.levels.map((level) => level.typical))] }];
    });
  }

  /** The calibrated time, its bound, its band from p10 to p90 (null: none), and the software of its collective, if it is fitted. */
  function estimate(side) {
    const { fit, sizes, row } = side;
    const counted = row ? { ...sizes, [row]: spans(sizes[row], spanOf(side)) } : sizes;
    const amounts = quantities(side, sizes, counted);
    const pieces = piecesOf(side).map(({ bound, least }) => ({ bound, time: smallest(least.map((of) => of(amounts))) }));
    const top = pieces.reduce((a, b) => (compare(b.time, a.time) > 0 ? b : a));
    const time = plus(weighed(fit.common, amounts), top.time);
    const fitted = fittedOf(side);
    const band = (fitted ?? fit).bands[top.bound] ?? null;
    return { sender: fitted?.software, time, bound: top.bound, band: band && band.map((share) => times(decimal(String(share)), time)) };
  }

  /** The smallest size along a dimension at which a compute piece is the largest; `size` null: there is none. */
  function criticalEstimate(side, axis) {
    const span = spanOf(side);
    const step = axis === side.row ? span : ONE;
    const at = (of) => line((number) => { // of whole spans the first row
      const end = times(number, step);
      const sizes = { ...side.sizes, [axis]: minus(plus(end, ONE), step) };
      const counted = side.row ? { ...sizes, [side.row]: axis === side.row ? end : spans(sizes[side.row], span) } : sizes;
      return of(quantities(side, sizes, counted));
    });
    const pieces = piecesOf(side).map(({ bound, least }) => ({ bound, lines: least.map(at) }));
    const computes = pieces.filter(({ bound }) => bound === COMPUTE).flatMap(({ lines: own }) => own);
    const others = pieces.filter(({ bound }) => bound !== COMPUTE)
      .map(({ bound, lines: own }) => ({ bound, ...common(own.map((one) => above(one, computes))) }));
    let [number, limit] = [ONE, null];
    for (;;) {
      const covering = others.find(({ begin, end }) => (begin === null || compare(begin, number) < 0) && (end === null || compare(number, end) < 0));
      if (!covering) return { size: ceil(plus(minus(times(number, step), step), ONE)), limit };
      limit = covering.bound;
      if (covering.end === null) return { size: null, limit };
      number = ratio(ceil(covering.end));
    }
  }

  return { NEVER, UNKNOWN, has, roof, row, critical, shards, estimate, criticalEstimate };
})();
