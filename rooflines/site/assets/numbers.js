"use strict";
/* Numbers as text, and whole numbers of doubles. No page is needed. */

const NUMBERS = (() => {
  const SLACK = 1e-12; // share by which a double may miss a whole number or an equal one
  const LARGE = [["E", 1e18], ["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]];
  const SMALL = [["", 1], ["m", 1e-3], ["µ", 1e-6], ["n", 1e-9]];

  const upward = (value) => Math.ceil(value - Math.abs(value) * SLACK);
  const downward = (value) => Math.floor(value + Math.abs(value) * SLACK);

  const sum = (list) => list.reduce((a, b) => a + b, 0);

  /** The first whole number from `least` that holds, where all above do; null: none to `most`. */
  function firstWhole(least, most, holds) {
    if (holds(least)) return least;
    let [low, high] = [least, Math.min(least + 1, most)];
    for (let step = 2; !holds(high); step *= 2) {
      if (high === most) return null;
      [low, high] = [high, Math.min(high + step, most)];
    }
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (holds(middle)) high = middle;
      else low = middle;
    }
    return high;
  }

  /** The order of two values: numbers or texts, downward or not; none comes last. */
  function compare(a, b, down) {
    if (a === null || b === null) return (a === null) - (b === null);
    const order = typeof a === "string"
      ? a.localeCompare(b, "en", { numeric: true }) : a === b ? 0 : a - b;
    return down ? -order : order;
  }

  const significant = (value, digits = 3) => value.toLocaleString("en-US", {
    maximumSignificantDigits: digits, maximumFractionDigits: 0, roundingPriority: "morePrecision",
  });
  function prefixed(value, unit, scales, digits = 3) {
    const [prefix, scale] = scales.find(([, one]) => value >= one * 0.9995) ?? scales.at(-1);
    return `${significant(value / scale, digits)} ${prefix}${unit}`;
  }
  const si = (value, unit, digits) => prefixed(value, unit, [...LARGE, ["", 1]], digits);
  const seconds = (value) => prefixed(value, "s", SMALL);
  const count = (value) => value.toLocaleString("en-US");
  /** A share in percent; less than all is never 100%. */
  function percent(value) {
    const text = significant(100 * value);
    if (text !== "100" || value >= 1 - SLACK) return `${text}%`;
    return `${Math.min(Math.floor(1e5 * value) / 1e3, 99.999)}%`;
  }
  const short = (value) => (value < 999.5 ? significant(value) : si(value, "").replace(" ", ""));
  const bytes = (value) =>
    value >= 999.5e9 && value < 1e14 ? `${significant(value / 1e9, 4)} GB` : si(value, "B");
  function money(value) {
    if (value >= 100) return `$${count(Math.round(value))}`;
    return `$${value >= 1 ? value.toFixed(2) : significant(value)}`;
  }
  const several = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
  const listed = (names) =>
    names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

  return {
    SLACK, upward, downward, sum, firstWhole, significant, si, seconds, count,
    compare, percent, short, bytes, money, several, listed,
  };
})();
