"""The pages of the console: one document, and the files that it loads."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from tamis.errors import NotFoundError

STATIC = Path(__file__).parent / "static"
HEADERS = {
    # Nothing from other hosts, no script or style in a page, no eval, and nothing that makes
    # elements of text.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",  # asked again each time, and answered with 304
}


class _Files(StaticFiles):
    """Files that a browser may use for nothing but the console."""

    def file_response(self, *given: object, **more: object) -> Response:
        answer = super().file_response(*given, **more)  # type: ignore[arg-type]
        answer.headers.update(HEADERS)
        return answer

    async def get_response(self, path: str, scope: Scope) -> Response:
        if scope["method"] not in ("GET", "HEAD"):
            raise NotFoundError("the files of the console can only be read")
        return await super().get_response(path, scope)


async def page(request: Request) -> Response:
    """The document; its script shows what the path asks for."""
    return FileResponse(STATIC / "index.html", headers=HEADERS, media_type="text/html")


async def home(request: Request) -> Response:
    """A browser that opens the service wants the console; programs are told what there is."""
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse("/console", 307)
    raise NotFoundError("there is no such path; /openapi.json lists them all")


routes: list[BaseRoute] = [
    Route("/", home, methods=["GET"], include_in_schema=False),
    Mount("/console/static", _Files(directory=STATIC)),
    Route("/console", page, methods=["GET"], include_in_schema=False),
    Route("/console/{page:path}", page, methods=["GET"], include_in_schema=False),
]
