// Which GPUs of a machine share a card's way to the host, by where they stand on its PCI bus.
//
// A path is what Linux has of a device in /sys/devices: the root complex, then the bridges, then
// the device, as "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0". GPUs below one
// port of the root complex stand behind one switch, and share its link to the host.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace pipesim::calibration {

struct SharedWay {
  std::vector<int> gpus;  // in order, the asked one among them
  // The machine shows no switch, as virtual machines may: all GPUs are taken to share one.
  bool assumed = false;
};

// With the GPU whose number is `gpu`; paths are by GPU, empty where the machine says none.
[[nodiscard]] SharedWay sharing_way_of(int gpu, std::span<const std::string> paths);

// Path of the device on that PCI bus, as CUDA writes it; empty where the machine does not say.
[[nodiscard]] std::string pci_path(const std::string& bus);

}  // namespace pipesim::calibration
