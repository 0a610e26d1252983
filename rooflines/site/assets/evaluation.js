"use strict";
/* Evaluates kernels: times, thresholds, estimates, memory. No page is needed.

   No model formula is here: works, rates and calibrations are sums of products from the page's
   data, evaluated in doubles.

   A line in B is { slope, intercept }. A kernel has `math`, `memory` and `activation`
   as lines [s], `expertSeconds` per activated expert [s], and `transfers`: each a list with network
   levels, { bytes, hops }, two lines [s]; the larger one counts. A workload has kernels, their
   `total`, and all else that an evaluation needs but B. */

const EVALUATION = (() => {
  const { TOLERANCE, ceil, floor, sum, firstInteger } = NUMBERS;
  const [FOUND, ALWAYS, NEVER] = ["found", "always", "never"];
  const BEYOND = "beyond"; // compute-bound, but beyond the largest size
  const [COMPUTE, MEMORY, NETWORK] = ["compute", "memory", "network"];
  const RESOURCES = [COMPUTE, MEMORY, NETWORK]; // the first of equal times is the bottleneck
  const PLATEAU_SHARE = 0.9; // of the rate that large sizes attain by estimate
  const MAX_SIZE = 2 ** 53;
  const MANY_TILES = 2 ** 30; // from here on an estimate is a line
  const MAX_CONTEXT = 2 ** 26;
  const ZERO = { slope: 0, intercept: 0 };

  // ------------------------------------------------------------ sums of products, lines, pieces

  /** Coefficients by axis, last those of products without any.

      A product counts for the first axis that it has; `extent` gives the other extents. */
  function coefficientsAlong(terms, extent, ...axes) {
    const coefficients = [...axes, null].map(() => 0);
    for (const [product, factor] of Object.entries(terms ?? {})) {
      const names = product.split(" ").filter(Boolean);
      const axis = axes.find((name) => names.includes(name));
      const rest = names.filter((name) => name !== axis);
      const place = axis ? axes.indexOf(axis) : axes.length;
      coefficients[place] += rest.reduce((value, name) => value * extent(name), factor);
    }
    return coefficients;
  }
  /** Value of terms. */
  const evaluate = (terms, extent) => coefficientsAlong(terms, extent)[0];
  /** Terms as a line in B. */
  function lineInB(terms, extent) {
    const [slope, intercept] = coefficientsAlong(terms, extent, "B");
    return { slope, intercept };
  }
  const lineAt = ({ slope, intercept }, B) => slope * B + intercept;
  const scaleLine = ({ slope, intercept }, factor) =>
    ({ slope: slope * factor, intercept: intercept * factor });
  const addLines = (lines) => ({
    slope: sum(lines.map(({ slope }) => slope)),
    intercept: sum(lines.map(({ intercept }) => intercept)),
  });

  /** Piecewise polynomial at S; pieces repeat after a `period`, each time higher by `gain`. */
  function piecewiseAt({ pieces, period = 1, gain = null }, S) {
    const repeats = gain === null ? 0 : Math.floor((S - pieces[0].start) / period);
    const at = S - repeats * period;
    const { coefficients } = pieces.findLast(({ start }) => start <= at);
    const value = coefficients.reduceRight((total, coefficient) => total * at + coefficient, 0);
    return value + repeats * gain;
  }

  // --------------------------------------------------------------------- kernels and workloads

  /** Kernel with lines in B, from its works, rates [1/s] and network levels.

      Works that grow with B run once per step. All else runs `runs` times, terms in
      micro-batches; `microBatches` is their number per sequence. */
  function lineKernel(kernel, { extent, rate, networkLevels, microBatches }) {
    const { name, count, compute, works, transfers, runs, cache, shared } = kernel;
    const [perMicroBatch, once] = runs
      ? coefficientsAlong(runs, extent, "micro_batches") : [0, 1];
    const repeated = ({ slope, intercept }) => ({
      slope: slope * once + intercept * perMicroBatch * microBatches, intercept: intercept * once,
    });
    const timeLine = (work, secondsPerUnit) =>
      scaleLine(scaleLine(repeated(work), count), secondsPerUnit);
    const secondsPerByte = 1 / rate("memory");
    const [expertBytes, slope, intercept] =
      coefficientsAlong(works.memory, extent, "activated_experts", "B");
    const transferLevels = ({ collective, payload }) => networkLevels(collective).map((level) => ({
      bytes: timeLine(lineInB(payload, extent), level.secondsPerByte),
      hops: timeLine({ slope: 0, intercept: level.latency }, 1),
    }));
    return {
      name, count, runs, shared, cache: timeLine(lineInB(cache, extent), secondsPerByte),
      math: timeLine(lineInB(works.math, extent), 1 / rate(compute)),
      memory: timeLine({ slope, intercept }, secondsPerByte),
      expertSeconds: count * expertBytes * secondsPerByte,
      activation: timeLine(lineInB(works.activation, extent), secondsPerByte),
      transfers: transfers.map(transferLevels),
    };
  }

  /** Workload with kernels: their summed lines as `total`, and `fields`. */
  function makeWorkload(kernels, fields) {
    const transfers = kernels.flatMap((kernel) => kernel.transfers);
    const length = Math.max(0, ...transfers.map((levels) => levels.length));
    const levels = Array.from({ length }, (_, i) => ({
      bytes: addLines(transfers.map((transfer) => transfer[i]?.bytes ?? ZERO)),
      hops: addLines(transfers.map((transfer) => transfer[i]?.hops ?? ZERO)),
    }));
    const total = {
      math: addLines(kernels.map(({ math }) => math)),
      memory: addLines(kernels.map(({ memory }) => memory)),
      expertSeconds: sum(kernels.map(({ expertSeconds }) => expertSeconds)),
      levels,
    };
    return { ...fields, kernels, total };
  }

  /** Experts that B sequences activate: base + scale · ratio^tokens. */
  function activatedExperts({ activated, tokens }, B) {
    if (!activated) return 0;
    const { base, scale, ratio } = activated;
    return base + scale * ratio ** (B * tokens);
  }

  // ------------------------------------------------------------------------------------- times

  /** Network time, levels sending concurrently: the largest line at B [s]. */
  const networkTime = (levels, B) =>
    Math.max(0, ...levels.flatMap(({ bytes, hops }) => [lineAt(bytes, B), lineAt(hops, B)]));

  /** Times by resource [s]. */
  const resourceTimes = ({ math, memory, expertSeconds }, B, experts, network) => ({
    [COMPUTE]: lineAt(math, B),
    [MEMORY]: lineAt(memory, B) + expertSeconds * experts,
    [NETWORK]: network,
  });

  /** Kernel times by resource with activation traffic, their maximum and bottleneck. */
  function kernelTimes(kernel, B, experts) {
    const network = sum(kernel.transfers.map((levels) => networkTime(levels, B)));
    const byResource = resourceTimes(kernel, B, experts, network);
    byResource[MEMORY] += lineAt(kernel.activation, B);
    const time = Math.max(...Object.values(byResource));
    const bound = RESOURCES.find((resource) => byResource[resource] === time);
    return { ...kernel, byResource, time, bound };
  }

  /** Sum over kernels on the busiest pipeline stage, with its `shares` and the bubble. */
  function busiestStage({ stages, bubbleRuns }, kernels, B, kernelTime) {
    const stageTime = ({ shares }) => sum(kernels.map((kernel, i) => {
      const runs = shares ? shares[i] * (kernel.runs ? 1 + bubbleRuns / B : 1) : 1;
      return kernelTime(kernel) * runs;
    }));
    return Math.max(...stages.map(stageTime));
  }

  /** Times at B [s]: `lower` with full overlap, `serial` without overlap between
      kernels, `upper` without any; by resource and by kernel, with the bottleneck. */
  function times(workload, B) {
    const { total } = workload;
    const experts = activatedExperts(workload, B);
    const kernels = workload.kernels.map((kernel) => kernelTimes(kernel, B, experts));
    const byResource = resourceTimes(total, B, experts, networkTime(total.levels, B));
    const lower = Math.max(...Object.values(byResource));
    const bound = RESOURCES.find((resource) => byResource[resource] >= lower * (1 - TOLERANCE));
    const serial = busiestStage(workload, kernels, B, ({ time }) => time);
    const upper = busiestStage(workload, kernels, B,
      (kernel) => sum(RESOURCES.map((resource) => kernel.byResource[resource])));
    return { kernels, byResource, lower, bound, serial, upper };
  }

  // -------------------------------------------------------------------------------- thresholds

  /** Memory and network lines, with their resources. */
  function limitLines({ memory, levels }) {
    const network = levels.flatMap(({ bytes, hops }) => [bytes, hops]);
    return [
      { resource: MEMORY, ...memory },
      ...network.map((line) => ({ resource: NETWORK, ...line })),
    ];
  }

  /** Critical batch: the smallest B at which math takes longest, times `share`.

      `share` is the peak share to attain. Outcome `never` has the `limit` and what one more B
      adds [s] to math, `mathSlope`, and to the limit, `limitSlope`. */
  function critical(workload, share = 1) {
    const { total, minBatch } = workload;
    const math = {
      slope: total.math.slope / share, intercept: total.math.intercept / share,
    };
    const limits = limitLines(total);
    const staysAbove = ({ slope, intercept }) => math.slope < slope * (1 + TOLERANCE)
      && (math.slope < slope * (1 - TOLERANCE) || math.intercept < intercept * (1 - TOLERANCE));
    const above = limits.filter(staysAbove);
    if (above.length) {
      const steepest = above.reduce((a, b) => (b.slope > a.slope ? b : a));
      return {
        outcome: NEVER, limit: steepest.resource,
        mathSlope: total.math.slope, limitSlope: steepest.slope,
      };
    }
    const isComputeBound = (B) => {
      const experts = activatedExperts(workload, B);
      const byResource = resourceTimes(total, B, experts, networkTime(total.levels, B));
      const enough = byResource[COMPUTE] / share;
      return [MEMORY, NETWORK].every((name) => enough >= byResource[name] * (1 - TOLERANCE));
    };
    const crossings = limits.filter(({ intercept }) => intercept > math.intercept)
      .map(({ slope, intercept }) => (intercept - math.intercept) / (math.slope - slope));
    const size = total.expertSeconds ? firstInteger(minBatch, MAX_SIZE, isComputeBound)
      : Math.max(minBatch, ...crossings.map(ceil));
    if (size === null) return { outcome: NEVER, limit: MEMORY, mathSlope: null, limitSlope: null };
    return { outcome: size === minBatch ? ALWAYS : FOUND, size };
  }

  // --------------------------------------------------------------------------------- estimates

  /** Kernel's calibrated time [s]: common + max over pieces of min over sums; collectives may have
      other extents. */
  function kernelEstimate({ count, common, pieces }, extent, collectiveExtent = extent) {
    const largest = { bound: null, seconds: 0 };
    for (const { bound, sums } of pieces) {
      const extentHere = bound === NETWORK ? collectiveExtent : extent;
      const seconds = Math.min(...sums.map((terms) => evaluate(terms, extentHere)));
      if (seconds > largest.seconds) Object.assign(largest, { bound, seconds });
    }
    return { time: count * (evaluate(common, extent) + largest.seconds), bound: largest.bound };
  }

  /** Time and bottleneck by the calibration; null without one. */
  function calibratedTime(workload, B) {
    const { estimates, slowdown } = workload;
    if (estimates) {
      const extent = workload.extentsAt(B);
      const kernels = estimates.map((terms) => kernelEstimate(terms, extent));
      const kernelSeconds = kernels.map(({ time }) => time);
      return { time: sum(kernelSeconds), bound: kernels[0].bound, kernelSeconds };
    }
    if (!slowdown) return null;
    const { lower, upper, serial, bound, byResource } = times(workload, B);
    const computing = byResource[COMPUTE] * (1 + workload.bubbleRuns / B);
    const time = workload.of_math ? Math.max(serial, slowdown * computing) : slowdown * upper;
    return { time, bound, least: lower, kernelSeconds: null };
  }

  /** Estimate [s] with its band, p10 to p90, and kernel times; null without a calibration.

      A training step takes `slowdown` times its time without overlap, or its math with the
      bubble; its band is at least the bound. */
  function estimate(workload, B) {
    const calibrated = calibratedTime(workload, B);
    if (!calibrated) return null;
    const { time, bound, least = 0 } = calibrated;
    const band = workload.bandAt(bound, B)?.map((ratio) => Math.max(least, ratio * time)) ?? null;
    return { ...calibrated, band };
  }

  /** Plateau in a matmul's estimate: the `rate` that it tends to [FLOP/s], and the smallest B, as
      `size`, that attains `PLATEAU_SHARE` of it. */
  function plateau(workload) {
    const { span, flops } = workload;
    const large = span * MANY_TILES;
    const secondsPerRow =
      (estimate(workload, 2 * large).time - estimate(workload, large).time) / large;
    const attains = (B) => {
      const seconds = estimate(workload, B).time;
      return seconds * PLATEAU_SHARE <= secondsPerRow * B * (1 + TOLERANCE);
    };
    // Within a tile a larger B attains more; the next tile begins lower.
    const tile = firstInteger(1, Math.floor(MAX_SIZE / span), (tiles) => attains(tiles * span));
    const size = tile && firstInteger((tile - 1) * span + 1, tile * span, attains);
    return { size, rate: flops.slope / secondsPerRow };
  }

  // ------------------------------------------------------------------------------------ memory

  /** Memory on the fullest pipeline stage at S and B [byte], `maxBatch` and `maxContext`.

      `microBatches` in flight select the cache: a stage's last entry holds for any more. The
      longest context is a multiple of `cp`. */
  function footprint({ stages, dp, cp, capacity }, S, B, microBatches = 1) {
    const bytesPerSequence = ({ cache_bytes: caches }, context) => {
      const inFlight = Math.ceil(Math.min(microBatches, caches.length));
      return piecewiseAt(caches[inFlight - 1], context);
    };
    const fullestAt = (context) => stages.map((stage) => {
      const cacheBytes = (bytesPerSequence(stage, context) * B) / dp;
      const fixedBytes = stage.fixed_bytes;
      return { fixedBytes, cacheBytes, capacity, bytes: fixedBytes + cacheBytes };
    }).reduce((a, b) => (b.bytes > a.bytes ? b : a));
    const fullest = fullestAt(S);
    if (capacity === null) return { ...fullest, maxBatch: null, maxContext: null, fits: null };
    const fits = (shards) => fullestAt(shards * cp).bytes <= capacity * (1 + TOLERANCE);
    const sequences = stages.map((stage) =>
      Math.max(0, (capacity - stage.fixed_bytes) / bytesPerSequence(stage, S)));
    const tooLong = fits(1) ? firstInteger(1, MAX_CONTEXT, (shards) => !fits(shards)) : 1;
    return {
      ...fullest, fits: fits(S / cp), maxBatch: dp * floor(Math.min(...sequences)),
      maxContext: ((tooLong ?? MAX_CONTEXT + 1) - 1) * cp,
    };
  }

  return {
    FOUND, ALWAYS, NEVER, BEYOND, PLATEAU_SHARE, RESOURCES, kernelEstimate, evaluate, lineInB,
    lineAt, scaleLine, piecewiseAt, lineKernel, makeWorkload, activatedExperts, times, critical,
    estimate, plateau, footprint,
  };
})();
