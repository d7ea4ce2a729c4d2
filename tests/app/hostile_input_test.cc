// Inputs that crash, hang or mislead a trusting reader: each is refused with its place, exit
// code 2.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/app/command.h"
#include "tests/sanitized.h"

namespace pipesim::hostile_input_test {
namespace {

const std::string kRest =
    "parallel: {pipeline_model_parallel_size: 2}\nbatch: {num_microbatches: 4}\n"
    "cost: {kind: given, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}\n";

// Memory that a reader may take; a sanitizer needs more of the address space than any limit leaves.
const std::string kLimited =
    (testing::kSanitized ? "" : "ulimit -v 4000000; ") + std::string(PIPESIM_EXECUTABLE) + " ";

class HostileInput : public testing::Command {
 protected:
  void expect_refused(const std::string& arguments, const std::string& message) const {
    SCOPED_TRACE(arguments);
    const testing::Outcome outcome = shell(kLimited + arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.output.substr(0, 500);
    EXPECT_NE(outcome.output.find(message), std::string::npos) << outcome.output.substr(0, 500);
  }
};

TEST_F(HostileInput, AliasesToThemselves) {
  write("list.yaml", "schedule: &s [*s]\n" + kRest + "sweep: {grid: {cost.transfer: [1 ms]}}\n");
  expect_refused("sweep list.yaml -o d", "list.yaml:1:15: an alias to what it stands in");
  write("map.yaml", "schedule: 1f1b\n" + kRest + "optimizer: &v {sync: *v}\n");
  expect_refused("run map.yaml", "map.yaml:5:22: an alias to what it stands in");
  write("value.yaml", "schedule: 1f1b\n" + kRest);
  expect_refused("run value.yaml 'cost.transfer=&v [*v]'", "an alias to what it stands in");
  std::filesystem::create_directories(folder_ / "swept");
  for (const char* name : {"results.csv", "failed.csv"}) write(std::string("swept/") + name, "");
  write("swept/sweep.yaml", "schedule: &s [*s]\n");
  expect_refused("report swept -o x.html", "sweep.yaml:1:15: an alias to what it stands in");
}

TEST_F(HostileInput, AliasesThatMultiply) {
  std::string text = "schedule: 1f1b\n" + kRest + "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    text += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i,
                        i - 1);
  }
  write("s.yaml", text);
  expect_refused("run s.yaml", "more than 2000000 values, aliases written out");
}

TEST_F(HostileInput, DepthWithoutEnd) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  write("s.yaml", "schedule: " + deep + "\n" + kRest);
  expect_refused("run s.yaml", "s.yaml:1:210: lists and maps more than 200 deep");
  write("s.json", deep);
  expect_refused("report s.json -o x.html", "s.json:1:101: is nested too deeply");
}

TEST_F(HostileInput, TextThatWouldBeLeftOut) {
  write("dots.yaml", "schedule: 1f1b\n" + kRest + "...\nfoo: bar\n");
  expect_refused("run dots.yaml", "dots.yaml:6:1: expected one document, not several");
  write("percent.yaml", "schedule: 1f1b\n" + kRest + "%\nfoo: bar\n");
  expect_refused("run percent.yaml", "percent.yaml:5:1: a line that begins with %");
}

TEST_F(HostileInput, BytesThatAreNoText) {
  write("s.yaml", "schedule: 1f1b\n# \xC3\xA4\xE2\x82\xAC \xFF\n" + kRest);
  expect_refused("run s.yaml", "s.yaml:2:9: this byte is no UTF-8 text");
  write("s.yaml", "schedule: 1f1b\n# overlong \xC0\xAF\n" + kRest);
  expect_refused("run s.yaml", "s.yaml:2:12: this byte is no UTF-8 text");
}

TEST_F(HostileInput, WhatIsNoFile) {
  expect_refused("run .", "cannot read '.': it is a directory");
  expect_refused("run /dev/zero", "cannot read '/dev/zero': it is no regular file");
  expect_refused("report . -o x.html", "'.'");
  write("big.yaml", "schedule: 1f1b\n" + kRest + "#" + std::string(2 << 20, ' ') + "\n");
  const auto outcome = shell("PIPESIM_INPUT_MIB=1 " PIPESIM_EXECUTABLE " run big.yaml");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.output.find("more than 1 MiB; PIPESIM_INPUT_MIB="), std::string::npos)
      << outcome.output;
  EXPECT_EQ(run("run big.yaml").code, 0);
}

