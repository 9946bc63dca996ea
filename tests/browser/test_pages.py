"""What a reader of a page sees and can do, in a browser: Chromium."""

import re

import pytest

UNITS = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0}

#: Contrast of the text of elements to what it lies on, as in WCAG 2.1.
CONTRAST = """
const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
const luminance = ([r, g, b]) => {
  const linear = (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const [x, y, z] = [r, g, b].map((c) => linear(c / 255));
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
const behind = (element) => {
  for (let each = element; each; each = each.parentElement) {
    const found = channels(getComputedStyle(each).backgroundColor);
    if (found.length === 3 || found[3] > 0) return found;
  }
  return [255, 255, 255];
};
return [...document.querySelectorAll(arguments[0])].map((element) => {
  const [a, b] = [luminance(channels(getComputedStyle(element)[arguments[1]])), luminance(behind(element))];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
});
"""


def seconds(text):
    """Return a time as a table shows it, such as 1.2 us, or a tooltip, such as 1.2µ."""
    number, unit = re.fullmatch(r"([\d.,]+) ?(\w*)", text).groups()
    return float(number.replace(",", "")) * UNITS[unit.replace("µ", "u").removesuffix("s")]


def number_of_charts(page):
    """Return how many charts a page has in its text."""
    return page.read_text(encoding="utf-8").count("data-chart=")


def hovered(browser, chart, mark):
    """Return the tooltip over each mark of a chart, by title."""
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    found = []
    for element in browser.driver.find_elements(By.CSS_SELECTOR, f"[data-chart='chart-{chart}'] {mark}"):
        browser.run("arguments[0].scrollIntoView({block: 'center'})", element)
        ActionChains(browser.driver, duration=0).move_to_element(element).perform()
        rows = browser.run(
            "return [...document.querySelectorAll('#vg-tooltip-element.visible tr')]"
            ".map((row) => [...row.children].map((cell) => cell.textContent))"
        )
        found.append({key.removesuffix(":"): value for key, value in rows})
    return found


def test_charts_are_drawn_again_and_nothing_is_logged_or_asked_for_elsewhere(browser, page):
    browser.open(page)
    charts = browser.run(
        "const marks = '.mark-symbol path, .mark-rect path, .mark-line path, .mark-image image';"
        "return [...document.querySelectorAll('[data-chart]')].map((chart) => {"
        "  const box = chart.querySelector('.vega-embed svg').getBoundingClientRect();"
        "  return [chart.querySelectorAll('.vega-embed svg').length,"
        "    chart.querySelectorAll(marks).length, box.width, box.height];"
        "})"
    )
    assert len(charts) == number_of_charts(page)
    assert all(svgs == 1 and marks and width > 200 and height > 50 for svgs, marks, width, height in charts)
    assert browser.logged() == []
    assert browser.asked[0] == page.as_uri()
    assert all(each.startswith("data:") for each in browser.asked[1:])


