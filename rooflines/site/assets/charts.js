"use strict";
/* The page of the charts: a list, one chart large at a time, menus that filter it, and its files. */

document.addEventListener("DOMContentLoaded", async () => {
  const { load, unpacked, make, menu, picker, state, go, tellUnknown, theme, follow } = ROOFLINES;
  const { charts, themes, formula } = await load("charts", "assets/charts-data.js");
  const $ = (id) => document.getElementById(id);
  const links = [...document.querySelectorAll("#charts a")];
  if (!charts.length) return;

  const LABELS = { chip: "Chip", dtypes: "Data types" };
  const EVERY = "all"; // the value of the chip menu that shows all chips
  const COLUMNS = { size: "B" }; // the columns of choices that have other names
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

  /** The value of a menu: the one in the address if the chart has it, or else the chart's default. */
  function valueOf(param) {
    const asked = state().get(param.name);
    return param.options.find((option) => String(option) === asked) ?? param.value;
  }

  const findingsOf = (spec) => spec.params?.find((param) => param.name === "findings")?.value;

  /** The keys of the choices that a chart has a finding for; null if it lists no findings. */
  function choicesOf(chart, { spec, cases }) {
    const findings = findingsOf(spec);
    const keys = cases ? cases.flatMap(([chips, rests]) => chips.flatMap((chip) => rests.map((rest) => chip + rest))) : Object.keys(findings ?? {});
    const available = new Set(keys);
    return available.has(keyOf(chart, new Map(chart.params.map((param) => [param.name, param.value])))) ? available : null;
  }
  const keyOf = (chart, values) => chart.params.map((param) => values.get(param.name)).join("|");

  /** The part of a chart with a choice, by the menus that parts are by. */
  const partOf = ({ by = [] }, values) => by.map((name) => values.get(name)).join("|");

  /** The file with a choice that a chart does not have yet; undefined: it has it. */
  function fileOf(one, key, values) {
    const part = partOf(one, values);
    return key in (findingsOf(one.spec) ?? {}) || one.read?.has(part) ? undefined : one.parts?.[part];
  }

  /** Columns as rows. */
  const listed = (columns) => unpacked(Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, { values }])));

  /** Add a part to a chart: rows, and the values of parameters for its choices, such as findings. */
  async function add(one, part, file) {
    const { params, rows, ...datasets } = await load(file, file);
    one.read ??= new Set();
    if (one.read.has(part)) return;
    one.read.add(part);
    const more = rows ? listed(rows) : [];
    one.rows = (one.rows ?? []).concat(more);
    for (const [name, values] of Object.entries(params)) Object.assign(one.spec.params.find((param) => param.name === name).value, values);
    const append = (name, rows) => { one.spec.datasets[name] = one.spec.datasets[name].concat(rows); };
    if (one.spec.datasets.rows) append("rows", more); // the marks are rows of the data itself
    for (const [name, columns] of Object.entries(datasets)) append(name, listed(columns));
  }

  /** The rows behind the view: of the chart's data those of the present choices. A chip that is highlighted leaves others out. */
  async function rowsOf({ chart, one, values }) {
    const addable = one.spec.params.find(({ name }) => name === "addable")?.value ?? {};
    const beside = (row) => !(row.chip in addable) || row.chip === values.get("chip");
    const rows = listed(await load(chart.rows, chart.rows)).concat((one.rows ?? []).filter(beside));
    return chart.params.reduce((kept, { name, options }) => {
      const column = COLUMNS[name] ?? name;
      const fits = (row) => row[column] == null || row[column] === values.get(name);
      const chooses = options[0] !== EVERY && kept.some((row) => row[column] === values.get(name));
      return chooses ? kept.filter(fits) : kept;
    }, rows);
  }

  /** The values of all menus; the nearest available ones if the chart has no finding for them. */
  function valuesOf(chart, available) {
    const values = new Map(chart.params.map((param) => [param.name, valueOf(param)]));
    if (!available || available.has(keyOf(chart, values))) return values;
    const asked = chart.params.filter((param) => state().has(param.name)).map((param) => param.name);
    const keep = [...new Set(["chip", ...asked, ...values.keys()])].filter((name) => values.has(name));
    const all = chart.params.reduce((lists, param) => lists.flatMap((list) => param.options.map((option) => [...list, option])), [[]]);
    const fitting = all.map((list) => new Map(list.map((value, i) => [chart.params[i].name, value]))).filter((one) => available.has(keyOf(chart, one)));
    const worth = (one) => keep.reduce((sum, name, i) => sum + (one.get(name) === values.get(name) ? 2 ** (keep.length - i) : 0), 0);
    return fitting.reduce((best, one) => (worth(one) > worth(best) ? one : best), fitting[0] ?? values);
  }

  function showMenus(chart, spec, available, values) {
    const focused = document.activeElement?.closest("[data-param]")?.dataset.param;
    const named = (name) => LABELS[name] ?? (spec.params?.find((one) => one.name === name)?.bind?.name?.trim() || name);
    const menus = chart.params.map((param) => {
      const words = param.labels ?? param.options.map(String);
      const lacks = (option) => param.name !== "chip" && available && !available.has(keyOf(chart, new Map(values).set(param.name, option)));
      const options = param.options.map((option, i) => [String(option), words[i], lacks(option)]);
      const control = picker(named(param.name), options, String(values.get(param.name)), (value) => go({ [param.name]: value }));
      control.dataset.param = param.name;
      return control;
    });
    for (const name of ["chip", "dtypes"]) {
      // Both menus are always there, so that they do not jump about from chart to chart.
      if (chart.params.some((param) => param.name === name)) continue;
      const control = menu(LABELS[name], [["", name === "chip" ? "all in this chart" : "as in this chart"]], "", () => {});
      control.querySelector("select").disabled = true;
      menus.push(control);
    }
    const rank = (control) => ["chip", "dtypes"].indexOf(control.dataset.param) >>> 0;
    const asked = chart.params.some((param) => state().has(param.name));
    const reset = make("button", { type: "button", class: "quiet", hidden: !asked, onclick: () => go(Object.fromEntries(chart.params.map((p) => [p.name, null]))) }, "Reset");
    $("controls").replaceChildren(...menus.sort((a, b) => rank(a) - rank(b)), reset);
    $("controls").querySelector(`[data-param="${focused}"] :is(select, input)`)?.focus();

    const missing = chart.params.filter((param) => state().has(param.name) && String(values.get(param.name)) !== state().get(param.name));
    const what = missing.map((param) => `${state().get(param.name)} is not in this chart; it shows ${values.get(param.name)}.`);
    $("note").replaceChildren(what.join(" "));
    if (missing.some(({ name }) => name in LABELS)) {
      const wanted = new URLSearchParams(Object.keys(LABELS).filter((name) => state().has(name)).map((name) => [name, state().get(name)]));
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

  /** Show the data behind the view, once they are asked for. */
  async function showRows() {
    const view = shown;
    if (!$("behind").open || !view) return;
    let rows = [];
    try {
      rows = await rowsOf(view);
    } catch (error) {
      $("rows-note").textContent = `The data could not be read: ${error.message}.`;
      return;
    }
    if (view !== shown) return;
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

  /** A spec in a size, at the choices of a view, without menus; `titled`: with the title, which the page has itself. */
  function inSize(spec, chart, { layout, em }, values, titled) {
    const own = structuredClone(spec);
    const drawn = own.usermeta?.looks?.[layout];
    if (drawn) {
      const scale = em / drawn.em;
      const padding = { ...drawn.padding };
      if (!titled) padding.top = own.usermeta.looks.paper.padding.top / own.usermeta.looks.paper.em * drawn.em;
      own.width = drawn.width * scale;
      own.height = drawn.height * scale;
      own.padding = Object.fromEntries(Object.entries(padding).map(([side, pixels]) => [side, pixels * scale]));
    }
    if (!titled) {
      delete own.title;
      own.layer = own.layer?.filter((each) => each.mark?.style !== "subtitle");
    }
    for (const param of own.params ?? []) {
      if (chart.params.some((one) => one.name === param.name)) delete param.bind;
      if (values.has(param.name)) param.value = values.get(param.name);
      if (param.name === "em" && drawn) param.value = em;
      if (param.name === "narrow" && drawn) param.value = drawn.narrow;
    }
    return own;
  }

  /** Set title and setting to the finding of the current choice, if the chart has one. */
  function showFinding(chart, view) {
    const said = (name) => { try { return view.signal(name); } catch { return undefined; } };
    const title = said("headline") ?? chart.title;
    const setting = [said("subline") ?? chart.subtitle].flat().join(" ");
    document.title = `${title} – ${document.querySelector(".brand span").textContent}`;
    $("title").textContent = title;
    $("setting").textContent = setting;
    $("plot").setAttribute("aria-label", `Chart: ${description()}`);
    $("live").textContent = title;
  }

  /** Highlight a chip by a click on its line or name in a chart of all chips; another click resets it. */
  function pick(chart, chip) {
    const [every, ...chips] = chart.params.find((param) => param.name === "chip")?.options ?? [];
    if (every === EVERY && chips.includes(chip)) go({ chip: state().get("chip") === chip ? null : chip });
  }

  async function draw(chart, mode) {
    const mine = ++turn;
    $("stage").setAttribute("aria-busy", "true");
    try {
      const one = await load(`chart/${chart.id}`, chart.spec);
      const { spec, columns } = one;
      for (const [name, packed] of Object.entries(columns)) spec.datasets[name] ??= unpacked(packed);
      const available = choicesOf(chart, one);
      const values = valuesOf(chart, available);
      const file = fileOf(one, keyOf(chart, values), values);
      if (file) await add(one, partOf(one, values), file);
      await document.fonts.load("500 13px Inter"); // labels are measured when they are drawn
      if (mine !== turn) return;
      const size = sizeFor(spec);
      const own = inSize(spec, chart, size, values, false);
      const config = themes[mode][size.layout][size.em];
      const plot = make("div", { "aria-hidden": "true" }); // the picture around it has the name
      shown?.view.finalize();
      $("bindings").replaceChildren();
      $("plot").replaceChildren(plot);
      $("card").style.setProperty("--plot", config.background ?? "");
      const { view } = await vegaEmbed(plot, own, { ...EMBED, config, bind: $("bindings") });
      if (mine !== turn) return view.finalize();
      shown = { chart, mode, size, view, one, spec, available, values };
      view.addEventListener("click", (_, item) => pick(chart, item?.datum?.chip));
      showMenus(chart, spec, available, values);
      showFinding(chart, view);
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

  async function apply() {
    const chart = current();
    const mode = theme();
    showUnknown(chart);
    showText(chart);
    if (shown?.chart !== chart || shown.mode !== mode) {
      $("title").textContent = chart.title;
      $("setting").textContent = chart.subtitle;
      return draw(chart, mode);
    }
    const values = valuesOf(chart, shown.available);
    if (fileOf(shown.one, keyOf(chart, values), values)) return draw(chart, mode);
    shown.values = values;
    for (const [name, value] of values) shown.view.signal(name, value);
    await shown.view.runAsync();
    showMenus(chart, shown.spec, shown.available, values);
    showFinding(chart, shown.view);
    showRows();
  }

  /** The chart `by` places further; the list goes round. */
  const step = (by) => go({ chart: charts[(charts.indexOf(current()) + by + charts.length) % charts.length].id }, true);

  /** The specification with the choices of the view as its first ones, and with those menus that it has the data of. */
  function chosenSpec() {
    const { chart, spec, values } = shown;
    const keys = Object.keys(findingsOf(spec) ?? {});
    const params = spec.params.map((param) => {
      const place = chart.params.findIndex(({ name }) => name === param.name);
      if (place < 0) return param;
      const has = new Set(keys.map((key) => key.split("|")[place]));
      const { options, labels } = chart.params[place];
      const kept = options.map((option, i) => [option, labels[i]]).filter(([option]) => has.has(String(option)));
      return { ...param, value: values.get(param.name), bind: { ...param.bind, options: kept.map(([option]) => option), labels: kept.map(([, label]) => label) } };
    });
    return JSON.stringify({ ...spec, params, description: description() });
  }

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
    const { chart, mode, spec, values } = shown;
    const { em } = spec.usermeta?.looks?.web ?? {};
    const size = { layout: "web", em: themes[mode].web[em] ? em : Math.max(...Object.keys(themes[mode].web)) };
    const { view } = await vegaEmbed(make("div"), inSize(spec, chart, size, values, true), { ...EMBED, config: themes[mode].web[size.em] });
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
    csv: { ending: "csv", type: "text/csv", of: async () => csv(await rowsOf(shown)) },
    json: { ending: "vl.json", type: "application/json", of: async () => chosenSpec() },
  };

  /** Save the view; the file's name has the chart and its choices. */
  async function saveView(kind) {
    if (!shown) return;
    const { ending, type, of } = SAVED[kind];
    const stem = [shown.chart.id, ...shown.values.values()].join("-").replace(/[^\w.]+/g, "-");
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
    const values = shown ? valuesOf(shown.chart, shown.available) : [];
    go({ chart: current().id, ...Object.fromEntries(values) });
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
