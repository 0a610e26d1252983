"use strict";
/* Evaluates kernels: times, thresholds, estimates, memory. No page is needed.

   No formula of the model is here: works, rates and calibrations are sums of products of the data,
   evaluated in doubles. A time is a line in B: its slope, and what it is at B = 0. A kernel has
   `math`, `memory` and `activation` as lines [s], seconds for each `expert` that is touched, and
   what it `sends`: by collective and level two lines, of bytes and of the least time of hops. */

const ANSWERS = (() => {
  const { SLACK, upward, downward, sum, firstWhole } = NUMBERS;
  const [FOUND, ALWAYS, NEVER] = ["found", "always", "never"];
  const PLATEAU = 0.9; // share of what large sizes attain by estimate
  const LARGEST = 2 ** 53;
  const MANY = 2 ** 30; // tiles from which on an estimate is a line
  const LONGEST = 2 ** 26; // context that is looked at

  /** A sum of products of extents, apart by the first of `axes` that a product has; last the rest.

      `at` gives the other extents. */
  function along(terms, at, ...axes) {
    const found = [...axes, ""].map(() => 0);
    for (const [product, factor] of Object.entries(terms ?? {})) {
      const names = product.split(" ").filter(Boolean);
      const axis = axes.find((one) => names.includes(one));
      const others = names.filter((name) => name !== axis);
      found[axis ? axes.indexOf(axis) : axes.length] +=
        others.reduce((all, name) => all * at(name), factor);
    }
    return found;
  }
  const value = (terms, at) => along(terms, at)[0];
  const lineAt = ([slope, start], B) => slope * B + start;

  /** A function of S in pieces, which come again after a period, higher by a gain. */
  function pieceAt({ pieces, period = 1, gain = null }, S) {
    const turns = gain === null ? 0 : Math.floor((S - pieces[0][0]) / period);
    const at = S - turns * period;
    const [, coefficients] = pieces.findLast(([least]) => least <= at);
    return coefficients.reduceRight((all, one) => all * at + one, 0) + turns * gain;
  }

  /** A kernel in lines, from works as sums of products, rates [1/s], and levels of networks.

      Works that grow with B run once; others as `runs` says, by micro-batches: `per` for each B. */
  function kernelOf({ name, count: layers, compute, works, sends, runs }, at, rate, levelsOf, per) {
    const [every, once] = runs ? along(runs, at, "micro_batches") : [0, 1];
    const often = ([slope, start], seconds) => [slope * once + start * every * per, start * once]
      .map((one) => layers * one * seconds);
    const times = (terms, seconds) => often(along(terms, at, "B"), seconds);
    const memory = 1 / rate("memory");
    const [expert, ...moved] = along(works.memory, at, "touched", "B");
    return {
      name, layers, runs, expert: layers * expert * memory, memory: often(moved, memory),
      math: times(works.math, 1 / rate(compute)), activation: times(works.activation, memory),
      sends: sends.map(([kind, payload]) => levelsOf(kind).map(([perByte, latency]) =>
        [...times(payload, perByte), ...often([0, latency], 1)])),
    };
  }

  /** Kernels with the sums of their times, and `more` of them. */
  function loaded(kernels, more) {
    const both = (name) => [0, 1].map((i) => sum(kernels.map((one) => one[name][i])));
    const sends = kernels.flatMap((one) => one.sends);
    const length = Math.max(0, ...sends.map((one) => one.length));
    const levels = Array.from({ length }, (_, i) =>
      [0, 1, 2, 3].map((k) => sum(sends.map((one) => one[i]?.[k] ?? 0))));
    const expert = sum(kernels.map((one) => one.expert));
    const total = { math: both("math"), memory: both("memory"), expert, levels };
    return { ...more, kernels, total };
  }

  const expertsOf = ({ touched, tokens }, B) =>
    touched ? touched[0] + touched[1] * touched[2] ** (B * tokens) : 0;
  const sentAt = (levels, B) =>
    Math.max(0, ...levels.flatMap(([slope, start, ...hops]) =>
      [lineAt([slope, start], B), lineAt(hops, B)]));
  const partsAt = ({ math, memory, expert }, B, experts, sent) =>
    [lineAt(math, B), lineAt(memory, B) + expert * experts, sent];

  /** The times by resource: with full overlap, serialized, without any overlap, and of
      each kernel. Of a pipeline those of kernels are means: the busiest of `stages`, with its
      `shares` of them, counts, and waits for runs of the others. */
  function times(of, B) {
    const experts = expertsOf(of, B);
    const kernels = of.kernels.map((kernel) => {
      const sent = sum(kernel.sends.map((levels) => sentAt(levels, B)));
      const parts = partsAt(kernel, B, experts, sent);
      parts[1] += lineAt(kernel.activation, B);
      const time = Math.max(...parts);
      return { ...kernel, parts, time, bound: of.bounds[parts.indexOf(time)] };
    });
    const parts = partsAt(of.total, B, experts, sentAt(of.total.levels, B));
    const lower = Math.max(...parts);
    const bound = of.bounds[parts.findIndex((part) => part >= lower * (1 - SLACK))];
    const most = (timeOf) => Math.max(...of.stages.map(({ shares }) => sum(kernels.map((one, i) =>
      timeOf(one) * (shares ? shares[i] * (one.runs ? 1 + of.waits / B : 1) : 1)))));
    const [ops, upper] = [({ time }) => time, (one) => sum(one.parts)].map(most);
    return { kernels, parts, lower, bound, ops, upper };
  }

  /** From which B on, of at least `of.least`, the math takes longest, for a share of the peak.

      Never: `limit` grows as fast as the math; `adds` has what each B adds to both. */
  function critical(of, share = 1) {
    const { math, memory, expert, levels } = of.total;
    const [gain, start] = math.map((one) => one / share);
    const [, MEMORY, NETWORK] = of.bounds;
    const others = [[MEMORY, ...memory], ...levels.flatMap(([slope, at, ...hops]) =>
      [[NETWORK, slope, at], [NETWORK, ...hops]])];
    const ahead = others.filter(([, a, b]) =>
      gain < a * (1 + SLACK) && (gain < a * (1 - SLACK) || start < b * (1 - SLACK)));
    if (ahead.length) {
      const [limit, most] = ahead.reduce((a, b) => (b[1] > a[1] ? b : a));
      return { outcome: NEVER, limit, adds: [math[0], most] };
    }
    const crossings = others.filter(([, , b]) => b > start)
      .map(([, a, b]) => (b - start) / (gain - a));
    const holds = (B) => {
      const [own, ...rest] = partsAt(of.total, B, expertsOf(of, B), sentAt(levels, B));
      return rest.every((one) => own / share >= one * (1 - SLACK));
    };
    const size = expert ? firstWhole(of.least, LARGEST, holds)
      : Math.max(of.least, ...crossings.map(upward));
    if (size === null) return { outcome: NEVER, limit: MEMORY, adds: null };
    return { outcome: size === of.least ? ALWAYS : FOUND, size };
  }

  /** The calibrated time with its band, `times` of kernels if known; null without a calibration.

      Of each kernel it is what is common, and the largest piece: the least of some sums. A step of
      training takes `stretch` times as long as without any overlap. */
  function estimate(of, B) {
    if (!of.estimates && !of.stretch) return null;
    const at = of.extentsAt?.(B);
    const kernels = of.estimates?.map(({ layers, common, pieces }) => {
      const tops = pieces.map(([bound, sums]) =>
        [bound, Math.min(...sums.map((one) => value(one, at)))]);
      const [bound, top] = tops.reduce((a, b) => (b[1] > a[1] ? b : a), [null, 0]);
      return { time: layers * (value(common, at) + top), bound };
    });
    const each = kernels?.map((one) => one.time) ?? null;
    const { bound, upper } = kernels?.[0] ?? times(of, B);
    const time = each ? sum(each) : of.stretch * upper;
    const band = of.bandOf(bound, B)?.map((share) => share * time) ?? null;
    return { time, bound, band, times: each };
  }

  /** From which B on the estimate of a matmul attains `PLATEAU` of the rate that it tends to. */
  function saturates(of) {
    const { span } = of;
    const large = span * MANY;
    const each = (estimate(of, 2 * large).time - estimate(of, large).time) / large;
    const holds = (B) => estimate(of, B).time * PLATEAU <= each * B * (1 + SLACK);
    // Within a tile it gets easier, from one to the next harder.
    const tile = firstWhole(1, Math.floor(LARGEST / span), (tiles) => holds(tiles * span));
    const size = tile && firstWhole((tile - 1) * span + 1, tile * span, holds);
    return { size, plateau: of.flops[0] / each };
  }

  /** Bytes on a chip of the fullest stage, the largest batch, and the longest context of this one,
      a multiple of `cp`. What a stage caches grows with the micro-batches, up to its last. */
  function footprint({ stages, dp, cp, capacity }, S, B, micro = 1) {
    const each = ({ caches }, at) =>
      pieceAt(caches[Math.ceil(Math.min(micro, caches.length)) - 1], at);
    const heldAt = (context) => stages.map((stage) => {
      const [{ weights }, caches] = [stage, (each(stage, context) * B) / dp];
      return { weights, caches, capacity, bytes: weights + caches };
    }).reduce((a, b) => (b.bytes > a.bytes ? b : a));
    const held = heldAt(S);
    if (capacity === null) return { ...held, most: null, longest: null, fits: null };
    const fits = (parts) => heldAt(parts * cp).bytes <= capacity * (1 + SLACK);
    const rooms = stages.map((one) => Math.max(0, (capacity - one.weights) / each(one, S)));
    const full = fits(1) ? firstWhole(1, LONGEST, (parts) => !fits(parts)) : 1;
    return { ...held, most: dp * downward(Math.min(...rooms)), fits: fits(S / cp),
      longest: ((full ?? LONGEST + 1) - 1) * cp };
  }

  return {
    FOUND, ALWAYS, NEVER, PLATEAU, along, value, lineAt, pieceAt, kernelOf, loaded, expertsOf,
    times, critical, estimate, saturates, footprint,
  };
})();
