// /collections/{fingerprint}: how far it is, what was agreed, what may be expected.

import { moment, number } from "./language.js";
import { agreementAt, alarm, ask, definitions, fingerprintHere, h, place, progress, show } from "./page.js";
import { arrivalsPlot } from "./plots.js";
import { featuresInWords, inWords } from "./texts.js";
import { verify } from "./verify.js";
import {
  agreementInWords,
  countedIn,
  errorInWords,
  isOpenToAnyone,
  isShared,
  noiseInWords,
  premiseInWords,
  targetInWords,
} from "./words.js";

const EVERY = 5000;
const STATES = {
  collecting: "Collecting",
  paused: "Paused: nothing is taken for now",
  closed: "Closed: nothing more is accepted, and nothing is published yet",
  sums: "Published: blurred sums, and no model of them",
  published: "Published",
};
let fingerprint = fingerprintHere(); // of a collection, or of a plan
let waves = null; // waves.js, where there is a plan

start().catch((error) => {
  place("loading").hidden = true;
  show("message", alarm(error.title ?? "This collection cannot be shown", error.message));
});

async function start() {
  const agreement = await agreementAt(fingerprint);
  if (agreement.wave?.plan === fingerprint) fingerprint = agreement.fingerprint;
  const mu = await verify(agreement, fingerprint);
  if (agreement.wave) waves = await import("./waves.js");
  const course = agreement.wave ? await waves.courseOf(agreement) : null;
  const { title } = agreement.schema;
  const called = title === undefined ? targetInWords(agreement.schema) : inWords(title);
  document.title = `Collection: ${called}`;
  place("title").textContent = title === undefined ? `Learning about ${called}` : called;
  place("loading").hidden = true;
  await update(agreement, course);
  show("expected",
    h("h2", "What the finished model may achieve"),
    h("p", errorInWords(agreement)),
    h("p", noiseInWords(agreement)),
  );
  show("agreement",
    h("h2", "The agreement in words"),
    definitions(agreementInWords(agreement, mu)),
    fingerprintWords(),
  );
  setInterval(() => document.hidden || update(agreement, course).catch(() => {}), EVERY);
}

function fingerprintWords() {
  return h("p.hint",
    "Checked on this device: the noise keeps what is promised, and the agreement has the fingerprint ",
    h("code", fingerprint),
    ". ",
    h("a", { href: `/collections/${fingerprint}/agreement`, download: "agreement.json" },
      "Download it",
    ),
    ".",
  );
}

async function update(agreement, course) {
  const [status, hours, plan] = await Promise.all([
    ask(`/collections/${fingerprint}`),
    ask(`/collections/${fingerprint}/history`),
    course ? ask(`/collections/${agreement.wave.plan}`) : null,
  ]);
  if (course) {
    const list = waves.waveList(agreement, { ...course, status: plan });
    show("waves", h("h2", "Waves"), list, planAction(agreement, plan));
  }
  const { count, quorum, state, invited, closes, awaits, sums } = status;
  const shown = state === "closed" && sums ? "sums" : state;
  const left = quorum - count;
  const words =
    left > 0
      ? `${number(count)} of at least ${number(quorum)} ${countedIn(agreement)}; ${number(left)} more are needed before anything can be published.`
      : `${number(count)} ${countedIn(agreement)}: the quorum of ${number(quorum)} is reached.`;
  show("status",
    h("p", { class: `state ${state}` }, STATES[shown]),
    shown === "closed" && awaits !== null ? h("p", `It waits for ${awaits}, which publishes for both databases.`) : null,
    closes === null ? null : h("p", `${state === "collecting" || state === "paused" ? "Closes" : "Closed"} ${moment(closes * 1000)}.`),
    progress(count, quorum, words),
    isOpenToAnyone(agreement)
      ? h("div.note.some", h("strong", "Open to anyone. "), premiseInWords(agreement))
      : null,
    hours.length
      ? arrivalsPlot(hours, quorum)
      : h("p.hint", "Nobody has contributed yet."),
    course && state !== "collecting" ? null : h("div.buttons", action(shown, invited)),
  );
  const { schema } = agreement;
  const [by, aim] = [schema.organiser, schema.purpose].map((text) => text && inWords(text));
  const asked = `${by ? `Asked by ${by}. ` : ""}${aim ? `Purpose: ${aim.replace(/\.$/, "")}. ` : ""}`;
  const collected = isShared(agreement)
    ? ` Each submission is shared between ${agreement.databases.map(({ name }) => name).join(" and ")}.`
    : "";
  place("lead").textContent = `${asked}From ${featuresInWords(schema)}, blurred by everyone themselves.${collected}`;
}

/** From a wave that is over to the plan's model, or to the wave that collects. */
function planAction({ fingerprint: own }, { waves: all, model, state, reason }) {
  const now = all.find((one) => one.state === "collecting")?.fingerprint;
  return [
    state === "held" ? h("p.hint", waves.HELD) : null,
    state === "ended" && reason ? h("p.hint", reason) : null,
    h("div.buttons",
      model ? h("a.button.primary", { href: `/m/${model}` }, "See the model") : null,
      now && now !== own ? h("a.button", { href: `/collections/${now}` }, "The wave that collects now") : null,
    ),
  ];
}

function action(state, invited) {
  if (state === "published")
    return h("a.button.primary", { href: `/m/${fingerprint}` }, "See the model");
  if (state === "sums")
    return h("a.button", { href: `/collections/${fingerprint}/moments`, download: "moments.json" }, "Download the blurred sums");
  if (state === "closed" || state === "paused") return null;
  if (invited)
    return h("p.hint", "To contribute, open the invitation that you were sent.");
  return h("a.button.primary", { href: `/c/${fingerprint}` }, "Contribute");
}
