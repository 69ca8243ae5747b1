// What a page of frames measures in each of them: a look, or its whole text.
const seen = (one) => one.checkVisibility({visibilityProperty: true});
const rgb = (text) => (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
const light = (color) => {
  const part = (one) => (one /= 255) <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4;
  return 0.2126 * part(color[0]) + 0.7152 * part(color[1]) + 0.0722 * part(color[2]);
};
const contrast = (view, one) => {
  const ink = rgb(one.closest("svg") ? view.getComputedStyle(one).fill : view.getComputedStyle(one).color);
  let box = one, back = [255, 255, 255, 0];
  while (box && !(back[3] === undefined || back[3] > 0.99)) {
    const text = view.getComputedStyle(box).backgroundColor;
    back = rgb(text);
    box = box.parentElement;
  }
  const [more, less] = [light(ink), light(back)].sort((a, b) => b - a);
  return (more + 0.05) / (less + 0.05);
};
const look = (frame) => {
  const view = frame.contentWindow, page = view.document;
  const all = (what) => [...page.querySelectorAll(what)];
  const card = page.querySelector(".card"), strip = card.querySelector("svg");
  const words = [...card.querySelectorAll("h2, p, li, svg text")]
    .filter((one) => !one.closest("svg") || one.tagName === "text").map((one) => one.textContent);
  const leaves = all("body *").filter((one) => seen(one) && [...one.childNodes].some(
    (node) => node.nodeType === 3 && node.textContent.trim()) && !one.closest(".hidden, .skip, script, style, option"));
  const texts = all("svg text").filter(seen);
  return {
    dark: view.matchMedia("(prefers-color-scheme: dark)").matches,
    kind: card.className, text: words.join("\n"), high: card.getBoundingClientRect().height,
    doubts: [...card.querySelectorAll(".doubts li")].map((one) => one.textContent),
    doubtsHigh: card.querySelector(".doubts") ? card.querySelector(".doubts").getBoundingClientRect().height + 8 : 0,
    small: texts.filter((one) => one.getBoundingClientRect().height < 10).map((one) => one.textContent),
    fonts: Math.min(99, ...texts.map((one) => {
      const svg = one.ownerSVGElement, box = svg.viewBox.baseVal;
      const scale = box && box.width ? svg.getBoundingClientRect().width / box.width : 1;
      return parseFloat(view.getComputedStyle(one).fontSize) * scale;
    })),
    wide: all("table").filter(seen).filter((one) => one.getBoundingClientRect().width
      > one.parentElement.getBoundingClientRect().width + 1).map((one) => one.textContent.trim().slice(0, 60)),
    over: page.documentElement.scrollWidth,
    parts: all("section[id], details[id]").map((one) => one.id),
    lists: (page.querySelector("#lists") || page.body.lastElementChild).getBoundingClientRect().top + view.scrollY,
    pale: leaves.map((one) => [contrast(view, one), one.textContent.trim().slice(0, 40)])
      .filter(([ratio]) => ratio < 4.5).map(([ratio, text]) => `${ratio.toFixed(2)} ${text}`),
  };
};
const isDone = () => [...document.querySelectorAll("iframe.doer")]
  .every((frame) => frame.contentDocument.documentElement.hasAttribute("data-said"));
const measure = (tries) => {
  if (!isDone() && tries) return setTimeout(measure, 100, tries - 1);
  const said = {};
  for (const frame of document.querySelectorAll("iframe")) {
    const root = frame.contentDocument.documentElement;
    said[frame.id] = /(light|dark)$/.test(frame.id) ? look(frame) : root.outerHTML;
  }
  const out = document.createElement("pre");
  out.id = "said";
  out.textContent = JSON.stringify(said);
  document.body.append(out);
};
addEventListener("load", () => setTimeout(measure, 500, 100));
