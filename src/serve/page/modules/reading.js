// Files: what was chosen, as text, and how far the reading of something long has come.
import {ApiError} from "/modules/api.js";
import {byId, element, showError} from "/modules/elements.js";
import {count, duration} from "/modules/numbers.js";

// `use(content, name)` gets each file that is chosen in `input`; one that is no text is refused at `errors`.
export function chosenFile(input, errors, use) {
  input.addEventListener("change", async () => {
    const file = input.files[0];
    input.value = "";  // the same file may be chosen again
    if (!file) return;
    try {
      const content = new TextDecoder("utf-8", {fatal: true}).decode(await file.arrayBuffer());
      if (!content) throw new ApiError(`${file.name} is empty.`);
      await use(content, file.name);
    } catch (error) {
      showError(errors, error instanceof TypeError ? new ApiError(`${file.name} is not a text in UTF-8.`) : error);
    }
  });
}

// The progress that is shown while something is read; short things are read without it.
export class Reading {
  of(whole, name) {
    const began = performance.now();
    let first = null;
    return {
      done: (end, session) => {
        first ??= session.tokens;
        const ms = performance.now() - began;
        if (end >= whole || (ms < 300 && byId("reading").hidden)) return this.end();
        byId("reading").hidden = false;
        byId("progress").value = end / whole;
        const left = (ms / end) * (whole - end);
        byId("reading-note").textContent = `${count(end)} of ${count(whole)} characters of ${name}, `
          + `${count(session.tokens)} tokens; about ${duration(left)} left.`;
      },
      waiting: (seconds) => {
        byId("reading").hidden = false;
        byId("reading-note").textContent = `The server is busy; it goes on in ${seconds} s.`;
      },
    };
  }

  end() {
    if (byId("reading")) byId("reading").hidden = true;
  }
}

// A file that the browser saves.
export function save(name, content) {
  const url = URL.createObjectURL(new Blob([content], {type: "text/plain"}));
  element("a", {href: url, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
