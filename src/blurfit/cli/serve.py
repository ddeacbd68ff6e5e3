"""`blurfit serve`: the database as a service, and what its first start makes for its owner."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import blurfit as bf
from blurfit.cli._common import (
    ANY_FILE,
    EXISTING_FILE,
    store_option,
    token_option,
    with_default,
)
from blurfit.errors import InvalidValueError
from blurfit.protocol import tokens

if TYPE_CHECKING:
    from blurfit.service.server import Style


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
    from blurfit.messages.shares import new_key, public_key

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


LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.command(
    epilog="Example: blurfit serve --store sqlite:///collection.db --port 8000 "
    "--admin-token-file token.txt"
)
@store_option(
    "sqlite:///file, or postgresql://user@host/name for several processes or hosts; with "
    "?password_file=/path at its end, that file holds the password."
)
@with_default("--host", "127.0.0.1", "The address to listen on.")
@with_default("--port", 8000, "The port; 0 for any that is free.", type=click.IntRange(0, 65535))
@token_option(
    "Where the administrator's token is kept; written at the first start.", required=False
)
@click.option("--new-admin-token", is_flag=True, help="Replace the administrator's token.")
@click.option(
    "--peer-token-file",
    type=EXISTING_FILE,
    help="A secret shared with the service of an agreement's other database.",
)
@click.option(
    "--share-key-file",
    type=ANY_FILE,
    help="The private key that opens the shares sealed to this database, where an agreement has "
    "two; written at the first start, which prints the public key.",
)
@click.option(
    "--signing-key-file",
    type=ANY_FILE,
    help="The private key that signs receipts and models, where an agreement names its public key; "
    "written at the first start, which prints that key. Default: beside an SQLite store.",
)
@with_default("--requests-per-second", 200.0, "Limit for each client's address; 0 for no limit.")
@with_default(
    "--submissions-per-second",
    0.0,
    "Limit for each collection, so that a crowd at one leaves room for the others; ten times "
    "as many may come at once. 0 for no limit.",
)
@with_default("--body-limit", 32, "The largest request, in MiB.")
@click.option("--tls-certificate", type=click.Path(exists=True), help="A PEM file, to serve HTTPS.")
@click.option("--tls-key", type=click.Path(exists=True), help="Its private key.")
@click.option(
    "--trusted-proxies",
    default="",
    help="Addresses of proxies whose X-Forwarded-For is trusted, separated by commas.",
)
@with_default(
    "--workers",
    1,
    "How many processes serve together; several need a PostgreSQL store.",
    type=click.IntRange(1, 64),
)
@click.option("--access-log", is_flag=True, help="Log requests with their addresses.")
@with_default(
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
    from blurfit.service.app import Limits, Service
    from blurfit.service.limits import IN_FLIGHT
    from blurfit.service.metrics import Metrics
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
    peer_token = tokens.read_token(peer_token_file) if peer_token_file else None
    with bf.Store(place) as store:
        said = appoint(store, token_file, replace=new_admin_token)
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
    trusted_proxies: str = "",
    access_log: bool = False,
    log_format: "Style" = "text",
) -> None:
    """Serve until interrupted; SIGHUP reads the certificate and its key again.

    `service` makes the service of a worker, given its number.
    """
    import uvicorn

    from blurfit.service.front import Bounds, raise_descriptor_limit
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
    _announce(host, port, said, signs, token_file, tls=bool(tls_certificate))
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
    host: str, port: int, said: str, signs: str, token_file: Path | None, *, tls: bool
) -> None:
    """Say where the service is, and what to do next."""
    name = f"[{host}]" if ":" in host else host
    address = f"{'https' if tls else 'http'}://{name}:{port}"
    click.echo(f"Serving at {address} : open it in a browser. For programs: {address}/openapi.json")
    click.echo(said)
    kept = "" if token_file else "put the token into a file of yours, token.txt; then "
    typed = f"--to {address} --admin-token-file {token_file or 'token.txt'}"
    click.echo(
        f"Next, in another terminal: {kept}`blurfit open agreement.json {typed}`, or open "
        f"{address}/admin in a browser. Ctrl-C stops the service. {signs}".strip()
    )
    if not tls and host not in LOOPBACK:
        click.echo(
            f"Warning: {host} without TLS: anyone on the way can read tokens and submissions. "
            "Give --tls-certificate and --tls-key, or listen on 127.0.0.1 behind a proxy.",
            err=True,
        )
