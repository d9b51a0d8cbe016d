/** Small manners of forms and menus: dialogs that open by a button, copying, choices that send themselves, one submit. */

/** @param {Event} event */
function onClick(event) {
  const target = event.target instanceof Element ? event.target : null;
  if (!target) return;
  const opener = target.closest("[data-open]");
  if (opener) {
    const dialog = document.getElementById(opener.getAttribute("data-open") ?? "");
    if (dialog instanceof HTMLDialogElement) dialog.showModal();
  }
  if (target.closest("[data-close]")) target.closest("dialog")?.close();
  if (target instanceof HTMLDialogElement) target.close(); // a click on the backdrop
  const copier = target.closest("[data-copy]");
  if (copier instanceof HTMLElement) copy(copier);
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(target)) menu.removeAttribute("open");
}

/** @param {HTMLElement} button */
async function copy(button) {
  const source = document.querySelector(button.dataset.copy ?? "");
  if (!source) return;
  const text = source instanceof HTMLTextAreaElement ? source.value : (source.textContent ?? "");
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text.trim());
    button.textContent = "Copied";
  } catch {
    const range = document.createRange(); // no clipboard here: at least it stands selected
    range.selectNodeContents(source);
    getSelection()?.removeAllRanges();
    getSelection()?.addRange(range);
    button.textContent = "Selected: press Ctrl+C";
  }
  setTimeout(() => (button.textContent = before), 2000);
}

export function installForms() {
  document.addEventListener("click", onClick);
  document.addEventListener("change", (event) => {
    const field = event.target instanceof Element ? event.target.closest("[data-auto]") : null;
    if (field instanceof HTMLSelectElement || field instanceof HTMLInputElement) field.form?.requestSubmit();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.menu[open]")) menu.removeAttribute("open");
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!(form instanceof HTMLFormElement) || form.method !== "post" || form.hasAttribute("hx-post")) return;
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "1";
    setTimeout(() => delete form.dataset.sent, 4000);
  });
}
