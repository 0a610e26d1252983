"use strict";
/* The page of the charts: a list, one chart at a time, menus that filter it, and its files. */

document.addEventListener("DOMContentLoaded", async () => {
  const { $, load, make, refill, menu, state, tellUnknown, follow } = ROOFLINES;
  const { addressOf, save, csv, copy } = ROOFLINES;
  const { charts, themes, formula } = await load("charts", "assets/charts-data.js");
  const links = [...document.querySelectorAll("#charts a")];
  if (!charts.length) return;

  const NARROW = 620; // pixels below which a chart takes its narrow layout
  const MENUS = new Set(charts.flatMap(({ params }) => params.map(({ name }) => name)));
  const EMBED = {
    ast: true, // interpreted: no eval, so a strict Content-Security-Policy holds
    actions: false, // its editor would send the chart to another site
    logLevel: 1, // errors alone: a filter that leaves nothing for one layer is none
    renderer: "svg",
    defaultStyle: false,
    tooltip: { disableDefaultStyle: true, theme: "page" },
  };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const theme = () => (system.matches ? "dark" : "light");
  const layoutOf = () => ($("plot").clientWidth < NARROW ? "paper" : "web");
  const asked = (name) => state().get(name);
  let shown = null; // the chart, its layout, its views, the view that is shown, and its drawing
  let turn = 0; // a chart that took long to load must not replace one asked for later

  /** The view that has most of what the address asks for: earlier menus of the list count more. */
  function viewOf({ params }, one) {
    const names = params.map(({ name }) => name).filter((name) => asked(name) !== null);
    const worth = (view) => names.reduce((sofar, name) =>
      2 * sofar + (String(view.values[name]) === asked(name)), 0);
    return one.views.reduce((best, view) => (worth(view) > worth(best) ? view : best));
  }

  function showMenus({ params }, one, values) {
    const has = (wanted) => one.views.some((view) =>
      Object.entries(wanted).every(([name, value]) => view.values[name] === value));
    const own = params.filter(({ name }) => name in values);
    const menus = own.map(({ name, title, options, labels }) => {
      const lacks = (option) =>
        name !== "by" && name !== "chip" && !has({ ...values, [name]: option });
      const listed = options.map((option, i) => [String(option), labels[i], lacks(option)]);
      return menu(name, title, listed, String(values[name]));
    });
    refill($("controls"), ...menus);
  }

  /** Heading, caption and files of a chart; title and setting are those of a view. */
  function showText({ id, heading, caption, files }, title, setting) {
    const texts = { family: heading, caption, title, setting };
    for (const [name, text] of Object.entries(texts)) $(name).textContent = text;
    $("files").replaceChildren(...files.map(([text, file]) =>
      make("a", { href: file, download: true }, text)));
    document.title = `${title} – ${document.querySelector(".brand span").textContent}`;
    $("plot").setAttribute("aria-label", `Chart: ${title}. ${setting}`);
  }

  /** The specification of a view in a layout: what differs from that of the chart put into it. */
  function specOf({ spec, layers }, { title, subtitle, looks, layer, datasets, params }, layout) {
    const { em, narrow, width, height, padding } = looks[layout];
    const values = Object.entries({ ...spec.params, ...params, em, narrow });
    return {
      ...spec, width, height, padding, usermeta: { looks }, layer: layers[layer], datasets,
      params: values.map(([name, value]) => ({ name, value })),
      description: `${title}. ${subtitle.join(" ")}`,
    };
  }

  /** Draw a view in a layout; `titled`: with the title, which the page has itself. */
  async function drawn(into, one, view, layout, titled) {
    const own = structuredClone(specOf(one, view, layout));
    if (!titled) {
      const { paper, [layout]: { em } } = view.looks;
      own.padding.top = (paper.padding.top / paper.em) * em;
      delete own.title;
      own.layer = own.layer.filter((each) => each.mark?.style !== "subtitle");
    }
    return (await vegaEmbed(into, own, { ...EMBED, config: themes[theme()][layout] })).view;
  }

  async function draw(chart) {
    const mine = ++turn;
    $("stage").setAttribute("aria-busy", "true");
    try {
      const one = await load(`chart/${chart.id}`, chart.spec);
      await document.fonts.load("500 13px Inter"); // labels are measured when they are drawn
      if (mine !== turn) return;
      const view = viewOf(chart, one);
      const layout = layoutOf();
      const plot = make("div", { "aria-hidden": "true" }); // the picture around it has the name
      shown?.picture.finalize();
      $("plot").replaceChildren(plot);
      $("card").style.setProperty("--plot", themes[theme()][layout].background ?? "");
      const picture = await drawn(plot, one, view, layout, false);
      if (mine !== turn) return picture.finalize();
      shown = { chart, layout, picture, one, view };
      showMenus(chart, one, view.values);
      $("to-explorer").href = view.explorer;
      tell(chart, view.values);
      showText(chart, view.title, view.subtitle.join(" "));
      $("live").textContent = view.title;
      $("stage").dataset.drawn = `${chart.id} ${theme()}`;
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

  /** Report what the address asks for that the chart does not have. */
  function tell(chart, values) {
    const asks = { chart: chart.id, ...values };
    const lost = [...state()].filter(([name, value]) => name in asks && value !== `${asks[name]}`);
    tellUnknown(["chart", ...MENUS],
      lost.map(([name, value]) => [name, value, `not here; shown is ${asks[name]}`]));
  }

  /** Show the chart of the address. */
  function apply() {
    const chart = charts.find(({ id }) => id === asked("chart")) ?? charts[0];
    for (const link of links) {
      const { chart: id } = link.dataset;
      make(link, { href: addressOf({ chart: id }), "aria-current": String(id === chart.id) });
    }
    if (shown?.chart !== chart) showText(chart, chart.title, chart.subtitle);
    return draw(chart);
  }

  /** The rows of the marks of a view, its longest list, as a table. */
  function tableOf({ datasets }) {
    const rows = Object.values(datasets).reduce((a, b) => (b.length > a.length ? b : a), []);
    const columns = Object.keys(rows[0] ?? {});
    return [columns, ...rows.map((row) => columns.map((name) => row[name]))];
  }

  /** The view as files: ending, type, and content, of a picture in the size of the web. */
  const SAVED = {
    png: ["png", null, (picture) => picture.toImageURL("png", 2)],
    svg: ["svg", "image/svg+xml", (picture) => picture.toSVG()],
    csv: ["csv", "text/csv", () => csv(tableOf(shown.view), formula)],
    json: ["vl.json", "application/json", () =>
      JSON.stringify({ ...specOf(shown.one, shown.view, "web"), config: themes.light.web })],
  };
  for (const [kind, [ending, type, content]] of Object.entries(SAVED)) {
    $(`view-${kind}`).addEventListener("click", async () => {
      if (!shown) return;
      const { chart, one, view } = shown;
      const stem = [chart.id, ...Object.values(view.values)].join("-").replace(/[^\w.]+/g, "-");
      const picture = await drawn(make("div"), one, view, "web", true);
      save(`${stem}.${ending}`, await content(picture), type);
      picture.finalize();
    });
  }
  $("copy").addEventListener("click", ({ target }) => copy(location.href, target));

  new ResizeObserver(() => { if (shown && shown.layout !== layoutOf()) apply(); })
    .observe($("plot"));
  system.addEventListener("change", apply);
  follow(apply);
});
