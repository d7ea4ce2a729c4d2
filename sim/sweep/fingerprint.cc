#include "sim/sweep/fingerprint.h"

#include <algorithm>
#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/uuid.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pipesim {

Fingerprint fingerprint(std::string_view text) {
  static constexpr boost::uuids::uuid kNamespace{{0x70, 0x69, 0x70, 0x65, 0x73, 0x69, 0x6d, 0x00,
                                                  0x73, 0x77, 0x65, 0x65, 0x70, 0x00, 0x00, 0x01}};
  const boost::uuids::uuid name =
      boost::uuids::name_generator_sha1(kNamespace)(text.data(), text.size());
  Fingerprint result;
  std::ranges::copy(name, result.begin());
  return result;
}

std::string hex(const Fingerprint& fingerprint) {
  return fmt::format("{:02x}", fmt::join(fingerprint, ""));
}

}  // namespace pipesim
