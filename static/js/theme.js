/** The theme: the system's until a person chooses; the choice is kept with the person, and in a cookie before sign-in. */

const ORDER = ["", "light", "dark"];
const WORDS = { "": "Theme: as the system", light: "Theme: light", dark: "Theme: dark" };

/** Colour a custom property resolves to now, for drawing on a canvas. @param {string} name @returns {string} */
export function colour(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  probe.hidden = true;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

/** Calls `redraw` after each change of theme, the system's included. @param {() => void} redraw */
export function onTheme(redraw) {
  document.addEventListener("theme", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

export function installTheme() {
  const button = document.querySelector("[data-theme-toggle]");
  if (!(button instanceof HTMLElement)) return;
  const root = document.documentElement;
  const say = () => {
    const word = WORDS[root.dataset.theme ?? ""];
    button.title = word;
    button.setAttribute("aria-label", word);
  };
  say();
  button.addEventListener("click", () => {
    const next = ORDER[(ORDER.indexOf(root.dataset.theme ?? "") + 1) % ORDER.length];
    if (next) root.dataset.theme = next;
    else delete root.dataset.theme;
    say();
    document.dispatchEvent(new Event("theme"));
    const token = JSON.parse(document.body.getAttribute("hx-headers") ?? "{}")["X-CSRFToken"] ?? "";
    fetch(button.dataset.address ?? "", {
      method: "POST",
      headers: { "X-CSRFToken": token, "Content-Type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({ theme: next }),
    }).catch(() => undefined); // offline: it holds for this page
  });
}
