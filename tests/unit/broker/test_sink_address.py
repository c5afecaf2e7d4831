"""Where webhooks may go."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from tamis.broker.delivery.sink_address import SinkError, SinkRules, check_url, is_public, resolve

NOTHING = SinkRules()
REFUSED = [
    "http://127.0.0.1/",
    "http://127.0.0.1:8080/hook",
    "http://127.1/",
    "http://127.0.1/",
    "http://127.255.255.254/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://0x7f.0x0.0x0.0x1/",
    "http://017700000001/",
    "http://0177.0.0.1/",
    "http://0/",
    "http://0.0.0.0/",
    "http://localhost/",
    "http://LOCALHOST/",
    "http://localhost./",
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b:1::1]/",
    "http://[2002:7f00:1::]/",
    "http://[2002:a00:1::1]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25lo]/",
    "http://[fe80::1%25eth0]/",
    "http://[fc00::1]/",
    "http://[fd12:3456::1]/",
    "http://[ff02::1]/",
    "http://[2001:db8::1]/",
    "http://[2001::1]/",
    "http://[100::1]/",
    "http://10.0.0.1/",
    "http://10.255.255.255/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.1.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://100.64.0.1/",
    "http://192.0.0.1/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://240.0.0.1/",
    "http://127.0.0.1.:80/",
    "http://user@127.0.0.1/",
    "http://example.com@127.0.0.1/",
    "http://127.0.0.1#@example.com/",
    "http://127.0.0.1\\@example.com/",
    "http://①②⑦.0.0.1/",
    "http://127。0。0。1/",
    "http:///hook",
    "http://%31%32%37.0.0.1/",
    "ftp://8.8.8.8/",
    "file:///etc/passwd",
    "gopher://8.8.8.8/",
    "//8.8.8.8/",
    "http://8.8.8.8:0/",
    "http://8.8.8.8:99999/",
    "http://8.8.8.8/ x",
    "http://8.8.8.8/\nHost: x",
    "",
]


@pytest.mark.parametrize("url", REFUSED)
def test_addresses_of_the_own_network_are_refused(url: str) -> None:
    """In whatever spelling; nothing is connected to."""
    with pytest.raises(SinkError):
        resolve(url, NOTHING)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "64:ff9b::8.8.8.8", "172.32.0.1"]
)
def test_public_addresses_are_accepted(address: str) -> None:
    assert is_public(ip_address(address))
    host = f"[{address}]" if ":" in address else address
    assert resolve(f"https://{host}/hook", NOTHING).addresses == (address,) or ":" in address


def test_a_site_allows_what_it_needs() -> None:
    rules = SinkRules.of(["127.0.0.1", "10.1.0.0/16", "Receiver.Internal"])
    assert resolve("http://127.0.0.1:9/", rules).port == 9
    assert rules.allows("x", ip_address("10.1.2.3"))
    assert rules.allows("receiver.internal", ip_address("192.168.0.9"))
    for host, address in [("x", "127.0.0.2"), ("x", "10.2.0.1"), ("internal", "192.168.0.9")]:
        assert not rules.allows(host, ip_address(address))
    with pytest.raises(SinkError, match="not an address"):
        SinkRules.of(["http://10.0.0.1"])


def test_the_parts_of_a_url() -> None:
    assert check_url("https://example.com/a?b=c") == ("https", "example.com", 443)
    with pytest.raises(SinkError, match="https"):
        check_url("ftp://example.com/")
