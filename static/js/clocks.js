/** Clocks: times of day in the viewer's zone, and elapsed time that goes on by itself while a run does. */

const two = (n) => String(n).padStart(2, "0");

/** `1:42` or `2:03:10`. @param {number} seconds */
function elapsed(seconds) {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  return hours ? `${hours}:${two(minutes)}:${two(Math.floor(seconds % 60))}` : `${minutes}:${two(Math.floor(seconds % 60))}`;
}

function tick() {
  for (const element of document.querySelectorAll("[data-since]")) {
    if (!(element instanceof HTMLElement)) continue;
    const rest = element.dataset.rest ?? (element.dataset.rest = (element.textContent ?? "").replace(/^[^/·]*/, ""));
    element.textContent = `${elapsed(Math.max(0, Date.now() / 1000 - Number(element.dataset.since)))} ${rest}`.trimEnd();
  }
}

function zone() {
  for (const element of document.querySelectorAll("time[data-clock]:not([data-zoned])")) {
    if (!(element instanceof HTMLTimeElement)) continue;
    const timeZone = element.getAttribute("time-zone") ?? undefined;
    element.textContent = new Date(element.dateTime).toLocaleTimeString([], { hour12: false, timeZone });
    element.dataset.zoned = "";
  }
}

export function installClocks() {
  setInterval(tick, 1000);
  tick();
  zone();
  document.addEventListener("htmx:afterSettle", () => (tick(), zone()));
}
