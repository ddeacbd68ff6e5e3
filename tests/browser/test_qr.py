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
    body = """
        const { correction: { M }, generate, mode } = await import("/pages/lean-qr.js");
        const options = {modes: [mode.ascii], minCorrectionLevel: M, maxCorrectionLevel: M};
        return given.map(([text, mask]) => {
          const code = generate(text, {...options, mask});
          const places = [...Array(code.size).keys()];
          const picture = inviting.picturesque(code);
          return [places.map((y) => places.map((x) => code.get(x, y))), picture];
        });"""
    for (found, svg), (_, expected) in zip(run("inviting", body, given), made, strict=True):
        assert found == [[bool(one) for one in row] for row in expected.matrix]
        size = len(found) + 8  # a quiet zone of four modules
        assert f'viewBox="-4 -4 {size} {size}"' in svg
        assert svg.count("h1v1h-1z") == sum(map(sum, found))
