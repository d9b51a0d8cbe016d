/** Keys: `data-hotkey` names an element's own (through @github/hotkey); `/`, `j`, `k`, `x`, `?` work on every page. */
import { install } from "../npm/hotkey/index.js";

/** @param {EventTarget | null} target */
const isTyping = (target) =>
  target instanceof HTMLElement && (target.isContentEditable || target.matches("input:not([type=checkbox],[type=radio]), select, textarea"));

/** Rows in view that `j` and `k` walk. @returns {HTMLElement[]} */
const rows = () => [...document.querySelectorAll("[data-row]")].filter((row) => row instanceof HTMLElement && row.offsetParent !== null);

/** The link or control of a row that takes the focus. @param {HTMLElement} row */
const handle = (row) => (row.matches("a, button, summary") ? row : row.querySelector("[data-row-link], a, button"));

/** @param {number} step */
function walk(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.contains(document.activeElement));
  const next = all[Math.min(all.length - 1, Math.max(0, at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step))];
  handle(next)?.focus();
  next.scrollIntoView({ block: "nearest" });
}

function tick() {
  const row = rows().find((one) => one.contains(document.activeElement));
  const box = row?.querySelector("input[type=checkbox]");
  if (box instanceof HTMLInputElement) box.click();
}

function search() {
  const field = document.querySelector("[data-search]");
  if (field instanceof HTMLInputElement) {
    field.focus();
    field.select();
  } else {
    location.assign("/?focus=search"); // every search that matters starts at the list of runs
  }
}

const PAGE_KEYS = [
  ["/", "Search"],
  ["j / k", "Next / previous row"],
  ["Enter", "Open the row"],
  ["x", "Select the row"],
  ["?", "This list"],
  ["Esc", "Close"],
];

function list() {
  const dialog = document.getElementById("keys");
  const body = dialog?.querySelector("[data-keys-list]");
  if (!(dialog instanceof HTMLDialogElement) || !body) return;
  const own = [...document.querySelectorAll("[data-hotkey]")].map((element) => [
    element.getAttribute("data-hotkey"),
    element.getAttribute("data-keys-say") ?? element.textContent?.trim() ?? "",
  ]);
  body.replaceChildren(
    ...[...PAGE_KEYS, ...own].flatMap(([keys, say]) => {
      const cell = document.createElement("span");
      cell.append(...String(keys).split(" ").map((key) => (key === "/" && keys !== "/" ? "/" : Object.assign(document.createElement("kbd"), { textContent: key }))));
      return [cell, Object.assign(document.createElement("span"), { textContent: say })];
    }),
  );
  dialog.showModal();
}

const ACTIONS = { "/": search, j: () => walk(1), k: () => walk(-1), x: tick, "?": list };

export function installKeys() {
  for (const element of document.querySelectorAll("[data-hotkey]")) if (element instanceof HTMLElement) install(element);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    const action = ACTIONS[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  document.addEventListener("click", (event) => {
    const target = event.target instanceof Element ? event.target : null;
    if (target?.closest("[data-open-search]")) search();
    if (target?.closest("[data-open-keys]")) list();
  });
  if (new URLSearchParams(location.search).get("focus") === "search") search();
}
