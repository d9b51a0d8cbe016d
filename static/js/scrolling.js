/** What scrolls sideways can be reached by keyboard, and only then is it a stop of the tab key. */

function mark() {
  for (const box of document.querySelectorAll(".scroll:not([role=region]), .tabs, .strip")) {
    if (!(box instanceof HTMLElement)) continue;
    if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

export function installScrolling() {
  mark();
  addEventListener("resize", mark);
  document.addEventListener("htmx:afterSettle", mark);
  document.addEventListener("toggle", mark, true);
}
