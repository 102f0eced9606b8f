"""Who may look: one door before everything that is served.

Loopback alone is no wall: every page that a browser shows can send requests there. So the Host must be
ours (no name that somebody else lets point here), the visitor must know the token (compared in constant
time, kept in a cookie after the first visit), only reading is possible, and every answer says what a
browser may do with it: run our scripts, load nothing from elsewhere.
"""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from mutiny.system.files import BoxPath

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_FILE = ".serve_token"
OPEN_TO_ALL = "/static/"
"""What ships with Mutiny is no secret, and a refusal needs its style."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def token_of(root: Path) -> str:
    """The token of a folder of runs: the same after a restart, so that open pages go on."""
    import secrets

    place = BoxPath(root, TOKEN_FILE)
    place.create(secrets.token_urlsafe(24).encode(), 0o600)
    kept = place.read_text(limit=200).strip()
    if len(kept) >= 20 and not place.stat().st_mode & 0o077:
        return kept
    fresh = secrets.token_urlsafe(24)  # somebody else could have read or written it
    place.replace_bytes(fresh.encode(), 0o600)
    return fresh


class Guard:
    """Asks for host, method and token, and adds the headers."""

    def __init__(self, app: ASGIApp, token: str, port: int, refuse: ASGIApp) -> None:
        self._app = app
        self._token = token.encode()
        self._cookie = f"mutiny_{port}"
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if headers.get(b"host", "").lower() not in self._hosts:
            scope["refused"] = 421, "This address is not the one that Mutiny serves."
        elif scope["method"] not in ("GET", "HEAD"):
            scope["refused"] = 405, "Here one can only look."
        elif not scope["path"].startswith(OPEN_TO_ALL):
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
            if given and self._is_token(given):
                await self._let_in(scope, send)
                return
            if given or not self._is_token(self._kept(headers.get(b"cookie", ""))):
                scope["refused"] = 403, "Open the address that `mutiny serve` printed."
        inner = self._refuse if "refused" in scope else self._app
        await inner(scope, receive, self._with_headers(send))

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self._token)

    def _kept(self, cookie: str) -> str:
        try:
            found = SimpleCookie(cookie).get(self._cookie)
        except CookieError:
            return ""
        return "" if found is None else found.value

    async def _let_in(self, scope: Scope, send: Send) -> None:
        """Keep the token in a cookie, and take it out of the address."""
        path = scope["path"] if not scope["path"].startswith("//") else "/"
        cookie = f"{self._cookie}={self._token.decode()}; Path=/; HttpOnly; SameSite=Lax"
        headers = [(b"location", path.encode("ascii", "replace")), (b"set-cookie", cookie.encode())]
        send = self._with_headers(send)
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body"})

    @staticmethod
    def _with_headers(send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = list(message.get("headers", ()))
                named = {name.lower() for name, _ in own}
                for name, value in {**HEADERS, "content-security-policy": POLICY}.items():
                    if name.encode() not in named:
                        own.append((name.encode(), value.encode()))
                message = {**message, "headers": own}
            await send(message)

        return sending
