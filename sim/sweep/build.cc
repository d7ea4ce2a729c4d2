#include "sim/sweep/build.h"

#include <cstring>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>

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

// The program itself comes first.
extern "C" int find_build_id(dl_phdr_info* object, size_t /*size*/, void* found) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    // An address, as a number.
    const auto*
        begin =  // NOLINTNEXTLINE(performance-no-int-to-ptr): that is how the loader gives it
        reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
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
