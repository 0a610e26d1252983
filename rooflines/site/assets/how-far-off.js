"use strict";
/* The page "How far off?": rows filtered and sorted, as a picture and as a table. Every value comes from the files. */

document.addEventListener("DOMContentLoaded", async () => {
  const { load, unpacked, make, menu, state, go, tellUnknown, follow } = ROOFLINES;
  const { sorted, showHead, paged, lostOf } = TABLE;
  const { svg, ticks } = ROOFLINE;
  const $ = (id) => document.getElementById(id);
  const { keys, wholes, meanings, shown, spreads, rows: packed } = await load("how-far-off", "data/how-far-off.js");
  const rows = unpacked(packed);

  const ROWS = 20; // of a page
  const EVERY = "every"; // the value of a menu of `wholes` that shows parts and wholes
  const NONE = "none"; // a missing value of a menu
  const LABELS = { dtypes: "Data types", shards: "Number of chips" };
  const SIDES = ["a", "b"]; // classes of the marks of the picture, the bound's first
  const DIGITS = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });
  const FORMS = {
    count: (value) => value.toLocaleString("en-US"),
    percent: (value) => `${DIGITS.format(value)} %`,
    share: (value) => `${DIGITS.format(100 * value)} %`,
    times: (value) => `${DIGITS.format(value)} ×`,
  };

  const [ALL] = wholes.map((name) => rows[0][name]); // the value of a whole, that of the first row
  const word = (value) => value ?? NONE;
  const label = (name) => LABELS[name] ?? name[0].toUpperCase() + name.slice(1);
  /** The values of a column as rows have them; numbers in order. */
  function valuesOf(name) {
    const found = [...new Set(rows.map((row) => word(row[name])))];
    return found.every((one) => one === ALL || Number(one)) ? found.sort((a, b) => (b === ALL) - (a === ALL) || a - b) : found;
  }
  const LEVELS = new Map(keys.map((name) => [name, valuesOf(name)]));
  const levels = (name) => LEVELS.get(name);

  /** The value of a menu: of a whole `all`, of the others "", which is any. */
  function wanted(name) {
    const whole = wholes.includes(name);
    const asked = state().get(name);
    if (whole && asked === EVERY) return "";
    return levels(name).includes(asked) ? asked : whole ? ALL : "";
  }

  function showMenus() {
    const focused = document.activeElement?.closest("[data-param]")?.dataset.param;
    const menus = [];
    const add = (name, ...rest) => {
      const control = menu(...rest);
      control.dataset.param = name;
      control.title = meanings[name];
      menus.push(control);
    };
    for (const name of keys) {
      if (levels(name).length < 2) continue;
      const whole = wholes.includes(name);
      const options = levels(name).map((level) => [level, level]);
      add(name, label(name), whole ? [...options, ["", EVERY]] : [["", "all"], ...options], wanted(name),
        (value) => go({ [name]: value || (whole ? EVERY : null), page: null }));
    }
    $("controls").replaceChildren(...menus);
    $("controls").querySelector(`[data-param="${focused}"] select`)?.focus();
  }

  /** What tells a row from the others that are shown. */
  const nameOf = (row, apart) => apart.map((key) => row[key]).filter((value) => value != null).join(" · ");

  /** Rows as lines from p10 to p90 with a mark at the median, on one logarithmic axis. */
  function picture(strips, apart) {
    const into = $("spread");
    const sides = Object.entries(spreads).map(([over, names], place) => ({ over, names, key: SIDES[place] }));
    const values = strips.flatMap((row) => sides.flatMap(({ names }) => names.map((name) => row[name]))).filter((value) => value > 0);
    into.replaceChildren();
    if (!values.length) return;
    const width = Math.max(280, into.clientWidth);
    const [narrow, line, top, right, bottom] = [width < 700, 18, 10, 66, 46];
    const left = narrow ? 10 : 320;
    const tall = sides.length * line + 12 + (narrow ? line : 0);
    const height = top + tall * strips.length + bottom;
    const [low, high] = [Math.min(...values, 1) / 1.1, Math.max(...values, 2) * 1.1];
    const x = (value) => left + (width - left - right) * Math.log(value / low) / Math.log(high / low);
    const drawn = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    const foot = height - bottom;
    for (const value of ticks(low, high, Math.max(2, Math.floor((width - left) / 70)))) {
      drawn.append(svg("line", { class: value === 1 ? "one" : "grid", x1: x(value), x2: x(value), y1: top, y2: foot }),
        svg("text", { x: x(value), y: foot + 18, "text-anchor": "middle" }, `${value.toLocaleString("en-US")} ×`));
    }
    drawn.append(svg("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, "measured over predicted time"));
    for (const [place, row] of strips.entries()) {
      const start = top + place * tall;
      const name = nameOf(row, apart);
      const cut = narrow ? Math.floor(width / 8) : 46;
      const at = narrow ? { x: left, y: start + 14 } : { x: left - 14, y: start + tall / 2 + 4, "text-anchor": "end" };
      drawn.append(svg("text", { class: "of", ...at }, name.length > cut ? `${name.slice(0, cut - 1)}…` : name));
      const known = sides.filter(({ names }) => row[names[0]] > 0);
      for (const [index, { over, names, key }] of known.entries()) {
        const [from, middle, to] = names.map((one) => row[one]);
        const y = start + tall / 2 + line * (index + (1 - known.length) / 2) + (narrow ? line / 2 : 0);
        const mark = key === "b"
          ? svg("rect", { class: `point ${key}`, x: x(middle) - 5, y: y - 5, width: 10, height: 10, transform: `rotate(45 ${x(middle)} ${y})` })
          : svg("circle", { class: `point ${key}`, cx: x(middle), cy: y, r: 6 });
        const said = `${name}, measured over ${over}: p10 ${FORMS.times(from)}, median ${FORMS.times(middle)}, p90 ${FORMS.times(to)}`;
        drawn.append(svg("g", { class: "strip", "data-row": place, "data-over": over }, svg("title", {}, said),
          svg("line", { class: key, x1: x(from), x2: x(to), y1: y, y2: y }), mark),
        svg("text", { class: key, x: width - 4, y: y + 4, "text-anchor": "end" }, FORMS.times(middle)));
      }
    }
    into.append(drawn);
  }

  function showLegend() {
    const overs = Object.keys(spreads);
    $("legend").replaceChildren(...overs.flatMap((over, place) => [make("span", { class: `mark ${SIDES[place]}`, "aria-hidden": "true" }), ` measured over ${over}. `]),
      `The line is from p10 to p90, the mark and the number are the median. Rows and their order are those of the table below; left of 1 is faster than ${overs.join(" or ")}.`);
  }

  function showRows() {
    const wants = keys.map((key) => [key, wanted(key)]).filter(([, value]) => value);
    const fits = rows.filter((row) => wants.every(([key, value]) => word(row[key]) === value));
    const page = paged(sorted(fits, [...keys, ...shown.map(({ name }) => name)]), ROWS);
    const apart = keys.filter((key) => new Set(fits.map((row) => row[key])).size > 1);
    const named = apart.filter((key) => new Set(page.map((row) => row[key])).size > 1);
    const same = page.length ? keys.filter((key) => !named.includes(key) && ![null, ALL].includes(page[0][key])) : [];
    $("fixed").textContent = same.length ? `In all rows shown: ${same.map((key) => `${label(key).toLowerCase()} ${page[0][key]}`).join(" · ")}.` : "";
    const numbers = shown.filter(({ name }) => fits.some((row) => row[name] != null));
    showHead([...apart.map((key) => ({ name: key, text: key, title: meanings[key] })),
      ...numbers.map(({ name, text, meaning }) => ({ name, text, title: meaning, kind: "number" }))]);
    $("body").replaceChildren(...page.map((row) => make("tr", {},
      ...apart.map((key) => make("td", { class: row[key] == null ? "none" : null }, row[key] ?? "–")),
      ...numbers.map(({ name, form }) => make("td", { class: row[name] == null ? "number none" : "number", "data-column": name },
        row[name] == null ? "–" : FORMS[form](row[name]))))));
    const count = fits.reduce((sum, row) => sum + row.n, 0).toLocaleString("en-US");
    const overlap = wholes.some((name) => wanted(name) === "");
    $("count").textContent = `${fits.length.toLocaleString("en-US")} of ${rows.length.toLocaleString("en-US")} rows${overlap ? "" : `, ${count} ${shown[0].text}`}.`;
    $("empty").hidden = fits.length > 0;
    picture(page, named.length ? named : keys.filter((key) => !wholes.includes(key)));
  }

  /** What the address asks for that is not there. */
  function unknown() {
    const lost = [];
    for (const key of keys.filter((one) => state().has(one))) {
      const asked = state().get(key);
      if (levels(key).includes(asked) || (wholes.includes(key) && asked === EVERY)) continue;
      lost.push([key, asked, `not among these timings; shown is ${wanted(key) || "all"}`]);
    }
    return [...lost, ...lostOf([...keys, ...shown.map(({ name }) => name)])];
  }

  function apply() {
    showMenus();
    showRows();
    tellUnknown(["sort", "page", ...keys], unknown());
    document.querySelector(".far").dataset.drawn = location.hash;
  }

  showLegend();
  addEventListener("resize", showRows);
  follow(apply);
});
