#include "sim/read/yaml.h"

#include <functional>
#include <gtest/gtest.h>

#include "tests/read/message_of.h"

namespace pipesim::yaml_test {
namespace {

using testing::message_of;

std::string refusal(const std::string& text, const std::function<void(YamlMap&)>& read) {
  return message_of([&] {
    const YamlSource source("s.yaml", text);
    YamlMap map(source.root());
    read(map);
    map.finish();
  });
}

YamlValue value_of(const YamlSource& source) {
  YamlMap map(source.root());
  return map.require("v", "a value");
}

TEST(Yaml, ReadsBandwidthsOfBitsAndOfBytes) {
  const auto read = [](const std::string& text) {
    const YamlSource source("s.yaml", "v: " + text);
    return value_of(source).bandwidth().value();
  };
  for (const char* bits : {"400 Gb/s", "400 Gbps", "400 Gbit/s", "0.4 Tb/s", "400000 Mb/s"}) {
    EXPECT_DOUBLE_EQ(read(bits), 50e9) << bits;
  }
  for (const char* bytes : {"50 GB/s", "50 GBps", "0.05 TB/s", "50000 MB/s"}) {
    EXPECT_DOUBLE_EQ(read(bytes), 50e9) << bytes;
  }
}

TEST(Yaml, OffersNoBitForAByte) {
  const auto refusal = [](const std::string& text, bool bandwidth) -> std::string {
    const YamlSource source("s.yaml", "v: " + text);
    try {
      bandwidth ? (void)value_of(source).bandwidth() : (void)value_of(source).bytes();
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal("80 Gb", false).find("did you mean"), std::string::npos);
  EXPECT_NE(refusal("80 Gb", false).find("valid: B, KB"), std::string::npos)
      << refusal("80 Gb", false);
  EXPECT_NE(refusal("80 gB", false).find("did you mean 'GB'?"), std::string::npos);
  EXPECT_NE(refusal("80 GGb/s", true).find("did you mean 'Gb/s'?"), std::string::npos)
      << refusal("80 GGb/s", true);
}

TEST(Yaml, ReadsThousandsAsPeopleWriteThem) {
  const auto count = [](const std::string& text) {
    const YamlSource source("s.yaml", "v: " + text);
    return value_of(source).integer(0, 1L << 60);
  };
  EXPECT_EQ(count("8k"), 8000);
  EXPECT_EQ(count("1.5M"), 1500000);
  EXPECT_EQ(count("2G"), 2000000000);
  EXPECT_EQ(count("15T"), 15000000000000);
  EXPECT_THROW((void)count("1.0005k"), InputError);
  EXPECT_THROW((void)count("8x"), InputError);
  EXPECT_THROW((void)count("8.5"), InputError);
  const YamlSource sequence("s.yaml", "v: 8k");
  EXPECT_EQ(value_of(sequence).tokens(1, 1 << 20), 8192);
}

TEST(Yaml, KeepsTheNameAboveAKeyThatIsSet) {
  const YamlSource source(
      "s.yaml", "cluster: dgx-h100\nmodel: llama3-8b\nbatch: 4",
      {parse_override("cluster.network.bandwidth=200 Gbps", {}),
       parse_override("model.num_layers=4", {}), parse_override("cluster.name=dgx-a100", {})});
  EXPECT_EQ(source.root().one_line(),
            "{batch: 4, cluster: {name: dgx-a100, network: {bandwidth: 200 Gbps}}, model: {base: "
            "llama3-8b, num_layers: 4}}");
}

TEST(Yaml, ReadsQuantitiesWithTheirUnits) {
  const YamlSource source("s.yaml",
                          "{a: 18.522 ms, b: 1.5us, c: 3.7 GiB, d: 2 MB, e: 400 Gbps, f: 3 GB/s, "
                          "g: 0.7 kW, h: 0, i: 1e-3 s}");
  YamlMap map(source.root());
  EXPECT_DOUBLE_EQ(map.find("a")->seconds().value(), 0.018522);
  EXPECT_DOUBLE_EQ(map.find("b")->seconds().value(), 1.5e-6);
  EXPECT_DOUBLE_EQ(map.find("c")->bytes().value(), 3.7 * 1073741824.0);
  EXPECT_DOUBLE_EQ(map.find("d")->bytes().value(), 2e6);
  EXPECT_DOUBLE_EQ(map.find("e")->bandwidth().value(), 50e9);
  EXPECT_DOUBLE_EQ(map.find("f")->bandwidth().value(), 3e9);
  EXPECT_DOUBLE_EQ(map.find("g")->power().value(), 700);
  EXPECT_DOUBLE_EQ(map.find("h")->seconds().value(), 0);
  EXPECT_DOUBLE_EQ(map.find("i")->seconds().value(), 1e-3);
  map.finish();
}

struct BadQuantity {
  const char* text;
  const char* expected;
};

class RefusedQuantity : public ::testing::TestWithParam<BadQuantity> {};

TEST_P(RefusedQuantity, SaysWhatWasExpected) {
  const std::string text = "time: " + std::string(GetParam().text) + "\n";
  const std::string message =
      refusal(text, [](YamlMap& map) { (void)map.require("time", "a time").seconds(); });
  EXPECT_NE(message.find(GetParam().expected), std::string::npos) << message;
  EXPECT_NE(message.find("s.yaml:1:7: time: "), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Times, RefusedQuantity,
    ::testing::Values(
        BadQuantity{"18.5", "has no unit"}, BadQuantity{"18.5 mss", "did you mean 'ms'?"},
        BadQuantity{"-1 ms", "negative"}, BadQuantity{"fast", "expected a time such as '18.5 ms'"},
        BadQuantity{"[1 ms]", "not a list"}, BadQuantity{"nan", "expected a time"},
        BadQuantity{"inf s", "expected a time"}, BadQuantity{"1e400 s", "expected a time"},
        BadQuantity{"1 GiB", "unit 'GiB' is not known"}, BadQuantity{"1.2.3 s", "expected a time"},
        BadQuantity{"1e308 s", "is too large"}, BadQuantity{"1e-30 s", "too small"}));

TEST(Yaml, NamesTheNearestKeyForAnUnknownOne) {
  const std::string message =
      refusal("forwrd: 1 ms\n", [](YamlMap& map) { (void)map.find("forward"); });
  EXPECT_EQ(message,
            "s.yaml:1:1: forwrd: unknown key; did you mean 'forward'?\n  forwrd: 1 ms\n  ^");
}

TEST(Yaml, NamesAKeyOnceHoweverOftenItIsLookedFor) {
  const std::string message = refusal("z: 1\n", [](YamlMap& map) {
    for (const char* key : {"cost", "memory", "cost"}) (void)map.find(key);
  });
  EXPECT_NE(message.find("unknown key; valid: cost, memory\n"), std::string::npos) << message;
}

TEST(Yaml, RefusesAKeyThatIsThereTwice) {
  const std::string message =
      refusal("a: 1\nb: 2\na: 3\n", [](YamlMap& map) { (void)map.find("a"), (void)map.find("b"); });
  EXPECT_NE(message.find("s.yaml:3:1: a: this key is there twice"), std::string::npos) << message;
}

TEST(Yaml, TakesDashesForUnderscores) {
  const YamlSource source("s.yaml", "micro-batch-size: 6\n");
  YamlMap map(source.root());
  EXPECT_EQ(map.find("micro_batch_size")->integer(1, 10), 6);
  map.finish();
}

TEST(Yaml, TakesShortNamesOfSizesInTheirSection) {
  const YamlSource source("s.yaml", "parallel: {pp: 4, tp: 2}\nbatch: {mbs: 1}\ncost: {pp: 3}\n",
                          {parse_override("tp=8", {}), parse_override("parallel.dp=5", {}),
                           parse_override("batch.gbs=40", {})});
  YamlMap root(source.root());
  YamlMap parallel(*root.find("parallel"));
  EXPECT_EQ(parallel.find("pipeline_model_parallel_size")->integer(1, 64), 4);
  EXPECT_EQ(parallel.find("tensor_model_parallel_size")->integer(1, 64), 8);
  EXPECT_EQ(parallel.find("data_parallel_size")->integer(1, 64), 5);
  parallel.finish();
  YamlMap batch(*root.find("batch"));
  EXPECT_EQ(batch.find("micro_batch_size")->integer(1, 64), 1);
  EXPECT_EQ(batch.find("global_batch_size")->integer(1, 64), 40);
  EXPECT_TRUE(YamlMap(*root.find("cost")).find("pp"));
}

TEST(Yaml, RefusesASizeUnderBothOfItsNames) {
  const std::string message = message_of([] {
    const YamlSource source("s.yaml", "parallel: {pp: 4, pipeline_model_parallel_size: 2}\n");
    YamlMap root(source.root());
    (void)YamlMap(*root.find("parallel"));
  });
  EXPECT_NE(message.find("s.yaml:1:19: parallel.pipeline_model_parallel_size: this key is there"),
            std::string::npos)
      << message;
}

TEST(Yaml, SaysWhichKeyIsMissing) {
  const std::string message =
      refusal("a: 1\n", [](YamlMap& map) { (void)map.require("batch", "a map"); });
  EXPECT_NE(message.find("'batch' is missing: expected a map"), std::string::npos) << message;
}

TEST(Yaml, TakesAMisspeltKeyForTheMissingOne) {
  const std::string message =
      refusal("bacth: 1\n", [](YamlMap& map) { (void)map.require("batch", "a map"); });
  EXPECT_NE(message.find("s.yaml:1:1: bacth: unknown key; did you mean 'batch'?"),
            std::string::npos)
      << message;
}

TEST(Yaml, LocatesASyntaxError) {
  const std::string message =
      message_of([] { const YamlSource source("s.yaml", "a: [1, 2\nb: 3\n"); });
  EXPECT_NE(message.find("s.yaml:2:"), std::string::npos) << message;
  EXPECT_NE(message.find("not valid YAML"), std::string::npos) << message;
}

TEST(Yaml, RefusesNumbersOutOfRange) {
  const auto read = [](YamlMap& map) { (void)map.require("n", "n").integer(1, 8); };
  EXPECT_NE(refusal("n: 9\n", read).find("from 1 to 8, not '9'"), std::string::npos);
  EXPECT_NE(refusal("n: 1.5\n", read).find("whole number"), std::string::npos);
  EXPECT_NE(refusal("n: 99999999999999999999\n", read).find("whole number"), std::string::npos);
  EXPECT_EQ(refusal("n: 8\n", read), "");
}

Location argument(int column) { return {"command line", 1, column, "pipesim run f.yaml a.b=x"}; }

TEST(Overrides, ReplaceAndAddValues) {
  const YamlSource source(
      "s.yaml", "a: {b: 1, c: [1, 2]}\n",
      {parse_override("a.b=5", argument(1)), parse_override("a.c.1=7", argument(1)),
       parse_override("d.e-f=[x, y]", argument(1))});
  YamlMap root(source.root());
  YamlMap a(*root.find("a"));
  EXPECT_EQ(a.find("b")->integer(0, 10), 5);
  EXPECT_EQ(a.find("c")->list()[1].integer(0, 10), 7);
  YamlMap d(*root.find("d"));
  EXPECT_EQ(d.find("e_f")->list()[1].text(), "y");
}

// yaml-cpp shares one node among all aliases: assigning into it would change every one.
TEST(Overrides, OfOneAliasLeaveTheOthersAlone) {
  const YamlSource source(
      "s.yaml", "{a: &t 1, b: *t, c: &l [1, 2], d: *l}\n",
      {parse_override("a=5", argument(1)), parse_override("c.0=7", argument(1))});
  YamlMap root(source.root());
  EXPECT_EQ(root.find("a")->integer(0, 10), 5);
  EXPECT_EQ(root.find("b")->integer(0, 10), 1);
  EXPECT_EQ(root.find("c")->list()[0].integer(0, 10), 7);
  EXPECT_EQ(root.find("d")->list()[0].integer(0, 10), 1);
}

TEST(Yaml, RefusesASecondDocument) {
  EXPECT_NE(
      refusal("a: 1\n---\nb: 2\n", [](YamlMap& map) { (void)map.find("a"); }).find("one document"),
      std::string::npos);
}

TEST(Yaml, LocatesAMissingValueBehindItsKey) {
  const std::string message =
      refusal("a:\nb: 2\n", [](YamlMap& map) { (void)map.require("a", "text").text(); });
  EXPECT_NE(message.find("s.yaml:1:1: a: expected text, not nothing"), std::string::npos)
      << message;
}

TEST(Overrides, AreLocatedOnTheCommandLine) {
  const std::string message = message_of([] {
    const YamlSource source("s.yaml", "a: {b: 1}\n", {parse_override("a.b=x", argument(20))});
    YamlMap root(source.root());
    YamlMap a(*root.find("a"));
    (void)a.find("b")->integer(0, 10);
  });
  // Column 20 is where the path begins; the value follows "a.b=".
  EXPECT_NE(message.find("command line:1:24: a.b: expected a whole number"), std::string::npos)
      << message;
}

TEST(Overrides, OfUnknownKeysAreRefused) {
  const std::string message = message_of([] {
    const YamlSource source("s.yaml", "a: 1\n", {parse_override("x.y=1", argument(20))});
    YamlMap root(source.root());
    (void)root.find("a");
    root.finish();
  });
  EXPECT_NE(message.find("command line:1:"), std::string::npos) << message;
  EXPECT_NE(message.find("unknown key"), std::string::npos) << message;
}

TEST(Overrides, NeedAnEqualsSignAndAPath) {
  EXPECT_NE(message_of([] { (void)parse_override("a.b", argument(20)); }).find("path.to.key=value"),
            std::string::npos);
  EXPECT_NE(
      message_of([] { (void)parse_override("a..b=1", argument(20)); }).find("path.to.key=value"),
      std::string::npos);
  EXPECT_NE(message_of([] { (void)parse_override("=1", argument(20)); }).find("path.to.key=value"),
            std::string::npos);
}

TEST(Overrides, DoNotReachIntoScalars) {
  const std::string message = message_of([] {
    const YamlSource source("s.yaml", "a: [1]\n", {parse_override("a.4=1", argument(20))});
  });
  EXPECT_NE(message.find("no index of a list of 1"), std::string::npos) << message;
}

TEST(Yaml, NamesTheEntriesOfAMapAsWritten) {
  const YamlSource source("s.yaml", "{llama-7b: {a: 1}, Other_1: {a: 2}}");
  const auto entries = source.root().entries();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].first, "llama-7b");
  EXPECT_EQ(entries[1].first, "Other_1");
  YamlMap second(entries[1].second);
  EXPECT_EQ(second.require("a", "a number").integer(0, 9), 2);
  EXPECT_NE(message_of([] {
              (void)YamlSource("s.yaml", "{a-b: 1, a_b: 2}").root().entries();
            }).find("s.yaml:1:10: a_b: this key is there twice"),
            std::string::npos);
}

TEST(YamlSource, WithOtherValuesStaysAsItWas) {
  const YamlSource source("s.yaml", "v: {a: 1, b: [1, 2]}\nw: 3\n");
  const auto override_of = [](const std::string& text) {
    return parse_override(text, {"", 1, 1, text});
  };
  const YamlSource first = source.with({override_of("v.a=5"), override_of("v.b.1=7")});
  const YamlSource second = source.with({override_of("w=4")});
  EXPECT_EQ(first.root().one_line(), "{v: {a: 5, b: [1, 7]}, w: 3}");
  EXPECT_EQ(second.root().one_line(), "{v: {a: 1, b: [1, 2]}, w: 4}");
  EXPECT_EQ(source.root().one_line(), "{v: {a: 1, b: [1, 2]}, w: 3}");
  EXPECT_EQ(second.with({}).root().one_line(), second.root().one_line());
}

}  // namespace
}  // namespace pipesim::yaml_test
