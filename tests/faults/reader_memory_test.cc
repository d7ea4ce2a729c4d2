// Memory of a command in proportion to its input, whatever the shape of that: many lines, or one.
#include <cerrno>
#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "sim/core/child_process.h"
#include "tests/app/command.h"
#include "tests/sanitized.h"

namespace pipesim::reader_memory_test {
namespace {

constexpr double kMostPerByte = 1500;
constexpr long kInput = 400'000;  // bytes

// `head`, then as many of `item` with `between` as make up the size, then `tail`.
std::string repeated(const std::string& head, const std::string& item, const std::string& between,
                     const std::string& tail) {
  std::string text = head + item;
  while (static_cast<long>(text.size()) < kInput) text += between + item;
  return text + tail;
}

struct Reader {
  std::string name;
  std::string file;
  std::string text;
  std::string command;
};

const std::string kGiven =
    "parallel: {pipeline_model_parallel_size: 4}\nbatch: {num_microbatches: 8}\n"
    "cost: {kind: given, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}\n";

std::vector<Reader> readers() {
  const std::string scenario = "schedule: 1f1b\n" + kGiven;
  const std::string run = "run in.yaml";
  return {
      {"schedules on a line", "in.yaml", repeated("schedule: [", "1f1b", ",", ", none]\n" + kGiven),
       run},
      {"schedules on lines", "in.yaml",
       repeated("schedule:\n", "- 1f1b", "\n", "\n- none\n" + kGiven), run},
      {"unknown keys on a line", "in.yaml", repeated("x: {a: ", "[1]", ", b: ", "}\n"), run},
      {"stragglers", "in.yaml",
       repeated(scenario + "perturb: {stragglers: [", "{rank: 0, factor: 2}", ",", "]}\n"), run},
      {"factors", "in.yaml",
       repeated("schedule: 1f1b\nparallel: {pipeline_model_parallel_size: 4}\n"
                "cost: {kind: given, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}\n"
                "batch: {factors: [",
                "1", ",", "]}\n"),
       "run in.yaml batch.num_microbatches=8"},
      {"swept values", "in.yaml",
       repeated(scenario + "sweep: {grid: {cost.forward: [", "1 ms", ",", "]}}\n"),
       "sweep in.yaml -o out"},
      {"a description's passes", "in.yaml",
       repeated("placement: linear\nrules:\n  - {passes: [", "F", ",", "]}\n  - {passes: [BW]}\n"),
       "run s.yaml schedule='{file: in.yaml}'"},
      {"an order's cells", "in.csv", repeated("", "0F0", ",", "\n"),
       "run s.yaml schedule='{csv: in.csv}'"},
      {"passes of a run", "in.csv", repeated("rank,kind,start_ms,end_ms\n", "0,F,0,1", "\n", "\n"),
       "import in.csv --format passes"},
      {"a script's words", "in.sh", repeated("torchrun pretrain_gpt.py ", "--a", " ", "\n"),
       "import in.sh --format megatron"},
      {"a script's lines", "in.sh", repeated("", "A=1", "\n", "\n"),
       "import in.sh --format megatron"},
      {"a bridge's list", "in.yaml", repeated("model: {a: [", "1", ",", "]}\n"),
       "import in.yaml --format megatron"},
      {"a job file", "in.toml", repeated("[model]\na = [", "1", ",", "]\n"),
       "import in.toml --format torchtitan"},
      {"a DeepSpeed configuration", "in.json", repeated("{\"a\": [", "1", ",", "]}\n"),
       "import in.json --format deepspeed"},
      {"a trace", "in.json",
       repeated("{\"traceEvents\": [", "{\"ph\": \"X\", \"name\": \"a\", \"ts\": 1, \"dur\": 1}",
                ",", "]}\n"),
       "import in.json --format kineto"},
      {"a log", "in.log", repeated("", "elapsed time per iteration (ms): 1.0", " | ", "\n"),
       "anchor m.yaml --log in.log"},
      {"a config.json", "in.json", repeated("{\"architectures\": [", "\"a\"", ",", "]}\n"),
       "run m.yaml model='{hf_config: in.json}'"},
      {"a calibration", "in.yaml",
       repeated("schema: pipesim-calibration/1\nnot_measured: [", "a", ",", "]\n"),
       "run m.yaml cost='{kind: measured, file: in.yaml}'"},
      {"a table of results", "in.csv", repeated("", "a", ",", "\n"),
       "plot curves in.csv -o f.svg"}};
}

// Peak resident bytes of a command.
double peak_bytes(const std::string& folder, const std::string& arguments) {
  const pid_t child = fork_child();
  if (child == 0) {
    const std::string line =
        "cd '" + folder + "' && exec " + PIPESIM_EXECUTABLE + " " + arguments + " > /dev/null 2>&1";
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  rusage used{};
  while (::wait4(child, &status, 0, &used) < 0 && errno == EINTR) {
  }
  EXPECT_TRUE(WIFEXITED(status)) << arguments;
  return 1024.0 * static_cast<double>(used.ru_maxrss);
}

class ReaderMemory : public testing::Command {};

TEST_F(ReaderMemory, IsInProportionToTheInput) {
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer keeps what is freed";
  write("s.yaml", "schedule: 1f1b\n" + kGiven);
  write("m.yaml",
        "schedule: 1f1b\nmodel: llama3-8b\ncluster: dgx-h100\n"
        "parallel: {pipeline_model_parallel_size: 8}\n"
        "batch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 4096}\n");
  const double alone = peak_bytes(folder_, "run s.yaml");
  for (const Reader& reader : readers()) {
    write(reader.file, reader.text);
    const double more = peak_bytes(folder_, reader.command) - alone;
    const double per_byte = more / static_cast<double>(reader.text.size());
    fmt::print("{:28} {:6.0f} bytes of memory a byte\n", reader.name, per_byte);
    EXPECT_LT(per_byte, kMostPerByte) << reader.name;
  }
}

}  // namespace
}  // namespace pipesim::reader_memory_test
