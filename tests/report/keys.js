// Walks the users of a page by keys, filters and a fragment, and keeps what it then says.
const said = [];
const by = (name) => document.getElementById(`explore-${name}`);
const press = (key, more) => document.activeElement.dispatchEvent(
  new KeyboardEvent("keydown", {key, bubbles: true, ...more}));
const head = () => said.push(by("name").textContent);
const set = (name, value) => {
  by(name).value = value;
  by(name).dispatchEvent(new Event("input"));
  said.push(by("shown").textContent);
};
const stops = () => [...by("list").querySelectorAll("button")]
  .filter((one) => one.tabIndex === 0).map((one) => one.querySelector(".name").textContent);
const wait = () => new Promise((done) => setTimeout(done, 50));
addEventListener("load", async () => {
  await wait(); // a browser looks for the fragment once more at the end of loading
  const entries = history.length;
  head();
  press("ArrowDown"); // the focus is elsewhere
  by("list").querySelector("button").focus();
  press("ArrowDown", {altKey: true}); // a key of the browser
  press("ArrowDown"); head();
  press("ArrowDown"); head();
  set("segment", "country: SE"); head();
  set("segment", "all");
  set("search", "film 7"); said.push(stops());
  set("search", "nothing has this");
  said.push(by("user").checkVisibility(), history.length - entries);
  set("search", "");
  set("order", "Gained most"); head();
  set("order", "Lost most"); head();
  location.hash = "#user=USER";
  await wait(); head();
  said.push(location.hash, parseFloat(by("mark").getAttribute("x")));
  const targets = "#lists :is(a, button, select, input, summary)";
  const small = [...document.querySelectorAll(targets)]
    .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 24);
  said.push(small.length);
  document.documentElement.setAttribute("data-said", JSON.stringify(said));
});
