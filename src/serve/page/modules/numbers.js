// Numbers as people read them.
const whole = new Intl.NumberFormat("en", {maximumFractionDigits: 0});

export const count = (n) => whole.format(n);
export const counted = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

const three = (n) => (n >= 100 ? whole.format(n) : n >= 10 ? n.toFixed(1) : n.toFixed(2));

export function bytes(n) {
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (n >= size) return `${three(n / size)} ${unit}`;
  }
  return `${count(n)} bytes`;
}

export function duration(ms) {
  if (ms < 1) return "under 1 ms";
  if (ms < 1000) return `${whole.format(ms)} ms`;
  return ms < 60000 ? `${three(ms / 1000)} s` : `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`;
}

export function parameters(n) {
  for (const [unit, size] of [["billion", 1e9], ["million", 1e6]]) if (n >= size) return `${three(n / size)} ${unit}`;
  return count(n);
}

export const percent = (share) => `${(100 * share).toFixed(1)}%`;
