/** A table that its headings sort. */

import { h } from "./dom.js";

const MOST = 500; // rows that are drawn; a button shows the others

/**
 * Columns {name, value(row), text?(row), cell?(row), kind?, title?}; the column at `sorted` begins,
 * largest first.
 */
export class SortedTable {
  constructor(label, columns, sorted) {
    this.columns = columns;
    this.sorted = sorted;
    this.descending = true;
    this.limit = MOST;
    this.rows = [];
    this.head = h("thead");
    this.body = h("tbody");
    this.foot = h("p");
    this.element = h("div", { class: "table-frame" },
      h("table", { class: "sorted", "aria-label": label }, this.head, this.body), this.foot);
  }

  setRows(rows) {
    this.rows = rows;
    this.#draw();
  }

  #sort(index) {
    this.descending = index === this.sorted ? !this.descending
      : typeof this.columns[index].value(this.rows[0]) === "number";
    this.sorted = index;
    this.#draw();
  }

  #ordered() {
    const { value } = this.columns[this.sorted];
    const sign = this.descending ? -1 : 1;
    return [...this.rows].sort((a, b) => {
      const [first, second] = [value(a), value(b)];
      if (first === second) return 0;
      if (first === null) return 1; // what was not measured stands last, either way
      if (second === null) return -1;
      return sign * (first < second ? -1 : 1);
    });
  }

  #draw() {
    const isNumber = (column) => this.rows.some((row) => typeof column.value(row) === "number");
    this.head.replaceChildren(h("tr", {}, this.columns.map((column, index) => h("th", {
      scope: "col", class: isNumber(column) ? "real" : "", title: column.title,
      "aria-sort": index !== this.sorted ? "none" : this.descending ? "descending" : "ascending",
    }, h("button", { type: "button", on: { click: () => this.#sort(index) } }, column.name,
      index === this.sorted ? (this.descending ? " ↓" : " ↑") : "")))));
    const rows = this.#ordered();
    this.body.replaceChildren(...rows.slice(0, this.limit).map((row) => h("tr", {},
      this.columns.map((column) => h("td", {
        class: `${column.kind ?? ""} ${typeof column.value(row) === "number" ? "real" : ""}`,
      }, column.cell ? column.cell(row) : column.text ? column.text(row)
        : String(column.value(row) ?? "–"))))));
    this.foot.replaceChildren(...(rows.length > this.limit ? [h("button", {
      type: "button", on: {
        click: () => {
          this.limit = rows.length;
          this.#draw();
        },
      },
    }, `Show all ${rows.length}`)] : []));
  }
}
