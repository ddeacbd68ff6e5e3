// /collections/{fingerprint}: how far it is, what was agreed, what may be expected.

import { moment, number, t } from "./language.js";
import { agreementAt, ask, begin, definitions, fingerprintHere, h, place, progress, show, term } from "./page.js";
import { arrivalsPlot } from "./plots.js";
import { askedOf } from "./schema.js";
import { attributes, inWords, titleOf } from "./texts.js";
import { verify } from "./verify.js";
import {
  agreementInWords, countedIn, countOf, isOpenToAnyone, isRounded, isShared, noiseInWords, premiseInWords, sideInWords, titleIn,
} from "./words.js";

const EVERY = 5000;
let fingerprint = fingerprintHere(); // of a survey, or of a plan
let waves = null; // waves.js, where there is a plan
const seen = []; // {at, count} of each time that this page has asked

begin(start);

async function start() {
  const agreement = await agreementAt(fingerprint);
  if (agreement.wave?.plan === fingerprint) fingerprint = agreement.fingerprint;
  const mu = await verify(agreement, fingerprint);
  if (agreement.wave) waves = await import("./waves.js");
  const course = agreement.wave ? await waves.courseOf(agreement) : null;
  const { schema } = agreement;
  document.title = titleIn(schema);
  place("title").textContent = schema.title === undefined ? t("about", { target: titleIn(schema) }) : titleIn(schema);
  place("loading").hidden = true;
  show("lead", ...about(agreement));
  await update(agreement, course);
  show("expected",
    h("h2", t("expected")),
    h("p", t(agreement.wave ? "expected.groups" : "expected.errors")),
    h("p", noiseInWords(agreement)),
  );
  const file = { href: `/collections/${fingerprint}/agreement`, download: "agreement.json" };
  show("agreement",
    h("h2", t("terms")),
    definitions([
      ...agreementInWords(agreement, mu),
      [term("fingerprint", t("fingerprint")), [h("code", fingerprint), " ", h("a", file, t("download"))]],
    ]),
    h("p.hint", t("checkedHere")),
  );
  setInterval(() => document.hidden || update(agreement, course).catch(() => {}), EVERY);
}

function about({ schema, databases }) {
  const { organiser, purpose } = schema;
  const line = (text, words) => (text === undefined ? null : h("span", attributes(text), words, " "));
  return [
    line(organiser, organiser && t("asks.organiser", { organiser: inWords(organiser) })),
    line(purpose, purpose && t("asks.purpose", { purpose: inWords(purpose).replace(/\.$/, "") })),
    t("about.from", { features: askedOf(schema).map(titleOf).join(", ") }),
    isShared({ databases }) ? ` ${t("about.two", { first: databases[0].name, second: databases[1].name })}` : ` ${t("about.one")}`,
  ];
}

async function update(agreement, course) {
  const other = agreement.databases.find(({ url }) => url !== location.origin);
  const [status, hours, there, plan] = await Promise.all([
    ask(`/collections/${fingerprint}`),
    ask(`/collections/${fingerprint}/history`),
    other ? ask(`${other.url}/collections/${fingerprint}`).catch(() => null) : null,
    course ? ask(`/collections/${agreement.wave.plan}`) : null,
  ]);
  if (course) {
    const list = waves.waveList(agreement, { ...course, status: plan });
    show("waves", h("h2", t("groups")), list, planAction(agreement, plan));
  }
  const { count, quorum, state, invited, closes, awaits, sums } = status;
  seen.push({ at: Date.now(), count });
  const shown = state === "closed" && sums ? "sums" : state;
  const isOpen = state === "collecting" || state === "paused";
  const counts = { count: countOf(status), quorum: number(quorum), left: countOf(status, quorum - count) };
  const values = { ...counts, what: countedIn(agreement) };
  show("status",
    h("p", { class: `state ${state}` }, t(`state.${shown}`)),
    shown === "closed" || shown === "paused" || shown === "sums" ? h("p", t(`state.${shown}.how`)) : null,
    shown === "closed" && awaits !== null ? h("p", t("awaits", { name: awaits })) : null,
    closes === null ? null : h("p", t(isOpen ? "closes" : "closed.at", { moment: moment(closes * 1000) })),
    progress(count, quorum, t(count < quorum ? "status.below" : "status.enough", values)),
    isRounded(status) ? h("p.hint", t("counted.rounded")) : null,
    there && isOpen ? h("p.hint", `${sideInWords(other.name, there.count, count)} ${t("side.both")}`) : null,
    isOpenToAnyone(agreement) ? h("div.note.some", h("strong", t("openToAnyone")), ` ${premiseInWords(agreement)}`) : null,
    hours.length ? arrivalsPlot(hours, quorum, seen) : h("p.hint", t("nobodyYet")),
    course && state !== "collecting" ? null : h("div.buttons", action(shown, invited)),
  );
}

/** From a group that is over to the plan's model, or to the group that is asked now. */
function planAction({ fingerprint: own }, { waves: all, model, state, reason }) {
  const now = all.find((one) => one.state === "collecting")?.fingerprint;
  return [
    state === "held" ? h("p.hint", t("groups.held")) : null,
    state === "ended" && reason ? h("p.hint", reason) : null,
    h("div.buttons",
      model ? h("a.button.primary", { href: `/m/${model}` }, t("seeModel")) : null,
      now && now !== own ? h("a.button", { href: `/collections/${now}` }, t("groups.now")) : null,
    ),
  ];
}

function action(state, invited) {
  const path = `/collections/${fingerprint}/moments`;
  if (state === "published") return h("a.button.primary", { href: `/m/${fingerprint}` }, t("seeModel"));
  if (state === "sums") return h("a.button", { href: path, download: "moments.json" }, t("downloadSums"));
  if (state === "closed" || state === "paused") return null;
  if (invited) return h("p.hint", t("byInvitation"));
  return h("a.button.primary", { href: `/c/${fingerprint}` }, t("contribute"));
}
