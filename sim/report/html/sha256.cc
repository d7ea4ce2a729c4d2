#include "sim/report/html/sha256.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace pipesim {
namespace {

using Words = std::array<std::uint32_t, 8>;

constexpr std::array<int, 64> kPrimes{
    2,   3,   5,   7,   11,  13,  17,  19,  23,  29,  31,  37,  41,  43,  47,  53,
    59,  61,  67,  71,  73,  79,  83,  89,  97,  101, 103, 107, 109, 113, 127, 131,
    137, 139, 149, 151, 157, 163, 167, 173, 179, 181, 191, 193, 197, 199, 211, 223,
    227, 229, 233, 239, 241, 251, 257, 263, 269, 271, 277, 281, 283, 293, 307, 311};

// The first 32 bits of the fraction: a root below 18 has far more digits in a long double.
std::uint32_t fraction(long double root) {
  return static_cast<std::uint32_t>((root - std::floor(root)) * 0x1p32L);
}

template <size_t kCount, class Root>
std::array<std::uint32_t, kCount> fractions(Root root) {
  std::array<std::uint32_t, kCount> all{};
  for (size_t i = 0; i < kCount; ++i) all[i] = fraction(root(1.0L * kPrimes[i]));
  return all;
}

void add_block(Words& hash, const unsigned char* block) {
  static const auto kRounds = fractions<64>([](long double x) { return std::cbrt(x); });
  std::array<std::uint32_t, 64> w{};
  for (size_t i = 0; i < 16; ++i) {
    for (size_t byte = 0; byte < 4; ++byte) w[i] = (w[i] << 8) | block[4 * i + byte];
  }
  for (size_t i = 16; i < w.size(); ++i) {
    const auto s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const auto s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = hash;
  for (size_t i = 0; i < w.size(); ++i) {
    const auto s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const auto t1 = h + s1 + ((e & f) ^ (~e & g)) + kRounds[i] + w[i];
    const auto s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const auto t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const Words more{a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < hash.size(); ++i) hash[i] += more[i];
}

std::string base64(const std::string& bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t three = 0;
    for (size_t i = 0; i < 3; ++i) {
      three =
          (three << 8) | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (size_t i = 0; i < 4; ++i) {
      text += at + i > bytes.size() ? '=' : kDigits[(three >> (18 - 6 * i)) & 63];
    }
  }
  return text;
}

}  // namespace

std::string sha256_base64(std::string_view text) {
  std::string padded(text);
  padded += '\x80';
  while (padded.size() % 64 != 56) padded += '\0';
  const std::uint64_t bits = 8 * static_cast<std::uint64_t>(text.size());
  for (int shift = 56; shift >= 0; shift -= 8) padded += static_cast<char>(bits >> shift);
  Words hash = fractions<8>([](long double x) { return std::sqrt(x); });
  for (size_t at = 0; at < padded.size(); at += 64) {
    add_block(hash, reinterpret_cast<const unsigned char*>(padded.data()) + at);
  }
  std::string bytes;
  for (const std::uint32_t word : hash) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(word >> shift);
  }
  return base64(bytes);
}

}  // namespace pipesim
