// Invitations: any number, made in the page, of which the service gets the hashes alone; as links,
// as a table for mail merge, or as QR codes to print. With two databases a link needs an invitation
// of each: the other's are read from its file, and joined, those to a plan within each group
// (`lot.js`).

import { bytesOf } from "./bytes.js";
import { sha256 } from "./checks.js";
import { attempt, dialog, notNow, tell } from "./dialogs.js";
import { number, t } from "./language.js";
import { ask, download, h, labelled } from "./page.js";
import { box, complain, list, numberIn } from "./questions.js";
import { inWords } from "./texts.js";
import { groupOf, shares } from "./waves.js";

const [AT_ONCE, MOST, PAUSE] = [5_000, 1_000_000, 2_000]; // hashes in a request, in all; milliseconds
const TO_JOIN = "blurfit-invitations"; // before fingerprint and database, in the first line of a file to join
const KINDS = ["links", "csv", "qr", "tokens"]; // the last for the other database to join

/** Ask how many and as what, make them, and hand them out as a file. */
export function invite({ token, path, name, agreement }) {
  const isShared = agreement.databases.length > 0;
  const count = box(t("invite.count"), { name: "count", value: 100, inputmode: "numeric" });
  const kinds = KINDS.filter((one) => isShared || one !== "tokens").map((one) => [one, t(`invite.${one}`)]);
  const kind = list(t("invite.as"), { name: "as" }, Object.fromEntries(kinds));
  const file = h("input", { type: "file", id: "other-invitations", accept: ".txt,.csv,text/plain,text/csv" });
  const other = isShared ? labelled(file.id, t("invite.join"), t("invite.join.hint"), file) : null;
  const make = h("button.primary", t("invite.make"));
  const buttons = h("div.buttons", make, notNow(() => shown));
  const element = h("form", { novalidate: true, autocomplete: "off" }, count, kind, other, buttons);
  const shown = dialog(t("invite"), element);
  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    const field = count.querySelector("input");
    const wanted = numberIn(field);
    const isFine = Number.isSafeInteger(wanted) && wanted > 0 && wanted <= MOST;
    complain(field, isFine ? "" : t("missing.count", { most: number(MOST) }));
    if (!isFine) return;
    make.disabled = true;
    await attempt(async () => {
      const { wave } = agreement;
      const firstLine = (isOwn) => `${TO_JOIN}:${name}:${isOwn === isFirst(agreement) ? "first" : "second"}`;
      const text = isShared && file.files.length ? await file.files[0].text() : null;
      if (text !== null && text.split("\n", 1)[0].trim() !== firstLine(false)) throw new Error(t("invite.other"));
      let others = text === null ? null : tokensIn(text);
      const values = others && { have: number(others.length), want: number(wanted) };
      if (others && others.length < wanted) throw new Error(t("invite.few", values));
      others = others && (await byGroup(others.slice(0, wanted), wave));
      const pairs = await hashesOf(others?.flat() ?? []);
      await keep([], pairs, path, token); // are they the other's, and new?
      const tokens = await byGroup(await madeFor(wanted, wave, others), wave);
      await keep(await hashesOf(tokens.flat()), pairs, path, token);
      const groups = wave ? tokens.flatMap((some, i) => some.map(() => i + 1)) : null;
      const heading = isShared && !others ? `${firstLine(true)}\n` : "";
      const made = joined(tokens.flat(), others?.flat(), agreement);
      await hand(kind.querySelector("select").value, made, name, groups, heading, agreement.schema);
    });
    shown.close();
  });
}

/** As many for each wave of a plan as a lot gives it, or as the other database has. */
async function madeFor(count, wave, others) {
  if (!wave) return Array.from({ length: count }, newToken);
  const { waves } = await ask(`/collections/${wave.plan}`);
  const first = 1 + waves.filter(({ state }) => state === "released").length;
  const left = others ? others.map((some) => some.length) : shares(wave, count, Math.min(first, waves.length));
  const tokens = [];
  while (tokens.length < count) {
    const token = newToken();
    const group = await groupOf(wave, token);
    if (left[group - 1]-- > 0) tokens.push(token);
  }
  return tokens;
}

async function byGroup(tokens, wave) {
  if (!wave) return [tokens];
  const groups = await Promise.all(tokens.map((one) => groupOf(wave, one)));
  return wave.people.map((_, i) => tokens.filter((_one, at) => groups[at] === i + 1));
}

/** Sorted: the service does not learn which are joined with which. */
async function hashesOf(tokens) {
  return (await Promise.all(tokens.map((one) => sha256(bytesOf(one))))).sort();
}

