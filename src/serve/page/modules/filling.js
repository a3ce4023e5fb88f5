// The view of a masked language model: a text with gaps, and what may stand in them.
import {ApiError, post} from "/modules/api.js";
import {announce, bar, byId, clearError, element, keys, showError} from "/modules/elements.js";
import {percent} from "/modules/numbers.js";

const GAP = "[MASK]";

export class FillingView {
  constructor(model) {
    this.model = model;
  }

  start() {
    const input = byId("input");
    byId("fill").addEventListener("submit", (event) => {
      event.preventDefault();
      this.fill(input.value);
    });
    keys(byId("fill"), input);
    byId("gap").addEventListener("click", () => {
      input.setRangeText(GAP, input.selectionStart, input.selectionEnd, "end");
      input.focus();
    });
  }

  leave() {}

  async fill(text) {
    clearError(byId("error"));
    try {
      if (!text.includes(GAP)) {
        throw new ApiError(`There is no gap in this text; write ${GAP} where one is.`);
      }
      const {data} = await post("/v1/fill", {model: this.model.id, input: text, top: 5});
      this.chosen = data.map((gap) => gap.candidates[0]?.token ?? GAP);
      this.text = text;
      this.gaps = data;
      this.show();
      announce(`Filled: ${byId("filled").textContent}`);
    } catch (error) {
      showError(byId("error"), error);
    }
  }

  // The whole sentence with what was chosen, and for each gap the candidates as buttons.
  show() {
    const parts = this.text.split(GAP).flatMap((part, i) => [part,
      i < this.chosen.length ? element("mark", {}, this.chosen[i].trim()) : ""]);
    const focused = document.activeElement?.dataset?.key;
    byId("result").replaceChildren(
      element("p", {class: "paper filled-text", id: "filled"}, ...parts),
      ...this.gaps.map((gap, i) => element("section", {class: "gap"},
        element("h2", {}, this.gaps.length > 1 ? `Gap ${i + 1}` : "The gap"),
        ...gap.candidates.map(({token, probability}) => element("button",
          {type: "button", class: "candidate", "data-key": `${i}.${token}`,
            "aria-pressed": String(token === this.chosen[i]), onclick: () => this.choose(i, token)},
          element("span", {class: "name"}, token.trim() || "(space)"), bar(probability, "ours"),
          element("span", {class: "number"}, percent(probability)))))));
    if (focused) [...document.querySelectorAll(".candidate")].find((one) => one.dataset.key === focused)?.focus();
  }

  choose(gap, token) {
    this.chosen[gap] = token;
    this.show();
  }
}
