"use strict";
/* The page of the charts: a list, one chart at a time, menus that filter it, and its files. */

document.addEventListener("DOMContentLoaded", async () => {
  const { $, load, make, menu, state, go, tellUnknown, follow, save, csv, copy } = ROOFLINES;
  const { charts, themes, formula } = await load("charts", "assets/charts-data.js");
  const links = [...document.querySelectorAll("#charts a")];
  if (!charts.length) return;

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
  const system = matchMedia("(prefers-color-scheme: dark)");
  const layoutOf = () => ($("plot").clientWidth < NARROW ? "paper" : "web");
  let shown = null; // the chart, layout, view and specification on the stage
  let turn = 0; // a chart that took long to load must not replace one asked for later

  /** The options that a view shows, by menu; menus that it does not have are left out. */
  const valuesOf = (one, view) => new Map(
    one.menus.map((name, i) => [name, view.values[i]]).filter(([, value]) => value != null));
  const isAsked = ({ name }) => state().has(name);

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
      return menu(name, title, listed, String(values.get(name)), (value) => go({ [name]: value }));
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

  /** Heading, caption and files of a chart; title and setting are those of a view. */
  function showText(chart, title, setting) {
    $("family").textContent = chart.heading;
    $("caption").textContent = chart.caption;
    for (const link of links) {
      link.setAttribute("aria-current", String(link.dataset.chart === chart.id));
    }
    $("files").replaceChildren(...chart.files.map(([text, file]) =>
      make("a", { href: file, download: true }, text)));
    document.title = `${title} – ${document.querySelector(".brand span").textContent}`;
    $("title").textContent = title;
    $("setting").textContent = setting;
    $("plot").setAttribute("aria-label", `Chart: ${title}. ${setting}`);
  }

  /** The specification of a view: layers, rows and parameters put into that of the chart. */
  function specOf({ spec, layers }, view) {
    const values = Object.fromEntries(spec.params.map(({ name, value }) => [name, value]));
    const params = Object.entries({ ...values, ...view.params });
    return {
      ...spec, params: params.map(([name, value]) => ({ name, value })),
      layer: layers[view.layer], datasets: view.datasets,
      description: `${view.title}. ${view.subtitle.join(" ")}`,
    };
  }

  /** A spec in a layout; `titled`: with the title, which the page has itself. */
  function inLayout(spec, layout, titled) {
    const { paper, [layout]: look } = spec.usermeta.looks;
    const { em, narrow, width, height } = look;
    const values = { em, narrow };
    const params = spec.params.map(({ name, value }) => ({ name, value: values[name] ?? value }));
    const own = structuredClone({ ...spec, params, width, height, padding: look.padding });
    if (titled) return own;
    own.padding.top = (paper.padding.top / paper.em) * em;
    delete own.title;
    own.layer = own.layer.filter((each) => each.mark?.style !== "subtitle");
    return own;
  }
  const configOf = (layout) => themes[system.matches ? "dark" : "light"][layout];

  async function draw(chart) {
    const mine = ++turn;
    $("stage").setAttribute("aria-busy", "true");
    try {
      const one = await load(`chart/${chart.id}`, chart.spec);
      await document.fonts.load("500 13px Inter"); // labels are measured when they are drawn
      if (mine !== turn) return;
      const view = viewOf(chart, one);
      const [spec, layout] = [specOf(one, view), layoutOf()];
      const config = configOf(layout);
      const plot = make("div", { "aria-hidden": "true" }); // the picture around it has the name
      shown?.drawn.finalize();
      $("plot").replaceChildren(plot);
      $("card").style.setProperty("--plot", config.background ?? "");
      const options = { ...EMBED, config };
      const { view: drawn } = await vegaEmbed(plot, inLayout(spec, layout, false), options);
      if (mine !== turn) return drawn.finalize();
      shown = { chart, layout, drawn, one, spec, view };
      showMenus(chart, one, view);
      showText(chart, view.title, view.subtitle.join(" "));
      $("live").textContent = view.title;
      $("stage").dataset.drawn = `${chart.id} ${system.matches ? "dark" : "light"}`;
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

  /** Show the chart of the address; what it asks for that is not there is reported. */
  function apply() {
    const asked = state().get("chart");
    const chart = charts.find(({ id }) => id === asked) ?? charts[0];
    const lost = asked && asked !== chart.id
      ? [["chart", asked, `unknown; shown is ${chart.id}`]] : [];
    for (const [name, values] of OPTIONS) {
      const value = state().get(name);
      if (value !== null && !values.has(value)) {
        lost.push([name, value, "in no chart of this site"]);
      }
    }
    tellUnknown(["chart", ...OPTIONS.keys()], lost);
    if (shown?.chart !== chart) showText(chart, chart.title, chart.subtitle);
    return draw(chart);
  }

  // ---------------------------------------------------------------- saving the view

  /** The picture of the view with its title and subtitle, in the size of the web. */
  async function picture(kind) {
    const options = { ...EMBED, config: configOf("web") };
    const { view } = await vegaEmbed(make("div"), inLayout(shown.spec, "web", true), options);
    const drawn = await (kind === "svg" ? view.toSVG() : view.toImageURL("png", 2));
    view.finalize();
    return drawn;
  }

  /** The rows of the marks of a view, its longest list, as a table. */
  function tableOf({ datasets }) {
    const rows = Object.values(datasets).reduce((a, b) => (b.length > a.length ? b : a), []);
    const columns = Object.keys(rows[0] ?? {});
    return [columns, ...rows.map((row) => columns.map((name) => row[name]))];
  }

  const SAVED = {
    png: ["png", null, () => picture("png")],
    svg: ["svg", "image/svg+xml", () => picture("svg")],
    csv: ["csv", "text/csv", () => csv(tableOf(shown.view), formula)],
    json: ["vl.json", "application/json", () =>
      JSON.stringify({ ...shown.spec, config: themes.light.web })],
  };
  for (const [kind, [ending, type, content]] of Object.entries(SAVED)) {
    $(`view-${kind}`).addEventListener("click", async () => {
      if (!shown) return;
      const choices = valuesOf(shown.one, shown.view).values();
      const stem = [shown.chart.id, ...choices].join("-").replace(/[^\w.]+/g, "-");
      save(`${stem}.${ending}`, await content(), type);
    });
  }
  $("copy").addEventListener("click", (event) => copy(location.href, event.target));

  for (const link of links) {
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      go({ chart: link.dataset.chart }, true); // the choice goes along
    });
  }
  new ResizeObserver(() => { if (shown && shown.layout !== layoutOf()) apply(); })
    .observe($("plot"));
  system.addEventListener("change", apply);
  follow(apply);
});
