// Fields of a public struct by the names of the metric table.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "models/memory_fit.h"
#include "sim/report/metrics/row.h"

namespace pipesim {

template <class Struct>
struct Field {
  std::string_view name;
  // A number, one that may not apply, or the name of a fit.
  std::variant<double Struct::*, std::optional<double> Struct::*, std::string Struct::*> of;
};

template <class Struct>
void set(Struct& made, double Struct::*field, std::optional<double> value) {
  made.*field = value.value_or(0);
}
template <class Struct>
void set(Struct& made, std::optional<double> Struct::*field, std::optional<double> value) {
  made.*field = value;
}
template <class Struct>
void set(Struct& made, std::string Struct::*field, std::optional<double> value) {
  if (value) made.*field = fit_name(*value);
}

// `values`: in the order of `fields`.
template <class Struct, size_t Count>
void set_all(Struct& made, const std::array<Field<Struct>, Count>& fields,
             const std::array<std::optional<double>, Count>& values) {
  for (size_t i = 0; i < Count; ++i) {
    std::visit([&](auto field) { set(made, field, values[i]); }, fields[i].of);
  }
}

}  // namespace pipesim
