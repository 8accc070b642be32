/** A scroller that has only the rows in its window as elements: texts may have 100,000 lines. */

import { h } from "./dom.js";

const MARGIN = 12; // rows beyond the edges: a short scroll shows no gap

export class Windowed {
  /** `rowOf(index)` gives the element of a row; all rows are `rowHeight` pixels high. */
  constructor(scroller, rowHeight, rowOf) {
    this.scroller = scroller;
    this.rowHeight = rowHeight;
    this.rowOf = rowOf;
    this.count = 0;
    this.first = this.last = -1;
    this.rows = h("div", { class: "rows" });
    this.sizer = h("div", { class: "sizer" }, this.rows);
    scroller.append(this.sizer);
    scroller.addEventListener("scroll", () => this.#draw(false), { passive: true });
    new ResizeObserver(() => this.#draw(false)).observe(scroller);
  }

  setCount(count) {
    this.count = count;
    this.sizer.style.height = `${count * this.rowHeight}px`;
    this.#draw(true);
  }

  /** Draw the visible rows again. */
  refresh() {
    this.#draw(true);
  }

  /** Make a row visible; one that is visible stays where it is. */
  reveal(index, centred = false) {
    const top = index * this.rowHeight;
    const height = this.scroller.clientHeight;
    const at = this.scroller.scrollTop;
    if (top >= at && top + this.rowHeight <= at + height) return;
    this.scroller.scrollTop = centred
      ? top - height / 2
      : top < at ? top : top + this.rowHeight - height;
    this.#draw(false);
  }

  #draw(all) {
    const height = this.scroller.clientHeight || 600;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / this.rowHeight) - MARGIN);
    const visible = Math.ceil(height / this.rowHeight) + 2 * MARGIN;
    const last = Math.min(this.count, first + visible);
    if (!all && first === this.first && last === this.last) return;
    this.first = first;
    this.last = last;
    this.rows.style.transform = `translateY(${first * this.rowHeight}px)`;
    const rows = [];
    for (let index = first; index < last; index += 1) rows.push(this.rowOf(index));
    this.rows.replaceChildren(...rows);
  }
}
