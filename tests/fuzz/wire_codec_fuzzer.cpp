// Encoded blocks of every wire format, as bytes from a peer: whatever they are, every implementation that this
// processor runs decodes, adds and encodes them as the plain one does, bit for bit, and touches nothing beyond its
// spans.
//
// Input: format u8, what to do u8, values u16, share u8; the rest fills encoded bytes and values, again and again.
#include <vector>

#include "kernels/codec_job.h"
#include "kernels/float_mode.h"
#include "kernels/instruction_set.h"
#include "kernels/wire_codec.h"
#include "tests/fuzz/fuzz_input.h"

namespace atl::fuzz {
namespace {

constexpr std::uint8_t kAdds = 1;
constexpr std::uint8_t kFeedsBack = 2;
constexpr std::uint8_t kInPlace = 4;
constexpr std::uint32_t kQuietNan = 0x7fc00000;

struct Implementation {
  InstructionSet set;
  void (*encode)(const EncodeJob&);
  void (*add)(const AddJob&);
  void (*decode)(const DecodeJob&);
};

constexpr Implementation kPlain{InstructionSet::kPlain, plain::encode, plain::add, plain::decode};

#if defined(__x86_64__)
constexpr Implementation kOthers[] = {{InstructionSet::kAvx2, avx2::encode, avx2::add, avx2::decode},
                                      {InstructionSet::kAvx512, avx512::encode, avx512::add, avx512::decode}};
#else
constexpr std::span<const Implementation> kOthers;
#endif

struct Case {
  WireFormat format{};
  std::uint8_t flags = 0;
  float share = 0;
  std::vector<std::byte> encoded;
  std::vector<std::byte> contribution;
  std::vector<float> x;
};

template <class T>
std::vector<T> filled(std::size_t count, ByteView pattern, std::size_t offset) {
  std::vector<T> values(count);
  const auto bytes = std::as_writable_bytes(std::span(values));
  for (std::size_t i = 0; i < bytes.size() && !pattern.empty(); ++i) bytes[i] = pattern[(offset + i) % pattern.size()];
  return values;
}

Case case_of(Input& input) {
  static constexpr float kShares[] = {1.0f, 0.25f, 1e-30f, 0.3333333f, 1e-3f};
  Case made;
  made.format = kWireFormats[input.get<std::uint8_t>() % kWireFormats.size()];
  made.flags = input.get<std::uint8_t>();
  const std::size_t numel = input.get<std::uint16_t>() % 520;
  made.share = kShares[input.get<std::uint8_t>() % std::size(kShares)];
  const auto bytes = static_cast<std::size_t>(encoded_bytes(made.format, static_cast<std::int64_t>(numel)));
  made.encoded = filled<std::byte>(bytes, input.rest(), 0);
  made.contribution = filled<std::byte>(bytes, input.rest(), 3);
  made.x = filled<float>(numel, input.rest(), 7);
  return made;
}

bool same_bits(const auto& a, const auto& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0);
}

std::vector<float> decoded_by(const Case& c, void (*decode)(const DecodeJob&)) {
  std::vector<float> values = c.x;
  decode({.format = c.format,
          .encoded = c.encoded.data(),
          .add = (c.flags & kAdds) != 0,
          .values = values.data(),
          .numel = values.size()});
  return values;
}

struct Encoded {
  std::vector<std::byte> bytes;
  std::vector<float> residual;
};

Encoded encoded_by(const Case& c, void (*encode)(const EncodeJob&)) {
  Encoded made{std::vector<std::byte>(c.encoded.size()), c.x};
  EncodeJob job{
      .format = c.format, .x = c.x.data(), .share = c.share, .encoded = made.bytes.data(), .numel = c.x.size()};
  if ((c.flags & kAdds) != 0) {
    job.partial = c.encoded.data();
    if ((c.flags & kInPlace) != 0) {
      made.bytes = c.encoded;
      job.partial = job.encoded;
    }
  }
  if ((c.flags & kFeedsBack) != 0) {
    job.own_share = c.share;
    job.residual_in = made.residual.data();
    job.residual_out = made.residual.data();
  }
  encode(job);
  return made;
}

std::vector<std::byte> added_by(const Case& c, std::span<const std::byte> contribution, void (*add)(const AddJob&)) {
  std::vector<std::byte> made(c.encoded.size());
  const bool in_place = (c.flags & kInPlace) != 0;
  if (in_place) made = c.encoded;
  add({.format = c.format,
       .partial = in_place ? made.data() : c.encoded.data(),
       .contribution = contribution.data(),
       .encoded = made.data(),
       .numel = c.x.size()});
  return made;
}

// Own values are added as the bytes that they are encoded to.
void check_sums(const Case& c, const Implementation& by) {
  Case sent = c;
  sent.flags &= static_cast<std::uint8_t>(~kAdds);
  Case summed = c;
  summed.flags |= kAdds;
  const Encoded contribution = encoded_by(sent, by.encode);
  const Encoded sums = encoded_by(summed, by.encode);
  ATOLL_FUZZ_CHECK(same_bits(added_by(c, contribution.bytes, by.add), sums.bytes));
  ATOLL_FUZZ_CHECK(same_bits(contribution.residual, sums.residual));
}

void check_nan(std::span<const float> values) {
  for (const float value : values) {
    ATOLL_FUZZ_CHECK(value == value || std::bit_cast<std::uint32_t>(value) == kQuietNan);
  }
}

void check(const Case& c) {
  const DefaultFloatMode mode;
  const std::vector<float> values = decoded_by(c, plain::decode);
  const Encoded sums = encoded_by(c, plain::encode);
  const std::vector<std::byte> added = added_by(c, c.contribution, plain::add);
  check_sums(c, kPlain);
  for (const Implementation& other : kOthers) {
    if (!processor_has(other.set)) continue;
    ATOLL_FUZZ_CHECK(same_bits(decoded_by(c, other.decode), values));
    const Encoded others = encoded_by(c, other.encode);
    ATOLL_FUZZ_CHECK(same_bits(others.bytes, sums.bytes));
    ATOLL_FUZZ_CHECK(same_bits(others.residual, sums.residual));
    ATOLL_FUZZ_CHECK(same_bits(added_by(c, c.contribution, other.add), added));
    check_sums(c, other);
  }
  // fp32 travels as it is; all others, and every sum, have one NaN.
  if (c.format != WireFormat::kFp32 || (c.flags & kAdds) != 0) check_nan(values);
  if ((c.flags & kFeedsBack) != 0) {
    for (const float owed : sums.residual) ATOLL_FUZZ_CHECK(owed - owed == 0);  // finite
  }
  Case again{c.format, 0, 1, sums.bytes, {}, c.x};
  check_nan(decoded_by(again, plain::decode));
}

// What the ring calls gives the same, whichever implementation it picks.
void check_calls(const Case& c) {
  std::vector<float> values = c.x;
  if ((c.flags & kAdds) != 0) {
    decode_add_values(c.format, c.encoded, values);
  } else {
    decode_values(c.format, c.encoded, values);
  }
  ATOLL_FUZZ_CHECK(same_bits(values, decoded_by(c, plain::decode)));
  Encoded sums{std::vector<std::byte>(c.encoded.size()), c.x};
  if (c.flags & kFeedsBack) {
    add_weighted(c.format, c.encoded, c.x, c.share, {sums.residual, sums.residual}, sums.bytes);
  } else {
    add_weighted(c.format, c.encoded, c.x, c.share, sums.bytes);
  }
  std::vector<std::byte> chained(c.encoded.size());
  add_encoded(c.format, std::ssize(c.x), c.encoded, c.contribution, chained);
  Case added = c;
  added.flags |= kAdds;
  const DefaultFloatMode mode;
  ATOLL_FUZZ_CHECK(same_bits(sums.bytes, encoded_by(added, plain::encode).bytes));
  ATOLL_FUZZ_CHECK(same_bits(chained, added_by(c, c.contribution, plain::add)));
}

}  // namespace
}  // namespace atl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace atl::fuzz;
  Input input(data, size);
  const Case made = case_of(input);
  check(made);
  check_calls(made);
  return 0;
}
