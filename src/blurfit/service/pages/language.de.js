// The pages' own words in German. {values} are put in by the page.

export default {
  yes: "ja",
  no: "nein",
  unsaid: "Möchte ich nicht sagen",
  notSaid: "nicht gesagt",
  bounds: "{lower} bis {upper}",
  "question.above": "{title} liegt über {above}",
  language: "Sprache",
  motto: "Erst selbst verwischen, dann gemeinsam lernen",
  contribute: "Mitmachen",
  allCollections: "Alle Sammlungen",
  // the top
  title: "Helfen Sie, mehr zu erfahren: {target}",
  documentTitle: "Mitmachen: {target}",
  lead: "Ihre Antworten werden auf diesem Gerät verwischt, bevor etwas gesendet wird.",
  checking: "Die Vereinbarung wird geprüft …",
  "checked.link": "Dies ist die Vereinbarung, die Ihr Link nennt.",
  "checked.noise":
    "Ihr Rauschen wurde auf diesem Gerät nachgerechnet: Es hält ε = {epsilon}, δ = {delta} ein.",
  "checked.label": "Was geprüft wurde",
  "truth.label": "Kurz gesagt",
  "truth.asks": "Wer fragt",
  "truth.sees": "Wer was sieht",
  "truth.public": "Was öffentlich wird",
  "asks.organiser": "{organiser} fragt.",
  "asks.nobody": "Die Vereinbarung nennt niemanden, der fragt.",
  "asks.purpose": "Zweck: {purpose}",
  "asks.contact": "Kontakt: {contact}",
  "sees.one":
    "Die Datenbank erhält von Ihnen {count} verwischte Zahlen und niemals Ihre Antworten.",
  "sees.two":
    "{first} und {second} erhalten je einen Anteil, der wie Zufallszahlen aussieht. Keiner von beiden sieht Ihre Antworten, solange nicht beide ihr Wort brechen.",
  "public.any":
    "Verwischte Summen über mindestens {quorum} {what} und Modelle daraus. Sie verraten {little} über eine einzelne Person.",
  "guess.model":
    "Wer alles über Sie weiß außer einer Antwort und zwei für gleich wahrscheinlich hält, trifft mit dem Veröffentlichten höchstens {hundred} von 100 Mal die richtige; eine Münze trifft 50 von 100 Mal.",
  "guess.model.surely":
    "Wer alles über Sie weiß außer einer Antwort und zwei für gleich wahrscheinlich hält, könnte im schlimmsten Fall aus dem Veröffentlichten erkennen, welche Ihre ist.",
  "guess.local":
    "Wer die Datenbank betreibt, könnte zwei solche Antworten höchstens {hundred} von 100 Mal unterscheiden.",
  "guess.local.surely":
    "Wer die Datenbank betreibt, könnte im schlimmsten Fall zwei Antworten fast jedes Mal unterscheiden.",
  terms: "Die Vereinbarung in Worten",
  // what keeps somebody from answering
  refuses: "Diese Seite macht hier nicht weiter",
  closed: "Diese Sammlung ist geschlossen.",
  "closed.nothing": "Es wird nichts mehr angenommen.",
  "closed.since": "Antworten wurden bis {moment} angenommen, seitdem nicht mehr.",
  closes: "Offen bis {moment}.",
  "closed.model": "Ihr Modell ist veröffentlicht:",
  "closed.see": "zum Modell",
  paused: "Diese Erhebung pausiert.",
  "paused.how": "Zurzeit wird nichts angenommen. Kommen Sie später über denselben Link wieder.",
  invitationUsed: "Dieser Link wurde schon benutzt.",
  "invitationUsed.how":
    "Jeder Link gilt einmal, für eine Person. Wenn nicht Sie ihn benutzt haben, bitten Sie den Absender um einen neuen. (Ein unvollständiger Link, oder einer für eine andere Erhebung, sieht genauso aus.)",
  invitationNeeded: "Sie brauchen eine Einladung.",
  "invitationNeeded.how":
    "Öffnen Sie den Link, den Sie bekommen haben: Hinter dem Zeichen # steht Ihre Einladung.",
  // the form
  yourAnswers: "Ihre Antworten",
  nothingYet: "Noch wird nichts gesendet: Sie sehen zuerst, was das Gerät verlassen würde.",
  blur: "Antworten verwischen",
  next: "Weiter",
  previous: "Zurück",
  section: "Teil {place} von {all}",
  clear: "Antworten löschen",
  kept: "Ihre Antworten bleiben nur in diesem Tab, bis sie gesendet sind oder er geschlossen wird.",
  choose: "Bitte wählen",
  search: "Suchen",
  shown: "{shown} von {all} werden gezeigt",
  reading: "Gelesen als {value}",
  "wrong.choose": "Bitte wählen Sie etwas für „{question}“.",
  "wrong.number": "Bitte geben Sie eine Zahl für „{question}“ ein, {bounds}.",
  "wrong.outside": "{bounds}. {bound} nehmen?",
  use: "{bound} nehmen",
  notBlurred: "Ihre Antworten konnten nicht verwischt werden",
  // the preview
  "preview.label": "Was dieses Gerät verlassen wird",
  "preview.what":
    "Nur die verwischten Zahlen. Unten sehen Sie für jede Antwort, wie gut sie sich daraus ablesen ließe, von jemandem, der alles andere über Sie wüsste. Der Punkt ist Ihre Eingabe; die Wolke ist alles, was die Zahlen verraten.",
  "preview.send": "Verwischte Zahlen senden",
  "preview.change": "Antworten ändern",
  "preview.together": "Die Wolken oben zeigen, was beide zusammen ablesen könnten.",
  "preview.hardly":
    "Selbst die Datenbank, die Ihre Zahlen speichert, kann Ihre Antworten kaum von anderen unterscheiden.",
  "preview.trust":
    "Wo in den Wolken oben Ihre Antworten liegen, könnte sie nicht erkennen. Wenn Ihnen das zu wenig ist, senden Sie nur, falls Sie darauf vertrauen, dass niemand, der diese Datenbank betreibt, in einzelne Einsendungen schaut. In der Summe über alle verbirgt Sie das Rauschen viel besser:",
  "preview.model": "Das veröffentlichte Modell könnte {little} über Sie verraten.",
  "preview.numbers": "Die Zahlen selbst: {count}, in {bytes} Bytes",
  "preview.numbers.proof": "Die Zahlen selbst: {count}, aus denen Nachweis und Anteile gemacht sind",
  "preview.squares":
    "Jedes Quadrat ist eine Zahl, blau unter und orange über null. Das linke Bild verlässt das Gerät nie.",
  "preview.leaving": "Die Zahlen, die das Gerät verlassen",
  "preview.besides":
    "Mit ihnen gehen eine zufällige Kennung, damit sie einmal zählen, und der Fingerabdruck der Vereinbarung. Sonst nichts.",
  "preview.besides.proof":
    "Mit ihnen gehen eine zufällige Kennung, damit sie einmal zählen, der Fingerabdruck der Vereinbarung und der Nachweis. Sonst nichts.",
  "belief.yours": "Ihre Antwort: ",
  "belief.anything": "Aus den verwischten Zahlen: Es könnte fast alles sein.",
  "belief.range": "Aus den verwischten Zahlen: am ehesten {low} bis {high}.",
  "belief.any": "Aus den verwischten Zahlen: Es könnte jede davon sein.",
  "belief.surely": "Aus den verwischten Zahlen: sicher „{answer}“.",
  "belief.likely": "Aus den verwischten Zahlen: „{answer}“ mit {percent} %.",
  "belief.said": "eine Antwort",
  "picture.exact": "Ihre Antworten als Zahlen",
  "picture.sent": "Was das Gerät verlässt",
  "picture.colours": "{title}: {count} Zahlen als Farben",
  // sending
  nothingSent: "Es wurde nichts gesendet",
  "sending.offline":
    "Sie sind offline. Die verwischten Zahlen bleiben auf diesem Gerät und werden einmal gesendet, sobald die Verbindung wieder da ist.",
  "sending.retry":
    "Der Dienst ist nicht erreichbar. Neuer Versuch in {seconds} s; dieselben Zahlen, einmal gezählt.",
  "sending.again": "Wird noch einmal gesendet …",
  sending: "Wird gesendet …",
  tryAgain: "Mit denselben Zahlen noch einmal versuchen",
  outcome: "Was geschehen ist",
  thanks: "Danke. Ihre verwischten Zahlen sind angekommen.",
  "thanks.kept":
    "Sie liegen in der Datenbank und zählen einmal. Ihre Antworten haben dieses Gerät nie verlassen.",
  received: "Empfangen",
  identifier: "Kennung",
  digest: "SHA-256 des Gesendeten",
  agreement: "Vereinbarung",
  shareOf: "Anteil von {name}",
  saveReceipt: "Quittung speichern",
  signed: "Unterschrieben",
  "signed.checked": "mit dem Schlüssel der Vereinbarung, auf diesem Gerät geprüft",
  "signed.unchecked":
    "Dieser Browser kann die Unterschrift nicht prüfen; `blurfit verify` kann es.",
  notSigned: "Die Antwort ist nicht mit dem Schlüssel der Vereinbarung unterschrieben",
  "notSigned.how":
    "Vielleicht hat etwas anderes anstelle des Dienstes geantwortet; Ihre Zahlen gelten nicht als gespeichert. Versuchen Sie es später noch einmal.",
  withdraw: "Zurückziehen",
  "withdraw.how":
    "Bis die Sammlung schließt, können Sie zurückziehen, was Sie gesendet haben: hier, oder mit der Quittung von überall. Behalten Sie sie für sich: Wer sie hat, kann auch zurückziehen.",
  "withdraw.sure":
    "Ihre verwischten Zahlen zurückziehen? Sie können nicht noch einmal mitmachen: Zweimal verwischte Zahlen würden mehr über Sie verraten als vereinbart.",
  withdrawn: "Ihre verwischten Zahlen sind zurückgezogen.",
  "withdrawn.how": "Sie sind in keiner Summe und werden in keiner sein. Von hier wird nichts mehr gesendet.",
  notWithdrawn: "Es wurde nichts zurückgezogen",
  watch: "Sammlung ansehen",
  somebodyElse: "Jemand anderes möchte hier antworten",
  "somebodyElse.sure":
    "Jede Person macht einmal mit. Antwortet jetzt jemand anderes? Die Quittung auf diesem Gerät wird vergessen.",
  noStorage:
    "Dieser Browser lässt die Seite nichts speichern; ein Neuladen könnte Ihre Antworten ein zweites Mal verwischen und senden. Erlauben Sie Websitedaten oder verlassen Sie den privaten Modus und versuchen Sie es noch einmal.",
  twice:
    "Dieser Browser hat seine verwischten Zahlen schon in einer anderen Welle gesendet: Jede Person wird einmal gefragt.",
  noConnection: "Keine Verbindung",
  "noConnection.detail":
    "Der Dienst antwortet nicht. Prüfen Sie die Verbindung und versuchen Sie es noch einmal.",
  noAnswer: "Keine Antwort",
  "noAnswer.detail": "Der Dienst hat mit {status} geantwortet.",
  // the ledger
  "ledger.title": "Was dieser Browser an diesen Dienst gesendet hat",
  "ledger.entry": "{at}: {title}, {promise}",
  "ledger.total":
    "Alles zusammen: ε = {epsilon} bei δ = 10⁻⁶ für jemanden, der überall dabei ist (nur das Veröffentlichte; gaußsches Rauschen addiert sich als √Σμ²).",
  "ledger.here": "Diese Liste liegt nur auf diesem Gerät, und niemand sonst kann sie sehen.",
  "ledger.erase": "Liste löschen",
  "ledger.again": "Sie haben zu diesem Zweck schon einmal beigetragen.",
  "ledger.again.detail":
    "Am {at} hat dieser Browser an „{title}“ gesendet, zum selben Zweck. Beide Versprechen gelten, aber zusammen verraten sie mehr über Sie: ε = {epsilon} bei δ = 10⁻⁶ statt {alone}.",
  // promises
  "local.strong": "Die Datenbank könnte aus einer einzelnen Einsendung sehr wenig erfahren.",
  "local.some":
    "Die Datenbank könnte aus einer einzelnen Einsendung etwas erfahren, aber nicht sicher sein.",
  "local.weak": "Die Datenbank könnte aus einer einzelnen Einsendung sehr viel erfahren.",
  "together.strong":
    "Zusammen könnten sie aus einer einzelnen Einsendung sehr wenig erfahren.",
  "together.some":
    "Zusammen könnten sie aus einer einzelnen Einsendung etwas erfahren, aber nicht sicher sein.",
  "together.weak":
    "Zusammen könnten sie aus einer einzelnen Einsendung sehr viel erfahren.",
  either:
    "Ihre verwischten Zahlen werden zwischen {first} und {second} geteilt. Jeder Anteil für sich sind Zufallszahlen, die nichts über Sie sagen. Beide erfahren nur die Summen, aus denen das Modell entsteht, und diese verraten {little} über Sie.",
  condition:
    "Das gilt nur, wenn die beiden ihre Anteile nicht zusammenlegen, wenn sich beide an das Verfahren halten und wenn keiner Teilnehmer erfindet: Mindestens {quorum} der Gezählten müssen ehrliche Personen sein. Einladungen, die jede Datenbank selbst vergibt, sollen erfundene fernhalten.",
  "condition.anyone":
    "Das gilt nur, wenn die beiden ihre Anteile nicht zusammenlegen, wenn sich beide an das Verfahren halten und wenn keiner Teilnehmer erfindet: Mindestens {quorum} der Gezählten müssen ehrliche Personen sein. Alle dürfen teilnehmen, sooft sie wollen; nichts hält also erfundene fern, und niemand kann das prüfen.",
  "little.next": "so gut wie nichts",
  "little.limited": "nur begrenzt viel",
  "little.lot": "im schlimmsten Fall viel",
  noBound: "Ein so großes ε begrenzt nicht sinnvoll, was ein Angreifer schließen könnte.",
  "change.replace": "Hätten Sie irgendetwas anderes geantwortet",
  "change.zero": "Wäre Ihr Datensatz leer gewesen",
  times:
    "{change}, so wäre alles, was man aus dem Modell schließt, höchstens {times}-mal so wahrscheinlich wie jetzt, zuzüglich einer Wahrscheinlichkeit von {delta}.",
  "premise.invited":
    "Das braucht ehrliche Personen, mindestens {quorum} der Eingeladenen: Sie haben das vereinbarte Rauschen hinzugefügt und verraten es niemandem.",
  "premise.anyone":
    "Jeder darf teilnehmen, so oft er will, daher weiß niemand, wie viele der Einsendungen von ehrlichen Personen stammen. Für eine ehrliche Person braucht das andere, die ebenfalls ehrlich sind, {quorum} mit ihr, und niemand kann das prüfen: Ein Absender mit genügend Einsendungen, deren Rauschen er kennt, hebt es auf.",
  "premise.database":
    "Das gilt auch, wenn alle anderen Teilnehmer lügen, solange die Datenbank ehrlich ist: Sie fügt einmal eigenes Rauschen hinzu. Wenn sie es nicht ist:",
  "premise.databases":
    "Das gilt auch, wenn alle anderen Teilnehmer lügen, solange eine der beiden Datenbanken ehrlich ist: Jede fügt einmal eigenes Rauschen hinzu. Wenn keine es ist:",
  "condition.noise":
    "Das gilt nur, wenn die beiden ihre Anteile nicht zusammenlegen und wenn die jeweils andere sich an das Verfahren hält und ihr eigenes Rauschen hinzufügt: dann auch, wenn eine von ihnen Teilnehmer erfindet.",
  openToAnyone: "Diese Sammlung ist für jeden offen.",
  people: "Personen",
  submissions: "Einsendungen",
  countBelow: "{count} von mindestens {quorum} {what}",
  count: "{count} {what}; mindestens {quorum} sind nötig",
  target: "{title} über {above}",
  "fact.learned": "Was gelernt wird",
  "fact.from": "Woraus",
  "fact.quorum": "Nichts wird veröffentlicht",
  "fact.quorum.words": "unter {quorum} {what}",
  "fact.admission": "Wer teilnehmen darf",
  "fact.invited": "wer eingeladen ist",
  "fact.anyone": "jeder",
  "fact.signed": "Quittungen und Modelle sind unterschrieben mit",
  "fact.sends": "Jede Person sendet",
  "fact.sends.words": "{count} verwischte Zahlen, einmal",
  "fact.promise": "Versprechen an alle über das Veröffentlichte",
  "fact.published": "Was veröffentlicht werden darf",
  "fact.groups": "Gruppen",
  "fact.groups.words":
    "Summen werden nach {title} getrennt, damit Gruppen verglichen werden können. Zu welcher Gruppe Sie gehören, wird verwischt wie alles andere.",
  "fact.weights": "Gewichte",
  "fact.weights.words":
    "Wie viel Ihre Antworten zählen, folgt aus {title}{rule}, nach dieser öffentlichen Regel. Es wird verwischt wie alles andere.",
  "fact.rows": "Öffentliche Zeilen",
  "fact.rows.words":
    "Modelle dürfen neben einer öffentlichen Datei mit Antworten anderer gelesen werden, für die das Versprechen nicht gilt. Ihr SHA-256 ist {digest}.",
  "fact.collected": "Gesammelt von",
  and: " und ",
  "learned.classes": "{title}, eines von {levels}",
  "learned.label": "ob für jemanden gilt: {target}",
  "releases.any":
    "die verwischten Summen einer abgeschlossenen Sammlung, einmal, und beliebig viele Modelle daraus.{more} Das Versprechen gilt für alles zusammen.",
  "releases.more":
    " Aus denselben Summen darf jeder auch {others} aus den anderen Antworten vorhersagen.",
  "against.alone": "höchstens ε = {epsilon} bei δ = {delta}.",
  "against.one": "Eine Einsendung, von der Datenbank gesehen",
  "against.either": "Versprechen gegenüber jedem von beiden",
  "against.either.words": "ε = {epsilon}, δ = {delta}, wie für das Modell. {condition}",
  proof: "Nachweis",
  "proof.words":
    "Ein Nachweis geht mit, dass Ihre Zahlen nicht länger sind als eine ehrliche Einsendung. {first} und {second} prüfen ihn gemeinsam und erfahren sonst nichts daraus. Wer ihn nicht erbringt, wird nicht gezählt.",
  "against.both": "Eine Einsendung, wenn beide ihre Anteile zusammenlegen",
  "column.yesno": "{title} ({yes} oder {no})",
  derived: "{title} (berechnet aus {from}: {rule})",
  "derived.bands": "in Klassen mit den Grenzen {edges}",
  "derived.curve": "wie nahe es an jedem der Werte {edges} liegt",
  "derived.poly": "eine Kurve vom Grad {degree}",
  "derived.cross": "jedes Paar von Antworten",
  "derived.product": "eines mal das andere, jedes auf einer Skala von −1 bis 1",
  "derived.above": "ob es über {above} liegt",
  "derived.level": "ob es {level} ist",
  "column.unsaid": ", oder nicht gesagt",
  // waves
  "wave.which": "Welle {place} von {all}",
  "wave.first": "{which}: Sie gehört zum Plan, und niemand wird zweimal gefragt.",
  "wave.before": "Welle 1",
  "wave.befores": "den Wellen 1 bis {last}",
  "wave.later":
    "{which}. Wie Ihre Antworten zu Zahlen werden, gibt dieser Dienst bekannt, nach dem, was aus {before} veröffentlicht wurde. Das Rauschen wurde auf diesem Gerät geprüft: Es hält das Versprechen, was immer bekannt gegeben wird.",
  "wave.planned": "kommt noch",
  "wave.collecting": "sammelt jetzt",
  "wave.fixed": "wird veröffentlicht",
  "wave.released": "abgeschlossen",
  "wave.dropped": "unter der Mindestzahl beendet, nie veröffentlicht",
  "wave.people": "{quorum} Personen",
  "wave.counted": "{count} von {quorum} Personen",
  "wave.line": "Welle {place}, {state}: {people}.",
  "taught.curve": "Sie hat die Kurve gelehrt, von der die nächste Welle ausgeht.",
  "taught.label": "Etwa {percent} % sagen ja, soweit das Rauschen es erkennen lässt.",
  "taught.count": "Im Mittel etwa {average}, soweit das Rauschen es erkennen lässt.",
  "taught.number": "Im Mittel etwa {average}; das erste Modell irrt um etwa {off}.",
  "once.title": "Sie haben schon mitgemacht.",
  "once.text":
    "Gefragt wird in Wellen, jede Person einmal. Dieser Browser hat seine verwischten Zahlen in einer früheren Welle gesendet, und eine zweite verwischte Kopie würde mehr über Sie verraten, als versprochen wurde.",
  "once.receipt": "Zu Ihrer Quittung",
  "lot.invited":
    "Ein Los entscheidet, in welcher Welle jemand ist. Es wird mit der Einladung gezogen, bevor irgendetwas über die Person bekannt ist; also kann sich niemand seine Welle aussuchen.",
  "lot.anyone":
    "Eine Münze, die jedes Gerät selbst wirft, entscheidet, in welcher Welle jemand ist. Niemand kann eine Münze prüfen: Wer lügt, kann sich seine Welle aussuchen.",
  "lot.margin":
    "Die Welle wird veröffentlicht, wenn mindestens {people} mitgemacht haben, und das Versprechen gilt, wenn mindestens {honest} von ihnen ehrlich sind: wenn sich höchstens {percent} % absprechen.",
  "group.later.title":
    "Ihre Gruppe wird später gefragt.",
  "group.later.text":
    "Gefragt wird in {all} Gruppen, einer nach der anderen, und ein Los hat Sie der Gruppe {group} zugeteilt. Jetzt wird Gruppe {now} gefragt.",
  "group.later.link":
    "Kommen Sie später mit demselben Link wieder: Ihre Einladung bleibt gültig.",
  "group.later.device":
    "Kommen Sie später wieder, mit diesem Gerät, das sich Ihre Gruppe merkt.",
  "group.over.title":
    "Ihre Gruppe ist vollzählig.",
  "group.over.text":
    "Gefragt wird in {all} Gruppen, einer nach der anderen, und ein Los hatte Sie der Gruppe {group} zugeteilt, aus der genug mitgemacht haben. Niemand kann die Gruppe wechseln. Von Ihren Antworten hat nichts dieses Gerät verlassen. Danke, dass Sie gekommen sind.",
  "late.title": "Ihre Welle wurde geschlossen, bevor Ihre Zahlen ankamen.",
  "late.text":
    "Sie zählen nicht, und nichts wurde behalten. Für die nächste Welle werden sie nicht noch einmal verwischt: Zwei verwischte Kopien zusammen würden mehr über Sie verraten, als versprochen wurde. Trotzdem vielen Dank.",
  "waves.ended": "Alle Wellen sind vorbei, und es wird nichts mehr gesammelt.",
  "wave.beforeTwo":
    "den Wellen 1 und 2",
  "waves.held":
    "Der Plan ruht: Diese Welle sammelt weiter, und vorerst wird keine Welle veröffentlicht.",
  "waves.model":
    "Gefragt wurde in {all} Wellen mit {counts} und {last} Personen.",
  "releases.waves":
    "die verwischten Summen jeder Welle, einmal, und Modelle daraus.{more} Jede Person ist in einer Welle, deren Rauschen das Versprechen für alles zusammen hält.",
  "releases.first":
    " Aus den Summen der ersten Welle darf jeder auch {others} vorhersagen.",
  // refusals of the service
  "problem.not-invited": "Sie brauchen eine Einladung",
  "problem.other-group": "Jetzt wird eine andere Gruppe gefragt",
  "problem.closed": "Die Sammlung ist geschlossen",
  "problem.date-closed": "Die Sammlung hat zu ihrem Termin geschlossen",
  "problem.conflict": "Das widerspricht dem, was schon da ist",
  "problem.invalid": "Das kann nicht angenommen werden",
  "problem.unknown-collection": "Unter diesem Fingerabdruck wird nichts gesammelt",
};
