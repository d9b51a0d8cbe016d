/** The lanes of reasoning: finished steps fold to their summary, open ones stream; four lanes or one feed by time. */

const KEPT = 120;
const KEY = "reasoning";

export class Lanes {
  /** @param {HTMLElement} card */
  constructor(card) {
    this.card = card;
    this.board = /** @type {HTMLElement} */ (card.querySelector("[data-lanes]"));
    this.all = this.#feedOfAll();
    this.run = document.getElementById("run")?.dataset.run ?? "";
    this.pending = new Map();
    /** The titles of steps that have begun, by agent and step. @type {Map<string, Map<string, string>>} */
    this.doing = new Map();
    const button = card.querySelector("[data-lanes-mode]");
    button?.addEventListener("click", () => this.#mode(!this.one));
    this.#mode(new URLSearchParams(location.search).get(KEY) === "feed" || (innerWidth < 720 && !new URLSearchParams(location.search).has(KEY)), false);
  }

  /** A step has begun. @param {{agent: string, step: string, text: string, data: {title?: string}}} event */
  begin(event) {
    if (!this.doing.has(event.agent)) this.doing.set(event.agent, new Map());
    this.doing.get(event.agent)?.set(event.step, event.data.title ?? event.text);
    this.#title(event.agent);
  }

  /** A step has ended: its whole message takes the draft's place. @param {any} event */
  end(event) {
    this.drop(event.step);
    const template = /** @type {HTMLTemplateElement} */ (document.getElementById("entry-template"));
    const entry = /** @type {HTMLElement} */ (template.content.firstElementChild?.cloneNode(true));
    entry.dataset.seq = String(event.seq);
    entry.dataset.agent = event.agent;
    const [who, summary, fold] = [...entry.children];
    who.children[0].textContent = name(event.agent);
    who.children[1].textContent = [event.iteration == null ? "" : `it. ${event.iteration}`, took(event.data.usage)].filter(Boolean).join(" · ");
    summary.textContent = event.text;
    const whole = event.data.text ?? "";
    const lines = whole.trim() && whole.trim() !== event.text.trim() ? whole.split("\n").length : 0;
    const model = event.data.usage?.model;
    if (lines || model) {
      const many = lines ? ` · ${lines} line${lines === 1 ? "" : "s"}` : "";
      fold.children[0].textContent = (model ? "prompt, answer" : "all it said") + many;
      fold.setAttribute("hx-get", `/runs/${this.run}/said/${event.seq}/`);
      window.htmx?.process(fold);
    } else fold.remove();
    this.#put(entry);
    if (this.doing.get(event.agent)?.delete(event.step)) this.#title(event.agent);
  }

  /** More text of an open step, from `offset` on. @param {{step: string, agent: string, iteration: number, offset: number, text: string}} message */
  draft(message) {
    const known = this.pending.get(message.step);
    const text = (known?.text ?? "").slice(0, message.offset) + message.text;
    this.pending.set(message.step, { ...message, text });
    if (!this.frame) this.frame = requestAnimationFrame(() => this.#paint());
  }

  /** @param {string} step */
  drop(step) {
    this.pending.delete(step);
    for (const draft of this.card.querySelectorAll("[data-draft]")) if (draft instanceof HTMLElement && draft.dataset.draft === step) draft.remove();
  }

  dropAll() {
    for (const draft of this.card.querySelectorAll("[data-draft]")) draft.remove();
    this.pending.clear();
  }

  get one() {
    return this.board.classList.contains("one");
  }

  #paint() {
    this.frame = 0;
    for (const [step, draft] of this.pending) {
      let article = [...this.card.querySelectorAll("[data-draft]")].find((one) => one instanceof HTMLElement && one.dataset.draft === step);
      if (!article) {
        article = document.createElement("article");
        article.className = "say draft";
        Object.assign(/** @type {HTMLElement} */ (article).dataset, { draft: step, agent: draft.agent });
        article.innerHTML = DRAFT;
        const [who, what] = article.children[0].children;
        who.textContent = name(draft.agent);
        what.textContent = this.#place(draft);
        this.#put(/** @type {HTMLElement} */ (article));
      }
      show(article, draft.text);
      this.#follow(article.closest("[data-feed]"));
    }
  }

  /** @param {HTMLElement} entry */
  #put(entry) {
    const feed = this.one ? this.all : this.#feed(entry.dataset.agent ?? "");
    if (!feed) return;
    feed.querySelector("[data-quiet]")?.remove();
    const open = entry.dataset.draft ? null : feed.querySelector("[data-draft]"); // what still streams stays last
    feed.insertBefore(entry, open);
    while (feed.childElementCount > KEPT) feed.firstElementChild?.remove();
    this.#follow(feed);
  }

