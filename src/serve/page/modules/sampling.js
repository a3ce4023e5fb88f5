// How the next token is chosen: the form's fields as the request wants them.
import {byId} from "/modules/elements.js";

const FIELDS = ["temperature", "top_p", "max_tokens", "seed"];

export function startSampling() {
  for (const field of document.querySelectorAll("#sampling input[type=range]")) {
    const output = document.querySelector(`output[for=${field.id}]`);
    const show = () => { output.textContent = Number(field.value).toFixed(2); };
    field.addEventListener("input", show);
    show();
  }
  byId("sampling").addEventListener("submit", (event) => event.preventDefault());
  byId("sampling").addEventListener("input", () => markWrong(null));
}

// Empty fields are left to the server.
export function sampling() {
  const settings = {};
  for (const name of FIELDS) {
    const value = byId(name).value.trim();
    if (value !== "") settings[name] = Number(value);
  }
  return settings;
}

export const randomSeed = () => crypto.getRandomValues(new Uint32Array(1))[0] % 100000;

// Shows which field an error speaks of.
export function markWrong(name) {
  for (const field of FIELDS) byId(field).toggleAttribute("aria-invalid", false);
  if (FIELDS.includes(name)) byId(name).setAttribute("aria-invalid", "true");
}