TEST_F(HostileInput, NumbersAndBatchesThatCannotBe) {
  write("big.json", R"({"pipesim":{},"scenario":{},"results":[{"schedule":"x","mfu":1e400}]})");
  expect_refused("report big.json -o x.html", "has a number that is out of range");
  write("none.yaml", "schedule: []\n" + kRest + "sweep: {grid: {cost.transfer: [1 ms, 2 ms]}}\n");
  expect_refused("sweep none.yaml -o d",
                 "none.yaml:1:11: schedule: expected at least one schedule");
  write("nemo.yaml",
        "rows:\n- {model: GPT3-175B, gpus: 128, gbs: 847, mbs: 1, seq: 2048, tp: 4, pp: 8, vp: 6,"
        " tok_s_gpu: 716}\n");
  expect_refused("validate nemo --data .", "microbatches of 1 do not divide 847");
  write("nemo.yaml",
        "rows:\n- {model: GPT3-175B, gpus: 128, gbs: 16777216, mbs: 1, seq: 2048, tp: 4, pp: 8, "
        "vp: 6,"
        " tok_s_gpu: 716}\n");
  expect_refused("validate nemo --data .", "4194304 microbatches, more than any published run has");
}

TEST_F(HostileInput, EscapesDoNotReachTheTerminal) {
  for (const char* arguments : {"run '\x1b[31mx.yaml'", "run s.yaml '\x1b[31mfoo=3'",
                                "run s.yaml 'schedule={csv: \"\\e[2J\"}'", "\x1b[2J",
                                "run s.yaml 'cost.forward=\xC2\x9B'"}) {
    write("s.yaml", "schedule: 1f1b\n" + kRest);
    const testing::Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.output.find('\x1b'), std::string::npos) << arguments;
    EXPECT_EQ(outcome.output.find("\xC2\x9B"), std::string::npos) << arguments;
  }
  expect_refused("run s.yaml 'schedule={csv: \"\\e[2J\"}'", "a control character");
}

TEST_F(HostileInput, UnitsOfBitsAndBytesAreNotMixedUp) {
  const std::string cluster =
      "cluster: {gpus_per_node: 1, network: {latency: 1 us, bandwidth: 400 ";
  for (const auto& [unit, meant] : std::initializer_list<std::pair<const char*, const char*>>{
           {"Gbs", "'Gb/s'"}, {"GBs", "'GB/s'"}, {"gb/s", "'Gb/s'"}}) {
    write("s.yaml", "schedule: 1f1b\n" + kRest + cluster + unit + "}}\n");
    expect_refused("run s.yaml",
                   std::string("unit '") + unit + "' is not known; did you mean " + meant);
  }
  write("s.yaml", "schedule: 1f1b\n" + kRest);
  expect_refused("run s.yaml 'memory={kind: given, activation: 3 Gb}'",
                 "unit 'Gb' is not known; valid: B, KB");
}

TEST_F(HostileInput, SecondsThatCannotBe) {
  write("s.yaml", "schedule: dualpipev\n" + kRest);
  expect_refused("run s.yaml 'cost.overlapped=1.5 ms'",
                 "1.500 ms is shorter than its longer part, which takes 2.000 ms");
  write(
      "w.yaml",
      "schedule: 1f1b\nparallel: {pipeline_model_parallel_size: 2}\nbatch: {num_microbatches: 4}\n"
      "cost: {kind: given, forward: nonsense, backward_input: 1 ms, backward_weight: 1 ms}\n"
      "sweep: {grid: {cost.forward: [1 ms, 2 ms]}}\n");
  expect_refused("sweep w.yaml -o d", "w.yaml:4:30: cost.forward: expected a time");
}

// A refusal by the system is neither the person's mistake nor ours.
TEST_F(HostileInput, TooFewHandlesAreSaid) {
  write("w.yaml", "schedule: 1f1b\n" + kRest + "sweep: {grid: {cost.transfer: [1 ms, 2 ms]}}\n");
  for (const char* files : {"6", "7", "8", "9"}) {
    const auto outcome =
        shell(std::string("ulimit -n ") + files + "; " PIPESIM_EXECUTABLE " sweep w.yaml -o d");
    EXPECT_LE(outcome.code, 1) << outcome.output;
    EXPECT_EQ(outcome.output.find("internal error"), std::string::npos) << outcome.output;
  }
}

// Linear in the number of keys: a reader that compares each with each would take 20 s of a core.
TEST_F(HostileInput, KeysByTheHundredThousand) {
  std::string text = "schedule: 1f1b\n" + kRest;
  for (int i = 0; i < 100'000; ++i) text += fmt::format("k{}: 1\n", i);
  write("s.yaml", text);
  expect_refused("run s.yaml", "k0: unknown key");
}

}  // namespace
}  // namespace pipesim::hostile_input_test