/** Let the service keep hashes of its own invitations, each joined with one of `pairs`. */
async function keep(own, pairs, path, token) {
  for (let start = 0; start < Math.max(own.length, pairs.length); start += AT_ONCE) {
    const [hashes, theirs] = [own, pairs].map((all) => all.slice(start, start + AT_ONCE));
    const body = JSON.stringify({ hashes, pairs: theirs });
    await patiently(() => ask(`${path}/invitations`, { method: "POST", body, token }));
  }
}

/** Ask again where so much at once is more than the rate of an address. */
async function patiently(request) {
  for (;;) {
    try {
      return await request();
    } catch (error) {
      if (!error.type?.endsWith("too-many-requests")) throw error;
      await new Promise((done) => setTimeout(done, PAUSE));
    }
  }
}

function newToken() {
  const letters = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))));
  return letters.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The invitations of a file, each once: bare ones, or those behind the # of links, in any column. */
function tokensIn(text) {
  const tokens = text
    .split(/\r?\n/)
    .map((line) => line.match(/(?:#invitation=|#|^|,|")([\w-]{43})(?=["\s]|$)/)?.[1]);
  return [...new Set(tokens.filter(Boolean))];
}

/** In the order of the agreement's databases, wherever this page comes from. */
export function joined(tokens, others, agreement) {
  if (!others) return tokens;
  return tokens.map((own, i) => (isFirst(agreement) ? `${own},${others[i]}` : `${others[i]},${own}`));
}

function isFirst({ databases }) {
  return databases[0].url === location.origin;
}

async function hand(kind, made, name, groupOfEach, heading, schema) {
  const order = [...made.keys()];
  // those to a plan by their letters, an order that has nothing to do with their groups
  if (groupOfEach) order.sort((a, b) => (made[a] < made[b] ? -1 : 1));
  const [tokens, groups] = [order.map((i) => made[i]), groupOfEach && order.map((i) => groupOfEach[i])];
  const links = tokens.map((one) => `${location.origin}/c/${name}#invitation=${one}`);
  const named = (i) => (groups ? `${i + 1},${groups[i]}` : `${i + 1}`);
  const rows = [groups ? "number,group,link" : "number,link", ...links.map((one, i) => `${named(i)},"${one}"`)];
  const contents = {
    links: () => ["invitations.txt", "text/plain", links.map((one) => `${one}\n`).join("")],
    tokens: () => ["invitations.txt", "text/plain", heading + tokens.map((one) => `${one}\n`).join("")],
    csv: () => ["invitations.csv", "text/csv", rows.map((one) => `${one}\r\n`).join("")],
    qr: async () => ["invitations.html", "text/html", await sheet(links, groups, schema)],
  };
  download(...(await contents[kind]()));
  const groupWords = groups ? h("p", t("invited.groups")) : null;
  tell(t("invited", { count: number(tokens.length) }), h("p", t("invited.kept")), groupWords);
}

/** A page to print: what it is, and a code and a number for each person. An invitation must not leave the page before
 * it is given out, so its picture is made here. */
async function sheet(links, groups, schema) {
  const { correction, generate, mode } = await import("./lean-qr.js");
  const options = { modes: [mode.ascii], minCorrectionLevel: correction.M, maxCorrectionLevel: correction.M };
  const caption = (i) => (groups ? `${i + 1}, ${t("invite.group", { group: groups[i] })}` : i + 1);
  const codes = links.map((one, i) => {
    const picture = picturesque(generate(one, options));
    return `<figure>${picture}<figcaption>${caption(i)}</figcaption></figure>`;
  });
  const style =
    "body{font:10pt sans-serif}main{display:grid;grid-template-columns:repeat(auto-fill,5cm);gap:1cm}" +
    "figure{margin:0;break-inside:avoid;text-align:center}svg{width:5cm;height:5cm}";
  const title = escaped(schema.title === undefined ? t("invite") : inWords(schema.title));
  const words = `<h1>${title}</h1><p>${escaped(t("invite.sheet", { site: location.origin }))}</p>`;
  const head = `<!doctype html><meta charset="utf-8"><title>${title}</title><style>${style}</style>`;
  return `${head}${words}<main>${codes.join("\n")}</main>\n`;
}

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

/** A code as one path, with a quiet zone of four modules around it. */
export function picturesque(code) {
  const places = [...Array(code.size).keys()];
  const dots = places.flatMap((y) => places.flatMap((x) => (code.get(x, y) ? [`M${x} ${y}h1v1h-1z`] : [])));
  const size = code.size + 8;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-4 -4 ${size} ${size}">` +
    `<path fill="#fff" d="M-4-4h${size}v${size}h-${size}z"/><path d="${dots.join("")}"/></svg>`
  );
}
