// A diary: entries that stay on this device, in this browser, until all of them are blurred together,
// once. The mean of what each entry would send reaches no further than one entry does
// (`blurfit.theory.coded`, Lemma H), so the noise and the message are those of one.

import { erase, keep as keepIn, listIn } from "./bytes.js";
import { t } from "./language.js";
import { h, show } from "./page.js";
import { answerOf, titleOf } from "./texts.js";

const keyOf = (fingerprint) => `blurfit:diary:${fingerprint}`;

export const entriesOf = (fingerprint) => listIn("localStorage", keyOf(fingerprint));

/** Keep one more entry; throws where this browser keeps nothing. */
export function addEntry(fingerprint, record) {
  keep(fingerprint, [...entriesOf(fingerprint), record]);
}

export const eraseDiary = (fingerprint) => erase("localStorage", keyOf(fingerprint));

function keep(fingerprint, entries) {
  if (!keepIn("localStorage", keyOf(fingerprint), JSON.stringify(entries))) throw new Error(t("noStorage"));
}

/** Into #diary: what is kept, a way to remove each, and to finish. */
export function showDiary(fingerprint, columns, finish) {
  const entries = entriesOf(fingerprint);
  const remove = (place) => {
    keep(fingerprint, entriesOf(fingerprint).filter((_, i) => i !== place));
    showDiary(fingerprint, columns, finish);
  };
  const inWords = (record) =>
    columns.map((one) => `${titleOf(one)}: ${answerOf(one, record[one.name])}`).join(", ");
  const done = h("button", { type: "button", click: () => finish(entriesOf(fingerprint)) }, t("diary.finish"));
  show("diary",
    h("h2", t("diary.title")),
    h("p", t(entries.length === 1 ? "diary.one" : "diary.kept", { count: entries.length })),
    h("ol.diary",
      entries.map((record, place) =>
        h("li",
          `${inWords(record)} `,
          h("button.quiet", { type: "button", click: () => remove(place) }, t("diary.remove")),
        ),
      ),
    ),
    h("p.hint", t("diary.how")),
    entries.length > 0 ? h("div.buttons", done) : null,
  );
}
