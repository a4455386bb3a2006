// The direct schedule: what comes out of it is what comes out of a ring, whoever has a say and however the payload is
// cut; and its connections serve one attempt after the other.
#include <QtTest>
#include <functional>
#include <limits>
#include <thread>

#include "net/collective/canonical_digest.h"
#include "tests/net/collective/fault_parts.h"
#include "tests/net/collective/slow_link.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

AllReduceSpec directly(AllReduceSpec spec) {
  spec.schedule = Schedule::kDirect;
  spec.attempt.value += 1;
  return spec;
}

// Each member with residuals of its own; what it then owes is in `lost`.
std::vector<MemberResult> run_with_feedback(LoopbackRing& ring, const AllReduceSpec& spec, const Inputs& inputs,
                                            const Inputs& owed, Inputs& lost) {
  std::vector<MemberResult> results(inputs.size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    threads.emplace_back([&, rank] {
      AllReduceSpec own = spec;
      own.feedback = {owed[rank], lost[rank]};
      results[rank] = ring.run_member(static_cast<int>(rank), own, inputs[rank], ring.abort);
    });
  }
  threads.clear();
  return results;
}

// The same spec round a ring, and directly: one average.
void verify_same_as_ring(LoopbackRing& ring, const AllReduceSpec& spec, const Inputs& inputs) {
  const auto expected = ring.run(spec, inputs);
  verify_all_succeeded(expected);
  if (QTest::currentTestFailed()) return;

  const auto results = ring.run(directly(spec), inputs);

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  QVERIFY(results[0].canonical == expected[0].canonical);
  for (const MemberResult& result : results) {
    QCOMPARE(result.report().digest, expected[0].report().digest);
    QCOMPARE(result.report().hops, 2);
  }
}

// Connections of rank `peer` on which `rank` waits for the next attempt.
int resting_at(LoopbackRing& ring, int rank, int peer) {
  std::vector<pollfd> polls;
  ring.island(rank).inbox.append_polls(FragmentId{0}, {ring.id(peer)}, polls);
  return static_cast<int>(polls.size()) - 1;  // but for arrivals
}

void verify_reused(const std::vector<MemberResult>& results, int reused) {
  for (const MemberResult& result : results) {
    QCOMPARE(result.report().connections, static_cast<int>(results.size()) - 1);
    QCOMPARE(result.report().connections_reused, reused);
  }
}

// The second exchange of two: rank 1 has begun, while rank 0 has not, when nothing is parked at it any more.
void verify_begins_before_its_dialler(LoopbackRing& ring, int reused, const std::function<void()>& meanwhile) {
  AllReduceSpec spec = directly(ring.spec(WireFormat::kInt8Block));
  const Inputs inputs = some_inputs(2, 300'000);
  verify_all_succeeded(ring.run(spec, inputs));
  if (QTest::currentTestFailed()) return;
  spec = directly(spec);
  MemberResult dialled;
  std::jthread waits([&] { dialled = ring.run_member(1, spec, inputs[1], ring.abort); });
  QTRY_COMPARE(resting_at(ring, 1, 0), 0);

  meanwhile();
  const MemberResult dialler = ring.run_member(0, spec, inputs[0], ring.abort);
  waits.join();

  verify_all_succeeded({dialler, dialled});
  if (QTest::currentTestFailed()) return;
  verify_reused({dialler, dialled}, reused);
}

}  // namespace

class DirectExchangeTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_average_is_that_of_a_ring_data();
  void an_average_is_that_of_a_ring();
  void whoever_has_no_share_the_average_is_that_of_a_ring_data();
  void whoever_has_no_share_the_average_is_that_of_a_ring();
  void a_member_without_share_contributes_no_bytes();
  void what_members_owe_is_what_they_owe_after_a_ring_data();
  void what_members_owe_is_what_they_owe_after_a_ring();
  void buckets_that_are_final_stay_as_they_are();
  void more_contributions_than_may_wait_come_in_all_the_same();
  void every_byte_is_told_to_be_final_once();
  void connections_stay_open_for_the_next_attempt();
  void whoever_is_dialled_begins_on_the_connection_that_rests();
  void whoever_began_on_a_connection_that_its_dialler_had_dropped_begins_again();
  void connections_that_broke_meanwhile_are_replaced();
  void an_exchange_among_others_or_in_another_order_follows();
  void an_exchange_and_a_ring_follow_each_other();
  void attempts_of_two_fragments_at_once_give_what_each_gives_alone();
  void an_attempt_cut_in_the_middle_is_finished_with_fewer_bytes_data();
  void an_attempt_cut_in_the_middle_is_finished_with_fewer_bytes();
  void formats_that_have_a_way_of_their_own_are_refused();
};

