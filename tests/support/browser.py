"""Headless Chromium, as readers have it: one for all tests of a file, and what a page says in its console."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import needs
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Running."""
    executable = needs.program(*NAMES)
    with sync_playwright() as playwright:
        # Without its own sandbox: containers in which tests run as root have none to
        # give.
        browser = playwright.chromium.launch(
            executable_path=executable, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@contextmanager
def opened(
    browser: Browser,
    path: Path,
    *,
    width: int = 1280,
    dark: bool = False,
    script: bool = True,
) -> Iterator[Page]:
    """A page without network.

    At its end it must not have complained in the console, nor asked for anything.
    """
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if dark else "light",
        java_script_enabled=script,
        offline=True,
    )
    messages: list[str] = []
    page = context.new_page()
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on(
        "request",
        lambda request: messages.extend(
            [] if request.url.startswith(("file:", "data:")) else [request.url]
        ),
    )
    page.goto(path.resolve().as_uri())
    yield page
    context.close()
    assert not messages, messages


def violations(page: Page) -> list[str]:
    """What axe finds: rule and how many elements break it."""
    options = {
        "rules": {"label-content-name-mismatch": {"enabled": True}},
        # Axe describes each element of these results. Of a large page, the elements
        # that pass take most of the time.
        "resultTypes": ["violations"],
    }
    return [
        f"{violation['id']}: {len(violation['nodes'])}"
        for violation in Axe().run(page, options=options).response["violations"]
    ]
