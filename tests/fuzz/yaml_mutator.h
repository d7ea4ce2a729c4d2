// Mutations of YAML as a tree: swapped, removed, repeated, renamed and replaced keys and values.
// Most trials are then valid YAML with known words in wrong places.
#pragma once

#include <string>

namespace pipesim::fuzz {

// The words that are put in place of keys and values: those of a dictionary as libFuzzer has it.
void read_words(const std::string& path);

// `text` with one to four mutations, the same for the same seed; comments but the first line are
// lost. Empty where it is no YAML map or list.
std::string mutated(const std::string& text, unsigned seed);

}  // namespace pipesim::fuzz
