"use strict";
/* The page of the charts: a list, one chart large at a time, menus that filter it, and its files. */

document.addEventListener("DOMContentLoaded", async () => {
  const { load, make, picker, state, go, tellUnknown, theme, follow } = ROOFLINES;
  const { charts, themes, formula } = await load("charts", "assets/charts-data.js");
  const $ = (id) => document.getElementById(id);
  const links = [...document.querySelectorAll("#charts a")];
  if (!charts.length) return;

  const ROWS_SHOWN = 200;
  const NARROW = 620; // pixels below which a chart takes its narrow layout
  const OPTIONS = new Map(); // what the menus of all charts offer, by name
  for (const { name, options } of charts.flatMap(({ params }) => params)) OPTIONS.set(name, new Set([...OPTIONS.get(name) ?? [], ...options.map(String)]));
  const EMBED = {
    ast: true, // interpreted: no eval, so a strict Content-Security-Policy holds
    actions: false, // its editor would send the chart to another site
    logLevel: 1, // errors alone: a filter that leaves nothing for one layer is none
    renderer: "svg",
    defaultStyle: false,
    tooltip: { disableDefaultStyle: true, theme: "page" },
  };
  let shown = null; // the chart, theme and view on the stage
  let turn = 0; // a chart that took long to load must not replace one asked for later

  const current = () => charts.find((chart) => chart.id === state().get("chart")) ?? charts[0];

  /** The options that a view shows, by menu; menus that it does not have are left out. */
  const valuesOf = (one, view) => new Map(one.menus.map((name, i) => [name, view.values[i]]).filter(([, value]) => value != null));

  /** The view that has most of the wanted options: earlier menus of the list count more. */
  function nearest(one, wanted) {
    const names = [...wanted.keys()];
    const worth = (view) => {
      const values = valuesOf(one, view);
      return names.reduce((sum, name, i) => sum + (String(values.get(name)) === wanted.get(name) ? 2 ** (names.length - i) : 0), 0);
    };
    return one.views.reduce((best, view) => (worth(view) > worth(best) ? view : best), one.views[0]);
  }

  /** The view that the address asks for, or the nearest one. */
  function viewOf(chart, one) {
    const asked = chart.params.filter(({ name }) => state().has(name));
    return nearest(one, new Map(asked.map(({ name }) => [name, state().get(name)])));
  }

  function showMenus(chart, one, view) {
    const focused = document.activeElement?.closest("[data-param]")?.dataset.param;
    const values = valuesOf(one, view);
    const has = (wanted) => one.views.some((each) => [...wanted].every(([name, value]) => valuesOf(one, each).get(name) === value));
    const menus = chart.params.filter(({ name }) => values.has(name)).map(({ name, title, options, labels }) => {
      const lacks = (option) => name !== "by" && name !== "chip" && !has(new Map(values).set(name, option));
      const control = picker(title, options.map((option, i) => [String(option), labels[i], lacks(option)]), String(values.get(name)), (value) => go({ [name]: value }));
      control.dataset.param = name;
      return control;
    });
    const asked = chart.params.some(({ name }) => state().has(name));
    const reset = make("button", { type: "button", class: "quiet", hidden: !asked, onclick: () => go(Object.fromEntries(chart.params.map((p) => [p.name, null]))) }, "Reset");
    $("controls").replaceChildren(...menus, reset);
    $("controls").querySelector(`[data-param="${focused}"] :is(select, input)`)?.focus();
    const missing = chart.params.filter(({ name }) => state().has(name) && String(values.get(name) ?? state().get(name)) !== state().get(name));
    $("note").replaceChildren(missing.map(({ name }) => `${state().get(name)} is not in this chart; it shows ${values.get(name)}.`).join(" "));
    if (missing.some(({ name }) => name === "chip" || name === "dtypes")) {
      const wanted = new URLSearchParams(["chip", "dtypes"].filter((name) => state().has(name)).map((name) => [name, state().get(name)]));
      $("note").append(" ", make("a", { href: `index.html#${wanted}` }, "The explorer has every chip and data type of the catalogue."));
    }
  }

  function showText(chart) {
    $("family").textContent = chart.heading;
    $("caption").textContent = chart.caption;
    for (const link of links) {
      if (link.dataset.chart === chart.id) {
        link.setAttribute("aria-current", "true");
        const list = $("charts"); // scrolled by hand: scrollIntoView would move the page as well
        const item = link.getBoundingClientRect(), frame = list.getBoundingClientRect();
        if (item.top < frame.top || item.bottom > frame.bottom) list.scrollTop += item.top - frame.top - 60;
        if (item.left < frame.left || item.right > frame.right) list.scrollLeft += item.left - frame.left - 20;
      } else link.removeAttribute("aria-current");
    }
    const place = charts.indexOf(chart);
    $("place").textContent = `${place + 1} of ${charts.length}`;
    $("files").replaceChildren(...chart.files.map(([text, file]) => make("a", { href: file, download: true }, text)));
  }

  /** The rows of the marks of a view: its longest list. */
  const rowsOf = (view) => Object.values(view.datasets).reduce((best, rows) => (rows.length > best.length ? rows : best), []);

  /** Show the data behind the view, once they are asked for. */
  function showRows() {
    if (!$("behind").open || !shown) return;
    const rows = rowsOf(shown.view);
    const columns = Object.keys(rows[0] ?? {}).filter((name) => rows.some((row) => row[name] != null));
    const text = (value) => (typeof value === "number" ? value.toLocaleString("en-US", { maximumSignificantDigits: 6 }) : String(value ?? ""));
    const kind = (value) => ({ class: typeof value === "number" ? "number" : null });
    $("rows").replaceChildren(
      make("thead", {}, make("tr", {}, ...columns.map((name) => make("th", { scope: "col", ...kind(rows[0][name]) }, name)))),
      make("tbody", {}, ...rows.slice(0, ROWS_SHOWN).map((row) => make("tr", {}, ...columns.map((name) => make("td", kind(row[name]), text(row[name])))))),
    );
    const first = rows.length > ROWS_SHOWN ? `, of which here are the first ${ROWS_SHOWN}; CSV has all` : "";
    $("rows-note").textContent = `${rows.length.toLocaleString("en-US")} rows of this view${first}.`;
  }

  /** The layout and text size that fill the width; all lengths in a chart are multiples of its text size. */
  function sizeFor(spec) {
    const room = $("plot").clientWidth;
    const layout = room < NARROW ? "paper" : "web";
    const drawn = spec.usermeta?.looks?.[layout];
    const ems = Object.keys(themes.light[layout]).map(Number).sort((a, b) => a - b);
    const across = drawn ? (drawn.width + drawn.padding.left + drawn.padding.right) / drawn.em : 0;
    return { layout, em: ems.findLast((em) => em * across <= room) ?? ems[0] };
  }

  /** The specification of a view: layers, rows and parameters put into that of the chart. */
  function specOf({ spec, layers }, view) {
    const params = spec.params.map((param) => (param.name in view.params ? { ...param, value: view.params[param.name] } : param));
    const more = Object.entries(view.params).filter(([name]) => !params.some((param) => param.name === name)).map(([name, value]) => ({ name, value }));
    return { ...spec, params: [...params, ...more], layer: layers[view.layer], datasets: view.datasets };
  }

  /** A spec in a size; `titled`: with the title, which the page has itself. */
  function inSize(spec, { layout, em }, titled) {
    const own = structuredClone(spec);
    const drawn = own.usermeta.looks[layout];
    const scale = em / drawn.em;
    const padding = { ...drawn.padding };
    if (!titled) padding.top = own.usermeta.looks.paper.padding.top / own.usermeta.looks.paper.em * drawn.em;
    own.width = drawn.width * scale;
    own.height = drawn.height * scale;
    own.padding = Object.fromEntries(Object.entries(padding).map(([side, pixels]) => [side, pixels * scale]));
    if (!titled) {
      delete own.title;
      own.layer = own.layer.filter((each) => each.mark?.style !== "subtitle");
    }
    for (const param of own.params) {
      if (param.name === "em") param.value = em;
      if (param.name === "narrow") param.value = drawn.narrow;
    }
    return own;
  }

  /** Set title and setting to what the view says. */
  function showFinding({ title, subtitle }) {
    document.title = `${title} – ${document.querySelector(".brand span").textContent}`;
    $("title").textContent = title;
    $("setting").textContent = subtitle.join(" ");
    $("plot").setAttribute("aria-label", `Chart: ${description()}`);
    $("live").textContent = title;
  }

  async function draw(chart, mode) {
    const mine = ++turn;
    $("stage").setAttribute("aria-busy", "true");
    try {
      const one = await load(`chart/${chart.id}`, chart.spec);
      await document.fonts.load("500 13px Inter"); // labels are measured when they are drawn
      if (mine !== turn) return;
      const view = viewOf(chart, one);
      const spec = specOf(one, view);
      const size = sizeFor(spec);
      const config = themes[mode][size.layout][size.em];
      const plot = make("div", { "aria-hidden": "true" }); // the picture around it has the name
      shown?.drawn.finalize();
      $("plot").replaceChildren(plot);
      $("card").style.setProperty("--plot", config.background ?? "");
      const { view: drawn } = await vegaEmbed(plot, inSize(spec, size, false), { ...EMBED, config });
      if (mine !== turn) return drawn.finalize();
      shown = { chart, mode, size, drawn, one, spec, view };
      showMenus(chart, one, view);
      showFinding(view);
      showRows();
      $("stage").dataset.drawn = `${chart.id} ${mode}`;
    } catch (error) {
      if (mine !== turn) return;
      shown = null;
      $("plot").replaceChildren(make("p", { class: "failed" }, `This chart could not be drawn: ${error.message}. Its picture is among the files below.`));
      console.error(error);
    } finally {
      if (mine === turn) $("stage").removeAttribute("aria-busy");
    }
  }

  /** Report what the address asks for that is not there. Choices of other charts go along; those of this one have a note. */
  function showUnknown(chart) {
    const lost = state().has("chart") && state().get("chart") !== chart.id ? [["chart", state().get("chart"), `unknown; shown is ${chart.id}`]] : [];
    for (const [name, values] of OPTIONS) {
      if (state().has(name) && !values.has(state().get(name))) lost.push([name, state().get(name), "in no chart of this site"]);
    }
    tellUnknown(["chart", ...OPTIONS.keys()], lost);
  }

  function apply() {
    const chart = current();
    const mode = theme();
    showUnknown(chart);
    showText(chart);
    if (shown?.chart !== chart) {
      $("title").textContent = chart.title;
      $("setting").textContent = chart.subtitle;
    }
    return draw(chart, mode);
  }

  /** The chart `by` places further; the list goes round. */
  const step = (by) => go({ chart: charts[(charts.indexOf(current()) + by + charts.length) % charts.length].id }, true);

  /** The specification of the view, in light colours and the size of the web. */
  const viewSpec = () => JSON.stringify({ ...shown.spec, description: description(), config: themes.light.web[shown.spec.usermeta.looks.web.em] });

  /** What a screen reader says of the view. */
  const description = () => `${$("title").textContent}. ${$("setting").textContent}`;

  /** A picture with its name for screen readers. */
  function named(drawn) {
    const { documentElement } = new DOMParser().parseFromString(drawn, "image/svg+xml");
    documentElement.setAttribute("role", "img");
    documentElement.setAttribute("aria-label", description());
    return new XMLSerializer().serializeToString(documentElement);
  }

  /** The picture of the view with its title and subtitle, in the size of the web. */
  async function picture(kind) {
    const { mode, spec } = shown;
    const { em } = spec.usermeta.looks.web;
    const { view } = await vegaEmbed(make("div"), inSize(spec, { layout: "web", em }, true), { ...EMBED, config: themes[mode].web[em] });
    const drawn = kind === "svg" ? named(await view.toSVG()) : await view.toImageURL("png", 2);
    view.finalize();
    return drawn;
  }

  /** Rows as comma-separated values. Text that a spreadsheet would run as a formula is quoted by an apostrophe. */
  function csv(rows) {
    const columns = Object.keys(rows[0] ?? {});
    const text = (value) => {
      const plain = typeof value === "string" ? value.replace(new RegExp(formula, "g"), "$1'$2") : String(value ?? "");
      return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
    };
    return [columns, ...rows.map((row) => columns.map((name) => row[name]))].map((line) => `${line.map(text).join(",")}\n`).join("");
  }

  const SAVED = {
    png: { ending: "png", of: () => picture("png") },
    svg: { ending: "svg", type: "image/svg+xml", of: () => picture("svg") },
    csv: { ending: "csv", type: "text/csv", of: async () => csv(rowsOf(shown.view)) },
    json: { ending: "vl.json", type: "application/json", of: async () => viewSpec() },
  };

  /** Save the view; the file's name has the chart and its choices. */
  async function saveView(kind) {
    if (!shown) return;
    const { ending, type, of } = SAVED[kind];
    const stem = [shown.chart.id, ...valuesOf(shown.one, shown.view).values()].join("-").replace(/[^\w.]+/g, "-");
    const saved = await of();
    const url = type ? URL.createObjectURL(new Blob([saved], { type })) : saved;
    make("a", { href: url, download: `${stem}.${ending}` }).click();
    if (type) setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  for (const link of links) {
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      go({ chart: link.dataset.chart }, true);
    });
  }
  $("charts").addEventListener("keydown", (event) => {
    const at = links.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: links.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    links[Math.min(Math.max(to, 0), links.length - 1)].focus();
  });
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea, [tabindex='0'], summary")) return;
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });
  $("previous").addEventListener("click", () => step(-1));
  $("next").addEventListener("click", () => step(1));
  for (const kind of Object.keys(SAVED)) $(`view-${kind}`).addEventListener("click", () => saveView(kind));
  $("behind").addEventListener("toggle", showRows);
  $("copy").addEventListener("click", async () => {
    // A page opened from a folder may be refused the clipboard; the address bar has the same.
    const chart = current();
    const values = shown ? [...valuesOf(shown.one, shown.view)].filter(([name]) => chart.params.some((param) => param.name === name)) : [];
    go({ chart: chart.id, ...Object.fromEntries(values) });
    const said = await navigator.clipboard?.writeText(location.href).then(() => "Copied", () => null);
    $("copy").textContent = said ?? "The link is in the address bar";
    setTimeout(() => { $("copy").textContent = "Copy link to this view"; }, 2000);
  });
  let resized = 0;
  addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(() => {
      const size = shown && sizeFor(shown.spec);
      if (size && (size.em !== shown.size.em || size.layout !== shown.size.layout)) draw(shown.chart, shown.mode);
    }, 150);
  });
  follow(apply);
});
