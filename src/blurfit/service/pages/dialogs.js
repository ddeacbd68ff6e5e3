// Dialogs: to be sure, and to show something.

import { alarm, h, show } from "./page.js";

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