def test_tooltips_show_what_the_table_of_a_matrix_shows(browser, matrix):
    browser.open(matrix)
    headings, *lines = browser.run(
        "return [...document.querySelectorAll('#forecasts tr')]"
        ".map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    rows = [dict(zip(headings, line, strict=True)) for line in lines]
    shown = hovered(browser, "forecasts", ".layer_1_marks path")
    forecasts, measured = (
        [each for each in shown if each["kind"] == kind] for kind in ("forecast", "measured")
    )
    assert [each["name"] for each in forecasts] == [f"{row['format']}, {row['kernel']}" for row in rows] != []
    for tooltip, record, row in zip(forecasts, measured, rows, strict=True):
        assert seconds(tooltip["one product, s"]) == pytest.approx(seconds(row["time"]), rel=0.006)
        low, high = row["interval"].split(" - ")
        assert seconds(tooltip["from"]) == pytest.approx(seconds(low), rel=0.006)
        assert seconds(tooltip["to"]) == pytest.approx(seconds(high), rel=0.006)
        assert seconds(record["one product, s"]) == pytest.approx(seconds(row["measured"]), rel=0.006)


def test_tooltips_show_what_the_table_of_a_collection_shows(browser, collection):
    browser.open(collection)
    rows = browser.run(
        "return [...document.querySelectorAll('#matrices tbody tr')]"
        ".map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    shown = {
        (each["matrix"], each["format"]): each
        for each in hovered(browser, "agreement", ".layer_2_marks path")
    }
    measured = [row for row in rows if row[6] != "not measured"]
    assert len(measured) == 2 and len(rows) == 3
    for row in measured:
        tooltip = shown[row[0], row[1]]
        assert seconds(tooltip["forecast, s"]) == pytest.approx(seconds(row[4]), rel=0.006)
        assert seconds(tooltip["measured, s"]) == pytest.approx(seconds(row[6]), rel=0.006)
        assert float(tooltip["error"].split()[0]) == pytest.approx(float(row[7].split()[0]), abs=0.51)


def test_all_that_can_be_used_is_reached_from_the_keyboard_and_is_seen_to_be(browser, page):
    from selenium.webdriver.common.keys import Keys

    browser.open(page)
    wanted = browser.run(
        "return [...document.querySelectorAll('a[href], summary, [tabindex=\"0\"]')]"
        ".filter((element) => element.checkVisibility()).length"
    )
    reached, outlines = [], []
    for _ in range(wanted):
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(browser.run("return document.activeElement.outerHTML.slice(0, 90)"))
        outlines.append(browser.run("return getComputedStyle(document.activeElement).outlineStyle"))
    assert 'class="skip"' in reached[0] and sum(
        'class="chart' in each for each in reached
    ) == number_of_charts(page)
    assert browser.run("return document.activeElement.tagName") != "BODY"
    assert all(each != "none" for each in outlines)
    summary = browser.driver.find_elements("css selector", "summary")[0]
    summary.send_keys(Keys.ENTER)
    assert browser.run("return arguments[0].parentElement.open", summary)


def test_a_page_is_read_without_javascript(browser, page):
    browser.open(page)
    text = (
        "return [...document.querySelectorAll('h1, h2, p, td, th, figcaption, pre')].map((e) => e.innerText)"
    )
    with_script = browser.run(text)
    browser.open(page, has_script=False)
    assert browser.run(text) == with_script
    charts = browser.run(
        "return [...document.querySelectorAll('.chart > svg')].map((e) => e.getBoundingClientRect().height)"
    )
    assert len(charts) == number_of_charts(page) and min(charts) > 50
    assert browser.logged() == []


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_page_fits_and_can_be_read(browser, page, screenshots, width, is_dark):
    browser.open(page, width=width, is_dark=is_dark)
    scheme = "dark" if is_dark else "light"
    browser.shot(screenshots / f"{page.stem}-{width}-{scheme}.png")
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert (
        min(browser.run(CONTRAST, "h1, h2, p, td, th, figcaption, a, pre, code, summary, caption", "color"))
        >= 4.5
    )
    assert min(browser.run(CONTRAST, ".chart svg text", "fill")) >= 4.5
    background = [
        int(each)
        for each in re.findall(r"\d+", browser.run("return getComputedStyle(document.body).backgroundColor"))
    ]
    assert (max(background) < 64) == is_dark


def test_a_link_leads_to_the_page_of_a_matrix_whose_name_is_no_markup(browser, collection):
    browser.open(collection)
    assert browser.run("return document.images.length") == 0
    named = browser.driver.find_elements("css selector", "#matrices tbody a")
    names = [each.text for each in named]
    (markup,) = (each for each in names if each.startswith("<"))
    named[names.index(markup)].click()
    assert browser.run("return [document.querySelector('h1').textContent, document.images.length]") == [
        markup,
        0,
    ]
    assert browser.logged() == []


def test_a_printed_page_has_no_navigation_and_all_of_each_table(browser, matrix):
    browser.open(matrix)
    browser.tell("Emulation.setEmulatedMedia", media="print")
    assert browser.run("return getComputedStyle(document.querySelector('nav')).display") == "none"
    assert len(browser.tell("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"]) > 10_000
    too_wide = browser.run(
        "document.body.style.width = '7.4in';"
        "return [...document.querySelectorAll('table')].filter((t) => t.scrollWidth > 7.4 * 96).length"
    )
    assert too_wide == 0
