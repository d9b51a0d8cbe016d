/** The lists' socket: says when what a list shows has changed. The page reads its list again; there is nothing to catch up with. */
import WebSocket from "../npm/partysocket/ws.js";
import { own, show } from "./link.js";

const LEAST_MS = 1000;

/** Dispatches `name` on the body whenever runs or hosts have changed, at most once a second. @param {string} name */
export function watchLists(name) {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const socket = new WebSocket(`${scheme}://${location.host}/ws/runs`, [], { minReconnectionDelay: 500, maxReconnectionDelay: 8000 });
  let due = 0;
  let greeted = false;

  function refresh() {
    if (due) return;
    due = window.setTimeout(() => {
      due = 0;
      document.body.dispatchEvent(new Event(name));
    }, LEAST_MS);
  }

  own();
  show("reconnecting", "connecting");
  socket.addEventListener("open", () => (greeted = false));
  socket.addEventListener("close", (event) => {
    if (event.code === 4401) location.reload();
    show(navigator.onLine ? "reconnecting" : "offline");
  });
  socket.addEventListener("message", (event) => {
    const news = JSON.parse(event.data);
    if (news.type !== "changed") return;
    // The first message says that the socket is live: what changed since the page was read is in none of them.
    if (!greeted || news.runs.length || news.hosts.length) refresh();
    greeted = true;
    show("live");
  });
}
