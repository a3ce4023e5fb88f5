// Making and showing elements. Text only ever enters the page as text, never as HTML.

// element("p", {class: "hint", onclick: f, "aria-label": "..."}, "text", child)
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export const byId = (id) => document.getElementById(id);

// A control that cannot be used now keeps its place in the order of focus: aria-disabled instead of disabled.
export function enable(control, usable) {
  if (usable) control.removeAttribute("aria-disabled");
  else control.setAttribute("aria-disabled", "true");
}
export const usable = (control) => control.getAttribute("aria-disabled") !== "true";

// Says it once to those who do not see the page.
export function announce(words) {
  byId("announce").textContent = words;
}

export function showError(place, error) {
  if (error?.name === "AbortError") return;
  place.textContent = error?.message ?? String(error);
  place.hidden = false;
  if (!error?.status && !error?.spoken) console.warn(error);
}

export function clearError(place) {
  place.hidden = true;
  place.textContent = "";
}

// Control and Enter in the field do what the form's button does, Escape anywhere in the view what its stop button does.
export function keys(form, field, stop) {
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  const view = form.closest("#main > *");
  if (stop) view.addEventListener("keydown", (event) => event.key === "Escape" && usable(stop) && stop.click());
}

// A horizontal bar that fills `share` of its width. (Through the style object: the page forbids style attributes.)
export function bar(share, kind = "") {
  const filled = element("span", {class: "filled"});
  filled.style.width = `${Math.min(100, Math.max(0, 100 * share))}%`;
  return element("span", {class: `bar ${kind}`, "aria-hidden": "true"}, filled);
}
