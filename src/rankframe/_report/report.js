"use strict";
// Lists users in an order, filtered and searched, and shows the two lists of one of them.
const [order, segment, search, shown, list, article, mark, data] =
  ["order", "segment", "search", "shown", "list", "user", "mark", "data"].map(part);
const { people, titles, orders, heard } = JSON.parse(data.textContent);
const entries = people.map(entry);
const words = people.map((one) => [one.name, decodeURIComponent(one.key.slice(5)),
  ...one.rows.flat().map(([title]) => titles[title] ?? ""),
  ...[...one.history, ...one.missed].map((title) => titles[title]),
].join("\n").toLowerCase());
let current = -1; // nobody

function part(name) {
  return document.getElementById(`explore-${name}`);
}

function element(tag, kind, ...children) {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  made.append(...children);
  return made;
}

// Isolates names, whose direction moves no text beside them, and writes words for signs.
function marked(text) {
  return text.split(/(\ue000[^\ue001]*\ue001|[★▲▼→] ?)/).flatMap((piece, place) => {
    if (place % 2 === 0) return [piece];
    if (piece[0] === "\ue000") return [element("bdi", "", piece.slice(1, -1))];
    const sign = element("span", "", piece);
    sign.setAttribute("aria-hidden", "true");
    return [sign, element("span", "hidden", heard[piece] ?? "")];
  });
}

function change(one, text) {
  return [element("span", "hidden", `${one.kind} `), element("span", one.kind, ...marked(text))];
}

function entry(one, place) {
  const names = one.segments.map((at) => `\ue000${segment.options[at + 1].textContent}\ue001`);
  const below = [one.values, one.unjudged, ...names].filter(Boolean).join(" · ");
  const made = element("button", "", element("span", "name", ...marked(one.name)),
    ...change(one, one.change), element("small", "", ...marked(below)));
  made.type = "button";
  made.addEventListener("click", () => visit(place));
  return element("li", "", made);
}

function row(cells, place) {
  const rank = element("th", "", `${place + 1}`);
  rank.scope = "row";
  return element("tr", "", rank, ...cells.map(([title, moved = "", look = ""]) => (
    title === undefined ? element("td", "", "–") : element("td", look,
      element("bdi", "", titles[title]), " ",
      element("span", "mark", element("span", "hidden", look === "hit" ? "relevant, " : ""),
        ...marked(moved))))));
}

function fill(name, items, more = "") {
  const names = items.flatMap((title, place) => [place ? " · " : "", element("bdi", "", titles[title])]);
  part(name).replaceChildren(...names, more);
  part(name).parentElement.hidden = !items.length;
}

function show(place) { // -1: nobody
  current = place;
  const one = people[place];
  article.hidden = !one;
  mark.setAttribute("display", one ? "inline" : "none");
  entries.forEach(({ firstChild }, other) => {
    firstChild.tabIndex = other === place ? 0 : -1;
    firstChild.setAttribute("aria-current", `${other === place}`);
  });
  if (!one) return;
  mark.setAttribute("x", `${one.place}%`);
  part("name").replaceChildren(...marked(`${one.name}: `), ...change(one, `${one.values} (${one.change})`));
  part("note").replaceChildren(...marked([one.note, one.unjudged].filter(Boolean).join(" · ")));
  part("rows").replaceChildren(...one.rows.map(row));
  fill("history", one.history);
  fill("missed", one.missed, one.more ? ` and ${one.more} more` : "");
}

function visit(place) {
  show(place);
  entries[place].scrollIntoView({ block: "nearest" });
  history.replaceState(null, "", `#${people[place].key}`);
}

function filter(first) {
  const wanted = search.value.trim().toLowerCase();
  const kept = orders[order.selectedIndex].filter((place) => words[place].includes(wanted)
    && (!segment?.selectedIndex || people[place].segments.includes(segment.selectedIndex - 1)));
  list.replaceChildren(...kept.map((place) => entries[place]));
  shown.textContent = `${kept.length} of ${people.length}`;
  show(!first && kept.includes(current) ? current : kept[0] ?? -1);
}

function choose() {
  const place = people.findIndex((one) => `#${one.key}` === location.hash);
  if (place < 0) return;
  search.value = "";
  if (segment) segment.selectedIndex = 0;
  filter();
  visit(place);
  article.scrollIntoView({ block: "nearest" });
}

for (const field of [segment, search]) field?.addEventListener("input", () => filter());
order.addEventListener("input", () => filter(true));
list.addEventListener("keydown", (event) => {
  const way = { ArrowUp: "previousSibling", ArrowDown: "nextSibling" }[event.key];
  if (!way || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const next = event.target.closest("li")[way];
  if (!next) return;
  visit(entries.indexOf(next));
  next.firstChild.focus();
});
addEventListener("hashchange", choose);
document.getElementById("explore").hidden = false;
filter(true);
choose();
