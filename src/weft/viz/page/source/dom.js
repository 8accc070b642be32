/** Elements of HTML and SVG. What a model names is set as text, never parsed as markup. */

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) {
        element.addEventListener(event, listener);
      }
    } else if (name === "style") {
      // through the object model: a style attribute would need 'unsafe-inline'
      for (const [property, text] of Object.entries(value)) {
        element.style.setProperty(property, text);
      }
    } else {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined));
  return element;
}

/** An HTML element: `h("button", {class: "x", on: {click: f}}, "text", child)`. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element, as `h`. */
export function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** A native tooltip of an SVG element. */
export const tip = (text) => s("title", {}, text);

/** What stands where a value is missing: what is missing, and why. */
export function missing(what, why) {
  return h("p", { class: "missing" }, h("b", {}, what), why ? ` ${why}` : "");
}

/** A link into a state of the page. */
export function link(hash, text, attributes = {}) {
  return h("a", { href: hash, ...attributes }, text);
}

/** A row of buttons of which one is on: `choices` are [value, label, tooltip?]. */
export function segmented(label, choices, value, choose) {
  const buttons = choices.map(([choice, text, title]) =>
    h("button", {
      type: "button", title, "aria-pressed": String(choice === value),
      on: { click: () => choose(choice) },
    }, text));
  return h("div", { class: "segmented", role: "group", "aria-label": label }, buttons);
}

/** A bar from 0 to `share` (0 to 1) of its cell, with a text on it. */
export function bar(share, text, kind = "") {
  const width = `${Math.max(0, Math.min(1, share ?? 0)) * 100}%`;
  return h("span", { class: `bar ${kind}` },
    h("span", { class: "bar-fill", style: { width } }), h("span", { class: "bar-text" }, text));
}

const KEPT = 12; // letters of a name's end

/** The name of a kernel in a row, cut in its middle where room is short: its end tells. */
export function kernelName(name) {
  return h("span", { class: "grow name cut", title: name },
    h("span", {}, name.slice(0, -KEPT)), h("span", {}, name.slice(-KEPT)));
}

/** A heading with a body below it. */
export function card(title, ...body) {
  return h("section", { class: "card" }, h("h3", {}, title), ...body);
}
