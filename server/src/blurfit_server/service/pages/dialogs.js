// Dialogs of /admin: to be sure, to show something, and to choose when a survey closes by itself.

import { moment, t } from "./language.js";
import { alarmOf, ask, check, h, labelled, show } from "./page.js";

let made = 0;

export function dialog(title, ...children) {
  const id = `dialog-${++made}`;
  const element = h("dialog", { "aria-labelledby": id }, h("h2", { id, tabindex: "-1" }, title), children);
  element.addEventListener("close", () => element.remove());
  document.body.append(element);
  element.showModal();
  return element;
}

export const notNow = (shown) => h("button", { type: "button", click: () => shown().close() }, t("notNow"));

/** Ask once more before something that cannot be undone, in the words named `what`; `before` stands in
 * front of them. `act` may throw: the page says why. */
export function confirmOnce(what, values, act, before = "") {
  const go = h("button.primary", { type: "button", disabled: true }, t(`${what}.button`));
  const input = ({ target }) => (go.disabled = !target.checked);
  const element = dialog(
    t(what),
    h("p", `${before}${t(`${what}.text`, values)}`),
    check(`sure-${++made}`, t("sure"), { input }),
    h("div.buttons", go, notNow(() => element)),
  );
  go.addEventListener("click", async () => {
    go.disabled = true;
    await attempt(act);
    element.close();
  });
}

export async function attempt(act) {
  try {
    await act();
  } catch (error) {
    show("message", alarmOf(error, t("notDone"))).scrollIntoView();
  }
}

export function tell(title, ...children) {
  const note = h("div.note.strong", { role: "status" }, h("strong", title), children);
  show("message", note).scrollIntoView();
}

// ---- when something closes by itself: shown and chosen in the administrator's own time zone

const ID = "until";

export function dateBox(closes = null, id = ID) {
  const box = { type: "datetime-local", id, name: id, value: asTyped(closes), "aria-describedby": `${id}-hint` };
  return labelled(id, t("until"), t("until.hint"), h("input", box));
}

/** What was chosen, for the service: a moment in UTC, or null. */
export function chosen(id = ID) {
  const { value } = document.getElementById(id);
  return value === "" ? null : new Date(value).toISOString();
}

export function moveDate({ path, closes, token, moved }) {
  const id = "moved-until";
  const set = h("button.primary", { type: "button" }, t("until.set"));
  const buttons = h("div.buttons", set, notNow(() => element));
  const element = dialog(t("until.title"), h("p", t("until.words")), dateBox(closes, id), buttons);
  set.addEventListener("click", async () => {
    const body = JSON.stringify({ until: chosen(id) });
    await attempt(async () => {
      await ask(`${path}/until`, { method: "POST", body, token });
      await moved();
    });
    element.close();
  });
}

/** For a card: “closes January 31, 2027 at 18:00”. */
export function closesInWords({ state, closes }) {
  if (closes === null || closes === undefined) return "";
  const isOpen = ["collecting", "paused", "held"].includes(state);
  return t(isOpen ? "card.closes" : "card.closed", { moment: moment(closes * 1000) });
}

function asTyped(closes) {
  if (closes === null) return "";
  const at = new Date(closes * 1000);
  return new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
