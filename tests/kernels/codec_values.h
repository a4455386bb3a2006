// Inputs that the tests of the codecs share: what formats find hard, at any length.
#pragma once

#include <QString>
#include <QStringList>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/int8_block.h"
#include "kernels/wire_format.h"

namespace atl {

inline const QStringList kValueKinds{"heavy tails", "zeros",    "all equal", "tiny",     "denormal", "nan",
                                     "infinity",    "overflow", "outlier",   "halfways", "any bits"};

inline std::vector<float> heavy_tails(std::size_t numel, unsigned seed) {
  std::mt19937 random(seed);
  std::student_t_distribution<float> student(3.0f);
  std::vector<float> x(numel);
  for (float& value : x) value = student(random);
  return x;
}

inline std::vector<float> normal_values(std::size_t numel, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(numel);
  for (float& value : x) value = normal(random);
  return x;
}

inline std::vector<float> values_of_kind(const QString& kind, std::size_t numel) {
  std::vector<float> x = heavy_tails(numel, 17);
  std::mt19937 random(18);
  for (std::size_t i = 0; i < numel; ++i) {
    if (kind == "zeros") x[i] = i % 3 == 0 ? -0.0f : 0.0f;
    if (kind == "all equal") x[i] = -0.3f;
    if (kind == "tiny") x[i] *= 1e-36f;
    if (kind == "denormal") x[i] *= 1e-40f;
    if (kind == "overflow") x[i] *= 1e38f;
    // Each a tie of one format: of int8-block at scale 1, or of int4-e3m0 at scale kInt8Steps.
    if (kind == "halfways") x[i] = i % 128 == 0 ? kInt8Steps : static_cast<float>(random() % 254) - 126.5f;
    if (kind == "halfways" && i % 3 == 1)
      x[i] = kInt8Steps * 1.5f * std::ldexp(1.0f, -static_cast<int>(random() % 9) - 1);
    if (kind == "any bits") x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  }
  if (numel == 0) return x;
  if (kind == "nan") x[numel / 2] = std::bit_cast<float>(0xffc12345u);
  if (kind == "infinity") x[numel / 2] = -std::numeric_limits<float>::infinity();
  if (kind == "outlier") x[numel / 2] = 3e38f;
  return x;
}

inline std::size_t encoded_size(WireFormat format, std::size_t numel) {
  return static_cast<std::size_t>(encoded_bytes(format, static_cast<std::int64_t>(numel)));
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace atl
