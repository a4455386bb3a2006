// What the implementations of a wire format do, and which there are: plain C++ (the reference, everywhere), AVX2 and
// AVX-512 (x86-64). All give the same bytes. Callers use kernels/wire_codec.h, which picks one; tests and benchmarks
// call them by name.
#pragma once

#include <cstddef>

#include "kernels/wire_format.h"

namespace atl {

//   v[i] <- share * (x[i] + residual_in[i]);   c <- encode(v)
//   encoded <- c without a partial, else encode(decode(partial) + decode(c)), the sum in fp32, in this order
//   residual_out[i] <- (v[i] - decode(c)[i]) / own_share, 0 where that is not finite
// A null residual_in is not added, a null residual_out not written. partial may be `encoded` itself, and residual_in be
// residual_out; else no overlap. x: [numel], encoded: encoded_bytes(format, numel).
struct EncodeJob {
  WireFormat format = WireFormat::kFp32;
  const float* x = nullptr;
  float share = 1;
  const std::byte* partial = nullptr;
  const float* residual_in = nullptr;
  float own_share = 1;
  float* residual_out = nullptr;
  std::byte* encoded = nullptr;
  std::size_t numel = 0;
};

//   encoded <- encode(decode(partial) + decode(contribution)), the sum in fp32, in this order
// What an EncodeJob with a partial does, when c is here already. partial may be `encoded` itself; else no overlap. All
// three: encoded_bytes(format, numel).
struct AddJob {
  WireFormat format = WireFormat::kFp32;
  const std::byte* partial = nullptr;
  const std::byte* contribution = nullptr;
  std::byte* encoded = nullptr;
  std::size_t numel = 0;
};

//   values[i] <- decode(encoded)[i], or values[i] + decode(encoded)[i], the quiet NaN 0x7fc00000 where that is a NaN
struct DecodeJob {
  WireFormat format = WireFormat::kFp32;
  const std::byte* encoded = nullptr;
  bool add = false;
  float* values = nullptr;
  std::size_t numel = 0;
};

// What is left of a job from value `begin` on, which is the first of a block.
EncodeJob rest_of(const EncodeJob& job, std::size_t begin);
AddJob rest_of(const AddJob& job, std::size_t begin);
DecodeJob rest_of(const DecodeJob& job, std::size_t begin);

namespace plain {
void encode(const EncodeJob& job);
void add(const AddJob& job);
void decode(const DecodeJob& job);
}  // namespace plain

#if defined(__x86_64__)
namespace avx2 {
void encode(const EncodeJob& job);
void add(const AddJob& job);
void decode(const DecodeJob& job);
}  // namespace avx2

namespace avx512 {
void encode(const EncodeJob& job);
void add(const AddJob& job);
void decode(const DecodeJob& job);
}  // namespace avx512
#endif

}  // namespace atl
