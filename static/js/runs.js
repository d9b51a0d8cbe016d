/** The list of runs: selection that survives refreshes, and news of changes from the lists' socket. */
import WebSocket from "../npm/partysocket/ws.js";
import { own, show } from "./link.js";

/** @type {Set<string>} */
const selected = new Set();

const boxes = () => [...document.querySelectorAll('#runs-table input[name="run"]')].filter((box) => box instanceof HTMLInputElement);

function mark() {
  for (const box of boxes()) {
    box.checked = selected.has(box.value);
    box.closest("tr")?.setAttribute("aria-selected", String(box.checked));
  }
  const bar = document.querySelector("[data-bulk]");
  if (!(bar instanceof HTMLElement)) return;
  bar.dataset.bulk = selected.size ? "some" : "none";
  const count = bar.querySelector("[data-bulk-count]");
  if (count) count.textContent = selected.size ? `${selected.size} selected` : "Select runs to compare, stop or launch again";
  for (const button of bar.querySelectorAll("button")) button.disabled = selected.size < (button.value === "compare" ? 2 : 1);
  const all = document.querySelector("[data-select-all]");
  if (all instanceof HTMLInputElement) {
    all.checked = selected.size > 0 && boxes().every((box) => box.checked);
    all.indeterminate = selected.size > 0 && !all.checked;
  }
}

document.addEventListener("change", (event) => {
  const box = event.target;
  if (!(box instanceof HTMLInputElement)) return;
  if (box.matches("[data-select-all]")) for (const one of boxes()) box.checked ? selected.add(one.value) : selected.delete(one.value);
  else if (box.name === "run") box.checked ? selected.add(box.value) : selected.delete(box.value);
  else return;
  mark();
});
document.addEventListener("htmx:afterSettle", mark);
mark();

const scheme = location.protocol === "https:" ? "wss" : "ws";
const socket = new WebSocket(`${scheme}://${location.host}/ws/runs`, [], { minReconnectionDelay: 500, maxReconnectionDelay: 8000 });
let due = 0;
let opened = 0;
socket.addEventListener("open", () => {
  own();
  show("live");
  if (opened++) refresh(); // the page itself was the first reading
});
socket.addEventListener("close", (event) => {
  if (event.code === 4401) location.reload();
  show(navigator.onLine ? "reconnecting" : "offline");
});
socket.addEventListener("message", (event) => {
  const news = JSON.parse(event.data);
  if (news.type === "changed" && (news.runs.length || news.hosts.length)) refresh();
});

/** One refresh at most every two seconds, none while a menu of the table has the focus of a mouse button. */
function refresh() {
  if (due) return;
  due = window.setTimeout(() => {
    due = 0;
    document.body.dispatchEvent(new Event("runs-changed"));
  }, 1500);
}
