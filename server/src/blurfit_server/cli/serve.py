"""Run a database: `blurfit serve` with what its first start makes for its owner, the commands that
look after a store, and examples that run on this machine alone.
"""

import datetime as dt
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.resources import as_file
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import click

import blurfit as bf
import blurfit_server
from blurfit import private_files
from blurfit.cli import _common as common
from blurfit.cli._common import (
    STORE,
    Answer,
    AnyFile,
    ExistingFile,
    Out,
    StorePlace,
    command,
    for_scripts,
)
from blurfit.cli.agree import EXAMPLE, SEED, made_up_people
from blurfit.errors import InvalidValueError

_EXISTING = click.Path(exists=True)


@dataclass(frozen=True)
class Serving:
    """What `blurfit serve` is told.

    Options:
        store: sqlite:///file, or postgresql://user@host/name for several processes or hosts; with
            ?password_file=/path at its end, that file holds the password.
        host: The address to listen on.
        public_url (URL): The address at which people reach the service, https://…: through a proxy,
            say.
        port: The port; 0 for any that is free.
        admin_token_file: Where the administrator's token is kept; written at the first start.
        new_admin_token: Replace the administrator's token.
        peer_token_file: A secret shared with the service of an agreement's other database; written
            at the first start, and copied to the other.
        share_key_file: The private key that opens the shares sealed to this database, where an
            agreement has two; written at the first start, which prints the public key.
        signing_key_file: The private key that signs receipts and models, where an agreement names
            its public key; written at the first start, which prints that key. Default: beside an
            SQLite store.
        requests_per_second: Limit for each client's address; 0 for no limit.
        submissions_per_second: Limit for each collection, so that a crowd at one leaves room for
            the others; ten times as many may come at once. 0 for no limit.
        body_limit: The largest request, in MiB.
        tls_certificate: A PEM file, to serve HTTPS.
        tls_key: Its private key.
        trusted_proxies: Addresses of proxies whose X-Forwarded-For is trusted, separated by commas.
        workers: How many processes serve together; several need a PostgreSQL store.
        access_log: Log requests with their addresses.
        log_format: The format of the log on standard error.
    """

    store: str = STORE
    host: str = "127.0.0.1"
    public_url: str | None = None
    port: Annotated[int, click.IntRange(0, 65535)] = 8000
    admin_token_file: AnyFile | None = None
    new_admin_token: bool = False
    peer_token_file: AnyFile | None = None
    share_key_file: AnyFile | None = None
    signing_key_file: AnyFile | None = None
    requests_per_second: Annotated[float, click.FloatRange(0)] = 200.0
    submissions_per_second: Annotated[float, click.FloatRange(0)] = 0.0
    body_limit: int = 32
    tls_certificate: Annotated[str | None, _EXISTING] = None
    tls_key: Annotated[str | None, _EXISTING] = None
    trusted_proxies: str | None = None
    workers: Annotated[int, click.IntRange(1, 64)] = 1
    access_log: bool = False
    log_format: Literal["text", "json"] = "text"


def appoint(store: Any, token_file: Path | None, *, replace: bool = False) -> str:
    """Make sure that there is an administrator's token, and say where it is.

    It is made at the first start, and the store keeps only its hash.
    """
    from blurfit import protocol

    place = f"The administrator's token is in {token_file}"
    if token_file is not None and token_file.exists() and not replace:
        token = protocol.read_token(token_file)
        if not store.appoint(protocol.hashed(token)) and not protocol.matches(
            token, store.administrator()
        ):
            raise InvalidValueError(
                f"Expected {str(token_file)!r} to hold the token of this store's first start. Find "
                "that one, or make a new one with --new-admin-token."
            )
        return f"{place}."
    if store.administrator() is not None and not replace:
        return (
            "The administrator's token is that of the first start; --new-admin-token replaces it."
        )
    token = protocol.new_token()
    if token_file is not None:
        token_file.unlink(missing_ok=True)
        protocol.write_token(token_file, token)
    if not store.appoint(protocol.hashed(token), replace=replace):
        if token_file is not None:
            token_file.unlink()
        return "Another process has just made the administrator's token."
    shown = f"The administrator's token, shown this once, is {token}"
    return shown if token_file is None else f"{place}, which is new."


