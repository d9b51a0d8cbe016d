/**
 * Lines of code in the address: `#L12`, `#L12-L18` on the new side (or the only one), `#O3-O5` on the old side of a diff.
 * They are marked, unfolded and brought into view; Shift and a click on another line's number makes a range.
 */
const RANGE = /^#([LO])(\d{1,6})(?:-[LO]?(\d{1,6}))?$/;
const LONGEST = 5000; // lines; an address is anybody's

/** @typedef {{ side: "L" | "O", first: number, last: number }} Lines */

/** The lines that an address names. @param {string} hash @returns {Lines | null} */
export function linesOf(hash) {
  const found = RANGE.exec(hash);
  if (!found) return null;
  const [one, other] = [Number(found[2]), Number(found[3] ?? found[2])];
  return { side: found[1] === "O" ? "O" : "L", first: Math.min(one, other), last: Math.max(one, other) };
}

/** @param {Lines} lines @returns {HTMLElement[]} */
function elementsOf({ side, first, last }) {
  const found = [];
  for (let line = first; line <= Math.min(last, first + LONGEST); line++) {
    const element = document.getElementById(`${side}${line}`);
    if (element) found.push(element);
  }
  return found;
}

/** @param {boolean} scrolls whether the first of them is to come into view */
function mark(scrolls) {
  for (const old of document.querySelectorAll(".marked")) old.classList.remove("marked");
  const lines = linesOf(location.hash);
  const elements = lines ? elementsOf(lines) : [];
  for (const element of elements) element.classList.add("marked");
  if (!scrolls || !elements.length) return;
  elements[0].closest("details")?.setAttribute("open", "");
  elements[0].scrollIntoView({ block: "center" });
}

/** @param {MouseEvent} event */
function onClick(event) {
  const link = event.target instanceof Element ? event.target.closest("a[href^='#L'], a[href^='#O']") : null;
  const there = link && event.shiftKey ? linesOf(link.getAttribute("href") ?? "") : null;
  if (!there) return;
  const now = linesOf(location.hash);
  if (!now || now.side !== there.side) return;
  event.preventDefault();
  const [first, last] = [Math.min(now.first, there.first), Math.max(now.first, there.first)];
  history.replaceState(null, "", `#${there.side}${first}-${there.side}${last}`);
  mark(false);
}

export function installLines() {
  document.addEventListener("click", onClick);
  addEventListener("hashchange", () => mark(true));
  document.addEventListener("htmx:afterSettle", () => mark(false));
  mark(true);
}
