"use strict";
// Shows the lists of one user: text of the data is only ever written as text.
const data = JSON.parse(document.getElementById("people").textContent);
const places = new Map(data.people.map((person, place) => [person.id, place]));
const dots = [...document.querySelectorAll("#strip a")];
const [segment, relevant, search, shown, panel] = ["segment", "relevant", "search", "shown", "user"]
  .map((name) => document.getElementById(`explore-${name}`));

let current = 0;
let kept = data.people;

function element(tag, text, kind, ...parts) {
  const made = document.createElement(tag);
  made.append(text, ...parts);
  if (kind) made.className = kind;
  return made;
}

function titles(numbers) { // each isolated: a name from right to left moves no other
  return numbers.flatMap((number) => [" · ", element("bdi", data.titles[number])]).slice(1);
}

function cell([number, look, mark]) {
  const made = element("td", "", look, element("bdi", data.titles[number]));
  if (look === "hit") made.append(element("span", " relevant,", "hidden"));
  if (mark) {
    const seen = element("span", mark, "mark");
    seen.ariaHidden = "true";
    const heard = mark.replace("★", "grade ").replace("▲", "up ").replace("▼", "down ");
    made.append(" ", seen, element("span", ` ${heard}`, "hidden"));
  }
  return made;
}

function table(person) {
  const made = element("table", "", "lists");
  made.append(element("caption", `${data.first} `, "", element("bdi", person.id)));
  const head = made.createTHead().insertRow();
  for (const name of [element("span", "rank", "hidden"), ...data.systems.map((system) => element("bdi", system))]) {
    const title = element("th", "", "", name);
    title.scope = "col";
    head.append(title);
  }
  const body = made.createTBody();
  const [before, after] = person.lists;
  for (let rank = 0; rank < Math.max(before.length, after.length); rank += 1) {
    const row = body.insertRow();
    const name = element("th", String(rank + 1));
    name.scope = "row";
    row.append(name, ...[before, after].map(
      (list) => (list[rank] ? cell(list[rank]) : element("td", "–"))));
  }
  return made;
}

function stop() { // the dot that the tab key reaches: the user's, or the first one kept
  const here = kept.includes(data.people[current]) ? current : data.people.indexOf(kept[0]);
  dots.forEach((dot, place) => dot.setAttribute("tabindex", place === here ? "0" : "-1"));
}

function show(place) {
  current = place;
  const person = data.people[place];
  dots.forEach((dot, other) => {
    if (other === place) dot.setAttribute("aria-current", "true");
    else dot.removeAttribute("aria-current");
  });
  stop();
  const head = element("h3", `${data.user} `, "", element("bdi", person.id), ": ",
    element("span", `${person.kind} `, "hidden"), element("span", person.head, person.kind));
  panel.replaceChildren(head, element("p", person.note, "soft"));
  if (person.history.length) {
    panel.append(element("p", `${data.before} `, "", ...titles(person.history)));
  }
  panel.append(element("div", "", "wide", table(person)));
  if (person.missed.length) {
    panel.append(element("p", `${data.missed} `, "", ...titles(person.missed), person.more));
  }
}

function fits(person) {
  const [least, most] = relevant.value ? relevant.value.split(" ").map(Number) : [0, Infinity];
  const words = search.value.trim().toLowerCase();
  const listed = person.lists.flat().map(([number]) => number);
  const items = [...listed, ...person.missed, ...person.history];
  const text = () => [person.id, ...items.map((number) => data.titles[number])].join("\n")
    .toLowerCase();
  return (!segment || !segment.value || person.segments.includes(segment.value))
    && person.relevant >= least && person.relevant <= most
    && (!words || text().includes(words));
}

function filter() {
  kept = data.people.filter(fits);
  const ids = new Set(kept);
  data.people.forEach((person, place) => dots[place].classList.toggle("off", !ids.has(person)));
  if (!kept.length) panel.replaceChildren();
  else show(ids.has(data.people[current]) ? current : data.people.indexOf(kept[0]));
  shown.textContent = `${kept.length} of ${data.people.length}`;
}

function chosen() {
  try {
    return places.get(decodeURIComponent(location.hash.replace(/^#user=/, "")));
  } catch {
    return undefined; // a fragment that is no text
  }
}

function choose() {
  const place = location.hash.startsWith("#user=") ? chosen() : undefined;
  if (place !== undefined) visit(place);
}

function visit(place) {
  show(place);
  document.getElementById("explore").scrollIntoView({ block: "nearest" });
}

function step(by) {
  if (!kept.length) return;
  const here = kept.indexOf(data.people[current]);
  const next = here < 0 ? 0 : (here + by + kept.length) % kept.length;
  visit(places.get(kept[next].id));
  if (document.activeElement.closest("#strip")) dots[current].focus();
  // without a jump to the same user's lists below
  history.replaceState(null, "", `#user=${encodeURIComponent(kept[next].id)}`);
}

for (const field of [segment, relevant, search]) {
  if (field) field.addEventListener("input", filter);
}
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
