"use strict";
/* The picture of the page "What if": two rooflines with a mark each, on logarithmic axes. Colours and fonts are in app.css.

   plot.js takes its elements and ticks from here. */

const ROOFLINE = (() => {
  const [HEIGHT, LEFT, RIGHT, TOP, BOTTOM, ROOM] = [340, 92, 18, 26, 46, 4];

  function svg(tag, attributes, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  /** Round numbers from one number to another, at most `most`: 1, 2 and 5 times powers of ten, or the powers alone. */
  function ticks(from, to, most) {
    const first = Math.floor(Math.log10(from));
    const decades = Array.from({ length: Math.ceil(Math.log10(to)) - first + 1 }, (_, i) => first + i);
    const within = (list) => list.filter((value) => value >= from && value <= to);
    const fine = within(decades.flatMap((decade) => [1, 2, 5].map((one) => one * 10 ** decade)));
    if (fine.length <= most) return fine;
    const coarse = within(decades.map((decade) => 10 ** decade));
    const step = Math.ceil(coarse.length / most);
    return coarse.filter((_, i) => i % step === 0);
  }

  /** Draw sides into an element: each has `key`, `label`, `ridge`, `peak`, `intensity`, `attained`, `estimated` (or null), and `roof(intensity)`. */
  function draw(into, sides, flops) {
    const width = Math.max(280, into.clientWidth);
    const along = sides.flatMap((side) => [side.ridge, side.intensity]);
    const [least, most] = [Math.min(...along) / ROOM, Math.max(...along) * ROOM];
    const up = sides.flatMap((side) => [side.attained, side.estimated ?? side.attained, side.roof(least)]);
    const [low, high] = [Math.min(...up) / 1.6, Math.max(...sides.map((side) => side.peak)) * 2];
    const x = (value) => LEFT + (width - LEFT - RIGHT) * Math.log(value / least) / Math.log(most / least);
    const y = (value) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * Math.log(value / low) / Math.log(high / low);
    const picture = svg("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" });
    for (const value of ticks(low, high, 7)) {
      picture.append(svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }),
        svg("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, flops(value)));
    }
    for (const value of ticks(least, most, Math.floor(width / 80))) {
      picture.append(svg("line", { class: "grid", x1: x(value), x2: x(value), y1: TOP, y2: HEIGHT - BOTTOM }),
        svg("text", { x: x(value), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, value.toLocaleString("en-US")));
    }
    picture.append(svg("text", { x: (LEFT + width - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "FLOP per byte of memory traffic"));
    const letters = Math.floor((width - LEFT - RIGHT) / 7.5); // that a label has room for
    const upper = sides.findIndex((side) => side.peak === Math.max(...sides.map((one) => one.peak))); // its label is above its line
    for (const [place, side] of sides.entries()) {
      const corners = [least, side.ridge, most].map((value) => `${x(value).toFixed(1)},${y(side.roof(value)).toFixed(1)}`);
      const label = { class: `of ${side.key}`, x: width - RIGHT, y: y(side.peak) + (place === upper ? -8 : 17), "text-anchor": "end" };
      picture.append(svg("polyline", { class: `roof ${side.key}`, points: corners.join(" ") }), svg("text", label, side.label.length > letters ? `${side.label.slice(0, letters - 1)}…` : side.label));
    }
    for (const [place, side] of sides.entries()) {
      const [at, over] = [x(side.intensity), y(side.attained)];
      const mark = (kind, height) => (place
        ? svg("rect", { class: `${kind} ${side.key}`, x: at - 6, y: height - 6, width: 12, height: 12, transform: `rotate(45 ${at} ${height})` })
        : svg("circle", { class: `${kind} ${side.key}`, cx: at, cy: height, r: 7 }));
      if (side.estimated) picture.append(mark("hollow", y(side.estimated)));
      picture.append(mark("point", over), svg("text", { class: `of ${side.key}`, x: at + (place ? 13 : -13), y: over + 5, "text-anchor": place ? "start" : "end" }, side.key.toUpperCase()));
    }
    into.replaceChildren(picture);
  }

  return { draw, svg, ticks };
})();
