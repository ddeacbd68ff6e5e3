"""Codes of invitations, module by module those of another library."""

import segno

# Full versions, in which nothing is padded: the other library pads with a byte more than it must.
FULL = {1: 14, 2: 26, 4: 62, 6: 106, 7: 122, 8: 152, 9: 180, 10: 213, 11: 251, 14: 362, 20: 666}
LINK = "https://first.example/c/" + "a1" * 32 + "#invitation=" + "Zq-_9" * 120


def test_codes_are_segnos(run) -> None:
    """With the mask that the other library chose."""
    made = [
        (LINK[:length], segno.make(LINK[:length], error="m", boost_error=False, mode="byte"))
        for length in FULL.values()
    ]
    given = [[text, one.mask] for text, one in made]
    answers = run("qr", "return given.map((one) => qr.qrMatrix(...one));", given)
    for found, (_, expected), version in zip(answers, made, FULL, strict=True):
        assert found["version"] == expected.version == version
        assert found["matrix"] == [[bool(one) for one in row] for row in expected.matrix]


def test_a_link_takes_the_smallest_version_and_the_mask_of_least_penalty(run) -> None:
    text = LINK[:139]
    found = run("qr", "return qr.qrMatrix(given);", text)
    assert found["version"] == segno.make(text, error="m", boost_error=False).version
    assert found["mask"] in range(8)


def test_a_picture_has_a_quiet_zone(run) -> None:
    svg = run("qr", "return qr.qrCode(given);", "https://first.example/")
    assert svg.startswith('<svg xmlns="http://www.w3.org/2000/svg" viewBox="-4 -4 ')
    assert svg.count("h1v1h-1z") > 100
