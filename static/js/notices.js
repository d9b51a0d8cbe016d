/** The bell: how many notices are unread, live. The number in the page is right when it is loaded; the socket tells of changes. */
import WebSocket from "../npm/partysocket/ws.js";

/** @param {HTMLElement} bell @param {number} unread */
function show(bell, unread) {
  const count = bell.querySelector("[data-count]");
  const say = document.getElementById("bell-say");
  const words = `${unread} unread notice${unread === 1 ? "" : "s"}`;
  const more = unread > Number(bell.dataset.unread);
  if (count instanceof HTMLElement) {
    count.textContent = unread > 99 ? "99+" : String(unread);
    count.hidden = unread === 0;
  }
  bell.dataset.unread = String(unread);
  bell.setAttribute("aria-label", `Notices: ${unread} unread`);
  if (say && more) say.textContent = words; // what is read elsewhere is no news
}

export function installBell() {
  const bell = document.getElementById("bell");
  if (!bell) return;
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const socket = new WebSocket(`${scheme}://${location.host}/ws/notices`, [], { minReconnectionDelay: 1000, maxReconnectionDelay: 15000 });
  let newest = Number(bell.dataset.newest);
  socket.addEventListener("message", (event) => {
    const news = JSON.parse(event.data);
    if (news.type !== "notices") return;
    show(bell, news.unread);
    if (news.newest > newest) document.body.dispatchEvent(new Event("notices-changed"));
    newest = Math.max(newest, news.newest);
  });
  socket.addEventListener("close", (event) => {
    if (event.code === 4401 || event.code === 4403) socket.close();
  });
}
