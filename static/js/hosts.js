/** Hosts: read again when the lists' socket says that one of them, or what it does, has changed. */
import WebSocket from "../npm/partysocket/ws.js";
import { own, show } from "./link.js";

const scheme = location.protocol === "https:" ? "wss" : "ws";
const socket = new WebSocket(`${scheme}://${location.host}/ws/runs`, [], { minReconnectionDelay: 500, maxReconnectionDelay: 8000 });
let due = 0;
let opened = 0;

function refresh() {
  if (due) return;
  due = window.setTimeout(() => {
    due = 0;
    document.body.dispatchEvent(new Event("hosts-changed"));
  }, 1000);
}

socket.addEventListener("open", () => {
  own();
  show("live");
  if (opened++) refresh();
});
socket.addEventListener("close", (event) => {
  if (event.code === 4401) location.reload();
  show(navigator.onLine ? "reconnecting" : "offline");
});
socket.addEventListener("message", (event) => {
  const news = JSON.parse(event.data);
  if (news.type === "changed" && (news.runs.length || news.hosts.length)) refresh();
});
