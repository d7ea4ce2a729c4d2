#include "sim/sweep/build.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <span>

#include "sim/core/input_text.h"
#include "sim/engine/simgrid_process.h"
#include "sim/sweep/fingerprint.h"

namespace pipesim {
namespace {

constexpr size_t padded(size_t size) { return (size + 3) / 4 * 4; }

// The linker's build ID among the notes between two addresses, as digits.
std::string build_id_in(const char* at, const char* end) {
  std::string found;
  while (at + sizeof(ElfW(Nhdr)) <= end) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof(note));
    const char* name = at + sizeof(note);
    const char* id = name + padded(note.n_namesz);
    if (id + note.n_descsz > end) break;
    const bool gnu = note.n_namesz == sizeof("GNU") && std::memcmp(name, "GNU", sizeof("GNU")) == 0;
    if (gnu && note.n_type == NT_GNU_BUILD_ID) {
      for (size_t i = 0; i < note.n_descsz; ++i) {
        found += fmt::format("{:02x}", static_cast<unsigned char>(id[i]));
      }
    }
    at = id + padded(note.n_descsz);
  }
  return found;
}

// An address in memory, which the loader gives as a number.
const char* at(const dl_phdr_info& object, const ElfW(Phdr) & segment) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<const char*>(object.dlpi_addr + segment.p_vaddr);
}

// The program, libpipesim.so or the module of Python: whichever holds this code.
bool holds_this(const dl_phdr_info& object) {
  const std::span segments(object.dlpi_phdr, object.dlpi_phnum);
  return std::ranges::any_of(segments, [&object](const auto& segment) {
    const char* begin = at(object, segment);
    const auto* here = reinterpret_cast<const char*>(&padded);
    return segment.p_type == PT_LOAD && here >= begin && here < begin + segment.p_memsz;
  });
}

extern "C" int find_build_id(dl_phdr_info* object, size_t /*size*/, void* found) {
  if (!holds_this(*object)) return 0;
  for (const auto& segment : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
    if (segment.p_type != PT_NOTE) continue;
    const char* begin = at(*object, segment);
    *static_cast<std::string*>(found) += build_id_in(begin, begin + segment.p_memsz);
  }
  return 1;
}

std::string module_identity() {
  try {
    return hex(fingerprint(read_input(simgrid_module(), {})));
  } catch (const InputError&) {  // built without
    return "";
  }
}

}  // namespace

std::string build_of_program(const std::string& version) {
  std::string id;
  ::dl_iterate_phdr(find_build_id, &id);
  const std::string module = module_identity();
  return fmt::format("{} (build {}{}{})", version, id.substr(0, 16), module.empty() ? "" : ", ",
                     module.substr(0, 16));
}

}  // namespace pipesim
