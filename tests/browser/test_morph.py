"""Fragments are applied to a page without touching what stays the same. No service is needed: only the script."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources

import pytest
from playwright.sync_api import Browser, Page

SCRIPT = (resources.files("matchpod.console") / "assets" / "morph.js").read_text("utf-8")
APPLY = "(html) => applyFragments(html, () => {})"


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """An empty page with the script."""
    opened = browser.new_page()
    opened.add_script_tag(content=SCRIPT)
    yield opened
    opened.close()


def show(page: Page, body: str) -> None:
    """Show this, and remember each element by its place."""
    page.evaluate("(body) => { document.body.innerHTML = body; }", body)


def swapped(html: str) -> str:
    return html.replace(" id=", ' data-swap="content" id=', 1)


CHANGES = [
    ("<p id=a>x</p>", "<p id=a>y</p>"),
    ("<p id=a class=b>x</p>", "<p id=a title=t>x <b>y</b> z</p>"),
    ("<p id=a><b>1</b><i>2</i></p>", "<p id=a><i>2</i><b>1</b></p>"),
    ("<p id=a><b>1</b>t<i>2</i>u<u>3</u></p>", "<p id=a>u<u>3</u></p>"),
    ("<p id=a></p>", "<p id=a>t<b>1</b><i>2</i></p>"),
    ("<div id=a><p id=b>1</p><p id=c>2</p><p>3</p></div>", "<div id=a><p>3</p><p id=c>2!</p><p id=b>1</p></div>"),
    ("<div id=a><p id=b>1</p><p id=c>2</p></div>", "<div id=a><p id=c>2</p><p id=d>0</p></div>"),
    ("<div id=a><i id=b></i></div>", "<div id=a><section id=b>x</section></div>"),
    ("<div id=a><p id=b>1</p>t<p id=c>2</p></div>", "<div id=a>t<p id=c>2</p>t<p id=b>1</p>t</div>"),
    ("<i id=a></i>", "<section id=a><h2>x</h2></section>"),
    ("<div id=a><input type=text><input type=checkbox></div>", "<div id=a><input type=checkbox checked></div>"),
    ("<svg id=a><rect width=1></rect></svg>", "<svg id=a><rect width=2></rect><g></g></svg>"),
    ("<table id=a><tr><td>1</table>", "<table id=a><tr><td>1<td>2<tr><td>3</table>"),
    ("<div id=a>x<!--c--></div>", "<div id=a><!--d-->x</div>"),
]


def test_page_becomes_what_was_sent(page: Page) -> None:
    for before, after in [*CHANGES, *[(after, before) for before, after in CHANGES]]:
        show(page, after)
        wanted = page.inner_html("body")
        show(page, before)
        page.evaluate(APPLY, swapped(after))
        assert page.inner_html("body") == wanted, before


def test_unchanged_elements_are_not_touched(page: Page) -> None:
    card = "<div id=a>{}<h3><a href=x>link</a></h3>\n<p>7656</p>\n<p class=n>{}</p>\n</div>"
    show(page, card.format("\n", 1))
    page.evaluate(
        """() => {
          window.seen = [];
          window.kept = [...document.querySelectorAll("h3, a, p")];
          new MutationObserver((all) => seen.push(...all.map((one) => one.target.nodeName)))
            .observe(document.getElementById("a"), {subtree: true, childList: true, attributes: true, characterData: true});
        }"""
    )
    page.evaluate(APPLY, swapped(card.format("\n", 1)))
    page.evaluate(APPLY, swapped(card.format("\n", 2)))
    assert page.evaluate("seen") == ["#text"]
    page.evaluate(APPLY, swapped(card.format("\n<ul><li>late</li></ul>\n", 2)))
    page.evaluate(APPLY, swapped(card.format("\n", 2)))
    assert page.evaluate("kept.every((one) => one.isConnected)")


def test_focus_selection_typed_text_choices_and_open_parts_survive(page: Page) -> None:
    card = (
        "<div id=a><p>{n}</p><details><summary>more</summary><p id=more>{n}</p></details>"
        "<input id=t value=first><input id=c type=checkbox><textarea id=x>{n}</textarea><p id=s>76561</p>"
        "<div id=scroll style='height:20px;overflow:auto'><p style='height:500px'>{n}</p></div></div>"
    )
    show(page, card.format(n=1))
    page.locator("summary").click()
    page.locator("#c").check()
    page.locator("#x").fill("written")
    page.locator("#t").fill("typed")
    page.evaluate("document.getElementById('scroll').scrollTop = 100")
    page.evaluate("getSelection().selectAllChildren(document.getElementById('s'))")
    page.locator("#t").focus()
    page.evaluate("document.getElementById('t').setSelectionRange(1, 3)")
    page.evaluate(APPLY, swapped(card.format(n=2)))
    assert page.locator("#more").is_visible()
    assert page.locator("#more").inner_text() == "2"
    found = page.evaluate(
        """() => {
          const field = document.activeElement, box = document.getElementById("scroll");
          return [field.id, field.value, field.selectionStart, field.selectionEnd, box.scrollTop,
            document.getElementById("c").checked, document.getElementById("x").value];
        }"""
    )
    assert found == ["t", "typed", 1, 3, 100, True, "written"]
    page.evaluate("getSelection().selectAllChildren(document.getElementById('s'))")
    page.evaluate(APPLY, swapped(card.format(n=3)))
    assert page.evaluate("getSelection().toString()") == "76561"


@pytest.mark.parametrize("has_move", [True, False])
def test_cards_are_removed_inserted_and_moved_with_their_focus(page: Page, has_move: bool) -> None:
    if not has_move:  # as in older browsers
        page.evaluate("() => { delete Element.prototype.moveBefore; }")
    show(
        page,
        "".join(
            [
                "<div id=cards>",
                *(f"<article id={one}><a href=x>{one}</a><p>76561</p></article>" for one in "abcd"),
                "</div>",
            ]
        ),
    )
    page.locator("#d a").focus()
    page.evaluate("window.kept = document.activeElement")
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#d p'))")
    page.evaluate(
        APPLY,
        '<i id="b" data-swap="removed"></i>'
        '<div data-swap="before" data-target="a"><article id="d"><a href=x>d!</a><p>76561</p></article></div>'
        '<div data-swap="last" data-target="cards"><article id="e">e</article></div>'
        '<div data-swap="first" data-target="cards"><article id="f">f</article><article id="g">g</article></div>'
        '<div data-swap="before" data-target="unknown"><article id="h">h</article></div>',
    )
    shown = [text.removesuffix("76561") for text in page.locator("article").all_text_contents()]
    assert shown == ["f", "g", "d!", "a", "c", "e"]
    assert page.evaluate("document.activeElement === kept")
    assert page.evaluate("getSelection().toString()") == "76561"


def test_all_cards_in_another_order_keep_their_elements(page: Page) -> None:
    cards = {one: f"<article id={one}><a href=x>{one}</a></article>" for one in "abcdef"}
    show(page, f"<div id=cards>{''.join(cards.values())}</div>")
    page.locator("#c a").focus()
    page.evaluate("window.kept = [...document.querySelectorAll('article')]")
    page.evaluate(APPLY, swapped(f"<div id=cards>{''.join(cards[one] for one in 'fxcae'.replace('x', ''))}</div>"))
    assert page.locator("article").all_text_contents() == ["f", "c", "a", "e"]
    assert page.evaluate("kept.filter((one) => one.isConnected).length") == 4
    assert page.evaluate("document.activeElement.textContent") == "c"
