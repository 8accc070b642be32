/** A list of which one item is selected, by mouse, arrows or typing its place. */

import { h } from "./dom.js";
import { Windowed } from "./windowed.js";

let lists = 0;

export class ListBox {
  /** `rowOf(item)` gives the children of a row, `choose(item)` hears of a selection by the user. */
  constructor(label, rowHeight, rowOf, choose) {
    lists += 1;
    this.id = `list${lists}`;
    this.items = [];
    this.selected = -1;
    this.choose = choose;
    this.element = h("div", {
      class: "listbox", role: "listbox", tabindex: "0", "aria-label": label,
      on: { keydown: (event) => this.#key(event) },
    });
    this.window = new Windowed(this.element, rowHeight, (index) => h("div", {
      class: "option", role: "option", id: `${this.id}-${index}`,
      "aria-selected": String(index === this.selected),
      style: { height: `${rowHeight}px` },
      on: { click: () => this.#pick(index) },
    }, rowOf(this.items[index], index)));
  }

  setItems(items) {
    this.items = items;
    this.selected = -1;
    this.window.setCount(items.length);
  }

  /** Select without telling: the page has chosen. */
  select(index) {
    this.selected = index;
    if (index >= 0) {
      this.element.setAttribute("aria-activedescendant", `${this.id}-${index}`);
      this.window.reveal(index, true);
    } else {
      this.element.removeAttribute("aria-activedescendant");
    }
    this.window.refresh();
  }

  #pick(index) {
    if (index < 0 || index >= this.items.length) return;
    this.selected = index;
    this.element.setAttribute("aria-activedescendant", `${this.id}-${index}`);
    this.window.reveal(index);
    this.window.refresh();
    this.choose(this.items[index], index);
  }

  #key(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.window.rowHeight) - 1);
    const step = {
      ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page,
      Home: -this.items.length, End: this.items.length,
    }[event.key];
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const wanted = this.selected + step;
    this.#pick(Math.max(0, Math.min(this.items.length - 1, wanted)));
  }
}
