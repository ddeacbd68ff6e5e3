// Numbers as people type them: "34,5" is 34.5, "1,234.5" and "1.234,5" are 1234.5.

/** The number that a text stands for, or NaN. Of two kinds of separators the last is the decimal
 * one; one that is repeated groups digits. A single one before exactly three digits could be
 * either: there the reader's own language decides, and the page shows how it was read. */
export function parseNumber(text, locale = navigator.language) {
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
