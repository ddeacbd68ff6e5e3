// What would leave this device, and what could be read from it, before anything does.

import { beliefs } from "./beliefs.js";
import { t } from "./language.js";
import { number } from "./numerals.js";
import { h, show } from "./page.js";
import { beliefPicture, numbersPicture } from "./picture.js";
import {
  conditionInWords,
  eitherInWords,
  isShared,
  localInWords,
  modelInShort,
  modelInWords,
  proofInWords,
} from "./words.js";

/** Into #preview; `send` gets the buttons, `change` goes back to the answers. */
export function showPreview(agreement, mu, { record, sent, bytes }, { send, change }) {
  const sending = h("button.primary", { type: "button", id: "send" }, t("preview.send"));
  const back = h("button", { type: "button", click: change }, t("preview.change"));
  sending.addEventListener("click", () => send([sending, back]));
  const heading = h("h2", { tabindex: "-1" }, t("preview.label"));
  show("preview",
    heading,
    h("p", t("preview.what")),
    h("div.beliefs", beliefs(agreement, record, sent).map((one) => beliefPicture(one, record))),
    risk(agreement, mu),
    veryNumbers(agreement, sent, bytes),
    h("div.buttons", sending, back),
  );
  heading.focus();
}

function risk(agreement, mu) {
  const shared = isShared(agreement);
  const local = localInWords(mu);
  const strength = shared ? "strong" : local.strength;
  const detail = shared
    ? `${conditionInWords(agreement)} ${t("preview.together")}`
    : t(strength === "strong" ? "preview.hardly" : "preview.trust");
  return h("div", { class: `note ${strength}` },
    h("strong", shared ? eitherInWords(agreement) : local.words),
    h("p", detail),
    agreement.proofs ? h("p", proofInWords(agreement)) : null,
    h("p",
      h("strong", t("preview.model", { little: modelInShort(agreement) })),
      ` ${modelInWords(agreement)}`,
    ),
  );
}

function veryNumbers(agreement, sent, bytes) {
  const counts = { count: sent.numbers.length, bytes: number(bytes.length) };
  return h("details",
    h("summary", t(agreement.proofs ? "preview.numbers.proof" : "preview.numbers", counts)),
    numbersPicture(agreement, sent),
    h("p.hint", t("preview.squares")),
    h("pre", { tabindex: "0", "aria-label": t("preview.leaving") },
      sent.numbers.map((one) => one.toPrecision(6)).join("  "),
    ),
    h("p.hint", t(agreement.proofs ? "preview.besides.proof" : "preview.besides")),
  );
}
