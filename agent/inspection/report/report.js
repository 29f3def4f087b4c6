"use strict";
const list = document.getElementById("list");
const items = [...list.children].map((item, order) => {
  const row = item.firstElementChild;
  return { item, row, order, text: row.textContent.toLowerCase() };
});
const chosen = ["failure", "site", "policy", "run"];
const at = (id) => document.getElementById(id);
const pane = at("episode-pane");
const overview = at("overview-pane");
const viewer = at("viewer");
// In wide windows the list is next to the episode; else above it.
const beside = matchMedia("(min-width: 761px)");
let open = "";

const by = {
  order: (a, b) => a.order - b.order,
  task: (a, b) => a.row.dataset.task.localeCompare(b.row.dataset.task, "en", { numeric: true }),
  outcome: (a, b) => a.row.dataset.outcome.localeCompare(b.row.dataset.outcome),
  progress: (a, b) => a.row.dataset.progress - b.row.dataset.progress,
  steps: (a, b) => b.row.dataset.steps - a.row.dataset.steps,
  seconds: (a, b) => b.row.dataset.seconds - a.row.dataset.seconds,
};

function filter() {
  const words = at("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const outcomes = new Set([...document.querySelectorAll(".outcome:checked")].map((box) => box.value));
  let shown = 0;
  for (const { item, row, text } of items) {
    const fits =
      outcomes.has(row.dataset.outcome) &&
      words.every((word) => text.includes(word)) &&
      chosen.every((name) => !at(`by-${name}`)?.value || at(`by-${name}`).value === row.dataset[name]);
    item.hidden = !fits;
    shown += fits ? 1 : 0;
  }
  at("shown").textContent = `${shown} of ${items.length} episodes`;
}

function sort() {
  const order = by[at("sort").value];
  items.sort((a, b) => order(a, b) || a.order - b.order);
  list.append(...items.map(({ item }) => item));
}

function show() {
  // A report of one episode opens with it; #overview shows the overview.
  const hash = location.hash || (items.length === 1 ? items[0].row.hash : "");
  const [, anchor, step] = /^#(e\d+)(?:\.(\d+))?$/.exec(hash) ?? [];
  const template = anchor ? at(anchor) : null;
  overview.hidden = Boolean(template);
  pane.hidden = !template;
  if (!template) {
    pane.replaceChildren();
    open = "";
  } else if (open !== anchor) {
    pane.replaceChildren(template.content.cloneNode(true));
    open = anchor;
    if (beside.matches || !location.hash) scrollTo(0, 0);
    else at("pane").scrollIntoView();
  }
  for (const { row } of items) {
    if (template && row.hash === `#${anchor}`) {
      row.setAttribute("aria-current", "true");
      row.scrollIntoView({ block: "nearest" });
    } else row.removeAttribute("aria-current");
  }
  const target = step && pane.querySelector(`[data-step="${step}"]`);
  if (target) {
    target.open = true;
    target.scrollIntoView({ block: "start" });
    target.querySelector("summary").focus({ preventScroll: true });
  }
}

// The next key may arrive before the hashchange event, so the pane is updated at once.
function go(hash) {
  location.hash = hash;
  show();
}

function move(by) {
  const seen = items.filter(({ item }) => !item.hidden);
  const here = seen.findIndex(({ row }) => row.hasAttribute("aria-current"));
  const next = seen[here < 0 ? (by > 0 ? 0 : seen.length - 1) : Math.min(Math.max(here + by, 0), seen.length - 1)];
  if (next) go(next.row.hash);
}

function walk(by) {
  const steps = [...pane.querySelectorAll("details.step")];
  const here = steps.findIndex((step) => step.contains(document.activeElement));
  const next = steps[here < 0 ? 0 : Math.min(Math.max(here + by, 0), steps.length - 1)];
  if (next) {
    next.querySelector("summary").focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  }
}

// Shows the picture at full size in a scrollable dialog.
pane.addEventListener("click", (event) => {
  const shot = event.target.closest(".enlarge")?.querySelector(".shot");
  if (!shot) return;
  at("enlarged").replaceChildren(shot.cloneNode(true));
  viewer.showModal();
  viewer.querySelector(".aim")?.scrollIntoView({ block: "center", inline: "center" });
});
viewer.addEventListener("click", () => viewer.close());
viewer.addEventListener("close", () => at("enlarged").replaceChildren());

addEventListener("keydown", (event) => {
  if (viewer.open) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches("input, select");
  if (event.key === "Escape") {
    if (typing) event.target.blur();
    else go("#overview");
  } else if (typing) return;
  else if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "n") walk(1);
  else if (event.key === "p") walk(-1);
  else if (event.key === "o") document.activeElement?.closest("details.step")?.toggleAttribute("open");
  else if (event.key === "/") {
    event.preventDefault();
    at("filter").focus();
  }
});
at("filter").addEventListener("input", filter);
for (const box of document.querySelectorAll(".outcome")) box.addEventListener("change", filter);
for (const name of chosen) at(`by-${name}`)?.addEventListener("change", filter);
at("sort").addEventListener("change", sort);
addEventListener("hashchange", show);
filter();
show();
