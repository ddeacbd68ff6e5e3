// The ledger on the page: what this browser has sent before, what it adds up to, and a warning where
// somebody contributes to the same purpose again.

import { moment, t } from "./language.js";
import * as ledger from "./ledger.js";
import { atMost } from "./numerals.js";
import { h, place, show } from "./page.js";

/** Into #ledger, if there is anything to tell. */
export function showLedger() {
  const all = ledger.entries();
  place("sent").hidden = all.length === 0;
  if (all.length === 0) return;
  place("sentTitle").textContent = t("ledger.title");
  const erase = () => {
    ledger.erase();
    showLedger();
  };
  show("ledger",
    h("ul", all.map((one) => h("li", { dir: "auto" }, entryInWords(one)))),
    h("p", t("ledger.total", { epsilon: bound(ledger.total(all)) })),
    h("p.hint", t("ledger.here")),
    h("button.quiet", { type: "button", click: erase }, t("ledger.erase")),
  );
}

/** A note for whoever has contributed to this purpose before; nothing for others. */
export function again(agreement) {
  const before = ledger.earlier(agreement);
  if (before === null) return null;
  const mine = ledger.about(agreement);
  const values = {
    at: moment(before.at),
    title: before.title,
    epsilon: bound(ledger.total([before, mine])),
    alone: bound(ledger.total([mine])),
  };
  return h("div.note", { id: "again" },
    h("strong", t("ledger.again")),
    h("p", t("ledger.again.detail", values)),
  );
}

function entryInWords({ at, title, organiser, epsilon, delta }) {
  const promise = `ε = ${atMost(epsilon)}, δ = ${atMost(delta)}`;
  const whose = organiser === null ? title : `${title} (${organiser})`;
  return t("ledger.entry", { at: moment(at), title: whose, promise });
}

/** Three digits, rounded up; “∞” where no bound is left. */
const bound = (epsilon) => (Number.isFinite(epsilon) ? atMost(epsilon, 3) : "∞");
