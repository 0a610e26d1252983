"use strict";
/* Times, footprints and thresholds of a step of a model, from the data of steps.py.

   Times are whole multiples of a unit, exact but for the experts touched, which have 256 binary places. With S fixed, the
   times of a kernel grow linearly with B, except for weights, the latency of collectives, and the experts touched. */

const STEPS = (() => {
  const { rational, ratio, times, over, plus, minus, compare, number, polynomial } = EXACT;
  const PLACES = 256n;
  const FOUND = "found", ALWAYS = "always", NEVER = "never", BEYOND = "beyond";

  const larger = (a, b) => (b > a ? b : a);
  const multiple = (a, b) => ratio(a, b).n * b; // the least common one
  const fixed = (value) => { const { n, d } = rational(value); return (n << PLACES) / d; };

  /** The value at S of a function that is a polynomial on pieces. */
  function at(pieces, S) {
    const [, coefficients] = pieces.findLast(([least]) => least <= S);
    return polynomial(coefficients.map(rational), ratio(BigInt(S)));
  }

  /** Experts touched by n tokens of a step, as a + b c^n: a, b and c; undefined without experts. */
  const touchedOf = (model, step) => step.kernels.map((index) => model.kernels[index].touched).find(Boolean)?.map(fixed);

  /** A step of a model on a chip: its kernels with times in whole units.

      `model` is a file of steps.py, `step` one of its steps, `machine` where it runs. */
  function prepared(model, step, machine) {
    const rate = (name) => rational(machine.rates[name]);
    const kernels = step.kernels.map((index) => {
      const kernel = model.kernels[index];
      const layers = ratio(BigInt(kernel.count));
      const timed = (terms, perSecond) => Object.entries(terms ?? {}).map(([dims, value]) => [dims, over(times(rational(value), layers), perSecond)]);
      const { flops, weight_bytes, cache_bytes, activation_bytes } = kernel.works;
      return {
        name: kernel.name,
        count: kernel.count,
        math: timed(flops, rate(kernel.compute)),
        memory: [...timed(weight_bytes, rate("memory")), ...timed(cache_bytes, rate("memory"))],
        activation: timed(activation_bytes, rate("memory")),
        network: kernel.sends.map(([kind, payload]) => machine.sends[kind].map((network) => {
          const [seconds, latency] = network.map(rational);
          return [timed(payload, ratio(1n)).map(([dims, bytes]) => [dims, times(bytes, seconds)]), times(latency, layers)];
        })),
      };
    });
    const all = kernels.flatMap((kernel) => [...kernel.math, ...kernel.memory, ...kernel.activation, ...kernel.network.flat().flatMap(([terms]) => terms)].map(([, value]) => value)
      .concat(kernel.network.flat().map(([, latency]) => latency)));
    const unit = all.reduce((least, value) => multiple(least, value.d), 1n); // units in a second
    const whole = (value) => value.n * (unit / value.d);
    const terms = (list) => list.map(([dims, value]) => [dims.split(" ").filter(Boolean), whole(value)]);
    return {
      unit,
      touched: touchedOf(model, step),
      kernels: kernels.map((kernel) => ({
        ...kernel,
        math: terms(kernel.math),
        memory: terms(kernel.memory),
        activation: terms(kernel.activation),
        network: kernel.network.map((networks) => networks.map(([payload, latency]) => [terms(payload), whole(latency)])),
      })),
    };
  }

  /** The lines of every kernel, and their sums, at S with the extents of a sequence. */
  function lines({ unit, kernels, touched }, pieces, S) {
    const extents = Object.fromEntries(Object.entries(pieces).map(([name, of]) => [name, at(of, S).n]));
    const value = (terms, holds) => terms.reduce((total, [dims, unit]) => (holds(dims)
      ? total + dims.reduce((product, dim) => product * (extents[dim] ?? 1n), unit) : total), 0n);
    const perSequence = (dims) => dims.includes("B");
    const slowest = (networks) => [0, 1].map((part) => networks.map((network) => network[part]).reduce(larger, 0n));
    const together = [];
    const exchanged = (networks) => slowest(networks.map(([payload, latency], i) => {
      const one = [value(payload, perSequence), latency];
      together[i] = one.map((part, j) => part + (together[i]?.[j] ?? 0n));
      return one;
    }));
    const own = kernels.map(({ name, count, math, memory, activation, network }) => ({
      name, count,
      math: value(math, perSequence),
      memory: value(memory, perSequence),
      activation: value(activation, perSequence),
      weights: value(memory, (dims) => !dims.length),
      expert: value(memory, (dims) => dims[0] === "touched"),
      exchanges: network.map(exchanged),
    }));
    const total = Object.fromEntries(["math", "memory", "activation", "weights", "expert"].map((name) => [name, own.reduce((all, one) => all + one[name], 0n)]));
    total.exchanges = [slowest(together)]; // collectives of a step overlap: on every network all sends, or all hops
    return { unit, touched, tokens: extents.T, kernels: own, total };
  }

  /** Experts touched by B sequences, in units of 2^-256. */
  function touchedBy({ touched, tokens }, B) {
    if (!touched) return 0n;
    const [constant, scale, base] = touched;
    let [power, square, left] = [1n << PLACES, base, B * tokens];
    for (; left; left >>= 1n) {
      if (left & 1n) power = (power * square) >> PLACES;
      square = (square * square) >> PLACES;
    }
    return constant + ((scale * power) >> PLACES);
  }

  /** The times of a kernel or of all, in units of 2^-256 of the unit. */
  function timesOf(line, B, experts) {
    return {
      math: (line.math * B) << PLACES,
      memory: ((line.memory * B + line.weights) << PLACES) + line.expert * experts,
      activation: (line.activation * B) << PLACES,
      network: line.exchanges.reduce((all, [slope, latency]) => all + larger(slope * B, latency), 0n) << PLACES,
    };
  }

  /** The times of a step [s]: of its kernels, their sums, and what follows. */
  function answer(of, B, bounds) {
    const experts = touchedBy(of, BigInt(B));
    const seconds = (value) => number({ n: value, d: of.unit << PLACES });
    const longest = (list) => list.reduce(larger);
    const bound = (list) => bounds[list.indexOf(longest(list))];
    const kernels = of.kernels.map((line) => {
      const { math, memory, activation, network } = timesOf(line, BigInt(B), experts);
      const parts = [math, memory + activation, network];
      return { name: line.name, count: line.count, bound: bound(parts), parts, ops: longest(parts) };
    });
    const { math, memory, activation, network } = timesOf(of.total, BigInt(B), experts);
    const resources = [math, memory, network];
    const inTurn = kernels.reduce((all, { parts }) => all + parts[2], 0n);
    const ops = kernels.reduce((all, kernel) => all + kernel.ops, 0n);
    return {
      kernels: kernels.map((kernel) => ({ ...kernel, parts: kernel.parts.map(seconds), ops: seconds(kernel.ops) })),
      resources: resources.map(seconds),
      bound: bound(resources),
      lower: seconds(longest(resources)),
      ops: seconds(ops),
      upper: seconds(math + memory + activation + inTurn),
      experts: number({ n: experts, d: 1n << PLACES }),
    };
  }

  /** The smallest compute-bound batch of at least `replicas` sequences; from `beyond` on it is not looked for. */
  function critical(of, replicas, beyond, bounds) {
    const [, memoryBound, networkBound] = bounds;
    const { total } = of;
    const [[sent]] = total.exchanges;
    const never = [[total.memory, memoryBound, total.math <= total.memory], [sent, networkBound, total.math < sent]].filter(([, , forbids]) => forbids);
    if (never.length) return { outcome: NEVER, limit: never.reduce((a, b) => (b[0] > a[0] ? b : a))[1] };
    const timed = (B) => timesOf(total, B, touchedBy(of, B));
    const holds = (B) => { const { math, memory, network } = timed(B); return math >= memory && math >= network; };
    let [low, step] = [BigInt(replicas), 1n];
    if (holds(low)) return { outcome: ALWAYS, size: low };
    for (; !holds(low + step); step *= 2n) {
      low += step;
      if (low >= beyond) return { outcome: BEYOND, limit: memoryBound };
    }
    let high = low + step; // does not hold at low, holds at high
    while (high - low > 1n) {
      const middle = (low + high) / 2n;
      if (holds(middle)) high = middle;
      else low = middle;
    }
    const { memory, network } = timed(low);
    const limit = network > memory ? networkBound : memoryBound;
    return high >= beyond ? { outcome: BEYOND, limit } : { outcome: FOUND, size: high, limit };
  }

  /** The bytes on a chip, and the largest batch that fits; `most` and `fits` are null without a known capacity. */
  function footprint(step, machine, dp, S, B) {
    const [weights, one] = [rational(step.weights), at(step.cache, S)];
    const caches = over(times(one, ratio(BigInt(B))), ratio(BigInt(dp)));
    if (machine.capacity === null) return { weights, caches, one, capacity: null, fits: null, most: null };
    const capacity = rational(machine.capacity);
    const room = over(minus(capacity, weights), one);
    return {
      weights, caches, one, capacity,
      fits: compare(plus(weights, caches), capacity) <= 0,
      most: room.n > 0n ? BigInt(dp) * (room.n / room.d) : 0n,
    };
  }

  /** Points at samples of S, and around every change of some of their properties, in order; `solve` gives the point at S.

      `changes` has of each property the last S before a change, exactly, with its value up to there. */
  function curve(solve, samples, names) {
    const sampled = [...samples].sort((a, b) => a - b).map(solve);
    const points = new Map(sampled.map((point) => [point.S, point]));
    const changes = Object.fromEntries(names.map((name) => [name, sampled.slice(1).flatMap((after, i) => {
      let [low, high] = [sampled[i], after];
      if (low[name] === high[name]) return [];
      while (high.S - low.S > 1) {
        const middle = solve(Math.floor((low.S + high.S) / 2));
        if (middle[name] === low[name]) low = middle;
        else high = middle;
      }
      for (const point of [low, high]) points.set(point.S, point);
      return [{ last: low.S, [name]: low[name] }];
    })]));
    return { points: [...points.values()].sort((a, b) => a.S - b.S), changes };
  }

  return { PLACES, FOUND, ALWAYS, NEVER, BEYOND, larger, multiple, at, touchedOf, touchedBy, prepared, lines, answer, critical, footprint, curve };
})();
