"use strict";
/* A measured number: its text, its time, and its place beside bound and estimate. No page is
   needed.

   `scales` comes from explorer.py: the units that commands read, by kind. */

const MEASUREMENT = (() => {
  const TIME = "time";
  const [MFU, HFU, MBU] = ["mfu", "hfu", "mbu"];
  const [BELOW, INSIDE, ABOVE] = ["below", "inside", "above"];
  const SLACK = 1e-9; // share by which a time may be below the bound from its own computation

  /** Half a unit in the last digit, over the number. */
  function rounding(digits) {
    const [mantissa] = digits.split("e");
    const decimals = mantissa.split(".")[1] ?? "";
    return 0.5 * 10 ** -decimals.length / Number(mantissa);
  }

  /** Measured number in a text, in SI units, with its kind and rounding; null if it is none. */
  function parse(text, scales) {
    const plain = text.trim().toLowerCase().replace(/(\d),(?=\d{3}(\D|$))/g, "$1");
    const [, digits, typed] = /^(\d+\.?\d*(?:e[+-]?\d+)?)(\D.*)$/.exec(plain) ?? [];
    const unit = typed?.replace(/[\s-]+/g, "");
    const kind = Object.keys(scales).find((name) => unit in scales[name]);
    const value = kind ? Number(digits) * scales[kind][unit] : 0;
    const limit = [MFU, HFU, MBU].includes(kind) ? 1 + SLACK : Infinity;
    if (!(value > 0 && value < limit)) return null;
    return { text: text.trim(), kind, value, rounding: rounding(digits) };
  }

  /** Time [s]: the number itself, or amount / rate; null without such an amount. */
  function measuredTime({ kind, value }, amounts) {
    if (kind === TIME) return value;
    return kind in amounts ? amounts[kind] / value : null;
  }

  /** Place in a band. */
  function bandPlace(time, [low, high]) {
    if (time < low) return BELOW;
    return time > high ? ABOVE : INSIDE;
  }

  /** Measured time beside bound and estimate: `boundShare`, `estimateRatio` and `place`. */
  function judge(measurement, amounts, lower, estimate) {
    const time = measuredTime(measurement, amounts);
    if (time === null) return null;
    const longest = time * (1 + measurement.rounding) * (1 + SLACK);
    return {
      time, lower, estimate, boundShare: lower / time, beatsBound: longest < lower,
      estimateRatio: estimate ? time / estimate.time : null,
      place: estimate?.band ? bandPlace(time, estimate.band) : null,
    };
  }

  return { TIME, BELOW, INSIDE, ABOVE, parse, judge };
})();
