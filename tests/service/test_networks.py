"""Who counts as one: an IPv4 address, however it is written, and an IPv6 network of 2⁶⁴."""

import pytest

from blurfit.errors import InvalidValueError
from blurfit.service.limits import network_of, proxies_in


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8:0:0:ffff:ffff:ffff:ffff", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
    ],
)
def test_what_an_address_is_counted_as(address: str, counted: str) -> None:
    assert network_of(address) == counted


def test_proxies_are_counted_alike() -> None:
    assert proxies_in("") == frozenset()
    assert proxies_in(" 10.0.0.1,::ffff:10.0.0.2 ,") == {"10.0.0.1", "10.0.0.2"}


@pytest.mark.parametrize("text", ["*", "proxy.example", "10.0.0.0/8", "10.0.0.1, *"])
def test_proxies_are_addresses_and_nothing_wider(text: str) -> None:
    with pytest.raises(InvalidValueError, match="trusted proxy"):
        proxies_in(text)
