"use strict";
/* Numbers as text, as rooflines.basics.text writes them; the prefixes come with the data. */

const FORMAT = ({ large, small }) => {
  const { ONE, compare, number } = EXACT;

  function significant(value, digits = 3) {
    const decimals = value ? Math.min(20, Math.max(digits - 1 - Math.floor(Math.log10(Math.abs(value))), 0)) : 0;
    return value.toLocaleString("en-US", { maximumFractionDigits: decimals });
  }
  function prefixed(value, unit, scales, digits = 3) {
    const rounding = 1 - 0.5 * 10 ** -digits;
    const [prefix, scale] = scales.find(([, one]) => value >= one * rounding) ?? scales.at(-1);
    return `${significant(value / scale, digits)} ${prefix}${unit}`;
  }
  const si = (value, unit, digits) => prefixed(number(value), unit, [...large, ["", 1]], digits);
  const seconds = (value) => prefixed(number(value), "s", small);
  /** A share in percent; less than all is never 100%. */
  function percent(value) {
    const text = significant(100 * number(value));
    return `${text === "100" && compare(value, ONE) < 0 ? Math.min(Math.floor(1e5 * number(value)) / 1e3, 99.999) : text}%`;
  }
  const count = (value) => value.toLocaleString("en-US");

  return { significant, prefixed, si, seconds, percent, count };
};
