// /: all surveys of this service.

import { date, moment, number, t } from "./language.js";
import { ask, begin, h, place, progress, show } from "./page.js";
import { attributes, featuresInWords, inWords } from "./texts.js";
import { countInWords, titleIn } from "./words.js";

const [AT_FIRST, HOUR] = [10, 3_600_000]; // the newest: each needs a request for its agreement

begin(start);

async function start() {
  const all = (await ask("/collections")).reverse();
  const first = await cards(all.slice(0, AT_FIRST));
  place("loading").hidden = true;
  if (all.length === 0) {
    const open = h("a", { href: "/admin" }, t("home.open"));
    show("collections", h("div.card", h("p", t("home.none"), " ", open)));
    return;
  }
  const more = h("button", { type: "button" }, t("home.all", { count: number(all.length) }));
  more.addEventListener("click", async () => {
    more.disabled = true;
    more.replaceWith(...(await cards(all.slice(AT_FIRST))));
  });
  show("collections", first, all.length > AT_FIRST ? more : null);
}

async function cards(statuses) {
  const newest = ({ waves }) => waves.findLast(({ fingerprint }) => fingerprint).fingerprint;
  const agreementOf = (status) => ask(`/collections/${newest(status)}/agreement`);
  const agreements = await Promise.all(statuses.map(agreementOf));
  return statuses.map((status, i) => card(status, agreements[i]));
}

function card(status, { schema, wave, fingerprint }) {
  const { count, quorum, closes, model, opened } = status;
  const state = { held: "collecting", ended: model ? "published" : "closed" }[status.state] ?? status.state;
  const group = wave === null ? "" : `, ${t("group.which", { place: wave.number, all: wave.people.length })}`;
  // two surveys of one title are told apart by when they were opened, and by the start of their address
  const which = [
    opened === null ? null : t("home.opened", { date: date(opened * HOUR) }),
    closes !== null && state === "collecting" ? t("home.until", { moment: moment(closes * 1000) }) : null,
    fingerprint.slice(0, 8),
  ];
  return h("article.card",
    h("p", { class: `state ${state}` }, `${t(`state.${state}`)}${group}`),
    h("h2", h("a", { href: `/collections/${fingerprint}`, ...attributes(schema.title) }, titleIn(schema))),
    schema.organiser === undefined ? null : h("p", attributes(schema.organiser), inWords(schema.organiser)),
    h("p.hint", t("home.from", { features: featuresInWords(schema) })),
    h("p.hint", which.filter(Boolean).join(" · ")),
    progress(count, quorum, countInWords(status)),
  );
}