def share_key_in(path: Path) -> tuple[str, str]:
    """Return the private key that opens shares, made if there is none, and what to say of it."""
    from blurfit.messages.submissions import new_key, public_key

    private, public = key_in("--share-key-file", path, new_key, public_key)
    return private, f"Shares can be sealed to {public} (`blurfit agree --database-key`)."


def signing_key_in(path: Path | None) -> tuple[str | None, str]:
    """Return the private key that signs, likewise; None where there is no place for it."""
    from blurfit.messages.signing import Signer, new_key

    if path is None:
        return None, ""
    private, public = key_in("--signing-key-file", path, new_key, lambda one: Signer(one).key)
    return private, f"It signs with {public} (`blurfit agree --signing-key`)."


def beside(place: str) -> Path | None:
    """Return where an SQLite store's signing key is kept: beside it, and in no backup of it.

    Processes that share a PostgreSQL store need --signing-key-file, with the same file for each.
    """
    from blurfit_server.store.database import file_of

    found = file_of(place)
    return None if found is None else found.with_name(found.name + ".signing-key")


def key_in(
    option: str, path: Path, new_key: Callable[[], str], public_key: Callable[[str], str]
) -> tuple[str, str]:
    """Return the private key in a file, written if there is none, and its public key."""
    from blurfit import protocol

    if not path.exists():
        protocol.write_token(path, new_key())
    private = private_files.read_secret(path)
    try:
        return private, public_key(private)
    except ValueError as error:
        raise InvalidValueError(
            f"Expected {option} {str(path)!r} to hold a private key in 64 hexadecimal digits, as "
            f"this command writes one: {error}."
        ) from error


