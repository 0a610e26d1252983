"use strict";
/* Deployment views: fronts, TPOT over the batch, and the tab with mixed servers. */

const DEPLOYMENT_VIEWS = (() => {
  const { octaves, significant, seconds, integer } = NUMBERS;
  const { MIXED, POOLS, fronts, tokenTime } = DEPLOYMENTS;
  const { chipMark, sizeRule, axisAround } = PLOTS;
  const COLOURS = 7; // of lines

  const MS_PER_SECOND = 1e3;
  /** Rule at the limit on TPOT, if there is one. */
  const limitRule = ({ tpot }, position) =>
    (tpot < Infinity ? [sizeRule(position(tpot), `TPOT ${seconds(tpot)}`)] : []);

  /** Plot: output tokens/s/chip over tokens/s/user. */
  function deploymentsPlot(state, plan) {
    const lines = fronts(state, plan).map(({ chip, kind, points }) => {
      const isPools = kind === POOLS;
      const ends = points.length > 1 ? points : [points[0], points[0]];
      return chipMark("line", chip, ends.map(({ time, chipRate }) => [1 / time, chipRate]),
        { faint: isPools, tip: `${chip.label}, ${isPools ? "two pools" : "mixed servers"}` });
    });
    if (!lines.length) return { messages: ["No server fits, or keeps TTFT."] };
    const dots = plan.rows.filter(({ tie }) => tie === "best")
      .map(({ chip, name, userRate, chipRate }) => chipMark("dot", chip, [[userRate, chipRate]], {
        text: chip.label,
        tip: `${chip.label}, ${name}: ${significant(chipRate)} output tokens/s/chip,`
          + ` ${significant(userRate)} tokens/s/user`,
      }));
    const rules = limitRule(state, (tpot) => 1 / tpot);
    const marks = [...lines, ...dots];
    return {
      note: "Lines: mixed servers; dashed: two pools. Dots: each chip's best within the limits.",
      label: "Output tokens/s/chip over tokens/s/user; the best are in the table",
      x: axisAround([...marks, ...rules], 0, { title: "tokens/s/user", below: 1.2, above: 1.2 }),
      y: axisAround(marks, 1, { title: "output tokens/s/chip", below: 1.3, above: 1.5 }),
      marks: [...marks, ...rules],
      draggedSize: rules.length ? "tpot" : null, draggedName: "TPOT",
      sizeAt: (rate) => MS_PER_SECOND / rate,
    };
  }

  /** Plot: TPOT over the batch, by mixed server on a chip. */
  function tokenTimePlot(state, { searches }) {
    const search = searches.find(({ chip }) => chip === state.chip) ?? searches[0];
    if (search.unsupported) return { messages: SENTENCES.unsupportedReasons([search]) };
    const entries = search.searched.filter(({ fits }) => fits);
    if (!entries.length) return { messages: [`No server fits ${search.chip.label}.`] };
    const lines = entries.map(({ server }, place) => {
      const { split: { dp }, maxBatch, name } = server;
      const points = octaves(dp, Math.max(maxBatch, dp + 1), 2)
        .filter((B) => B <= maxBatch).map((B) => [B, tokenTime(server, B, true)]);
      return {
        kind: "line", points: points.length > 1 ? points : [points[0], points[0]],
        colour: `var(--kernel-${place % COLOURS})`, label: name,
      };
    });
    const dots = entries.filter(({ lost }) => !lost).map(({ server, mixed: { B } }) => ({
      kind: "circle", colour: "var(--ink)", points: [[B, tokenTime(server, B, true)]],
      tip: `${server.name}: B = ${integer(B)}`,
    }));
    const sizes = axisAround(lines, 0, { title: "batch of a server", below: 1, above: 1 });
    const limits = state.tpot < Infinity ? [{
      kind: "line", faint: true, colour: "var(--ink)",
      points: [[sizes.min, state.tpot], [sizes.max, state.tpot]],
    }] : [];
    const times = axisAround([...lines, ...limits], 1, { title: "TPOT", below: 1.3, above: 1.3 });
    return {
      note: "Circles: the largest batch within the limits. A line ends at what fits.",
      label: "TPOT of mixed servers over their batch; the batches are in the tab of servers",
      x: { ...sizes, max: Math.max(sizes.max, 2 * sizes.min) }, y: { ...times, format: seconds },
      marks: [...limits, ...lines, ...dots],
    };
  }

  /** Tab: mixed servers over splits and chips, with their largest batches. */
  function servers(state, { searches, rows }) {
    const names = [...new Set(searches.flatMap(({ searched = [] }) =>
      searched.map(({ server }) => server.name)))];
    const able = searches.filter(({ unsupported }) => !unsupported);
    const findRow = (entry) => rows.find(({ kind, decode }) =>
      kind === MIXED && decode === entry.server);
    const findEntry = (name, { searched }) =>
      searched.find(({ server }) => server.name === name) ?? { unsupported: "not on this chip" };
    const cell = ({ server, fits, lost, mixed }) => {
      const row = findRow({ server });
      if (lost) return { text: fits ? "late" : "full", kind: "never", tip: lost };
      const isBest = row.tie === "best";
      const tip = `${seconds(row.time)} a token, prompt alone ${seconds(server.firstToken)}`;
      return {
        text: `${integer(mixed.B)} · ${significant(row.chipRate)}`, tip,
        kind: isBest ? "chosen-split" : null,
      };
    };
    return TABLES.cellTable({
      caption: "Mixed servers: largest batch within the limits · output tokens/s/chip",
      corner: "server", rows: names.map((name) => ({ name, value: name })),
      columns: able.map((search) => ({ name: search.chip.label, value: search })),
      workload: findEntry, cell,
      note: "full: does not fit; late: TTFT or TPOT over its limit. Point at a cell for more.",
    });
  }

  return {
    servers, plots: (state, plan) => [deploymentsPlot(state, plan), tokenTimePlot(state, plan)],
  };
})();
