"use strict";
/* The two pictures of a state: roofline and attained rate, or rates and time by kernel.

   A picture has a `title`, a `note`, and what `SVG.draw` takes, or sentences `instead` of it. */

const PICTURES = (() => {
  const { significant, si, seconds, count, percent, short, several, listed, sum } = NUMBERS;
  const { FOUND, NEVER, PLATEAU } = ANSWERS;
  const { BOUND, CALIBRATED, MODEL, measuredRatioOf, stepOf, timeOf, tokensOf } = STATE;
  const { cannot, range, threshold } = SENTENCES;
  const { $, make } = ROOFLINES;
  const KERNELS = 6; // named in the picture of times, the largest; the rest is one
  const MOST_BATCH = 4096; // of pictures of steps
  const [LEAST_CONTEXT, MOST_CONTEXT] = [1024, 131072]; // of pictures of training
  const SHARES = [0, 0.2, 0.4, 0.6, 0.8, 1];

  const colourOf = ({ colours }) => `light-dark(${colours.join(", ")})`;
  /** The style of an element in which `--c` is the colour of a chip, and a dot of that colour. */
  const styleOf = (chip) => `--c: ${colourOf(chip)}`;
  const swatch = () => make("span", { class: "swatch", "aria-hidden": "true" });

  /** Whole numbers between two, some for each factor of two. */
  function octaves(from, to, per) {
    const length = Math.max(0, Math.ceil(Math.log2(to / from) * per)) + 1;
    const at = (_, i) => Math.min(to, Math.round(from * 2 ** (i / per)));
    return [...new Set([...Array.from({ length }, at), to])];
  }

  /** A mark of `SVG.draw` in the colour of a chip, and one at a size. */
  const mark = (kind, chip, points, more = {}) =>
    ({ kind, points, colour: colourOf(chip), ...more });
  const rule = (size, text) => ({ kind: "rule", points: [[size, 1]], text });
  const ring = (above, below) => [...above, ...below.toReversed()];

  const axis = (from, to, title) => ({ from, to, title, text: short });
  /** An axis with some room around all points of marks, at place 0 or 1 of them. */
  function around(marks, place, title, below, above) {
    const all = marks.flatMap(({ points }) => points.map((one) => one[place]));
    return axis(Math.min(...all) / below, Math.max(...all) * above, title);
  }

  const roof = ({ rates: { peak, memory } }, intensity) => Math.min(peak, intensity * memory);
  const ridgeOf = ({ rates: { peak, memory } }) => peak / memory;
  const intensityOf = ({ flops, moved }, B) =>
    ANSWERS.lineAt(flops, B) / ANSWERS.lineAt(moved, B);
  const attained = ({ flops }, B, time) => ANSWERS.lineAt(flops, B) / time;
  /** The axis of rates of a matmul, around those of marks. */
  const rates = (now, marks) =>
    around(marks, 1, now.n > 1 ? "FLOP/s of a chip" : "FLOP/s", 1.6, 1.7);

  /** Where timed kernels are under the roof of a chip. */
  function measuredBand(now, row, ends) {
    const [{ chip, of }, found] = [row, measuredRatioOf(now, row, true)];
    if (!found) return [];
    const edge = (ratio) => ends(of).map((one) => [one, roof(of, one) / ratio]);
    const tip = `${found.said}: ${range(found)} the bound`;
    return [mark("area", chip, ring(edge(found.low), edge(found.high)), { faint: true, tip })];
  }

  function roofline(now, able) {
    const intensities = able.map(({ of }) => intensityOf(of, now.B));
    const all = [...able.map(({ of }) => ridgeOf(of)), ...intensities];
    const x = axis(Math.min(...all) / 8, Math.max(...all) * 6, "FLOP per byte of memory traffic");
    const ends = (of) => [x.from, ridgeOf(of), x.to];
    const bands = able.flatMap((row) => measuredBand(now, row, ends));
    const roofs = able.map(({ chip, of }) =>
      mark("line", chip, ends(of).map((one) => [one, roof(of, one)]), { label: chip.short }));
    const dots = able.map(({ chip, of, time, answer }, i) => {
      const rate = attained(of, now.B, time ?? answer.lower);
      const tip = `${chip.short}: ${si(rate, "FLOP/s")} at ${significant(intensities[i])} FLOP/B`;
      return mark("dot", chip, [[intensities[i], rate]], { faint: !time, tip });
    });
    const said = now.n > 1 ? "A dot below its roof is bound by the network." : "Dots: this matmul.";
    const names = listed(able.map(({ chip }) => chip.short));
    return {
      note: bands.length ? `${said} Bands: timed kernels, p10 to p90.` : said,
      label: `Rooflines of ${names}; the numbers are in the table`,
      x, y: rates(now, [...roofs, ...dots]), marks: [...bands, ...roofs, ...dots],
    };
  }

  /** The attained rate of a chip over B: bound, or estimate with its band. */
  function curves(now, { chip, of, critical, estimate, saturates }, samples) {
    const curve = (time) => samples.map((B, i) => [B, attained(of, B, time(B, i))]);
    const knee = (size, rate, what) => (size === null ? [] : [mark("knee", chip, [[size, rate]],
      { tip: `${chip.short}: ${what} from ${count(size)}` })]);
    const bound = curve((B) => ANSWERS.times(of, B).lower);
    if (!estimate) {
      const bare = now.basis === CALIBRATED;
      const label = bare ? `${chip.short} (bound)` : chip.short;
      const found = bare || critical.outcome !== FOUND ? null : critical.size;
      return [mark("line", chip, bound, { label, faint: bare }),
        ...knee(found, of.rates.peak, "compute-bound")];
    }
    const found = samples.map((B) => ANSWERS.estimate(of, B));
    const edge = (end) => curve((_, i) => found[i].band?.[end] ?? found[i].time);
    return [
      mark("area", chip, ring(edge(0), edge(1))), mark("line", chip, bound, { faint: true }),
      mark("line", chip, curve((_, i) => found[i].time), { label: chip.short }),
      ...knee(saturates.size, PLATEAU * saturates.plateau, "90% of its plateau"),
    ];
  }

  function attainedOver(now, able) {
    const calibrated = now.basis === CALIBRATED;
    if (!calibrated && able.every(({ critical }) => critical.outcome === NEVER)) {
      return { instead: able.map((row) => `${row.chip.short}: ${threshold(row)}`) };
    }
    const sizes = able.map(({ saturates, critical }) => (saturates ?? critical).size ?? 1);
    const decade = (round, value) => 10 ** round(Math.log10(value)); // they stay in a drag
    const from = Math.max(1, decade(Math.floor, Math.min(now.B, ...sizes.map((one) => one / 32))));
    const to = decade(Math.ceil, Math.max(now.B, 100, ...sizes.map((one) => one * 4)));
    const marks = able.flatMap((row) => curves(now, row, octaves(from, to, 4)));
    return {
      note: calibrated
        ? "Bands: p10 to p90 of the calibration; faint lines: bounds; circles: 90% of the plateau."
        : "Circles: from here on compute-bound.",
      label: "FLOP/s attained over B; from which B on is in the table",
      x: axis(from, to, "B, tokens"), y: rates(now, marks), picks: "B",
      marks: [...marks, rule(now.B, `B = ${count(now.B)}`)],
    };
  }

  /** The sizes along which a step of a chip is drawn, B or in training S, and its step at each. */
  function along(now, { chip, of, footprint }) {
    const [name, held, least, most, title] = now.trains
      ? ["S", footprint.longest, LEAST_CONTEXT, MOST_CONTEXT, "S, tokens of a sequence"]
      : ["B", footprint.most, now.split.dp, MOST_BATCH, "B, sequences"];
    const step = now.trains ? (S) => [stepOf({ ...now, S }, chip), now.B] : (B) => [of, B];
    const from = Math.min(least, now[name]);
    const to = Math.max(2 * from, now[name], Math.min(held ?? most, most));
    return { name, held, from, to, step, title };
  }

  /** The rates of a chip, and for a user, of batches of which none is better for both. */
  function front(now, row) {
    const { dp, chips } = now.split;
    const most = Math.max(dp, Math.min(row.footprint.most ?? MOST_BATCH, MOST_BATCH));
    const points = octaves(dp, most, 2).map((B) => {
      const time = timeOf(now, row.of, B);
      return [tokensOf(now, 1) / time, tokensOf(now, B) / time / chips];
    });
    return points.filter(([, rate], i) => points.slice(0, i).every((before) => rate > before[1]));
  }

  function fronts(now, able) {
    const lines = able.map((row) => mark("line", row.chip, front(now, row).toReversed()));
    const dots = able.map(({ chip, user, rate }) => mark("dot", chip, [[user, rate]], {
      text: chip.short,
      tip: `${chip.short}: ${short(rate)} tokens/s a chip, ${significant(user)} for a user`,
    }));
    const marks = [...lines, ...dots];
    return {
      note: `Dots: B = ${count(now.B)}. A line ends at the largest batch that fits`,
      label: "Tokens/s of a chip against tokens/s of a user; those of this batch are in the table",
      x: around(marks, 0, "tokens/s for a user", 1.3, 1.2),
      y: around(marks, 1, "tokens/s of a chip", 1.3, 1.5), marks,
    };
  }

  function contexts(now, able) {
    const lines = able.map((row) => {
      const { from, to, step } = along(now, row);
      const rate = (S) => (now.B * S) / timeOf(now, ...step(S)) / now.split.chips;
      const sizes = octaves(from, Math.min(to, row.footprint.longest ?? to), 2);
      return mark("line", row.chip, sizes.map((S) => [S, rate(S)]), { label: row.chip.short });
    });
    return {
      note: "A line ends at the longest context that fits",
      label: "Tokens/s of a chip over S; those of this S are in the table",
      x: around(lines, 0, "S, tokens of a sequence", 1, 1),
      y: around(lines, 1, "tokens/s of a chip", 1.3, 1.3),
      marks: [...lines, rule(now.S, `S = ${count(now.S)}`)],
    };
  }

  function throughput(now, rows) {
    const calibrated = now.basis === CALIBRATED;
    const able = rows.filter(({ fits, time }) => fits !== false && time !== null);
    if (!able.length) {
      const what = calibrated ? "has calibrated steps here" : "holds this step";
      return { instead: [`None of these chips ${what}.`] };
    }
    const bare = calibrated ? "; chips without a calibration are left out" : "";
    const drawn = (now.trains ? contexts : fronts)(now, able);
    return { ...drawn, note: `${drawn.note}${bare}.` };
  }

  /** Kernels by the time that they take, the largest first, as names and places; some together. */
  function grouped(kernels, answers) {
    const size = (i) => answers[0][i] + answers.at(-1)[i];
    const order = kernels.map((_, i) => i).filter(size).sort((a, b) => size(b) - size(a));
    const own = order.length > KERNELS + 1 ? KERNELS : order.length;
    const others = order.slice(own);
    const groups = order.slice(0, own).map((i) => [kernels[i].name, [i]]);
    return others.length ? [...groups, [`${others.length} others`, others]] : groups;
  }

  /** Shares of kernels, one above another, in the time at some sizes. */
  function stacked(kernels, samples, answers) {
    const totals = answers.map(sum);
    let base = samples.map((size) => [size, 0]);
    return grouped(kernels, answers).flatMap(([name, list], place) => {
      const [colour, low] = [`var(--kernel-${place})`, base];
      base = low.map(([size, sofar], k) =>
        [size, sofar + sum(list.map((i) => answers[k][i])) / totals[k]]);
      const middle = [[samples.at(-1), (low.at(-1)[1] + base.at(-1)[1]) / 2]];
      return [
        { kind: "area", points: ring(base, low), colour, tip: name, solid: true },
        { kind: "line", points: middle, colour, label: name },
      ];
    });
  }

  function shares(now, row) {
    const { trains, basis } = now;
    if (row.unsupported) return { instead: cannot([row]) };
    const { name, held, from, to, step, title } = along(now, row);
    if (held === 0) {
      const what = trains ? "states" : "weights";
      return { instead: [`The ${what} alone do not fit ${row.chip.short}.`] };
    }
    const calibrated = Boolean(row.estimate?.times);
    const samples = octaves(from, to, 3);
    const marks = stacked(row.of.kernels, samples, samples.map((size) => (calibrated
      ? ANSWERS.estimate(...step(size)).times
      : ANSWERS.times(...step(size)).kernels.map(({ time }) => time))));
    const { outcome, size } = row.critical;
    if (!trains && basis === BOUND && outcome === FOUND && size <= to && size !== now.B) {
      marks.push(rule(size, `compute-bound from ${count(size)}`));
    }
    const time = calibrated ? row.time : row.answer.ops;
    const by = calibrated ? "Calibrated." : basis === CALIBRATED ? "By the bound." : "";
    return {
      note: now[name] > held && held !== null
        ? `More than ${several(held, trains ? "token" : "sequence")} do not fit.`
        : by,
      label: `Shares of kernels over ${name}; the numbers are in the tab of kernels`,
      x: axis(from, to, title), picks: name,
      y: { from: 0, to: 1.06, linear: SHARES, title: "share of step time", text: percent },
      marks: [...marks, rule(now[name], `${name} = ${count(now[name])}: ${seconds(time)}`)],
    };
  }

  /** Show a picture; `go` sets the size that it picks. */
  function show(id, title, { note = "", instead, picks, ...drawn }, go) {
    const [head, plot, below] = $(id).children;
    head.textContent = title;
    const hint = picks ? make("span", {}, ` Drag the rule to change ${picks}.`) : "";
    below.replaceChildren(note, hint);
    plot.onpointerdown = plot.onpointermove = null;
    const onPick = picks && ((size) => go(picks, size));
    if (!instead) return SVG.draw(plot, { ...drawn, onPick });
    return plot.replaceChildren(
      make("div", { class: "instead" }, ...instead.map((text) => make("p", {}, text))));
  }

  /** Draw both pictures of a state. */
  function draw(now, rows, go) {
    const able = rows.filter((row) => !row.unsupported);
    if (now.is !== MODEL) {
      const none = able.length ? null : { instead: cannot(rows) };
      show("left", "Roofline", none ?? roofline(now, able), go);
      return show("right", "Attained over B", none ?? attainedOver(now, able), go);
    }
    show("left", now.trains ? "Tokens/s of a chip in training over S"
      : "Tokens/s/chip over tokens/s/user", throughput(now, able), go);
    const where = `Step time by kernel over ${now.trains ? "S" : "B"} on ${now.of.short}`;
    return show("right", where, shares(now, rows.find(({ chip }) => chip === now.of)), go);
  }

  return { draw, octaves, styleOf, swatch };
})();
