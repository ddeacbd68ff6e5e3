"""Write shares.json: known masks, sums mod 2⁶⁴ and messages, for Python and JavaScript.

The masks are made block by block and everything else by Python's own whole numbers, so the file
does not depend on what it is to test.
"""

import hashlib
import json
import struct
from pathlib import Path

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

HEAD = struct.Struct("<6sBB16s32sQ")


def mask(seed: bytes, width: int) -> list[int]:
    cipher = Cipher(algorithms.AES256(seed), modes.ECB()).encryptor()
    stream = b"".join(cipher.update(n.to_bytes(16, "big")) for n in range((width + 1) // 2))
    return list(struct.unpack(f"<{width}Q", stream[: 8 * width]))


def texts(words: list[int]) -> list[str]:
    return [str(word) for word in words]


def document() -> dict[str, object]:
    seeds = [bytes(32), b"\xff" * 32, *(hashlib.sha256(bytes([n])).digest() for n in range(3))]
    masks = [
        {"seed": seed.hex(), "mask": texts(mask(seed, width))}
        for seed, width in zip(seeds, (2, 1, 5, 6, 119), strict=True)
    ]
    steps = [0, -1, 2**31 - 1, -(2**31) + 1, 123456789]
    seed, identifier = seeds[2], bytes(range(16))
    fingerprint = hashlib.sha256(b"agreement").digest()
    masked = [(v + m) % 2**64 for v, m in zip(steps, mask(seed, 5), strict=True)]
    words = {"masked": masked, "seed": list(struct.unpack("<4Q", seed))}
    messages = [
        {
            "part": part,
            "width": 5,  # of the submission
            "identifier": identifier.hex(),
            "fingerprint": fingerprint.hex(),
            "words": texts(words[part]),
            "message": (
                HEAD.pack(b"\x89BLUR\n", 1, code, identifier, fingerprint, len(words[part]))
                + struct.pack(f"<{len(words[part])}Q", *words[part])
            ).hex(),
        }
        for part, code in (("masked", 3), ("seed", 4))
    ]
    shared = {"steps": texts(steps), "seed": seed.hex(), "masked": texts(masked)}
    return {"masks": masks, "shared": shared, "messages": messages}


if __name__ == "__main__":
    path = Path(__file__).with_name("shares.json")
    path.write_text(json.dumps(document(), indent=1) + "\n")
