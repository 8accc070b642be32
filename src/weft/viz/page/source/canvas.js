/** A drawing that one moves by dragging, wheel, buttons or keys. */

import { select } from "d3-selection";
import { zoom, zoomIdentity } from "d3-zoom";
import { h, s } from "./dom.js";

const STEP = 60; // pixels an arrow key moves

export class Canvas {
  constructor(label) {
    this.content = s("g");
    this.svg = s("svg", { class: "canvas", tabindex: "0", role: "group", "aria-label": label },
      this.content);
    this.size = { width: 1, height: 1 };
    this.first = { x: 0, y: 0 };
    this.zoom = zoom().scaleExtent([0.05, 4]).on("zoom", (event) => {
      this.content.setAttribute("transform", String(event.transform));
      this.transform = event.transform;
    });
    this.selection = select(this.svg).call(this.zoom).on("dblclick.zoom", null);
    this.transform = zoomIdentity;
    this.svg.addEventListener("keydown", (event) => this.#key(event));
    const button = (text, title, act) => h("button", {
      type: "button", title, "aria-label": title, on: { click: act },
    }, text);
    this.element = h("div", { class: "drawing" }, this.svg,
      h("div", { class: "zoom-buttons" },
        button("+", "Larger (+)", () => this.scale(1.3)),
        button("−", "Smaller (−)", () => this.scale(1 / 1.3)),
        button("⤢", "All of it (0)", () => this.fit())));
  }

  /** What was drawn in `content` is a picture of that size, which one reads from `first` on. */
  setSize(width, height, first) {
    this.size = { width, height };
    this.first = first ?? { x: width / 2, y: 0 };
  }

  scale(factor) {
    this.selection.call(this.zoom.scaleBy, factor);
  }

  #moveTo(scale, x, y) {
    this.selection.call(this.zoom.transform, zoomIdentity.translate(x, y).scale(scale));
  }

  /** The whole picture. */
  fit() {
    const { clientWidth, clientHeight } = this.svg;
    const { width, height } = this.size;
    const scale = Math.min(1.25, (clientWidth - 32) / width, (clientHeight - 32) / height);
    this.#moveTo(Math.max(scale, 0.02), (clientWidth - width * scale) / 2,
      (clientHeight - height * scale) / 2);
  }

  /** The beginning, as large as one can read it. */
  begin() {
    const { clientWidth, clientHeight } = this.svg;
    const { width, height } = this.size;
    const whole = Math.min((clientWidth - 32) / width, (clientHeight - 32) / height);
    if (whole >= 0.6) {
      this.fit();
      return;
    }
    const scale = Math.min(1, Math.max(0.6, (clientWidth - 32) / width));
    const fits = width * scale <= clientWidth;
    const wanted = clientWidth / 2 - this.first.x * scale;
    const x = fits ? Math.max(0, Math.min(clientWidth - width * scale, wanted)) : wanted;
    this.#moveTo(scale, x, 16 - (fits ? 0 : Math.max(0, this.first.y - 60)) * scale);
  }

  /** A point in the middle. */
  centre(x, y) {
    const scale = Math.max(0.6, this.transform.k);
    const { clientWidth, clientHeight } = this.svg;
    this.#moveTo(scale, clientWidth / 2 - x * scale, clientHeight / 2 - y * scale);
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = {
      ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP],
    };
    if (event.key === "+" || event.key === "=") this.scale(1.3);
    else if (event.key === "-") this.scale(1 / 1.3);
    else if (event.key === "0") this.fit();
    else if (moves[event.key]) {
      const [x, y] = moves[event.key];
      this.selection.call(this.zoom.translateBy, x / this.transform.k, y / this.transform.k);
    } else return;
    event.preventDefault();
  }
}
