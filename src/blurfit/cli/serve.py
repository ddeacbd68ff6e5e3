"""Run a database: `blurfit serve` with what its first start makes for its owner, the commands that
look after a store, and examples that run on this machine alone.
"""

import datetime as dt
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from importlib.resources import as_file
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

import blurfit as bf
from blurfit.cli import _common as common
from blurfit.cli._common import Answer
from blurfit.cli.agree import EXAMPLE, SEED, made_up_people
from blurfit.errors import InvalidValueError
from blurfit.protocol import tokens

if TYPE_CHECKING:
    from blurfit.service.server import Style
    from blurfit.store.store import Right


def appoint(store: Any, token_file: Path | None, *, replace: bool = False) -> str:
    """Make sure that there is an administrator's token, and say where it is.

    It is made at the first start, and the store keeps only its hash.
    """
    written = token_file is not None and token_file.exists()
    if written and not replace:
        assert token_file is not None
        token = tokens.read_token(token_file)
        if not store.appoint(tokens.hashed(token)) and not tokens.matches(
            token, store.administrator()
        ):
            raise InvalidValueError(
                f"Expected {str(token_file)!r} to hold the token of this store's first start. Find "
                "that one, or make a new one with --new-admin-token."
            )
        return f"The administrator's token is in {token_file}."
    if store.administrator() is not None and not replace:
        return (
            "The administrator's token is that of the first start; --new-admin-token replaces it."
        )
    token = tokens.new_token()
    if token_file is not None:
        token_file.unlink(missing_ok=True)
        tokens.write_token(token_file, token)
    if not store.appoint(tokens.hashed(token), replace=replace):
        if token_file is not None:
            token_file.unlink()
        return "Another process has just made the administrator's token."
    if token_file is not None:
        return f"The administrator's token is in {token_file}, which is new."
    return f"The administrator's token, shown this once, is {token}"


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
    from blurfit.store.database import file_of

    found = file_of(place)
    return None if found is None else found.with_name(found.name + ".signing-key")


def key_in(
    option: str, path: Path, new_key: Callable[[], str], public_key: Callable[[str], str]
) -> tuple[str, str]:
    """Return the private key in a file, written if there is none, and its public key."""
    if not path.exists():
        tokens.write_token(path, new_key())
    private = path.read_text().strip()
    try:
        return private, public_key(private)
    except ValueError as error:
        raise InvalidValueError(
            f"Expected {option} {str(path)!r} to hold a private key in 64 hexadecimal digits, as "
            f"this command writes one: {error}."
        ) from error


