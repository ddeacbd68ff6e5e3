// What all pages share: their words, elements without any HTML in text, and questions to the service.

import { LANGUAGES, choose, language, nameOf, t, wanted } from "./language.js";
import { languagesOf } from "./texts.js";

/** h("p.hint", {id: "a"}, "text", child): classes behind the name, and attributes where there are
 * any; functions listen to events. */
export const h = (name, ...rest) => fill((tag) => document.createElement(tag), name, rest);

export const svg = (name, ...rest) =>
  fill((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag), name, rest);

function fill(create, name, rest) {
  const [tag, ...classes] = name.split(".");
  const element = create(tag);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  const attributes = rest[0]?.constructor === Object ? rest.shift() : {};
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value === true) element.setAttribute(key, "");
    else if (!isNone(value) && value !== false) element.setAttribute(key, value);
  }
  element.append(...thereOf(rest));
  return element;
}

const isNone = (value) => value === null || value === undefined;
const thereOf = (children) => children.flat().filter((child) => !isNone(child));

export const place = (id) => document.getElementById(id);

/** Put these in the place of whatever is there. */
export function show(id, ...children) {
  const element = place(id);
  element.replaceChildren(...thereOf(children));
  element.hidden = false;
  return element;
}

/** The fingerprint in this page's address: /c/…, /m/…, /collections/… */
export const fingerprintHere = () => location.pathname.split("/")[2] ?? "";

class ServiceProblem extends Error {
  constructor(problem) {
    super(problem.detail ?? problem.title);
    this.title = problem.title;
    this.type = problem.type ?? "";
  }
}

/** JSON from the service, or the very text of it; or its problem as an error. */
export const ask = async (path, options) => (await answerTo(path, options)).content;
export const askText = async (path, options) => (await answerTo(path, options)).text;

async function answerTo(path, { method = "GET", body, type = "application/json", token } = {}) {
  const headers = { accept: "application/json", "accept-language": language };
  if (body !== undefined) headers["content-type"] = type;
  if (token) headers.authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { method, headers, body, credentials: "omit" });
  } catch {
    const [title, detail] = [t("noConnection"), t("noConnection.detail")];
    throw new ServiceProblem({ title, detail, type: "offline" });
  }
  const text = await response.text();
  let content;
  try {
    content = JSON.parse(text);
  } catch {
    const detail = t("noAnswer.detail", { status: response.status });
    throw new ServiceProblem({ title: t("noAnswer"), detail });
  }
  if (!response.ok) throw new ServiceProblem(content);
  return { text, content };
}

/** The agreement that an address means: its own, or that of the plan's wave that collects now. */
export function agreementAt(name) {
  return ask(`/collections/${name}/agreement`); // whoever asks verifies that it is that one
}

/** A message that screen readers speak at once. */
export const alarm = (title, message) => alarmOf({ message }, title);

/** The same for an error, or for the service's problem, which has a title of its own. */
export const alarmOf = ({ title: own, detail, message = detail }, title, ...further) =>
  h("div.note.bad", { role: "alert" }, h("strong", own ?? title), h("p", message), further);

/** Begin a page, or say why it cannot be shown. */
export function begin(start) {
  start().catch((error) => {
    place("loading").hidden = true;
    show("message", alarmOf(error, t("notShown")));
  });
}

/** Rows [what, words, attributes of the words]; symbols that the glossary explains lead there. */
export function definitions(rows) {
  return h("dl.facts", rows.map(([what, words, more = {}]) => h("div", h("dt", what), h("dd", more, linked(words)))));
}

const TERMS = { ε: "epsilon", δ: "delta", "SHA-256": "fingerprint", "R²": "explained" };

/** A text in which the first of each of these symbols is a link into the glossary. */
export function linked(words) {
  if (typeof words !== "string") return words;
  const seen = new Set();
  return words.split(/(ε|δ|SHA-256|R²)/).map((part) => {
    if (!Object.hasOwn(TERMS, part) || seen.has(part)) return part;
    seen.add(part);
    return term(TERMS[part], part);
  });
}

export const term = (name, words) => h("a.term", { href: `/glossary#${name}` }, words);

export const labelled = (id, label, hint, input) =>
  h("div.field",
    h("label", { for: id }, label),
    hint ? h("span.hint", { id: `${id}-hint` }, hint) : null,
    input,
  );

/** A box to tick, or one of several, with its label behind it. */
export const check = (id, label, more) =>
  h("div.field.check", h("input", { type: "checkbox", id, ...more }), h("label", { for: id }, label));

export function progress(count, quorum, words) {
  const share = Math.min(1, count / quorum);
  const bar = svg("svg.progress",
    { viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect.track", { width: 100, height: 4 }),
    svg("rect.fill", { width: 100 * share, height: 4 }),
  );
  return h("div.towards", bar, h("p", words));
}

export function download(name, type, content) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// ---- the words of the page itself

dress();

/** Fill in what the page's HTML names, and offer its languages. */
function dress() {
  for (const element of document.querySelectorAll("[data-words]")) {
    element.textContent = t(element.dataset.words);
  }
  for (const element of document.querySelectorAll("[data-label]")) {
    element.setAttribute("aria-label", t(element.dataset.label));
  }
  const heading = document.querySelector("h1[data-words]");
  if (heading) document.title = heading.textContent;
  if (place("languages")) offerLanguages(null);
}

/** A list of languages to choose from: the page's own, and those of a survey. */
export function offerLanguages(schema) {
  const tags = [...new Set([...LANGUAGES, ...(schema ? languagesOf(schema) : [])])];
  const best = wanted.find((tag) => tags.includes(tag)) ?? language;
  const select = h("select", { id: "language", autocomplete: "off" },
    tags.map((tag) => h("option", { value: tag, lang: tag, selected: tag === best }, nameOf(tag))),
  );
  select.addEventListener("change", () => choose(select.value));
  show("languages", h("label.unseen", { for: "language" }, t("language")), select);
}
