"""The pages of `limbeck serve` in a real browser, two of them at once, while a run is at work."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from browser import CHROMIUM, Browser
from limbeck.serve.server import Server

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")]
TOKEN = "a-token-of-some-length"


def note(state: Path, step: int) -> None:
    now = time.time()
    values = {"first": 0, "step": step, "total": 100, "started": now - 10, "updated": now, "label": "ndpdc"}
    (state / "progress.json").write_text(json.dumps(values))


def test_every_page_opens_without_a_complaint(server: Server, tmp_path: Path) -> None:
    with Browser(tmp_path / "profile") as browser:
        for width in (1280, 390):
            browser.size(width, 900, phone=width < 500)
            for path in ("", "run/first", "compare", "compare?a=first&b=second+one", "budget", "run/first/report"):
                browser.media(dark=width < 500)
                browser.open(server.url + path)
                assert browser.run("document.documentElement.scrollWidth") <= width, path
        browser.open(server.url + "run/first")
        frame = browser.run("document.querySelector('iframe').getBoundingClientRect().height")
        assert frame > 300 and browser.complaints == []


def test_two_browsers_watch_a_run_come_go_on_and_end(server: Server, runs: Path, tmp_path: Path) -> None:
    with Browser(tmp_path / "one") as one, Browser(tmp_path / "two") as two:
        for browser in (one, two):
            browser.open(server.url)
            assert browser.run("document.querySelectorAll('progress').length") == 0
        state = runs / "new" / ".run"
        state.mkdir(parents=True)
        note(state, 10)
        (state / "run.json").write_text(json.dumps({"plan": {"dataset": "digits", "method": "ndpdc"}}))
        for browser in (one, two):  # the open page notices by itself
            browser.wait_until(lambda b=browser: b.run("document.querySelector('progress')?.value ?? 0") == 10)
        note(state, 60)
        for browser in (one, two):
            browser.wait_until(lambda b=browser: b.run("document.querySelector('progress')?.value ?? 0") == 60)
            assert "60 of 100" in browser.run("document.querySelector('.words').textContent")
        shutil.rmtree(runs / "new")
        for browser in (one, two):
            browser.wait_until(lambda b=browser: b.run("document.querySelectorAll('progress').length") == 0)
            assert browser.complaints == []


def test_the_filter_and_the_comparison_work_by_hand(server: Server, tmp_path: Path) -> None:
    with Browser(tmp_path / "profile") as browser:
        browser.open(server.url)
        visible = "[...document.querySelectorAll('.runs tbody tr')].filter(row => !row.hidden).length"
        assert browser.run(visible) == 2
        browser.run(
            "(() => { const f = document.getElementById('filter'); f.value = 'SECOND'; f.dispatchEvent(new Event('input')); })()"
        )
        assert browser.run(visible) == 1
        browser.open(server.url + "compare?a=first")
        browser.run("document.querySelector('select[name=b]').value = 'second one'")
        browser.run("document.querySelector('form').requestSubmit()")
        browser.wait_until(lambda: browser.run("document.querySelectorAll('.strips img').length") == 20)
        assert browser.complaints == []


def test_the_token_leaves_the_address_and_is_not_needed_again(
    runs: Path, serving: Callable[..., Server], tmp_path: Path
) -> None:
    server = serving(runs, token=TOKEN)
    with Browser(tmp_path / "profile") as browser:
        browser.open(server.url)
        assert TOKEN not in browser.run("location.href") and browser.run("document.cookie") == ""
        browser.run("document.querySelector('.runs tbody a').click()")
        browser.wait_until(lambda: browser.run("document.querySelector('iframe') !== null"))
        assert browser.complaints == []


def test_a_doctored_report_cannot_run_a_script(server: Server, runs: Path, tmp_path: Path) -> None:
    (runs / "first" / "report.html").write_text("<script>document.title = 'owned'</script>")
    with Browser(tmp_path / "profile") as browser:
        browser.open(server.url + "run/first/report")
        assert browser.run("document.title") != "owned"
