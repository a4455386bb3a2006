// Every implementation of a wire format gives the reference's bytes, whatever it is given.
#include <QtTest>
#include <algorithm>
#include <vector>

#include "kernels/codec_job.h"
#include "kernels/float_mode.h"
#include "kernels/instruction_set.h"
#include "kernels/wire_codec.h"
#include "tests/kernels/codec_values.h"

using namespace atl;

namespace {

struct Implementation {
  void (*encode)(const EncodeJob&) = plain::encode;
  void (*add)(const AddJob&) = plain::add;
  void (*decode)(const DecodeJob&) = plain::decode;
};

Implementation implementation_of(InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx2) return {avx2::encode, avx2::add, avx2::decode};
  if (set == InstructionSet::kAvx512) return {avx512::encode, avx512::add, avx512::decode};
#endif
  return {};
}

void rows_of_implementations(bool plain_too = false) {
  QTest::addColumn<int>("set");
  QTest::addColumn<int>("format");
  for (const InstructionSet set : kInstructionSets) {
    if (set == InstructionSet::kPlain && !plain_too) continue;  // the reference
    for (const WireFormat format : kWireFormats) {
      const QString name = QString("%1 %2").arg(instruction_set_name(set).data(), wire_format_name(format).data());
      QTest::newRow(qPrintable(name)) << static_cast<int>(set) << static_cast<int>(format);
    }
  }
}

// One array at an address that is a multiple of 4 and of nothing more; bytes at an odd one.
template <class T>
class Unaligned {
 public:
  Unaligned(std::size_t count, T value) : values_(count + 16, value), count_(count) {}
  explicit Unaligned(const std::vector<T>& values) : Unaligned(values.size(), T{}) {
    std::ranges::copy(values, data());
  }
  T* data() { return values_.data() + 1; }
  std::vector<T> copy() { return {data(), data() + count_}; }
  bool rest_is(T value) const {
    return values_.front() == value && std::all_of(values_.begin() + 1 + static_cast<std::ptrdiff_t>(count_),
                                                   values_.end(), [&](T v) { return v == value; });
  }

 private:
  std::vector<T> values_;
  std::size_t count_;
};

struct Encoded {
  std::vector<std::byte> bytes;
  std::vector<float> residual;
  bool within_bounds = true;
  bool operator==(const Encoded& other) const {
    return same_bits(bytes, other.bytes) && same_bits(residual, other.residual);
  }
};

const QString kAnyBytes = "any bytes";
constexpr std::size_t kLengths[] = {0, 1, 127, 128, 129, 255, 256, 257, 5'001, 70'000};

enum class Step { kEncode, kWeighted, kAdded, kAddedInPlace, kWithFeedback };

