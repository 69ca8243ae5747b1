"use strict";
// Shows the lists of one user at a time, and finds users by segment, relevant items and words.
const dots = [...document.querySelectorAll("#strip a")];
const lists = [...document.querySelectorAll("#explore-user > article")];
const keys = dots.map((dot) => key(dot.getAttribute("href")));
const names = lists.map((list) => [...list.querySelectorAll("h3 bdi, td bdi, p:not(.soft) bdi")]
  .map((name) => name.textContent).join("\n").toLowerCase());
const [segment, relevant, search, shown] = ["segment", "relevant", "search", "shown"]
  .map((name) => document.getElementById(`explore-${name}`));

let current = 0;
let kept = [...lists.keys()];

function key(fragment) {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return ""; // a fragment that is no text
  }
}

function show(place) { // -1: nobody
  const stop = kept.includes(place) ? place : kept[0]; // the dot that the tab key reaches
  lists.forEach((list, other) => { list.hidden = other !== place; });
  dots.forEach((dot, other) => {
    dot.setAttribute("tabindex", other === stop ? "0" : "-1");
    if (other === place) dot.setAttribute("aria-current", "true");
    else dot.removeAttribute("aria-current");
  });
}

function fits(place) {
  const data = lists[place].dataset;
  const [least, most] = relevant.value ? relevant.value.split(" ").map(Number) : [0, Infinity];
  return (!segment?.value || data.segments.split(" ").includes(`${segment.selectedIndex - 1}`))
    && data.relevant >= least && data.relevant <= most
    && names[place].includes(search.value.trim().toLowerCase());
}

function filter() {
  kept = [...lists.keys()].filter(fits);
  dots.forEach((dot, place) => dot.classList.toggle("off", !kept.includes(place)));
  if (kept.length && !kept.includes(current)) [current] = kept;
  show(kept.length ? current : -1);
  shown.textContent = `${kept.length} of ${lists.length}`;
}

function visit(place) {
  current = place;
  show(place);
  document.getElementById("explore").scrollIntoView({ block: "nearest" });
}

function choose() {
  const place = keys.indexOf(key(location.hash));
  if (place >= 0) visit(place);
}

function step(by) {
  if (!kept.length) return;
  const here = kept.indexOf(current);
  visit(kept[here < 0 ? 0 : (here + by + kept.length) % kept.length]);
  if (document.activeElement.closest("#strip")) dots[current].focus();
  // without a jump to the same user's lists below
  history.replaceState(null, "", dots[current].getAttribute("href"));
}

for (const field of [segment, relevant, search]) field?.addEventListener("input", filter);
document.getElementById("explore-back").addEventListener("click", () => step(-1));
document.getElementById("explore-on").addEventListener("click", () => step(1));
document.addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const here = document.getElementById("explore").contains(document.activeElement);
  const plain = !(event.altKey || event.ctrlKey || event.metaKey || event.shiftKey);
  if (!by || !here || !plain || event.target.matches("input, select")) return;
  event.preventDefault();
  step(by);
});
addEventListener("hashchange", choose);
document.getElementById("explore-fields").hidden = false;
filter();
choose();
