// The page's own words in the reader's language: one file for each, `language.en.js` and so on. Which
// languages a page has stands in its <main data-languages>; without that it is in English. The
// reader's choice is remembered in this tab alone.

const CHOICE = "blurfit:language";
export const LANGUAGES = (document.querySelector("main")?.dataset.languages ?? "en").split(" ");

const base = (tag) => tag.toLowerCase().split("-")[0];

/** What the reader wants to read, best first: her choice, then her browser's. */
export const wanted = [chosen(), ...navigator.languages].filter(Boolean);

/** The language of the page's own words, and how numbers and dates are written in it. */
export const language = wanted.map(base).find((one) => LANGUAGES.includes(one)) ?? "en";
export const locale = wanted.find((tag) => base(tag) === language) ?? language;

const words = (await import(`./language.${language}.js`)).default;
document.documentElement.lang = language;

/** The words of that name, with {values} in their places. */
export function t(name, values = {}) {
  if (!Object.hasOwn(words, name)) throw new Error(`Expected words named “${name}”.`);
  return words[name].replace(/\{(\w+)\}/g, (_, value) => values[value]);
}

/** Whether there are such words. */
export const has = (name) => Object.hasOwn(words, name);

/** From now on, in this tab, that language. */
export function choose(tag) {
  try {
    sessionStorage.setItem(CHOICE, tag);
  } catch {
    // without storage the browser's own language stays
  }
  location.reload();
}

function chosen() {
  try {
    return sessionStorage.getItem(CHOICE);
  } catch {
    return null;
  }
}

const OWN_NAMES = { de: "Deutsch", en: "English" };

/** What a language calls itself. To ask the browser takes it longer than all else that a page does at first. */
export function nameOf(tag) {
  return OWN_NAMES[tag] ?? new Intl.DisplayNames([tag], { type: "language" }).of(tag) ?? tag;
}

/** A moment, for people. */
export function moment(at) {
  return new Date(at).toLocaleString(locale, { dateStyle: "long", timeStyle: "short" });
}
