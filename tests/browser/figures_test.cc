// The drawings of docs/ in a real browser: no label is cut by its drawing's frame.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/browser/browser.h"

namespace pipesim::figures_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Figures : public testing::Browser {
 protected:
  // A drawing has a tree of its own: its style is no other's.
  static std::string holder(const std::string& name, const std::string& drawing) {
    return fmt::format(
        "<div data-name=\"{}\"><template shadowrootmode=\"open\">{}</template></div>\n", name,
        drawing.substr(drawing.find("<svg")));
  }

  json look_at(const std::string& holders) {
    write(
        "page.html",
        "<!doctype html><html><head><meta charset=\"utf-8\">"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"script-src 'self'\"></head><body>" +
            holders + "</body></html>");
    return drive("page.html", {"drive_figures.js"}, 2000);
  }
};

TEST_F(Figures, OfTheDocsShowTheirLabelsWhole) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(PIPESIM_SOURCE_DIR "/docs")) {
    if (entry.path().extension() == ".svg") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::string holders;
  for (const fs::path& file : files) {
    std::ostringstream drawing;
    drawing << std::ifstream(file).rdbuf();
    holders += holder(file.filename().string(), drawing.str());
  }
  const json found = look_at(holders);
  EXPECT_EQ(found.at("drawings"), files.size());
  EXPECT_GT(found.at("labels"), 1000);
  EXPECT_EQ(found.at("cut"), json::array());
}

TEST_F(Figures, ThatCutALabelAreNamed) {
  const auto drawing = [](int x) {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"200\" height=\"40\" viewBox=\"0 0 200 "
        "40\">"
        "<text x=\"{}\" y=\"20\" font-size=\"12\">a label of some length</text></svg>",
        x);
  };
  const json found = look_at(holder("whole.svg", drawing(10)) + holder("cut.svg", drawing(150)));
  EXPECT_EQ(found.at("cut"), json::array({"cut.svg: a label of some length"}));
}

}  // namespace
}  // namespace pipesim::figures_test
