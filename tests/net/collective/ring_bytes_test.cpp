// What bytes a ring makes of formats that are summed hop by hop: those of contributions that are sent and then added in
// the ring's order, so that an average does not depend on the way by which it was made; and the direct schedule, which
// is another such way.
#include <QtTest>
#include <cmath>
#include <numeric>
#include <thread>

#include "kernels/wire_codec.h"
#include "net/collective/ring_schedule.h"
#include "net/recovery/work_sketch.h"
#include "tests/net/collective/ring_inputs.h"

using namespace atl;

namespace {

float share_of(const AllReduceSpec& spec, int rank) {
  double total = 0;
  for (const RingMember& member : spec.order) total += member.weight;
  return static_cast<float>(spec.order[static_cast<std::size_t>(rank)].weight / total);
}

// By the codec alone, chunk by chunk: each begins with what the rank of its number contributes, zeros if it has no
// share, and passes by the ranks behind it in their order.
Bytes chained(const AllReduceSpec& spec, const Inputs& inputs) {
  const auto numel = std::ssize(inputs[0]);
  const auto world_size = static_cast<int>(spec.order.size());
  const RingPayload payload = payload_of(spec, numel);
  Bytes canonical(static_cast<std::size_t>(encoded_bytes(spec.wire, numel)));
  for (std::int64_t bucket = 0; bucket < payload.buckets(); ++bucket) {
    for (int chunk = 0; chunk < world_size; ++chunk) {
      const std::int64_t begin = payload.chunk_begin(bucket, chunk, world_size);
      const std::int64_t count = payload.chunk_begin(bucket, chunk + 1, world_size) - begin;
      const auto bytes = static_cast<std::size_t>(encoded_bytes(spec.wire, count));
      const auto sum = std::span(canonical).subspan(static_cast<std::size_t>(encoded_bytes(spec.wire, begin)), bytes);
      for (int step = 0; step < world_size; ++step) {
        const int rank = (chunk + step) % world_size;
        const auto values = std::span(inputs[static_cast<std::size_t>(rank)])
                                .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
        Bytes contribution(bytes);
        encode_weighted(spec.wire, values, share_of(spec, rank), contribution);
        if (step == 0) {
          std::ranges::copy(contribution, sum.begin());
        } else if (share_of(spec, rank) != 0) {
          add_encoded(spec.wire, count, sum, contribution, sum);
        }
      }
    }
  }
  return canonical;
}

}  // namespace

class RingBytesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void either_schedule_makes_the_bytes_of_contributions_that_are_added_in_the_rings_order_data();
  void either_schedule_makes_the_bytes_of_contributions_that_are_added_in_the_rings_order();
  void a_members_residual_is_what_encoding_its_own_values_lost_data();
  void a_members_residual_is_what_encoding_its_own_values_lost();
  void what_all_say_that_they_gave_is_the_average_data();
  void what_all_say_that_they_gave_is_the_average();
};

void RingBytesTest::either_schedule_makes_the_bytes_of_contributions_that_are_added_in_the_rings_order_data() {
  QTest::addColumn<int>("schedule");
  QTest::addColumn<int>("format");
  QTest::addColumn<int>("world_size");
  QTest::addColumn<int>("numel");
  QTest::addColumn<int>("without_share");
  for (const WireFormat wire : kWireFormats) {
    if (!sums_hop_by_hop(wire) || !traits_of(wire).for_runs) continue;
    for (const int world_size : {2, 3, 5}) {
      // Several buckets, the last block short; so few values that chunks are empty.
      for (const int numel : {300'001, 700}) {
        for (const int without_share : {-1, 1}) {
          for (const Schedule schedule : {Schedule::kRing, Schedule::kDirect}) {
            QTest::addRow("%s N=%d numel=%d%s%s", wire_format_name(wire).data(), world_size, numel,
                          without_share < 0 ? "" : ", one receives only",
                          schedule == Schedule::kRing ? "" : ", directly")
                << static_cast<int>(schedule) << static_cast<int>(wire) << world_size << numel << without_share;
          }
        }
      }
    }
  }
}

void RingBytesTest::either_schedule_makes_the_bytes_of_contributions_that_are_added_in_the_rings_order() {
  QFETCH(int, schedule);
  QFETCH(int, format);
  QFETCH(int, world_size);
  QFETCH(int, numel);
  QFETCH(int, without_share);
  LoopbackRing ring(world_size);
  AllReduceSpec spec = ring.spec(static_cast<WireFormat>(format));
  spec.schedule = static_cast<Schedule>(schedule);
  spec.bucket_numel = 500 * kBlockNumel;
  for (int rank = 0; rank < world_size; ++rank) {
    spec.order[static_cast<std::size_t>(rank)].weight = rank == without_share ? 0 : 1 + rank;
  }
  const Inputs inputs = normal_inputs(world_size, static_cast<std::size_t>(numel));

  const auto results = ring.run(spec, inputs);

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  QVERIFY(results[0].canonical == chained(spec, inputs));
}

void RingBytesTest::a_members_residual_is_what_encoding_its_own_values_lost_data() {
  QTest::addColumn<int>("format");
  QTest::addColumn<int>("schedule");
  for (const Schedule schedule : {Schedule::kRing, Schedule::kDirect}) {
    for (const WireFormat wire : {WireFormat::kBf16, WireFormat::kInt8Block}) {
      QTest::addRow("%s%s", wire_format_name(wire).data(), schedule == Schedule::kRing ? "" : ", directly")
          << static_cast<int>(wire) << static_cast<int>(schedule);
    }
  }
}

// A run below 8 bits falls back to int8-block where not everybody reaches everybody, and what is owed goes with it.
void RingBytesTest::a_members_residual_is_what_encoding_its_own_values_lost() {
  QFETCH(int, format);
  QFETCH(int, schedule);
  constexpr int kMembers = 3;
  constexpr std::size_t kNumel = 20'001;
  LoopbackRing ring(kMembers);
  AllReduceSpec spec = ring.spec(static_cast<WireFormat>(format));
  spec.schedule = static_cast<Schedule>(schedule);
  const Inputs inputs = normal_inputs(kMembers, kNumel);
  const Inputs owed = normal_inputs(kMembers, kNumel, 43);
  Inputs lost(kMembers, std::vector<float>(kNumel));
  Inputs expected = lost;
  std::vector<MemberResult> results(kMembers);

  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < kMembers; ++rank) {
    threads.emplace_back([&, rank] {
      AllReduceSpec own = spec;
      own.feedback = {owed[rank], lost[rank]};
      results[rank] = ring.run_member(static_cast<int>(rank), own, inputs[rank], ring.abort);
    });
  }
  threads.clear();

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  Bytes contribution(static_cast<std::size_t>(encoded_bytes(spec.wire, kNumel)));
  for (std::size_t rank = 0; rank < kMembers; ++rank) {
    // A chunk's blocks are those of the whole: it begins at one.
    encode_weighted(spec.wire, inputs[rank], share_of(spec, 0), {owed[rank], expected[rank]}, contribution);
    QVERIFY(lost[rank] == expected[rank]);
  }
}

