// The text as it is shown: who wrote what, streaming at its end, and the point that one can go back to.
import {element, enable, usable} from "/modules/elements.js";
import {count} from "/modules/numbers.js";

const LONGEST = 6000;  // of a longer piece that was not written by the model, the middle is not shown
const ENDS = 900;
const HINT = "Slide, or click into the text, to go back to any earlier point.";

export class Sheet {
  // `onBack(offset)` goes back to that point.
  constructor({paper, slider, button, note, onBack}) {
    Object.assign(this, {paper, slider, button, note, point: null, text: null, writing: false, waiting: false});
    this.starts = new WeakMap();  // text node → offset of its first character
    slider.addEventListener("input", () => this.setPoint(Number(slider.value)));
    slider.addEventListener("keydown", (event) => this.step(event));
    paper.addEventListener("click", (event) => this.clicked(event));
    button.addEventListener("click", () => usable(button) && onBack(this.point));
  }

  show(text) {
    this.text = text;
    this.setPoint(text.length);
    this.paper.scrollTop = this.paper.scrollHeight;
  }

  // While the model writes there is no going back.
  setWriting(writing) {
    this.writing = writing;
    this.paper.classList.toggle("writing", writing);
    if (writing && this.point !== null) this.setPoint(this.text.length);
    else this.showPoint();
  }

  setPoint(offset) {
    const length = this.text.length;
    this.point = offset >= length || this.writing ? null : Math.max(0, offset);
    this.showPoint();
    this.render();
  }

  showPoint() {
    const length = this.text?.length ?? 0;
    const at = this.point ?? length;
    this.slider.max = length;
    this.slider.value = at;
    const words = this.text?.slice(Math.max(0, at - 24), at).replace(/\s+/g, " ").trim() ?? "";
    const place = at === 0 ? "at the beginning" : at === length ? "at the end" : `behind “…${words}”`;
    this.slider.setAttribute("aria-valuetext", `character ${count(at)} of ${count(length)}, ${place}`);
    this.note.textContent = this.point === null ? HINT
      : `Character ${count(at)} of ${count(length)}, ${place}. The longer text stays, as a session of its own.`;
    enable(this.button, this.point !== null);
  }

  // Arrow keys go by words, Page Up and Page Down by what was written at a time.
  step(event) {
    if (!this.text?.length) return;
    const at = this.point ?? this.text.length;
    const marks = this.text.marks.map((mark) => mark.offset);
    const targets = {
      ArrowLeft: () => this.text.wordEnd(at, -1), ArrowDown: () => this.text.wordEnd(at, -1),
      ArrowRight: () => this.text.wordEnd(at, 1), ArrowUp: () => this.text.wordEnd(at, 1),
      PageDown: () => marks.findLast((mark) => mark < at) ?? 0,
      PageUp: () => marks.find((mark) => mark > at) ?? this.text.length,
      Escape: () => this.text.length,
    };
    if (!targets[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    this.setPoint(targets[event.key]());
  }

  clicked(event) {
    if (this.writing || !this.text?.length || !document.getSelection().isCollapsed) return;
    const caret = document.caretPositionFromPoint?.(event.clientX, event.clientY);
    const range = caret ? null : document.caretRangeFromPoint?.(event.clientX, event.clientY);
    const node = caret?.offsetNode ?? range?.startContainer;
    const start = this.starts.get(node);
    if (start === undefined) this.setPoint(this.text.length);
    else this.setPoint(this.text.wordEnd(start + (caret?.offset ?? range.startOffset)));
  }

  // Shows what has been added at the end, once a frame.
  grow() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      const below = this.paper.scrollHeight - this.paper.scrollTop - this.paper.clientHeight;
      const piece = this.text.pieces.at(-1);
      const same = this.shown === piece && this.node?.isConnected && piece.text.length >= this.node.length;
      if (same) this.node.appendData(piece.text.slice(this.node.length));
      else this.render();
      this.slider.max = this.slider.value = this.text.length;
      if (below < 60) this.paper.scrollTop = this.paper.scrollHeight;
    });
  }

  render() {
    const top = this.paper.scrollTop;
    this.paper.replaceChildren();
    let start = 0;
    for (const piece of this.text.pieces) {
      this.renderPiece(piece, start);
      start += piece.text.length;
    }
    if (!start) this.paper.append(element("p", {class: "empty"}, "Nothing is written yet."));
    this.paper.scrollTop = top;
    this.shown = this.text.pieces.at(-1);
  }

  renderPiece(piece, start) {
    const end = start + piece.text.length;
    const shown = (from, to) => {
      const point = this.point ?? Infinity;
      if (from < point && to > point) return [shown(from, point), shown(point, to)];
      this.node = document.createTextNode(piece.text.slice(from - start, to - start));
      this.starts.set(this.node, from);
      this.paper.append(element("span", {class: from >= point ? `${piece.by} after` : piece.by}, this.node));
    };
    const omit = (words) => this.paper.append(element("span", {class: "omitted"}, words));
    if (piece.by === "before") omit("Earlier text is not known here. ");
    if (piece.by === "model" || piece.text.length <= LONGEST) return shown(start, end);
    const left = count(piece.text.length - 2 * ENDS);
    shown(start, start + ENDS);
    omit(` … ${left} more characters of ${piece.name ?? "this"} … `);
    shown(end - ENDS, end);
  }
}
