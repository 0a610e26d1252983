"use strict";
/* Pictures as plain SVG: axes, lines, areas, dots and labels. */

const SVG = (() => {
  const [TOP, BOTTOM, LEFT] = [34, 42, 58];
  const LETTER = 8.4; // width of a letter of a label [px]
  const APART = 14; // of labels one below another [px]
  const [LEAST, MOST, WIDE, SHAPE] = [250, 360, 280, 0.56]; // heights, width and their ratio [px]
  const LABELS = 210; // room for labels at the right end, at most [px]
  const STYLES = [
    "fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity", "font-family",
    "font-size", "font-weight",
  ]; // of a picture in a file
  let pictures = 0;

  const make = (tag, ...more) =>
    ROOFLINES.make(document.createElementNS("http://www.w3.org/2000/svg", tag), ...more);

  /** Round numbers on an axis, at most `most`. */
  function ticks({ from, to, linear }, most) {
    if (linear) return linear;
    const first = Math.floor(Math.log10(from));
    const length = Math.ceil(Math.log10(to)) - first + 1;
    const decades = Array.from({ length }, (_, i) => 10 ** (first + i));
    const within = (list) => list.filter((value) => value >= from * 0.999 && value <= to * 1.001);
    const lists = [[1, 2, 5], [1, 3], [1]].map((steps) =>
      within(decades.flatMap((decade) => steps.map((one) => one * decade))));
    const coarse = lists.at(-1);
    return lists.find((list) => list.length <= most)
      ?? coarse.filter((_, i) => i % Math.ceil(coarse.length / most) === 0);
  }

  /** Labels at the right end, moved apart: down from the top, then up from the bottom. */
  function apart(labels, top, bottom) {
    const sorted = [...labels].sort((a, b) => a.y - b.y);
    let room = top + 4;
    for (const label of sorted) {
      label.y = Math.max(label.y, room);
      room = label.y + APART;
    }
    room = bottom;
    for (const label of sorted.toReversed()) {
      label.y = Math.min(label.y, room);
      room = label.y - APART;
    }
    return sorted;
  }

  const isInside = ({ kind }) => kind === "area" || kind === "line";
  function scale({ from, to, linear }, low, high) {
    const share = (value) =>
      (linear ? (value - from) / (to - from) : Math.log(value / from) / Math.log(to / from));
    return (value) => low + (high - low) * share(value);
  }

  /** Whether two dots are so near that the label of the first would cover the second. */
  const isNear = ([x, y], [otherX, otherY]) =>
    otherX > x && otherX < x + 80 && Math.abs(otherY - y + 10) < 20;

  /** The elements of a mark; `dots` are the places of all dots. */
  function shapes(mark, { across, up, right, bottom, dots }) {
    const { kind, points, colour, tip, text, faint, solid } = mark;
    const style = colour ? `--c: ${colour}` : null;
    const at = ([a, b]) => `${across(a).toFixed(1)},${up(b).toFixed(1)}`;
    const [x, y] = [across(points[0][0]), up(points[0][1])];
    const title = tip ? [make("title", {}, tip)] : [];
    const name = `${kind}${solid ? " solid" : faint ? " faint" : ""}`;
    if (isInside(mark)) {
      const path = { class: name, style, points: points.map(at).join(" ") };
      return [make(kind === "area" ? "polygon" : "polyline", path, ...title)];
    }
    if (kind === "rule") {
      const left = x > (LEFT + right) / 2;
      const place = { x: x + (left ? -5 : 5), y: TOP - 2, "text-anchor": left ? "end" : "start" };
      return [make("line", { class: "rule", x1: x, x2: x, y1: TOP, y2: bottom }),
        make("text", { class: "rule-text", ...place }, text)];
    }
    const placed = { cx: x.toFixed(1), cy: y.toFixed(1), r: kind === "dot" ? 5.5 : 4 };
    const dot = make("circle", { class: name, style, ...placed }, ...title);
    const place = dots.some((other) => isNear([x, y], other))
      ? { x: x - 9, y: y + 16, "text-anchor": "end" } : { x: x + 9, y: y - 7 };
    return text ? [dot, make("text", { class: "name", style, ...place }, text)] : [dot];
  }

  /** Draw into an element, as wide as it is.

      `x` and `y` are axes with `from`, `to`, `title`, `text`, and `linear`, the ticks of an axis
      that is not logarithmic. Marks are drawn in order, areas and lines within the axes first:
      `kind` area, line, dot, knee or rule, with `points` as [x, y] and a CSS `colour`; `label`
      stands at the right end. `onPick` is called with x where the picture is pressed or dragged. */
  function draw(into, { label, x, y, marks, onPick }) {
    const width = Math.max(WIDE, into.clientWidth);
    const height = Math.round(Math.min(MOST, Math.max(LEAST, width * SHAPE)));
    const named = marks.filter((mark) => mark.label);
    const letters = Math.max(0, ...named.map((mark) => mark.label.length));
    const right = width - Math.min(LABELS, 12 + LETTER * letters);
    const bottom = height - BOTTOM;
    const [across, up] = [scale(x, LEFT, right), scale(y, bottom, TOP)];
    const id = `inside-${pictures += 1}`;
    const frame = { x: LEFT, y: TOP - 8, width: right - LEFT, height: bottom - TOP + 8 };
    const picture = make("svg", {
      viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img", "aria-label": label,
    }, make("clipPath", { id }, make("rect", frame)));
    const grid = (line, text, label) => picture.append(
      make("line", { class: "grid", ...line }), make("text", text, label));
    for (const value of ticks(y, 8)) {
      const at = up(value);
      grid({ x1: LEFT, x2: right, y1: at, y2: at },
        { x: LEFT - 7, y: at + 4, "text-anchor": "end" }, y.text(value));
    }
    for (const value of ticks(x, Math.max(3, Math.floor((right - LEFT) / 46)))) {
      const at = across(value);
      grid({ x1: at, x2: at, y1: TOP, y2: bottom },
        { x: at, y: bottom + 17, "text-anchor": "middle" }, x.text(value));
    }
    const middle = { x: (LEFT + right) / 2, y: height - 6, "text-anchor": "middle" };
    picture.append(
      make("text", { class: "axis", ...middle }, x.title),
      make("text", { class: "axis", x: 0, y: 12 }, y.title),
    );
    const dots = marks.filter(({ kind }) => kind === "dot")
      .map(({ points: [[a, b]] }) => [across(a), up(b)]);
    const space = { across, up, right, bottom, dots };
    const drawn = (list) => list.flatMap((mark) => shapes(mark, space));
    picture.append(make("g", { "clip-path": `url(#${id})` }, ...drawn(marks.filter(isInside))),
      ...drawn(marks.filter((mark) => !isInside(mark))));
    const ends = named.map((mark) => ({ ...mark, y: up(mark.points.at(-1)[1]) }));
    for (const mark of apart(ends, TOP, bottom)) {
      const place = { x: right + 7, y: mark.y + 4, style: `--c: ${mark.colour}` };
      picture.append(make("text", { class: "name", ...place }, mark.label));
    }
    picked(into, picture, x, [LEFT / width, right / width], onPick);
    into.replaceChildren(picture);
  }

  /** Call `onPick` with the value of the axis where the picture is pressed or dragged. */
  function picked(into, picture, { from, to }, [left, right], onPick) {
    if (!onPick) return;
    picture.classList.add("pickable");
    into.onpointermove = ({ buttons, clientX }) => {
      const box = into.firstElementChild.getBoundingClientRect();
      const share = ((clientX - box.left) / box.width - left) / (right - left);
      if (buttons) onPick(from * (to / from) ** Math.min(1, Math.max(0, share)));
    };
    into.onpointerdown = (event) => {
      into.setPointerCapture(event.pointerId);
      into.onpointermove(event);
    };
  }

  /** Hand over a picture as a file, svg or png: its content, and its type if it is text. */
  function file(picture, kind, take) {
    const { width, height } = picture.viewBox.baseVal;
    const copy = picture.cloneNode(true);
    const [from, to] = [picture, copy].map((one) => [one, ...one.querySelectorAll("*")]);
    from.forEach((element, i) => {
      const style = getComputedStyle(element);
      ROOFLINES.make(to[i], Object.fromEntries(
        STYLES.map((name) => [name, style.getPropertyValue(name)])));
      to[i].removeAttribute("style");
    });
    ROOFLINES.make(copy, { xmlns: "http://www.w3.org/2000/svg", width, height });
    const text = new XMLSerializer().serializeToString(copy);
    if (kind === "svg") return take(text, "image/svg+xml");
    const canvas = ROOFLINES.make("canvas", { width: 2 * width, height: 2 * height });
    const image = new Image();
    image.onload = () => {
      const context = canvas.getContext("2d");
      context.fillStyle = getComputedStyle(document.body).backgroundColor;
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.drawImage(image, 0, 0, canvas.width, canvas.height);
      take(canvas.toDataURL());
    };
    image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
    return null;
  }

  return { WIDE, draw, file };
})();
