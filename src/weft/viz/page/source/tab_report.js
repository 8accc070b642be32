/** Report: the usual questions with their answers, then all that the compiler noted. */

import { answers } from "./answers.js";
import { grouped } from "./data.js";
import { card, h, link, missing } from "./dom.js";
import { format } from "./route.js";

export const title = "Report";

export class ReportTab {
  constructor(model) {
    const rows = answers(model).map(([question, answer, address]) => h("tr", {},
      h("th", { scope: "row" }, question),
      h("td", {}, answer === null ? h("span", { class: "note" }, "not recorded") : answer),
      h("td", {}, address === null ? "" : link(address, "show →"))));
    const named = (name) => (model.kernel.has(name)
      ? link(format({ kernel: name }), name, { class: "name" }) : name);
    const sentence = ({ kernel, text }) => (kernel === null ? text
      : text.startsWith(kernel) ? [named(kernel), text.slice(kernel.length)]
        : [named(kernel), `: ${text}`]);
    const topics = [...grouped(model.report, (row) => row.topic)].map(([topic, items]) => card(
      `${topic} (${items.length})`, h("ul", { class: "report" }, items.map((item) => h("li", {},
        sentence(item))))));
    this.element = h("div", { class: "page-tab scrolls" }, h("div", { class: "cards" },
      card("Questions", h("table", { class: "answers" }, rows)),
      ...(topics.length ? topics : [card("Notes", missing("The compiler noted nothing."))])));
  }

  show() {}
}
