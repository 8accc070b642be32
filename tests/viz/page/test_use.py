"""The keyboard, addresses, themes, frames, and names that try to be markup."""

from __future__ import annotations

import pytest

from tests.lib import viz_records

TABS = ("graph", "passes", "kernels", "memory", "time", "report")

ADDRESSES = {
    "#graph=final&node=3": (".node.selected", "relu"),
    "#graph=after%20fusion&group=2": (".side h2", "fused_conv2d1_add1_add2_relu1"),
    "#graph=after%20fusion&group=0&why=1": (".answer", "one reduction"),
    "#pass=6": (".head h2", "6 · relax.FuseTIR"),
    "#pass=6&view=graph&function=main": (".detail [aria-pressed=true] >> nth=0", "Graph"),
    "#schedule=softmax&step=2": (".step", "sch.parallel(loop=i)"),
    "#kernel=softmax&view=lowered": (".text-column h3", "Lowered"),
    "#kernel=softmax&line=lowered:8": (".line.from", "8"),
    "#memory&buffer=3": (".side h2", "lv3"),
    "#time&view=compile": (".card h3 >> nth=0", "Compile time"),
    "#report": (".card h3 >> nth=0", "Questions"),
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_opens_its_state(show, address):
    shown = show("cnn", address)
    selector, text = ADDRESSES[address]
    element = shown.tab.locator(f"main [role=tabpanel]:visible {selector}")
    assert text in element.evaluate("element => element.textContent")


def test_the_first_view_is_of_what_there_is(show):
    shown = {"cnn": "graph", "long_text": "kernels", "empty": "report"}
    for record, name in shown.items():
        assert show(record).tab.locator("[role=tabpanel]:visible").get_attribute("id") == (
            f"panel-{name}"
        )


def test_the_back_button_takes_steps_back(show):
    shown = show("cnn")
    shown.tab.locator("#tab-kernels").click()
    shown.tab.locator(".option", has_text="softmax").click()
    shown.tab.locator("#tab-memory").click()
    for name, kernel in (
        ("kernels", "softmax"),
        ("kernels", "fused_matmul_add_relu"),
        ("graph", ""),
    ):
        shown.tab.go_back()
        shown.wait(name)
        if kernel:
            shown.tab.locator(".kernel-head h2", has_text=kernel).wait_for()
    shown.tab.go_forward()
    shown.wait("kernels")


@pytest.mark.parametrize(
    "address", ["#kernel=absent", "#pass=9999", "#graph=%E0%A4%A", "#&&=x&=", "#buffer"]
)
def test_a_wrong_address_shows_something_else(show, address):
    shown = show("cnn", address)
    assert shown.count("[role=tabpanel]") == 1
    if "absent" in address:
        assert "There is no kernel absent" in shown.tab.locator(".kernel-head").inner_text()


def test_a_tab_returns_to_the_state_it_was_left_in(show):
    shown = show("cnn", "#kernel=softmax&view=lowered")
    shown.tab.keyboard.press("4")
    shown.wait("memory")
    shown.tab.keyboard.press("3")
    shown.wait("kernels")
    assert shown.address() == "kernel=softmax&view=lowered"


def test_keys_choose_tabs_and_arrows_walk_lists(show):
    shown = show("cnn")
    keyboard = shown.tab.keyboard
    for number, name in enumerate(TABS, 1):
        keyboard.press(str(number))
        shown.wait(name)
    keyboard.press("3")
    shown.wait("kernels")
    shown.tab.locator("#panel-kernels .listbox").focus()
    times = {c["kernel"]: c["us"] for c in viz_records.cnn()["profile"]["calls"]}
    names = sorted(times, key=lambda name: -times[name])
    heading = shown.tab.locator(".kernel-head h2")
    keyboard.press("ArrowDown")
    assert heading.inner_text() == names[1]
    keyboard.press("End")
    assert heading.inner_text() == names[-1]
    keyboard.press("ArrowUp")
    assert heading.inner_text() == names[-2]
    shown.tab.locator("#tab-kernels").focus()
    keyboard.press("ArrowRight")
    shown.wait("memory")
    assert shown.tab.evaluate("document.activeElement.id") == "tab-memory"


def test_the_search_finds_what_has_a_name_and_the_lines_of_the_kernel(show):
    shown = show("cnn", "#kernel=softmax")
    keyboard = shown.tab.keyboard
    keyboard.press("/")
    keyboard.type("vfmadd")
    assert "assembly" in shown.texts(".palette li .tag")
    keyboard.press("Control+a")
    keyboard.type("pass fuse")
    assert shown.texts(".palette li .name") == ["5 relax.FuseOps", "6 relax.FuseTIR"]
    keyboard.press("ArrowDown")
    keyboard.press("Enter")
    shown.wait("passes")
    assert shown.tab.locator("#panel-passes h2").inner_text() == "6 · relax.FuseTIR"
    keyboard.press("/")
    keyboard.type("nothing is called so")
    assert "Nothing has this name." in shown.texts(".palette li")
    keyboard.press("Escape")
    keyboard.press("?")
    assert "search kernels" in shown.tab.locator("dialog.help").inner_text()
    keyboard.press("Escape")
    assert shown.count("dialog") == 0


def test_a_line_is_marked_by_keys(show):
    shown = show("cnn", "#kernel=softmax")
    shown.tab.locator(".text").nth(1).focus()
    shown.tab.keyboard.press("Enter")
    for _ in range(9):
        shown.tab.keyboard.press("ArrowDown")
    assert shown.address() == "kernel=softmax&line=lowered:10"
    assert shown.tab.locator(".text").nth(3).locator(".line.related").count() == 1
    shown.tab.keyboard.press("Escape")
    assert shown.address() == "kernel=softmax"


def test_the_graph_moves_by_keys(show):
    shown = show("cnn")
    where = ".canvas > g"
    shown.tab.locator(".canvas").focus()
    begin = shown.tab.locator(where).get_attribute("transform")
    shown.tab.keyboard.press("ArrowDown")
    moved = shown.tab.locator(where).get_attribute("transform")
    shown.tab.keyboard.press("0")
    whole = shown.tab.locator(where).get_attribute("transform")
    assert len({begin, moved, whole}) == 3
    box = shown.tab.locator(where).bounding_box()
    frame = shown.tab.locator(".canvas").bounding_box()
    assert box["height"] <= frame["height"]
    shown.tab.locator(".node").first.focus()
    shown.tab.keyboard.press("Enter")
    assert shown.tab.locator(".side h2").inner_text() == "x"


def test_the_theme_follows_the_system_until_one_chooses(show):
    def ground(shown):
        return shown.tab.evaluate("getComputedStyle(document.body).backgroundColor")

    light, dark = show("cnn"), show("cnn", color_scheme="dark")
    assert ground(light) != ground(dark)
    light.tab.keyboard.press("t")
    assert ground(light) == ground(dark)
    assert ground(light.open()) == ground(dark)  # remembered


@pytest.mark.parametrize("size", [(800, 600), (1400, 500), (2400, 1300)])
def test_windows_of_other_sizes(show, size):
    """Nothing is wider than the window, and what matters is in it."""
    shown = show("cnn", viewport={"width": size[0], "height": size[1]})
    for name in TABS:
        shown.open(f"#{name}")
        assert shown.tab.evaluate("document.documentElement.scrollWidth") <= size[0]
        box = shown.tab.locator(f"#panel-{name} > .page-tab > *").first.bounding_box()
        assert box["width"] > 100
        assert box["height"] > 20
        for part in shown.tab.locator(
            f"#panel-{name} :is(.listbox, .text, .drawing, .frame)"
        ).all():
            if part.is_visible():
                assert part.bounding_box()["height"] > 80


def test_roles_and_names_for_those_who_do_not_see_the_page(show):
    shown = show("cnn", "#kernel=softmax")
    tab = shown.tab
    assert tab.get_by_role("tab").count() == 6
    assert tab.get_by_role("tab", name="Kernels", selected=True).is_visible()
    assert tab.get_by_role("tabpanel", name="Kernels").is_visible()
    assert tab.get_by_role("option", name="softmax", selected=True).is_visible()
    assert tab.get_by_role("region", name="Assembly of softmax").is_visible()
    assert tab.title() == "FashionMNIST CNN · weft viz"
    unnamed = tab.eval_on_selector_all(
        "button", "all => all.filter(b => !b.textContent.trim() && !b.ariaLabel).length"
    )
    assert unnamed == 0


def test_names_stay_text(show):
    shown = show("hostile")
    assert shown.tab.title() == f"{viz_records.HOSTILE_NAMES[0]} · weft viz"
    for name in TABS:
        shown.open(f"#{name}")
        assert shown.tab.locator("main img, main script, main b b").count() == 0
        assert shown.tab.title() != "taken"
    for name in viz_records.HOSTILE_NAMES[:-1]:
        text = name.encode(errors="replace").decode()
        shown.open("#kernel=" + shown.tab.evaluate("encodeURIComponent", text))
        assert shown.tab.locator(".kernel-head h2").evaluate("e => e.textContent") == text


def test_the_policy_refuses_what_is_not_the_pages_own(show):
    shown = show("cnn")
    blocked = shown.tab.evaluate("""async () => {
        const blocked = [];
        document.addEventListener("securitypolicyviolation",
            (event) => blocked.push(event.effectiveDirective));
        const script = document.createElement("script");
        script.textContent = "window.taken = true";
        const image = document.createElement("img");
        image.src = "https://example.org/x.png";
        const style = document.createElement("style");
        style.textContent = "body { display: none }";
        document.body.append(script, image, style);
        image.setAttribute("onclick", "window.taken = true");
        await fetch("https://example.org/").catch(() => null);
        await new Promise((done) => setTimeout(done, 50));
        return [...new Set(blocked)].sort().concat(String(window.taken));
    }""")
    assert {"connect-src", "img-src", "script-src-elem", "style-src-elem"} <= set(blocked)
    assert blocked[-1] == "undefined"
    shown.errors.clear()  # Chromium's notes on the refusals
    shown.requests.clear()  # announced, then refused


def test_the_page_works_in_a_frame_of_a_notebook(show, file_of, chromium):
    context = chromium.new_context()
    tab = context.new_page()
    errors: list[str] = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.set_content("<iframe sandbox='allow-scripts' width=1300 height=800></iframe>")
    text = file_of("cnn").read_text(encoding="utf-8")
    tab.evaluate("text => { document.querySelector('iframe').srcdoc = text; }", text)
    frame = tab.frame_locator("iframe")
    for name in TABS:
        frame.locator(f"#tab-{name}").click()
        frame.locator(f"body[data-shown={name}]").wait_for()
    frame.locator("#tab-kernels").click()
    frame.locator("#panel-kernels .line").nth(7).click()
    assert frame.locator(".line.from").count() == 1
    assert errors == []
    context.close()
