// The pages' own words, numbers and dates in the reader's language. Words are in a file for each
// language, `language.en.js` and so on, and those of a page that names more in <main data-more> in
// another; `blurfit_server.service.answers` makes all but the English ones. The reader's choice is
// remembered in this tab alone.

import { keep, recall } from "./bytes.js";

const CHOICE = "blurfit:language";
export const LANGUAGES = ["en", "de"];

const base = (tag) => tag.toLowerCase().split("-")[0];

/** What the reader wants to read, best first: their choice, then their browser's. */
export const wanted = [recall("sessionStorage", CHOICE), ...navigator.languages].filter(Boolean);

/** The language of the page's own words, and how numbers and dates are written in it. */
export const language = wanted.map(base).find((one) => LANGUAGES.includes(one)) ?? "en";
export const locale = wanted.find((tag) => base(tag) === language) ?? language;

const files = ["language", document.querySelector("main")?.dataset.more].filter(Boolean);
const found = await Promise.all(files.map((name) => import(`./${name}.${language}.js`)));
const words = Object.assign({}, ...found.map((one) => one.default));
document.documentElement.lang = language;

export function t(name, values = {}) {
  if (!Object.hasOwn(words, name)) throw new Error(`Expected words named “${name}”.`);
  return words[name].replace(/\{(\w+)\}/g, (_, value) => values[value]);
}

export function choose(tag) {
  keep("sessionStorage", CHOICE, tag); // else the browser's own language stays
  location.reload();
}

const OWN_NAMES = { de: "Deutsch", en: "English" };

/** What a language calls itself. To ask the browser takes it longer than all else that a page does at first. */
export const nameOf = (tag) =>
  OWN_NAMES[tag] ?? new Intl.DisplayNames([tag], { type: "language" }).of(tag) ?? tag;

export const date = (at) => new Date(at).toLocaleDateString(locale, { dateStyle: "medium" });
export const moment = (at) => new Date(at).toLocaleString(locale, { dateStyle: "long", timeStyle: "short" });

// ---- Numbers as people type and read them: "34,5" is 34.5, "1,234.5" and "1.234,5" are 1234.5.

/** The number that a text stands for, or NaN. Of two kinds of separators the last is the decimal
 * one; one that is repeated groups digits. A single one before exactly three digits could be
 * either: there the reader's own language decides, and the page shows how it was read. */
export function parseNumber(text, within = locale) {
  const plain = text.trim().replace(/[\s\u00a0\u202f'’]/g, "").replace(/^[−–]/, "-");
  if (!/^[-+]?[\d.,]*\d[\d.,]*(e[-+]?\d+)?$/i.test(plain)) return Number.NaN;
  const [, digits, exponent] = plain.match(/^([^e]*)(e.*)?$/i);
  const decimal = decimalIn(digits, within);
  const groups = decimal === "," ? "." : ",";
  const parts = decimal ? digits.split(decimal) : [digits.replace(/[.,]/g, "")];
  if (decimal) parts[0] = parts[0].replaceAll(groups, "");
  if (parts.length > 2 || /[.,]/.test(parts.join(""))) return Number.NaN;
  return Number(parts.join(".") + (exponent ?? ""));
}

/** Which sign parts the fraction off: "." or "," or none. */
function decimalIn(digits, within) {
  const [commas, points] = [",", "."].map((sign) => digits.split(sign).length - 1);
  if (commas && points) return digits.lastIndexOf(",") > digits.lastIndexOf(".") ? "," : ".";
  if (commas + points === 0 || commas > 1 || points > 1) return null;
  const sign = commas ? "," : ".";
  const couldGroup = /^[-+]?[1-9]\d{0,2}[.,]\d{3}$/.test(digits);
  return couldGroup && decimalOf(within) !== sign ? null : sign;
}

function decimalOf(within) {
  const parts = new Intl.NumberFormat(within).formatToParts(1.5);
  return parts.find(({ type }) => type === "decimal").value;
}

/** A number for people, in so many digits. */
export function number(value, digits = 6) {
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e12)) {
    const [mantissa, exponent] = value.toExponential(Math.min(digits, 4) - 1).split("e");
    const raised = (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)];
    const power = String(Number(exponent)).replace(/./g, raised);
    const short = signed(new Intl.NumberFormat(locale).format(Number(mantissa)));
    return short === "1" ? `10${power}` : `${short}·10${power}`;
  }
  return signed(new Intl.NumberFormat(locale, { maximumSignificantDigits: digits }).format(value));
}

const signed = (text) => text.replace("-", "−");

/** A bound for people, in so many digits: never rounded down. */
export function atMost(value, digits = 6) {
  const kept = value < 1e-3 || value >= 1e12 ? Math.min(digits, 4) : digits;
  const rounded = Number(value.toPrecision(kept));
  const step = 10 ** (Math.floor(Math.log10(value)) - kept + 1);
  return number(rounded < value ? rounded + step : rounded, digits);
}

/** A number as it could have been typed here, to all its digits. */
export function asTyped(value) {
  const digits = { useGrouping: false, maximumSignificantDigits: 17 };
  return new Intl.NumberFormat(locale, digits).format(value).replace("−", "-");
}

/** A number to as many places as its standard error has two digits of: mirrors
 * `blurfit.model.summary.number`. */
export function withError(value, error) {
  if (value === 0 && !error) return "0";
  const size = error > 0 ? Math.abs(error) : Math.abs(value);
  const places = (error > 0 ? 1 : 2) - Math.floor(Math.log10(size));
  if (Math.abs(value) >= 1e15 || places > 8) return number(value, 3);
  const power = 10 ** -Math.min(places, 0);
  const rounded = Math.round(value / power) * power + 0;
  const digits = Math.max(places, 0);
  const format = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return signed(new Intl.NumberFormat(locale, format).format(digits ? value : rounded));
}

/** A share of one as per cent; what is nearly sure is never called sure. */
export function percent(share) {
  const rounded = Math.round(100 * share);
  const shown = rounded > 99 ? "> 99" : rounded < 1 ? "< 1" : number(rounded);
  return t("percent", { shown });
}
