"""What both ends spell alike, the pages among them."""

from importlib.resources import files

from blurfit.protocol import wire


def test_the_pages_use_the_same_words() -> None:
    pages = files("blurfit.service").joinpath("pages")
    outbox, submission = (
        pages.joinpath(f"{name}.js").read_text() for name in ("outbox", "submission")
    )
    assert f'headers["{wire.INVITATION}"]' in outbox
    assert f"{wire.path_of('${fingerprint}')}{wire.SUBMISSIONS}`" in outbox
    assert f'"{wire.BINARY}"' in submission


def test_a_media_type_has_no_parameters() -> None:
    assert wire.media_type(" Application/JSON ;charset=utf-8") == wire.JSON
    assert wire.media_type("") == ""
