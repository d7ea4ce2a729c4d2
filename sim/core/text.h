// Text for people: the nearest valid name to a misspelt one, and quantities with a fitting unit.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/units.h"

namespace pipesim {

// The candidate with the least Damerau-Levenshtein distance (ties: the first). Empty when none is a
// plausible slip: more than a third of the letters differ, at least 2 are allowed. Letter case,
// spaces, '-' and '_' do not count. O(|name| x |candidate|) each.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

// The one candidate that is the name but for letter case, spaces, '-' and '_' ("zbv" of "zb-v"); an
// empty string where none or several are. O(|name| + |candidate|) each.
std::string same_name(std::string_view name, std::span<const std::string> candidates);

// The candidate that the name is, as same_name has it; the name where none is.
std::string meant_name(std::string_view name, std::span<const std::string> candidates);

// At most three candidates. First come those that have the name as whole words ("8b" in
// "llama3-8b"), then the nearest name. Without any, those that contain the name or are contained in
// it.
std::vector<std::string> suggested_names(std::string_view name,
                                         std::span<const std::string> candidates);

// "; did you mean 'x', 'y', 'z'?" of the suggested names; "; valid: a, b, c" where there is none.
std::string suggestion(std::string_view name, std::span<const std::string> candidates);

// Bytes of the character at `at`, by the table of well-formed sequences of the Unicode standard
// (table 3-7); 0 where there is none.
size_t length_of_character(std::string_view text, size_t at);
// True if a terminal would obey something in the text. That is a control character of ASCII or of
// Unicode's C1, other than a tab or a line's end.
bool has_control_character(std::string_view text);
// The same with such characters, and bytes that are no UTF-8, written out: "\\x1b".
std::string printable(std::string_view text);

// Each line with 600 bytes at most; of a longer one the middle is left out, and said.
std::string shortened(std::string_view text);

std::string counted(double count);   // "20000000"; "1.2e+30" beyond 15 digits
std::string human(Seconds seconds);  // "18.522 ms"
std::string human(Bytes bytes);      // "3.70 GiB"

}  // namespace pipesim
