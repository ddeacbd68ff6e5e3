// /admin, when something closes by itself: shown and chosen in the administrator's own time zone.

import { attempt, dialog } from "./dialogs.js";
import { moment } from "./language.js";
import { ask, h } from "./page.js";

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
