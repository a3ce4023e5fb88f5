// The sessions that the server holds, each with its size beside what a softmax cache would take.
import {get, post, remove} from "/modules/api.js";
import {announce, bar, byId, clearError, element, showError} from "/modules/elements.js";
import {forget} from "/modules/memory.js";
import {bytes, counted} from "/modules/numbers.js";

const EMPTY = "What is kept of a text to go on with it. A linear model’s state stays as large however long the text; "
  + "a softmax cache grows with it.";

// Two bars on one scale: what is kept here, and what softmax would keep.
export function sizeBars(state, softmax, largest = Math.max(state, softmax)) {
  const row = (label, size, kind) => element("div", {class: "size"},
    element("span", {class: "what"}, label), bar(largest ? size / largest : 0, kind), element("span", {class: "number"},
      bytes(size)));
  return [row("State", state, "ours"), row("Softmax cache", softmax, "softmax")];
}

export class Sessions {
  // `open(session)` shows a session's text; `removed(id)` is told when one is gone.
  constructor({model, open, removed}) {
    Object.assign(this, {model, open, removed, current: null});
  }

  async refresh(current = this.current) {
    this.current = current;
    try {
      const {data} = await get("/v1/sessions");
      if (byId("sessions")) this.show(data.filter((session) => session.model === this.model.id));
    } catch (error) {
      if (byId("sessions")) showError(byId("sessions-error"), error);
    }
  }

  async holds(id) {
    return (await get("/v1/sessions")).data.some((session) => session.id === id);
  }

  show(sessions) {
    const focused = document.activeElement?.dataset?.key;
    const sum = (field) => sessions.reduce((total, session) => total + session[field], 0);
    byId("sessions-total").textContent = sessions.length
      ? `${counted(sessions.length, "session")}: ${bytes(sum("state_bytes"))} here, `
        + `${bytes(sum("softmax_cache_bytes"))} as softmax caches.` : EMPTY;
    const sizes = sessions.flatMap((session) => [session.state_bytes, session.softmax_cache_bytes]);
    const largest = Math.max(1, ...sizes);
    const latest = [...sessions].sort((a, b) => b.last_used - a.last_used || b.created - a.created);
    byId("sessions").replaceChildren(...latest.map((session) => this.row(session, largest)));
    if (focused) document.querySelector(`[data-key="${focused}"]`)?.focus();
  }

  row(session, largest) {
    const {id} = session;
    const current = id === this.current;
    const action = (name, key, act) => element("button", {type: "button", class: "small", "data-key": `${key}.${id}`,
      "aria-label": `${name} ${id}`, onclick: act}, name);
    const act = (request) => async (event) => {
      try {
        clearError(byId("sessions-error"));
        await request(event.currentTarget);
      } catch (error) {
        showError(byId("sessions-error"), error);
      }
    };
    const tail = session.text_tail.replace(/\s+/g, " ").trim().slice(-64);
    return element("li", {class: current ? "session current" : "session"},
      element("button", {type: "button", class: "open", "data-key": `open.${id}`, "aria-current": current && "true",
        onclick: act(() => this.open(session))},
      element("span", {class: "name"}, id), element("span", {class: "number"}, counted(session.tokens, "token")),
      tail ? element("span", {class: "tail"}, `…${tail}`) : null),
      ...sizeBars(session.state_bytes, session.softmax_cache_bytes, largest),
      element("div", {class: "row"},
        session.saved ? element("span", {class: "hint"}, "saved") : null,
        action(session.saved ? "Save again" : "Save", "save", act(() => this.save(id))),
        action("Delete", "delete", act((button) => this.delete(id, button)))));
  }

  async save(id) {
    await post(`/v1/sessions/${id}/save`, {});
    announce(`Saved ${id}.`);
    await this.refresh();
  }

  // The second click does it.
  async delete(id, button) {
    if (!button.classList.contains("sure")) {
      button.classList.add("sure");
      button.textContent = "Delete for good?";
      button.setAttribute("aria-label", `Delete ${id} for good?`);
      button.addEventListener("blur", () => {
        button.classList.remove("sure");
        button.textContent = "Delete";
        button.setAttribute("aria-label", `Delete ${id}`);
      }, {once: true});
      return;
    }
    await remove(`/v1/sessions/${id}`);
    forget(id);
    this.removed(id);
    announce(`Deleted ${id}.`);
    await this.refresh();
    (document.querySelector("#sessions .open") ?? byId("new")).focus();
  }
}

