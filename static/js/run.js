/**
 * The live run: one socket that carries on from the last event handled; text streams into the lanes, and what is
 * structured (head, timeline, diff, metrics, advice) is fetched as the server renders it, at most once a second each.
 */
import WebSocket from "../npm/partysocket/ws.js";
import { installClocks } from "./clocks.js";
import { own, show } from "./link.js";
import { Lanes } from "./lanes.js";

const root = /** @type {HTMLElement} */ (document.getElementById("run"));
const lanes = new Lanes(/** @type {HTMLElement} */ (document.getElementById("reasoning")));
const news = /** @type {HTMLElement} */ (document.getElementById("news"));
let seq = Number(root.dataset.seq);
let state = root.dataset.state;

/** Which parts of the page an event touches. */
const TOUCHES = {
  version_kept: ["progress", "work", "head"],
  version_judged: ["progress", "work", "head"],
  remeasured: ["progress", "work"],
  best_changed: ["progress", "head"],
  reference_timed: ["progress", "head"],
  candidate_dropped: ["progress"],
  advice_given: ["advice"],
  advice_held: ["advice"],
  step_began: ["head"],
  step_ended: ["progress"],
  run_ended: ["head", "progress", "work", "advice"],
};
/** Events worth saying aloud; the rest would drown them. */
const SPOKEN = new Set(["version_kept", "best_changed", "advice_held", "run_ended", "lost", "hint_taken"]);

/** @type {Map<string, number>} */
const due = new Map();

/** Has a part of the page fetched soon, once for however many events ask for it. @param {string} part */
function refresh(part) {
  if (due.has(part)) return;
  due.set(part, window.setTimeout(() => {
    due.delete(part);
    if (part === "log" && isReading()) return;
    document.body.dispatchEvent(new Event(`run-${part}`));
  }, 700));
}

/** Whether somebody reads older lines of the log, or types into its search: then it stands still. */
function isReading() {
  const log = document.querySelector(".log");
  const typing = document.activeElement?.closest(".log-filters");
  return Boolean(typing) || (log instanceof HTMLElement && log.scrollTop + log.clientHeight < log.scrollHeight - 60);
}

/** The newest lines of the log, and the version looked at on the timeline, in sight. */
function toTheEnd() {
  const strip = document.querySelector("ol.strip");
  const shown = strip?.querySelector("a[aria-current]") ?? strip?.lastElementChild;
  if (strip && shown instanceof HTMLElement) strip.scrollLeft = shown.offsetLeft + shown.offsetWidth - strip.clientWidth + 14;
  const log = document.querySelector(".log");
  if (log && !location.hash.startsWith("#e")) log.scrollTop = log.scrollHeight;
}

/** @param {any} event */
function handle(event) {
  if (event.seq <= seq) return;
  seq = event.seq;
  if (event.kind === "step_began") lanes.begin(event);
  if (event.kind === "step_ended") lanes.end(event);
  for (const part of TOUCHES[event.kind] ?? []) refresh(part);
  refresh("log");
  if (SPOKEN.has(event.kind)) say(event.text);
}

/** @param {string} text */
function say(text) {
  news.append(Object.assign(document.createElement("p"), { textContent: text }));
  while (news.childElementCount > 20) news.firstElementChild?.remove();
}

/** @param {any} run */
function status(run) {
  if (run.state !== state) {
    state = run.state;
    refresh("head");
    refresh("progress");
  }
  document.title = `${run.speedup ? `${run.speedup.toFixed(2)}× · ` : ""}Run ${run.id}`;
}

const ON = {
  status: (message) => status(message.run),
  events: (message) => message.events.forEach(handle),
  draft: (message) => lanes.draft(message),
  draft_end: (message) => lanes.drop(message.step),
  ready: () => show("live"),
  reset: () => location.reload(),
  refused: (message) => say(message.message),
};

const scheme = location.protocol === "https:" ? "wss" : "ws";
const address = () => `${scheme}://${location.host}/ws/runs/${root.dataset.run}?after=${seq}`;
const socket = new WebSocket(address, [], { minReconnectionDelay: 300, maxReconnectionDelay: 8000, reconnectionDelayGrowFactor: 1.6 });
let opened = 0;
own();
show("reconnecting", "connecting");
socket.addEventListener("open", () => {
  lanes.dropAll(); // drafts that are open come again, whole
  if (opened++) for (const part of ["head", "progress", "work", "advice"]) refresh(part);
});
socket.addEventListener("message", (event) => {
  const message = JSON.parse(event.data);
  ON[message.type]?.(message);
});
socket.addEventListener("close", (event) => {
  if (event.code === 4401) return location.reload();
  if (event.code === 4403 || event.code === 4404) {
    socket.close();
    return show("offline", event.code === 4403 ? "not allowed" : "no such run");
  }
  show(navigator.onLine ? "reconnecting" : "offline");
});

document.addEventListener("htmx:afterRequest", (event) => {
  const form = event.target instanceof Element ? event.target.closest("form[data-closes]") : null;
  if (form && event instanceof CustomEvent && event.detail.successful) {
    form.closest("dialog")?.close();
    if (form instanceof HTMLFormElement) form.reset();
  }
});
document.addEventListener("htmx:afterSettle", toTheEnd);
toTheEnd();
installClocks();
