"use strict";
/* The verdict: what is said of the rows of a state. No page is needed.

   A sentence names its chips; a network only where it moves bytes; a lead only where it is larger
   than timings differ from the bound. What cannot run is said first. */

const SENTENCES = (() => {
  const { SLACK, significant, si, seconds, count, percent, short, bytes, several } = NUMBERS;
  const { listed, sum } = NUMBERS;
  const { ALWAYS, NEVER } = ANSWERS;
  const { BOUND, MATMUL, altered, answering, measuredOf, rowOf, shareOf, tokensOf } = STATE;
  const CLEAR = 1.2; // a lead of bounds below this is none, where there are no timings

  const times = (number, chip) => (number > 1 ? `${number} x ${chip.short}` : chip.short);
  const range = ({ low, high }) => `${significant(low)} to ${significant(high)} times`;
  const namesOf = (rows) => listed(rows.map(({ chip }) => chip.short));

  /** The p10 and p90 of an estimate. */
  const within = ({ band }) => (band ? ` (${band.map(seconds).join(" to ")}, p10 to p90)` : "");

  /** Why rows have no numbers; chips with one reason in one sentence. */
  function cannot(rows) {
    const reasons = [...new Set(rows.map(({ lack }) => lack))].filter(Boolean);
    return reasons.map((lack) => `${namesOf(rows.filter((row) => row.lack === lack))}: ${lack}.`);
  }

  /** Which chip is quickest, where that is known; it is of all chosen chips that can run. */
  function leader(now, rows) {
    const able = rows.filter((row) => row.time && row.fits !== false)
      .sort((a, b) => a.time - b.time);
    if (able.length < 2) return null;
    const [first, second] = able;
    const lead = second.time / first.time;
    const [ahead, names] = [significant(lead), namesOf([first, second])];
    const said = `${first.chip.short} is first of the chosen chips: ${seconds(first.time)},`
      + ` ${ahead} times as fast as ${second.chip.short}.`;
    if (first.off && second.off) {
      const spread = Math.max(...[first, second].map(({ off }) => off.high / off.low));
      return lead > spread ? said : `${names} are too close to call: ${ahead} times apart, and`
        + ` timings of one chip spread more.`;
    }
    if (lead <= CLEAR) return `${names} differ by a factor of ${ahead}: no lead.`;
    const by = now.basis === BOUND ? "bound" : "estimate";
    return `By ${by} alone, without timings of both, ${said}`;
  }

  /** The share of the peak that a row tends to which is never compute-bound. */
  const tends = ({ of, all: { adds: [math, most] } }) => percent((math / most) * of.reach);

  /** From which B on the row that is spoken of is compute-bound. */
  function threshold({ of, all, most, footprint }) {
    const noun = most ? "token" : "sequence";
    if (all.outcome === ALWAYS) return "Compute-bound from any B.";
    if (all.outcome === NEVER) {
      const [math, other] = (all.adds ?? []).map(seconds);
      const why = other ? `: each ${noun} adds more ${all.limit} time than compute,`
        + ` ${other} against ${math}` : "";
      const least = most ? `; at most ${tends({ of, all })} of peak` : "";
      return `No B makes it compute-bound${why}${least}.`;
    }
    const from = `Compute-bound from ${several(all.size, noun)}`;
    if (most) {
      return `${from}, 90% of peak from ${most.outcome === ALWAYS ? "any B" : count(most.size)}.`;
    }
    const beyond = footprint.most !== null && all.size > footprint.most;
    return `${from}${beyond ? `, more than the ${count(footprint.most)} that fit` : ""}.`;
  }

  function matmulLead(now, row) {
    const { answer: { bound, lower }, estimate, saturates } = row;
    const [on, at] = [times(now.n, row.chip), `B = ${count(now.B)}`];
    if (!estimate) {
      const share = shareOf(row, lower);
      const part = share >= 1 - SLACK ? "up to all" : `at most ${percent(share)}`;
      return `On ${on} ${part} of peak at ${at}: ${bound}-bound, at least ${seconds(lower)}.`
        + ` ${threshold(row)}`;
    }
    const time = `${seconds(estimate.time)}${within(estimate)}`;
    const size = saturates.size ? ` 90% of its plateau of ${si(saturates.plateau, "FLOP/s")}`
      + ` from ${several(saturates.size, "token")}.` : "";
    return `On ${on} about ${percent(row.share)} of peak at ${at}: ${time},`
      + ` ${estimate.bound}-bound.${size}`;
  }

  /** The time of the collective of a split beside that of the math. */
  const sentLine = ({ chip, of, answer: { parts: [math, , network] } }) => (network > 0
    ? `The ${of.collective} over ${chip.link} takes ${seconds(network)}, the math ${seconds(math)}.`
    : null);

  /** How far timed kernels are from what is shown. */
  function measuredLine(now, { chip, off }) {
    const unknown = "How far off this is, is not known:";
    if (altered(now, chip)) return `${unknown} there are no timings of own numbers.`;
    if (now.n > 1) return `${unknown} timings are of one chip.`;
    if (!off) {
      const others = Object.keys(now.data.measured.by).map((key) => key.split("/"))
        .filter(([what, id]) => what === MATMUL && id === chip.id);
      const only = [...new Set(others.map((one) => one[2]))];
      return `${unknown} no timings of ${chip.short} in ${now.dtypes.name}`
        + `${only.length ? `, only in ${listed(only)}` : ""}.`;
    }
    const { software, n, over, length } = off;
    const what = over !== "bound" ? "this estimate" : length === "short" ? "a bound" : "this bound";
    const which = length === "short" ? ` below ${seconds(now.data.measured.long)}` : "";
    const named = now.data.software[software] ?? software;
    return `Timed kernels take ${range(off)} ${what}${which} (${chip.short}, ${named},`
      + ` ${several(n, "timing")}, p10 to p90).`;
  }

  /** Which tokens B counts, where the layer is that of one expert. */
  function expertLine({ data, D, F }) {
    const [, layer] = data.layers.find((one) => one[2] === D && one[3] === F) ?? [];
    return layer?.includes("expert")
      ? `The layer is one expert's (${layer}): B counts its tokens alone.` : null;
  }

  /** How far served runs are from what is shown: of this chip, or of all. */
  function servedLine(now, { chip, off, answer, time }) {
    const over = now.basis === BOUND || time === null ? "bound" : "estimate";
    const found = off ?? measuredOf(now, "step", "", "", "", over);
    const overlapped = `With full overlap ${seconds(answer.lower)}`;
    if (!found) return `${overlapped}.`;
    const { middle, n, software } = found;
    const of = off ? `${chip.short} in ${now.format}, ${now.data.software[software] ?? software},`
      : "of other models, chips and engines,";
    const which = `(median ${significant(middle)}; ${of} ${several(n, "run")}, p10 to p90).`;
    return over === "bound"
      ? `${overlapped}; served runs take ${range(found)} such a bound ${which}`
      : `Served runs take ${range(found)} such estimates ${which} ${overlapped}.`;
  }

  function trainingLead(now, { chip, answer, share, rate, split }) {
    const sequences = `${several(now.B, "sequence")} of ${count(now.S)} tokens`;
    return `On ${times(split.chips, chip)} a step of training of ${now.model.name} in ${now.format}`
      + ` over ${sequences} takes at least ${seconds(answer.ops)}, kernel after kernel:`
      + ` ${answer.bound}-bound. That is at most ${short(rate)} tokens/s a chip, ${percent(share)}`
      + ` MFU. With full overlap ${seconds(answer.lower)}, without any`
      + ` ${seconds(sum(answer.kernels.flatMap(({ parts }) => parts)))}.`;
  }

  function modelLead(now, { chip, answer, estimate, time, split }) {
    const noun = now.phase === "prefill" ? "a step" : "a token";
    const on = `On ${times(split.chips, chip)} ${noun} of ${now.model.name} in ${now.format}`;
    const known = time ?? answer.ops;
    const rate = short(tokensOf(now, now.B) / known / split.chips);
    const user = `${significant(tokensOf(now, 1) / known)} tokens/s for each of`
      + ` ${several(now.B, "sequence")}, ${rate} a chip.`;
    if (estimate) return `${on} takes about ${seconds(known)}${within(estimate)}: ${user}`;
    return `${on} takes at least ${seconds(known)}, kernel after kernel: ${answer.bound}-bound.`
      + ` That is at most ${user}`;
  }

  /** What a model is not made for, or not published in. */
  const modelLines = ({ model, S, format, trains }) => [
    model.trained && S > model.trained ? `S = ${count(S)} is beyond the ${count(model.trained)}`
      + ` tokens that ${model.name} is made for.` : null,
    format !== model.format && !trains ? `${model.name} is published in ${model.format}.` : null,
  ];

  /** What does not fit a chip, and the split that does. */
  function tooLarge(now, { chip, split, most, footprint }) {
    const { weights, caches, bytes: all, capacity, longest } = footprint;
    const on = ` not fit ${times(most ? now.n : split.chips, chip)}:`;
    const each = split?.chips > 1 ? " on each" : "";
    const room = `, ${bytes(capacity)} of memory`;
    if (most) return `The operands do${on} ${bytes(all)} on a chip${room}.`;
    const { splits } = now.trains ? now.data.steps.training : now.data.steps;
    const enough = splits.find((other) =>
      (now.trains || other.dp === 1) && rowOf({ ...now, split: other }, chip).fits);
    const shorter = now.trains && longest ? `; up to S = ${count(longest)} it does` : "";
    const [held, more] = now.trains ? ["states", "saved tensors"] : ["weights", "caches"];
    return `${now.model.name} in ${now.format} does${on} ${bytes(weights)} of ${held} and`
      + ` ${bytes(caches)} of ${more}${each}${room}`
      + `${enough ? `; ${enough.name} is enough` : shorter}.`;
  }

  /** What cannot run, the lead, which is of one chip, and further lines. */
  function verdict(now, rows) {
    const matmul = now.is === MATMUL;
    const able = rows.filter((row) => !row.lack);
    const full = able.filter(({ fits }) => fits === false);
    const off = [...cannot(rows), ...full.map((row) => tooLarge(now, row))].join(" ");
    const first = matmul ? answering(able) : able.find(({ fits }) => fits !== false);
    if (!first) return { off, lead: "", lines: [] };
    const bare = able.filter(({ time }) => time === null);
    const lines = [
      ...(matmul ? [sentLine(first), measuredLine(now, first), expertLine(now)]
        : [now.basis === BOUND && !now.trains ? threshold(first) : null, ...modelLines(now),
          now.trains ? null : servedLine(now, first)]),
      bare.length ? `Without a calibration: ${namesOf(bare)}.` : null,
      leader(now, able),
    ];
    const lead = (matmul ? matmulLead : now.trains ? trainingLead : modelLead)(now, first);
    return { off, lead, lines: lines.filter(Boolean) };
  }

  return { cannot, range, tends, threshold, verdict };
})();
