// A text that is being written: pieces by whom they are, and marks where the server's session can be found again.
// No elements and no requests here. Offsets count JavaScript's characters, positions count tokens.

export class Text {
  constructor(model) {
    this.model = model;
    this.session = null;   // the name that the server knows it by; null: the server does not have it
    this.tokens = 0;
    this.pieces = [];      // {by: "you" | "model" | "file" | "before", text, name}
    this.marks = [];       // {offset, position}, ascending; what the session held at that offset
  }

  get length() {
    return this.pieces.reduce((sum, piece) => sum + piece.text.length, 0);
  }

  add(by, text, name = undefined) {
    if (!text) return;
    const last = this.pieces.at(-1);
    if (last?.by === by && last.name === name) last.text += text;
    else this.pieces.push({by, text, name});
  }

  mark(position, offset = this.length) {
    this.tokens = position;
    this.marks = this.marks.filter((mark) => mark.offset < offset && mark.position < position);
    this.marks.push({offset, position});
  }

  // Leaves the first `offset` characters.
  cut(offset) {
    let start = 0;
    const kept = [];
    for (const piece of this.pieces) {
      const text = piece.text.slice(0, Math.max(0, offset - start));
      if (text) kept.push({...piece, text});
      start += piece.text.length;
    }
    this.pieces = kept;
    this.marks = this.marks.filter((mark) => mark.offset <= offset);
  }

  slice(from, to = Infinity) {
    let start = 0;
    let cut = "";
    for (const {text} of this.pieces) {
      if (start + text.length > from && start < to) cut += text.slice(Math.max(0, from - start), to - start);
      start += text.length;
    }
    return cut;
  }

  tail(n) {
    return this.slice(Math.max(0, this.length - n));
  }

  // The beginning may be unknown: the session was made elsewhere.
  get known() {
    return this.pieces[0]?.by !== "before";
  }

  copy() {
    const copied = new Text(this.model);
    copied.pieces = this.pieces.map((piece) => ({...piece}));
    copied.marks = [...this.marks];
    copied.tokens = this.tokens;
    return copied;
  }

  // The nearest end of a word at or before the offset, or after it.
  wordEnd(offset, step = 0) {
    const start = Math.max(0, offset - 80);
    const near = this.slice(start, offset + 80);
    let at = offset - start;
    const between = (i) => i <= 0 || i >= near.length || (/\S/u.test(near[i - 1]) && /\s/u.test(near[i]));
    if (step > 0) for (++at; at < near.length && !between(at); ++at);
    else for (at += step; at > 0 && !between(at); --at);
    const found = Math.max(0, start + at);
    const low = this.slice(found, found + 1).charCodeAt(0);  // never between the halves of a character
    return low >= 0xdc00 && low <= 0xdfff ? found - 1 : found;
  }
}

// A name for its session that a person recognises: the first words, and three random characters.
export function sessionName(words) {
  const slug = words.slice(0, 200).normalize("NFKD").replace(/[^A-Za-z0-9]+/g, "-").replace(/^-+|-+$/g, "");
  const short = slug.toLowerCase().slice(0, 18).replace(/-[^-]*$/, (end) => (slug.length > 18 ? "" : end)) || "text";
  const random = crypto.getRandomValues(new Uint32Array(1))[0].toString(36).padStart(7, "0");
  return `${short}-${random.slice(-3)}`;
}

// How what the session holds (its last characters) continues or lacks what is shown: {extra} behind it, or {missing}
// at its end; null when they do not fit. `from` is where the session stood before.
export function compareTails(shown, from, tail) {
  const held = tail.replace(/^\uFFFD+|\uFFFD+$/g, "");
  if (!held) return shown.length === from && from === 0 ? {extra: "", missing: ""} : null;
  for (let end = shown.length; end >= from; --end) {
    const compared = held.slice(-end || held.length);
    if (end > 0 && shown.slice(0, end).endsWith(compared)) return {extra: "", missing: shown.slice(end)};
  }
  for (let extra = 1; extra < held.length; ++extra) {
    if (shown.endsWith(held.slice(0, held.length - extra))) return {extra: held.slice(-extra), missing: ""};
  }
  return null;
}
