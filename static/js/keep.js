/**
 * What a person types is kept, in this tab, until the server has taken it: a refusal, a sign-in that has run out or a server
 * that is away lose nothing. The server says by a cookie what it has taken (`SaysWhatWasTaken`).
 *
 * What was sent and not taken comes back whole; what was never sent comes back where it is a text.
 */
const PREFIX = "typed:";
const NOT_KEPT = new Set(["hidden", "password", "file", "submit", "button", "image", "reset"]);

/**
 * @typedef {{ fields: Record<string, string>, sent: string, refused: boolean }} Kept
 * @typedef {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} Field
 */

/** @param {HTMLFormElement} form @returns {Field[]} */
const fields = (form) =>
  [...form.elements].filter(
    (one) => (one instanceof HTMLInputElement || one instanceof HTMLTextAreaElement || one instanceof HTMLSelectElement) && one.name && !NOT_KEPT.has(one.type),
  );

/** Forms with a password are never kept. @param {HTMLFormElement} form */
const isKept = (form) => form.method === "post" && !form.querySelector("input[type=password]");

/** What makes a form that form: where it goes, and what it says without being asked. @param {HTMLFormElement} form */
function keyOf(form) {
  if (form.dataset.keep) return PREFIX + form.dataset.keep;
  const told = [...form.querySelectorAll("input[type=hidden]")]
    .filter((one) => one instanceof HTMLInputElement && !["csrfmiddlewaretoken", "back", "digest", "sized", "tested", "kept"].includes(one.name))
    .map((one) => (one instanceof HTMLInputElement ? `${one.name}=${one.value}` : ""));
  const address = new URL(form.action);
  return `${PREFIX}${address.pathname}?${[location.pathname, ...told].join("&")}`;
}

/** @param {Field} field */
const isBox = (field) => field instanceof HTMLInputElement && (field.type === "checkbox" || field.type === "radio");
/** Boxes of one name are told apart by their value. @param {Field} field */
const nameOf = (field) => (isBox(field) ? `${field.name}=${field.value}` : field.name);
/** @param {Field} field */
const valueOf = (field) => (field instanceof HTMLInputElement && isBox(field) ? String(field.checked) : field.value);

/** @param {Field} field */
function defaultOf(field) {
  if (field instanceof HTMLSelectElement) return ([...field.options].find((one) => one.defaultSelected) ?? field.options[0])?.value ?? "";
  return isBox(field) && field instanceof HTMLInputElement ? String(field.defaultChecked) : field.defaultValue;
}

/** @param {string} key @returns {Kept | null} */
function read(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

/** @param {string} key @param {Kept} kept */
function write(key, kept) {
  try {
    sessionStorage.setItem(key, JSON.stringify(kept));
  } catch {
    // Full, or not allowed here: then nothing is kept, and everything else works.
  }
}

/** @returns {string[]} */
const keys = () => Object.keys(sessionStorage).filter((key) => key.startsWith(PREFIX));

/** @param {HTMLFormElement} form @param {string} [sent] */
function keep(form, sent = "") {
  const changed = fields(form).filter((one) => valueOf(one) !== defaultOf(one));
  if (!changed.length && !sent) return sessionStorage.removeItem(keyOf(form));
  write(keyOf(form), { fields: Object.fromEntries(changed.map((one) => [nameOf(one), valueOf(one)])), sent, refused: false });
}

/** What the server took is let go; what was sent and not taken is to come back. */
function settle() {
  const taken = new Set([...document.cookie.matchAll(/(?:^|; )taken-([0-9a-f]{16})=/g)].map((one) => one[1]));
  for (const key of keys()) {
    const kept = read(key);
    if (!kept?.sent) continue;
    if (taken.has(kept.sent)) {
      sessionStorage.removeItem(key);
      document.cookie = `taken-${kept.sent}=; max-age=0; path=/; samesite=lax`;
    } else write(key, { ...kept, sent: "", refused: true });
  }
}

/** @param {HTMLFormElement} form */
function putBack(form) {
  const kept = isKept(form) ? read(keyOf(form)) : null;
  if (!kept || kept.sent || form.querySelector("[data-put-back]")) return;
  const wanted = fields(form).filter((one) => kept.refused || one instanceof HTMLTextAreaElement);
  const lost = wanted.filter((one) => {
    const value = kept.fields[nameOf(one)];
    return value !== undefined && valueOf(one) === defaultOf(one) && value !== valueOf(one);
  });
  for (const field of lost) {
    const value = kept.fields[nameOf(field)];
    if (field instanceof HTMLInputElement && isBox(field)) field.checked = value === "true";
    else field.value = value;
    for (let part = field.closest("details"); part; part = part.parentElement?.closest("details") ?? null) part.open = true;
  }
  if (lost.length) form.prepend(word(form));
}

/** @param {HTMLFormElement} form */
function word(form) {
  const said = Object.assign(document.createElement("p"), { className: "notice run", role: "status", textContent: "What you had typed is back, and not sent. " });
  const away = Object.assign(document.createElement("button"), { type: "button", className: "link", textContent: "Throw it away" });
  away.addEventListener("click", () => {
    sessionStorage.removeItem(keyOf(form));
    form.reset();
    said.remove();
  });
  said.dataset.putBack = "";
  said.append(away);
  return said;
}

const putAllBack = () => {
  for (const form of document.forms) putBack(form);
};

/** @param {SubmitEvent} event */
function onSubmit(event) {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || event.defaultPrevented) return;
  if (form.hasAttribute("data-forgets")) return keys().forEach((key) => sessionStorage.removeItem(key));
  if (!isKept(form)) return;
  const sent = [...crypto.getRandomValues(new Uint8Array(8))].map((one) => one.toString(16).padStart(2, "0")).join("");
  form.querySelector("input[name=kept]")?.remove();
  keep(form, sent);
  form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "kept", value: sent }));
}

export function installKeeping() {
  settle();
  putAllBack();
  for (const kind of ["input", "change"])
    document.addEventListener(kind, (event) => {
      const form = event.target instanceof Element ? event.target.closest("form") : null;
      if (form && isKept(form)) keep(form);
    });
  document.addEventListener("submit", onSubmit);
  document.addEventListener("htmx:afterSettle", putAllBack);
  document.addEventListener("htmx:afterRequest", (event) => {
    if (!(event instanceof CustomEvent) || !event.detail.successful || !(event.target instanceof HTMLFormElement)) return;
    if (event.detail.requestConfig?.triggeringEvent?.type === "submit") sessionStorage.removeItem(keyOf(event.target));
  });
}
