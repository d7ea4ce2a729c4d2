#include "validate/calibration/switches.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>
#include <system_error>

namespace pipesim::calibration {
namespace {

// The port of the root complex below which the device stands; empty where there is no bridge.
std::string root_port(const std::string& path) {
  const auto complex = path.find("/pci");
  if (complex == std::string::npos) return {};
  std::istringstream parts(path.substr(complex + 1));
  std::vector<std::string> names;
  for (std::string name; std::getline(parts, name, '/');) names.push_back(name);
  return names.size() < 3 ? std::string() : names[0] + '/' + names[1];
}

}  // namespace

SharedWay sharing_way_of(int gpu, std::span<const std::string> paths) {
  const std::string port = root_port(paths[static_cast<std::size_t>(gpu)]);
  SharedWay way{.gpus = {}, .assumed = port.empty()};
  for (std::size_t other = 0; other < paths.size(); ++other) {
    if (way.assumed || root_port(paths[other]) == port) way.gpus.push_back(static_cast<int>(other));
  }
  return way;
}

std::string pci_path(const std::string& bus) {
  std::string small = bus;  // as the kernel writes it
  std::ranges::transform(small, small.begin(),
                         [](unsigned char letter) { return std::tolower(letter); });
  std::error_code failed;
  const auto path = std::filesystem::canonical("/sys/bus/pci/devices/" + small, failed);
  return failed ? std::string() : path.string();
}

}  // namespace pipesim::calibration