void RingBytesTest::what_all_say_that_they_gave_is_the_average_data() {
  QTest::addColumn<int>("format");
  QTest::addColumn<double>("lost");
  for (const WireFormat wire : {WireFormat::kFp32, WireFormat::kBf16, WireFormat::kInt8Block, WireFormat::kInt4E3m0}) {
    // Below 8 bits what is lost is owed, and so part of what is said.
    QTest::newRow(wire_format_name(wire).data())
        << static_cast<int>(wire) << (feeds_errors_back(wire) ? 1e-4 : 3 * traits_of(wire).error);
  }
}

// What the hub compares (net/mesh/work_findings.h).
void RingBytesTest::what_all_say_that_they_gave_is_the_average() {
  QFETCH(int, format);
  QFETCH(double, lost);
  constexpr int kMembers = 4;
  constexpr std::size_t kNumel = 60'001;
  LoopbackRing ring(kMembers);
  AllReduceSpec spec = ring.spec(static_cast<WireFormat>(format));
  // What the sum's encoding loses in the chunk of one without weight is owed by nobody.
  const bool feeds_back = feeds_errors_back(spec.wire);
  const double least = feeds_back ? 1 : 0;
  for (std::size_t rank = 0; rank < kMembers; ++rank) spec.order[rank].weight = least + static_cast<double>(rank);
  const Inputs inputs = normal_inputs(kMembers, kNumel), owed = normal_inputs(kMembers, kNumel, 43);
  Inputs owes(kMembers, std::vector<float>(kNumel));
  std::vector<MemberResult> results(kMembers);
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < kMembers; ++rank) {
    threads.emplace_back([&, rank] {
      AllReduceSpec own = spec;
      if (feeds_back) own.feedback = {owed[rank], owes[rank]};
      results[rank] = ring.run_member(static_cast<int>(rank), own, inputs[rank], ring.abort);
    });
  }
  threads.clear();
  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;

  const std::string digest = to_hex(results[0].report().digest);
  WorkSketch rest = sketch_of_average(digest, spec.wire, results[0].canonical, kNumel).value();
  const double length = std::sqrt(std::inner_product(rest.begin(), rest.end(), rest.begin(), 0.0));
  for (std::size_t rank = 0; rank < kMembers; ++rank) {
    const WorkSketch gave = feeds_back ? sketch_of_work(digest, inputs[rank], owed[rank], owes[rank])
                                       : sketch_of_work(digest, inputs[rank]);
    for (std::size_t i = 0; i < kSketchNumel; ++i) rest[i] -= spec.order[rank].weight / (6 + 4 * least) * gave[i];
  }

  const double missing = std::sqrt(std::inner_product(rest.begin(), rest.end(), rest.begin(), 0.0)) / length;
  QVERIFY2(missing <= lost, qPrintable(QString::number(missing)));
}

QTEST_APPLESS_MAIN(RingBytesTest)
#include "ring_bytes_test.moc"
