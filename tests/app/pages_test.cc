// The pages of docs that are made from the registry are those that it makes today.
#include <filesystem>
#include <gtest/gtest.h>
#include <optional>

#include "tests/app/command.h"

namespace pipesim::pages_test {
namespace {

namespace fs = std::filesystem;

class Pages : public testing::Command {
 protected:
  // Where docs have the page; its folder may move.
  [[nodiscard]] static fs::path committed(const std::string& name) {
    for (const auto& each :
         fs::recursive_directory_iterator(fs::path(PIPESIM_SOURCE_DIR) / "docs")) {
      if (each.path().filename() == name) return each.path();
    }
    ADD_FAILURE() << "docs have no " << name;
    return {};
  }
  static void expect_fresh(const fs::path& page, const std::string& made,
                           const std::string& command) {
    EXPECT_TRUE(testing::read_file(page) == made)
        << page << " is stale: make it anew with\n  " << command;
  }
};

TEST_F(Pages, HaveTheListsOfSchedulesAndMetricsOfToday) {
  const fs::path metrics = committed("metrics.md");
  expect_fresh(metrics, run("list metrics --format markdown").output,
               "pipesim list metrics --format markdown > " + metrics.string());
  const fs::path page = committed("schedule-list.md");
  expect_fresh(page, run("list --format markdown").output,
               "pipesim list --format markdown > " + page.string());
}

TEST_F(Pages, HaveTheGalleryOfToday) {
  ASSERT_EQ(run("gallery -o made").code, 0);
  const fs::path page = committed("gallery.md");
  const std::string command = "pipesim gallery -o " + page.parent_path().string();
  expect_fresh(page, read("made/gallery.md"), command);
  const fs::path drawings = page.parent_path() / "gallery";
  for (const auto& each : fs::directory_iterator(folder_ / "made/gallery")) {
    const fs::path name = each.path().filename();
    expect_fresh(drawings / name, testing::read_file(each.path()), command);
  }
  for (const auto& each : fs::directory_iterator(drawings)) {
    EXPECT_TRUE(fs::exists(folder_ / "made/gallery" / each.path().filename()))
        << each.path() << " is of no schedule";
  }
}

}  // namespace
}  // namespace pipesim::pages_test
