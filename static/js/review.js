import { linesOf } from "./lines.js";

/** A review: news never sweeps away what is being written, `n` walks the open threads, a composer can be taken away. */

/** Whether something is being written in there. @param {Element} part */
const isWritten = (part) =>
  [...part.querySelectorAll("textarea[data-said]")].some((field) => field instanceof HTMLTextAreaElement && (field.value.trim() || field === document.activeElement));

document.body.addEventListener("htmx:beforeSwap", (event) => {
  const part = event.target;
  if (!(event instanceof CustomEvent) || !(part instanceof Element) || !part.id.startsWith("review-") || !isWritten(part)) return;
  event.detail.shouldSwap = false;
  if (part.querySelector("[data-stale]")) return;
  const news = Object.assign(document.createElement("p"), { className: "notice run in", textContent: "Something new has come in. It shows when you send what you write, or " });
  news.dataset.stale = "";
  news.append(Object.assign(document.createElement("a"), { href: location.href, textContent: "read the page again" }));
  part.querySelector("header")?.after(news);
});

document.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  if (target?.closest("[data-cancel]")) target.closest(".composer")?.remove();
  if (target?.closest("[data-next-thread]")) next();
});

document.body.addEventListener("htmx:afterSwap", () => {
  const field = document.querySelector(".composer textarea:not([data-seen])");
  if (!(field instanceof HTMLTextAreaElement)) return;
  field.dataset.seen = "";
  takeMarked(field.form);
  field.focus();
});

/** A comment begun on one of the marked lines is about all of them. @param {HTMLFormElement | null} form */
function takeMarked(form) {
  const lines = linesOf(location.hash);
  const [first, last] = ["first", "last"].map((name) => form?.elements.namedItem(name));
  if (!form || !lines || !(first instanceof HTMLInputElement) || !(last instanceof HTMLInputElement)) return;
  const side = form.elements.namedItem("base") ? "O" : "L";
  const line = Number(first.value);
  if (side !== lines.side || line < lines.first || line > lines.last) return;
  [first.value, last.value] = [String(lines.first), String(lines.last)];
}

/** The next thread that is not resolved, from where the page stands. */
function next() {
  const open = [...document.querySelectorAll(".note[id]:not(.resolved)")];
  if (!open.length) return;
  const below = open.find((one) => one.getBoundingClientRect().top > 120) ?? open[0];
  below.closest("details")?.setAttribute("open", "");
  below.scrollIntoView({ block: "center" });
  const field = below.querySelector("textarea, button");
  if (field instanceof HTMLElement) field.focus({ preventScroll: true });
}
