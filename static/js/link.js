/** The connection, said in words on every page. The run page sets it from its socket; elsewhere a light beat does. */

const EVERY_MS = 20000;
let owned = false;

/** Shows `state` in the bar. @param {"live" | "reconnecting" | "offline"} state @param {string} [word] */
export function show(state, word = state) {
  const pill = document.getElementById("link");
  if (!pill || (pill.dataset.link === state && pill.querySelector("[data-word]")?.textContent === word)) return;
  pill.dataset.link = state;
  const text = pill.querySelector("[data-word]");
  if (text) text.textContent = word;
}

/** A socket speaks for the connection from now on. */
export function own() {
  owned = true;
}

/** Whether the server answers. @param {string} address */
async function beat(address) {
  if (owned || document.hidden) return;
  try {
    const answer = await fetch(address, { cache: "no-store", signal: AbortSignal.timeout(5000) });
    show(answer.ok ? "live" : "reconnecting");
  } catch {
    show(navigator.onLine ? "reconnecting" : "offline");
  }
}

export function installLink() {
  const address = document.getElementById("link")?.dataset.health;
  if (!address) return;
  setInterval(() => beat(address), EVERY_MS);
  addEventListener("online", () => beat(address));
  addEventListener("offline", () => show("offline"));
  document.addEventListener("htmx:sendError", () => show(navigator.onLine ? "reconnecting" : "offline"));
  document.addEventListener("htmx:afterRequest", (event) => {
    if (!owned && event instanceof CustomEvent && event.detail.successful) show("live");
  });
}
