// The texts that this tab has seen, by the names of their sessions; a reload keeps those that are not too long.
import {Text} from "/modules/text.js";

const PREFIX = "cosformer.text.";
const LONGEST = 300000;  // characters; the browser keeps five million or so
const texts = new Map();

export function remember(text) {
  if (!text.session) return;
  texts.set(text.session, text);
  try {
    if (text.length <= LONGEST) sessionStorage.setItem(PREFIX + text.session, JSON.stringify(text));
  } catch {
    // No room: after a reload only the session's last characters can be shown.
  }
}

// The text of a session as the server describes it, or null where the two do not fit.
export function recall(session) {
  let text = texts.get(session.id);
  if (!text) {
    const stored = sessionStorage.getItem(PREFIX + session.id);
    if (stored) text = Object.assign(new Text(session.model), JSON.parse(stored));
  }
  return text?.tokens === session.tokens && text.model === session.model ? text : null;
}

export function forget(id) {
  texts.delete(id);
  sessionStorage.removeItem(PREFIX + id);
}