void DirectExchangeTest::an_average_is_that_of_a_ring_data() {
  QTest::addColumn<int>("format");
  QTest::addColumn<int>("world_size");
  QTest::addColumn<int>("numel");
  for (const WireFormat wire : {WireFormat::kInt8Block, WireFormat::kBf16, WireFormat::kFp32}) {
    for (const int world_size : {2, 3, 5, 8}) {
      // Empty; one value; fewer blocks than members; several buckets and sub-chunks, the last block short.
      for (const int numel : {0, 1, 700, 400'003}) {
        QTest::addRow("%s N=%d numel=%d", wire_format_name(wire).data(), world_size, numel)
            << static_cast<int>(wire) << world_size << numel;
      }
    }
  }
}

void DirectExchangeTest::an_average_is_that_of_a_ring() {
  QFETCH(int, format);
  QFETCH(int, world_size);
  QFETCH(int, numel);
  LoopbackRing ring(world_size);
  AllReduceSpec spec = ring.spec(static_cast<WireFormat>(format));
  spec.bucket_numel = 600 * kBlockNumel;
  for (int rank = 0; rank < world_size; ++rank) spec.order[static_cast<std::size_t>(rank)].weight = 1 + rank;

  verify_same_as_ring(ring, spec, some_inputs(world_size, static_cast<std::size_t>(numel)));
}

void DirectExchangeTest::whoever_has_no_share_the_average_is_that_of_a_ring_data() {
  QTest::addColumn<std::vector<double>>("weights");
  QTest::newRow("rank 0") << std::vector<double>{0, 2, 3, 4};
  QTest::newRow("rank 1") << std::vector<double>{1, 0, 3, 4};
  QTest::newRow("rank 2") << std::vector<double>{1, 2, 0, 4};
  QTest::newRow("rank 3") << std::vector<double>{1, 2, 3, 0};
  QTest::newRow("two neighbours") << std::vector<double>{1, 0, 0, 4};
  QTest::newRow("all but one") << std::vector<double>{0, 0, 3, 0};
  QTest::newRow("the one of two") << std::vector<double>{0, 1};
  QTest::newRow("the other of two") << std::vector<double>{1, 0};
  QTest::newRow("a weight that is none among such others") << std::vector<double>{1e-60, 2, 3};
}

void DirectExchangeTest::whoever_has_no_share_the_average_is_that_of_a_ring() {
  QFETCH(std::vector<double>, weights);
  const auto world_size = static_cast<int>(weights.size());
  LoopbackRing ring(world_size);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.bucket_numel = 100 * kBlockNumel;
  Inputs inputs = some_inputs(world_size, 60'000);
  for (std::size_t rank = 0; rank < weights.size(); ++rank) {
    spec.order[rank].weight = weights[rank];
    if (weights[rank] < 1) std::ranges::fill(inputs[rank], std::numeric_limits<float>::quiet_NaN());  // not looked at
  }

  verify_same_as_ring(ring, spec, inputs);
}

void DirectExchangeTest::a_member_without_share_contributes_no_bytes() {
  LoopbackRing ring(3);
  AllReduceSpec spec = directly(ring.spec(WireFormat::kInt8Block));
  spec.order[1].weight = 0;

  const auto results = ring.run(spec, some_inputs(3, 300'000));

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  QVERIFY(results[1].report().bytes_sent < results[0].report().bytes_sent * 6 / 10);
  QVERIFY(results[0].report().bytes_received < results[1].report().bytes_received * 8 / 10);
}

void DirectExchangeTest::what_members_owe_is_what_they_owe_after_a_ring_data() {
  QTest::addColumn<int>("without_share");
  QTest::newRow("all have a share") << -1;
  for (int rank = 0; rank < 3; ++rank) QTest::addRow("rank %d has none", rank) << rank;
}

void DirectExchangeTest::what_members_owe_is_what_they_owe_after_a_ring() {
  QFETCH(int, without_share);
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.bucket_numel = 100 * kBlockNumel;
  if (without_share >= 0) spec.order[static_cast<std::size_t>(without_share)].weight = 0;
  const Inputs inputs = some_inputs(3, 60'000), owed = some_inputs(3, 60'000);
  Inputs after_ring(3, std::vector<float>(60'000, 7.0f)), after_exchange = after_ring;
  const auto expected = run_with_feedback(ring, spec, inputs, owed, after_ring);
  verify_all_succeeded(expected);
  if (QTest::currentTestFailed()) return;

  const auto results = run_with_feedback(ring, directly(spec), inputs, owed, after_exchange);

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  QVERIFY(results[0].canonical == expected[0].canonical);
  QVERIFY(after_exchange == after_ring);
}

void DirectExchangeTest::buckets_that_are_final_stay_as_they_are() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.bucket_numel = 400 * kBlockNumel;
  const Inputs inputs = some_inputs(3, 1'000 * kBlockNumel), owed = some_inputs(3, 1'000 * kBlockNumel);
  const auto all = ring.run(spec, inputs);
  verify_all_succeeded(all);
  if (QTest::currentTestFailed()) return;
  const auto bucket = static_cast<std::size_t>(encoded_bytes(spec.wire, spec.bucket_numel));
  std::vector<Bytes> rooms;
  for (const MemberResult& result : all) {
    rooms.push_back(result.canonical);
    std::fill_n(rooms.back().begin(), bucket, std::byte{0xaa});  // what is averaged again is written again
  }

  spec = directly(spec);
  spec.order[2].weight = 0;  // whose residuals are touched by nothing else
  Inputs lost(3, std::vector<float>(inputs[0].size(), 7.0f));
  spec.final_buckets = {true, true, false};
  const auto none = run_with_feedback(ring, spec, inputs, owed, lost);
  for (const MemberResult& result : none) QVERIFY2(result.ok(), message_of(result).c_str());
  const auto final_values = static_cast<std::size_t>(2 * spec.bucket_numel);
  for (const auto& residual : lost) {
    for (std::size_t i = 0; i < residual.size(); ++i) QCOMPARE(residual[i] == 7.0f, i < final_values);
  }
  spec.order[2].weight = 1;
  spec.attempt.value += 1;
  spec.final_buckets = {false, true, true};
  const auto again = ring.run(spec, inputs, {}, rooms);

  verify_all_succeeded(again);
  if (QTest::currentTestFailed()) return;
  for (const MemberResult& result : again) {
    QVERIFY(result.canonical == all[0].canonical);
    QCOMPARE(result.report().digest, canonical_digest(all[0].canonical));
    QVERIFY(result.report().bytes_sent < all[0].report().bytes_sent / 2);
  }
}

// Rank 1 hears from rank 0 by a link that is ten times as slow as it needs to keep up: what the others contribute to it
// has no room, and theirs behind it waits. Nobody is to blame for that.
void DirectExchangeTest::more_contributions_than_may_wait_come_in_all_the_same() {
  LoopbackRing ring(4);
  AllReduceSpec spec = ring.spec(WireFormat::kFp32);
  const Inputs inputs = some_inputs(4, 16'000'000);  // 16 MB from each of three to each owner, of which 12 have room
  const auto expected = ring.run(spec, inputs);
  verify_all_succeeded(expected);
  if (QTest::currentTestFailed()) return;
  SlowLink link(spec.order[1].address, 12'000'000);
  spec.order[1].address = link.address();
  spec.silence_timeout = 1'000ms * kSlowdown;

  const auto results = ring.run(directly(spec), inputs);

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  QVERIFY(results[0].canonical == expected[0].canonical);
}

void DirectExchangeTest::every_byte_is_told_to_be_final_once() {
  LoopbackRing ring(3);
  AllReduceSpec spec = directly(ring.spec(WireFormat::kInt8Block));
  spec.bucket_numel = 400 * kBlockNumel;
  spec.final_buckets = {false, true, false};
  const Inputs inputs = some_inputs(3, 1'000 * kBlockNumel);
  std::vector<int> told(static_cast<std::size_t>(encoded_bytes(spec.wire, std::ssize(inputs[0]))));
  std::vector<std::jthread> others;
  for (const int rank : {0, 2}) {
    others.emplace_back(
        [&, rank] { (void)ring.run_member(rank, spec, inputs[static_cast<std::size_t>(rank)], ring.abort); });
  }
  AllReduceSpec own = spec;
  own.on_final = [&](std::size_t offset, std::size_t count) {
    for (std::size_t i = offset; i < offset + count; ++i) ++told[i];
  };

  const MemberResult result = ring.run_member(1, own, inputs[1], ring.abort);
  others.clear();

  QVERIFY2(result.ok(), message_of(result).c_str());
  QVERIFY(std::ranges::all_of(told, [](int times) { return times == 1; }));
}

void DirectExchangeTest::connections_stay_open_for_the_next_attempt() {
  LoopbackRing ring(4);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const Inputs inputs = some_inputs(4, 300'000);

  for (int attempt = 1; attempt <= 4; ++attempt) {
    spec = directly(spec);
    const auto results = ring.run(spec, inputs);
    verify_all_succeeded(results);
    if (QTest::currentTestFailed()) return;
    verify_reused(results, attempt == 1 ? 0 : 3);
  }
}

void DirectExchangeTest::whoever_is_dialled_begins_on_the_connection_that_rests() {
  LoopbackRing ring(2);
  verify_begins_before_its_dialler(ring, 1, [] {});
}

void DirectExchangeTest::whoever_began_on_a_connection_that_its_dialler_had_dropped_begins_again() {
  LoopbackRing ring(2);
  verify_begins_before_its_dialler(ring, 0, [&] { ring.island(0).ring->forget(ring.id(1)); });
}

void DirectExchangeTest::connections_that_broke_meanwhile_are_replaced() {
  LoopbackRing ring(3);
  AllReduceSpec spec = directly(ring.spec(WireFormat::kInt8Block));
  const Inputs inputs = some_inputs(3, 100'000);
  verify_all_succeeded(ring.run(spec, inputs));
  if (QTest::currentTestFailed()) return;

  ring.island(1).inbox.keep_parked_of(spec.fragment, {});  // the one that rank 0 keeps is broken
  const auto results = ring.run(directly(spec), inputs);

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  QCOMPARE(results[0].report().connections_reused, 1);
  QCOMPARE(results[1].report().connections_reused, 1);
  QCOMPARE(results[2].report().connections_reused, 2);
}

void DirectExchangeTest::an_exchange_among_others_or_in_another_order_follows() {
  LoopbackRing ring(4);
  AllReduceSpec spec = directly(ring.spec(WireFormat::kInt8Block));
  const Inputs inputs = some_inputs(4, 100'000);
  verify_all_succeeded(ring.run(spec, inputs));
  if (QTest::currentTestFailed()) return;

  AllReduceSpec without = directly(spec);
  without.order.erase(without.order.begin() + 1);
  verify_all_succeeded(ring.run(without, inputs, {0, 2, 3}));
  if (QTest::currentTestFailed()) return;
  AllReduceSpec turned = directly(without);
  std::ranges::reverse(turned.order);
  verify_all_succeeded(ring.run(turned, inputs, {3, 2, 0}));
  if (QTest::currentTestFailed()) return;
  verify_all_succeeded(ring.run(directly(directly(without)), inputs, {0, 2, 3}));
}

void DirectExchangeTest::an_exchange_and_a_ring_follow_each_other() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const Inputs inputs = some_inputs(3, 100'000);

  for (const Schedule schedule : {Schedule::kDirect, Schedule::kRing, Schedule::kDirect, Schedule::kRing}) {
    spec.attempt.value += 1;
    spec.schedule = schedule;
    verify_all_succeeded(ring.run(spec, inputs));
    if (QTest::currentTestFailed()) return;
  }
}

void DirectExchangeTest::attempts_of_two_fragments_at_once_give_what_each_gives_alone() {
  LoopbackRing ring(3);
  const Inputs inputs = some_inputs(3, 700'000);
  std::vector<AllReduceSpec> specs(2, ring.spec(WireFormat::kInt8Block));
  for (std::uint32_t i = 0; i < 2; ++i) {
    specs[i].fragments = 2;
    specs[i].round = OuterStep{4 + i};
    specs[i].fragment = FragmentId{i};
    specs[i].order[i].weight = 3;
  }
  std::vector<std::vector<MemberResult>> alone;
  for (const AllReduceSpec& spec : specs) alone.push_back(ring.run(spec, inputs));

  for (int time = 0; time < 3; ++time) {
    std::vector<std::vector<MemberResult>> results(2);
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < 2; ++i) {
      specs[i] = directly(specs[i]);
      threads.emplace_back([&, i] { results[i] = ring.run(specs[i], inputs); });
    }
    threads.clear();
    for (std::size_t i = 0; i < 2; ++i) {
      verify_all_succeeded(results[i]);
      if (QTest::currentTestFailed()) return;
      QVERIFY(results[i][0].canonical == alone[i][0].canonical);
      verify_reused(results[i], time == 0 ? 0 : 2);
    }
  }
}

void DirectExchangeTest::an_attempt_cut_in_the_middle_is_finished_with_fewer_bytes_data() {
  QTest::addColumn<bool>("was_direct");
  QTest::addColumn<bool>("goes_on_directly");
  QTest::newRow("directly") << true << true;
  QTest::newRow("around the ring") << true << false;
  QTest::newRow("directly, after a ring") << false << true;
}

// Whichever way either goes: the bytes of a bucket that is whole are the same.
void DirectExchangeTest::an_attempt_cut_in_the_middle_is_finished_with_fewer_bytes() {
  QFETCH(bool, was_direct);
  QFETCH(bool, goes_on_directly);
  constexpr int kBuckets = 64;
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.bucket_numel = 500 * kBlockNumel;
  const Inputs inputs = some_inputs(3, kBuckets * static_cast<std::size_t>(spec.bucket_numel));
  const auto whole_round = ring.run(spec, inputs);
  verify_all_succeeded(whole_round);
  if (QTest::currentTestFailed()) return;
  // Slow enough for the buckets to follow each other, and cut when half of them are through.
  // Directly half of what a member sends goes over each link.
  SlowLink link(spec.order[1].address, was_direct ? 10'000'000 : 20'000'000);
  link.cut_after(whole_round[0].report().bytes_sent / (was_direct ? 4 : 2));
  AllReduceSpec cut = directly(spec);
  if (!was_direct) cut.schedule = Schedule::kRing;
  cut.order[1].address = link.address();
  auto failed = ring.run(cut, inputs);
  const auto bytes = static_cast<std::ptrdiff_t>(encoded_bytes(spec.wire, spec.bucket_numel));
  std::vector<bool> held(kBuckets, true);
  for (const MemberResult& result : failed) {
    QVERIFY(!result.ok());
    const auto& whole = result.failure().whole_buckets;
    QCOMPARE(whole.size(), held.size());
    for (std::size_t bucket = 0; bucket < held.size(); ++bucket) {
      held[bucket] = held[bucket] && whole[bucket];
      const auto offset = static_cast<std::ptrdiff_t>(bucket) * bytes;
      const bool same = std::equal(result.canonical.begin() + offset, result.canonical.begin() + offset + bytes,
                                   whole_round[0].canonical.begin() + offset);
      QVERIFY(same || !whole[bucket]);
    }
  }

  AllReduceSpec next = directly(directly(spec));
  if (!goes_on_directly) next.schedule = Schedule::kRing;
  next.final_buckets = held;
  std::vector<Bytes> rooms;
  for (MemberResult& result : failed) rooms.push_back(std::move(result.canonical));
  const auto results = ring.run(next, inputs, {}, std::move(rooms));

  const auto kept = std::ranges::count(held, true);
  QVERIFY2(kept > 0 && kept < kBuckets, qPrintable(QString::number(kept)));
  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  for (std::size_t i = 0; i < 3; ++i) {
    QVERIFY(results[i].canonical == whole_round[0].canonical);
    QCOMPARE(results[i].report().digest, whole_round[0].report().digest);
    const auto full = static_cast<double>(whole_round[i].report().bytes_sent);
    const double share = static_cast<double>(kBuckets - kept) / kBuckets;
    QVERIFY(static_cast<double>(results[i].report().bytes_sent) < full * share * 1.05);
  }
}

void DirectExchangeTest::formats_that_have_a_way_of_their_own_are_refused() {
  LoopbackRing ring(2);

  const auto result =
      ring.run_member(0, directly(ring.spec(WireFormat::kInt4E3m0)), std::vector<float>(1'000), ring.abort);

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kInvalidArgument);
}

QTEST_GUILESS_MAIN(DirectExchangeTest)
#include "direct_exchange_test.moc"
