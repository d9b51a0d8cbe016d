/** Best so far of several runs on one log axis, against iterations or time; each lead with its interval. */

const LOOKS = [
  ["--accent", [], "circle"],
  ["--profiler", [6, 4], "rect"],
  ["--coder", [2, 3], "triangle"],
  ["--verifier", [8, 3, 2, 3], "rectRot"],
  ["--good", [12, 4], "star"],
  ["--bad", [4, 2], "cross"],
];
const NICE = [0.5, 1, 1.5, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000];

/** @param {any} data @param {(name: string) => string} colour */
export function ways(data, colour) {
  const by = data.axis === "time" ? "seconds" : "iterations";
  const place = data.axis === "time" ? (p) => p.seconds : (p) => p.iteration;
  const known = data.ways.flatMap((way) => way.points.flatMap((p) => [p.low ?? p.ratio, p.high ?? p.ratio]));
  const low = Math.min(1, ...known) / 1.08;
  const high = Math.max(1.2, ...known) * 1.12;
  const end = Math.max(data.axis === "time" ? 1 : 0.5, ...data.ways.map((way) => way[by]));
  return {
    type: "line",
    data: {
      datasets: data.ways.map((way, i) => {
        const [tone, dash, mark] = LOOKS[i % LOOKS.length];
        const leads = way.points.map((p) => ({ ...p, x: place(p), y: p.ratio }));
        const last = leads.at(-1);
        const line = [{ x: 0, y: 1, start: true }, ...leads, { x: Math.max(way[by], last?.x ?? 0), y: last?.y ?? 1, start: true }];
        return { label: way.name, data: line, stepped: "before", borderColor: colour(tone), backgroundColor: colour(tone), borderDash: dash, pointStyle: mark, pointRadius: (c) => (c.raw?.start ? 0 : 4), pointHitRadius: (c) => (c.raw?.start ? 0 : 12), borderWidth: 2 };
      }),
    },
    options: {
      scales: {
        x: { type: "linear", min: 0, max: end, grid: { display: false }, border: { color: colour("--line-strong") }, afterBuildTicks: (axis) => data.axis === "time" && (axis.ticks = times(end)), ticks: { color: colour("--ink-2"), precision: 0, callback: (v) => (data.axis === "time" ? clock(v) : v) }, title: { display: true, text: data.axis === "time" ? "time since the start" : "iteration", color: colour("--ink-2") } },
        y: { type: "logarithmic", min: low, max: high, grid: { color: colour("--line-soft") }, border: { display: false }, afterBuildTicks: (axis) => (axis.ticks = NICE.filter((v) => v >= low && v <= high).map((value) => ({ value }))), ticks: { color: colour("--ink-2"), callback: (v) => `${v}×` } },
      },
      plugins: {
        legend: { labels: { color: colour("--ink"), usePointStyle: true, boxHeight: 6, boxWidth: 6 } },
        tooltip: { filter: (item) => !item.raw.start, callbacks: { title: (items) => (items[0] ? `${items[0].dataset.label}, ${items[0].raw.version}` : ""), label: (item) => `${item.raw.ratio.toFixed(2)}× [${item.raw.low?.toFixed(2) ?? "?"} – ${item.raw.high?.toFixed(2) ?? "?"}], iteration ${item.raw.iteration}, ${clock(item.raw.seconds)}` } },
      },
      onClick: (_event, hits, chart) => {
        const hit = hits.map((one) => chart.data.datasets[one.datasetIndex].data[one.index]).find((point) => point.address);
        if (hit) location.assign(hit.address);
      },
    },
    plugins: [whiskers()],
  };
}

/** Each lead's interval, in its line's colour. */
const whiskers = () => ({
  id: "whiskers",
  afterDatasetsDraw(chart) {
    const { ctx, scales } = chart;
    ctx.save();
    ctx.lineWidth = 1.25;
    for (const set of chart.data.datasets) {
      ctx.strokeStyle = set.borderColor;
      for (const point of set.data) {
        if (point.low == null || point.high == null) continue;
        const x = scales.x.getPixelForValue(point.x);
        const [low, high] = [scales.y.getPixelForValue(point.low), scales.y.getPixelForValue(point.high)];
        ctx.beginPath();
        for (const y of [low, high]) (ctx.moveTo(x - 4, y), ctx.lineTo(x + 4, y));
        ctx.moveTo(x, low);
        ctx.lineTo(x, high);
        ctx.stroke();
      }
    }
    ctx.restore();
  },
});

/** Ticks at times that people count in. @param {number} end */
function times(end) {
  const step = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200].find((one) => end / one <= 8) ?? 14400;
  return Array.from({ length: Math.floor(end / step) + 1 }, (_, i) => ({ value: i * step }));
}

/** @param {number} seconds */
function clock(seconds) {
  if (!seconds) return "0";
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}
