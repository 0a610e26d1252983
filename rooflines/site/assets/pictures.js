"use strict";
/* The two pictures of a state: roofline and attained rate, or fronts and time by kernel. */

const PICTURES = (() => {
  const { significant, si, seconds, count, short, several, listed, sum } = NUMBERS;
  const { FOUND, NEVER, PLATEAU } = ANSWERS;
  const { BOUND, CALIBRATED, MODEL, offOf, timeOf, tokensOf } = STATE;
  const { cannot, tends } = SENTENCES;
  const { $, make } = ROOFLINES;
  const KERNELS = 6; // named in the picture of times, the largest; the rest is one
  const MOST_BATCH = 4096; // of pictures of steps
  const SHADES = [
    "light-dark(#2f6fb5, #6fa8e8)", "light-dark(#c2740b, #f0a94d)", "light-dark(#3c8a4e, #74c488)",
    "light-dark(#8a4fa3, #c394dc)", "light-dark(#b1475a, #ec8b9c)", "light-dark(#5f6b7a, #9daaba)",
    "light-dark(#a8a29a, #6e6a64)",
  ];
  const colourOf = ({ colours }) => `light-dark(${colours.join(", ")})`;

  /** Whole numbers between two, some for each factor of two. */
  function octaves(from, to, per) {
    const steps = Math.max(0, Math.ceil(Math.log2(to / from) * per));
    const at = (i) => Math.min(to, Math.round(from * 2 ** (i / per)));
    return [...new Set([...Array.from({ length: steps + 1 }, (_, i) => at(i)), to])];
  }

  /** The place of a picture, with its title and a note. */
  function figure(id, title, note) {
    const into = $(id);
    if (!into.plot) {
      into.plot = make("div", { class: "plot" });
      into.replaceChildren(make("figcaption"), into.plot, make("p", { class: "note" }));
    }
    into.querySelector("figcaption").textContent = title;
    into.querySelector(".note").textContent = note;
    return into.plot;
  }
  /** In place of a picture: why there is nothing to draw. */
  function instead(plot, sentences) {
    plot.nextElementSibling.textContent = "";
    plot.onpointerdown = null;
    plot.replaceChildren(make("div", { class: "instead" },
      ...sentences.map((text) => make("p", {}, text))));
  }

  // ---------------------------------------------------------------- a matmul

  const roof = ({ rates: { peak, memory } }, intensity) => Math.min(peak, intensity * memory);
  const ridgeOf = ({ rates: { peak, memory } }) => peak / memory;
  const intensityOf = ({ flops, moved }, B) =>
    ANSWERS.lineAt(flops, B) / ANSWERS.lineAt(moved, B);
  const attained = ({ flops }, B, time) => ANSWERS.lineAt(flops, B) / time;

  /** Where timed kernels are under the roof of a chip. */
  function measuredBand(now, row, x) {
    const [{ chip, of }, found] = [row, offOf(now, row, true)];
    if (!found) return [];
    const at = [x.from, ridgeOf(of), x.to];
    const edge = (ratio) => at.map((one) => [one, roof(of, one) / ratio]);
    const range = `${significant(found.low)} to ${significant(found.high)} times the bound`;
    return [{
      kind: "area", points: [...edge(found.low), ...edge(found.high).reverse()], faint: true,
      colour: colourOf(chip), tip: `${chip.short}: ${several(found.n, "timing")}, ${range}`,
    }];
  }

  function drawRoofline(now, rows, y) {
    const able = rows.filter((row) => !row.lack);
    const intensities = able.map(({ of }) => intensityOf(of, now.B));
    const all = [...able.map(({ of }) => ridgeOf(of)), ...intensities];
    const title = "FLOP per byte of memory traffic";
    const [from, to] = [Math.min(...all) / 8, Math.max(...all) * 6];
    const x = { from, to, log: true, title, text: short };
    const bands = able.flatMap((row) => measuredBand(now, row, x));
    const dots = now.n > 1 ? "A dot below its roof is bound by the network." : "Dots: this matmul.";
    const timed = bands.length ? " Bands: timed kernels, p10 to p90." : "";
    const plot = figure("left", "Roofline", dots + timed);
    if (!able.length) return instead(plot, cannot(rows));
    const roofs = able.map(({ chip, of }) => ({
      kind: "line", colour: colourOf(chip), label: chip.short,
      points: [from, ridgeOf(of), to].map((one) => [one, roof(of, one)]),
    }));
    const marks = able.map(({ chip, of, time, answer }, i) => {
      const rate = attained(of, now.B, time ?? answer.lower);
      return {
        kind: "dot", colour: colourOf(chip), faint: !time, points: [[intensities[i], rate]],
        tip: `${chip.short}: ${si(rate, "FLOP/s")} at ${significant(intensities[i])} FLOP/B`,
      };
    });
    const names = listed(able.map(({ chip }) => chip.short));
    const label = `Rooflines of ${names}; the numbers are in the table`;
    return SVG.draw(plot, { label, x, y, marks: [...bands, ...roofs, ...marks] });
  }

  /** The attained rate of a chip over B: bound, or estimate with its band. */
  function curves(now, row, samples) {
    const { chip, of } = row;
    const colour = colourOf(chip);
    const curve = (times) => samples.map((B, i) => [B, attained(of, B, times[i])]);
    const bound = curve(samples.map((B) => ANSWERS.times(of, B).lower));
    if (!row.estimate) {
      const bare = now.basis === CALIBRATED;
      const label = bare ? `${chip.short} (bound)` : chip.short;
      const line = { kind: "line", points: bound, colour, label, faint: bare };
      if (bare || row.all.outcome !== FOUND) return [line];
      const tip = `${chip.short}: compute-bound from ${count(row.all.size)}`;
      return [line, { kind: "knee", points: [[row.all.size, of.rates.peak]], colour, tip }];
    }
    const found = samples.map((B) => ANSWERS.estimate(of, B));
    const edge = (i) => curve(found.map(({ time, band }) => (band ?? [time, time])[i]));
    const { size, plateau } = row.saturates;
    const tip = `${chip.short}: 90% of its plateau from ${size && count(size)}`;
    return [
      { kind: "area", points: [...edge(0), ...edge(1).reverse()], colour },
      { kind: "line", points: bound, colour, faint: true },
      { kind: "line", points: curve(found.map(({ time }) => time)), colour, label: chip.short },
      ...(size ? [{ kind: "knee", points: [[size, PLATEAU * plateau]], colour, tip }] : []),
    ];
  }

  function drawAttained(now, rows, y, [from, to], go) {
    const able = rows.filter((row) => !row.lack);
    const calibrated = now.basis === CALIBRATED;
    const plot = figure("right", "Attained over B", calibrated
      ? "Bands: p10 to p90 of the calibration; faint lines: bounds; circles: 90% of the plateau."
      : "Circles: from here on compute-bound. Drag the rule to change B.");
    if (!able.length) return instead(plot, cannot(rows));
    const never = able.filter(({ all }) => all.outcome === NEVER);
    if (!calibrated && never.length === able.length) {
      const limits = listed([...new Set(never.map(({ all }) => all.limit))]);
      const split = now.n > 1 ? `, split over ${now.n} chips` : "";
      return instead(plot, [
        `No B makes any of these compute-bound with D = ${count(now.D)} and F = ${count(now.F)}`
          + `${split}: every token adds more ${limits} time than compute.`,
        ...able.map((row) => `${row.chip.short}: at most ${tends(row)} of peak.`),
      ]);
    }
    const samples = octaves(from, to, 4);
    const marks = able.flatMap((row) => curves(now, row, samples));
    marks.push({ kind: "rule", points: [[now.B, 1]], text: `B = ${count(now.B)}` });
    const label = "FLOP/s attained over B; from which B on is in the table";
    const x = { from, to, log: true, title: "B, tokens", text: short };
    const onPick = (B) => go({ B: Math.round(B) }, true);
    return SVG.draw(plot, { label, x, y, marks, onPick });
  }

  let range = null; // of B; it stays while the rule is dragged
  function drawMatmul(now, rows, go) {
    const able = rows.filter((row) => !row.lack);
    const found = able.map(({ saturates, all }) => (saturates ? saturates.size : all.size) ?? 1);
    if (!range || !$("right").plot?.held) {
      const least = Math.min(now.B, ...found) / 32;
      const most = Math.max(now.B * 4, 64, ...found.map((one) => one * 8));
      range = [Math.max(1, Math.round(least)), Math.round(most)];
    }
    const lowest = able.flatMap(({ of }) => [now.B, range[0]].map((B) =>
      attained(of, B, ANSWERS.times(of, B).lower)));
    const title = now.n > 1 ? "FLOP/s of a chip" : "FLOP/s";
    const to = Math.max(...able.map(({ of }) => of.rates.peak)) * 1.7;
    const y = { from: Math.min(...lowest) / 2, to, log: true, title, text: short };
    drawRoofline(now, rows, y);
    drawAttained(now, rows, y, range, go);
  }

  // ---------------------------------------------------------------- a step of a model

  /** Batches of which none is better both for the chip and for the user. */
  function front(now, row) {
    const { dp, chips } = now.split;
    const most = Math.max(dp, Math.min(row.footprint.most ?? MOST_BATCH, MOST_BATCH));
    const points = octaves(dp, most, 2).map((B) => {
      const time = timeOf(now, row.of, B);
      return [tokensOf(now, 1) / time, tokensOf(now, B) / time / chips];
    });
    let best = 0;
    return points.filter(([, rate]) => {
      const better = rate > best;
      best = Math.max(best, rate);
      return better;
    });
  }

  function drawFronts(now, rows) {
    const calibrated = now.basis === CALIBRATED;
    const able = rows.filter((row) =>
      !row.lack && row.fits !== false && row.footprint.most !== 0 && row.time !== null);
    const plot = figure("left", "Throughput of a chip against speed for a user",
      `Dots: B = ${count(now.B)}. A line ends at the largest batch that fits`
        + `${calibrated ? "; chips without a calibration are left out" : ""}.`);
    if (!able.length) {
      const what = calibrated ? "has calibrated steps here" : "holds this step";
      return instead(plot, [`None of these chips ${what}.`]);
    }
    const fronts = able.map((row) => front(now, row));
    const [xs, ys] = [0, 1].map((i) => fronts.flat().map((point) => point[i]));
    const lines = able.map(({ chip }, i) => (
      { kind: "line", points: [...fronts[i]].reverse(), colour: colourOf(chip) }));
    const dots = able.map(({ chip, user, rate }) => ({
      kind: "dot", points: [[user, rate]], colour: colourOf(chip), text: chip.short,
      tip: `${chip.short}: ${short(rate)} tokens/s a chip, ${significant(user)} for a user`,
    }));
    const axis = (list, title, more) => {
      const [from, to] = [Math.min(...list) / 1.3, Math.max(...list) * more];
      return { from, to, log: true, title, text: short };
    };
    return SVG.draw(plot, {
      label: "Tokens/s of a chip against tokens/s of a user; those of this batch are in the table",
      x: axis([...xs, ...able.map(({ user }) => user)], "tokens/s for a user", 1.2),
      y: axis([...ys, ...able.map(({ rate }) => rate)], "tokens/s of a chip", 1.5),
      marks: [...lines, ...dots],
    });
  }

  function drawTimes(now, rows, go) {
    const row = rows.find(({ chip }) => chip === now.of);
    const title = `Time by kernel over B on ${now.of.short}`;
    const { dp } = now.split;
    if (row.lack || row.footprint.most === 0) {
      return instead(figure("right", title, ""), [row.lack
        ? cannot([row])[0] : `The weights alone do not fit ${now.of.short}.`]);
    }
    const { of, footprint, all } = row;
    const calibrated = now.basis === CALIBRATED && row.time !== null;
    const held = footprint.most ?? MOST_BATCH;
    const most = Math.max(dp * 2, now.B, Math.min(held, MOST_BATCH));
    const plot = figure("right", title, now.B > held
      ? `More than ${several(held, "sequence")} do not fit.`
      : `${calibrated ? "Calibrated. " : ""}Drag the rule to change B.`);
    const samples = octaves(dp, most, 3);
    const answers = samples.map((B) => (calibrated ? ANSWERS.estimate(of, B).times
      : ANSWERS.times(of, B).kernels.map(({ time }) => time)));
    const size = (i) => answers[0][i] + answers.at(-1)[i];
    const order = of.kernels.map((_, i) => i).sort((a, b) => size(b) - size(a));
    const own = order.length > KERNELS + 1 ? KERNELS : order.length;
    const groups = order.slice(0, own).map((i) => [of.kernels[i].name, [i]]);
    if (order.length > own) groups.push([`${order.length - own} others`, order.slice(own)]);
    const base = samples.map(() => 0);
    const marks = groups.flatMap(([name, list], place) => {
      const low = samples.map((B, k) => [B, base[k]]);
      samples.forEach((_, k) => { base[k] += sum(list.map((i) => answers[k][i])); });
      const high = samples.map((B, k) => [B, base[k]]);
      const points = [...high, ...[...low].reverse()];
      const middle = [[most, (low.at(-1)[1] + high.at(-1)[1]) / 2]];
      return [
        { kind: "area", points, colour: SHADES[place], tip: name, solid: true },
        { kind: "line", points: middle, colour: SHADES[place], label: name },
      ];
    });
    const seen = now.basis === BOUND && all.outcome === FOUND && all.size <= most;
    if (seen && all.size !== now.B) {
      const text = `compute-bound from ${count(all.size)}`;
      marks.push({ kind: "rule", points: [[all.size, 0]], text });
    }
    marks.push({ kind: "rule", points: [[now.B, 0]], text: seen ? "" : `B = ${count(now.B)}` });
    const text = (value) => (value ? seconds(value) : "0");
    return SVG.draw(plot, {
      label: "Time of a step by kernel over B; the numbers are in the tab of kernels", marks,
      x: { from: dp, to: most, log: true, title: "B, sequences", text: short },
      y: { from: 0, to: Math.max(...base) * 1.06, log: false, title: "time of a step", text },
      onPick: (B) => go({ B: Math.round(B) }, true),
    });
  }

  /** Draw both pictures of a state. */
  function draw(now, rows, go) {
    if (now.subject !== MODEL) return drawMatmul(now, rows, go);
    drawFronts(now, rows);
    return drawTimes(now, rows, go);
  }

  return { draw, octaves, colourOf };
})();
