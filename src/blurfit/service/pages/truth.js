// The three things that somebody should know before the first question: who asks, who sees what, and
// what becomes public. In words that follow from the agreement and from nothing else.

import { widthOf } from "./forms.js";
import { choose, language, LANGUAGES, nameOf, number, t, wanted } from "./language.js";
import { h } from "./page.js";
import { attributes, inWords, languagesOf } from "./texts.js";
import {
  countedIn,
  guessInWords,
  guessOfDatabase,
  isShared,
  localInWords,
  modelInShort,
  peopleOf,
  premiseInWords,
} from "./words.js";

/** Rows for #truth. */
export function truth(agreement, mu) {
  return h("dl.short",
    row(t("truth.asks"), asks(agreement.schema)),
    row(t("truth.sees"), sees(agreement, mu)),
    row(t("truth.public"), becomesPublic(agreement)),
  );
}

const row = (what, words) => h("div", h("dt", what), h("dd", words));

function asks({ organiser, purpose, contact }) {
  const by =
    organiser === undefined ? t("asks.nobody") : t("asks.organiser", { organiser: inWords(organiser) });
  const line = (words, text) => h("p", attributes(text), words);
  return [
    line(by, organiser),
    purpose === undefined ? null : line(t("asks.purpose", { purpose: inWords(purpose) }), purpose),
    contact === undefined ? null : line(t("asks.contact", { contact: inWords(contact) }), contact),
  ];
}

function sees(agreement, mu) {
  if (isShared(agreement)) {
    const [first, second] = agreement.databases.map(({ name }) => name);
    return t("sees.two", { first, second });
  }
  const count = number(widthOf(agreement));
  const { words } = localInWords(mu);
  return `${t("sees.one", { count })} ${words} ${guessOfDatabase(mu)}`;
}

function becomesPublic(agreement) {
  const values = {
    quorum: number(peopleOf(agreement)),
    what: countedIn(agreement),
    little: modelInShort(agreement),
  };
  return `${t("public.any", values)} ${guessInWords(agreement)} ${premiseInWords(agreement)}`;
}

/** A list of languages to choose from: the page's own, and those of the survey. */
export function languageChoice(schema) {
  const tags = [...new Set([...LANGUAGES, ...(schema ? languagesOf(schema) : [])])];
  if (tags.length < 2) return [];
  const best = wanted.find((tag) => tags.includes(tag)) ?? language;
  const select = h("select", { id: "language", autocomplete: "off" },
    tags.map((tag) => h("option", { value: tag, lang: tag, selected: tag === best }, nameOf(tag))),
  );
  select.addEventListener("change", () => choose(select.value));
  return [h("label", { for: "language" }, t("language")), select];
}
