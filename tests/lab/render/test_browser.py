"""The report in a real browser, headless: all is seen, nothing is fetched, nothing overflows.

It runs where a Chromium is on PATH or named by CONDGRAD_CHROMIUM; `.ci/chromium` gets one.
"""

import json
import os
import re
import shutil
import subprocess

import pytest

from condgrad_lab import render
from lab.render.made import found

NAMES = ("chromium", "chromium-browser", "chromium-headless-shell", "google-chrome", "chrome")
BROWSER = os.environ.get("CONDGRAD_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)

pytestmark = pytest.mark.skipif(
    not BROWSER, reason="no Chromium on PATH; `.ci/chromium` gets one for CONDGRAD_CHROMIUM"
)

# In the head, before anything can go wrong, and at the end, when everything is loaded.
WATCH = """<script>
const wrong = [];
addEventListener("error", e => wrong.push(e.message || e.target.outerHTML.slice(0, 80)), true);
addEventListener("securitypolicyviolation", e => wrong.push(e.blockedURI));
</script>"""
PROBE = """<script>
addEventListener("load", () => {
  const style = e => getComputedStyle(e);
  const shown = e => e.getBoundingClientRect();
  const report = {
    wrong,
    width: innerWidth,
    wide: document.documentElement.scrollWidth,
    fetched: performance.getEntriesByType("resource").map(e => e.name)
      .filter(name => !name.startsWith("data:")),
    images: [...document.images].map(
      i => [i.complete && i.naturalWidth > 0, shown(i).width, shown(i).height, i.alt]),
    dangling: [...document.links].map(a => a.hash.slice(1)).filter(
      id => !document.getElementById(id)),
    scrolling: [...document.querySelectorAll(".wide:has(table)")].filter(
      e => e.scrollWidth > e.clientWidth).map(e => e.getAttribute("aria-label")),
    page: style(document.body).backgroundColor,
    inks: [...document.querySelectorAll("p, th, td, a, code, small, span")]
      .map(e => style(e).color),
  };
  const holder = document.createElement("pre");
  holder.id = "report";
  holder.textContent = JSON.stringify(report);
  document.body.append(holder);
});
</script>"""


def look(page, folder, width=1200, dark=False):
    """What a browser of this width finds on the page, and what its console says."""
    probed = folder / f"probed-{width}-{dark}.html"
    text = page.read_text("utf-8")
    probed.write_text(
        text.replace("<head>", f"<head>{WATCH}").replace("</body>", f"{PROBE}</body>")
    )
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
        "--enable-logging=stderr", f"--user-data-dir={folder / 'profile'}",
        f"--window-size={width},900", f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        "--dump-dom", probed.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    found = re.search(r'<pre id="report">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr
    report = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    return report | {"console": re.findall(r"CONSOLE.*", done.stderr)}


def complaints(report):
    """Everything that is wrong with a page."""
    wrong = [*report["wrong"], *report["console"], *report["fetched"], *report["dangling"]]
    wrong += [f"no image: {alt}" for seen, *_, alt in report["images"] if not seen]
    wrong += [f"no text: {alt!r}" for *_, alt in report["images"] if len(alt) < 20]
    wrong += [f"{wide:.0f} x {high:.0f}" for _, wide, high, _ in report["images"] if high < 100]
    wrong += [f"scrolling: {name}" for name in report["scrolling"]]
    if report["wide"] > report["width"]:
        wrong.append(f"{report['wide']} pixels in {report['width']}")
    worst = min(contrast(ink, report["page"]) for ink in report["inks"])
    return [*wrong, *([f"contrast {worst:.1f}"] if worst < 4.5 else [])]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * p for weight, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    render.report(found(), path)
    return path


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [400, 1200])
def test_a_browser_has_nothing_to_complain_of(page, tmp_path, width, dark):
    report = look(page, tmp_path, width, dark)
    assert report["width"] == width
    assert len(report["images"]) == 6
    assert complaints(report) == []
    assert (luminance(report["page"]) < 0.1) is dark


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("data:image/svg+xml;base64,", "data:image/svg+xml;base64,x", "no image"),
        ("</h1>", '</h1><div style="width: 1300px">wide</div>', "1300 pixels|13.. pixels"),
        ("</h1>", '</h1><img alt="a picture of something" src="file:///no.png">', "no.png"),
        ("</h1>", "</h1><script>nothing()</script>", "nothing is not defined"),
        ("</h1>", "</h1><script>console.error('oh')</script>", "oh"),
        ("</h1>", '</h1><a href="#nowhere">x</a>', "nowhere"),
        ("--quiet: #5b6070", "--quiet: #b0b0b0", "contrast"),
    ],
)
def test_the_browser_sees_what_is_wrong(page, tmp_path, old, new, complaint):
    text = page.read_text("utf-8")
    assert old in text
    broken = tmp_path / "broken.html"
    broken.write_text(text.replace(old, new, 1), "utf-8")
    assert any(re.search(complaint, one) for one in complaints(look(broken, tmp_path)))
