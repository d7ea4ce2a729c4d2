// Keys that a paper's data may have beside its rows. Any other unread key is a slip: it is refused
// with its location and the nearest name.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "sim/read/yaml.h"

namespace pipesim {

// YamlMap::finish, with notes allowed: text, or a list of it, under source, status, setup, note,
// comment, ... or a name that ends like one (csv_note); and the given facts, which stay unread.
void finish_row(YamlMap& map, std::initializer_list<const char*> facts = {});

// The same of a file's top level: facts and tables of the paper that nothing here compares are
// allowed by name.
void finish_paper(YamlMap& root, const std::string& paper);

// The facts and tables so allowed that the paper's file has, in its order; none without such a
// file.
std::vector<std::string> not_compared(const std::string& folder, const std::string& paper);

// Microbatches of each of `data` ranks. InputError at `batch` where microbatches of that size do
// not divide it, or are more than 65,536, which no published run has.
int microbatches_of(const YamlValue& batch, int data, int micro_batch);

// The reason not to simulate an iteration with far more passes than any published run; else empty.
std::string doubt_of_passes(int devices, int chunks, int microbatches);

// A cell as papers print it.
struct Printed {
  enum class Kind { kNumber, kOutOfMemory, kNothing };
  Kind kind = Kind::kNumber;
  double number = 0;
};
// A number up to `most`, OOM, or SKIP or nothing at all for what was not run.
Printed read_printed(const YamlValue& value, double most);

}  // namespace pipesim
