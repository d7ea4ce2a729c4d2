"""A headless Chromium driven through its debugging pipe: real time, real input, pages from a server."""
import base64
import fcntl
import json
import os
import subprocess
import tempfile


class Browser:
    """One page. `faults` are errors of its scripts, and what its policy blocked."""

    def __init__(self, program, width=1300, height=1000, dark=False):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        (commands, self.to), (self.back, answers) = self.pipe(), self.pipe()
        # It reads commands from descriptor 3 and writes answers to 4.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "bash", program, "--headless", "--no-sandbox",
             "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
             f"--user-data-dir={self.profile.name}"],
            pass_fds=(commands, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.number, self.rest, self.faults, self.session = 0, b"", [], None
        page = next(each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    @staticmethod
    def pipe():
        """Beyond the descriptors that the browser expects."""
        ends = os.pipe()
        high = tuple(fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 10) for each in ends)
        for each in ends:
            os.close(each)
        return high

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.profile.cleanup()

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.hear(answer)

    def receive(self):
        while b"\0" not in self.rest:
            part = os.read(self.back, 1 << 20)
            if not part:
                raise RuntimeError("the browser has ended")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def hear(self, event):
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.faults.append(details.get("exception", {}).get("description", details["text"]))
        if event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.faults.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)

    def open(self, address):
        self.call("Page.navigate", url=address)

    def run(self, script):
        """The value of an expression, awaited."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def wait(self, condition, seconds=60):
        """Until an expression is true."""
        script = f"""new Promise((done, fail) => {{
          const until = Date.now() + {1000 * seconds};
          const look = () => {{
            let now = false;
            try {{ now = {condition}; }} catch {{ }}
            if (now) done(true);
            else if (Date.now() > until) fail(new Error({json.dumps('never: ' + condition)}));
            else setTimeout(look, 50);
          }};
          look();
        }})"""
        return self.run(script)

    def type(self, name, text):
        """Replaces a field's text, key by key."""
        self.run(f"document.querySelector('[name={name}]').select?.(); document.querySelector('[name={name}]').focus()")
        for letter in text:
            self.call("Input.dispatchKeyEvent", type="char", text=letter)

    def picture(self, path, whole=True):
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))