Encoded encoded_by(const Implementation& by, WireFormat format, Step step, const std::vector<float>& x) {
  const std::size_t bytes = encoded_size(format, x.size());
  static const std::vector<float> kOthers = heavy_tails(70'000, 6);
  static const std::vector<float> kOwed = heavy_tails(70'000, 5);
  Unaligned<std::byte> encoded(bytes, std::byte{0x5a});
  Unaligned<std::byte> partial(bytes, std::byte{0});
  Unaligned<float> values(x);
  Unaligned<float> residual({kOwed.begin(), kOwed.begin() + std::ssize(x)});
  EncodeJob job{.format = format, .x = values.data(), .encoded = encoded.data(), .numel = x.size()};
  if (step != Step::kEncode) job.share = 0.3f;
  if (step == Step::kAdded || step == Step::kAddedInPlace || step == Step::kWithFeedback) {
    std::byte* const sums = step == Step::kAddedInPlace ? encoded.data() : partial.data();
    plain::encode({.format = format, .x = kOthers.data(), .encoded = sums, .numel = x.size()});
    job.partial = sums;
  }
  if (step == Step::kWithFeedback) {
    job.own_share = 0.3f;
    job.residual_in = residual.data();
    job.residual_out = residual.data();
  }
  by.encode(job);
  return {encoded.copy(), residual.copy(), encoded.rest_is(std::byte{0x5a})};
}

// Bytes that a peer may send: of values of a kind, or any.
std::vector<std::byte> bytes_of(WireFormat format, const QString& kind, std::size_t numel, unsigned seed) {
  std::vector<std::byte> bytes(encoded_size(format, numel));
  if (kind == kAnyBytes) {
    std::mt19937 random(seed);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  } else {
    const auto x = kind == "heavy tails" ? heavy_tails(numel, seed) : values_of_kind(kind, numel);
    plain::encode({.format = format, .x = x.data(), .encoded = bytes.data(), .numel = numel});
  }
  return bytes;
}

// Where partial sums and encoded bytes are: apart, or in one place.
Encoded added_by(const Implementation& by, WireFormat format, const std::vector<std::byte>& partial,
                 const std::vector<std::byte>& contribution, std::size_t numel, bool in_place) {
  Unaligned<std::byte> sums(partial);
  Unaligned<std::byte> added(contribution);
  Unaligned<std::byte> apart(partial.size(), std::byte{0x5a});
  Unaligned<std::byte>& encoded = in_place ? sums : apart;
  by.add({.format = format,
          .partial = sums.data(),
          .contribution = added.data(),
          .encoded = encoded.data(),
          .numel = numel});
  return {encoded.copy(), {}, encoded.rest_is(in_place ? std::byte{0} : std::byte{0x5a})};
}

}  // namespace

class CodecIdentityTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void encoded_bytes_are_those_of_the_reference_data() { rows_of_implementations(); }
  void encoded_bytes_are_those_of_the_reference();
  void sums_of_encoded_bytes_are_those_of_the_reference_data() { rows_of_implementations(); }
  void sums_of_encoded_bytes_are_those_of_the_reference();
  void own_values_are_added_as_what_they_are_encoded_to_data() { rows_of_implementations(true); }
  void own_values_are_added_as_what_they_are_encoded_to();
  void decoded_values_are_those_of_the_reference_data() { rows_of_implementations(); }
  void decoded_values_are_those_of_the_reference();
  void any_bytes_decode_as_by_the_reference_data() { rows_of_implementations(); }
  void any_bytes_decode_as_by_the_reference();
  void spans_past_the_caches_are_those_of_the_reference_data() { rows_of_implementations(); }
  void spans_past_the_caches_are_those_of_the_reference();
  void flushing_of_denormals_changes_no_byte_data();
  void flushing_of_denormals_changes_no_byte();
  void parts_encoded_apart_are_the_bytes_of_the_whole_data();
  void parts_encoded_apart_are_the_bytes_of_the_whole();
};

// A row's implementation, as `by`, and format; skipped where this processor cannot run it.
#define ATOLL_FETCH_IMPLEMENTATION()                                                                              \
  QFETCH(int, set);                                                                                               \
  QFETCH(int, format);                                                                                            \
  if (!processor_has(static_cast<InstructionSet>(set))) {                                                         \
    QSKIP(qPrintable(                                                                                             \
        QString("this processor has no %1").arg(instruction_set_name(static_cast<InstructionSet>(set)).data()))); \
  }                                                                                                               \
  const Implementation by = implementation_of(static_cast<InstructionSet>(set));                                  \
  const auto wire = static_cast<WireFormat>(format)

