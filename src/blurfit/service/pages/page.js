// What all pages share: elements without any HTML in text, and questions to the service.

import { t } from "./language.js";

/** h("p", {class: "hint"}, "text", child): attributes by name; functions listen to events. */
export function h(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for pictures. */
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export const place = (id) => document.getElementById(id);

/** Put these in the place of whatever is there. */
export function show(id, ...children) {
  const element = place(id);
  element.replaceChildren(
    ...children.flat().filter((child) => child !== null && child !== undefined),
  );
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
export async function agreementAt(name) {
  const found = await ask(`/collections/${name}/agreement`);
  if (found.fingerprint === name || found.wave?.plan === name) return found;
  throw new ServiceProblem({ title: t("noAnswer"), detail: t("noAnswer.detail", { status: 200 }) });
}

/** A message that screen readers speak at once. */
export function alarm(title, text) {
  return h("div", { class: "note bad", role: "alert" }, h("strong", {}, title), h("p", {}, text));
}

export function definitions(rows) {
  return h(
    "dl",
    { class: "facts" },
    rows.map(([what, words]) => h("div", {}, h("dt", {}, what), h("dd", {}, words))),
  );
}

/** A bar that fills towards the quorum. */
export function progress(count, quorum, words) {
  const share = Math.min(1, count / quorum);
  const bar = svg(
    "svg",
    { class: "progress", viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "track", width: 100, height: 4 }),
    svg("rect", { class: "fill", width: 100 * share, height: 4 }),
  );
  return h("div", { class: "towards" }, bar, h("p", {}, words));
}

export function download(name, type, content) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
