// /: all collections of this service.

import { moment, number } from "./language.js";
import { alarm, ask, h, place, progress, show } from "./page.js";
import { featuresInWords, inWords } from "./texts.js";
import { countInWords, targetInWords } from "./words.js";

const AT_FIRST = 10; // the newest; each needs a request for its agreement
const STATES = { collecting: "Collecting", paused: "Paused", closed: "Closed", published: "Published" };

start().catch((error) => {
  place("loading").hidden = true;
  show("message", alarm(error.title ?? "The collections cannot be shown", error.message));
});

async function start() {
  const all = (await ask("/collections")).reverse();
  const first = await cards(all.slice(0, AT_FIRST));
  place("loading").hidden = true;
  if (all.length === 0) {
    const open = h("a", { href: "/admin" }, "Open a collection");
    show("collections", h("div.card", h("p", "Nothing is collected yet. ", open, ".")));
    return;
  }
  const more = h("button", { type: "button" }, `Show all ${number(all.length)}`);
  more.addEventListener("click", async () => {
    more.disabled = true;
    more.replaceWith(...(await cards(all.slice(AT_FIRST))));
  });
  show("collections", first, all.length > AT_FIRST ? more : null);
}

/** Of several waves the newest is shown. */
async function cards(statuses) {
  const newest = ({ waves }) => waves.findLast(({ fingerprint }) => fingerprint).fingerprint;
  const agreementOf = (status) => ask(`/collections/${newest(status)}/agreement`);
  const agreements = await Promise.all(statuses.map(agreementOf));
  return statuses.map((status, i) => card(status, agreements[i]));
}

function card(status, { schema, wave, fingerprint }) {
  const { count, quorum, closes, model } = status;
  const state = { held: "collecting", ended: model ? "published" : "closed" }[status.state] ?? status.state;
  const title = schema.title === undefined ? targetInWords(schema) : inWords(schema.title);
  return h("article.card",
    h("p", { class: `state ${state}` }, STATES[state], wave === null ? "" : `, wave ${wave.number}`),
    h("h2", h("a", { href: `/collections/${fingerprint}` }, title)),
    schema.organiser === undefined ? null : h("p", { dir: "auto" }, inWords(schema.organiser)),
    h("p.hint", `from ${featuresInWords(schema)}`),
    closes !== null && state === "collecting" ? h("p.hint", `until ${moment(closes * 1000)}`) : null,
    progress(count, quorum, countInWords(status)),
  );
}
