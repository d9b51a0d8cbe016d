/** Keys: `data-hotkey` names an element's own (through @github/hotkey); `/`, `j`, `k`, `x`, `?` work on every page. */
import { install, uninstall } from "../npm/hotkey/index.js";

/** @param {EventTarget | null} target */
const isTyping = (target) =>
  target instanceof HTMLElement && (target.isContentEditable || target.matches("input:not([type=checkbox],[type=radio]), select, textarea"));

/** Rows, or changes of a diff, in view that `j` and `k` walk. @returns {HTMLElement[]} */
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

/** The keys that do something on this page as it is. @returns {string[][]} */
function pageKeys() {
  const all = rows();
  const [diffs, ticked] = [all.every((row) => row.closest(".diff")), all.some((row) => row.querySelector("input[type=checkbox]"))];
  const what = diffs ? "change" : "row";
  return [
    ["/", "Search"],
    ...(all.length ? [["j / k", `Next / previous ${what}`], ...(diffs ? [] : [["Enter", "Open the row"]])] : []),
    ...(ticked ? [["x", "Select the row"]] : []),
    ["?", "This list"],
    ["Esc", "Close"],
  ];
}

function list() {
  const dialog = document.getElementById("keys");
  const body = dialog?.querySelector("[data-keys-list]");
  if (!(dialog instanceof HTMLDialogElement) || !body) return;
  const own = [...document.querySelectorAll("[data-hotkey]")].map((element) => [
    element.getAttribute("data-hotkey"),
    element.getAttribute("data-keys-say") ?? element.textContent?.trim() ?? "",
  ]);
  body.replaceChildren(
    ...[...pageKeys(), ...own].flatMap(([keys, say]) => {
      const cell = document.createElement("span");
      cell.append(...String(keys).split(" ").map((key) => (key === "/" && keys !== "/" ? "/" : Object.assign(document.createElement("kbd"), { textContent: key }))));
      return [cell, Object.assign(document.createElement("span"), { textContent: say })];
    }),
  );
  dialog.showModal();
}

const ACTIONS = { "/": search, j: () => walk(1), k: () => walk(-1), x: tick, "?": list };

/** @type {Set<HTMLElement>} */
const armed = new Set();

/** Every element's own key: parts of a page are exchanged, and what came takes over from what went. */
function arm() {
  for (const element of armed) {
    if (element.isConnected) continue;
    uninstall(element);
    armed.delete(element);
  }
  for (const element of document.querySelectorAll("[data-hotkey]")) {
    if (!(element instanceof HTMLElement) || armed.has(element)) continue;
    install(element);
    armed.add(element);
  }
}

export function installKeys() {
  arm();
  document.addEventListener("htmx:afterSettle", arm);
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