@click.command(
    epilog="Example: blurfit serve --store sqlite:///collection.db --port 8000 "
    "--admin-token-file token.txt"
)
@common.store_option(
    "sqlite:///file, or postgresql://user@host/name for several processes or hosts; with "
    "?password_file=/path at its end, that file holds the password."
)
@common.with_default("--host", "127.0.0.1", "The address to listen on.")
@click.option(
    "--public-url",
    metavar="URL",
    help="The address at which people reach the service, https://…: through a proxy, say.",
)
@common.with_default(
    "--port", 8000, "The port; 0 for any that is free.", type=click.IntRange(0, 65535)
)
@common.token_option(
    "Where the administrator's token is kept; written at the first start.", required=False
)
@click.option("--new-admin-token", is_flag=True, help="Replace the administrator's token.")
@click.option(
    "--peer-token-file",
    type=common.ANY_FILE,
    help="A secret shared with the service of an agreement's other database; written at the first "
    "start, and copied to the other.",
)
@click.option(
    "--share-key-file",
    type=common.ANY_FILE,
    help="The private key that opens the shares sealed to this database, where an agreement has "
    "two; written at the first start, which prints the public key.",
)
@click.option(
    "--signing-key-file",
    type=common.ANY_FILE,
    help="The private key that signs receipts and models, where an agreement names its public key; "
    "written at the first start, which prints that key. Default: beside an SQLite store.",
)
@common.with_default(
    "--requests-per-second", 200.0, "Limit for each client's address; 0 for no limit."
)
@common.with_default(
    "--submissions-per-second",
    0.0,
    "Limit for each collection, so that a crowd at one leaves room for the others; ten times "
    "as many may come at once. 0 for no limit.",
)
@common.with_default("--body-limit", 32, "The largest request, in MiB.")
@click.option("--tls-certificate", type=click.Path(exists=True), help="A PEM file, to serve HTTPS.")
@click.option("--tls-key", type=click.Path(exists=True), help="Its private key.")
@click.option(
    "--trusted-proxies",
    default="",
    help="Addresses of proxies whose X-Forwarded-For is trusted, separated by commas.",
)
@common.with_default(
    "--workers",
    1,
    "How many processes serve together; several need a PostgreSQL store.",
    type=click.IntRange(1, 64),
)
@click.option("--access-log", is_flag=True, help="Log requests with their addresses.")
@common.with_default(
    "--log-format",
    "text",
    "The format of the log on standard error.",
    type=click.Choice(["text", "json"]),
)
def serve(
    place: str,
    host: str,
    port: int,
    token_file: Path | None,
    new_admin_token: bool,
    peer_token_file: Path | None,
    share_key_file: Path | None,
    signing_key_file: Path | None,
    requests_per_second: float,
    submissions_per_second: float,
    body_limit: int,
    workers: int,
    **network: Any,
) -> None:
    """Collect submissions over HTTP, lose nothing, publish once."""
    from blurfit.service.answers import Metrics
    from blurfit.service.app import Limits, Service
    from blurfit.service.limits import IN_FLIGHT
    from blurfit.service.server import leave_threads_behind, refuse_unless_possible
    from blurfit.store.database import CONNECTIONS

    limits = Limits(
        body_bytes=body_limit * 2**20,
        bytes_in_flight=max(IN_FLIGHT, 2 * body_limit * 2**20),  # one address may have half
        requests_per_second=requests_per_second,
        burst=10 * requests_per_second,
        submissions_per_second=submissions_per_second,
    )
    refuse_unless_possible(workers, place)
    peer_token, shared = None, ""
    if peer_token_file is not None:
        if not peer_token_file.exists():
            tokens.write_token(peer_token_file, tokens.new_token())
            shared = (
                f" {peer_token_file} is new: give a copy to whoever runs the other database, who "
                "starts with it."
            )
        peer_token = tokens.read_token(peer_token_file)
    with bf.Store(place) as store:
        said = appoint(store, token_file, replace=new_admin_token) + shared
        share_key = None
        if share_key_file is not None:
            share_key, told = share_key_in(share_key_file)
            said = f"{said} {told}"
        # In common, as far as there are several.
        together: Any = {
            "limiter": limits.limiter(),
            "collection_limiter": limits.collection_limiter(),
            "metrics": Metrics(workers),
        }
        signing_key, signs = signing_key_in(signing_key_file or beside(place))
        known: Any = {"peer_token": peer_token, "share_key": share_key, "signing_key": signing_key}
        network |= {"signs": signs, "token_file": token_file}
        if workers == 1:
            run(lambda _: Service(store, limits, **known, **together), host, port, said, **network)

    def service(worker: int) -> Service:
        """Return the service of one worker, in a process of its own."""
        together["metrics"].worker = worker
        own = bf.Store(place, connections=max(CONNECTIONS // workers, 8))
        return Service(own, limits, **known, **together)

    if workers > 1:  # the store is closed here: no connection to it is there to be forked
        run(service, host, port, said, workers=workers, **network)
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


def run(
    service: Callable[[int], Any],
    host: str,
    port: int,
    said: str,
    *,
    signs: str = "",
    token_file: Path | None = None,
    workers: int = 1,
    tls_certificate: str | None = None,
    tls_key: str | None = None,
    public_url: str | None = None,
    trusted_proxies: str = "",
    access_log: bool = False,
    log_format: "Style" = "text",
) -> None:
    """Serve until interrupted; SIGHUP reads the certificate and its key again.

    `service` makes the service of a worker, given its number.
    """
    import uvicorn

    from blurfit.service.limits import Bounds, raise_descriptor_limit
    from blurfit.service.server import (
        Server,
        Worker,
        Workers,
        configuration,
        configured,
        listening,
        prepare_process,
    )

    prepare_process()

    def configured_for(app: Any) -> uvicorn.Config:
        config = configured(
            app,
            bounds=Bounds(connections=raise_descriptor_limit()),
            host=host,
            port=port,
            access_log=access_log,
            log_level="info" if access_log else "warning",
            log_config=configuration(log_format, access=access_log),
            ssl_certfile=tls_certificate,
            ssl_keyfile=tls_key,
            proxy_headers=bool(trusted_proxies),
            forwarded_allow_ips=trusted_proxies or None,
        )
        config.load()
        return config

    if public_url is not None and urlsplit(public_url).scheme != "https":
        raise InvalidValueError(
            f"Expected --public-url {public_url!r} to begin with https://: browsers blur on no "
            "page that others could change on its way."
        )
    if bool(tls_certificate) != bool(tls_key):
        raise InvalidValueError("Expected --tls-certificate and --tls-key together.")
    try:
        config = configured_for(service(0) if workers == 1 else _nobody)
    except OSError as error:
        raise InvalidValueError(
            f"Cannot use --tls-certificate {tls_certificate!r}: {error}."
        ) from error
    try:
        sockets = listening(host, port, workers, config.backlog)  # before anyone is told to come
    except OSError as error:
        words = f"Cannot listen on {host}:{port}; try another --port."
        raise InvalidValueError(f"{words} ({error.strerror or error})") from error
    port = sockets[0].getsockname()[1]
    _announce(host, port, said, signs, token_file, public_url, tls=bool(tls_certificate))
    for number in (signal.SIGINT, signal.SIGTERM):  # a script's shell may have ignored the first
        signal.signal(number, signal.default_int_handler)
    reloads = [signal.SIGHUP] if tls_certificate and hasattr(signal, "SIGHUP") else []

    def reload(config: uvicorn.Config) -> None:
        for number in reloads:
            signal.signal(number, _reading_again(config.ssl, str(tls_certificate), tls_key))

    def work(number: int, own: Any) -> None:
        config = configured_for(service(number))
        reload(config)
        Worker(config).run(sockets=[own])

    try:
        if workers == 1:
            reload(config)
            Server(config).run(sockets=sockets)
        else:
            Workers(work, sockets, reloads).run()
    except KeyboardInterrupt:
        click.echo("Stopped; what was acknowledged is stored.")


async def _nobody(*_: Any) -> None:
    """Serve nobody, as the parent of workers does."""


def _announce(
    host: str,
    port: int,
    said: str,
    signs: str,
    token_file: Path | None,
    public_url: str | None,
    *,
    tls: bool,
) -> None:
    """Say where the service is, and what to do next."""
    name = f"[{host}]" if ":" in host else host
    here = f"{'https' if tls else 'http'}://{name}:{port}"
    address = (public_url or here).rstrip("/")
    behind = f", which a proxy passes on to {here}" if public_url else ""
    click.echo(
        f"Serving at {address}{behind} : open it in a browser. For programs: {address}/openapi.json"
    )
    click.echo(said)
    kept = "" if token_file else "put the token into a file of yours, token.txt; then "
    typed = f"--to {address} --admin-token-file {token_file or 'token.txt'}"
    click.echo(
        f"Next, in another terminal: {kept}`blurfit open agreement.json {typed}`, or open "
        f"{address}/admin in a browser. Ctrl-C stops the service. {signs}".strip()
    )
    if not tls and host not in common.LOOPBACK:
        click.echo(
            f"Warning: {host} without TLS: anyone on the way can read tokens and submissions. "
            "Give --tls-certificate and --tls-key, or listen on 127.0.0.1 behind a proxy.",
            err=True,
        )


# ---- looking after a store


_RIGHTS = ("open", "invite", "publish", "read")  # of `blurfit.store.store`, without its imports


@common.command("token", "--name 'mail office' --right invite --out mail.txt")
@common.store_option()
@click.option("--name", help="The name of the token's holder.")
@click.option("--right", type=click.Choice(_RIGHTS), help="What the new token allows.")
@common.out_file("Where the new token is written; no copy is kept.")
@click.option("--revoke", is_flag=True, help="Revoke the token of that name.")
def token(
    place: str,
    name: str | None,
    right: "Right | None",
    out: Path | None,
    revoke: bool,
) -> Answer:
    """Grant or revoke a token for one kind of task; without options, list all tokens.

    This takes effect at once, without restarting any service. To rotate a token, grant another
    under a new name, and revoke the first one when nobody uses it any more.
    """
    with bf.Store(place) as store:
        if name is None:
            found = store.granted()
            lines = [f"{one}: {may}" for one, may in found.items()] or ["There are none."]
            return Answer({"tokens": found}, "\n".join(lines))
        if revoke:
            store.revoke(name)
            return Answer({"revoked": name}, f"The token of {name!r} is revoked.")
        if right is None or out is None:
            raise InvalidValueError("Expected --right and --out with --name, or --revoke.")
        if out.exists():
            raise InvalidValueError(
                f"Expected --out {str(out)!r} to be a new file: the existing one may hold a token."
            )
        secret = tokens.new_token()
        tokens.write_token(out, secret)
        try:
            store.grant(name, right, tokens.hashed(secret))
        except BaseException:
            out.unlink()
            raise
    sentence = f"Wrote a token for {name!r} to {out}: it allows `{right}`."
    return Answer({"name": name, "right": right, "out": str(out)}, sentence)


@common.command("deeds", "--store sqlite:///collection.db")
@common.store_option()
@common.with_default("--most", 50, "How many to list.", type=click.IntRange(1))
def deeds(place: str, most: int) -> Answer:
    """List what administrators did, newest first: when, who, what, and the outcome."""
    with bf.Store(place) as store:
        found = store.audit_log(most)
    lines = [
        f"{dt.datetime.fromtimestamp(one.second, dt.UTC):%Y-%m-%d %H:%M:%S}Z  {one.outcome}  "
        f"{one.name}: {one.what} {one.fingerprint or ''}".rstrip()
        for one in found
    ]
    facts = {"deeds": [asdict(one) for one in found]}
    return Answer(facts, "\n".join(lines) or "Nothing yet.")


@common.command("backup", "--store sqlite:///collection.db --out monday.db")
@common.store_option()
@common.out_file("The backup, a new file.", required=True)
def backup(place: str, out: Path) -> Answer:
    """Copy a store while it is in use, as of one moment, and check the copy.

    A plain copy of the file lacks whatever is still in SQLite's log, which may be everything. Back
    up PostgreSQL with pg_dump.
    """
    from blurfit.store.store import backup as copy

    found = copy(place, out)
    facts = {"out": str(out), "collections": found.collections, "submissions": found.submissions}
    sentence = (
        f"Wrote {out}: {found.collections:,} collections with {found.submissions:,} submissions, "
        "each sum compared with its checksum."
    )
    return Answer(facts, sentence)


@common.command("restore", "monday.db --store sqlite:///collection.db")
@click.argument("file", required=False, type=common.ANY_FILE)
@common.store_option("The new store.")
@click.option(
    "--original-lost",
    is_flag=True,
    help="Declare that the original is lost, and that it published and exported nothing after the "
    "backup: collections of `moment` with one database then go on. Plans of waves end anyway.",
)
@click.option(
    "--in-place",
    is_flag=True,
    help="The store exists already, filled by pg_restore: close what must not publish again.",
)
def restore(file: Path | None, place: str, original_lost: bool, in_place: bool) -> Answer:
    """Restore a store from a backup FILE, so that nothing can be published a second time.

    What was published stays. Collections that had published nothing are closed for good, because
    the original may have published since then, from other people; see --original-lost.
    """
    from blurfit.store.database import file_of
    from blurfit.store.store import Copied, mark_restored
    from blurfit.store.store import restore as copy

    if in_place == (file is not None):
        raise InvalidValueError("Expected the FILE of a backup, or --in-place without one.")
    if file is None:
        found = Copied(0, 0, mark_restored(place, original_lost=original_lost))
        sentence = f"Marked {place} as restored."
    else:
        target = file_of(place)
        if target is None:
            raise InvalidValueError(
                f"Expected --store to be a file in SQLite, and got {place!r}. Fill PostgreSQL with "
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
    facts = {
        "store": place,
        "collections": found.collections,
        "submissions": found.submissions,
        "closed": list(found.closed),
    }
    return Answer(facts, sentence, f"`blurfit serve --store {place} …`.")


@common.command(
    "export", "agreement.json --store sqlite:///collection.db --out submissions.parquet"
)
@common.agreement_file
@click.option(
    "--store", "place", required=True, help="sqlite:///file, or postgresql://user@host/name."
)
@common.out_file("Where they are written: a .parquet or .arrow file.", required=True)
def export(agreement: Path, place: str, out: Path) -> Answer:
    """Write the submissions of a closed collection to a file, for `blurfit learn`.

    If no model has been published yet, from now on it is learned from this file, alone or with
    others: the store publishes none, and exports to no second place. A copy of the file is enough
    to break this: keep only one.
    """
    from blurfit.files.learn import export as write

    agreed = bf.Agreement.load(agreement)
    with bf.Store(place) as store, common.watched("export") as watch:
        rows = write(store, agreed.fingerprint, out, watch)
    return Answer(
        {"rows": rows, "fingerprint": agreed.fingerprint, "out": str(out)},
        f"Wrote {rows:,} submissions to {out}.",
        f"`blurfit learn {agreement} {out}`.",
    )


# ---- examples


@click.command(epilog="Example: blurfit quickstart --people 1000 --seconds 10")
@common.with_default(
    "--people",
    2_000,
    "How many generated people take part; this is also the quorum.",
    type=click.IntRange(1000, 100_000),
)
@common.with_default(
    "--seconds", 30.0, "How long they take to arrive.", type=click.FloatRange(0, 3600)
)
@click.option("--browser/--no-browser", default=True, help="Open the pages in a browser or not.")
@click.option("--publish", "at_once", is_flag=True, help="Publish without waiting for Enter.")
def quickstart(people: int, seconds: float, browser: bool, at_once: bool) -> None:
    """Run two databases and a survey on this machine: take part, and read the model.

    Nothing closes before you press Enter, and nothing is kept afterwards.
    """
    import webbrowser

    from rich.console import Console

    from blurfit import demo

    ended, publish = threading.Event(), threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: ended.set())

    def wait_for_enter() -> None:
        if at_once or sys.stdin.readline():
            publish.set()

    threading.Thread(target=wait_for_enter, daemon=True).start()
    with as_file(EXAMPLE) as example:
        schema = bf.Schema.from_toml(example)
    demo.quickstart(
        schema,
        made_up_people(people, SEED),
        seconds,
        console=Console(),
        publish=publish,
        ended=ended,
        opened=webbrowser.open if browser else lambda _: None,
    )
    click.echo("Ended. Next: `blurfit init survey` writes a survey of your own.")


@common.command("demo", "--contributors 2000 --out demo")
@click.option(
    "--one-database",
    is_flag=True,
    help="Send each blurred record to one database, a collector whom all trust.",
)
@click.option(
    "--waves", is_flag=True, help="Ask for a label in waves, for the exact logistic model."
)
@common.with_default(
    "--contributors", 50_000, "How many generated people take part.", type=click.IntRange(1000)
)
@common.with_default(
    "--out",
    Path("build/demo"),
    "Where the plot and the model are written.",
    type=click.Path(path_type=Path, file_okay=False),
)
def demo_command(one_database: bool, waves: bool, contributors: int, out: Path) -> Answer:
    """Let generated people share answers between two databases, and get a model."""
    from rich.console import Console

    from blurfit import demo

    console = Console(stderr=common.for_scripts())
    demo.main(out, contributors, console, two_databases=not one_database, waves=waves)
    facts = {"contributors": contributors, "databases": 1 if one_database else 2}
    return Answer(
        {**facts, "waves": waves, "out": str(out)},
        f"{contributors:,} people took part; everything is in {out}.",
    )
