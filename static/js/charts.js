/**
 * Charts: each `canvas[data-chart]` draws the JSON of its `data-source`. Chart.js comes as a classic script; colours are
 * read from the tokens at each drawing, so that a change of theme redraws.
 */
import { colour, onTheme } from "./theme.js";
import { speedup } from "./chart-speedup.js";
import { roofline } from "./chart-roofline.js";
import { ways } from "./chart-ways.js";

const KINDS = { speedup, roofline, ways };
/** @type {Map<HTMLCanvasElement, {destroy: () => void}>} */
const drawn = new Map();

/** Draws what is on the page and not drawn yet; forgets what has left it. @param {boolean} again */
function draw(again = false) {
  for (const [canvas, chart] of drawn) {
    if (!again && canvas.isConnected) continue;
    chart.destroy();
    drawn.delete(canvas);
  }
  for (const canvas of document.querySelectorAll("canvas[data-chart]")) {
    if (!(canvas instanceof HTMLCanvasElement) || drawn.has(canvas)) continue;
    const source = document.getElementById(canvas.dataset.source ?? "");
    const kind = KINDS[canvas.dataset.chart ?? ""];
    if (!source || !kind || !window.Chart) continue;
    drawn.set(canvas, new window.Chart(canvas, kind(JSON.parse(source.textContent ?? "null"), colour)));
  }
}

if (window.Chart) {
  Object.assign(window.Chart.defaults, { animation: false, responsive: true, maintainAspectRatio: false });
  window.Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  window.Chart.defaults.font.size = 11;
  draw();
  document.addEventListener("htmx:afterSettle", () => draw());
  onTheme(() => draw(true));
}
