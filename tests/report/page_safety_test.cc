// Pages and tables do nothing but show what is in them.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/core/csv.h"
#include "sim/core/error.h"
#include "sim/report/html/html.h"
#include "sim/report/html/sha256.h"

namespace pipesim::page_safety_test {
namespace {

// The examples of FIPS 180-4, in base 64.
TEST(Sha256, IsThatOfTheStandard) {
  EXPECT_EQ(sha256_base64(""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
  EXPECT_EQ(sha256_base64("abc"), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
  EXPECT_EQ(sha256_base64("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "JI1qYdIGOLjlwCaTDD5gOaM85Flk/yFn9uzt1BnbBsE=");
}

TEST(Page, AllowsItsOwnScriptAndStyleByTheirHashes) {
  HtmlReport report("1");
  report.add_document(
      {"a.json", R"({"pipesim":{},"scenario":{},"results":[{"schedule":"</script><script>"}]})"});
  const std::string page = report.page(PIPESIM_SOURCE_DIR "/sim/report/html/page", {});
  EXPECT_EQ(page.find("unsafe-inline"), std::string::npos);
  for (const std::string element : {"style", "script"}) {
    const std::string begin = "<" + element + ">";
    const size_t inside = page.find(begin) + begin.size();
    const std::string content =
        page.substr(inside, page.find("</" + element + ">", inside) - inside);
    EXPECT_GT(content.size(), 1000U);
    EXPECT_NE(page.find(element + "-src 'sha256-" + sha256_base64(content) + "'"),
              std::string::npos);
  }
}

TEST(Page, ChecksAllThatItTakesFromADocument) {
  for (const char* result :
       {R"({"schedule":"x","mfu":"<b>"})", R"({"schedule":1})", R"({"schedule":"x","devices":3})",
        R"({"schedule":"x","devices":[{"idle_seconds_by_cause":{"order":[]}}]})",
        R"({"schedule":"x","iteration_seconds":{}})"}) {
    HtmlReport report("1");
    EXPECT_THROW(
        report.add_document(
            {"a.json", std::string(R"({"pipesim":{},"scenario":{},"results":[)") + result + "]}"}),
        InputError)
        << result;
  }
}

TEST(Page, ChecksAllThatItTakesFromAPlan) {
  nlohmann::json layout{
      {"schedule", "1f1b"},         {"recompute", "none"},  {"vocabulary", "vocab-1"},
      {"limited_by", "x"},          {"offload", false},     {"runs_on", {"megatron"}},
      {"shares", {{"model", 0.5}}}, {"contended", nullptr}, {"band", nullptr}};
  for (const char* key :
       {"tensor_model_parallel_size", "context_parallel_size", "expert_model_parallel_size",
        "expert_tensor_parallel_size", "pipeline_model_parallel_size",
        "virtual_pipeline_model_parallel_size", "data_parallel_size", "micro_batch_size",
        "iteration_seconds", "tokens_per_second_per_gpu", "mfu", "peak_memory_bytes",
        "headroom_bytes", "bubble"}) {
    layout[key] = 1;
  }
  const nlohmann::json what_if{
      {"change", "memory x 2"},  {"quantity", "memory"}, {"factor", 2}, {"gpus", 8},
      {"memory_limit_bytes", 8}, {"layout", layout}};
  const nlohmann::json plan{
      {"model", "m"},           {"cluster", "c"},        {"gpus", 8},
      {"global_batch_size", 8}, {"seq_length", 8},       {"memory_limit_bytes", 8},
      {"layouts", {layout}},    {"what_ifs", {what_if}}, {"baseline", layout}};
  const nlohmann::json good{{"pipesim", nlohmann::json::object()}, {"plans", {plan}}};
  const auto add = [](const nlohmann::json& document) {
    HtmlReport("1").add_document({"a.json", document.dump()});
  };
  EXPECT_NO_THROW(add(good));
  for (const auto& [path, value] : std::vector<std::pair<const char*, nlohmann::json>>{
           {"/pipesim", 1},
           {"/plans", 1},
           {"/plans/0", "x"},
           {"/plans/0/cluster", 3},
           {"/plans/0/gpus", "8"},
           {"/plans/0/layouts", nullptr},
           {"/plans/0/what_ifs", {{{"change", 1}, {"gpus", 8}}}},
           {"/plans/0/what_ifs/0/factor", "<b>"},
           {"/plans/0/what_ifs/0/quantity", 1},
           {"/plans/0/what_ifs/0/layout/mfu", "<b>"},
           {"/plans/0/baseline", 3},
           {"/plans/0/layouts/0/schedule", nullptr},
           {"/plans/0/layouts/0/scenario", 3},
           {"/plans/0/layouts/0/iteration_seconds", "<b>"},
           {"/plans/0/layouts/0/days", "<b>"},
           {"/plans/0/layouts/0/offload", 1},
           {"/plans/0/layouts/0/runs_on", {1}},
           {"/plans/0/layouts/0/shares", {{"model", nullptr}}},
           {"/plans/0/layouts/0/contended", 3},
           {"/plans/0/layouts/0/band", {{"level", 0.8}, {"iteration_seconds", {1}}}}}) {
    nlohmann::json bad = good;
    bad[nlohmann::json::json_pointer(path)] = value;
    EXPECT_THROW(add(bad), InputError) << path;
  }
}

TEST(CsvField, IsNoFormula) {
  EXPECT_EQ(csv_field("=1+2"), "'=1+2");
  EXPECT_EQ(csv_field("@SUM(A1)"), "'@SUM(A1)");
  EXPECT_EQ(csv_field("+cmd|' /C calc'!A0"), "'+cmd|' /C calc'!A0");
  EXPECT_EQ(csv_field("-2,5"), "\"'-2,5\"");
  for (const char* plain : {"-2.5", "+3e-4", "zb-h1", "1f1b", ""})
    EXPECT_EQ(csv_field(plain), plain);
}

}  // namespace
}  // namespace pipesim::page_safety_test
