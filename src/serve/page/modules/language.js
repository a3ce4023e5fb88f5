// The view of a language model: a text, what to write next, and the sessions.
import {ApiError} from "/modules/api.js";
import {announce, byId, clearError, enable, keys, showError} from "/modules/elements.js";
import {Comparison} from "/modules/compare.js";
import {recall, remember} from "/modules/memory.js";
import {bytes, count, counted, duration} from "/modules/numbers.js";
import {markWrong, sampling, startSampling} from "/modules/sampling.js";
import {ensure, goBack, open, readOn, writeOn} from "/modules/session.js";
import {Sessions, sizeBars} from "/modules/sessions.js";
import {Sheet} from "/modules/sheet.js";
import {Text} from "/modules/text.js";
import {chosenFile, Reading} from "/modules/reading.js";

export class LanguageView {
  constructor(model) {
    this.model = model;
    this.stopping = null;  // the AbortController of what runs
  }

  start() {
    startSampling();
    this.sheet = new Sheet({paper: byId("paper"), slider: byId("point"), button: byId("go-back"),
      note: byId("point-note"), onBack: (offset) => this.run((signal) => this.back(offset, signal))});
    this.sessions = new Sessions({model: this.model, open: (session) => this.openSession(session),
      removed: (id) => { if (this.text.session === id) this.text.session = null; }});
    this.comparison = new Comparison(this);
    this.reading = new Reading();
    byId("compose").addEventListener("submit", (event) => {
      event.preventDefault();
      this.run((signal) => this.generate(signal));
    });
    keys(byId("compose"), byId("prompt"), byId("stop"));
    byId("prompt").addEventListener("input", () => this.showButtons());
    byId("stop").addEventListener("click", () => this.stopping?.abort());
    byId("fork").addEventListener("click", () => this.run((signal) => this.compare(signal)));
    byId("new").addEventListener("click", () => {
      if (this.stopping) return;
      this.show(new Text(this.model.id));
      byId("prompt").focus();
    });
    chosenFile(byId("upload"), byId("error"), (content, name) => {
      if (this.stopping) throw new ApiError("Stop the model first, then add the document.");
      return this.run((signal) => this.upload(content, name, signal));
    });
    this.show(new Text(this.model.id));
    return this.sessions.refresh();
  }

  leave() {
    this.stopping?.abort();
  }

  // Another model's view may have taken the place of this one while something ran.
  get shown() {
    return byId("paper") === this.sheet.paper;
  }

  // One thing at a time: what runs can be stopped, and its errors are told where one writes.
  async run(task) {
    if (this.stopping) return;
    this.stopping = new AbortController();
    clearError(byId("error"));
    markWrong(null);
    this.showButtons();
    try {
      await task(this.stopping.signal);
    } catch (error) {
      if (!this.shown) return;
      showError(byId("error"), error);
      markWrong(error.param);
    } finally {
      this.stopping = null;
      if (this.shown) {
        this.reading.end();
        this.sheet.setWriting(false);
        this.showButtons();
        this.showSizes();
      }
    }
  }

  show(text) {
    this.text = text;
    this.sheet.show(text);
    this.comparison.hide();
    this.showButtons();
    this.showSizes();
    byId("note").textContent = "";
    return this.sessions.refresh(text.session);
  }

  showButtons() {
    const running = this.stopping !== null;
    enable(byId("generate"), !running);
    enable(byId("stop"), running);
    enable(byId("fork"), !running && (this.text.length > 0 || byId("prompt").value !== ""));
    enable(byId("new"), !running);
    byId("generate").textContent = byId("prompt").value || !this.text.length ? "Generate" : "Continue";
  }

  showSizes(tokens = this.text.tokens) {
    byId("length").textContent = counted(tokens, "token");
    const softmax = tokens * (this.model.softmax_cache_bytes_per_token ?? 0);
    byId("sizes").replaceChildren(...sizeBars(this.model.state_bytes ?? softmax, softmax));
  }

