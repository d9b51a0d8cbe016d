/** The bell: how many notices are unread, live. The number in the page is right when it is loaded; the socket tells of changes. */
import WebSocket from "../npm/partysocket/ws.js";

/** @param {HTMLElement} bell @param {number} unread */
function show(bell, unread) {
  bell.dataset.unread = String(unread);
  const count = bell.querySelector("[data-count]");
  const say = bell.querySelector("[data-say]");
  if (count instanceof HTMLElement) {
    count.textContent = unread > 99 ? "99+" : String(unread);
    count.hidden = unread === 0;
  }
  if (say) say.textContent = `${unread} unread notice${unread === 1 ? "" : "s"}`;
}

export function installBell() {
  const bell = document.getElementById("bell");
  if (!bell) return;
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const socket = new WebSocket(`${scheme}://${location.host}/ws/notices`, [], { minReconnectionDelay: 1000, maxReconnectionDelay: 15000 });
  let newest = -1;
  socket.addEventListener("message", (event) => {
    const news = JSON.parse(event.data);
    if (news.type !== "notices") return;
    show(bell, news.unread);
    if (newest >= 0 && news.newest > newest) document.body.dispatchEvent(new Event("notices-changed"));
    newest = Math.max(newest, news.newest);
  });
  socket.addEventListener("close", (event) => {
    if (event.code === 4401 || event.code === 4403) socket.close();
  });
}
