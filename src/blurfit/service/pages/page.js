// What all pages share: elements without any HTML in text, and questions to the service.

import { t } from "./language.js";

/** h("p.hint", {id: "a"}, "text", child): classes behind the name, and attributes where there are
 * any; functions listen to events. */
export function h(name, ...rest) {
  return fill((tag) => document.createElement(tag), name, rest);
}

/** The same for pictures. */
export function svg(name, ...rest) {
  return fill((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag), name, rest);
}

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
export function fingerprintHere() {
  return location.pathname.split("/")[2] ?? "";
}

class ServiceProblem extends Error {
  constructor(problem) {
    super(problem.detail ?? problem.title);
    this.title = problem.title;
    this.type = problem.type ?? "";
  }
}

/** JSON from the service, or its problem as an error. */
export async function ask(path, options) {
  return (await answerTo(path, options)).content;
}

/** The very text of an answer in JSON. */
export async function askText(path, options) {
  return (await answerTo(path, options)).text;
}

async function answerTo(path, { method = "GET", body, token } = {}) {
  const headers = { accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  if (token) headers.authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { method, headers, body, credentials: "omit" });
  } catch {
    throw new ServiceProblem({
      title: t("noConnection"),
      detail: t("noConnection.detail"),
      type: "offline",
    });
  }
  const text = await response.text();
  let content;
  try {
    content = JSON.parse(text);
  } catch {
    throw new ServiceProblem({
      title: t("noAnswer"),
      detail: t("noAnswer.detail", { status: response.status }),
    });
  }
  if (!response.ok) throw new ServiceProblem(content);
  return { text, content };
}

/** The agreement that an address means: its own, or that of the plan's wave that collects now. */
export function agreementAt(name) {
  return ask(`/collections/${name}/agreement`); // whoever asks verifies that it is that one
}

/** A message that screen readers speak at once. */
export function alarm(title, text) {
  return h("div.note.bad", { role: "alert" }, h("strong", title), h("p", text));
}

export function definitions(rows) {
  return h("dl.facts", rows.map(([what, words]) => h("div", h("dt", what), h("dd", words))));
}

/** A bar that fills towards the quorum. */
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
