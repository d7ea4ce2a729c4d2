// pipesim doctor: which programs, libraries and data are there, and what each of them gives.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "app/commands.h"
#include "app/common_options.h"
#include "app/temporary.h"
#include "sim/core/data_folder.h"
#include "sim/core/text.h"
#include "sim/core/thread_team.h"
#include "sim/engine/simgrid.h"
#include "sim/exact/cbc.h"
#include "sim/http/http.h"
#include "sim/report/text/aligned.h"

namespace pipesim {
namespace {

namespace fs = std::filesystem;

// A version, or a place; nothing where the part is missing.
using Version = std::optional<std::string>;

struct Component {
  const char* name;
  std::function<Version()> find;
  const char* gives;
  const char* install;
  bool needed = false;
};

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// The first line that the command prints, where it ends well.
Version first_line_of(const std::string& command) {
  FILE* pipe = ::popen((command + " 2>/dev/null </dev/null").c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string printed;
  std::array<char, 512> part{};
  while (const size_t got = std::fread(part.data(), 1, part.size(), pipe)) {
    printed.append(part.data(), got);
  }
  if (::pclose(pipe) != 0 || printed.empty()) return std::nullopt;
  return printable(printed.substr(0, printed.find('\n')));
}

// The first interpreter that can, of those that draw figures.
Version python_says(const std::string& statement) {
  const char* chosen = std::getenv("PIPESIM_PYTHON");
  const bool asked = chosen != nullptr && *chosen != '\0';
  for (const std::string& each : asked ? std::vector<std::string>{"\"$PIPESIM_PYTHON\""}
                                       : std::vector<std::string>{"python3", "/usr/bin/python3"}) {
    if (auto said = first_line_of(fmt::format("{} -c '{}'", each, statement))) return said;
  }
  return std::nullopt;
}

Version find_data() {
  for (const char* part : {"catalog", "papers", "report", "plots", "scenarios", "reproduce"}) {
    if (!is_there(data_folder(part))) return std::nullopt;
  }
  return fs::path(data_folder("catalog")).parent_path().string();
}

Version find_own_catalogue() {
  const char* folder = std::getenv("PIPESIM_CATALOG");
  if (folder == nullptr || !is_there(folder)) return std::nullopt;
  return folder;
}

Version find_simgrid() {
  if (!has_simgrid()) return std::nullopt;
  void* engine = ::dlopen(module_file("simgrid-engine.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (engine == nullptr) return std::nullopt;
  using Asked = void (*)(int*, int*, int*);
  const auto version = reinterpret_cast<Asked>(::dlsym(engine, "sg_version_get"));
  if (version == nullptr) return "its version is not told";
  int major = 0, minor = 0, patch = 0;
  version(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

Version find_mpi() {
  if (!is_there(module_file("mpi.so"))) return std::nullopt;
  return first_line_of("mpirun --version").value_or("built in; there is no command mpirun");
}

Version find_http() {
  if (!has_http_server()) return std::nullopt;
  return "built in";
}

Version find_cbc() {
  TemporaryFolder folder;
  fs::path file;
  for (const char* name : exact::kCbcFiles) file = folder.file(name);
  return exact::cbc_version(file.parent_path());
}

Version find_blas() {
  if (::dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL) == nullptr) return std::nullopt;
  return "libopenblas.so.0";
}

Version find_calibrate() {
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  if (!is_there((here / "pipesim-calibrate").string())) return std::nullopt;
  return (here / "pipesim-calibrate").string();
}

std::vector<Component> parts() {
  return {
      {"pipesim", [] { return Version(PIPESIM_VERSION); }, "this program", "", true},
      {"data", find_data, "catalogues, papers, pages", "PIPESIM_DATA", true},
      {"own catalogue", find_own_catalogue, "more GPUs and clusters", "--catalog DIR"},
      {"SimGrid", find_simgrid, "links that messages share", "libsimgrid-dev, before building"},
      {"MPI", find_mpi, "sweep, execute on several machines", "libopenmpi-dev, before building"},
      {"HTTP server", find_http, "serve", "libcpp-httplib-dev, before building"},
      {"Python", [] { return python_says("import sys; print(sys.version.split()[0])"); },
       "plot, reproduce, notebooks", "python3"},
      {"matplotlib", [] { return python_says("import matplotlib; print(matplotlib.__version__)"); },
       "plot, reproduce", "python3-matplotlib"},
      {"Python module", [] { return python_says("import pipesim; print(pipesim.__file__)"); },
       "import pipesim", "pip install ."},
      {"CBC", find_cbc, "prove", "coinor-cbc"},
      {"OpenBLAS", find_blas, "faster execute --compute", "libopenblas0"},
      {"CUDA", find_calibrate, "calibrate a GPU", "nvcc with cuBLASLt, before building"},
      {"GPU",
       [] {
         return first_line_of(
             "nvidia-smi --query-gpu=name,driver_version "
             "--format=csv,noheader");
       },
       "calibrate, pipesim-replay", "a driver of NVIDIA"}};
}

struct Examined {
  Component part;
  Version found;
};

std::string text_of(const std::vector<Examined>& all) {
  std::vector<Row> rows{{"part", "gives", "found"}};
  for (const auto& [part, found] : all) {
    rows.push_back(
        {part.name, part.gives, found.value_or(fmt::format("missing: {}", part.install))});
  }
  return aligned(rows, rows.front().size()) +
         fmt::format("{} threads work at once (-j changes it)\n", available_threads());
}

void write_json(std::ostream& out, const std::vector<Examined>& all) {
  nlohmann::ordered_json document = {{"pipesim", PIPESIM_VERSION},
                                     {"threads", available_threads()},
                                     {"parts", nlohmann::ordered_json::array()}};
  for (const auto& [part, found] : all) {
    nlohmann::ordered_json entry = {{"name", part.name}, {"found", nullptr}};
    if (found) entry["found"] = *found;
    entry["needed"] = part.needed;
    entry["gives"] = part.gives;
    entry["install"] = part.install;
    document["parts"].push_back(std::move(entry));
  }
  out << document.dump(2) << '\n';
}

int examine(const std::string& json, const CommandLine& line) {
  std::vector<Examined> all;
  bool complete = true;
  for (Component& part : parts()) {
    Version found = part.find();
    complete = complete && (found || !part.needed);
    all.push_back({std::move(part), std::move(found)});
  }
  write_outputs(
      {{json, line.of_option(json), [&all](std::ostream& out) { write_json(out, all); }}});
  if (json != "-") std::cout << text_of(all) << std::flush;
  return complete ? kDone : kFailed;
}

}  // namespace

Subcommand add_doctor(Parser& program) {
  auto json = std::make_shared<std::string>();
  Parser& parser = program.add_command("doctor", "Show what is installed, found and missing",
                                       "  pipesim doctor\n"
                                       "  pipesim doctor --json doctor.json");
  add_json(parser, *json, "the same");
  parser.add_threads();
  return {&parser, [json](const CommandLine& line) { return examine(*json, line); }};
}

}  // namespace pipesim
