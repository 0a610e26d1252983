"use strict";
/* Exact arithmetic of the pages "What if" and "Models": fractions of BigInt, polynomials, and where one line overtakes another.

   No formula of the model is here. Its coefficients come from formulas.py and steps.py, as integers and as text such as 1/8. */

const EXACT = (() => {
  const DECIMAL = /^(\d+)(?:\.(\d*))?(?:e([+-]?\d{1,3}))?$/i;

  function gcd(a, b) {
    while (b) [a, b] = [b, a % b];
    return a < 0n ? -a : a;
  }

  /** The fraction n / d; d is above zero. */
  function ratio(n, d = 1n) {
    const common = gcd(n, d);
    return common > 1n ? { n: n / common, d: d / common } : { n, d };
  }

  const ZERO = ratio(0n);
  const ONE = ratio(1n);

  /** An integer, or text such as 1/8. */
  function rational(value) {
    const [n, d = "1"] = String(value).split("/");
    return ratio(BigInt(n), BigInt(d));
  }

  /** A decimal as it is written, such as 1.97e14; null: it is none. */
  function decimal(text) {
    const match = DECIMAL.exec(text);
    if (!match) return null;
    const [, whole, fraction = "", exponent = "0"] = match;
    const power = BigInt(exponent) - BigInt(fraction.length);
    const digits = BigInt(whole + fraction);
    return power < 0n ? ratio(digits, 10n ** -power) : ratio(digits * 10n ** power);
  }

  const plus = (a, b) => ratio(a.n * b.d + b.n * a.d, a.d * b.d);
  const minus = (a, b) => ratio(a.n * b.d - b.n * a.d, a.d * b.d);
  const times = (a, b) => ratio(a.n * b.n, a.d * b.d);
  const over = (a, b) => (b.n < 0n ? ratio(-a.n * b.d, a.d * -b.n) : ratio(a.n * b.d, a.d * b.n));
  const compare = (a, b) => {
    const [left, right] = [a.n * b.d, b.n * a.d];
    return left < right ? -1 : left > right ? 1 : 0;
  };
  const largest = (list) => list.reduce((a, b) => (compare(b, a) > 0 ? b : a));
  const smallest = (list) => list.reduce((a, b) => (compare(b, a) < 0 ? b : a));
  const sum = (list) => list.reduce(plus, ZERO);

  /** The smallest integer that is not below a fraction. */
  const ceil = ({ n, d }) => (n > 0n ? (n + d - 1n) / d : n / d);

  /** The double next to a fraction; its quotient is computed to 64 bits and more. */
  function number({ n, d }) {
    if (n < 0n) return -number({ n: -n, d });
    const shift = d.toString(2).length - n.toString(2).length + 64;
    return shift > 0 ? Number((n << BigInt(shift)) / d) * 2 ** -shift : Number(n / d);
  }

  /** The value at n of a polynomial, from the coefficients of n^0, n^1, ... */
  const polynomial = (coefficients, n) => coefficients.reduceRight((value, each) => plus(times(value, n), each), ZERO);

  /** Slope and constant of a function that is affine in n. */
  function line(at) {
    const constant = at(ZERO);
    return { slope: minus(at(ONE), constant), constant };
  }

  /** From which n on the first line is at least the second; null: never. */
  function overtakes(first, second) {
    const gain = minus(first.slope, second.slope);
    const room = minus(second.constant, first.constant);
    if (gain.n > 0n) return largest([over(room, gain), ZERO]);
    return gain.n === 0n && room.n <= 0n ? ZERO : null;
  }

  /** The open interval in which a line is above all others; null: without end. */
  function above(first, others) {
    const [begins, ends] = [[], []];
    for (const other of others) {
      const [gain, lead] = [minus(first.slope, other.slope), minus(first.constant, other.constant)];
      if (gain.n !== 0n) (gain.n > 0n ? begins : ends).push(over(minus(ZERO, lead), gain));
      else if (lead.n <= 0n) return { begin: ZERO, end: ZERO };
    }
    return { begin: begins.length ? largest(begins) : null, end: ends.length ? smallest(ends) : null };
  }

  /** What open intervals have in common. */
  function common(intervals) {
    const [begins, ends] = ["begin", "end"].map((name) => intervals.map((one) => one[name]).filter((one) => one !== null));
    return { begin: begins.length ? largest(begins) : null, end: ends.length ? smallest(ends) : null };
  }

  /** The last k from 0 to `top` that holds, where all above one that fails do; null: not even 0. */
  function last(top, holds) {
    if (top < 0n || !holds(0n)) return null;
    let [low, high] = [0n, top];
    while (low < high) {
      const middle = (low + high + 1n) / 2n;
      if (holds(middle)) low = middle;
      else high = middle - 1n;
    }
    return low;
  }

  return { ZERO, ONE, ratio, rational, decimal, plus, minus, times, over, compare, largest, smallest, sum, ceil, number, polynomial, line, overtakes, above, common, last };
})();