  showMeasured(measured, before) {
    const seconds = (measured.ms - (measured.first ?? measured.ms)) / 1000;
    if (measured.tokens > 1 && seconds > 0) {
      byId("rate").textContent = `${count((measured.tokens - 1) / seconds)} tokens/s`;
    }
    if (measured.first !== null) byId("first").textContent = duration(measured.first);
    this.showSizes(before + measured.tokens);
  }

  async generate(signal) {
    const {text} = this;
    const prompt = byId("prompt");
    const typed = prompt.value;
    prompt.value = "";
    this.sheet.setWriting(true);
    announce("The model is writing.");
    const from = text.length + typed.length;
    let measured;
    try {
      await this.makeSession(text, typed, signal);
      const before = text.tokens;
      const writing = writeOn(text, typed, sampling(), {signal, onText: (now) => {
        if (!this.shown) return;
        this.sheet.grow();
        this.showMeasured(now, before);
      }});
      this.sheet.grow();
      measured = await writing;
    } catch (error) {
      if (text.length < from && !prompt.value) prompt.value = typed;  // nothing was written: nothing is lost
      if (error.status === 404) text.session = null;
      throw error;
    } finally {
      if (this.text === text) this.sheet.show(text);
      remember(text);
      await this.sessions.refresh(text.session);
    }
    this.tell(measured, text.slice(from));
  }

  // A session may be gone since: dropped by the server, or with it. The text is here, so it is read again.
  async makeSession(text, words, signal) {
    if (text.session && !(await this.sessions.holds(text.session))) text.session = null;
    await ensure(text, words, {signal, ...this.reading.of(text.length, "this text again")});
  }

  tell(measured, written) {
    if (!this.shown) return;
    const why = {length: "", stop: " The model ended the text.", stopped: " Stopped."}[measured.finish] ?? "";
    const cached = measured.cached && measured.prompt
      ? ` ${count(measured.cached)} of ${count(measured.prompt)} tokens before were in the cache.` : "";
    byId("note").textContent = `${counted(measured.tokens, "token")} in ${duration(measured.ms)}.${why}${cached}`;
    announce(`${counted(measured.tokens, "token")} written.${why} ${written.slice(0, 400)}`);
  }

  async back(offset, signal) {
    const began = performance.now();
    const earlier = await goBack(this.text, offset, {signal, ...this.reading.of(offset, "up to this point")});
    const took = duration(performance.now() - began);
    remember(earlier);
    await this.show(earlier);
    byId("note").textContent = `Went back to character ${count(offset)} in ${took}.`;
    announce(byId("note").textContent);
    byId("prompt").focus();
  }

  async compare(signal) {
    const prompt = byId("prompt");
    const typed = prompt.value;
    if (!this.text.length && !typed) return;
    await this.makeSession(this.text, typed, signal);
    if (typed) await readOn(this.text, typed, {by: "you", signal});
    prompt.value = "";
    this.sheet.show(this.text);
    remember(this.text);
    await this.comparison.begin(this.text, sampling(), signal);
  }

  async upload(content, name, signal) {
    const {text} = this;
    const before = text.tokens;
    const began = performance.now();
    try {
      await this.makeSession(text, name.replace(/\.\w+$/, ""), signal);
      const progress = this.reading.of(content.length, name);
      await readOn(text, content, {by: "file", name, signal, waiting: progress.waiting, done: (end, session) => {
        progress.done(end, session);
        this.showSizes(session.tokens);
      }});
    } finally {
      this.sheet.show(text);
      remember(text);
      await this.sessions.refresh(text.session);
    }
    const tokens = text.tokens - before;
    const ms = performance.now() - began;
    byId("note").textContent = `Read ${name}: ${counted(tokens, "token")} in ${duration(ms)}, `
      + `${count((1000 * tokens) / ms)} tokens/s. Its session takes ${bytes(this.model.state_bytes ?? 0)}. Ask on.`;
    announce(byId("note").textContent);
    byId("prompt").focus();
  }

  async openSession(session) {
    if (this.stopping) return;
    const known = recall(session);
    await this.show(known ?? await open(session.id));
    announce(`Opened ${session.id}, ${counted(session.tokens, "token")}.`);
  }
}
