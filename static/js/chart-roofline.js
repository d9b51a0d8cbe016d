/** Roofline: two roofs on log-log axes, kernels under them. */

const TONES = { plain: "--ink-3", before: "--profiler", now: "--accent", other: "--coder" };

const names = (colour) => ({
  id: "names",
  afterDatasetsDraw(chart) {
    const { ctx, scales, chartArea } = chart;
    ctx.save();
    let last = -Infinity;
    const points = chart.data.datasets.slice(1).flatMap((set) => set.data).sort((a, b) => b.y - a.y);
    for (const point of points) {
      const [x, y] = [scales.x.getPixelForValue(point.x), scales.y.getPixelForValue(point.y)];
      last = Math.max(y + 4, last + 13); // names of kernels close to each other go below one another
      ctx.fillStyle = colour(point.tone === "now" ? "--ink" : "--ink-2");
      ctx.font = `${point.tone === "now" ? 650 : 400} 11px ${window.Chart.defaults.font.family}`;
      const say = point.share == null ? point.name : `${point.name} ${Math.round(point.share * 100)} %`;
      const right = x + 10 + ctx.measureText(say).width > chartArea.right;
      ctx.fillText(say, right ? x - 10 - ctx.measureText(say).width : x + 10, last);
    }
    ctx.restore();
  },
});

/** @param {any} data @param {(name: string) => string} colour */
export function roofline(data, colour) {
  const ridge = data.peak_gflops / data.bandwidth;
  const xs = data.points.map((p) => p.intensity);
  const ys = data.points.map((p) => p.gflops);
  const left = Math.min(ridge / 8, ...xs) / 2;
  const right = Math.max(ridge * 8, ...xs) * 2;
  const low = Math.min(left * data.bandwidth, ...ys) / 1.5;
  const axis = (title, min, max) => ({ type: "logarithmic", min, max, title: { display: true, text: title, color: colour("--ink-2") }, grid: { color: colour("--line-soft") }, border: { color: colour("--line-strong") }, ticks: { color: colour("--ink-2"), maxTicksLimit: 6, callback: (value) => (/^[125]/.test(String(Number(value).toExponential())) && Number(Number(value).toExponential().split("e")[0]) === 1 ? String(value) : "") } });
  return {
    type: "line",
    data: {
      datasets: [
        { data: [{ x: left, y: left * data.bandwidth }, { x: ridge, y: data.peak_gflops }, { x: right, y: data.peak_gflops }], borderColor: colour("--ink-2"), borderWidth: 1.5, pointRadius: 0, pointHitRadius: 0 },
        ...data.points.map((p) => ({ data: [{ x: p.intensity, y: p.gflops, ...p }], showLine: false, pointRadius: p.tone === "now" ? 5.5 : 4, pointHitRadius: 10, pointStyle: p.tone === "before" ? "rect" : p.tone === "plain" ? "triangle" : "circle", backgroundColor: colour(TONES[p.tone] ?? "--accent"), borderColor: colour("--surface") })),
      ],
    },
    options: {
      scales: { x: axis("FLOP / byte", left, right), y: axis("GFLOP/s", low, data.peak_gflops * 1.6) },
      plugins: { legend: { display: false }, tooltip: { callbacks: { title: (items) => items[0].raw.name ?? "", label: (item) => `${item.raw.gflops.toPrecision(3)} GFLOP/s, ${item.raw.gbytes_per_s.toPrecision(3)} GB/s` } } },
    },
    plugins: [names(colour)],
  };
}
