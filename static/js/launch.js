/** Launch: shows the fields that belong to the way chosen, and reads an uploaded file into the text at once. */

const form = /** @type {HTMLFormElement} */ (document.getElementById("launch"));
const source = /** @type {HTMLTextAreaElement} */ (document.getElementById("source"));

function arrange() {
  const how = new FormData(form).get("how");
  for (const field of form.querySelectorAll("[data-when]")) if (field instanceof HTMLElement) field.hidden = field.dataset.when !== how;
}

form.addEventListener("change", (event) => {
  const field = event.target;
  if (!(field instanceof HTMLInputElement)) return;
  if (field.name === "how") arrange();
  const file = field.type === "file" ? field.files?.[0] : undefined;
  if (file) {
    event.stopPropagation();
    const into = document.getElementById(field.dataset.into ?? "");
    const place = into instanceof HTMLTextAreaElement ? into : source;
    file.text().then((text) => {
      place.value = text;
      field.value = ""; // the text is what is sent, so that it can be looked at and mended first
      place.dispatchEvent(new Event("change", { bubbles: true }));
    });
  }
}, true);

/** A launch that was asked for before its problem's facts were there goes on by itself now that they are. */
function goOn() {
  const now = form.querySelector("[data-launch-now]:not([data-gone])");
  const button = form.querySelector("button.launch");
  if (!(now instanceof HTMLElement) || !(button instanceof HTMLButtonElement)) return;
  now.dataset.gone = "";
  form.requestSubmit(button);
}

arrange();
goOn();
document.addEventListener("htmx:afterSettle", goOn);
