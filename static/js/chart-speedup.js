/** Speed-up by version: best so far as steps, each version with its interval, failures marked, on a log axis. */

/** Ticks that people read on a log axis of ratios. */
const NICE = [0.1, 0.2, 0.5, 1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000];

/** With more versions than this, marks get smaller and failures keep their word for the tooltip. */
const SPELT = 40;

/** Intervals as whiskers. @param {string} stroke */
const whiskers = (stroke) => ({
  id: "whiskers",
  beforeDatasetsDraw(chart) {
    const { ctx, scales } = chart;
    ctx.save();
    ctx.strokeStyle = stroke;
    ctx.lineWidth = 1.25;
    for (const point of chart.data.datasets[0].data) {
      if (point.low == null || point.high == null) continue;
      const x = scales.x.getPixelForValue(point.x);
      const [low, high] = [scales.y.getPixelForValue(point.low), scales.y.getPixelForValue(point.high)];
      ctx.beginPath();
      const half = chart.data.datasets[0].data.length > SPELT ? 1 : 4;
      for (const y of [low, high]) (ctx.moveTo(x - half, y), ctx.lineTo(x + half, y));
      ctx.moveTo(x, low);
      ctx.lineTo(x, high);
      ctx.stroke();
    }
    ctx.restore();
  },
});

/** Words beside points: the best one's figure, a failure's verdict. @param {(name: string) => string} colour */
const words = (colour) => ({
  id: "words",
  afterDatasetsDraw(chart) {
    const { ctx, scales, chartArea } = chart;
    ctx.save();
    ctx.font = `600 11px ${window.Chart.defaults.font.family}`;
    for (const point of chart.data.datasets.flatMap((set) => set.data)) {
      if (!point.say) continue;
      ctx.fillStyle = point.failed ? colour("--bad") : colour("--ink");
      const x = scales.x.getPixelForValue(point.x);
      const width = ctx.measureText(point.say).width;
      const left = x + 8 + width > chartArea.right ? x - 8 - width : x + 8;
      const top = scales.y.getPixelForValue(point.y) + (point.failed ? 4 : -8);
      ctx.lineWidth = 4; // a rim in the card's colour keeps the word readable over lines
      ctx.strokeStyle = colour("--surface");
      ctx.strokeText(point.say, left, top);
      ctx.fillText(point.say, left, top);
    }
    ctx.restore();
  },
});

/** @param {any} data @param {(name: string) => string} colour */
export function speedup(data, colour) {
  const ok = data.points.map((p, i) => ({ ...p, x: i + 1, y: p.ratio, say: p.is_best ? text(p.ratio) : "" })).filter((p) => p.ratio);
  const known = ok.flatMap((p) => [p.low ?? p.y, p.high ?? p.y]);
  const lines = [data.compiled, data.roof].filter(Boolean);
  const low = Math.min(1, ...known) / 1.12;
  const high = Math.max(1.3, ...known, ...lines) * 1.15;
  const many = data.points.length > SPELT;
  const failed = data.points.map((p, i) => ({ ...p, x: i + 1, y: low * 1.08, say: many ? "" : p.word, failed: true })).filter((p) => !p.ratio);
  const end = data.points.length + 0.6;
  const steps = [{ x: 0.4, y: 1 }, ...data.points.map((p, i) => ({ x: i + 1, y: p.best_so_far })), { x: end, y: data.points.at(-1)?.best_so_far ?? 1 }];
  const across = (label, y, stroke, dash) => ({ label, data: [{ x: 0.4, y }, { x: end, y }], borderColor: stroke, borderDash: dash, borderWidth: 1.5, pointRadius: 0, pointHitRadius: 0 });
  return {
    type: "line",
    data: {
      datasets: [
        { label: "versions", data: ok, showLine: false, pointRadius: (c) => (c.raw?.is_best ? 5.5 : many ? 2 : 4), pointHitRadius: 12, backgroundColor: colour("--accent"), borderColor: colour("--surface"), borderWidth: 1.5 },
        { label: "failed", data: failed, showLine: false, pointStyle: "crossRot", pointRadius: many ? 2.5 : 5, pointHitRadius: 12, borderColor: colour("--bad"), borderWidth: many ? 1 : 2 },
        { label: "best so far", data: steps, stepped: "before", borderColor: colour("--accent"), borderWidth: 2, pointRadius: 0, pointHitRadius: 0 },
        ...(data.compiled ? [across("torch.compile", data.compiled, colour("--ink-3"), [6, 5])] : []),
        ...(data.roof ? [across("memory roof", data.roof, colour("--warn"), [2, 4])] : []),
      ],
    },
    options: {
      scales: {
        x: { type: "linear", min: 0.4, max: end, grid: { display: false }, border: { color: colour("--line-strong") }, afterBuildTicks: (axis) => (axis.ticks = thin(data.points.length).map((value) => ({ value }))), ticks: { color: colour("--ink-2"), callback: (value) => data.points[value - 1]?.name ?? "" } },
        y: { type: "logarithmic", min: low, max: high, grid: { color: colour("--line-soft") }, border: { display: false }, afterBuildTicks: (axis) => (axis.ticks = NICE.filter((v) => v >= low && v <= high).map((value) => ({ value }))), ticks: { color: colour("--ink-2"), callback: (value) => `${value}×` } },
      },
      plugins: { legend: { display: false }, tooltip: { filter: (item) => item.datasetIndex < 2, callbacks: { title: (items) => items[0]?.raw.name ?? "", label: (item) => (item.raw.ratio ? `${text(item.raw.ratio)} [${item.raw.low?.toFixed(2) ?? "?"} – ${item.raw.high?.toFixed(2) ?? "?"}] ${item.raw.tier}` : item.raw.word) } } },
      onClick: (_event, hits) => {
        const hit = hits.find((one) => one.datasetIndex < 2);
        if (hit) location.assign(`${data.address}${(hit.datasetIndex ? failed : ok)[hit.index].name}/`);
      },
    },
    plugins: [whiskers(colour("--ink-2")), words(colour)],
  };
}

/** @param {number} value */
const text = (value) => `${value >= 10 ? value.toFixed(1) : value.toFixed(2)}×`;

/** Which versions get a tick when there are many. @param {number} count */
function thin(count) {
  const every = Math.ceil(count / 14);
  return Array.from({ length: count }, (_, i) => i + 1).filter((n) => (n - 1) % every === 0);
}
