"""The section `security`: who clients are, and what they may do."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

CertificateName = Literal["common_name", "subject", "dns", "email", "uri"]


class Security(Struct, frozen=True):
    """Authentication and authorisation, for every protocol. Without a way to authenticate nobody is
    asked, everybody may do everything, and only this machine can connect.
    """

    token_secret_key: Annotated[
        str,
        Meta(
            description="The secret that JSON Web Tokens are signed with: a file, or a `data:` "
            "URL; empty: none."
        ),
    ] = ""
    token_public_key: Annotated[
        str,
        Meta(
            description="The public key that tokens are verified with, RSA, EC or Ed25519, as PEM "
            "or DER: a file, or a `data:` URL; empty: none."
        ),
    ] = ""
    token_jwks: Annotated[
        str,
        Meta(
            description="The public keys of a token issuer, a JWKS document: a file or an https "
            "URL, read again when it changes; empty: none."
        ),
    ] = ""
    token_auth_claim: Annotated[
        str, Meta(description="The claim of a token with its role, or a list of roles.")
    ] = "sub"
    token_issuer: Annotated[
        str, Meta(description="The issuer (`iss`) that tokens must have; empty: any.")
    ] = ""
    token_audience: Annotated[
        str, Meta(description="The audience that tokens must have; empty: any.")
    ] = ""
    token_audience_claim: Annotated[
        str, Meta(description="The claim of a token with its audience.")
    ] = "aud"
    htpasswd: Annotated[
        str,
        Meta(
            description="File with names and hashes of passwords (bcrypt, apr1, SHA), read again "
            "when it changes; empty: none. `magnetar user` writes one."
        ),
    ] = ""
    client_certificates: Annotated[
        bool,
        Meta(
            description="Take client certificates, which tls.client_ca verifies, as proofs of "
            "identity."
        ),
    ] = False
    certificate_name: Annotated[
        CertificateName,
        Meta(
            description="What in a certificate is the role: the common name of its subject; the "
            "subject, by certificate_mapping_rules; or its first alternative name of that kind."
        ),
    ] = "common_name"
    certificate_mapping_rules: Annotated[
        str,
        Meta(
            description="From the subject of a certificate to the role, as Kafka's "
            "`ssl.principal.mapping.rules`: RULE:pattern/replacement/[LU], or DEFAULT; the first "
            "that matches decides."
        ),
    ] = "DEFAULT"
    scram: Annotated[
        bool,
        Meta(
            description="Accept SCRAM-SHA-256 and SCRAM-SHA-512, with users that `kafka-configs` "
            "manages."
        ),
    ] = False
    proxy_roles: Annotated[
        tuple[str, ...],
        Meta(
            description="Roles of Pulsar's proxies, which name the role that they speak for: both "
            "need each right."
        ),
    ] = ()
    authenticate_original_auth_data: Annotated[
        bool,
        Meta(
            description="Whether the clients of Pulsar's proxies have to prove to this server who "
            "they are: proxies pass on what they said (`forwardAuthorizationCredentials`). If "
            "not, proxies are believed."
        ),
    ] = False
    anonymous_role: Annotated[
        str,
        Meta(
            description="The role of clients that do not authenticate, although others do; empty: "
            "they are refused."
        ),
    ] = ""
    authorization: Annotated[
        bool,
        Meta(
            description="Ask for rights. If not, everybody who has authenticated may do everything."
        ),
    ] = True
    superusers: Annotated[tuple[str, ...], Meta(description="Roles that may do everything.")] = ()
    allow_everyone_if_no_acl_found: Annotated[
        bool,
        Meta(
            description="Allow everybody who has authenticated what no ACL covers, as Kafka's "
            "setting of this name."
        ),
    ] = False
    anonymous_beyond_loopback: Annotated[
        bool,
        Meta(
            description="Let other machines connect although nobody authenticates: a server that "
            "listens beyond loopback does not start without this."
        ),
    ] = False
    open_health: Annotated[
        bool,
        Meta(
            description="Answer /healthz, /readyz and /status.html to clients that do not "
            "authenticate."
        ),
    ] = True
    open_metrics: Annotated[
        bool, Meta(description="Show /metrics to clients that do not authenticate.")
    ] = False

    audit_log: Annotated[
        str,
        Meta(
            description="File for a line of JSON about each denial, each administrative change and "
            "each failed login; empty: none."
        ),
    ] = ""
    audit_log_mb: Annotated[
        int, Meta(description="Size of the audit log at which a new file is begun.", ge=1)
    ] = 100
    audit_log_files: Annotated[
        int, Meta(description="Former files of the audit log that are kept.", ge=0, le=1_000)
    ] = 10
    bookie_token: Annotated[
        str,
        Meta(
            description="The token that this process shows to bookies: a file, read again when it "
            "changes, or a `data:` URL; empty: none."
        ),
    ] = ""
    bookie_password: Annotated[
        str,
        Meta(
            description="File with the name and the password, `NAME:PASSWORD`, that this process "
            "shows to bookies by SASL (DIGEST-MD5), as Apache's do; empty: none."
        ),
    ] = ""
    bookie_ca: Annotated[
        str,
        Meta(
            description="PEM file with the CAs of bookies: this process speaks to them over TLS "
            "(START_TLS), and trusts those; empty: without TLS. Read with each connection."
        ),
    ] = ""
    bookie_certificate: Annotated[
        str,
        Meta(
            description="PEM file with the certificate, and its key if `bookie_key` is empty, that "
            "this process shows to bookies over TLS; empty: none."
        ),
    ] = ""
    bookie_key: Annotated[
        str, Meta(description="PEM file with the key of `bookie_certificate`.")
    ] = ""
    bookie_verify_host: Annotated[
        bool,
        Meta(description="Whether a bookie's certificate must name the host it is reached at."),
    ] = True
    bookie_digest: Annotated[
        str,
        Meta(
            description="File of `htdigest`'s form, realm `bookkeeper`, with the names that a "
            "bookie lets in by SASL (DIGEST-MD5), read again when it changes; empty: none."
        ),
    ] = ""
    bookie_roles: Annotated[
        tuple[str, ...],
        Meta(
            description="Roles that may do everything at a bookie, besides superusers: of tokens, "
            "of `bookie_digest`, and of client certificates, as Apache's `authorizedRoles`."
        ),
    ] = ()
    ticket_key: Annotated[
        str,
        Meta(
            description="The secret that tickets for readers of ledgers are signed with, the same "
            "for a gateway and its bookies: a file, read again when it changes, or a `data:` URL; "
            "empty: a server with a bookie of its own makes one for itself, others issue none."
        ),
    ] = ""
    ticket_seconds: Annotated[
        float, Meta(description="How long a ticket for readers of ledgers is good.", gt=0)
    ] = 300.0

    @property
    def authenticates(self) -> bool:
        """Whether clients have a way to authenticate."""
        tokens = self.token_secret_key or self.token_public_key or self.token_jwks
        return bool(tokens or self.htpasswd or self.scram or self.client_certificates)
