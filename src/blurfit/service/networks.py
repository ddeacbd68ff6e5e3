"""Who counts as one where something is limited by address.

Whoever has an IPv6 address has at least the 2⁶⁴ of its network, so these count as one; an IPv4
address that is written as an IPv6 one is itself.
"""

from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network

from blurfit.errors import InvalidValueError


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """What an address is counted as.

    >>> network_of("192.0.2.7"), network_of("::ffff:192.0.2.7"), network_of("2001:db8::1:2:3:4")
    ('192.0.2.7', '192.0.2.7', '2001:db8::/64')
    """
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:  # a socket's name, or a test's
        return address
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ip_network((int(found) >> 64 << 64, 64)))


def proxies_in(text: str) -> frozenset[str]:
    """What the addresses of trusted proxies, separated by commas, are counted as: for an IPv6 one
    its /64, which its operator has to herself.

    >>> sorted(proxies_in("10.0.0.1, 2001:db8::1"))
    ['10.0.0.1', '2001:db8::/64']
    """
    given = [one.strip() for one in text.split(",") if one.strip()]
    for one in given:
        try:
            ip_address(one)
        except ValueError:
            raise InvalidValueError(
                f"Expected trusted proxy {one!r} to be an address such as 10.0.0.1: a name, a "
                "network or * would let anyone claim any address."
            ) from None
    return frozenset(network_of(one) for one in given)
