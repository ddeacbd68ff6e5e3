// /glossary: the words that people meet on the other pages, each at an address of its own.

import { t } from "./language.js";
import { h, show } from "./page.js";

const WORDS = [
  "blur", "agreement", "promise", "epsilon", "delta", "enough", "collector", "share", "proof", "group",
  "fingerprint", "receipt", "model", "error", "explained", "shrunk",
];

show("glossary",
  h("dl", WORDS.flatMap((name) => [h("dt", { id: name }, t(`word.${name}`)), h("dd", t(`word.${name}.means`))])),
);
if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
