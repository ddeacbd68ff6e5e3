// What happened to what was sent: on its way, refused, or received, with a receipt to keep.

import { moment, t } from "./language.js";
import { alarmOf, definitions, download, h, show, term } from "./page.js";

export function tell({ attempt, waiting, wait }) {
  const words = waiting ? `sending.${waiting}` : attempt > 1 ? "sending.again" : "sending";
  show("outcome", h("div.note", { id: "sending" }, h("strong", t(words, { seconds: Math.ceil(wait / 1000) }))));
}

const FINAL = ["closed", "date-closed", "conflict", "invalid", "unknown-collection"];

/** The service's refusal: its kind in the reader's language, or its own words. What is refused for good
 * is not offered again. */
export function refused({ problem }, { tryAgain, startAnew }) {
  const isFinal = FINAL.includes(problem.type?.split(":").at(-1));
  const again = h("button", { type: "button", click: tryAgain }, t("tryAgain"));
  const buttons = h("div.buttons", isFinal ? null : again, somebodyElse(startAnew));
  show("outcome", alarmOf(problem, null, buttons));
}

export function receipt(record, fingerprint, { startAnew, takeBack }) {
  const { identifier, digest, at, secret, signatures = [], keys = [], shares } = record;
  const kept = {
    format: "blurfit-receipt",
    version: 1,
    services: shares?.map((one) => one.origin) ?? [location.origin],
    secret,
    parts: [{ start: 0, rows: 1, under: fingerprint, signatures }],
    fingerprint,
    identifier,
    sha256: digest,
    received: at,
  };
  const text = `${JSON.stringify(kept, null, 2)}\n`;
  const save = () => download(`receipt-${identifier.slice(0, 8)}.json`, "application/json", text);
  const button = h("button.quiet", { type: "button" }, t("withdraw"));
  button.addEventListener("click", () => confirm(t("withdraw.sure")) && takeBack(button));
  const heading = h("h2", { tabindex: "-1" }, t("thanks"));
  show("outcome",
    h("div.receipt",
      heading,
      h("p", t("thanks.kept")),
      h("p.hint", t("withdraw.how")),
      definitions([
        [t("received"), moment(at)],
        [t("identifier"), h("code", identifier)],
        [t("digest"), h("code", digest)],
        [term("fingerprint", t("fingerprint")), h("code", fingerprint)],
        ...(keys.length ? [[t("signed"), t(record.isChecked ? "signed.checked" : "signed.unchecked")]] : []),
        ...(shares ?? []).map(({ name, received }) => [t("shareOf", { name }), moment(received)]),
      ]),
      h("div.buttons",
        h("button", { type: "button", click: save }, t("saveReceipt")),
        h("a.button", { href: `/collections/${fingerprint}` }, t("watch")),
        button,
        somebodyElse(startAnew),
      ),
    ),
  );
  heading.focus();
}

function somebodyElse(startAnew) {
  const begin = () => confirm(t("somebodyElse.sure")) && startAnew();
  return h("button.quiet", { type: "button", click: begin }, t("somebodyElse"));
}
