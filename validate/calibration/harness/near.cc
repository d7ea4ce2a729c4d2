#include "validate/calibration/harness/near.h"

#include <cctype>
#include <charconv>
#include <fstream>

namespace pipesim::calibration {
namespace {

std::string line_of(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

// The kernel writes buses in small letters.
std::string small(std::string text) {
  for (char& letter : text) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return text;
}

}  // namespace

std::vector<int> processors_of(const std::string& list) {
  std::vector<int> all;
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at < end) {
    int first = 0;
    auto read = std::from_chars(at, end, first);
    if (read.ec != std::errc() || first < 0) return {};
    int last = first;
    if (read.ptr < end && *read.ptr == '-') {
      read = std::from_chars(read.ptr + 1, end, last);
      if (read.ec != std::errc() || last < first || last >= CPU_SETSIZE) return {};
    }
    for (int each = first; each <= last; ++each) all.push_back(each);
    if (read.ptr < end && *read.ptr != ',') return {};
    at = read.ptr + 1;
  }
  return all;
}

NearCard::NearCard(const std::string& bus) {
  const std::string path = "/sys/bus/pci/devices/" + small(bus) + "/local_cpulist";
  cpu_set_t near;
  CPU_ZERO(&near);
  const std::vector<int> processors = processors_of(line_of(path));
  for (const int each : processors) CPU_SET(each, &near);
  cpu_set_t before;
  if (processors.empty() || sched_getaffinity(0, sizeof before, &before) != 0) return;
  CPU_AND(&near, &near, &before);  // what a launcher allows
  if (CPU_COUNT(&near) == 0 || sched_setaffinity(0, sizeof near, &near) != 0) return;
  before_ = before;
}

NearCard::~NearCard() {
  if (before_) sched_setaffinity(0, sizeof *before_, &*before_);
}

}  // namespace pipesim::calibration