void CodecIdentityTest::encoded_bytes_are_those_of_the_reference() {
  ATOLL_FETCH_IMPLEMENTATION();

  for (const QString& kind : kValueKinds) {
    for (const std::size_t numel : kLengths) {
      if (numel > 10'000 && wire != WireFormat::kInt8Codebook) continue;  // of the others, 20 blocks say it all
      const auto x = values_of_kind(kind, numel);
      for (const Step step : {Step::kEncode, Step::kWeighted, Step::kAdded, Step::kAddedInPlace, Step::kWithFeedback}) {
        const Encoded got = encoded_by(by, wire, step, x);
        const Encoded expected = encoded_by({}, wire, step, x);
        QVERIFY2(got == expected,
                 qPrintable(QString("%1, %2 values, step %3").arg(kind).arg(numel).arg(static_cast<int>(step))));
        QVERIFY(got.within_bounds && expected.within_bounds);
      }
    }
  }
}

void CodecIdentityTest::sums_of_encoded_bytes_are_those_of_the_reference() {
  ATOLL_FETCH_IMPLEMENTATION();

  for (const QString& kind : QStringList{kAnyBytes} + kValueKinds) {
    for (const std::size_t numel : kLengths) {
      if (numel > 10'000 && wire != WireFormat::kInt8Codebook) continue;
      const auto partial = bytes_of(wire, kind, numel, 21);
      const auto contribution = bytes_of(wire, kind == kAnyBytes ? kind : "heavy tails", numel, 22);
      for (const bool in_place : {false, true}) {
        const Encoded got = added_by(by, wire, partial, contribution, numel, in_place);
        QVERIFY2(got == added_by({}, wire, partial, contribution, numel, false),
                 qPrintable(QString("%1, %2 values").arg(kind).arg(numel)));
        QVERIFY(got.within_bounds);
        QVERIFY(added_by(by, wire, contribution, partial, numel, in_place) ==
                added_by({}, wire, contribution, partial, numel, false));
      }
    }
  }
}

// Whoever adds them up: the member itself, to what came (EncodeJob), or another, to which they came (AddJob).
void CodecIdentityTest::own_values_are_added_as_what_they_are_encoded_to() {
  ATOLL_FETCH_IMPLEMENTATION();

  for (const std::size_t numel : kLengths) {
    if (numel > 10'000 && wire != WireFormat::kInt8Codebook) continue;
    std::vector<std::vector<std::byte>> partials{bytes_of(wire, kAnyBytes, numel, 23)};
    for (const QString& kind : kValueKinds) partials.push_back(bytes_of(wire, kind, numel, 24));
    for (const QString& kind : kValueKinds) {
      const auto x = values_of_kind(kind, numel);
      EncodeJob job{.format = wire, .x = x.data(), .share = 0.3f, .numel = numel};
      std::vector<std::byte> contribution(encoded_size(wire, numel));
      job.encoded = contribution.data();
      by.encode(job);
      for (std::size_t i = 0; i < partials.size(); ++i) {
        std::vector<std::byte> fused(contribution.size());
        job.partial = partials[i].data();
        job.encoded = fused.data();
        by.encode(job);

        QVERIFY2(same_bits(added_by(by, wire, partials[i], contribution, numel, false).bytes, fused),
                 qPrintable(QString("%1 to partial %2, %3 values").arg(kind).arg(i).arg(numel)));
      }
    }
  }
}

void CodecIdentityTest::decoded_values_are_those_of_the_reference() {
  ATOLL_FETCH_IMPLEMENTATION();

  for (const QString& kind : kValueKinds) {
    for (const std::size_t numel : {1u, 127u, 128u, 129u, 255u, 256u, 257u, 10'001u}) {
      const auto bytes = encoded_by({}, wire, Step::kEncode, values_of_kind(kind, numel)).bytes;
      for (const bool add : {false, true}) {
        Unaligned<std::byte> encoded(bytes);
        Unaligned<float> got(values_of_kind(add ? "any bits" : "zeros", numel));
        std::vector<float> expected = got.copy();

        by.decode({.format = wire, .encoded = encoded.data(), .add = add, .values = got.data(), .numel = numel});
        plain::decode({.format = wire, .encoded = bytes.data(), .add = add, .values = expected.data(), .numel = numel});

        QVERIFY2(same_bits(got.copy(), expected), qPrintable(QString("%1, %2 values").arg(kind).arg(numel)));
      }
    }
  }
}

void CodecIdentityTest::any_bytes_decode_as_by_the_reference() {
  ATOLL_FETCH_IMPLEMENTATION();
  const std::size_t numel = 20'000;
  std::mt19937 random(3);
  std::vector<std::byte> bytes(encoded_size(wire, numel));

  for (int trial = 0; trial < 20; ++trial) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & (trial % 2 == 0 ? 0xffu : 0x7fu));
    std::vector<float> got(numel, 1.0f);
    std::vector<float> expected = got;
    by.decode({.format = wire, .encoded = bytes.data(), .add = trial % 4 < 2, .values = got.data(), .numel = numel});
    plain::decode(
        {.format = wire, .encoded = bytes.data(), .add = trial % 4 < 2, .values = expected.data(), .numel = numel});
    QVERIFY(same_bits(got, expected));
  }
}

void CodecIdentityTest::spans_past_the_caches_are_those_of_the_reference() {
  ATOLL_FETCH_IMPLEMENTATION();
  const std::size_t numel = (std::size_t{16} << 20) * 8 / static_cast<std::size_t>(bits_per_value(wire)) + 300;
  const auto pattern = heavy_tails(65'521, 4);
  std::vector<float> x(numel);
  for (std::size_t i = 0; i < numel; ++i) x[i] = pattern[i % pattern.size()];
  Unaligned<std::byte> got(encoded_size(wire, numel), std::byte{0});
  std::vector<std::byte> expected(encoded_size(wire, numel));
  Unaligned<float> values(numel, 0.0f);

  by.encode({.format = wire, .x = x.data(), .encoded = got.data(), .numel = numel});
  plain::encode({.format = wire, .x = x.data(), .encoded = expected.data(), .numel = numel});
  QVERIFY(same_bits(got.copy(), expected));
  EncodeJob add{.format = wire, .x = x.data(), .share = 0.3f, .numel = numel};
  add.partial = add.encoded = got.data();
  by.encode(add);
  add.partial = add.encoded = expected.data();
  plain::encode(add);
  QVERIFY(same_bits(got.copy(), expected));
  const std::vector<std::byte> contribution = expected;
  by.add({wire, got.data(), contribution.data(), got.data(), numel});
  plain::add({wire, expected.data(), contribution.data(), expected.data(), numel});
  QVERIFY(same_bits(got.copy(), expected));
  by.decode({.format = wire, .encoded = got.data(), .values = values.data(), .numel = numel});
  plain::decode({.format = wire, .encoded = expected.data(), .values = x.data(), .numel = numel});
  QVERIFY(same_bits(values.copy(), x));
}

void CodecIdentityTest::flushing_of_denormals_changes_no_byte_data() {
  QTest::addColumn<int>("format");
  for (const WireFormat format : kWireFormats) {
    QTest::newRow(wire_format_name(format).data()) << static_cast<int>(format);
  }
}

void CodecIdentityTest::flushing_of_denormals_changes_no_byte() {
#if defined(__x86_64__)
  QFETCH(int, format);
  const auto wire = static_cast<WireFormat>(format);
  constexpr unsigned kFlushAll = 0x8040;
  constexpr unsigned kRoundUp = 0x4000;
  for (const char* kind : {"denormal", "tiny", "any bits", "heavy tails"}) {
    const auto x = values_of_kind(kind, 5000);
    std::vector<std::byte> partial(encoded_size(wire, x.size()));
    std::vector<std::byte> expected(partial.size());
    std::vector<std::byte> got(partial.size());
    std::vector<float> expected_sum(x.size(), 1e-40f);
    std::vector<float> got_sum = expected_sum;
    encode_values(wire, values_of_kind("tiny", x.size()), partial);
    add_weighted(wire, partial, x, 0.3f, expected);
    add_encoded(wire, std::ssize(x), expected, partial, expected);
    decode_add_values(wire, partial, expected_sum);

    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | kFlushAll | kRoundUp);
    add_weighted(wire, partial, x, 0.3f, got);
    add_encoded(wire, std::ssize(x), got, partial, got);
    decode_add_values(wire, partial, got_sum);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);

    QVERIFY(same_bits(got, expected));
    QVERIFY(same_bits(got_sum, expected_sum));
    QCOMPARE(after & (kFlushAll | kRoundUp), kFlushAll | kRoundUp);  // the thread's mode is left as it was
  }
#else
  QSKIP("written for x86-64");
#endif
}

void CodecIdentityTest::parts_encoded_apart_are_the_bytes_of_the_whole_data() {
  flushing_of_denormals_changes_no_byte_data();
}

void CodecIdentityTest::parts_encoded_apart_are_the_bytes_of_the_whole() {
  QFETCH(int, format);
  const auto wire = static_cast<WireFormat>(format);
  const auto x = heavy_tails(300'001, 8);
  std::vector<std::byte> whole(encoded_size(wire, x.size()));
  std::vector<std::byte> joined(whole.size());
  encode_values(wire, x, whole);

  for (const std::int64_t parts : {2, 3, 7}) {
    std::ranges::fill(joined, std::byte{0});
    for (std::int64_t part = 0; part < parts; ++part) {
      const auto begin = static_cast<std::size_t>(part_begin(wire, std::ssize(x), parts, part));
      const auto end = static_cast<std::size_t>(part_begin(wire, std::ssize(x), parts, part + 1));
      encode_values(wire, std::span(x).subspan(begin, end - begin),
                    std::span(joined).subspan(encoded_size(wire, begin), encoded_size(wire, end - begin)));
    }
    QVERIFY(joined == whole);
  }
}

QTEST_APPLESS_MAIN(CodecIdentityTest)
#include "codec_identity_test.moc"