  /** @param {Element | null} feed */
  #follow(feed) {
    const box = this.card.querySelector("[data-follow]");
    if (feed && box instanceof HTMLInputElement && box.checked) feed.scrollTop = feed.scrollHeight;
  }

  /** @param {string} agent */
  #feed(agent) {
    return /** @type {HTMLElement | null} */ (this.board.querySelector(`[data-lane="${CSS.escape(agent)}"] [data-feed]`));
  }

  /** Of which iteration and, where several are written, which candidate. @param {{agent: string, step: string, iteration: number}} draft */
  #place(draft) {
    const slot = Number(draft.step.split(".")[1]);
    const several = Number(this.board.dataset.candidates) > 1 && draft.agent === "coder";
    return `it. ${draft.iteration}${several ? ` · candidate ${slot + 1}` : ""}`;
  }

  /** The newest of what an agent is doing, and how much it does at once. @param {string} agent */
  #title(agent) {
    const titles = [...(this.doing.get(agent)?.values() ?? [])];
    const title = (titles.at(-1) ?? "") + (titles.length > 1 ? ` · ${titles.length} at once` : "");
    const lane = this.board.querySelector(`[data-lane="${CSS.escape(agent)}"]`);
    const word = lane?.querySelector("[data-doing]");
    if (word) word.textContent = title;
    lane?.toggleAttribute("data-busy", titles.length > 0);
  }

  #feedOfAll() {
    const lane = document.createElement("section");
    lane.className = "lane";
    lane.dataset.lane = "all";
    lane.innerHTML = '<div class="feed" data-feed tabindex="0" role="region" aria-label="What all agents said"></div>';
    this.board.append(lane);
    return /** @type {HTMLElement} */ (lane.firstElementChild);
  }

  /** Four lanes or one feed; kept in the address. @param {boolean} one @param {boolean} keep */
  #mode(one, keep = true) {
    const entries = [...this.board.querySelectorAll(".say")].sort((a, b) => order(a) - order(b));
    this.board.classList.toggle("one", one);
    for (const entry of entries) (one ? this.all : this.#feed(entry instanceof HTMLElement ? (entry.dataset.agent ?? "") : ""))?.append(entry);
    for (const feed of this.board.querySelectorAll("[data-feed]")) this.#follow(feed);
    const button = this.card.querySelector("[data-lanes-mode]");
    button?.setAttribute("aria-pressed", String(one));
    if (button) button.textContent = one ? "four lanes" : "one feed";
    if (!keep) return;
    const here = new URL(location.href);
    here.searchParams.set(KEY, one ? "feed" : "lanes");
    history.replaceState(null, "", here);
  }
}

const DRAFT =
  '<small class="who"><b></b> <span></span></small><details class="fold think" hidden><summary></summary><p class="pre"></p></details><p class="pre" data-text></p>';
const THOUGHT = /<think(?:ing)?>([\s\S]*?)(?:<\/think(?:ing)?>|$)/g;

/** A draft's text: what the model thinks is folded to how much it is, what it says stands open. @param {Element} article @param {string} text */
function show(article, text) {
  const thoughts = [...text.matchAll(THOUGHT)].map((found) => found[1].trim()).join("\n\n");
  const said = thoughts ? text.replace(THOUGHT, "").trimStart() : text;
  const [, fold, body] = article.children;
  if (fold instanceof HTMLElement) {
    fold.hidden = !thoughts;
    const words = thoughts ? thoughts.split(/\s+/).length : 0;
    write(fold.children[0], `${said ? "thought" : "thinking"} · ${words} words`);
    write(fold.children[1], thoughts);
  }
  write(body, said);
}

/** @param {Element} place @param {string} text */
function write(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

/** Drafts come last. @param {Element} entry */
const order = (entry) => (entry instanceof HTMLElement && entry.dataset.seq ? Number(entry.dataset.seq) : Infinity);

/** @param {string} agent */
const name = (agent) => agent.charAt(0).toUpperCase() + agent.slice(1);

/** What a step took, as the server's own words for it. @param {any} usage */
function took(usage) {
  if (!usage) return "";
  const tokens = (usage.tokens_in ?? 0) + (usage.tokens_out ?? 0);
  const guess = usage.estimated ? "≈ " : "";
  const price = usage.cost_usd == null ? "cost unknown" : guess + (usage.cost_usd === 0 ? "none" : `$${usage.cost_usd.toFixed(usage.cost_usd < 0.01 ? 4 : 2)}`);
  const paid = tokens || usage.model ? `${guess}${count(tokens)} tok · ${price}${guess ? " (estimated)" : ""}` : "";
  return [duration(usage.seconds), paid].filter(Boolean).join(" · ");
}

/** @param {number} value */
const count = (value) => (value < 1000 ? String(value) : `${Number((value / 1000).toPrecision(3))} K`);

/** @param {number} seconds */
function duration(seconds) {
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}
