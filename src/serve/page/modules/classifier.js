// The view of a classifier: one text, or the lines of a file, with a bar for each class.
import {ApiError, patiently, post} from "/modules/api.js";
import {announce, bar, byId, clearError, element, enable, keys, showError} from "/modules/elements.js";
import {count, counted, percent} from "/modules/numbers.js";
import {chosenFile, Reading, save} from "/modules/reading.js";

const BATCH = 32;
const SHOWN = 200;   // rows; the saved file has all
const BARS = 12;     // classes of one text

const byProbability = ({probabilities}) => Object.entries(probabilities).sort((a, b) => b[1] - a[1]);

export class ClassifierView {
  constructor(model) {
    this.model = model;
    this.stopping = null;
  }

  start() {
    byId("classify").addEventListener("submit", (event) => {
      event.preventDefault();
      this.run(() => this.one(byId("input").value));
    });
    keys(byId("classify"), byId("input"), byId("stop"));
    byId("stop").addEventListener("click", () => this.stopping?.abort());
    chosenFile(byId("lines"), byId("error"), (content, name) => this.run((signal) => this.all(content, name, signal)));
  }

  leave() {
    this.stopping?.abort();
  }

  async run(task) {
    if (this.stopping) return;
    this.stopping = new AbortController();
    clearError(byId("error"));
    enable(byId("stop"), true);
    try {
      await task(this.stopping.signal);
    } catch (error) {
      showError(byId("error"), error);
    } finally {
      this.stopping = null;
      new Reading().end();
      if (byId("stop")) enable(byId("stop"), false);
    }
  }

  ask(input, signal) {
    return post("/v1/classify", {model: this.model.id, input}, signal);
  }

  async one(text) {
    if (!text.trim()) throw new ApiError("Write a text first.");
    const [answer] = (await this.ask(text)).data;
    const classes = byProbability(answer);
    const rows = classes.slice(0, BARS).map(([label, share], rank) => this.bar(label, share, percent(share), !rank));
    const notes = [];
    if (classes.length > BARS) notes.push(`and ${classes.length - BARS} more classes`);
    if (answer.truncated) notes.push("The text is longer than the model reads; its end was left out.");
    byId("result").replaceChildren(element("h2", {}, answer.label), element("dl", {class: "classes"}, ...rows),
      ...notes.map((note) => element("p", {class: "hint"}, note)));
    announce(`${answer.label}, ${percent(classes[0][1])}`);
  }

  bar(label, share, words, best = false) {
    return element("div", {class: best ? "class best" : "class"}, element("dt", {}, label),
      element("dd", {}, bar(share, "ours"), element("span", {class: "number"}, words)));
  }

  async all(content, name, signal) {
    const lines = content.split(/\r?\n/).filter((line) => line.trim());
    if (!lines.length) throw new ApiError(`${name} has no lines with text.`);
    const answers = [];
    try {
      for (let at = 0; at < lines.length; at += BATCH) {
        const batch = lines.slice(at, at + BATCH);
        const {data} = await patiently(() => this.ask(batch, signal), signal);
        answers.push(...[...data].sort((a, b) => a.index - b.index));
        byId("reading").hidden = lines.length <= BATCH;
        byId("progress").value = answers.length / lines.length;
        byId("reading-note").textContent = `${count(answers.length)} of ${counted(lines.length, "line")}`;
      }
    } finally {
      if (answers.length && byId("result")) this.showLines(lines, answers, name);
    }
  }

  showLines(lines, answers, name) {
    const counts = new Map();
    for (const {label} of answers) counts.set(label, (counts.get(label) ?? 0) + 1);
    const summary = [...counts].sort((a, b) => b[1] - a[1]).slice(0, BARS).map(([label, n]) =>
      this.bar(label, n / answers.length, `${count(n)} (${percent(n / answers.length)})`));
    const lineRows = answers.slice(0, SHOWN).map((answer, i) => {
      const share = answer.probabilities[answer.label];
      return element("tr", {}, element("td", {class: "number"}, count(i + 1)),
        element("td", {class: "line"}, lines[i]),
        element("td", {class: "label"}, answer.label), element("td", {class: "share"}, element("div", {},
          bar(share, "ours"), element("span", {class: "number"}, percent(share)))));
    });
    const head = ["Line", "Text", "Class", "Probability"].map((word) => element("th", {scope: "col"}, word));
    byId("result").replaceChildren(
      element("h2", {}, `${counted(answers.length, "line")} of ${name}`),
      element("dl", {class: "classes"}, ...summary),
      element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "Lines and their classes"},
        element("table", {}, element("thead", {}, element("tr", {}, ...head)),
          element("tbody", {}, ...lineRows))),
      element("div", {class: "row"},
        element("button", {type: "button", onclick: () => save(`${name}.classes.tsv`, this.table(lines, answers))},
          "Save as TSV"),
        answers.length > SHOWN ? element("p", {class: "hint"}, `The first ${SHOWN} are shown.`) : ""));
    announce(`${counted(answers.length, "line")} classified.`);
  }

  table(lines, answers) {
    const classes = Object.keys(answers[0].probabilities);
    const rows = answers.map((answer, i) => [lines[i].replace(/\t/g, " "), answer.label,
      ...classes.map((label) => answer.probabilities[label] ?? "")]);
    return [["text", "class", ...classes], ...rows].map((row) => `${row.join("\t")}\n`).join("");
  }
}
