// What the server does with a text's session: make it, read on, write on, fork, go back to an earlier point.
import {ApiError, get, patiently, post, remove, stream} from "/modules/api.js";
import {compareTails, sessionName, Text} from "/modules/text.js";

const path = (id, action = "") => `/v1/sessions/${encodeURIComponent(id)}${action}`;

// Reads `content` into the session piece by piece, each about half a second long. `done` gets the characters read and
// the session after each. A signal ends it between two pieces, so that text and session stay together.
async function feed(id, content, {signal, done = () => {}, waiting} = {}) {
  let size = 8192;
  for (let at = 0; at < content.length;) {
    signal?.throwIfAborted();
    let end = Math.min(content.length, at + size);
    const last = content.charCodeAt(end - 1);
    if (end < content.length && last >= 0xd800 && last <= 0xdbff) ++end;  // a character stays whole
    const began = performance.now();
    try {
      const piece = content.slice(at, end);
      const session = await patiently(() => post(path(id, "/append"), {content: piece}), signal, waiting);
      done(end, session);
    } catch (error) {
      if (error.status !== 413 || size <= 256) throw error;
      size /= 4;
      continue;
    }
    at = end;
    const ms = performance.now() - began;
    if (ms < 250) size = Math.min(2 * size, 1 << 18);
    if (ms > 1000) size = Math.max(size / 2, 256);
  }
}

// Makes the session where the server has none (any more), and reads the text so far into it.
export async function ensure(text, words, progress = {}) {
  if (text.session) return;
  if (!text.known) throw new ApiError("The server no longer has this session, and its beginning is not known here.");
  const content = text.slice(0);
  const made = await post("/v1/sessions", {model: text.model, id: sessionName(content || words || "text")});
  let tokens = made.tokens;
  try {
    await feed(made.id, content, {...progress, done: (end, session) => {
      tokens = session.tokens;
      progress.done?.(end, session);
    }});
  } catch (error) {
    await remove(path(made.id)).catch(() => {});
    throw error;
  }
  text.marks = [{offset: 0, position: made.tokens}];
  text.tokens = tokens;
  if (content) text.mark(tokens);
  text.session = made.id;
}

// Appends to session and text, and marks the end of each piece.
export async function readOn(text, content, {by, name, ...progress}) {
  let start = 0;
  await feed(text.session, content, {...progress, done: (end, session) => {
    text.add(by, content.slice(start, end), name);
    text.mark(session.tokens);
    start = end;
    progress.done?.(end, session);
  }});
}

// Appends what was typed and lets the model go on. `onText` is called with what has been measured after each chunk. An
// error before anything was written leaves the text as it was; after a stop, text and session are made to agree.
export async function writeOn(text, typed, settings, {signal, onText}) {
  const from = text.length;
  const measured = {tokens: 0, first: null, ms: 0, finish: null, prompt: null, cached: null};
  const began = performance.now();
  const request = {model: text.model, session: text.session, prompt: typed, ...settings};
  let written = false;
  text.add("you", typed);
  try {
    for await (const chunk of stream("/v1/completions", request, signal)) {
      measured.ms = performance.now() - began;
      if (chunk.usage) {
        measured.tokens = chunk.usage.completion_tokens;
        measured.prompt = chunk.usage.prompt_tokens;
        measured.cached = chunk.usage.prompt_tokens_details?.cached_tokens ?? null;
      }
      const choice = chunk.choices?.[0];
      if (!choice) continue;
      measured.finish = choice.finish_reason ?? measured.finish;
      if (choice.finish_reason && !choice.text) continue;
      measured.first ??= measured.ms;
      ++measured.tokens;
      written = true;
      text.add("model", choice.text);
      onText(measured);
    }
  } catch (error) {
    measured.ms = performance.now() - began;
    if (error.name !== "AbortError" && !written) {
      text.cut(from);
      throw error;
    }
    await agree(text, from).catch(() => { text.session = null; });  // then it is read again with the next request
    if (error.name !== "AbortError") throw error;
    measured.finish = "stopped";
    return measured;
  }
  const session = await get(path(text.session));
  const read = session.tokens - measured.tokens;  // where the prompt ended, if a snapshot was taken there
  if (typed && session.snapshots.some(({position}) => position === read)) text.mark(read, from + typed.length);
  text.mark(session.tokens);
  return measured;
}

// After a stop the server may hold a few tokens more than were shown, or none of them: what the session has is shown,
// and what it lacks is appended.
async function agree(text, from) {
  let session = await get(path(text.session));
  for (let tries = 0; tries < 10; ++tries) {
    await new Promise((done) => setTimeout(done, 40));
    const later = await get(path(text.session));
    const still = later.tokens === session.tokens;
    session = later;
    if (still) break;
  }
  const base = Math.max(0, from - 400);
  const found = session.tokens === text.tokens ? {extra: "", missing: text.slice(from)}
    : compareTails(text.slice(base), from - base, session.text_tail);
  if (found?.extra) text.add("model", found.extra);
  if (found?.missing) await feed(text.session, found.missing, {done: (end, later) => { session = later; }});
  text.mark(session.tokens);
}

export async function fork(text) {
  const forked = text.copy();
  const made = await post(path(text.session, "/fork"), {id: sessionName(text.slice(0, 200))});
  forked.session = made.id;
  return forked;
}

// A new session that holds the first `offset` characters: the nearest snapshot before them, and what is between read
// again. The old session stays as it is.
export async function goBack(text, offset, progress = {}) {
  const made = text.copy();
  made.cut(offset);
  if (!text.session) return made;
  const {snapshots} = await get(path(text.session));
  const held = new Set(snapshots.map((snapshot) => snapshot.position)).add(text.tokens);
  const id = sessionName(text.slice(0, 200));
  for (const mark of made.marks.filter((one) => held.has(one.position)).reverse()) {
    try {
      await post(path(text.session, "/fork"), {id, at: mark.position});
    } catch (error) {
      if (error.status !== 400 && error.status !== 404) throw error;
      continue;  // forgotten since: an earlier one
    }
    made.session = id;
    made.marks = made.marks.filter((one) => one.offset <= mark.offset);
    made.tokens = mark.position;
    await feed(id, text.slice(mark.offset, offset), {...progress, done: (end, session) => {
      made.tokens = session.tokens;
      progress.done?.(end, session);
    }});
    if (offset > mark.offset) made.mark(made.tokens);
    return made;
  }
  await ensure(made, "", progress);
  return made;
}

// A session that this page does not know the text of: its last characters are all there is to show.
export async function open(id) {
  const session = await get(path(id)).catch((error) => {
    if (error.status !== 404) throw error;
    return post(path(id, "/restore"), {});
  });
  const text = new Text(session.model);
  text.session = session.id;
  if (session.text_tail) text.pieces.push({by: "before", text: session.text_tail});
  text.mark(session.tokens);
  return text;
}
