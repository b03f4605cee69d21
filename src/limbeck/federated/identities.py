"""Keys and certificates of a federation's network: who may connect (a node key for each site), and whom to trust (TLS)."""

from __future__ import annotations

import ipaddress
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)
from cryptography.x509.oid import NameOID

from limbeck.errors import BadInput
from limbeck.files import read_or_create, write_atomic

VALID = timedelta(days=825)
SECRET_BYTES = 32
CURVE = ec.SECP384R1


def node_key(path: Path) -> str:
    """The key that a site connects with: made where there is none, mode 600. Gives its public half as PEM text."""
    try:
        key = load_ssh_private_key(read_or_create(path, _new_node_key), None)
    except (ValueError, OSError):
        raise BadInput(f"{path} is no node key of a site.") from None
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def secret(path: Path) -> bytes:
    """What the runtime's own processes on one machine know each other by; mode 600."""
    return read_or_create(path, lambda: os.urandom(SECRET_BYTES))


def make_tls(folder: Path, host: str) -> None:
    """An authority of this federation's own, and the server's certificate for `host`. The authority's key is not kept."""
    authority, server = ec.generate_private_key(CURVE()), ec.generate_private_key(CURVE())
    issuer = _name("Limbeck federation")
    root = _builder(issuer, issuer, authority.public_key(), authority).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    root = root.add_extension(_usage(sign_certificates=True), critical=True)
    leaf = _builder(_name(host), issuer, server.public_key(), authority).add_extension(
        x509.BasicConstraints(ca=False, path_length=None), critical=True
    )
    names = x509.SubjectAlternativeName([_host(name) for name in dict.fromkeys([host, "localhost", "127.0.0.1"])])
    leaf = leaf.add_extension(names, critical=False).add_extension(_usage(sign_certificates=False), critical=True)
    private = server.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_atomic(folder / "server.key", private, mode=0o600)
    write_atomic(folder / "server.pem", leaf.sign(authority, SHA256()).public_bytes(Encoding.PEM))
    write_atomic(folder / "ca.pem", root.sign(authority, SHA256()).public_bytes(Encoding.PEM))


def _new_node_key() -> bytes:
    return ec.generate_private_key(CURVE()).private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, authority: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # clocks differ
        .not_valid_after(now + VALID)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False)
    )


def _usage(sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
