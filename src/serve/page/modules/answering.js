// The view of a text-to-text model: a source, and the answer as it is written.
import {stream} from "/modules/api.js";
import {announce, byId, clearError, element, enable, keys, showError, usable} from "/modules/elements.js";
import {counted, duration} from "/modules/numbers.js";

export class AnsweringView {
  constructor(model) {
    this.model = model;
    this.stopping = null;
  }

  start() {
    byId("ask").addEventListener("submit", (event) => {
      event.preventDefault();
      this.answer(byId("input").value);
    });
    keys(byId("ask"), byId("input"), byId("stop"));
    byId("stop").addEventListener("click", () => usable(byId("stop")) && this.stopping?.abort());
  }

  leave() {
    this.stopping?.abort();
  }

  async answer(source) {
    if (this.stopping) return;
    this.stopping = new AbortController();
    const place = byId("answer");
    const node = document.createTextNode("");
    clearError(byId("error"));
    enable(byId("stop"), true);
    place.replaceChildren(element("span", {class: "model"}, node));
    place.classList.add("writing");
    const began = performance.now();
    let tokens = 0;
    try {
      const request = {model: this.model.id, prompt: source, max_tokens: 512};
      for await (const chunk of stream("/v1/completions", request, this.stopping.signal)) {
        if (chunk.usage) tokens = chunk.usage.completion_tokens;
        node.appendData(chunk.choices?.[0]?.text ?? "");
      }
      byId("note").textContent = `${counted(tokens, "token")} in ${duration(performance.now() - began)}.`;
      announce(`Answer: ${node.data.slice(0, 400)}`);
    } catch (error) {
      showError(byId("error"), error);
    } finally {
      this.stopping = null;
      place.classList.remove("writing");
      if (byId("stop")) enable(byId("stop"), false);
    }
  }
}
