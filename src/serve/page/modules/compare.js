// Two continuations of one text, side by side: the session is forked twice, and both write at the same time.
import {ApiError, remove} from "/modules/api.js";
import {announce, byId, clearError, element, enable, showError, usable} from "/modules/elements.js";
import {forget, remember} from "/modules/memory.js";
import {count, counted, duration} from "/modules/numbers.js";
import {randomSeed} from "/modules/sampling.js";
import {fork, writeOn} from "/modules/session.js";

class Branch {
  constructor(name, settings, keep) {
    const field = (id, label, attributes) => element("div", {},
      element("label", {for: `${id}-${name}`}, label),
      element("input", {id: `${id}-${name}`, type: "number", ...attributes}));
    this.name = name;
    this.settings = settings;
    this.text = null;
    this.answer = element("div", {class: "paper small", role: "region", tabindex: "0",
      "aria-label": `Continuation ${name}`});
    this.note = element("p", {class: "hint note"}, "–");
    this.error = element("p", {class: "error", role: "alert", hidden: true});
    this.keep = element("button", {type: "button", "aria-disabled": "true",
      onclick: () => usable(this.keep) && keep(this)}, `Go on with ${name}`);
    this.element = element("section", {class: "branch", "aria-label": `Continuation ${name}`},
      element("div", {class: "pair"},
        field("temperature", "Temperature", {min: 0, max: 2, step: 0.05, value: settings.temperature}),
        field("seed", "Seed", {min: 0, step: 1, value: settings.seed})),
      this.answer, this.note, this.error, this.keep);
  }

  chosen() {
    const read = (id) => Number(this.element.querySelector(`#${id}-${this.name}`).value);
    return {...this.settings, temperature: read("temperature"), seed: read("seed")};
  }

  async write(from, signal) {
    clearError(this.error);
    enable(this.keep, false);
    this.answer.replaceChildren();
    this.answer.classList.add("writing");
    const node = document.createTextNode("");
    this.answer.append(element("span", {class: "model"}, node));
    try {
      const text = await fork(from);
      this.text = text;
      const start = text.length;
      const measured = await writeOn(text, "", this.chosen(), {signal, onText: (now) => {
        node.data = text.slice(start);
        this.answer.scrollTop = this.answer.scrollHeight;
        this.tell(now);
      }});
      node.data = text.slice(start);
      this.tell(measured);
      remember(text);
      enable(this.keep, true);
    } catch (error) {
      showError(this.error, error);
    } finally {
      this.answer.classList.remove("writing");
    }
  }

  tell({tokens, ms, first}) {
    const seconds = (ms - (first ?? ms)) / 1000;
    const rate = tokens > 1 && seconds > 0 ? `, ${count((tokens - 1) / seconds)} tokens/s` : "";
    this.note.textContent = `${counted(tokens, "token")}${rate}, first after ${duration(first ?? ms)}`;
  }

  async drop() {
    const id = this.text?.session;
    this.text = null;
    if (!id) return;
    forget(id);
    await remove(`/v1/sessions/${id}`).catch(() => {});  // gone already
  }
}

export class Comparison {
  constructor(view) {
    this.view = view;
    this.branches = [];
    byId("compare-again").addEventListener("click", () => view.run((signal) => this.again(signal)));
    byId("compare-close").addEventListener("click", () => view.run(() => this.close()));
  }

  // The same settings twice; what differs is the seed.
  async begin(text, settings, signal) {
    this.text = text;
    const seed = settings.seed ?? randomSeed();
    const defaults = {temperature: 1, ...settings};
    this.branches = [["A", seed], ["B", seed + 1]].map(([name, own]) =>
      new Branch(name, {...defaults, seed: own}, (branch) => this.view.run(() => this.keep(branch))));
    byId("branches").replaceChildren(...this.branches.map((branch) => branch.element));
    byId("compare").hidden = false;
    byId("compare").scrollIntoView({block: "nearest"});
    await this.write(signal);
  }

  async again(signal) {
    if (!this.text.session) throw new ApiError("The session that both began from was deleted.");
    for (const branch of this.branches) await branch.drop();
    await this.write(signal);
  }

  async write(signal) {
    announce("Two continuations are being written.");
    await Promise.all(this.branches.map((branch) => branch.write(this.text, signal)));
    announce("Both continuations are there.");
    await this.view.sessions.refresh(this.text.session);
  }

  async keep(branch) {
    await this.view.show(branch.text);
    byId("note").textContent = `Continuation ${branch.name} goes on; the other one stays among the sessions.`;
    announce(byId("note").textContent);
    byId("prompt").focus();
  }

  async close() {
    const dropped = this.branches;
    this.hide();
    byId("prompt").focus();
    for (const branch of dropped) await branch.drop();
    await this.view.sessions.refresh(this.text.session);
  }

  hide() {
    this.branches = [];
    byId("compare").hidden = true;
  }
}
