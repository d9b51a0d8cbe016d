/** Best so far of several runs over their versions, on one log axis; runs differ by colour, dash and mark. */

const LOOKS = [
  ["--accent", [], "circle"],
  ["--profiler", [6, 4], "rect"],
  ["--coder", [2, 3], "triangle"],
  ["--verifier", [8, 3, 2, 3], "rectRot"],
  ["--good", [12, 4], "star"],
  ["--bad", [4, 2], "cross"],
];

/** @param {any} data @param {(name: string) => string} colour */
export function curves(data, colour) {
  return {
    type: "line",
    data: {
      datasets: data.curves.map((curve, i) => {
        const [tone, dash, mark] = LOOKS[i % LOOKS.length];
        return { label: curve.name, data: curve.best.map((y, x) => ({ x, y })), stepped: "before", borderColor: colour(tone), backgroundColor: colour(tone), borderDash: dash, pointStyle: mark, pointRadius: 3, borderWidth: 2 };
      }),
    },
    options: {
      scales: {
        x: { type: "linear", min: 0, grid: { display: false }, ticks: { color: colour("--ink-2"), precision: 0 }, title: { display: true, text: "versions written", color: colour("--ink-2") } },
        y: { type: "logarithmic", min: 0.9, grid: { color: colour("--line-soft") }, ticks: { color: colour("--ink-2"), callback: (v) => ([1, 2, 3, 5, 10, 20, 50, 100].includes(v) ? `${v}×` : "") } },
      },
      plugins: { legend: { labels: { color: colour("--ink"), usePointStyle: true, boxHeight: 6, boxWidth: 6 } } },
    },
  };
}
