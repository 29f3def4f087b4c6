"use strict";
const episodes = [...document.querySelectorAll(".episode")];
const filter = document.getElementById("filter");
const boxes = [...document.querySelectorAll(".outcome")];
function apply() {
  const words = filter.value.toLowerCase();
  const outcomes = new Set(boxes.filter((b) => b.checked).map((b) => b.value));
  let shown = 0;
  for (const episode of episodes) {
    const fits = outcomes.has(episode.dataset.outcome) && episode.textContent.toLowerCase().includes(words);
    episode.hidden = !fits;
    shown += fits ? 1 : 0;
  }
  document.getElementById("shown").textContent = `${shown} of ${episodes.length} episodes`;
}
filter.addEventListener("input", apply);
for (const box of boxes) box.addEventListener("change", apply);
apply();
