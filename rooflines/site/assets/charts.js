"use strict";
/* The page of the charts: a list, one chart at a time, menus that filter it, and its files. */

document.addEventListener("DOMContentLoaded", async () => {
  const { load, make, menu, state, go, tellUnknown, theme, follow } = ROOFLINES;
  const { charts, themes, formula } = await load("charts", "assets/charts-data.js");
  const $ = (id) => document.getElementById(id);
  const links = [...document.querySelectorAll("#charts a")];
  if (!charts.length) return;

  const ROWS_SHOWN = 200;
  const NARROW = 620; // pixels below which a chart takes its narrow layout
  const OPTIONS = new Map(); // what the menus of all charts offer, by name
  for (const { name, options } of charts.flatMap(({ params }) => params)) {
    OPTIONS.set(name, new Set([...OPTIONS.get(name) ?? [], ...options.map(String)]));
  }
  const EMBED = {
    ast: true, // interpreted: no eval, so a strict Content-Security-Policy holds
    actions: false, // its editor would send the chart to another site
    logLevel: 1, // errors alone: a filter that leaves nothing for one layer is none
    renderer: "svg",
    defaultStyle: false,
    tooltip: { disableDefaultStyle: true, theme: "page" },
  };
  /** Names in the explorer of the menus of charts; of steps of models their formats. */
  const IN_EXPLORER = {
    chip: "chips", dtypes: "dtypes", basis: "basis", shape: "shape", split: "sharding",
    shards: "n", B: "B", S: "S",
  };
  let shown = null; // the chart, theme, layout and view on the stage
  let turn = 0; // a chart that took long to load must not replace one asked for later

  const current = () => charts.find((chart) => chart.id === state().get("chart")) ?? charts[0];
  const isAsked = ({ name }) => state().has(name);

  /** The options that a view shows, by menu; menus that it does not have are left out. */
  const valuesOf = (one, view) => new Map(
    one.menus.map((name, i) => [name, view.values[i]]).filter(([, value]) => value != null));

  /** The view that has most of what the address asks for: earlier menus of the list count more. */
  function viewOf(chart, one) {
    const names = chart.params.filter(isAsked).map(({ name }) => name);
    const worth = (view) => {
      const values = valuesOf(one, view);
      const fits = names.map((name) => String(values.get(name)) === state().get(name));
      return fits.reduce((sum, fit) => 2 * sum + (fit ? 1 : 0), 0);
    };
    return one.views.reduce((best, view) => (worth(view) > worth(best) ? view : best));
  }

  function showMenus(chart, one, view) {
    const focused = document.activeElement?.closest("[data-param]")?.dataset.param;
    const values = valuesOf(one, view);
    const has = (wanted) => one.views.some((each) =>
      [...wanted].every(([name, value]) => valuesOf(one, each).get(name) === value));
    const own = chart.params.filter(({ name }) => values.has(name));
    const menus = own.map(({ name, title, options, labels }) => {
      const lacks = (option) =>
        name !== "by" && name !== "chip" && !has(new Map(values).set(name, option));
      const listed = options.map((option, i) => [String(option), labels[i], lacks(option)]);
      const take = (value) => go({ [name]: value });
      const control = menu(title, listed, String(values.get(name)), take);
      control.dataset.param = name;
      return control;
    });
    const onclick = () => go(Object.fromEntries(chart.params.map(({ name }) => [name, null])));
    const hidden = !chart.params.some(isAsked);
    const reset = make("button", { type: "button", class: "quiet", hidden, onclick }, "Reset");
    $("controls").replaceChildren(...menus, reset);
    $("controls").querySelector(`[data-param="${focused}"] select`)?.focus();
    const missing = own.filter(isAsked)
      .filter(({ name }) => String(values.get(name)) !== state().get(name));
    $("note").textContent = missing.map(({ name }) =>
      `${state().get(name)} is not in this chart; it shows ${values.get(name)}.`).join(" ");
    showLink(values);
  }

  /** Link to the explorer with what the view shows; what the chart lacks is asked for there. */
  function showLink(values) {
    const steps = values.has("S");
    const names = steps ? { ...IN_EXPLORER, dtypes: "format", model: "model" } : IN_EXPLORER;
    const next = new URLSearchParams(steps ? { is: "model" } : {});
    for (const [name, key] of Object.entries(names)) {
      const value = ["chip", "dtypes"].includes(name) && state().get(name) || values.get(name);
      if (value != null && value !== "all") next.set(key, value === "nominal" ? "bound" : value);
    }
    $("to-explorer").href = `index.html#${next}`;
  }

  function showText(chart) {
    $("family").textContent = chart.heading;
    $("caption").textContent = chart.caption;
    for (const link of links) {
      const here = link.dataset.chart === chart.id;
      if (here) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
      if (!here) continue;
      const list = $("charts"); // scrolled by hand: scrollIntoView would move the page as well
      const [item, frame] = [link.getBoundingClientRect(), list.getBoundingClientRect()];
      if (item.top < frame.top || item.bottom > frame.bottom) {
        list.scrollTop += item.top - frame.top - 60;
      }
      if (item.left < frame.left || item.right > frame.right) {
        list.scrollLeft += item.left - frame.left - 20;
      }
    }
    $("place").textContent = `${charts.indexOf(chart) + 1} of ${charts.length}`;
    $("files").replaceChildren(...chart.files.map(([text, file]) =>
      make("a", { href: file, download: true }, text)));
  }

  /** The rows of the marks of a view: its longest list. */
  const rowsOf = ({ datasets }) =>
    Object.values(datasets).reduce((best, rows) => (rows.length > best.length ? rows : best), []);

  /** Show the data behind the view, once they are asked for. */
  function showRows() {
    if (!$("behind").open || !shown) return;
    const rows = rowsOf(shown.view);
    const columns = Object.keys(rows[0] ?? {})
      .filter((name) => rows.some((row) => row[name] != null));
    const text = (value) => (typeof value === "number"
      ? value.toLocaleString("en-US", { maximumSignificantDigits: 6 }) : String(value ?? ""));
    const kind = (value) => ({ class: typeof value === "number" ? "number" : null });
    const head = (name) => make("th", { scope: "col", ...kind(rows[0][name]) }, name);
    const cell = (row) => (name) => make("td", kind(row[name]), text(row[name]));
    $("rows").replaceChildren(
      make("thead", {}, make("tr", {}, ...columns.map(head))),
      make("tbody", {}, ...rows.slice(0, ROWS_SHOWN).map((row) =>
        make("tr", {}, ...columns.map(cell(row))))),
    );
    const first = rows.length > ROWS_SHOWN
      ? `, of which here are the first ${ROWS_SHOWN}; CSV has all` : "";
    const number = rows.length.toLocaleString("en-US");
    $("rows-note").textContent = `${number} rows of this view${first}.`;
  }

  const layoutOf = () => ($("plot").clientWidth < NARROW ? "paper" : "web");

  /** The specification of a view: layers, rows and parameters put into that of the chart. */
  function specOf({ spec, layers }, view) {
    const known = new Set(spec.params.map(({ name }) => name));
    const params = spec.params.map((param) =>
      (param.name in view.params ? { ...param, value: view.params[param.name] } : param));
    const more = Object.entries(view.params).filter(([name]) => !known.has(name))
      .map(([name, value]) => ({ name, value }));
    return {
      ...spec, params: [...params, ...more], layer: layers[view.layer], datasets: view.datasets,
    };
  }

  /** A spec in a layout; `titled`: with the title, which the page has itself. */
  function inLayout(spec, layout, titled) {
    const own = structuredClone(spec);
    const { paper, [layout]: { em, narrow, width, height, padding } } = own.usermeta.looks;
    Object.assign(own, { width, height, padding: { ...padding } });
    if (!titled) {
      own.padding.top = (paper.padding.top / paper.em) * em;
      delete own.title;
      own.layer = own.layer.filter((each) => each.mark?.style !== "subtitle");
    }
    for (const param of own.params) {
      if (param.name === "em") param.value = em;
      if (param.name === "narrow") param.value = narrow;
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
      const layout = layoutOf();
      const config = themes[mode][layout];
      const plot = make("div", { "aria-hidden": "true" }); // the picture around it has the name
      shown?.drawn.finalize();
      $("plot").replaceChildren(plot);
      $("card").style.setProperty("--plot", config.background ?? "");
      const options = { ...EMBED, config };
      const { view: drawn } = await vegaEmbed(plot, inLayout(spec, layout, false), options);
      if (mine !== turn) return drawn.finalize();
      shown = { chart, mode, layout, drawn, one, spec, view };
      showMenus(chart, one, view);
      showFinding(view);
      showRows();
      $("stage").dataset.drawn = `${chart.id} ${mode}`;
    } catch (error) {
      if (mine !== turn) return;
      shown = null;
      $("plot").replaceChildren(make("p", { class: "failed" },
        `This chart could not be drawn: ${error.message}. Its picture is among the files below.`));
      console.error(error);
    } finally {
      if (mine === turn) $("stage").removeAttribute("aria-busy");
    }
  }

  /** Report what the address asks for that is not there; what this chart lacks has a note. */
  function showUnknown(chart) {
    const asked = state().get("chart") ?? chart.id;
    const lost = asked === chart.id ? [] : [["chart", asked, `unknown; shown is ${chart.id}`]];
    for (const [name, values] of OPTIONS) {
      const value = state().get(name);
      if (value === null || values.has(value)) continue;
      lost.push([name, value, "in no chart of this site"]);
    }
    tellUnknown(["chart", ...OPTIONS.keys()], lost);
  }

  function apply() {
    const chart = current();
    showUnknown(chart);
    showText(chart);
    if (shown?.chart !== chart) {
      $("title").textContent = chart.title;
      $("setting").textContent = chart.subtitle;
    }
    return draw(chart, theme());
  }

  /** Show the chart `by` places further; the list goes round. */
  function step(by) {
    const next = charts.at((charts.indexOf(current()) + by) % charts.length);
    go({ chart: next.id }, true);
  }

  /** What a screen reader says of the view. */
  const description = () => `${$("title").textContent}. ${$("setting").textContent}`;

  // ---------------------------------------------------------------- saving the view

  /** The picture of the view with its title and subtitle, in the size of the web. */
  async function picture(kind) {
    const { mode, spec } = shown;
    const options = { ...EMBED, config: themes[mode].web };
    const { view } = await vegaEmbed(make("div"), inLayout(spec, "web", true), options);
    const drawn = kind === "svg" ? named(await view.toSVG()) : await view.toImageURL("png", 2);
    view.finalize();
    return drawn;
  }

  /** A picture with its name for screen readers. */
  function named(drawn) {
    const { documentElement } = new DOMParser().parseFromString(drawn, "image/svg+xml");
    documentElement.setAttribute("role", "img");
    documentElement.setAttribute("aria-label", description());
    return new XMLSerializer().serializeToString(documentElement);
  }

  /** Rows as CSV. Text that a spreadsheet would run as a formula is quoted by an apostrophe. */
  function csv(rows) {
    const columns = Object.keys(rows[0] ?? {});
    const text = (value) => {
      const plain = typeof value === "string"
        ? value.replace(new RegExp(formula, "g"), "$1'$2") : String(value ?? "");
      return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
    };
    return [columns, ...rows.map((row) => columns.map((name) => row[name]))]
      .map((line) => `${line.map(text).join(",")}\n`).join("");
  }

  const SAVED = {
    png: ["png", null, () => picture("png")],
    svg: ["svg", "image/svg+xml", () => picture("svg")],
    csv: ["csv", "text/csv", async () => csv(rowsOf(shown.view))],
    json: ["vl.json", "application/json", async () => JSON.stringify(
      { ...shown.spec, description: description(), config: themes.light.web })],
  };

  /** Save the view; the file's name has the chart and its choices. */
  async function saveView(kind) {
    if (!shown) return;
    const [ending, type, content] = SAVED[kind];
    const choices = valuesOf(shown.one, shown.view).values();
    const stem = [shown.chart.id, ...choices].join("-").replace(/[^\w.]+/g, "-");
    const saved = await content();
    const href = type ? URL.createObjectURL(new Blob([saved], { type })) : saved;
    make("a", { href, download: `${stem}.${ending}` }).click();
    if (type) setTimeout(() => URL.revokeObjectURL(href), 1000);
  }

  for (const kind of Object.keys(SAVED)) {
    $(`view-${kind}`).addEventListener("click", () => saveView(kind));
  }
  $("copy").addEventListener("click", async () => {
    // A page opened from a folder may be refused the clipboard; the address bar has the same.
    const chart = current();
    const values = shown ? [...valuesOf(shown.one, shown.view)] : [];
    const own = values.filter(([name]) => chart.params.some((param) => param.name === name));
    go({ chart: chart.id, ...Object.fromEntries(own) });
    const copied = navigator.clipboard?.writeText(location.href);
    const said = await copied?.then(() => "Copied", () => null);
    $("copy").textContent = said ?? "The link is in the address bar";
    setTimeout(() => { $("copy").textContent = "Copy link to this view"; }, 2000);
  });

  // ---------------------------------------------------------------- going through the charts

  for (const link of links) {
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      go({ chart: link.dataset.chart }, true);
    });
  }
  $("charts").addEventListener("keydown", (event) => {
    const at = links.indexOf(document.activeElement);
    const to = {
      ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1,
      Home: 0, End: links.length - 1,
    }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    links[Math.min(Math.max(to, 0), links.length - 1)].focus();
  });
  document.addEventListener("keydown", (event) => {
    const { key, target, altKey, ctrlKey, metaKey } = event;
    const own = target.closest("input, select, textarea, [tabindex='0'], summary");
    if (altKey || ctrlKey || metaKey || own) return;
    if (key === "ArrowLeft") step(-1);
    if (key === "ArrowRight") step(1);
  });
  $("previous").addEventListener("click", () => step(-1));
  $("next").addEventListener("click", () => step(1));
  $("behind").addEventListener("toggle", showRows);
  let resized = 0;
  addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(() => {
      if (shown && shown.layout !== layoutOf()) draw(shown.chart, shown.mode);
    }, 150);
  });
  follow(apply);
});
