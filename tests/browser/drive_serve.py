"""Uses the page of `pipesim serve` as a person would: drive_serve.py PIPESIM CHROMIUM [FOLDER for pictures]."""
import json
import signal
import subprocess
import sys

from devtools import Browser

QUICK = "model=zb-1.5b&cluster=dgx-a100&gpus=8&batch=32&length=1024&schedule=1f1b"
SLOW = {"model": "deepseek-v3", "cluster": "dgx-h100", "gpus": "4096", "batch": "16384", "length": "8k"}
ANSWERED = "!document.body.classList.contains('waiting') && byId('ask-status').textContent.startsWith('answered')"
TIMELINE = "/ passes on /.test(byId('timeline-note').textContent)"
LOOKS = [("light", 1440, False), ("dark", 1440, True), ("wide", 2200, False), ("phone", 390, False), ("phone-dark", 390, True)]


def text(page, name):
    return page.run(f"byId('{name}').textContent")


def expect(true, what):
    if not true:
        raise AssertionError(what)


def answers_as_one_types(page, address):
    page.open(address + "#" + QUICK)
    page.wait(ANSWERED)
    first = text(page, "answer")
    expect(first.startswith("8 A100") and "an iteration" in first, first)
    expect(page.run("document.querySelectorAll('#table tbody tr').length") >= 2, "rows of the table")
    page.type("gpus", "16")
    page.wait("byId('answer').textContent.startsWith('16 A100') && " + ANSWERED)
    expect("gpus=16" in page.run("location.hash"), "the question in the address")
    expect(" days for 1 T tokens: " in text(page, "ask-failures"), text(page, "ask-failures"))
    page.run("document.querySelectorAll('#table tbody tr[data-row]')[1].click()")
    page.run("field('failures').value = '2'; field('failures').dispatchEvent(new Event('input'))")
    page.wait("location.hash.includes('failures=4') && " + ANSWERED)
    expect(page.run("document.querySelectorAll('#table tbody tr')[1].getAttribute('aria-selected')") == "true", "the open row stays")
    page.type("model", "zb-1")
    page.wait("byId('ask-status').textContent === \"2 models with 'zb-1' in the name\"")
    page.type("model", "zb-1.6b")
    page.wait("byId('ask-status').className === 'wrong'")
    expect("did you mean 'zb-1.5b'?" in text(page, "ask-status"), text(page, "ask-status"))
    expect(text(page, "answer").startswith("16 A100"), "the answer before stays")
    page.type("model", "zb-1.5b")
    page.wait(ANSWERED)


def slides(page):
    before = text(page, "answer")
    page.run("field('memory').value = '-1'; field('memory').dispatchEvent(new Event('input'))")
    expect("40" in page.run("field('memory').getAttribute('aria-valuetext')"), "half of 80 GiB")
    page.wait("location.hash.includes('memory=0.5') && " + ANSWERED)
    expect(text(page, "answer") != before, "less memory changes the answer")


def cancels(page):
    for name, value in SLOW.items():
        page.run(f"field('{name}').value = '{value}'; field('{name}').dispatchEvent(new Event('input'))")
    page.run("field('schedule').value = ''; field('schedule').dispatchEvent(new Event('input'))")
    page.wait("/layouts decided/.test(byId('ask-status').textContent)")
    page.run("byId('ask-stop').click()")
    expect(text(page, "ask-status") == "stopped", text(page, "ask-status"))
    page.run("byId('ask-reset').click()")
    page.wait("byId('answer').textContent.startsWith('64 H100') && " + ANSWERED)


def opens_rows(page):
    page.wait(TIMELINE)
    first = text(page, "timeline-note")
    page.run("document.querySelectorAll('#table tbody tr[data-row]')[1].click()")
    page.wait(f"{TIMELINE} && byId('timeline-note').textContent !== {json.dumps(first)}")
    expect(not page.run("byId('memory-part').hidden"), "memory over time")
    expect(page.run("byId('pareto').width > 0"), "the frontier is drawn")


def look(program, address, folder):
    for name, width, dark in LOOKS:
        with Browser(program, width, 1000, dark) as page:
            page.open(address)
            page.wait(ANSWERED)
            page.wait(TIMELINE)
            page.run("new Promise(done => setTimeout(done, 500))")
            page.picture(f"{folder}/{name}.png")


def main(pipesim, program, folder=None):
    server = subprocess.Popen([pipesim, "serve"], stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().strip()
        with Browser(program) as page:
            answers_as_one_types(page, address)
            slides(page)
            cancels(page)
            opens_rows(page)
            expect(page.faults == [f for f in page.faults if "400" in f], page.faults)
        if folder:
            look(program, address, folder)
    finally:
        server.send_signal(signal.SIGINT)
        expect(server.wait(timeout=60) == 0, "it ends with Ctrl-C")


if __name__ == "__main__":
    main(*sys.argv[1:])
