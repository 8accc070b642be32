/** How each kernel was scheduled: the rule that fitted, those refused, the steps one by one. */

import { compare, counts, folded } from "./diff.js";
import { h, kernelName, link, missing } from "./dom.js";
import { count } from "./format.js";
import { DiffView } from "./lines.js";
import { ListBox } from "./listbox.js";
import { format } from "./route.js";

const ROW = 26;

export class Schedules {
  constructor(model, page) {
    this.model = model;
    this.page = page;
    this.kernels = new ListBox("kernels", ROW, (kernel) => [
      kernelName(kernel.name),
      h("span", { class: "tag" }, kernel.schedule.rule ?? "none"),
    ], (kernel) => page.go({ tab: "passes", schedule: kernel.name }));
    this.kernels.setItems(model.kernels);
    this.steps = new ListBox("steps of the schedule", ROW, (step, index) => [
      h("span", { class: "index" }, String(index + 1)),
      h("code", {
        class: `grow${step.script === null ? " quiet" : ""}`, title: step.text,
      }, step.text),
    ], (step, index) => page.go({
      tab: "passes", schedule: this.kernel.name, step: index + 1,
    }));
    this.diff = new DiffView("what the step changed", "script");
    this.detail = h("div", { class: "detail" });
    this.element = h("div", { class: "split with-wide-list" },
      h("div", { class: "column" }, this.kernels.element), this.detail);
  }

  show(state) {
    const { kernels } = this.model;
    const kernel = this.model.kernel.get(state.schedule)
      ?? kernels.find((item) => item.schedule.steps.length) ?? kernels[0];
    if (!kernel) {
      this.detail.replaceChildren(missing("No kernels were recorded."));
      return;
    }
    const isNew = kernel !== this.kernel;
    this.kernel = kernel;
    this.kernels.select(kernels.indexOf(kernel));
    const { steps } = kernel.schedule;
    const first = steps.findIndex((item) => item.script !== null) + 1;
    const step = Math.max(1, Math.min(steps.length, Number(state.step) || first || 1));
    if (isNew) this.steps.setItems(steps);
    this.#fill(steps, step);
  }

  #fill(steps, step) {
    const { kernel } = this;
    const body = h("div", { class: "split with-steps" });
    this.detail.replaceChildren(
      h("header", { class: "head" }, h("h2", { class: "name" }, kernel.name),
        link(format({ kernel: kernel.name }), "Open the kernel →", { class: "button" })),
      this.#rules(), body);
    if (!steps.length) {
      body.replaceWith(missing("No steps were recorded:",
        "the kernel was written by hand, is in the cache, or runs its loops as they stand."));
      return;
    }
    const view = h("div", { class: "column grow" });
    body.append(h("div", { class: "column" }, this.#stepper(steps, step), this.steps.element),
      view);
    this.steps.select(step - 1);
    this.#fillStep(view, steps, step);
  }

  #rules() {
    const { rule, refused } = this.kernel.schedule;
    return h("div", { class: "rules" },
      h("p", {}, "Rule that fitted: ", rule === null
        ? h("span", { class: "note" }, "not recorded") : h("b", { class: "tag good" }, rule)),
      refused.length ? h("details", { open: refused.length < 4 },
        h("summary", {}, `${count(refused.length, "rule")} refused before`),
        h("table", {}, refused.map((row) => h("tr", {}, h("td", { class: "name" }, row.rule),
          h("td", {}, row.reason)))))
        : h("p", { class: "note" }, "No other rule was asked before."));
  }

  #stepper(steps, step) {
    const go = (wanted) => () => this.page.go({
      tab: "passes", schedule: this.kernel.name, step: wanted,
    });
    return h("div", { class: "toolbar" },
      h("button", { type: "button", disabled: step === 1, on: { click: go(step - 1) } },
        "← back"),
      h("button", { type: "button", disabled: step === steps.length,
        on: { click: go(step + 1) } }, "next →"),
      h("span", { class: "note" }, `step ${step} of ${steps.length}`));
  }

  #fillStep(view, steps, step) {
    const now = this.model.text(steps[step - 1].script);
    const earlier = steps.slice(0, step - 1).map((item) => this.model.text(item.script))
      .filter((text) => text !== null).pop() ?? this.model.text(this.kernel.schedule.start);
    view.append(h("pre", { class: "step" }, steps[step - 1].text));
    if (now === null && earlier === null) {
      view.append(missing("The program after this step was not recorded."));
      return;
    }
    const compared = compare(earlier ?? now, now ?? earlier);
    const { added, removed } = counts(compared);
    view.append(h("p", { class: "note counts" }, now === null ? "The program is as it was." : [
      h("span", { class: "plus" }, `+${added}`), " ",
      h("span", { class: "minus" }, `−${removed}`),
      earlier === null ? "; the program before was not recorded" : ""]),
    this.diff.element);
    this.diff.setLines(compared, added || removed ? folded(compared) : compared);
  }
}
