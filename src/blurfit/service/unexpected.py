"""What nobody foresaw: the answer names the request, and the log has its traceback under that name.

Of the request itself nothing is logged but its method.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from blurfit.protocol import problems, tokens
from blurfit.protocol.problems import RequestError
from blurfit.service.answers import Refusals

_log = logging.getLogger(__name__)


class Router(Starlette):
    """Starlette without its own answer to what nobody foresaw, which names nothing."""

    def build_middleware_stack(self) -> ASGIApp:
        """Refusals as answers, and nothing else around the routes."""
        return ExceptionMiddleware(self.router, handlers=self.exception_handlers)


App = Callable[[Scope, Receive, Send], Awaitable[None]]


def foreseen(app: App, refusals: Refusals) -> App:
    """An application that answers 500 with a name where another one raises."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def noted(message: Any) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await app(scope, receive, noted)
        except Exception:
            name = tokens.new_token()[:12]
            _log.exception("request %s (%s) failed", name, scope["method"])
            if not started:
                detail = (
                    f"Request {name} failed for a reason that nobody foresaw. Whoever runs the "
                    "service finds it in the log under that name. What was acknowledged is stored."
                )
                await refusals.send(send, RequestError(problems.UNEXPECTED, detail))

    return answer
