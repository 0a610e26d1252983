"use strict";
/* Numbers as text, integers from doubles, and order of values. No page is needed. */

const NUMBERS = (() => {
  const TOLERANCE = 1e-12; // relative rounding error of a double
  const LARGE_PREFIXES = [
    ["E", 1e18], ["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3], ["", 1],
  ];
  const TIME_PREFIXES = [["", 1], ["m", 1e-3], ["µ", 1e-6], ["n", 1e-9]];

  /** Smallest integer that is not below a value, within the rounding error. */
  const ceil = (value) => Math.ceil(value - Math.abs(value) * TOLERANCE);
  /** Largest integer that is not above a value, within the rounding error. */
  const floor = (value) => Math.floor(value + Math.abs(value) * TOLERANCE);

  const sum = (values) => values.reduce((total, value) => total + value, 0);

  /** First integer from `min` to `max` that holds, as all larger ones do; null if none does. */
  function firstInteger(min, max, holds) {
    if (holds(min)) return min;
    let [low, high] = [min, Math.min(min + 1, max)];
    for (let step = 2; !holds(high); step *= 2) {
      if (high === max) return null;
      [low, high] = [high, Math.min(high + step, max)];
    }
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (holds(middle)) high = middle;
      else low = middle;
    }
    return high;
  }

  /** Order of two numbers or texts, as for Array.sort; null comes last in both directions. */
  function compare(a, b, descending) {
    if (a === null || b === null) return (a === null) - (b === null);
    if (a === b) return 0;
    const order = typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
    return descending ? -order : order;
  }

  /** Number with a few significant digits, integers in full. */
  const significant = (value, digits = 3) => value.toLocaleString("en-US", {
    maximumSignificantDigits: digits, maximumFractionDigits: 0, roundingPriority: "morePrecision",
  });
  /** Quantity with the largest prefix that it reaches. */
  function prefixed(value, unit, prefixes, digits = 3) {
    const [prefix, scale] = prefixes.find(([, size]) => value >= size * 0.9995) ?? prefixes.at(-1);
    return `${significant(value / scale, digits)} ${prefix}${unit}`;
  }
  const si = (value, unit, digits) => prefixed(value, unit, LARGE_PREFIXES, digits);
  const seconds = (value) => prefixed(value, "s", TIME_PREFIXES);
  const integer = (value) => value.toLocaleString("en-US");
  /** Share in percent; a share below 1 is never 100%. */
  function percent(value) {
    const text = significant(100 * value);
    if (text !== "100" || value >= 1 - TOLERANCE) return `${text}%`;
    return `${Math.min(Math.floor(1e5 * value) / 1e3, 99.999)}%`;
  }
  /** Number with a prefix from a thousand on: 12.3k. */
  const compact = (value) =>
    (value < 999.5 ? significant(value) : si(value, "").replace(" ", ""));
  const bytes = (value) =>
    (value >= 999.5e9 && value < 1e14 ? `${significant(value / 1e9, 4)} GB` : si(value, "B"));
  function usd(value) {
    if (value >= 100) return `$${integer(Math.round(value))}`;
    return `$${value >= 1 ? value.toFixed(2) : significant(value)}`;
  }
  /** Number with its noun, in the plural unless 1: "1 chip", "8 chips". */
  const counted = (number, noun) => `${integer(number)} ${noun}${number === 1 ? "" : "s"}`;
  /** Names as a list in a sentence: "A, B and C". */
  const joinNames = (names) =>
    (names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`);

  return {
    TOLERANCE, ceil, floor, sum, firstInteger, compare, significant, si, seconds, integer, percent,
    compact, bytes, usd, counted, joinNames,
  };
})();
