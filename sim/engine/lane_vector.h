// Eight doubles that are computed together, a lane each, or one: a double.
//
// `kTogether` of them form a vector of the compiler, as many as one of the processor holds. Left to
// find vectors in loops over arrays, g++ computes most lanes one by one. Every lane gives the bits
// of a double. All is inline and by reference. Its users are templates of the vector, compiled for
// each processor that a source is for (lanes_avx2.cc).
#pragma once

#include <array>
#include <cstddef>

namespace pipesim {

template <size_t kTogether>
class EightLanes {
 public:
  EightLanes() = default;
  explicit EightLanes(double all) {
    for (Part& part : parts_) part.of += all;
  }

  // Part by part: g++ copies the whole in pieces of another size, which makes the next read wait.
  [[gnu::always_inline]] EightLanes(const EightLanes& other) { *this = other; }
  [[gnu::always_inline]] EightLanes& operator=(const EightLanes& other) {
    for (size_t i = 0; i < parts_.size(); ++i) parts_[i].of = other.parts_[i].of;
    return *this;
  }
  ~EightLanes() = default;

  // Loads adjacent doubles, which need only the alignment of one.
  [[gnu::always_inline]] void load(const double* from) {
    for (size_t i = 0; i < parts_.size(); ++i) {
      parts_[i].of = reinterpret_cast<const Loose*>(from)[i];
    }
  }
  [[gnu::always_inline]] void store(double* to) const {
    for (size_t i = 0; i < parts_.size(); ++i) {
      reinterpret_cast<Loose*>(to)[i] = parts_[i].of;
    }
  }
  [[gnu::always_inline]] void operator+=(const EightLanes& other) {
    for (size_t i = 0; i < parts_.size(); ++i) parts_[i].of += other.parts_[i].of;
  }
  [[gnu::always_inline]] void operator-=(const EightLanes& other) {
    for (size_t i = 0; i < parts_.size(); ++i) parts_[i].of -= other.parts_[i].of;
  }
  [[gnu::always_inline]] void operator*=(const EightLanes& other) {
    for (size_t i = 0; i < parts_.size(); ++i) parts_[i].of *= other.parts_[i].of;
  }
  [[gnu::always_inline]] void keep_larger(const EightLanes& other) {
    for (size_t i = 0; i < parts_.size(); ++i) {
      parts_[i].of = parts_[i].of < other.parts_[i].of ? other.parts_[i].of : parts_[i].of;
    }
  }
  [[gnu::always_inline]] void keep_smaller(const EightLanes& other) {
    for (size_t i = 0; i < parts_.size(); ++i) {
      parts_[i].of = other.parts_[i].of < parts_[i].of ? other.parts_[i].of : parts_[i].of;
    }
  }
  [[nodiscard]] double operator[](size_t lane) const {
    return parts_[lane / kTogether].of[lane % kTogether];
  }

 private:
  typedef double Vector __attribute__((vector_size(kTogether * sizeof(double))));
  typedef double Loose
      __attribute__((vector_size(kTogether * sizeof(double)), aligned(8), may_alias));
  struct Part {
    // Aligned in the same way for every processor that the source is compiled for.
    alignas(kTogether * sizeof(double)) Vector of;
  };
  std::array<Part, 8 / kTogether> parts_{};
};

class OneLane {
 public:
  OneLane() = default;
  explicit OneLane(double value) : value_(value) {}

  void load(const double* from) { value_ = *from; }
  void store(double* to) const { *to = value_; }
  void operator+=(const OneLane& other) { value_ += other.value_; }
  void operator-=(const OneLane& other) { value_ -= other.value_; }
  void operator*=(const OneLane& other) { value_ *= other.value_; }
  void keep_larger(const OneLane& other) { value_ = value_ < other.value_ ? other.value_ : value_; }
  void keep_smaller(const OneLane& other) {
    value_ = other.value_ < value_ ? other.value_ : value_;
  }
  [[nodiscard]] double operator[](size_t /*lane*/) const { return value_; }

 private:
  double value_ = 0;
};

template <class Vector>
inline constexpr size_t kLanesOf = sizeof(Vector) / sizeof(double);

}  // namespace pipesim
