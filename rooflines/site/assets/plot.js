"use strict";
/* Pictures of the page "Models": lines, marks and areas on logarithmic axes. Colours and fonts are in app.css. */

const PLOT = (() => {
  const { svg, ticks } = ROOFLINE;
  const [HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [350, 52, 16, 32, 46];
  let pictures = 0;

  /** An axis over a decade or more, around its own middle. */
  function wide(axis) {
    const more = Math.max(1, Math.sqrt(10 * axis.from / axis.to));
    return { ...axis, from: axis.from / more, to: axis.to * more };
  }

  /** Draw into an element.

      `x` and `y` have `from`, `to`, `title` and `text(value)`. `areas` are [class, from, to] along x, `lines` [class, points],
      `marks` [class, x, y, radius, tip], `labels` [class, x, y, text]; points are [x, y]. */
  function draw(into, { x: along, y: upwards, areas = [], lines = [], marks = [], labels = [] }) {
    const [x, y] = [along, upwards].map(wide);
    const width = Math.max(280, into.clientWidth);
    const [right, bottom] = [width - RIGHT, HEIGHT - BOTTOM];
    const across = (value) => LEFT + (right - LEFT) * Math.log(value / x.from) / Math.log(x.to / x.from);
    const up = (value) => bottom - (bottom - TOP) * Math.log(value / y.from) / Math.log(y.to / y.from);
    const clip = `clip-${pictures += 1}`;
    const picture = svg("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" },
      svg("clipPath", { id: clip }, svg("rect", { x: LEFT - 8, y: TOP - 8, width: right - LEFT + 16, height: bottom - TOP + 16 })));
    for (const [name, from, to] of areas) {
      const start = across(Math.max(from, x.from));
      picture.append(svg("rect", { class: name, x: start, y: TOP, width: Math.max(across(Math.min(to, x.to)) - start, 0), height: bottom - TOP }));
    }
    for (const value of ticks(y.from, y.to, 7)) {
      picture.append(svg("line", { class: "grid", x1: LEFT, x2: right, y1: up(value), y2: up(value) }),
        svg("text", { x: LEFT - 8, y: up(value) + 4, "text-anchor": "end" }, y.text(value)));
    }
    for (const value of ticks(x.from, x.to, Math.floor(width / 70))) {
      picture.append(svg("line", { class: "grid", x1: across(value), x2: across(value), y1: TOP, y2: bottom }),
        svg("text", { x: across(value), y: bottom + 18, "text-anchor": "middle" }, x.text(value)));
    }
    picture.append(svg("text", { x: (LEFT + right) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, x.title));
    picture.append(svg("text", { x: 0, y: 14 }, y.title));
    const inside = svg("g", { "clip-path": `url(#${clip})` });
    for (const [name, points] of lines) {
      inside.append(svg("polyline", { class: name, points: points.map(([a, b]) => `${across(a).toFixed(1)},${up(b).toFixed(1)}`).join(" ") }));
    }
    for (const [name, a, b, radius, tip] of marks) {
      inside.append(svg("circle", { class: name, cx: across(a).toFixed(1), cy: up(b).toFixed(1), r: radius }, ...(tip ? [svg("title", {}, tip)] : [])));
    }
    for (const [name, a, b, text] of labels) {
      const leftwards = across(a) < (LEFT + right) / 2;
      inside.append(svg("text", { class: name, x: across(a) + (leftwards ? 14 : -14), y: up(b) + 4, "text-anchor": leftwards ? "start" : "end" }, text));
    }
    picture.append(inside);
    into.replaceChildren(picture);
  }

  return { draw };
})();
