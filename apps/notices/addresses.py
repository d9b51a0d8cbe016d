"""Where a webhook may lead: to the open network, not into the one this server stands in (server-side request forgery).

A name is looked up when something is sent, every address it has must be allowed, and the connection goes to the very
address that was looked at, so that a name can't point elsewhere a moment later.
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

LONGEST = 500
_NAT64 = ipaddress.ip_network("64:ff9b::/96")  # RFC 6052: the last 32 bits are an IPv4 address
_SIX_TO_FOUR = ipaddress.ip_network("2002::/16")  # RFC 3056: bits 16 to 48 are


class BadAddress(ValueError):
    """An address nothing is sent to; the message says why."""


class PrivateAddress(BadAddress):
    """One that leads into a private network, which an admin may allow."""


@dataclass(frozen=True)
class Target:
    """A checked address: what to connect to, and the name that certificate and Host header must bear."""

    ip: str
    parts: SplitResult

    @property
    def host(self) -> str:
        """The name, without port."""
        return self.parts.hostname or ""

    @property
    def url(self) -> str:
        """The address with the name replaced by what it was found to be."""
        ip = f"[{self.ip}]" if ":" in self.ip else self.ip
        port = f":{self.parts.port}" if self.parts.port else ""
        return self.parts._replace(netloc=f"{ip}{port}", fragment="").geturl()

    @property
    def host_header(self) -> str:
        """The name with its port, as HTTP wants it."""
        return self.parts.netloc.rpartition("@")[2]


def read(url: str) -> SplitResult:
    """The parts of an address that could be a webhook's. Raises `BadAddress`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise BadAddress("This is no address. A webhook's begins with https://.") from None
    if len(url) > LONGEST or any(character.isspace() or not character.isprintable() for character in url):
        raise BadAddress(f"An address has at most {LONGEST} characters, none of them blank.")
    if parts.scheme not in ("https", "http") or not parts.hostname or port == 0:
        raise BadAddress("A webhook's address begins with https:// (or http://) and names a host.")
    if parts.username or parts.password:
        raise BadAddress("Leave user name and password out of the address: the signature says who is calling.")
    return parts


def look_up(url: str, *, private_allowed: bool = False) -> Target:
    """The address as it is now. Raises `BadAddress`, or `PrivateAddress` where only an admin's word is missing."""
    parts = read(url)
    host = parts.hostname or ""
    try:
        found = socket.getaddrinfo(host, parts.port or 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise BadAddress(f"The name {host} can't be looked up.") from None
    ips = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for ip in ips:
        if not private_allowed and not is_open(ip):
            named = f"{host} is" if host == ip else f"{host} is {ip},"
            raise PrivateAddress(f"{named} an address of a private network. An admin can allow it.")
    if not ips:
        raise BadAddress(f"The name {host} has no address.")
    return Target(ips[0], parts)


def is_open(text: str) -> bool:
    """Whether an IP address belongs to the open network: neither private, nor this machine, nor link-local, nor a disguise."""
    ip = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if inner := _inner(ip):
            return is_open(str(inner))
        if ip.is_site_local:
            return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def _inner(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 one stands for."""
    if ip.ipv4_mapped is not None:
        return ip.ipv4_mapped
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    if ip in _SIX_TO_FOUR:
        return ipaddress.IPv4Address((int(ip) >> 80) & 0xFFFFFFFF)
    return ip.teredo[1] if ip.teredo is not None else None
