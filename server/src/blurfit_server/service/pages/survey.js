// The form as people meet it: one page for each section of the survey, with how far one is, and
// whatever was typed put back.

import { erase, keep, recall } from "./bytes.js";
import { answers, field, goTo, putBack, showAsked, typed } from "./fields.js";
import { locale, t } from "./language.js";
import { alarm, h, show } from "./page.js";
import { attributes, inWords } from "./texts.js";

/** [{section, columns}]: questions that follow each other in one section share a page. */
function sectionsOf(columns) {
  const found = [];
  for (const column of columns) {
    const key = JSON.stringify(column.section ?? null);
    if (found.at(-1)?.key !== key) found.push({ key, section: column.section, columns: [] });
    found.at(-1).columns.push(column);
  }
  return found;
}

/** A form in #answers, with what a draft kept. `finish` gets the record when all is answered, `changed`
 * what stands in it, `turn` the page that is to be shown; `clear` forgets everything. */
export function survey(columns, { typed: kept, written }, { finish, changed, turn, clear, label = t("blur") }) {
  const sections = sectionsOf(columns);
  const pages = sections.map(({ section, columns: asked }, place) =>
    h("div.page", { hidden: place > 0 },
      sections.length > 1 ? heading(section, place, sections.length) : null,
      asked.map(field),
    ),
  );
  const back = h("button", { type: "button", click: () => turn(at - 1) }, t("previous"));
  const next = h("button.primary", { type: "button" }, t("next"));
  const last = h("button.primary", label);
  const hint = h("p.hint", t("nothingYet"));
  const forget = h("button.quiet", { type: "button", click: clear }, t("clear"));
  const form = h("form", { novalidate: true, autocomplete: "off" },
    pages,
    hint,
    h("div.buttons", back, next, last, forget),
    h("p.hint", t("kept")),
  );
  let at = 0;

  function turnTo(place) {
    at = Math.min(Math.max(place, 0), pages.length - 1);
    for (const [i, page] of pages.entries()) page.hidden = i !== at;
    const isLast = at === pages.length - 1;
    back.hidden = at === 0;
    next.hidden = isLast;
    last.hidden = hint.hidden = !isLast;
    show("answers", sections.length > 1 ? null : h("h2", t("yourAnswers")), form);
  }

  /** What is wrong is shown where it is, on its own page. */
  function check(asked, then) {
    try {
      then(answers(form, asked));
    } catch (error) {
      if (!error.holder) return show("message", alarm(t("notBlurred"), error.message));
      const page = pages.findIndex((one) => one.contains(error.holder));
      if (page !== at) turn(page);
      goTo(error);
    }
  }

  next.addEventListener("click", () => check(sections[at].columns, () => turn(at + 1)));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (at < pages.length - 1) next.click(); // Enter goes on
    else check(columns, finish);
  });
  for (const kind of ["input", "change"]) {
    form.addEventListener(kind, () => {
      showAsked(form, columns);
      changed(typed(form, columns));
    });
  }
  putBack(form, columns, kept, written);
  showAsked(form, columns);
  return { turnTo, pages, record: () => answers(form, columns) };
}

function heading(section, place, all) {
  return h("div.part",
    h("p.hint", t("section", { place: place + 1, all })),
    h("progress", { value: place + 1, max: all, "aria-hidden": "true" }),
    h("h2", { tabindex: "-1", ...attributes(section) }, section ? inWords(section) : t("yourAnswers")),
  );
}

// ---- What is being answered, in this tab's memory alone (sessionStorage): a reload, Back and a lost
// connection lose nothing, and the same answers keep the noise that was drawn for them. It is erased
// when the numbers are handed to the outbox, and ends with the tab.

const keyOf = (fingerprint) => `blurfit:draft:${fingerprint}`;

/** {typed, blurred, written}: what stands in the form, what was drawn for it, and in which language
 * numbers were typed. */
export function draftOf(fingerprint) {
  try {
    const text = recall("sessionStorage", keyOf(fingerprint));
    const { typed = {}, blurred = null, written } = text === null ? {} : JSON.parse(text);
    return { typed, blurred: blurred && awake(blurred), written };
  } catch { return { typed: {}, blurred: null, written: undefined }; }
}

export function saveDraft(fingerprint, { typed, blurred }) {
  const asleep = blurred && { ...blurred, sent: sleeping(blurred.sent) };
  const text = JSON.stringify({ typed, blurred: asleep, written: locale });
  keep("sessionStorage", keyOf(fingerprint), text); // else a reload asks again
}

export const eraseDraft = (fingerprint) => erase("sessionStorage", keyOf(fingerprint));

const sleeping = (sent) => ({ ...sent, identifier: [...sent.identifier] });

const awake = ({ key, record, sent }) =>
  ({ key, record, sent: { ...sent, identifier: Uint8Array.from(sent.identifier) } });
