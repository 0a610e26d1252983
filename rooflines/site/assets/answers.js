"use strict";
/* A matmul on a chip, and a step of a model on chips. No page is needed.

   No formula of the model is here: works, rates and calibrations are polynomials and factors of the
   data, evaluated in doubles. */

const ANSWERS = (() => {
  const { SLACK, upward, downward, rational, sum, polynomial, firstWhole } = NUMBERS;
  const [FOUND, ALWAYS, NEVER] = ["found", "always", "never"];
  const PLATEAU = 0.9; // share of what large sizes attain by estimate
  const LARGEST = 2 ** 53;
  const LONGEST = 2 ** 26; // context that is looked at

  /** The outcome of a whole size: from the least on, or from a larger one. */
  const outcomeOf = (size, least, more) =>
    size === least ? { outcome: ALWAYS, size, ...more } : { outcome: FOUND, size, ...more };

  // ---------------------------------------------------------------- a matmul

  /** A work of one chip [FLOP or byte] as [slope, constant] along `axis`, or without one its value.

      `side` has the chip's rates, the split and the bytes of an element of each operand. */
  function work({ scheme, n, each }, name, sizes, axis = null) {
    let [slope, constant] = [0, 0];
    for (const [operand, dims, coefficients] of scheme.works[name]) {
      const one = (polynomial(coefficients, n) / n) * (operand ? each[operand] : 1);
      const value = dims.reduce((all, dim) => (dim === axis ? all : all * sizes[dim]), one);
      if (axis && dims.includes(axis)) slope += value;
      else constant += value;
    }
    return axis ? [slope, constant] : constant;
  }

  /** For each resource the lines along `axis` of which the largest is its time: bound, [a, b]. */
  function lines(side, axis, sizes) {
    const of = (name, perSecond) => work(side, name, sizes, axis).map((value) => value / perSecond);
    const found = [
      ["compute", ...of("flops", side.peak)],
      ["memory", ...of("memory_bytes", side.memory)],
    ];
    for (const { seconds, latency } of side.sent) {
      found.push(["network", ...of("network_bytes", 1 / seconds)], ["network", 0, latency]);
    }
    return found;
  }

  /** The times at sizes, and what follows from them. */
  function matmul(side, sizes = side.sizes) {
    const flops = work(side, "flops", sizes);
    const moved = work(side, "memory_bytes", sizes);
    const payload = work(side, "network_bytes", sizes);
    const sent = side.sent.map(({ seconds, latency }) => Math.max(payload * seconds, latency));
    const times = {
      compute: flops / side.peak, memory: moved / side.memory, network: Math.max(0, ...sent),
    };
    const lower = Math.max(...Object.values(times));
    const bound = Object.keys(times).find((name) => times[name] >= lower * (1 - SLACK));
    const footprint = work(side, "footprint_bytes", sizes);
    return {
      flops, times, lower, bound, footprint, attained: flops / lower,
      share: flops / lower / side.nominal, intensity: flops / moved,
      fits: side.capacity ? footprint <= side.capacity : null,
    };
  }

  /** From which size on the math takes longest, for a share of the peak.

      Never: `limit` grows as fast as the math, and the share of the peak tends to `tends`. */
  function critical(side, axis, share = 1, sizes = side.sizes) {
    const [[, slope, constant], ...others] = lines(side, axis, sizes);
    const [gain, start] = [slope / share, constant / share];
    const ahead = others.filter(([, a, b]) =>
      gain < a * (1 + SLACK) && (gain < a * (1 - SLACK) || start < b * (1 - SLACK)));
    if (ahead.length) {
      const [limit, most] = ahead.reduce((a, b) => (b[1] > a[1] ? b : a));
      return { outcome: NEVER, limit, tends: slope / most };
    }
    let [least, limit] = [1, null];
    for (const [bound, a, b] of others) {
      const from = start >= b ? 0 : (b - start) / (gain - a);
      if (from > least) [least, limit] = [from, bound];
    }
    return outcomeOf(Math.max(1, upward(least)), 1, { limit });
  }

  /** The nominal quantities that calibrations weigh, as `work` gives them. */
  function amounts(side, sizes, counted, axis = null) {
    const of = (name, perSecond, at = sizes) => {
      const found = work(side, name, at, axis);
      return axis ? found.map((value) => value / perSecond) : found / perSecond;
    };
    const slowest = Math.max(0, ...side.sent.map((one) => one.seconds)) * side.reached;
    return {
      "": axis ? [0, 1] : 1,
      math: of("flops", side.nominal, counted), memory: of("memory_bytes", side.nominalMemory),
      x: of("x", side.nominalMemory), out: of("out", side.nominalMemory), depth: of("depth", 1),
      network: of("network_bytes", slowest ? 1 / slowest : Infinity),
    };
  }
  const fittedOf = ({ fit, sent, scheme }) => (sent.length ? fit.sent[scheme.collective] : null);
  const spanOf = ({ fit, scheme, n }) => (fit.tile > 1 ? fit.tile * polynomial(scheme.rows, n) : 1);

  /** The calibrated time: what is common, and the largest piece; null without a calibration. */
  function estimate(side, sizes = side.sizes) {
    const { fit, n } = side;
    if (!fit) return null;
    const span = spanOf(side);
    const all = amounts(side, sizes, { ...sizes, B: upward(sizes.B / span) * span });
    const weighed = (affine) =>
      sum(Object.entries(affine).map(([name, factor]) => rational(factor) * all[name]));
    const fitted = fittedOf(side);
    const pieces = fit.pieces.flatMap(([bound, affine]) => {
      if (bound !== "network") return [[bound, weighed(affine)]];
      if (!side.sent.length) return [];
      if (!fitted) {
        return [[bound, Math.max(weighed(affine), ...side.sent.map((one) => one.typical))]];
      }
      const waits = polynomial(fitted.waits, n) / n;
      return [[bound, Math.min(...fitted.protocols.map(weighed)) + waits]];
    });
    const [bound, top] = pieces.reduce((a, b) => (b[1] > a[1] ? b : a));
    const time = weighed(fit.common) + top;
    const band = (fitted ?? fit).bands[bound];
    return { time, bound, band: band ? band.map((share) => share * time) : null };
  }

  /** From which B on the estimate attains `PLATEAU` of the rate that it tends to. */
  function saturates(side) {
    const { fit } = side;
    const slopes = amounts(side, side.sizes, side.sizes, "B");
    const slope = (affine) =>
      sum(Object.entries(affine).map(([name, factor]) => rational(factor) * slopes[name][0]));
    const fitted = fittedOf(side);
    const tops = fit.pieces.map(([bound, affine]) => {
      if (bound !== "network") return slope(affine);
      if (!side.sent.length) return 0;
      return fitted ? Math.min(...fitted.protocols.map(slope)) : slope(affine);
    });
    const each = slope(fit.common) + Math.max(...tops);
    const holds = (B) =>
      estimate(side, { ...side.sizes, B }).time * PLATEAU <= each * B * (1 + SLACK);
    const span = spanOf(side); // within a tile it gets easier, from one to the next harder
    const tile = firstWhole(1, Math.floor(LARGEST / span), (tiles) => holds(tiles * span));
    const size = tile && firstWhole((tile - 1) * span + 1, tile * span, holds);
    return { size, plateau: work(side, "flops", side.sizes, "B")[0] / each };
  }

  // ---------------------------------------------------------------- a step of a model

  /** A function of S in pieces, which come again after a period, higher by a gain. */
  function pieceAt({ pieces, period = 1, gain = null }, S) {
    const turns = gain === null ? 0 : Math.floor((S - pieces[0][0]) / period);
    const at = S - turns * period;
    const value = polynomial(pieces.findLast(([least]) => least <= at)[1], at);
    return turns ? value + turns * rational(gain) : value;
  }

  /** The times of all kernels of a step as lines in B, at a context.

      A work is proportional to B, or to the experts that are touched, or neither. */
  function prepared({ model, machine, place, step, phase, S, rates = {}, link = 1 }) {
    const [all] = Object.values(model.extents[phase]);
    const extents = {};
    for (const [name, pieces] of Object.entries(all)) extents[name] = pieceAt(pieces, S);
    const kindOf = (names) =>
      names[0] === "touched" ? "expert" : names.includes("B") ? "B" : "once";
    const value = (terms, wanted) => sum(Object.entries(terms ?? {}).map(([dims, factor]) => {
      const names = dims.split(" ").filter(Boolean);
      if (kindOf(names) !== wanted) return 0;
      return names.reduce((product, dim) => product * (extents[dim] ?? 1), rational(factor));
    }));
    const rate = (name) => rational(machine.rates[name]) * (rates[name] ?? 1);
    const kernels = step.kernels.map((index) => {
      const { name, count: layers, compute, works, sends } = model.kernels[index];
      const of = (list, wanted, perSecond) =>
        (layers * sum(list.map((one) => value(works[one], wanted)))) / perSecond;
      const [moved, memory] = [["weight_bytes", "cache_bytes"], rate("memory")];
      return {
        name, layers, math: of(["flops"], "B", rate(compute)), memory: of(moved, "B", memory),
        weights: of(moved, "once", memory), expert: of(moved, "expert", memory),
        activation: of(["activation_bytes"], "B", memory),
        sends: sends.map(([kind, payload]) => machine.sends[kind].map(([perByte, latency]) => [
          (layers * value(payload, "B") * rational(perByte)) / link, layers * rational(latency),
        ])),
      };
    });
    const total = { sends: [] };
    for (const name of ["math", "memory", "weights", "expert"]) {
      total[name] = sum(kernels.map((one) => one[name]));
    }
    total.sends = kernels.flatMap((one) => one.sends);
    const touched = step.kernels.map((index) => model.kernels[index].touched).find(Boolean);
    const own = step.on[place];
    return {
      kernels, total, touched: touched?.map(rational), tokens: extents.T, extents,
      estimates: own && step.kernels.map((index, i) => {
        const [common, pieces] = [model.estimates[own[i]].common, model.estimates[own[i]].pieces];
        return { layers: model.kernels[index].count, common, pieces };
      }),
    };
  }

  const expertsOf = ({ touched, tokens }, B) =>
    touched ? touched[0] + touched[1] * touched[2] ** (B * tokens) : 0;

  /** Time on the networks: on each the larger of what is sent and of the hops, of all together. */
  function network(sends, B) {
    const levels = Math.max(0, ...sends.map((one) => one.length));
    const times = Array.from({ length: levels }, (_, i) => {
      const [per, latency] = [0, 1].map((k) => sum(sends.map((one) => one[i]?.[k] ?? 0)));
      return Math.max(per * B, latency);
    });
    return Math.max(0, ...times);
  }
  const parts = (line, B, experts, sent) => [
    line.math * B, line.memory * B + line.weights + line.expert * experts, sent,
  ];
  const wholeParts = (of, B) => parts(of.total, B, expertsOf(of, B), network(of.total.sends, B));

  /** The times of a step: with full overlap, kernel after kernel, and of each kernel. */
  function step(of, B, bounds) {
    const experts = expertsOf(of, B);
    const kernels = of.kernels.map((line) => {
      const inTurn = sum(line.sends.map((one) => network([one], B)));
      const own = parts(line, B, experts, inTurn);
      own[1] += line.activation * B;
      const time = Math.max(...own);
      const bound = bounds[own.indexOf(time)];
      return { name: line.name, layers: line.layers, parts: own, time, bound };
    });
    const all = wholeParts(of, B);
    const lower = Math.max(...all);
    const bound = bounds[all.findIndex((part) => part >= lower * (1 - SLACK))];
    return { kernels, parts: all, lower, bound, ops: sum(kernels.map((one) => one.time)) };
  }

  /** The calibrated time of a step and of its kernels; null without a calibration. */
  function stepEstimate(of, B) {
    if (!of.estimates) return null;
    const experts = expertsOf(of, B);
    const rows = { tokens: of.tokens, sequences: 1 };
    const extent = (dim) => {
      if (dim === "B") return B;
      if (dim === "touched") return experts;
      const [kind, span] = dim.split(":");
      if (kind in rows && span) return upward((B * rows[kind]) / span) * span;
      return of.extents[dim] ?? 1;
    };
    const value = (terms) => sum(Object.entries(terms).map(([dims, factor]) =>
      dims.split(" ").filter(Boolean).reduce((all, dim) => all * extent(dim), rational(factor))));
    const times = of.estimates.map(({ layers, common, pieces }) => {
      const tops = pieces.map(([, sums]) => Math.min(...sums.map(value)));
      return layers * (value(common) + Math.max(0, ...tops));
    });
    return { times, time: sum(times) };
  }

  /** The smallest compute-bound batch; never: what each sequence adds more of than compute. */
  function criticalBatch(of, dp, bounds) {
    const { total } = of;
    const sent = network(total.sends.map((one) => one.map(([per]) => [per, 0])), 1);
    const ahead = [
      [total.memory, bounds[1], total.math <= total.memory], [sent, bounds[2], total.math < sent],
    ].filter(([, , forbids]) => forbids);
    if (ahead.length) {
      const [adds, limit] = ahead.reduce((a, b) => (b[0] > a[0] ? b : a));
      return { outcome: NEVER, limit, adds: [total.math, adds] };
    }
    const size = firstWhole(dp, LARGEST, (B) => {
      const [math, ...others] = wholeParts(of, B);
      return others.every((one) => math >= one * (1 - SLACK));
    });
    return size === null ? { outcome: NEVER, limit: bounds[1], adds: null } : outcomeOf(size, dp);
  }

  /** Bytes on a chip, the largest batch, and the longest context of this batch. */
  function footprint({ step: { weights: of, cache }, split, capacity, S, B }) {
    const weights = rational(of);
    const caches = (pieceAt(cache, S) * B) / split.dp;
    const fits = (context) =>
      weights + (pieceAt(cache, context) * B) / split.dp <= capacity * (1 + SLACK);
    if (capacity === null) {
      return { weights, caches, capacity, most: null, longest: null, fits: null };
    }
    const room = capacity - weights;
    const most = room > 0 ? split.dp * downward(room / pieceAt(cache, S)) : 0;
    const full = fits(1) ? firstWhole(1, LONGEST, (context) => !fits(context)) : 1;
    return { weights, caches, capacity, most, longest: (full ?? LONGEST + 1) - 1, fits: fits(S) };
  }

  return {
    FOUND, ALWAYS, NEVER, PLATEAU, work, matmul, critical, estimate, saturates, prepared, step,
    stepEstimate, criticalBatch, footprint,
  };
})();
