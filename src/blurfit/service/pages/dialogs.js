// Dialogs: to be sure, to show something, and to choose when a collection closes by itself.

import { moment } from "./language.js";
import { alarm, ask, h, show } from "./page.js";

let made = 0;

/** A dialog with a heading; it is gone when it is closed. */
export function dialog(title, ...children) {
  const id = `dialog-${++made}`;
  const element = h("dialog", { "aria-labelledby": id },
    h("h2", { id, tabindex: "-1" }, title),
    children,
  );
  element.addEventListener("close", () => element.remove());
  document.body.append(element);
  element.showModal();
  return element;
}

/** Ask once more before something that cannot be undone. `act` may throw: the page says why. */
export function confirmOnce({ title, text, sure, button }, act) {
  const id = `sure-${++made}`;
  const box = h("input", { type: "checkbox", id });
  const go = h("button.primary", { type: "button", disabled: true }, button);
  box.addEventListener("input", () => (go.disabled = !box.checked));
  const element = dialog(
    title,
    h("p", text),
    h("div.field.check", box, h("label", { for: id }, sure)),
    h("div.buttons", go, h("button", { type: "button", click: () => element.close() }, "Not now")),
  );
  go.addEventListener("click", async () => {
    go.disabled = true;
    await attempt(act);
    element.close();
  });
  return element;
}

/** Do something, and say why it could not be done. */
export async function attempt(act) {
  try {
    await act();
  } catch (error) {
    show("message", alarm(error.title ?? "This could not be done", error.message)).scrollIntoView();
  }
}

/** Something that went well. */
export function tell(title, ...children) {
  const note = h("div.note.strong", { role: "status" }, h("strong", title), children);
  show("message", note).scrollIntoView();
}

// ---- /admin, when something closes by itself: shown and chosen in the administrator's own time zone.

const ID = "until";

/** A box for a moment, which may stay empty. */
export function dateBox(closes = null, id = ID) {
  return h("div.field",
    h("label", { for: id }, "Closes by itself at"),
    h("span.hint", { id: `${id}-hint` }, "In your time zone. Left empty, it closes when you close it."),
    h("input", { type: "datetime-local", id, name: id, value: asTyped(closes), "aria-describedby": `${id}-hint` }),
  );
}

/** What was chosen, for the service: a moment in UTC, or null. */
export function chosen(id = ID) {
  const { value } = document.getElementById(id);
  return value === "" ? null : new Date(value).toISOString();
}

/** The path under which something is opened, and when it shall close. */
export function opening(path, until, parameters = {}) {
  const query = new URLSearchParams(until === null ? parameters : { ...parameters, until });
  return `${path}?${query}`;
}

/** Let what is open close at another moment. */
export function moveDate({ path, closes, token, moved }) {
  const id = "moved-until";
  const set = h("button.primary", { type: "button" }, "Set the date");
  const element = dialog(
    "When it closes",
    h("p", "From then on nothing is taken, and that cannot be undone. Until then you may move the date."),
    dateBox(closes, id),
    h("div.buttons", set, h("button", { type: "button", click: () => element.close() }, "Not now")),
  );
  set.addEventListener("click", async () => {
    const body = JSON.stringify({ until: chosen(id) });
    await attempt(async () => {
      await ask(`${path}/until`, { method: "POST", body, token });
      await moved();
    });
    element.close();
  });
}

/** For a card: “closes 31 January 2027 at 18:00”. */
export function closesInWords({ state, closes }) {
  if (closes === null || closes === undefined) return "";
  return ["collecting", "paused", "held"].includes(state)
    ? `closes ${moment(closes * 1000)}`
    : `closed ${moment(closes * 1000)}`;
}

function asTyped(closes) {
  if (closes === null) return "";
  const at = new Date(closes * 1000);
  return new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
