/** The list of runs: selection that survives refreshes, and news of changes from the lists' socket. */
import { watchLists } from "./lists.js";

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

watchLists("runs-changed");
