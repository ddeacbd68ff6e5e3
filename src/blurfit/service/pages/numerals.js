// Numbers as people type and read them: "34,5" is 34.5, "1,234.5" and "1.234,5" are 1234.5.

import { locale as here } from "./language.js";

/** The number that a text stands for, or NaN. Of two kinds of separators the last is the decimal
 * one; one that is repeated groups digits. A single one before exactly three digits could be
 * either: there the reader's own language decides, and the page shows how it was read. */
export function parseNumber(text, locale = here) {
  const plain = text.trim().replace(/[\s\u00a0\u202f'’]/g, "").replace(/^[−–]/, "-");
  if (!/^[-+]?[\d.,]*\d[\d.,]*(e[-+]?\d+)?$/i.test(plain)) return Number.NaN;
  const [, digits, exponent] = plain.match(/^([^e]*)(e.*)?$/i);
  const decimal = decimalIn(digits, locale);
  const groups = decimal === "," ? "." : ",";
  const parts = decimal ? digits.split(decimal) : [digits.replace(/[.,]/g, "")];
  if (decimal) parts[0] = parts[0].replaceAll(groups, "");
  if (parts.length > 2 || /[.,]/.test(parts.join(""))) return Number.NaN;
  return Number(parts.join(".") + (exponent ?? ""));
}

/** Which sign parts the fraction off: "." or "," or none. */
function decimalIn(digits, locale) {
  const [commas, points] = [",", "."].map((sign) => digits.split(sign).length - 1);
  if (commas && points) return digits.lastIndexOf(",") > digits.lastIndexOf(".") ? "," : ".";
  if (commas + points === 0 || commas > 1 || points > 1) return null;
  const sign = commas ? "," : ".";
  const couldGroup = /^[-+]?[1-9]\d{0,2}[.,]\d{3}$/.test(digits);
  return couldGroup && decimalOf(locale) !== sign ? null : sign;
}

function decimalOf(locale) {
  const parts = new Intl.NumberFormat(locale).formatToParts(1.5);
  return parts.find(({ type }) => type === "decimal").value;
}

/** A number for people, in so many digits. */
export function number(value, digits = 6) {
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e12)) {
    const [mantissa, exponent] = value.toExponential(Math.min(digits, 4) - 1).split("e");
    const power = String(Number(exponent)).replace(
      /./g,
      (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)],
    );
    const short = new Intl.NumberFormat(here).format(Number(mantissa));
    return short === "1" ? `10${power}` : `${short}·10${power}`;
  }
  return new Intl.NumberFormat(here, { maximumSignificantDigits: digits }).format(value);
}

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
  return new Intl.NumberFormat(here, digits).format(value).replace("−", "-");
}
