// /: all collections of this service.

import { alarm, ask, h, place, progress, show } from "./page.js";
import { countInWords, targetInWords } from "./words.js";

const MOST = 100;
const STATES = { collecting: "Collecting", closed: "Closed", published: "Published" };

start().catch((error) => {
  place("loading").hidden = true;
  show("message", alarm(error.title ?? "The collections cannot be shown", error.message));
});

async function start() {
  const all = (await ask("/collections")).reverse().slice(0, MOST);
  const agreements = await Promise.all(
    all.map(({ fingerprint }) => ask(`/collections/${fingerprint}/agreement`)),
  );
  place("loading").hidden = true;
  if (all.length === 0) {
    show(
      "collections",
      h(
        "div",
        { class: "card" },
        h(
          "p",
          {},
          "Nothing is collected yet. ",
          h("a", { href: "/admin" }, "Open a collection"),
          ".",
        ),
      ),
    );
    return;
  }
  show(
    "collections",
    all.map((status, i) => card(status, agreements[i])),
  );
}

function card({ fingerprint, state, count, quorum }, { schema }) {
  return h(
    "article",
    { class: "card" },
    h("p", { class: `state ${state}` }, STATES[state]),
    h("h2", {}, h("a", { href: `/collections/${fingerprint}` }, targetInWords(schema))),
    h("p", { class: "hint" }, `from ${schema.features.map(({ name }) => name).join(", ")}`),
    progress(count, quorum, countInWords({ count, quorum })),
  );
}
