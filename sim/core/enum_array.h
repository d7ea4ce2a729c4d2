// An array that is indexed by the values of an enumeration, which count from 0.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>

namespace pipesim {

// How many values an enumeration has. Stands specialised beside the enumeration.
template <class Enum>
inline constexpr std::size_t kSizeOf = 0;

template <class Enum, class T>
struct EnumArray {
  static_assert(kSizeOf<Enum> > 0, "kSizeOf of the enumeration is not stated");

  std::array<T, kSizeOf<Enum>> values;

  [[nodiscard]] constexpr T& operator[](Enum at) { return values[static_cast<std::size_t>(at)]; }
  [[nodiscard]] constexpr const T& operator[](Enum at) const {
    return values[static_cast<std::size_t>(at)];
  }
  // By number, for loops over all.
  [[nodiscard]] constexpr T& operator[](std::integral auto at) { return values[at]; }
  [[nodiscard]] constexpr const T& operator[](std::integral auto at) const { return values[at]; }

  constexpr void fill(const T& value) { values.fill(value); }
  [[nodiscard]] static constexpr std::size_t size() { return kSizeOf<Enum>; }
  [[nodiscard]] constexpr T* begin() { return values.data(); }
  [[nodiscard]] constexpr T* end() { return begin() + size(); }
  [[nodiscard]] constexpr const T* begin() const { return values.data(); }
  [[nodiscard]] constexpr const T* end() const { return begin() + size(); }

  friend bool operator==(const EnumArray&, const EnumArray&) = default;
};

}  // namespace pipesim
