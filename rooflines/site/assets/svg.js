"use strict";
/* Plots as plain SVG: axes, lines, areas, dots and labels. */

const SVG = (() => {
  const [TOP, BOTTOM, LEFT] = [34, 42, 58]; // margins [px]
  const LETTER_WIDTH = 8.4; // of a label [px]
  const LABEL_SPACING = 14; // between labels one below another [px]
  const MAX_LABEL_WIDTH = 210; // at the right end [px]
  const MIN_WIDTH = 280; // [px]
  const [MIN_HEIGHT, MAX_HEIGHT] = [250, 360]; // [px]
  const HEIGHT_PER_WIDTH = 0.56;
  const Y_TICKS = 8; // at most
  const X_TICK_WIDTH = 46; // at least [px]
  const PNG_SCALE = 2; // pixels of a file per pixel of the page
  /** Properties that a plot in a file takes along. */
  const FILE_STYLES = [
    "fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity", "font-family",
    "font-size", "font-weight",
  ];
  let plotCount = 0;

  const make = (tag, ...more) =>
    ROOFLINES.make(document.createElementNS("http://www.w3.org/2000/svg", tag), ...more);

  /** Round numbers on an axis, at most `maxTicks`. */
  function axisTicks({ min, max, ticks }, maxTicks) {
    if (ticks) return ticks;
    const first = Math.floor(Math.log10(min));
    const length = Math.ceil(Math.log10(max)) - first + 1;
    const decades = Array.from({ length }, (_, i) => 10 ** (first + i));
    const isInside = (value) => value >= min * 0.999 && value <= max * 1.001;
    const candidates = [[1, 2, 5], [1, 3], [1]].map((digits) =>
      decades.flatMap((decade) => digits.map((digit) => digit * decade)).filter(isInside));
    const coarse = candidates.at(-1);
    return candidates.find((values) => values.length <= maxTicks)
      ?? coarse.filter((_, i) => i % Math.ceil(coarse.length / maxTicks) === 0);
  }

  /** Labels at the right end, moved apart: down from the top, then up from the bottom. */
  function spreadLabels(labels, top, bottom) {
    const sorted = [...labels].sort((a, b) => a.y - b.y);
    let next = top + 4;
    for (const label of sorted) {
      label.y = Math.max(label.y, next);
      next = label.y + LABEL_SPACING;
    }
    next = bottom;
    for (const label of sorted.toReversed()) {
      label.y = Math.min(label.y, next);
      next = label.y - LABEL_SPACING;
    }
    return sorted;
  }

  /** Axis scale: pixels between `start` and `end`, logarithmic unless it has ticks. */
  function makeScale({ min, max, ticks }, start, end) {
    const share = (value) => (ticks ? (value - min) / (max - min)
      : Math.log(value / min) / Math.log(max / min));
    return (value) => start + (end - start) * share(value);
  }

  // -------------------------------------------------------------------------------------- marks

  /** Tell if two dots are so near that the label of the first would cover the second. */
  const isNear = (dot, neighbour) => neighbour.x > dot.x && neighbour.x < dot.x + 80
    && Math.abs(neighbour.y - dot.y + 10) < 20;

  const isClipped = ({ kind }) => kind === "area" || kind === "line";
  const markStyle = ({ colour }) => (colour ? `--c: ${colour}` : null);
  const markTitle = ({ tip }) => (tip ? [make("title", {}, tip)] : []);

  /** Mark's class: its kind, and `solid` or `faint`. */
  function markClass({ kind, solid, faint }) {
    if (solid) return `${kind} solid`;
    return faint ? `${kind} faint` : kind;
  }

  /** Area or line. */
  function pathShape(mark, { xScale, yScale }) {
    const points = mark.points.map(([x, y]) => `${xScale(x).toFixed(1)},${yScale(y).toFixed(1)}`);
    const attributes = {
      class: markClass(mark), style: markStyle(mark), points: points.join(" "),
    };
    const tag = mark.kind === "area" ? "polygon" : "polyline";
    return [make(tag, attributes, ...markTitle(mark))];
  }

  /** Vertical rule with its text on the side that has more room. */
  function ruleShapes({ points: [[value]], text }, { xScale, right, bottom }) {
    const x = xScale(value);
    const isLeft = x > (LEFT + right) / 2;
    const position =
      { x: x + (isLeft ? -5 : 5), y: TOP - 2, "text-anchor": isLeft ? "end" : "start" };
    return [
      make("line", { class: "rule", x1: x, x2: x, y1: TOP, y2: bottom }),
      make("text", { class: "rule-text", ...position }, text),
    ];
  }

  /** Dot or circle, with its text where no other dot is. */
  function dotShapes(mark, { xScale, yScale, dots }) {
    const { kind, points: [[xValue, yValue]], text } = mark;
    const dot = { x: xScale(xValue), y: yScale(yValue) };
    const style = markStyle(mark);
    const circle = make("circle", {
      class: markClass(mark), style, cx: dot.x.toFixed(1), cy: dot.y.toFixed(1),
      r: kind === "dot" ? 5.5 : 4,
    }, ...markTitle(mark));
    if (!text) return [circle];
    const position = dots.some((neighbour) => isNear(dot, neighbour))
      ? { x: dot.x - 9, y: dot.y + 16, "text-anchor": "end" } : { x: dot.x + 9, y: dot.y - 7 };
    return [circle, make("text", { class: "name", style, ...position }, text)];
  }

  /** Mark's elements; `frame` has scales, edges and all dots. */
  function markShapes(mark, frame) {
    if (isClipped(mark)) return pathShape(mark, frame);
    return mark.kind === "rule" ? ruleShapes(mark, frame) : dotShapes(mark, frame);
  }

  // --------------------------------------------------------------------------------------- plots

  /** Grid lines and numbers of both axes. */
  function gridShapes(x, y, { xScale, yScale, right, bottom }) {
    const xTicks = Math.max(3, Math.floor((right - LEFT) / X_TICK_WIDTH));
    return [
      ...axisTicks(y, Y_TICKS).flatMap((value) => {
        const at = yScale(value);
        return [
          make("line", { class: "grid", x1: LEFT, x2: right, y1: at, y2: at }),
          make("text", { x: LEFT - 7, y: at + 4, "text-anchor": "end" }, y.format(value)),
        ];
      }),
      ...axisTicks(x, xTicks).flatMap((value) => {
        const at = xScale(value);
        return [
          make("line", { class: "grid", x1: at, x2: at, y1: TOP, y2: bottom }),
          make("text", { x: at, y: bottom + 17, "text-anchor": "middle" }, x.format(value)),
        ];
      }),
    ];
  }

  /** Titles of both axes. */
  function titleShapes(x, y, right, height) {
    const middle = { x: (LEFT + right) / 2, y: height - 6, "text-anchor": "middle" };
    return [
      make("text", { class: "axis", ...middle }, x.title),
      make("text", { class: "axis", x: 0, y: 12 }, y.title),
    ];
  }

  /** Mark labels at the right end. */
  function labelShapes(labelled, { yScale, right, bottom }) {
    const ends = labelled.map((mark) => ({ ...mark, y: yScale(mark.points.at(-1)[1]) }));
    return spreadLabels(ends, TOP, bottom).map((mark) =>
      make("text", { class: "name", x: right + 7, y: mark.y + 4, style: markStyle(mark) },
        mark.label));
  }

  /** Draw a plot into an element, as wide as that is.

      `x` and `y` are axes with `min`, `max`, `title` and the `format` of numbers; an axis that is
      not logarithmic has `ticks`. Marks are drawn in order, areas and lines within the axes first:
      `kind` area, line, dot, circle or rule, with `points` as [x, y] and a CSS `colour`; `label`
      stands at the right end. `onDrag` takes x where the plot is pressed or dragged. */
  function draw(parent, { label, x, y, marks, onDrag }) {
    const width = Math.max(MIN_WIDTH, parent.clientWidth);
    const height =
      Math.round(Math.min(MAX_HEIGHT, Math.max(MIN_HEIGHT, width * HEIGHT_PER_WIDTH)));
    const labelled = marks.filter((mark) => mark.label);
    const letters = Math.max(0, ...labelled.map((mark) => mark.label.length));
    const right = width - Math.min(MAX_LABEL_WIDTH, 12 + LETTER_WIDTH * letters);
    const bottom = height - BOTTOM;
    const [xScale, yScale] = [makeScale(x, LEFT, right), makeScale(y, bottom, TOP)];
    const dots = marks.filter(({ kind }) => kind === "dot")
      .map(({ points: [[xValue, yValue]] }) => ({ x: xScale(xValue), y: yScale(yValue) }));
    const frame = { xScale, yScale, right, bottom, dots };
    const id = `inside-${plotCount += 1}`;
    const inside = { x: LEFT, y: TOP - 8, width: right - LEFT, height: bottom - TOP + 8 };
    const shapes = (group) => group.flatMap((mark) => markShapes(mark, frame));
    const picture = make("svg",
      { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img", "aria-label": label },
      make("clipPath", { id }, make("rect", inside)),
      ...gridShapes(x, y, frame), ...titleShapes(x, y, right, height),
      make("g", { "clip-path": `url(#${id})` }, ...shapes(marks.filter(isClipped))),
      ...shapes(marks.filter((mark) => !isClipped(mark))), ...labelShapes(labelled, frame));
    if (onDrag) enableDrag(parent, picture, x, [LEFT / width, right / width], onDrag);
    parent.replaceChildren(picture);
  }

  /** Call `onDrag` with the value of the x axis where the plot is pressed or dragged.

      The axis spans the shares `left` to `right` of the plot's width. */
  function enableDrag(parent, picture, { min, max }, [left, right], onDrag) {
    picture.classList.add("draggable");
    parent.onpointermove = ({ buttons, clientX }) => {
      if (!buttons) return;
      const box = parent.firstElementChild.getBoundingClientRect();
      const share = ((clientX - box.left) / box.width - left) / (right - left);
      onDrag(min * (max / min) ** Math.min(1, Math.max(0, share)));
    };
    parent.onpointerdown = (event) => {
      parent.setPointerCapture(event.pointerId);
      parent.onpointermove(event);
    };
  }

  // --------------------------------------------------------------------------------------- files

  /** Plot's copy with its styles as attributes, for a file. */
  function standaloneCopy(picture) {
    const { width, height } = picture.viewBox.baseVal;
    const copy = picture.cloneNode(true);
    const elements = (root) => [root, ...root.querySelectorAll("*")];
    const copies = elements(copy);
    elements(picture).forEach((element, i) => {
      const style = getComputedStyle(element);
      const styles = FILE_STYLES.map((name) => [name, style.getPropertyValue(name)]);
      ROOFLINES.make(copies[i], Object.fromEntries(styles));
      copies[i].removeAttribute("style");
    });
    return ROOFLINES.make(copy, { xmlns: "http://www.w3.org/2000/svg", width, height });
  }

  /** Give a plot as a file, svg or png, to `take`: its content, and its type if it is text. */
  function toFile(picture, kind, take) {
    const text = new XMLSerializer().serializeToString(standaloneCopy(picture));
    if (kind === "svg") {
      take(text, "image/svg+xml");
      return;
    }
    const { width, height } = picture.viewBox.baseVal;
    const size = { width: PNG_SCALE * width, height: PNG_SCALE * height };
    const canvas = ROOFLINES.make("canvas", size);
    const image = new Image();
    image.onload = () => {
      const context = canvas.getContext("2d");
      context.fillStyle = getComputedStyle(document.body).backgroundColor;
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.drawImage(image, 0, 0, canvas.width, canvas.height);
      take(canvas.toDataURL());
    };
    image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
  }

  return { MIN_WIDTH, draw, toFile };
})();
