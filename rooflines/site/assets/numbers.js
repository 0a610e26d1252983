"use strict";
/* Numbers as text, integers from doubles, and order of values. No page is needed.

   NUMBER_FORMATS is the table of formats of rooflines/basics/text.py, whose texts are the same. */

const NUMBERS = (() => {
  const TOLERANCE = 1e-12; // relative rounding error of a double
  const { digits: DIGITS, prefixes: PREFIXES, formats: FORMATS } = NUMBER_FORMATS;
  const MAX_DECIMALS = 100; // of Number.toFixed: all that a double of a few digits has

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

  /** Integers from `min` to `max`, `perOctave` in each doubling. */
  function octaves(min, max, perOctave) {
    const steps = Math.max(0, Math.ceil(Math.log2(max / min) * perOctave));
    const sizes = Array.from({ length: steps + 1 }, (_, i) =>
      Math.min(max, Math.round(min * 2 ** (i / perOctave))));
    return [...new Set([...sizes, max])];
  }

  /** Order of two numbers or texts, as for Array.sort; null comes last in both directions. */
  function compare(a, b, descending) {
    if (a === null || b === null) return (a === null) - (b === null);
    if (a === b) return 0;
    const order = typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
    return descending ? -order : order;
  }

  const withSeparators = (text) => text.replace(/\B(?<!\.\d*)(?=(\d{3})+(?!\d))/g, ",");
  const withoutZeros = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

  /** Decimals of an exact text cut, if they are a tie and what stays is even; else null. */
  function cutEvenTie(exact, decimals) {
    const end = exact.indexOf(".") + 1 + decimals;
    const cut = exact.slice(0, end).replace(/\.$/, "");
    return /^50*$/.test(exact.slice(end)) && /[02468]$/.test(cut) ? cut : null;
  }
  /** Number with some decimals; a tie is rounded to an even digit, as in Python. */
  function fixed(value, decimals) {
    const even = cutEvenTie(value.toFixed(MAX_DECIMALS), decimals);
    return withSeparators(even ?? value.toFixed(decimals));
  }
  /** Number with a few significant digits, integers in full; no trailing zeros. */
  function significant(value, digits = DIGITS) {
    const magnitude = Number(value.toExponential().split("e")[1]);
    const decimals = value ? Math.max(digits - 1 - magnitude, 0) : 0;
    return withoutZeros(fixed(value, decimals));
  }
  /** Number with an exponent of two digits or more: 1.23e+06. */
  function exponential(value, digits) {
    const [exact, exactPower] = value.toExponential(MAX_DECIMALS).split("e");
    const [rounded, power] = value.toExponential(digits - 1).split("e");
    const even = cutEvenTie(exact, digits - 1);
    const text = `${withoutZeros(even ?? rounded)}e${even ? exactPower : power}`;
    return text.replace(/e([+-])(\d)$/, "e$10$2");
  }
  /** Number rounded down to some decimals. */
  function cutAfter(value, decimals) {
    return withoutZeros((Math.floor(value * 10 ** decimals) / 10 ** decimals).toFixed(decimals));
  }

  /** Largest prefix that the rounded value reaches, or the smallest, with its size. */
  function findPrefix(value, prefixes, digits) {
    const rounding = 1 - 0.5 * 10 ** -digits; // 999.96 GB/s rounds to 1 TB/s
    const entries = Object.entries(prefixes);
    return entries.find(([, size]) => Math.abs(value) >= size * rounding) ?? entries.at(-1);
  }

  /** Digits of a number in a range of a format. */
  function digitText(value, range, digits) {
    if (range.exponent) return exponential(value, digits);
    if (range.decimals !== undefined) return fixed(value, range.decimals);
    return range.cut === undefined ? significant(value, digits) : cutAfter(value, range.cut);
  }

  /** Number as text in a format of the table; `unit` and `digits` are for formats without. */
  function formatNumber(value, kind, { unit = "", digits: defaultDigits = DIGITS } = {}) {
    const range = FORMATS[kind].find(({ below = Infinity }) => Math.abs(value) < below);
    const digits = range.digits ?? defaultDigits;
    const scaled = value * (range.scale ?? 1);
    const [prefix, size] =
      range.prefixes ? findPrefix(scaled, PREFIXES[range.prefixes], digits) : ["", 1];
    const text = digitText(scaled / size, range, digits);
    return [range.sign, text, range.space, prefix, range.unit ?? unit].join("");
  }
  const si = (value, unit, digits) => formatNumber(value, "quantity", { unit, digits });
  const seconds = (value) => formatNumber(value, "seconds");
  const integer = (value) => formatNumber(value, "integer");
  const percent = (value) => formatNumber(value, "percent");
  const compact = (value) => formatNumber(value, "compact");
  const bytes = (value) => formatNumber(value, "memory");
  const usd = (value) => formatNumber(value, "usd");
  /** Number with its noun, in the plural unless 1: "1 chip", "8 chips". */
  const counted = (number, noun) => `${integer(number)} ${noun}${number === 1 ? "" : "s"}`;
  /** Names as a list in a sentence: "A, B and C". */
  const joinNames = (names) =>
    (names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`);

  return {
    TOLERANCE, ceil, floor, sum, firstInteger, octaves, compare, formatNumber, significant, si,
    seconds, integer, percent, compact, bytes, usd, counted, joinNames,
  };
})();
