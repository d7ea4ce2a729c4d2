// The program: libFuzzer's, with one of the targets.
//   fuzz_readers --target=NAME [libFuzzer's options and folders]      --targets prints their names
#include "tests/fuzz/target.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string_view>
#include <unistd.h>

#include "tests/fuzz/yaml_mutator.h"

namespace pipesim::fuzz {
namespace {

std::vector<Target>& table() {
  static std::vector<Target> all;
  return all;
}

const Target* chosen = nullptr;

class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() / ("fuzz." + std::to_string(::getpid()))) {
    std::filesystem::create_directory(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Takes what begins with `option` off the command line; what follows it.
std::string take(int& count, char** arguments, std::string_view option) {
  for (int i = 1; i < count; ++i) {
    const std::string_view each = arguments[i];
    if (!each.starts_with(option)) continue;
    std::string value(each.substr(option.size()));
    std::rotate(arguments + i, arguments + i + 1, arguments + count);
    --count;
    return value.empty() ? std::string(option) : value;
  }
  return "";
}

}  // namespace

Register::Register(const Target& target) { table().push_back(target); }

const std::vector<Target>& targets() { return table(); }

std::string file_with(const std::string& name, const std::string& text) {
  static const Folder folder;
  const std::filesystem::path path = folder.path() / name;
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

void must(bool holds) {
  if (!holds) std::abort();
}

namespace {

void initialise(int& count, char** arguments) {
  std::ranges::sort(table(), {}, [](const Target& each) { return std::string_view(each.name); });
  if (!take(count, arguments, "--targets").empty()) {
    for (const Target& each : targets()) std::cout << each.name << '\n';
    std::exit(0);
  }
  const std::string name = take(count, arguments, "--target=");
  for (const Target& each : targets()) {
    if (each.name == name) chosen = &each;
  }
  if (chosen == nullptr) {
    std::cerr << "expected --target=NAME; --targets prints the names\n";
    std::exit(2);
  }
  for (int i = 1; i < count; ++i) {
    constexpr std::string_view kWords = "-dict=";
    if (std::string_view(arguments[i]).starts_with(kWords)) {
      read_words(arguments[i] + kWords.size());
    }
  }
}

int read(const std::string& text) {
  try {
    chosen->read(text);
  } catch (const InputError& error) {
    const Location& where = error.where();
    const bool in_file = where.line >= 1 && where.column >= 1;
    const bool of_whole = where.line == 0 && where.column == 0;
    if (!where.file.empty() && (in_file || of_whole)) return 0;
    std::cerr << "a refusal without its place: " << error.what() << '\n';
    std::abort();
  } catch (const InfeasibleError&) {
    // Understood, and cannot be met.
  }
  return 0;
}

}  // namespace
}  // namespace pipesim::fuzz

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  pipesim::fuzz::initialise(*count, *arguments);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return pipesim::fuzz::read({reinterpret_cast<const char*>(data), size});
}

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

// Half of the mutations of YAML are of its tree, where it has one.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned int seed) {
  using namespace pipesim::fuzz;
  if (chosen->form == Form::kYaml && seed % 2 == 0) {
    const std::string text = mutated({reinterpret_cast<const char*>(data), size}, seed);
    if (!text.empty() && text.size() <= most) {
      std::memcpy(data, text.data(), text.size());
      return text.size();
    }
  }
  return LLVMFuzzerMutate(data, size, most);
}
