// The reference: block by block, each step written out.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/codec_job.h"
#include "kernels/float_bits.h"
#include "kernels/int4_e3m0.h"
#include "kernels/int8_block.h"
#include "kernels/int8_codebook.h"

namespace atl {
namespace {

void encode_fp32(const float* x, std::size_t count, std::byte* encoded) {
  for (std::size_t i = 0; i < count; ++i) {
    const float value = without_nan_payload(x[i]);
    std::memcpy(encoded + i * sizeof value, &value, sizeof value);
  }
}

void encode_block(WireFormat format, const float* x, std::size_t count, std::byte* encoded) {
  switch (format) {
    case WireFormat::kFp32: return encode_fp32(x, count, encoded);
    case WireFormat::kInt8Block: return encode_int8_block(x, count, encoded);
    case WireFormat::kBf16: return encode_bf16(x, count, encoded);
    case WireFormat::kInt4E3m0: return encode_int4_e3m0(x, count, encoded);
    case WireFormat::kInt8Codebook: return encode_int8_codebook(x, count, encoded);
  }
}

void decode_block(WireFormat format, const std::byte* encoded, std::size_t count, float* x) {
  switch (format) {
    case WireFormat::kFp32: std::memcpy(x, encoded, count * sizeof(float)); return;
    case WireFormat::kInt8Block: return decode_int8_block(encoded, count, x);
    case WireFormat::kBf16: return decode_bf16(encoded, count, x);
    case WireFormat::kInt4E3m0: return decode_int4_e3m0(encoded, count, x);
    case WireFormat::kInt8Codebook: return decode_int8_codebook(encoded, count, x);
  }
}

std::size_t byte_of(WireFormat format, std::size_t value) {
  return static_cast<std::size_t>(encoded_bytes(format, static_cast<std::int64_t>(value)));
}

float finite_or_zero(float x) { return is_finite(x) ? x : 0.0f; }

// Calls on_block(first value, values, first byte) for each block.
template <class OnBlock>
void for_each_block(WireFormat format, std::size_t numel, OnBlock on_block) {
  const auto each = static_cast<std::size_t>(block_numel(format));
  for (std::size_t first = 0; first < numel; first += each) {
    on_block(first, std::min(each, numel - first), byte_of(format, first));
  }
}

// Sums encoded blocks of at most `most` values, one after the other.
class BlockAdder {
 public:
  BlockAdder(WireFormat format, std::size_t most) : format_(format), sum_(most), decoded_(most) {}

  // encoded <- encode(decode(partial) + decode(contribution))
  void add(const std::byte* partial, const std::byte* contribution, std::size_t count, std::byte* encoded) {
    decode_block(format_, partial, count, sum_.data());
    decode_block(format_, contribution, count, decoded_.data());
    for (std::size_t i = 0; i < count; ++i) sum_[i] = sum_[i] + decoded_[i];
    encode_block(format_, sum_.data(), count, encoded);
  }

 private:
  const WireFormat format_;
  std::vector<float> sum_;
  std::vector<float> decoded_;
};

}  // namespace

EncodeJob rest_of(const EncodeJob& job, std::size_t begin) {
  EncodeJob rest = job;
  rest.x += begin;
  if (job.partial != nullptr) rest.partial += byte_of(job.format, begin);
  if (job.residual_in != nullptr) rest.residual_in += begin;
  if (job.residual_out != nullptr) rest.residual_out += begin;
  rest.encoded += byte_of(job.format, begin);
  rest.numel -= begin;
  return rest;
}

AddJob rest_of(const AddJob& job, std::size_t begin) {
  const std::size_t byte = byte_of(job.format, begin);
  return {job.format, job.partial + byte, job.contribution + byte, job.encoded + byte, job.numel - begin};
}

DecodeJob rest_of(const DecodeJob& job, std::size_t begin) {
  DecodeJob rest = job;
  rest.encoded += byte_of(job.format, begin);
  rest.values += begin;
  rest.numel -= begin;
  return rest;
}

void plain::encode(const EncodeJob& job) {
  std::vector<float> v(std::min(job.numel, static_cast<std::size_t>(block_numel(job.format))));
  std::vector<float> decoded(job.residual_out != nullptr ? v.size() : 0);
  std::vector<std::byte> own(job.partial != nullptr ? byte_of(job.format, v.size()) : 0);
  BlockAdder adder(job.format, own.empty() ? 0 : v.size());
  for_each_block(job.format, job.numel, [&](std::size_t first, std::size_t count, std::size_t byte) {
    const float* const x = job.x + first;
    if (job.residual_in != nullptr) {
      for (std::size_t i = 0; i < count; ++i) v[i] = job.share * (x[i] + job.residual_in[first + i]);
    } else {
      for (std::size_t i = 0; i < count; ++i) v[i] = job.share * x[i];
    }
    std::byte* const encoded = job.encoded + byte;
    std::byte* const contribution = job.partial != nullptr ? own.data() : encoded;
    encode_block(job.format, v.data(), count, contribution);
    if (job.residual_out != nullptr) {
      decode_block(job.format, contribution, count, decoded.data());
      for (std::size_t i = 0; i < count; ++i) {
        job.residual_out[first + i] = finite_or_zero((v[i] - decoded[i]) / job.own_share);
      }
    }
    if (job.partial != nullptr) adder.add(job.partial + byte, contribution, count, encoded);
  });
}

void plain::add(const AddJob& job) {
  BlockAdder adder(job.format, std::min(job.numel, static_cast<std::size_t>(block_numel(job.format))));
  for_each_block(job.format, job.numel, [&](std::size_t, std::size_t count, std::size_t byte) {
    adder.add(job.partial + byte, job.contribution + byte, count, job.encoded + byte);
  });
}

void plain::decode(const DecodeJob& job) {
  std::vector<float> decoded(job.add ? std::min(job.numel, static_cast<std::size_t>(block_numel(job.format))) : 0);
  for_each_block(job.format, job.numel, [&](std::size_t first, std::size_t count, std::size_t byte) {
    float* const values = job.values + first;
    if (!job.add) return decode_block(job.format, job.encoded + byte, count, values);
    decode_block(job.format, job.encoded + byte, count, decoded.data());
    for (std::size_t i = 0; i < count; ++i) values[i] = without_nan_payload(values[i] + decoded[i]);
  });
}

}  // namespace atl