@command(
    "serve",
    "--store sqlite:///collection.db --port 8000 --admin-token-file token.txt",
    answers=False,
)
def serve(asked: Serving) -> None:
    """Collect submissions over HTTP, lose nothing, publish once."""
    from blurfit import protocol, release_record
    from blurfit_server.service.answers import Metrics
    from blurfit_server.service.app import (
        Limits,
        Service,
        leave_threads_behind,
        refuse_unless_possible,
    )
    from blurfit_server.service.limits import IN_FLIGHT
    from blurfit_server.store.database import CONNECTIONS

    most = asked.body_limit * 2**20
    limits = Limits(
        body_bytes=most,
        bytes_in_flight=max(IN_FLIGHT, 2 * most),  # one address may have half
        requests_per_second=asked.requests_per_second,
        burst=10 * asked.requests_per_second,
        submissions_per_second=asked.submissions_per_second,
    )
    refuse_unless_possible(asked.workers, asked.store)
    known: Any = {"peer_token": None, "share_key": None}
    shared = ""
    if (file := asked.peer_token_file) is not None:
        if not file.exists():
            protocol.write_token(file, protocol.new_token())
            shared = (
                f" {file} is new: give a copy to whoever runs the other database, who starts with "
                "it."
            )
        known["peer_token"] = protocol.read_token(file)
    release_record.require_writable()  # now, rather than when there is something to publish
    with blurfit_server.Store(asked.store) as store:
        said = appoint(store, asked.admin_token_file, replace=asked.new_admin_token) + shared
        if asked.share_key_file is not None:
            known["share_key"], told = share_key_in(asked.share_key_file)
            said = f"{said} {told}"
        known["signing_key"], signs = signing_key_in(asked.signing_key_file or beside(asked.store))
        # In common, as far as there are several.
        known |= {
            "limiter": limits.limiter(),
            "collection_limiter": limits.collection_limiter(),
            "metrics": Metrics(asked.workers),
        }
        if asked.workers == 1:
            run(lambda _: Service(store, limits, **known), asked, said, signs)

    def service(worker: int) -> Service:
        """Return the service of one worker, in a process of its own."""
        known["metrics"].worker = worker
        own = blurfit_server.Store(asked.store, connections=max(CONNECTIONS // asked.workers, 8))
        return Service(own, limits, **known)

    if asked.workers > 1:  # the store is closed here: no connection to it is there to be forked
        run(service, asked, said, signs)
    leave_threads_behind()


def _reading_again(context: Any, certificate: str, key: str | None) -> Callable[..., None]:
    """Return what SIGHUP does: load the new certificate, or keep the old if it is wrong."""

    def again(*_: Any) -> None:
        try:
            context.load_cert_chain(certificate, key)
            click.echo(f"Read {certificate} again.", err=True)
        except OSError as error:  # ssl.SSLError is one
            click.echo(f"Kept the certificate, as {certificate} cannot be used: {error}.", err=True)

    return again


def run(service: Callable[[int], Any], asked: Serving, said: str, signs: str) -> None:
    """Serve until interrupted; SIGHUP reads the certificate and its key again.

    `service` makes the service of a worker, given its number.
    """
    import uvicorn

    from blurfit_server.service import app, limits

    certificate, key, workers = asked.tls_certificate, asked.tls_key, asked.workers
    app.prepare_process()

    def configured_for(served: Any) -> uvicorn.Config:
        config = app.configured(
            served,
            bounds=limits.Bounds(connections=limits.raise_descriptor_limit()),
            host=asked.host,
            port=asked.port,
            access_log=asked.access_log,
            log_level="info" if asked.access_log else "warning",
            log_config=app.configuration(asked.log_format, access=asked.access_log),
            ssl_certfile=certificate,
            ssl_keyfile=key,
            proxy_headers=bool(asked.trusted_proxies),
            forwarded_allow_ips=asked.trusted_proxies or None,
        )
        config.load()
        return config

    if asked.public_url is not None and urlsplit(asked.public_url).scheme != "https":
        raise InvalidValueError(
            f"Expected --public-url {asked.public_url!r} to begin with https://: browsers blur on "
            "no page that others could change on its way."
        )
    if bool(certificate) != bool(key):
        raise InvalidValueError("Expected --tls-certificate and --tls-key together.")
    try:
        config = configured_for(service(0) if workers == 1 else _nobody)
    except OSError as error:
        raise InvalidValueError(
            f"Cannot use --tls-certificate {certificate!r}: {error}."
        ) from error
    try:  # before anyone is told to come
        sockets = app.listening(asked.host, asked.port, workers, config.backlog)
    except OSError as error:
        words = f"Cannot listen on {asked.host}:{asked.port}; try another --port."
        raise InvalidValueError(f"{words} ({error.strerror or error})") from error
    _announce(asked, sockets[0].getsockname()[1], said, signs)
    for number in (signal.SIGINT, signal.SIGTERM):  # a script's shell may have ignored the first
        signal.signal(number, signal.default_int_handler)
    reloads = [signal.SIGHUP] if certificate and hasattr(signal, "SIGHUP") else []

    def reload(config: uvicorn.Config) -> None:
        for number in reloads:
            signal.signal(number, _reading_again(config.ssl, str(certificate), key))

    def work(number: int, own: Any) -> None:
        config = configured_for(service(number))
        reload(config)
        app.Worker(config).run(sockets=[own])

    try:
        if workers == 1:
            reload(config)
            app.Server(config).run(sockets=sockets)
        else:
            app.Workers(work, sockets, reloads).run()
    except KeyboardInterrupt:
        click.echo("Stopped; what was acknowledged is stored.")


async def _nobody(*_: Any) -> None:
    """Serve nobody, as the parent of workers does."""


def _announce(asked: Serving, port: int, said: str, signs: str) -> None:
    """Say where the service is, and what to do next."""
    host, file = asked.host, asked.admin_token_file
    name = f"[{host}]" if ":" in host else host
    here = f"{'https' if asked.tls_certificate else 'http'}://{name}:{port}"
    address = (asked.public_url or here).rstrip("/")
    behind = f", which a proxy passes on to {here}" if asked.public_url else ""
    click.echo(
        f"Serving at {address}{behind} : open it in a browser. For programs: {address}/openapi.json"
    )
    click.echo(said)
    kept = "" if file else "put the token into a file of yours, token.txt; then "
    typed = f"--to {address} --admin-token-file {file or 'token.txt'}"
    click.echo(
        f"Next, in another terminal: {kept}`blurfit open agreement.json {typed}`, or open "
        f"{address}/admin in a browser. Ctrl-C stops the service. {signs}".strip()
    )
    if not asked.tls_certificate and host not in common.LOOPBACK:
        click.echo(
            f"Warning: {host} without TLS: anyone on the way can read tokens and submissions. "
            "Give --tls-certificate and --tls-key, or listen on 127.0.0.1 behind a proxy.",
            err=True,
        )


# ---- looking after a store


@command("token", "--name 'mail office' --right invite --out mail.txt")
def token(
    *,
    store: StorePlace = STORE,
    name: str | None,
    right: Literal["open", "invite", "publish", "read"] | None,
    out: Out | None,
    revoke: bool,
) -> Answer:
    """Grant or revoke a token for one kind of task; without options, list all tokens.

    This takes effect at once, without restarting any service. To rotate a token, grant another
    under a new name, and revoke the first one when nobody uses it any more.

    Options:
        name: The name of the token's holder.
        right: What the new token allows.
        out: Where the new token is written; no copy is kept.
        revoke: Revoke the token of that name.
    """
    from blurfit import protocol

    with blurfit_server.Store(store) as kept:
        if name is None:
            found = kept.granted()
            lines = [f"{one}: {may}" for one, may in found.items()] or ["There are none."]
            return Answer({"tokens": found}, "\n".join(lines))
        if revoke:
            kept.revoke(name)
            return Answer({"revoked": name}, f"The token of {name!r} is revoked.")
        if right is None or out is None:
            raise InvalidValueError("Expected --right and --out with --name, or --revoke.")
        if out.exists():
            raise InvalidValueError(
                f"Expected --out {str(out)!r} to be a new file: the existing one may hold a token."
            )
        secret = protocol.new_token()
        protocol.write_token(out, secret)
        try:
            kept.grant(name, right, protocol.hashed(secret))
        except BaseException:
            out.unlink()
            raise
    sentence = f"Wrote a token for {name!r} to {out}: it allows `{right}`."
    return Answer({"name": name, "right": right, "out": str(out)}, sentence)


@command("deeds", "--store sqlite:///collection.db")
def deeds(*, store: StorePlace = STORE, most: common.AtLeastOne = 50) -> Answer:
    """List what administrators did, newest first: when, who, what, and the outcome.

    Options:
        most: How many to list.
    """
    with blurfit_server.Store(store) as kept:
        found = kept.audit_log(most)
    lines = [
        f"{dt.datetime.fromtimestamp(one.second, dt.UTC):%Y-%m-%d %H:%M:%S}Z  {one.outcome}  "
        f"{one.name}: {one.what} {one.fingerprint or ''}".rstrip()
        for one in found
    ]
    facts = {"deeds": [asdict(one) for one in found]}
    return Answer(facts, "\n".join(lines) or "Nothing yet.")


@command("backup", "--store sqlite:///collection.db --out monday.db")
def backup(*, store: StorePlace = STORE, out: Out) -> Answer:
    """Copy a store while it is in use, as of one moment, and check the copy.

    A plain copy of the file lacks whatever is still in SQLite's log, which may be everything. Back
    up PostgreSQL with pg_dump.

    Options:
        out: The backup, a new file.
    """
    from blurfit_server.store.store import backup as copy

    found = copy(store, out)
    facts = {"out": str(out), "collections": found.collections, "submissions": found.submissions}
    sentence = (
        f"Wrote {out}: {found.collections:,} collections with {found.submissions:,} submissions, "
        "each sum compared with its checksum."
    )
    return Answer(facts, sentence)


@command("restore", "monday.db --store sqlite:///collection.db")
def restore(
    file: AnyFile | None,
    *,
    store: StorePlace = STORE,
    original_lost: bool,
    in_place: bool,
    moved: bool,
) -> Answer:
    """Restore a store from a backup FILE, so that nothing can be published a second time.

    What was published stays. Collections that had published nothing are closed for good, because
    the original may have published since then, from other people; see --original-lost.

    Options:
        store: The new store.
        original_lost: Declare that the original is lost, and that it published and exported nothing
            after the backup: collections of `moment` with one database then go on. Plans of waves
            end anyway.
        in_place: The store exists already, filled by pg_restore or put back with other files: close
            what must not publish again.
        moved: The store exists already, complete, was moved here, and is nowhere else: nothing is
            closed.
    """
    from blurfit_server.store.database import file_of
    from blurfit_server.store.store import Copied, mark_restored, move_here
    from blurfit_server.store.store import restore as copy

    if (file is not None) + in_place + moved != 1:
        raise InvalidValueError(
            "Expected the FILE of a backup, or --in-place or --moved without one."
        )
    if moved and original_lost:
        raise InvalidValueError("`--moved` cannot be combined with `--original-lost`.")
    if moved:
        found = Copied(0, 0)
        move_here(store)
        sentence = f"{store} goes on here. Remove every other copy of it."
    elif file is None:
        found = Copied(0, 0, mark_restored(store, original_lost=original_lost))
        sentence = f"Marked {store} as restored."
    else:
        target = file_of(store)
        if target is None:
            raise InvalidValueError(
                f"Expected --store to be a file in SQLite, and got {store!r}. Fill PostgreSQL with "
                "pg_restore, then use --in-place."
            )
        found = copy(file, target, original_lost=original_lost)
        sentence = (
            f"Wrote {target}: {found.collections:,} collections with {found.submissions:,} "
            "submissions."
        )
    if found.closed:
        sentence += (
            f" {len(found.closed):,} of them are closed for good, because the original may have "
            f"published since: {', '.join(one[:12] for one in found.closed)}."
        )
    facts = {"store": store, **asdict(found), "closed": list(found.closed)}
    return Answer(facts, sentence, f"`blurfit serve --store {store} …`.")


@command("export", "agreement.json --store sqlite:///collection.db --out submissions.parquet")
def export(agreement: ExistingFile, *, store: str, out: Out) -> Answer:
    """Write the submissions of a closed collection to a file, for `blurfit learn`.

    If no model has been published yet, from now on it is learned from this file, alone or with
    others: the store publishes none, and exports to no second place. A copy of the file is enough
    to break this: keep only one.

    Options:
        store: sqlite:///file, or postgresql://user@host/name.
        out: Where they are written: a .parquet or .arrow file.
    """
    from blurfit_server.store.export import export as write

    agreed = bf.Agreement.load(agreement)
    with blurfit_server.Store(store) as kept, common.watched("export") as watch:
        rows = write(kept, agreed.fingerprint, out, watch)
    return Answer(
        {"rows": rows, "fingerprint": agreed.fingerprint, "out": str(out)},
        f"Wrote {rows:,} submissions to {out}.",
        f"`blurfit learn {agreement} {out}`.",
    )


# ---- examples


@command("quickstart", "--people 1000 --seconds 10", answers=False)
def quickstart(
    *,
    people: Annotated[int, click.IntRange(1000, 100_000)] = 2_000,
    seconds: Annotated[float, click.FloatRange(0, 3600)] = 30.0,
    browser: bool = True,
    publish: bool,
) -> None:
    """Run two databases and a survey on this machine: take part, and read the model.

    Nothing closes before you press Enter, and nothing is kept afterwards.

    Options:
        people: How many generated people take part; this is also the quorum.
        seconds: How long they take to arrive.
        browser: Open the pages in a browser or not.
        publish: Publish without waiting for Enter.
    """
    import webbrowser

    from rich.console import Console

    from blurfit_server import demo

    ended, said_so = threading.Event(), threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: ended.set())

    def wait_for_enter() -> None:
        if publish or sys.stdin.readline():
            said_so.set()

    threading.Thread(target=wait_for_enter, daemon=True).start()
    with as_file(EXAMPLE) as example:
        schema = bf.Schema.from_toml(example)
    demo.quickstart(
        schema,
        made_up_people(people, SEED),
        seconds,
        console=Console(),
        publish=said_so,
        ended=ended,
        opened=webbrowser.open if browser else lambda _: None,
    )
    click.echo("Ended. Next: `blurfit init survey` writes a survey of your own.")


@command("demo", "--contributors 2000 --out demo")
def demo_command(
    *,
    one_database: bool,
    waves: bool,
    contributors: Annotated[int, click.IntRange(1000)] = 50_000,
    out: Annotated[Path, click.Path(path_type=Path, file_okay=False)] = Path("build/demo"),
) -> Answer:
    """Let generated people share answers between two databases, and get a model.

    Options:
        one_database: Send each blurred record to one database, a collector whom all trust.
        waves: Ask for a label in waves, for the exact logistic model.
        contributors: How many generated people take part.
        out: Where the plot and the model are written.
    """
    from rich.console import Console

    from blurfit_server import demo

    console = Console(stderr=for_scripts())
    demo.main(out, contributors, console, two_databases=not one_database, waves=waves)
    facts = {"contributors": contributors, "databases": 1 if one_database else 2}
    return Answer(
        {**facts, "waves": waves, "out": str(out)},
        f"{contributors:,} people took part; everything is in {out}.",
    )
