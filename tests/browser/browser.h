// Pages opened from a file in a headless browser, and used by a script.
#pragma once

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <vector>

#include "sim/report/html/sha256.h"
#include "tests/app/command.h"

namespace pipesim::testing {

class Browser : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    const Outcome found = shell("command -v chromium || command -v google-chrome");
    if (found.code != 0) {
      GTEST_SKIP() << "no Chromium on this machine; tools/install_dependencies full installs it";
    }
    browser_ = found.output.substr(0, found.output.find('\n'));
  }

  // Runs scripts of tests/browser behind the page's own. Returns the JSON that they leave in the
  // document as `found:JSON:found`, with strings percent-encoded; expects no error and nothing
  // blocked.
  nlohmann::json drive(const std::string& name, const std::vector<std::string>& scripts,
                       int width = 1300, const std::string& hash = "") {
    std::string page = read(name);
    std::ostringstream driver;
    const auto add = [&driver](const std::string& script) {
      driver << std::ifstream(std::string(PIPESIM_SOURCE_DIR) + "/tests/browser/" + script).rdbuf();
    };
    add("driver.js");
    for (const std::string& script : scripts) add(script);
    page.insert(
        page.find("<head>") + 6,
        // The browser's virtual time runs ahead of the frames that a busy machine draws.
        "<script>requestAnimationFrame = callback => setTimeout(callback, 16);"
        "const faults = [];"
        "addEventListener('error', event => faults.push(String(event.message)));"
        "addEventListener('unhandledrejection', event => faults.push(String(event.reason)));"
        "addEventListener('securitypolicyviolation', event => faults.push('blocked: ' + "
        "event.blockedURI));</script>");
    page.insert(page.rfind("</body>"), "<script>" + driver.str() + "</script>");
    // The page's policy allows what it knows: what drives it has to be named there too.
    page.insert(page.find("script-src ") + 11, "'sha256-" + sha256_base64(driver.str()) + "' ");
    write("driven.html", page);
    const Outcome shown = shell(
        "HOME=\"$PWD\" timeout 300 " + browser_ +
        " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --window-size=" +
        std::to_string(width) +
        ",1600"
        " --user-data-dir=\"$PWD/profile\" --enable-logging=stderr --virtual-time-budget=10000"
        " --dump-dom \"file://$PWD/driven.html" +
        hash + "\" > dom.html");
    EXPECT_EQ(shown.output.find("CONSOLE"), std::string::npos) << shown.output;
    const std::string dom = read("dom.html");
    const size_t begin = dom.rfind("found:", dom.rfind(":found") - 1);
    EXPECT_NE(begin, std::string::npos) << shown.output;
    if (begin == std::string::npos) return nlohmann::json::object();
    const size_t end = dom.find(":found", begin);
    const nlohmann::json found =
        nlohmann::json::parse(unescaped(dom.substr(begin + 6, end - begin - 6)));
    EXPECT_EQ(found.at("faults"), nlohmann::json::array());
    return found;
  }

 private:
  static std::string unescaped(const std::string& text) {
    std::string plain;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '%') {
        plain += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
        i += 2;
      } else {
        plain += text[i];
      }
    }
    return plain;
  }

  std::string browser_;
};

}  // namespace pipesim::testing
