// The page of `pipesim serve` in a real browser: drive_serve.py says what is done and expected.
#include <gtest/gtest.h>

#include "sim/http/http.h"
#include "tests/app/command.h"

namespace pipesim::serve_page_test {
namespace {

using ServePage = testing::Command;

TEST_F(ServePage, AnswersAsOneTypes) {
  const auto browser = shell("command -v chromium || command -v google-chrome");
  if (browser.code != 0 || !has_http_server()) {
    GTEST_SKIP() << "no Chromium or no cpp-httplib; tools/install_dependencies full installs both";
  }
  const std::string script = std::string(PIPESIM_SOURCE_DIR) + "/tests/browser/drive_serve.py";
  const auto driven =
      shell("HOME=\"$PWD\" PYTHONDONTWRITEBYTECODE=1 python3 " + script +
            " " PIPESIM_EXECUTABLE " " + browser.output.substr(0, browser.output.find('\n')));
  EXPECT_EQ(driven.code, 0) << driven.output;
}

}  // namespace
}  // namespace pipesim::serve_page_test
