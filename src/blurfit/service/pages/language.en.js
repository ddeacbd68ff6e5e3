// The pages' own words in English. {values} are put in by the page.

export default {
  yes: "yes",
  no: "no",
  unsaid: "Prefer not to say",
  notSaid: "not said",
  bounds: "{lower} to {upper}",
  "question.above": "{title} is above {above}",
  language: "Language",
  motto: "Blur your own record, then fit together",
  contribute: "Contribute",
  allCollections: "All collections",
  // the top
  title: "Help to learn about {target}",
  documentTitle: "Contribute: {target}",
  lead: "Your answers are blurred on this device before anything is sent.",
  checking: "Checking the agreement…",
  "checked.link": "This is the agreement that your link names.",
  "checked.noise":
    "Its noise was computed again on this device: it keeps ε = {epsilon}, δ = {delta}.",
  "checked.label": "What was checked",
  "truth.label": "In short",
  "truth.asks": "Who asks",
  "truth.sees": "Who sees what",
  "truth.public": "What becomes public",
  "asks.organiser": "{organiser} asks.",
  "asks.nobody": "The agreement does not say who asks.",
  "asks.purpose": "Purpose: {purpose}",
  "asks.contact": "Contact: {contact}",
  "sees.one": "The database gets {count} blurred numbers from you, and never your answers.",
  "sees.two":
    "{first} and {second} each get a share that looks like random numbers. Neither sees your answers unless both break their word.",
  "public.any":
    "Blurred sums over at least {quorum} {what}, and models made from them. They give away {little} about any one person.",
  "guess.model":
    "Somebody who knows everything about you but one answer, and finds two equally likely, picks the right one from what is published at most {hundred} times in 100; a coin is right 50 times in 100.",
  "guess.model.surely":
    "Somebody who knows everything about you but one answer, and finds two equally likely, could in the worst case tell from what is published which one is yours.",
  "guess.local":
    "Whoever runs the database could tell two such answers apart at most {hundred} times in 100.",
  "guess.local.surely":
    "Whoever runs the database could, in the worst case, tell two answers apart almost every time.",
  terms: "The agreement in words",
  // what keeps somebody from answering
  refuses: "This page refuses to go on",
  closed: "This collection is closed.",
  "closed.nothing": "Nothing more is accepted.",
  "closed.since": "It took answers until {moment}. Nothing more is accepted.",
  closes: "Open until {moment}.",
  "closed.model": "Its model has been published:",
  "closed.see": "see the model",
  paused: "This collection is paused.",
  "paused.how": "Nothing is accepted for now. Come back later with the same link.",
  invitationUsed: "This link has been used.",
  "invitationUsed.how":
    "Each link works once, for one person. If it was not you who used it, ask whoever sent it for another. (A link that is incomplete, or meant for another collection, looks the same.)",
  invitationNeeded: "An invitation is needed.",
  "invitationNeeded.how":
    "Open the link that you were sent: it carries your invitation after a # sign.",
  // the form
  yourAnswers: "Your answers",
  nothingYet: "Nothing is sent yet: you will see what would leave first.",
  blur: "Blur my answers",
  next: "Next",
  previous: "Back",
  section: "Part {place} of {all}",
  clear: "Clear my answers",
  kept: "Your answers are kept in this tab alone, until they are sent or the tab is closed.",
  choose: "Please choose",
  search: "Search",
  shown: "{shown} of {all} shown",
  reading: "Read as {value}",
  "wrong.choose": "Please choose one for “{question}”.",
  "wrong.number": "Please enter a number for “{question}”, {bounds}.",
  "wrong.outside": "{bounds}. Use {bound}?",
  use: "Use {bound}",
  notBlurred: "Your answers could not be blurred",
  // the preview
  "preview.label": "What will leave this device",
  "preview.what":
    "Only the blurred numbers. For each answer you see below how well it could be read back from them, by someone who knew everything else about you. The dot is what you typed; the cloud is all that the numbers tell.",
  "preview.send": "Send the blurred numbers",
  "preview.change": "Change my answers",
  "preview.together": "The clouds above show what both together could read.",
  "preview.hardly":
    "Even the database that stores your numbers can hardly tell your answers from any others.",
  "preview.trust":
    "It could not tell where in the clouds above your answers lie. If that is too little for you, send them only if you trust whoever runs this database not to look into single submissions. In the sum over everyone the blur hides you much better:",
  "preview.model": "The published model could tell {little} about you.",
  "preview.numbers": "The numbers themselves: {count}, in {bytes} bytes",
  "preview.numbers.proof": "The numbers themselves: {count}, from which the proof and the shares are made",
  "preview.squares":
    "Each square is one number, blue below and orange above zero. The left picture never leaves.",
  "preview.leaving": "The numbers that leave",
  "preview.besides":
    "With them go a random identifier, so that they are counted once, and the fingerprint of the agreement. Nothing else.",
  "preview.besides.proof":
    "With them go a random identifier, so that they are counted once, the fingerprint of the agreement, and the proof. Nothing else.",
  "belief.yours": "Your answer: ",
  "belief.anything": "From the blurred numbers: it could be almost anything.",
  "belief.range": "From the blurred numbers: most likely {low} to {high}.",
  "belief.any": "From the blurred numbers: it could be any of them.",
  "belief.surely": "From the blurred numbers: surely “{answer}”.",
  "belief.likely": "From the blurred numbers: “{answer}” with {percent} %.",
  "belief.said": "an answer",
  "picture.exact": "Your answers as numbers",
  "picture.sent": "What leaves",
  "picture.colours": "{title}: {count} numbers as colours",
  // sending
  nothingSent: "Nothing was sent",
  "sending.offline":
    "You are offline. The blurred numbers are kept on this device and will be sent, once, when the connection is back.",
  "sending.retry":
    "The service could not be reached. Trying again in {seconds} s; the same numbers, counted once.",
  "sending.again": "Sending again…",
  sending: "Sending…",
  tryAgain: "Try again with the same numbers",
  outcome: "What happened",
  thanks: "Thank you. Your blurred numbers have arrived.",
  "thanks.kept":
    "They are on the database’s disk and count once. Your answers never left this device.",
  received: "Received",
  identifier: "Identifier",
  digest: "SHA-256 of what was sent",
  agreement: "Agreement",
  shareOf: "Share of {name}",
  saveReceipt: "Save the receipt",
  signed: "Signed",
  "signed.checked": "with the key of the agreement, checked on this device",
  "signed.unchecked": "This browser cannot check the signature; `blurfit verify` can.",
  notSigned: "The answer is not signed with the key of the agreement",
  "notSigned.how":
    "Something else may have answered in place of the service, so your numbers do not count as stored. Try again later.",
  withdraw: "Withdraw",
  "withdraw.how":
    "Until the collection closes you can withdraw what you sent: here, or anywhere with the receipt. Keep it to yourself: whoever has it can withdraw, too.",
  "withdraw.sure":
    "Withdraw your blurred numbers? You cannot take part again: a second set of numbers would tell more about you than was agreed.",
  withdrawn: "Your blurred numbers are withdrawn.",
  "withdrawn.how": "They are in no sum, and will be in none. Nothing more is sent from here.",
  notWithdrawn: "Nothing was withdrawn",
  watch: "Watch the collection",
  somebodyElse: "Somebody else wants to answer here",
  "somebodyElse.sure":
    "Each person contributes once. Is it somebody else who is going to answer now? The receipt on this device will be forgotten.",
  noStorage:
    "This browser does not let the page keep anything, so a reload could blur and send your answers a second time. Allow site data, or leave private browsing; then try again.",
  twice:
    "This browser has sent its blurred numbers in another wave already: each person is asked once.",
  noConnection: "No connection",
  "noConnection.detail": "The service does not answer. Check the connection and try again.",
  noAnswer: "No answer",
  "noAnswer.detail": "The service answered {status}.",
  // the ledger
  "ledger.title": "What this browser has sent to this service",
  "ledger.entry": "{at}: {title}, {promise}",
  "ledger.total":
    "All of it together: ε = {epsilon} at δ = 10⁻⁶ for whoever is in each of them (what is published alone; Gaussian noise adds up as √Σμ²).",
  "ledger.here": "This list is on this device alone, and nobody else can see it.",
  "ledger.erase": "Erase the list",
  "ledger.again": "You have contributed to this purpose before.",
  "ledger.again.detail":
    "On {at} this browser sent to “{title}”, for the same purpose. Both promises hold, but together they tell more about you: ε = {epsilon} at δ = 10⁻⁶ instead of {alone}.",
  // promises
  "local.strong": "The database could learn very little from a single submission.",
  "local.some":
    "The database could learn something from a single submission, but could not be sure of it.",
  "local.weak": "The database could learn a great deal from a single submission.",
  "together.strong":
    "Together they could learn very little from a single submission.",
  "together.some":
    "Together they could learn something from a single submission, but could not be sure of it.",
  "together.weak":
    "Together they could learn a great deal from a single submission.",
  either:
    "Your blurred numbers are shared between {first} and {second}. Either share alone is random numbers that say nothing about you. All that either of them learns is the sums from which the model is made, and these give away {little} about you.",
  condition:
    "This holds only if the two do not put their shares together, if each follows the protocol, and if neither invents contributors: at least {quorum} of those who are counted must be honest people. Invitations, which each database gives out itself, are there to keep invented ones out.",
  "condition.anyone":
    "This holds only if the two do not put their shares together, if each follows the protocol, and if neither invents contributors: at least {quorum} of those who are counted must be honest people. Anyone may take part, as often as they like, so nothing keeps invented ones out, and nobody can check this.",
  "little.next": "next to nothing",
  "little.limited": "only a limited amount",
  "little.lot": "a lot, in the worst case,",
  noBound: "An ε as large as this gives no useful bound on what an attacker could infer.",
  "change.replace": "Had you answered anything else",
  "change.zero": "Had your record been blank",
  times:
    "{change}, whatever anyone concludes from the model would be at most {times} times as likely as it is now, plus a probability of {delta}.",
  "premise.invited":
    "This needs honest people, at least {quorum} of those who were invited: they added the noise agreed on, and tell it to nobody.",
  "premise.anyone":
    "Anyone may take part, as often as they like, so nobody can tell how many of the submissions are honest people’s. For one honest person this needs others who are honest too, {quorum} with her, and nobody can check that: one sender with enough submissions of known noise voids it.",
  "premise.database":
    "This holds even if every other contributor lies, as long as the database is honest: noise of its own was added, once. If it is not:",
  "premise.databases":
    "This holds even if every other contributor lies, as long as one of the two databases is honest: noise of its own was added, once. If it is not:",
  "condition.noise":
    "This holds only if the two do not put their shares together, and if the other one follows the protocol and adds its own noise: then it holds even if one of them invents contributors.",
  openToAnyone: "This collection is open to anyone.",
  people: "people",
  submissions: "submissions",
  countBelow: "{count} of at least {quorum} {what}",
  count: "{count} {what}; at least {quorum} are needed",
  target: "{title} above {above}",
  "fact.learned": "What is learned",
  "fact.from": "From what",
  "fact.quorum": "Nothing is published",
  "fact.quorum.words": "below {quorum} {what}",
  "fact.admission": "Who may take part",
  "fact.invited": "those who are invited",
  "fact.anyone": "anyone",
  "fact.signed": "Receipts and models are signed with",
  "fact.sends": "Each sends",
  "fact.sends.words": "{count} blurred numbers, once",
  "fact.promise": "Promise to everyone in what is published",
  "fact.published": "What may be published",
  "fact.groups": "Groups",
  "fact.groups.words":
    "Sums are kept apart by {title}, so that groups can be compared. Which group you are in is blurred like all else.",
  "fact.weights": "Weights",
  "fact.weights.words":
    "How much your answers count follows from {title}{rule}, by this public rule. It is blurred like all else.",
  "fact.rows": "Public rows",
  "fact.rows.words":
    "Models may be read beside a public file of other people’s answers, which is not covered by the promise. Its SHA-256 is {digest}.",
  "fact.collected": "Collected by",
  and: " and ",
  "learned.classes": "{title}, which is one of {levels}",
  "learned.label": "whether someone’s answer is {target}",
  "releases.any":
    "the blurred sums of one final collection, once, and any number of models computed from them.{more} The promise covers all of it together.",
  "releases.more": " From the same sums anyone may also predict {others} by the other answers.",
  "against.alone": "at most ε = {epsilon} at δ = {delta}.",
  "against.one": "One submission, seen by the database",
  "against.either": "Promise against either of them",
  "against.either.words": "ε = {epsilon}, δ = {delta}, as for the model. {condition}",
  proof: "Proof",
  "proof.words":
    "A proof goes along that your numbers are no longer than an honest submission. {first} and {second} check it together and learn nothing else from it. Whoever gives no such proof is not counted.",
  "against.both": "One submission, if both put their shares together",
  "column.yesno": "{title} ({yes} or {no})",
  derived: "{title} (computed from {from}: {rule})",
  "derived.bands": "in bands that meet at {edges}",
  "derived.curve": "how near it is to each of {edges}",
  "derived.poly": "a curve of degree {degree}",
  "derived.cross": "each pair of answers",
  "derived.product": "one times the other, each on a scale from −1 to 1",
  "derived.above": "whether it is above {above}",
  "derived.level": "whether it is {level}",
  "column.unsaid": ", or not said",
  // waves
  "wave.which": "Wave {place} of {all}",
  "wave.first": "{which}: it is the plan’s own, and nobody is asked twice.",
  "wave.before": "wave 1",
  "wave.befores": "waves 1 to {last}",
  "wave.later":
    "{which}. How your answers become numbers is announced by this service, from what {before} published. Its noise was checked on this device: it keeps the promise whatever is announced.",
  "wave.planned": "to come",
  "wave.collecting": "collecting now",
  "wave.fixed": "being published",
  "wave.released": "done",
  "wave.dropped": "ended below its quorum, never published",
  "wave.people": "{quorum} people",
  "wave.counted": "{count} of {quorum} people",
  "wave.line": "Wave {place}, {state}: {people}.",
  "taught.curve": "It taught the curve from which the next wave starts.",
  "taught.label": "About {percent} % say yes, as far as its noise lets one see.",
  "taught.count": "About {average} on average, as far as its noise lets one see.",
  "taught.number": "About {average} on average; the first model is off by about {off}.",
  "once.title": "You have taken part already.",
  "once.text":
    "People are asked in waves, each person once. This browser has sent its blurred numbers in an earlier wave, and a second blurred copy would tell more about you than was promised.",
  "once.receipt": "See your receipt",
  "lot.invited":
    "A lot decides which wave a person is in. It is drawn with the invitation, before anything is known of them, so nobody can choose.",
  "lot.anyone":
    "A coin that each device tosses decides which wave a person is in. Nobody can check a coin: whoever lies can choose their wave.",
  "lot.margin":
    "The wave is published when at least {people} have taken part, and the promise holds if at least {honest} of them are honest: if at most {percent} % collude.",
  "group.later.title":
    "Your group is asked later.",
  "group.later.text":
    "People are asked in {all} groups, one after the other, and a lot has put you into group {group}. Group {now} is asked now.",
  "group.later.link":
    "Come back later with the same link: your invitation stays good.",
  "group.later.device":
    "Come back later, on this device, which remembers your group.",
  "group.over.title":
    "Your group is complete.",
  "group.over.text":
    "People are asked in {all} groups, one after the other, and a lot had put you into group {group}, of which enough have taken part. Nobody can change groups. Nothing of your answers has left this device. Thank you for coming.",
  "late.title": "Your wave closed before your numbers arrived.",
  "late.text":
    "They are not counted, and nothing was kept. They will not be blurred again for the next wave: two blurred copies together would tell more about you than was promised. Thank you all the same.",
  "waves.ended": "All waves are over, and nothing more is collected.",
  "wave.beforeTwo":
    "waves 1 and 2",
  "waves.held":
    "The plan is held: this wave goes on collecting, and no wave is published for now.",
  "waves.model":
    "They were asked in {all} waves, of {counts} and {last} people.",
  "releases.waves":
    "the blurred sums of each wave, once, and models computed from them.{more} Each person is in one wave, whose noise keeps the promise for all of it together.",
  "releases.first":
    " From the first wave’s sums anyone may also predict {others}.",
  // refusals of the service
  "problem.not-invited": "An invitation is needed",
  "problem.other-group": "Another group of people is asked now",
  "problem.closed": "The collection is closed",
  "problem.date-closed": "The collection closed at its date",
  "problem.conflict": "This contradicts what is there already",
  "problem.invalid": "This cannot be accepted",
  "problem.unknown-collection": "Nothing is collected under this fingerprint",
};
