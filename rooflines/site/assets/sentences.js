"use strict";
/* The verdict: what is said of the rows of a state. No page is needed.

   A sentence names its chips; a network only where it moves bytes; a lead only where it is larger
   than timings differ from the bound. What cannot run is said first. */

const SENTENCES = (() => {
  const { SLACK, significant, si, seconds, count, percent, short } = NUMBERS;
  const { bytes, several, listed } = NUMBERS;
  const { ALWAYS, NEVER } = ANSWERS;
  const { BOUND, MATMUL, MODEL, altered, answering, measuredOf, rowOf, shareOf, tokensOf } = STATE;
  const CLEAR = 1.2; // a lead of bounds below this is none, where there are no timings

  const times = (number, chip) => (number > 1 ? `${number} x ${chip.short}` : chip.short);

  /** Why rows have no numbers; chips with one reason in one sentence. */
  function cannot(rows) {
    const reasons = new Map();
    for (const { lack, chip } of rows.filter((row) => row.lack)) {
      reasons.set(lack, [...(reasons.get(lack) ?? []), chip.short]);
    }
    const plural = (lack) => lack.replace(/^has /, "have ").replace(/^joins /, "join ")
      .replace(/^is no chip/, "are no chips");
    return [...reasons].map(([lack, chips]) =>
      `${listed(chips)} ${chips.length > 1 ? plural(lack) : lack}.`);
  }

  /** Which chip is quickest, where that is known; it is of all chosen chips that can run. */
  function leader(now, rows) {
    const able = rows.filter((row) => row.time && row.fits !== false)
      .sort((a, b) => a.time - b.time);
    if (able.length < 2) return null;
    const [first, second] = able;
    const [lead, ahead] = [second.time / first.time, significant(second.time / first.time)];
    const names = `${first.chip.short} and ${second.chip.short}`;
    const said = `${first.chip.short} is first of the chosen chips: ${seconds(first.time)},`
      + ` ${ahead} times as fast as ${second.chip.short}.`;
    if (first.off && second.off) {
      if (lead > Math.max(...[first, second].map(({ off }) => off.high / off.low))) return said;
      return `${names} are too close to call: ${ahead} times apart, and timings of one chip spread`
        + ` more.`;
    }
    if (lead <= CLEAR) return `${names} differ by a factor of ${ahead}: no lead.`;
    const estimated = now.basis !== BOUND;
    return `By ${estimated ? "estimate" : "bound"} alone, without timings of both, ${said}`;
  }

  // ---------------------------------------------------------------- a matmul

  const from = ({ outcome, size }) => (outcome === ALWAYS ? "any B" : several(size, "token"));

  /** From which B on a chip is compute-bound, and 90% of its peak attained. */
  const tends = ({ of, all: { adds: [math, most] } }) => percent((math / most) * of.reach);
  function compute(row) {
    const { all, most } = row;
    if (all.outcome === NEVER) {
      return `No B makes it compute-bound: each token adds more ${all.limit} time than compute;`
        + ` at most ${tends(row)} of peak.`;
    }
    if (all.outcome === ALWAYS) return "Compute-bound from any B.";
    const part = most.outcome === ALWAYS ? "any B" : count(most.size);
    return `Compute-bound from ${from(all)}, 90% of peak from ${part}.`;
  }

  function matmulLead(now, row) {
    const { chip, answer, estimate, saturates, of } = row;
    const [on, at] = [times(now.n, chip), `B = ${count(now.B)}`];
    const { bound, lower, parts: [math, , network] } = answer;
    const sent = network > 0
      ? ` The ${of.scheme.collective} over ${chip.link} takes ${seconds(network)}, the math`
        + ` ${seconds(math)}.` : "";
    if (estimate) {
      const { time, band } = estimate;
      const range = band ? ` (${seconds(band[0])} to ${seconds(band[1])})` : "";
      const size = saturates.size ? ` 90% of its plateau of ${si(saturates.plateau, "FLOP/s")}`
        + ` from ${several(saturates.size, "token")}.` : "";
      return `On ${on} about ${percent(row.share)} of peak at ${at}: ${seconds(time)}${range},`
        + ` ${estimate.bound}-bound.${size}${sent}`;
    }
    const share = shareOf(row, lower);
    const part = share >= 1 - SLACK ? "up to all" : `at most ${percent(share)}`;
    return `On ${on} ${part} of peak at ${at}: ${bound}-bound, at least ${seconds(lower)}.`
      + ` ${compute(row)}${sent}`;
  }

  /** How far timed kernels are from what is shown. */
  function measuredLine(now, row) {
    const { chip, off } = row;
    const unknown = "How far off this is, is not known:";
    if (altered(now, chip)) return `${unknown} there are no timings of own numbers.`;
    if (now.n > 1) return `${unknown} timings are of one chip.`;
    if (!off) {
      const others = now.data.measured.rows.filter(([what, id]) =>
        what === MATMUL && id === chip.id);
      const only = [...new Set(others.map((one) => one[3]))];
      return `${unknown} no timings of ${chip.short} in ${now.dtypes.name}`
        + `${only.length ? `, only in ${listed(only)}` : ""}.`;
    }
    const { software, n, low, high, over, length } = off;
    const what = over === "bound" ? `${length === "short" ? "a" : "this"} bound` : "this estimate";
    const which = length === "short" ? ` below ${seconds(now.data.measured.long)}` : "";
    const named = now.data.software[software] ?? software;
    return `Timed kernels take ${significant(low)} to ${significant(high)} times ${what}${which}`
      + ` (${chip.short}, ${named}, ${several(n, "timing")}, p10 to p90).`;
  }

  /** Which tokens B counts, where the layer is that of one expert. */
  function expertLine({ data, D, F }) {
    const [model, layer] = data.layers.find((one) => one[2] === D && one[3] === F) ?? [];
    return layer?.includes("expert")
      ? `The layer is one expert's (${model}): B counts its tokens alone.` : null;
  }

  function matmulVerdict(now, rows) {
    const able = rows.filter((row) => !row.lack);
    const full = able.filter(({ fits }) => fits === false).map(({ chip, footprint }) =>
      `The operands do not fit ${chip.short}: ${bytes(footprint.bytes)} on a chip,`
        + ` ${bytes(footprint.capacity)} of memory.`);
    const off = [...cannot(rows), ...full].join(" ");
    if (!able.length) return { off, lead: "", lines: [] };
    const first = answering(able);
    const others = able.filter((row) => row !== first);
    const lines = [measuredLine(now, first), expertLine(now)];
    if (now.basis === BOUND) {
      const found = others.filter(({ all }) => all.outcome !== NEVER);
      const never = others.filter(({ all }) => all.outcome === NEVER);
      const each = found.map(({ chip, all }) => `${chip.short} from ${from(all)}`);
      if (each.length) lines.push(`Compute-bound too: ${listed(each)}.`);
      if (never.length) {
        const most = never.map((row) => `${row.chip.short} (at most ${tends(row)} of peak)`);
        lines.push(`Never compute-bound: ${listed(most)}.`);
      }
    } else {
      const plain = able.filter((row) => !row.estimate).map(({ chip }) => chip.short);
      const [verb, noun] = plain.length > 1 ? ["have", "their bounds"] : ["has", "its bound"];
      if (plain.length) lines.push(`${listed(plain)} ${verb} no calibration in ${now.dtypes.name};`
        + ` drawn: ${noun}.`);
    }
    lines.push(leader(now, able));
    return { off, lead: matmulLead(now, first), lines: lines.filter(Boolean) };
  }

  // ---------------------------------------------------------------- a step of a model

  function tooLarge(now, row, what) {
    const { weights, caches, capacity } = row.footprint;
    const enough = now.data.steps.splits.filter(({ dp }) => dp === 1)
      .map((split) => rowOf(now, row.chip, split)).find((one) => one.fits);
    const on = times(now.split.chips, row.chip);
    return `${what} does not fit ${on}: ${bytes(weights)} of weights and ${bytes(caches)} of`
      + ` caches on each, ${bytes(capacity)} of memory${enough ? `; ${enough.split.name} is`
      + ` enough` : ""}.`;
  }

  function batchLine(now, { chip, all, footprint }) {
    if (all.outcome === ALWAYS) return `${chip.short} is compute-bound at any batch.`;
    if (all.outcome !== NEVER) {
      const beyond = footprint.most !== null && all.size > footprint.most;
      return `${chip.short} is compute-bound from ${several(all.size, "sequence")}${beyond ? `,`
        + ` more than the ${count(footprint.most)} that fit` : ""}.`;
    }
    const reason = all.adds ? ` at S = ${count(now.S)}: each sequence adds ${seconds(all.adds[0])}`
      + ` of compute and ${seconds(all.adds[1])} of ${all.limit} time` : "";
    return `No batch makes ${chip.short} compute-bound${reason}.`;
  }

  /** How far served runs are from what is shown: of this chip, or of all. */
  function servedLine(now, { chip, off, answer, time }) {
    const bound = now.basis === BOUND || time === null;
    const found = off ?? measuredOf(now, null, bound ? "bound" : "estimate");
    const overlapped = `With full overlap ${seconds(answer.lower)}`;
    if (!found) return `${overlapped}.`;
    const { low, middle, high, n, software } = found;
    const of = off ? `${chip.short} in ${now.format}, ${now.data.software[software] ?? software},`
      : "of other models, chips and engines,";
    const range = `${significant(low)} to ${significant(high)} times`;
    const which = `(median ${significant(middle)}; ${of} ${several(n, "run")}, p10 to p90).`;
    return bound ? `${overlapped}; served runs take ${range} such a bound ${which}`
      : `Served runs take ${range} such estimates ${which} ${overlapped}.`;
  }

  function modelVerdict(now, rows) {
    const what = `${now.model.name} in ${now.format}`;
    const able = rows.filter((row) => !row.lack);
    const off = [
      ...cannot(rows),
      ...able.filter(({ fits }) => fits === false).map((row) => tooLarge(now, row, what)),
    ].join(" ");
    const first = able.find(({ fits }) => fits !== false);
    if (!first) return { off, lead: "", lines: [] };
    const { chip, answer } = first;
    const noun = now.phase === "prefill" ? "a step" : "a token";
    const on = times(now.split.chips, chip);
    const known = first.time ?? answer.ops;
    const bound = now.basis === BOUND || first.time === null;
    const rate = short(tokensOf(now, now.B) / known / now.split.chips);
    const user = `${significant(tokensOf(now, 1) / known)} tokens/s for each of`
      + ` ${several(now.B, "sequence")}, ${rate} a chip`;
    const lead = bound
      ? `On ${on} ${noun} of ${what} takes at least ${seconds(known)}, kernel after kernel:`
        + ` ${answer.bound}-bound. That is at most ${user}.`
      : `On ${on} ${noun} of ${what} takes about ${seconds(known)}: ${user}.`;
    const lines = [];
    if (now.basis !== BOUND) {
      const plain = able.filter((row) => row.time === null).map((row) => row.chip.short);
      if (plain.length) {
        lines.push(`${listed(plain)} ${plain.length > 1 ? "have" : "has"} no calibrated steps`
          + ` here${first.time === null ? ": this is a bound" : ""}.`);
      }
    }
    if (now.model.trained && now.S > now.model.trained) {
      lines.push(`S = ${count(now.S)} is beyond the ${count(now.model.trained)} tokens that`
        + ` ${now.model.name} is made for.`);
    }
    if (now.format !== now.model.format) {
      lines.push(`${now.model.name} is published in ${now.model.format}.`);
    }
    lines.push(servedLine(now, first), batchLine(now, first), leader(now, able));
    return { off, lead, lines: lines.filter(Boolean) };
  }

  const verdict = (now, rows) =>
    (now.subject === MODEL ? modelVerdict(now, rows) : matmulVerdict(now, rows));

  return { cannot, tends, verdict };
})();
