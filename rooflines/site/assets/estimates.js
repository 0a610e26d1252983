"use strict";
/* Calibrated times and thresholds of a step of a model, from the data of steps.py.

   The time of a kernel is what is common plus its largest piece. A piece has a bound, and is the least of a few sums by extents.
   Of each bound the largest pieces of all kernels are added up: a step is compute-bound by estimate where the sum of compute is at
   least every other. Times are whole multiples of a unit, exact as those of steps.js. */

const ESTIMATES = (() => {
  const { rational, ratio, times, number } = EXACT;
  const { PLACES, FOUND, ALWAYS, NEVER, BEYOND, larger, multiple, at, touchedOf, touchedBy } = STEPS;
  const COMPUTE = "compute";
  const ROWS = { tokens: (T) => T, sequences: () => 1n }; // of a sequence, where they are counted in whole spans

  const total = (list) => list.reduce((a, b) => a + b, 0n);
  const largest = (list) => list.reduce(larger);
  const least = (list) => list.reduce((a, b) => (b < a ? b : a));
  const upwards = (n, d) => (n + d - 1n) / d; // a quotient of numbers that are not below zero, rounded up
  const dot = (a, b) => a.reduce((sum, one, i) => sum + one * b[i], 0n);
  const added = (a, b) => ({ by: a.by.map((one, i) => one + b.by[i]), expert: a.expert + b.expert });

  /** The calibrated times of the kernels of a step on a chip, in whole units; null without a calibration.

      `bounds` are all that pieces may have; of equal times the first counts. */
  function prepared(model, step, place, bounds) {
    const own = step.on[place];
    if (!own) return null;
    const kernels = own.map((index, i) => {
      const { name, count } = model.kernels[step.kernels[i]];
      const layers = ratio(BigInt(count));
      const read = (terms) => Object.entries(terms).map(([dims, value]) => [dims.split(" ").filter(Boolean), times(rational(value), layers)]);
      const { common, pieces } = model.estimates[index];
      return { name, count, common: read(common), pieces: pieces.map(([bound, sums]) => [bound, sums.map(read)]) };
    });
    const all = kernels.flatMap(({ common, pieces }) => [common, ...pieces.flatMap(([, sums]) => sums)]).flat();
    const unit = all.reduce((one, [, value]) => multiple(one, value.d), 1n); // units in a second
    const spans = [...new Set(all.flatMap(([dims]) => dims.filter((dim) => dim.split(":")[0] in ROWS)))];
    const whole = (terms) => terms.map(([dims, { n, d }]) => [dims, n * (unit / d)]);
    return {
      unit, spans, bounds,
      touched: touchedOf(model, step),
      kernels: kernels.map((kernel) => ({ ...kernel, common: whole(kernel.common), pieces: kernel.pieces.map(([bound, sums]) => [bound, sums.map(whole)]) })),
    };
  }

  /** The times as lines at S with the extents of a sequence.

      A line has the coefficients `by` 1, B and the rows in whole spans, and the time of an `expert`. */
  function lines({ unit, spans, kernels, bounds, touched }, pieces, S) {
    const extents = Object.fromEntries(Object.entries(pieces).map(([name, of]) => [name, at(of, S).n]));
    const counted = spans.map((dim) => { const [kind, span] = dim.split(":"); return { rows: ROWS[kind](extents.T), span: BigInt(span) }; });
    const places = ["B", ...spans];
    const line = (terms) => terms.reduce((sum, [dims, seconds]) => {
      const value = dims.reduce((product, dim) => product * (extents[dim] ?? 1n), seconds);
      if (dims[0] === "touched") sum.expert += value;
      else sum.by[1 + places.findIndex((dim) => dims.includes(dim))] += value;
      return sum;
    }, { by: Array(1 + places.length).fill(0n), expert: 0n });
    const own = kernels.map(({ name, count, common, pieces: parts }) => ({ name, count, common: line(common), pieces: parts.map(([bound, sums]) => [bound, sums.map(line)]) }));
    const period = counted.reduce((one, { rows, span }) => multiple(one, ratio(rows, span).d), 1n); // sequences after which spans repeat
    return { unit, touched, tokens: extents.T, counted, period, kernels: own, sums: byBound(own, bounds), ahead: [0n, 1n, ...counted.map(({ rows }) => rows)] };
  }

  /** Of each bound the pieces of every kernel that has some; kernels with one line count as one. */
  function byBound(kernels, bounds) {
    return new Map(bounds.map((bound) => {
      const all = kernels.map(({ pieces }) => pieces.filter(([name]) => name === bound).map(([, sums]) => sums)).filter((own) => own.length);
      const single = all.filter((own) => own.flat().length === 1).map(([[one]]) => one);
      const several = all.filter((own) => own.flat().length > 1);
      return [bound, single.length ? [[[single.reduce(added)]], ...several] : several];
    }).filter(([, own]) => own.length));
  }

  // ---------------------------------------------------------------- at a batch

  /** What the coefficients of lines count at a batch. */
  const counts = (of, B) => [1n, B, ...of.counted.map(({ rows, span }) => upwards(B * rows, span) * span)];

  /** The times of a step [s]: of its kernels with all layers, their sums by bound, and what binds. */
  function answer(of, batch) {
    const B = BigInt(batch);
    const [by, experts] = [counts(of, B), touchedBy(of, B)];
    const value = (line) => (dot(line.by, by) << PLACES) + line.expert * experts;
    const seconds = (time) => number({ n: time, d: of.unit << PLACES });
    const bounds = [...of.sums.keys()];
    const binding = (parts) => bounds.reduce((a, b) => (parts.get(b) > parts.get(a) ? b : a)); // of equal ones the first
    const kernels = of.kernels.map(({ name, count, common, pieces }) => {
      const parts = new Map(bounds.map((bound) => [bound, largest([0n, ...pieces.filter(([one]) => one === bound).map(([, sums]) => least(sums.map(value)))])]));
      return { name, count, bound: binding(parts), parts, common: value(common), time: value(common) + largest([...parts.values()]) };
    });
    const sums = new Map(bounds.map((bound) => [bound, total(kernels.map(({ parts }) => parts.get(bound)))]));
    const all = (parts) => Object.fromEntries([...parts].map(([bound, time]) => [bound, seconds(time)]));
    return {
      kernels: kernels.map((kernel) => ({ ...kernel, parts: all(kernel.parts), common: seconds(kernel.common), time: seconds(kernel.time) })),
      sums: all(sums),
      bound: binding(sums),
      time: seconds(total(kernels.map(({ time }) => time))),
    };
  }

  // ---------------------------------------------------------------- the critical batch

  /* Batches whose rows end alike in their spans are B + j L, with the period L of all spans. Among these every line is straight in j.
     The sum of compute is the largest of lines; of another bound, with one piece of each kernel, the sum is one of least lines and of
     experts touched. So their difference is convex: where it is below zero, it is so up to one j, or without end. */

  /** The bounds besides compute. */
  const others = (of) => [...of.sums.keys()].filter((bound) => bound !== COMPUTE);

  /** The first j at which a convex function that is below zero at `from` no longer is; null: none. Its slope tends to `growth`. */
  function turn(f, from, growth) {
    if (growth <= 0n) return null;
    let j = from + upwards(-f(from), growth); // not beyond the turn: no slope is larger
    while (f(j) < 0n) j += j - from;
    for (;;) {
      const [here, before] = [f(j), f(j - 1n)];
      if (before < 0n) return j;
      j -= here / (here - before); // not before the turn
    }
  }

  /** The least j at which a batch from `low` to `high`, plus j periods, may be compute-bound; of one batch, is. null: none, or none up to `most`. */
  function firstPeriod(of, low, high, most) {
    const along = (B) => { const by = counts(of, B); return ({ by: own, expert }) => ({ start: dot(own, by), slope: dot(own, of.ahead) * of.period, expert }); };
    const [above, below] = [along(high), along(low)];
    const computes = (of.sums.get(COMPUTE) ?? []).map((own) => own.flat().map(above));
    const rivals = others(of).map((bound) => of.sums.get(bound).map((pieces) => pieces.map((sums) => sums.map(below))));
    const known = new Map();
    const experts = (j) => known.get(j) ?? known.set(j, touchedBy(of, low + j * of.period)).get(j);
    const value = (j) => ({ start, slope, expert }) => ((start + slope * j) << PLACES) + (expert ? expert * experts(j) : 0n);
    const compute = (j) => total(computes.map((own) => largest(own.map(value(j)))));
    const time = (pieces, j) => total(pieces.map((sums) => least(sums.map(value(j)))));
    const slowest = (own, j) => own.map((pieces) => pieces.reduce((a, b) => (time([b], j) > time([a], j) ? b : a)));
    const fastest = total(computes.map((own) => largest(own.map(({ slope }) => slope))));
    for (let j = 0n; ;) {
      const ahead = rivals.map((own) => slowest(own, j)).find((pieces) => compute(j) < time(pieces, j));
      if (!ahead) return j;
      const growth = fastest - total(ahead.map((sums) => least(sums.map(({ slope }) => slope))));
      j = turn((at) => compute(at) - time(ahead, at), j, growth << PLACES);
      if (j === null || (most !== null && j > most)) return null;
    }
  }

  /** The smallest compute-bound batch of at least `start` sequences; null: none. */
  function smallest(of, start) {
    let [periods, found] = [null, null];
    const ranges = [[start, start + of.period - 1n]];
    while (ranges.length) {
      const [low, high] = ranges.pop();
      const j = firstPeriod(of, low, high, periods);
      if (j === null || (j === periods && low > found)) continue;
      if (low === high) [periods, found] = [j, low];
      else {
        const middle = (low + high) / 2n;
        ranges.push([middle + 1n, high], [low, middle]);
      }
    }
    return found === null ? null : found + periods * of.period;
  }

  /** The sum of a bound for large batches as a line: what a sequence adds on average, and the constant without experts. */
  function end(of, bound) {
    const kernels = (of.sums.get(bound) ?? []).map((pieces) => pieces.map((sums) => sums.map(({ by }) => [dot(by, of.ahead), by[0]])));
    const ahead = ([a, b], [c, d]) => (a === c ? b > d : a > c);
    const lines = kernels.map((pieces) => pieces.map((sums) => sums.reduce((a, b) => (ahead(a, b) ? b : a))).reduce((a, b) => (ahead(b, a) ? b : a)));
    return [0, 1].map((i) => total(lines.map((line) => line[i])));
  }

  /** Whether large batches are compute-bound. */
  function large(of) {
    const [slope, constant] = end(of, COMPUTE);
    return others(of).map((bound) => end(of, bound)).every(([a, b]) => slope > a || (slope === a && constant >= b));
  }

  /** The smallest compute-bound batch of at least `replicas` sequences, and what binds below it; from `beyond` on it has no number. */
  function critical(of, replicas, beyond) {
    const start = BigInt(replicas);
    const size = smallest(of, start);
    if (size === null) return { outcome: NEVER, limit: others(of).reduce((a, b) => (end(of, b)[0] > end(of, a)[0] ? b : a)) };
    if (size === start) return { outcome: ALWAYS, size };
    const limit = answer(of, size - 1n).bound;
    return size >= beyond ? { outcome: BEYOND, limit } : { outcome: FOUND, size, limit };
  }

  return { prepared, lines, answer, critical, large };
})();
