"use strict";
/* The verdict: sentences about the rows of a state. No page is needed.

   A sentence names its chips; a network only where it moves bytes; a lead only where it is larger
   than timings differ from the bound. What cannot run is said first. */

const SENTENCES = (() => {
  const { SLACK, significant, si, seconds, count, percent, short, bytes, several } = NUMBERS;
  const { listed } = NUMBERS;
  const { ALWAYS, NEVER } = ANSWERS;
  const { BOUND, MATMUL, altered, featuredRow, measuredOf, rowOf, shareOf, tokensOf } = STATE;
  const UNKNOWN = "Accuracy unknown:";
  const CLEAR = 1.2; // a lead of bounds below this is none, where there are no timings

  const times = (number, chip) => (number > 1 ? `${number} × ${chip.short}` : chip.short);
  const range = ({ low, high }) => `${significant(low)} to ${significant(high)} times`;
  const namesOf = (rows) => listed(rows.map(({ chip }) => chip.short));

  /** The p10 and p90 of an estimate. */
  const within = ({ band }) => (band ? ` (${band.map(seconds).join(" to ")}, p10 to p90)` : "");

  /** Why rows have no numbers; chips with one reason in one sentence. */
  function cannot(rows) {
    const reasons = [...new Set(rows.map(({ unsupported }) => unsupported))].filter(Boolean);
    return reasons.map((reason) =>
      `${namesOf(rows.filter((row) => row.unsupported === reason))}: ${reason}.`);
  }

  /** The fastest of all chosen chips that can run, if the lead exceeds the spread of timings. */
  function leader(now, rows) {
    const able = rows.filter((row) => row.time && row.fits !== false)
      .sort((a, b) => a.time - b.time);
    if (able.length < 2) return null;
    const [first, second] = able;
    const lead = second.time / first.time;
    const [ahead, names] = [significant(lead), namesOf([first, second])];
    const said = `${first.chip.short} is the fastest of the chosen chips: ${seconds(first.time)},`
      + ` ${ahead} times as fast as ${second.chip.short}.`;
    if (first.measuredRatio && second.measuredRatio) {
      const ratios = [first, second].map((row) => row.measuredRatio);
      const spread = Math.max(...ratios.map(({ low, high }) => high / low));
      return lead > spread ? said : `${names} are too close to call: ${ahead} times apart, and`
        + ` timings of one chip spread more.`;
    }
    if (lead <= CLEAR) return `${names} differ by a factor of ${ahead}: no lead.`;
    const by = now.basis === BOUND ? "bound" : "estimate";
    return `By ${by} alone, without timings of both, ${said}`;
  }

  /** The share of the peak that a row tends to which is never compute-bound. */
  const tends = ({ of, critical: { adds: [math, most] } }) => percent((math / most) * of.reach);

  /** The critical batch of the row. */
  function threshold({ of, critical, critical90, footprint }) {
    const noun = critical90 ? "token" : "sequence";
    if (critical.outcome === ALWAYS) return "Compute-bound from any B.";
    if (critical.outcome === NEVER) {
      const [math, other] = (critical.adds ?? []).map(seconds);
      const why = other ? `: each ${noun} adds more ${critical.limit} time than compute,`
        + ` ${other} against ${math}` : "";
      const least = critical90 ? `; at most ${tends({ of, critical })} of peak` : "";
      return `No B makes it compute-bound${why}${least}.`;
    }
    const from = `Compute-bound from ${several(critical.size, noun)}`;
    if (critical90) {
      const size = critical90.outcome === ALWAYS ? "any B" : count(critical90.size);
      return `${from}, 90% of peak from ${size}.`;
    }
    const beyond = footprint.most !== null && critical.size > footprint.most;
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

  /** Quantiles of timed kernels over the shown time. */
  function measuredLine(now, { chip, measuredRatio }) {
    const { timed: { [chip.id]: only }, long } = now.data.measured;
    if (altered(now, chip)) return `${UNKNOWN} no timings for custom numbers.`;
    if (now.n > 1) return `${UNKNOWN} timings are of one chip.`;
    if (!measuredRatio) {
      const others = only ? `, only in ${only}` : "";
      return `${UNKNOWN} no timings of ${chip.short} in ${now.dtypes.name}${others}.`;
    }
    const { over, length, said } = measuredRatio;
    const subject = over !== "bound" ? "this estimate"
      : length === "short" ? `a bound below ${seconds(long)}` : "this bound";
    const below = over === "bound" && measuredRatio.low < 1 ? "; those below it in cache" : "";
    return `Timed kernels take ${range(measuredRatio)} ${subject} (${said}, p10 to p90${below}).`;
  }

  /** Which tokens B counts, where the layer is that of one expert. */
  function expertLine({ data, D, F }) {
    const [layer] = data.layers.find((one) => one[1] === D && one[2] === F) ?? [];
    return layer?.includes("expert")
      ? `The layer is one expert's (${layer}): B counts its tokens alone.` : null;
  }

  /** What overlap changes in a step of training, and what its estimate is. */
  function overlapLine({ data: { software: names } }, { of, answer: { lower, upper } }) {
    const { stretch, fittedTo, software } = of;
    const overlap = `With full overlap ${seconds(lower)}, without any ${seconds(upper)}.`;
    return stretch ? `${overlap} The estimate is ${significant(stretch)} times the latter, as in`
      + ` ${several(fittedTo, "measured step")} (${names[software] ?? software}).` : overlap;
  }

  /** Quantiles of served runs over the shown time, for this chip or all; only decode is timed. */
  function servedLine(now, { measuredRatio, answer, time }) {
    const over = now.basis === BOUND || time === null ? "bound" : "estimate";
    const quantiles = measuredRatio ?? measuredOf(now, now.phase, "", "", "", over);
    const overlapped = `With full overlap ${seconds(answer.lower)}`;
    if (!quantiles) return `${UNKNOWN} no timings of ${now.phase}. ${overlapped}.`;
    const which = `(median ${significant(quantiles.middle)}; ${quantiles.said}, p10 to p90).`;
    return over === "bound"
      ? `${overlapped}; served runs take ${range(quantiles)} such a bound ${which}`
      : `Served runs take ${range(quantiles)} such estimates ${which} ${overlapped}.`;
  }

  /** A step of a model: its time, and what that gives a chip, and a user or of the peak. */
  function modelLead(now, row) {
    const [{ trains, phase, model, format }, { chip, answer, estimate, time, split }] = [now, row];
    const noun = trains ? "a step of training" : phase === "prefill" ? "a step" : "a token";
    const sequences = several(now.B, "sequence");
    const over = trains ? ` over ${sequences} of ${count(now.S)} tokens` : "";
    const on = `On ${times(split.chips, chip)} ${noun} of ${model.name} in ${format}${over} takes`;
    const known = time ?? answer.ops;
    const rate = short(tokensOf(now, now.B) / known / split.chips);
    const user = `${significant(tokensOf(now, 1) / known)} tokens/s for each of ${sequences}`;
    const gives = trains ? `${rate} tokens/s a chip, ${percent(shareOf(row, known))} MFU`
      : `${user}, ${rate} a chip`;
    if (estimate) return `${on} about ${seconds(known)}${within(estimate)}: ${gives}.`;
    return `${on} at least ${seconds(known)}, serialized: ${answer.bound}-bound.`
      + ` That is at most ${gives}.`;
  }

  /** What a model is not made for, or not published in. */
  const modelLines = ({ model, S, format, trains }) => [
    model.trained && S > model.trained ? `S = ${count(S)} is beyond the ${count(model.trained)}`
      + ` tokens that ${model.name} is made for.` : null,
    format !== model.format && !trains ? `${model.name} is published in ${model.format}.` : null,
  ];

  /** The axes of a torus that chips take, where they take several. */
  const axesLine = ({ of: { axes } }) => (axes ? `The chips take axes ${axes} of a torus.` : null);

  /** The split with which a step fits a chip, or in training the context. */
  function remedy(now, { chip, footprint: { longest } }) {
    const enough = now.splits.find((split) =>
      (now.trains || split.dp === 1) && rowOf({ ...now, split }, chip).fits);
    if (enough) return `; ${enough.name} is enough`;
    return now.trains && longest ? `; up to S = ${count(longest)} it does` : "";
  }

  /** What does not fit which chips, and what would. */
  function tooLarge(now, rows) {
    if (!rows.length) return [];
    const [{ critical90, split, footprint: { weights, caches, bytes: total } }] = rows;
    const chips = listed(rows.map((row) => `${times(critical90 ? now.n : split.chips, row.chip)}`
      + ` (${bytes(row.footprint.capacity)} of memory${critical90 ? "" : remedy(now, row)})`));
    if (critical90) return [`The operands do not fit ${chips}: ${bytes(total)} on a chip.`];
    const [main, cached] = now.trains ? ["states", "saved tensors"] : ["weights", "KV cache"];
    return [`${now.model.name} in ${now.format} does not fit ${chips}: ${bytes(weights)} of ${main}`
      + ` and ${bytes(caches)} of ${cached} on ${split.chips > 1 ? "each" : "the"} chip.`];
  }

  /** What cannot run, the lead, which is of one chip, and further lines. */
  function verdict(now, rows) {
    const matmul = now.is === MATMUL;
    const able = rows.filter((row) => !row.unsupported);
    const full = able.filter(({ fits }) => fits === false);
    const off = [...cannot(rows), ...tooLarge(now, full)].join(" ");
    const first = featuredRow(able);
    if (!first || (!matmul && first.fits === false)) return { off, lead: "", lines: [] };
    const bare = able.filter(({ time }) => time === null);
    const lines = [
      ...(matmul ? [sentLine(first), measuredLine(now, first), expertLine(now)]
        : [now.basis === BOUND && !now.trains ? threshold(first) : null, ...modelLines(now),
          axesLine(first), (now.trains ? overlapLine : servedLine)(now, first)]),
      bare.length ? `Without a calibration: ${namesOf(bare)}.` : null,
      leader(now, able),
    ];
    const lead = (matmul ? matmulLead : modelLead)(now, first);
    return { off, lead, lines: lines.filter(Boolean) };
  }

  return { cannot, range, tends, threshold, verdict };
})();
