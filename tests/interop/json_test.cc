#include "sim/interop/json/json.h"

#include <gtest/gtest.h>

namespace pipesim::json_test {
namespace {

std::string error_of(const std::string& text) {
  try {
    (void)JsonFile("f.json", text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Json, KnowsWhereValuesStand) {
  const JsonFile file(
      "f.json", "{\n  \"a\": [1, -2.5,\n    \"three\"],\n  \"b\": {\"c\": true},\n \"d\": 17\n}");
  const JsonValue root = file.root();
  const auto list = root.require("a", "").values();
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[1].number(-10, 10), -2.5);
  EXPECT_EQ(list[1].where().line, 2);
  EXPECT_EQ(list[1].where().column, 12);
  EXPECT_EQ(list[2].text(), "three");
  EXPECT_EQ(list[2].where().line, 3);
  EXPECT_EQ(list[2].where().column, 5);
  EXPECT_TRUE(root.require("b", "").require("c", "").flag());
  EXPECT_EQ(root.require("b", "").require("c", "").where().column, 14);
  EXPECT_EQ(root.require("d", "").where().column, 7);
}

TEST(Json, SaysWhatIsWrongAndWhere) {
  EXPECT_TRUE(error_of("{\"a\": nope}").starts_with("f.json:1:8: not valid JSON near"))
      << error_of("{\"a\": nope}");
  EXPECT_NE(error_of("{\"a\": 1").find("not valid JSON"), std::string::npos);
  EXPECT_NE(error_of(std::string(100, '[')).find("f.json:1:65: nested deeper than 64"),
            std::string::npos);
  EXPECT_NE(error_of("\x1f\x8b\x08").find("gunzip"), std::string::npos);
  const JsonFile file("f.json", "{\n\"a\": \"text\"}");
  try {
    (void)file.root().require("a", "").integer(0, 9);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "f.json:2:6: a: expected a whole number, not a text");
  }
}

TEST(Json, HandsOverTheElementsOfOneList) {
  std::vector<long> seen;
  const JsonFile file("f.json",
                      R"({"x": [8, 9], "events": [{"n": 1}, {"n": [2]}, {"n": 3}], "y": 4})",
                      "events", [&seen](const JsonValue& event) {
                        const JsonValue n = event.require("n", "");
                        seen.push_back(n.is_list() ? n.values()[0].integer(0, 9) : n.integer(0, 9));
                      });
  EXPECT_EQ(seen, (std::vector<long>{1, 2, 3}));
  EXPECT_EQ(file.root().require("x", "").values().size(), 2U);
  EXPECT_TRUE(file.root().require("events", "").values().empty());
  EXPECT_EQ(file.root().require("y", "").integer(0, 9), 4);
}

}  // namespace
}  // namespace pipesim::json_test
