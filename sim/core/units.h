// Units are types: seconds cannot be added to bytes, and bytes over seconds is a bandwidth.
//
// A Quantity wraps a double in SI base units (seconds, bytes, floating-point operations, joules)
// and carries the exponents of its dimension. Construction from a number is explicit, `value()`
// goes back. No operation throws; division by zero follows IEEE 754.
#pragma once

#include <compare>

namespace pipesim {

template <int Time, int Data, int Work, int Energy>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : value_(value) {}
  [[nodiscard]] constexpr double value() const { return value_; }

  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator-(Quantity a) { return Quantity(-a.value_); }
  friend constexpr Quantity operator*(double k, Quantity a) { return Quantity(k * a.value_); }
  friend constexpr Quantity operator*(Quantity a, double k) { return Quantity(k * a.value_); }
  friend constexpr Quantity operator/(Quantity a, double k) { return Quantity(a.value_ / k); }
  friend constexpr auto operator<=>(Quantity, Quantity) = default;

 private:
  double value_ = 0;
};

template <int T1, int D1, int W1, int E1, int T2, int D2, int W2, int E2>
constexpr auto operator*(Quantity<T1, D1, W1, E1> a, Quantity<T2, D2, W2, E2> b) {
  constexpr bool kPlain = T1 + T2 == 0 && D1 + D2 == 0 && W1 + W2 == 0 && E1 + E2 == 0;
  if constexpr (kPlain) {
    return a.value() * b.value();
  } else {
    return Quantity<T1 + T2, D1 + D2, W1 + W2, E1 + E2>(a.value() * b.value());
  }
}

template <int T1, int D1, int W1, int E1, int T2, int D2, int W2, int E2>
constexpr auto operator/(Quantity<T1, D1, W1, E1> a, Quantity<T2, D2, W2, E2> b) {
  constexpr bool kPlain = T1 == T2 && D1 == D2 && W1 == W2 && E1 == E2;
  if constexpr (kPlain) {
    return a.value() / b.value();
  } else {
    return Quantity<T1 - T2, D1 - D2, W1 - W2, E1 - E2>(a.value() / b.value());
  }
}

using Seconds = Quantity<1, 0, 0, 0>;
using Bytes = Quantity<0, 1, 0, 0>;
using Flops = Quantity<0, 0, 1, 0>;
using Joules = Quantity<0, 0, 0, 1>;
using BytesPerSecond = Quantity<-1, 1, 0, 0>;
using FlopsPerSecond = Quantity<-1, 0, 1, 0>;
using Watts = Quantity<-1, 0, 0, 1>;

inline constexpr Bytes kGiB{1024.0 * 1024.0 * 1024.0};

}  // namespace pipesim
