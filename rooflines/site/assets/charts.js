"use strict";
/* The chart page: a list, one chart at a time, menus that filter it, and its files. */

document.addEventListener("DOMContentLoaded", async () => {
  const { $, load, make, refill, makeMenu, readAddress, addressWith } = ROOFLINES;
  const { reportUnavailable, followAddress, save, csv, copy } = ROOFLINES;
  const { charts, themes, formula_pattern: formulaPattern } =
    await load("charts", "assets/charts-data.js");
  const links = [...document.querySelectorAll("#charts a")];
  if (!charts.length) return;

  const NARROW_WIDTH = 620; // below this a chart has its narrow layout [px]
  const PNG_SCALE = 2; // pixels of a file per pixel of a chart
  const MENU_NAMES = new Set(charts.flatMap(({ params }) => params.map(({ name }) => name)));
  const EMBED_OPTIONS = {
    ast: true, // interpreted: no eval, so a strict Content-Security-Policy holds
    actions: false, // its editor would send the chart to another site
    logLevel: 1, // errors alone: a filter that leaves nothing for one layer is none
    renderer: "svg",
    defaultStyle: false,
    tooltip: { disableDefaultStyle: true, theme: "page" },
  };
  const darkScheme = matchMedia("(prefers-color-scheme: dark)");
  const themeName = () => (darkScheme.matches ? "dark" : "light");
  const layoutName = () => ($("plot").clientWidth < NARROW_WIDTH ? "paper" : "web");
  const setting = (name) => readAddress().get(name);
  let shown = null; // chart, content, view, layout and Vega's view on the page
  let drawings = 0; // a chart that takes long must not replace one that was chosen later

  // --------------------------------------------------------------------------- views and menus

  /** View that matches most settings in the address; earlier menus count more. */
  function matchingView({ params }, { views }) {
    const names = params.map(({ name }) => name).filter((name) => setting(name) !== null);
    const score = ({ values }) => names.reduce((total, name) =>
      2 * total + (String(values[name]) === setting(name)), 0);
    return views.reduce((best, view) => (score(view) > score(best) ? view : best));
  }

  function showMenus({ params }, { views }, values) {
    const hasView = (wanted) => views.some((view) =>
      Object.entries(wanted).every(([name, value]) => view.values[name] === value));
    const isAlwaysOffered = (name) => name === "by" || name === "chip";
    const menus = params.filter(({ name }) => name in values).map((param) => {
      const { name, title, options, labels } = param;
      const entries = options.map((option, i) => ({
        value: String(option), text: labels[i],
        disabled: !isAlwaysOffered(name) && !hasView({ ...values, [name]: option }),
      }));
      return makeMenu(name, title, entries, String(values[name]));
    });
    refill($("controls"), ...menus);
  }

  /** Show a chart's heading, caption and files, and a view's title and setting. */
  function showTexts({ heading, caption, files }, title, subtitle) {
    const texts = { family: heading, caption, title, setting: subtitle };
    for (const [id, text] of Object.entries(texts)) $(id).textContent = text;
    $("files").replaceChildren(...files.map(({ text, path }) =>
      make("a", { href: path, download: true }, text)));
    document.title = `${title} – ${document.querySelector(".brand span").textContent}`;
    $("plot").setAttribute("aria-label", `Chart: ${title}. ${subtitle}`);
  }

  // ----------------------------------------------------------------------------------- drawing

  /** View's specification in a layout: the chart's, with what differs in the view. */
  function viewSpec({ spec, layers }, view, layout) {
    const { title, subtitle, looks, layer, datasets } = view;
    const { em, narrow, width, height, padding } = looks[layout];
    const params = Object.entries({ ...spec.params, ...view.params, em, narrow })
      .map(([name, value]) => ({ name, value }));
    return {
      ...spec, width, height, padding, usermeta: { looks }, layer: layers[layer], datasets, params,
      description: `${title}. ${subtitle.join(" ")}`,
    };
  }

  /** Specification without its title, which the page has itself. */
  function withoutTitle(spec, { looks }, layout) {
    const { title, ...untitled } = spec;
    const top = (looks.paper.padding.top / looks.paper.em) * looks[layout].em;
    const isSubtitle = ({ mark }) => mark?.style === "subtitle";
    return {
      ...untitled, padding: { ...spec.padding, top },
      layer: spec.layer.filter((layer) => !isSubtitle(layer)),
    };
  }

  /** Draw a specification; returns Vega's view. */
  async function embed(parent, spec, layout) {
    const config = themes[themeName()][layout];
    const { view } =
      await vegaEmbed(parent, structuredClone(spec), { ...EMBED_OPTIONS, config });
    return view;
  }

  /** Draw the chart's view that the address asks for; null if another was chosen meanwhile. */
  async function drawView(chart, isCurrent) {
    const content = await load(`chart/${chart.id}`, chart.spec);
    await document.fonts.load("500 13px Inter"); // labels are measured when they are drawn
    if (!isCurrent()) return null;
    const view = matchingView(chart, content);
    const layout = layoutName();
    const plot = make("div", { "aria-hidden": "true" }); // the picture around it has the name
    shown?.vegaView.finalize();
    $("plot").replaceChildren(plot);
    $("card").style.setProperty("--plot", themes[themeName()][layout].background ?? "");
    const spec = withoutTitle(viewSpec(content, view, layout), view, layout);
    const vegaView = await embed(plot, spec, layout);
    if (isCurrent()) return { chart, content, view, layout, vegaView };
    vegaView.finalize();
    return null;
  }

  async function draw(chart) {
    const drawing = ++drawings;
    const isCurrent = () => drawing === drawings;
    $("stage").setAttribute("aria-busy", "true");
    try {
      const drawn = await drawView(chart, isCurrent);
      if (!drawn) return;
      shown = drawn;
      const { content, view } = drawn;
      showMenus(chart, content, view.values);
      $("to-explorer").href = view.explorer;
      $("to-page").href = viewAddress(false);
      $("to-page").hidden = setting("frame") === null;
      reportSettings(chart, view.values);
      showTexts(chart, view.title, view.subtitle.join(" "));
      $("live").textContent = view.title;
      $("stage").dataset.drawn = `${chart.id} ${themeName()}`;
    } catch (error) {
      if (!isCurrent()) return;
      shown = null;
      $("plot").replaceChildren(make("p", { class: "failed" },
        `This chart could not be drawn: ${error.message}. Its picture is among the files below.`));
      console.error(error);
    } finally {
      if (isCurrent()) $("stage").removeAttribute("aria-busy");
    }
  }

  /** Report settings in the address that the chart does not have. */
  function reportSettings(chart, values) {
    const chosen = { chart: chart.id, ...values };
    const unavailable = [...readAddress()]
      .filter(([name, value]) => name in chosen && value !== String(chosen[name]))
      .map(([name, value]) => ({ name, value, reason: `not here; shown is ${chosen[name]}` }));
    reportUnavailable(["chart", "frame", ...MENU_NAMES], unavailable);
  }

  /** Show the chart in the address. */
  function showChart() {
    document.body.classList.toggle("framed", setting("frame") !== null);
    const chart = charts.find(({ id }) => id === setting("chart")) ?? charts[0];
    for (const link of links) {
      const { chart: id } = link.dataset;
      const isCurrent = String(id === chart.id);
      make(link, { href: addressWith({ chart: id }), "aria-current": isCurrent });
    }
    if (shown?.chart !== chart) showTexts(chart, chart.title, chart.subtitle);
    return draw(chart);
  }

  // ------------------------------------------------------------------------------------- files

  /** Mark rows in a view, its longest list, as a table. */
  function viewTable({ datasets }) {
    const rows = Object.values(datasets).reduce((a, b) => (b.length > a.length ? b : a), []);
    const columns = Object.keys(rows[0] ?? {});
    return [columns, ...rows.map((row) => columns.map((name) => row[name]))];
  }

  /** The shown view as Vega-Lite, in web size. */
  function standaloneSpec({ content, view }) {
    return JSON.stringify({ ...viewSpec(content, view, "web"), config: themes.light.web });
  }

  /** Files by the buttons that save them. */
  const VIEW_FILES = {
    png: {
      ending: "png", type: null, content: (vegaView) => vegaView.toImageURL("png", PNG_SCALE),
    },
    svg: { ending: "svg", type: "image/svg+xml", content: (vegaView) => vegaView.toSVG() },
    csv: {
      ending: "csv", type: "text/csv", content: () => csv(viewTable(shown.view), formulaPattern),
    },
    json: {
      ending: "vl.json", type: "application/json", content: () => standaloneSpec(shown),
    },
  };

  /** Save the shown view as a file; pictures have web size. */
  async function saveView({ ending, type, content: fileContent }) {
    if (!shown) return;
    const { chart, content, view } = shown;
    const stem = [chart.id, ...Object.values(view.values)].join("-").replace(/[^\w.]+/g, "-");
    const vegaView = await embed(make("div"), viewSpec(content, view, "web"), "web");
    save(`${stem}.${ending}`, await fileContent(vegaView), type);
    vegaView.finalize();
  }
  for (const [kind, file] of Object.entries(VIEW_FILES)) {
    $(`view-${kind}`).addEventListener("click", () => saveView(file));
  }
  $("copy").addEventListener("click", ({ target }) => copy(location.href, target));

  // ------------------------------------------------------------- in a frame on another page

  /** Address of the shown view: whole page, or alone in a frame. */
  function viewAddress(isFramed) {
    const state = new URLSearchParams({ chart: shown.chart.id, ...shown.view.values });
    if (isFramed) state.set("frame", "yes");
    return `${location.href.replace(/[?#].*$/, "")}#${state}`;
  }

  /** HTML that shows the view on another page, with its menus and data. */
  function frameCode() {
    const escape = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
    const [address, title] = [viewAddress(true), shown.view.title].map(escape);
    const size = 'width="900" height="760"';
    return `<iframe src="${address}" title="${title}" ${size} loading="lazy"></iframe>`;
  }
  $("copy-embed").addEventListener("click", ({ target }) => {
    if (shown) copy(frameCode(), target);
  });

  const isResized = () => shown && shown.layout !== layoutName();
  new ResizeObserver(() => { if (isResized()) showChart(); }).observe($("plot"));
  darkScheme.addEventListener("change", showChart);
  followAddress(showChart);
});
