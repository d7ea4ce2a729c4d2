// Numbers behind a word of a log.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

namespace pipesim {

// The number at the begin of `text` behind blanks, "5,636" and "2.35K" (thousands; M, B or G) too;
// nothing where none above 0 stands there. `rest`, where given, becomes what is behind it.
std::optional<double> logged_number(std::string_view text, std::string_view* rest = nullptr);

// Calls with the text behind each place where `key` stands, and the place.
void for_each_place(std::string_view log, std::string_view key,
                    const std::function<void(std::string_view behind, size_t at)>& call);

}  // namespace pipesim
