// All-reduces of different fragments of a model, at the same time, between the same islands, through the same ports and
// objects: each gives what it gives alone, and what ends one leaves the others as they are.
#include <QtTest>
#include <thread>

#include "tests/net/collective/fault_parts.h"

using namespace atl;
using namespace std::chrono_literals;

Q_DECLARE_METATYPE(atl::WireFormat)

namespace {

constexpr int kFragments = 2;
constexpr std::int64_t kNumel = 700'000;

AllReduceSpec spec_of(const LoopbackRing& ring, std::uint32_t round, WireFormat wire = WireFormat::kInt8Block,
                      int fragments = kFragments) {
  AllReduceSpec spec = ring.spec(wire);
  spec.round = OuterStep{round};
  spec.fragments = fragments;
  spec.fragment = FragmentId{round % static_cast<std::uint32_t>(fragments)};
  return spec;
}

// Other values, and another number of them, in each round.
Inputs inputs_of(int world_size, std::uint32_t round) {
  Inputs inputs = some_inputs(world_size, static_cast<std::size_t>(kNumel + 1'000 * round));
  for (auto& input : inputs) {
    for (float& value : input) value *= 1.0f + 0.5f * static_cast<float>(round);
  }
  return inputs;
}

std::vector<MemberResult> run_in(LoopbackRing& ring, const AllReduceSpec& spec) {
  return ring.run(spec, inputs_of(ring.world_size(), spec.round.value));
}

void verify_kept_open(const std::vector<MemberResult>& results) {
  for (const MemberResult& result : results) {
    QCOMPARE(result.report().connections_reused, result.report().connections);
  }
}

// Or its neighbour, who heard of it a moment sooner, has hung up.
bool was_ended_by_an_abort(const MemberResult& result) {
  if (result.ok()) return false;
  const ErrorCode code = result.failure().error.code;
  return code == ErrorCode::kAborted || code == ErrorCode::kPeerLost;
}

}  // namespace

class RingFragmentsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void attempts_at_once_give_what_each_gives_alone_data();
  void attempts_at_once_give_what_each_gives_alone();
  void an_attempt_that_waits_for_a_member_holds_up_no_other();
  void an_abort_ends_its_attempt_and_leaves_the_others_their_connections();
  void a_fragment_is_averaged_by_one_attempt_at_a_time();
  void a_member_that_is_forgotten_loses_its_connections_of_all_fragments();
  void who_breaks_one_fragments_attempt_breaks_no_other();
  void a_hello_of_another_fragment_is_refused();
  void more_connections_than_a_fragments_part_are_refused_data();
  void more_connections_than_a_fragments_part_are_refused();
};

void RingFragmentsTest::attempts_at_once_give_what_each_gives_alone_data() {
  QTest::addColumn<WireFormat>("wire");
  QTest::addColumn<int>("world_size");
  QTest::addColumn<int>("fragments");
  QTest::addColumn<bool>("hidden");
  QTest::newRow("two islands") << WireFormat::kInt8Block << 2 << 2 << false;
  QTest::newRow("three islands, four fragments") << WireFormat::kInt8Block << 3 << 4 << false;
  QTest::newRow("summed by owners") << WireFormat::kInt4E3m0 << 3 << 3 << false;
  QTest::newRow("one that nobody can dial") << WireFormat::kFp32 << 3 << 2 << true;
  QTest::newRow("two islands, one dials both edges") << WireFormat::kInt8Block << 2 << 2 << true;
}

void RingFragmentsTest::attempts_at_once_give_what_each_gives_alone() {
  QFETCH(const WireFormat, wire);
  QFETCH(const int, world_size);
  QFETCH(const int, fragments);
  QFETCH(const bool, hidden);
  LoopbackRing alone(world_size), ring(world_size);
  constexpr std::uint32_t kTimes = 3;
  const auto last = static_cast<std::uint32_t>(world_size - 1);
  const auto specs_of = [&](LoopbackRing& of, std::uint32_t time) {
    std::vector<AllReduceSpec> specs;
    for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(fragments); ++i) {
      specs.push_back(spec_of(of, time * static_cast<std::uint32_t>(fragments) + i, wire, fragments));
      specs.back().order[last].dials_previous = hidden;
    }
    return specs;
  };
  if (hidden) ring.island(world_size - 1).listener.reset();

  for (std::uint32_t time = 0; time < kTimes; ++time) {
    const auto specs = specs_of(ring, time), lonely = specs_of(alone, time);
    std::vector<std::vector<MemberResult>> results(specs.size());
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      threads.emplace_back([&, i] { results[i] = run_in(ring, specs[i]); });
    }
    threads.clear();

    for (std::size_t i = 0; i < specs.size(); ++i) {
      verify_all_succeeded(results[i]);
      if (QTest::currentTestFailed()) return;
      const auto expected = run_in(alone, lonely[i]);
      verify_all_succeeded(expected);
      QVERIFY(results[i][0].canonical == expected[0].canonical);
      QVERIFY(results[i][0].report().digest == expected[0].report().digest);
      if (time > 0) verify_kept_open(results[i]);
    }
  }
}

void RingFragmentsTest::an_attempt_that_waits_for_a_member_holds_up_no_other() {
  LoopbackRing ring(3);
  const AllReduceSpec waits = spec_of(ring, 3), goes = spec_of(ring, 4);
  const Inputs inputs = inputs_of(3, 3);
  std::vector<MemberResult> first(3);
  std::vector<std::jthread> threads;
  for (const int rank : {0, 2}) {
    const auto at = static_cast<std::size_t>(rank);
    threads.emplace_back([&, rank, at] { first[at] = ring.run_member(rank, waits, inputs[at], ring.abort); });
  }

  const auto second = run_in(ring, goes);
  verify_all_succeeded(second);
  first[1] = ring.run_member(1, waits, inputs[1], ring.abort);
  threads.clear();

  verify_all_succeeded(first);
}

void RingFragmentsTest::an_abort_ends_its_attempt_and_leaves_the_others_their_connections() {
  LoopbackRing ring(3);
  const Inputs inputs = inputs_of(3, 3);
  std::atomic<bool> done{false};
  std::vector<MemberResult> aborted(2);
  std::jthread aborting([&] {  // again and again: rank 1 never comes
    for (std::uint32_t attempt = 1; !done || attempt < 3; ++attempt) {
      AllReduceSpec spec = spec_of(ring, 3);
      spec.attempt = Attempt{attempt};
      AbortSignal abort;
      std::vector<std::jthread> members;
      for (const std::size_t i : {0u, 1u}) {
        const int rank = i == 0 ? 0 : 2;
        members.emplace_back(
            [&, rank, i] { aborted[i] = ring.run_member(rank, spec, inputs[static_cast<std::size_t>(rank)], abort); });
      }
      std::this_thread::sleep_for(20ms);  // so that some are aborted while they wait, and some before
      abort.raise("the hub said so");
      members.clear();
      for (const MemberResult& result : aborted) {
        if (!was_ended_by_an_abort(result)) done = true;
      }
    }
  });

  std::vector<std::vector<MemberResult>> others;
  for (std::uint32_t round = 4; round < 24; round += kFragments) others.push_back(run_in(ring, spec_of(ring, round)));
  done = true;
  aborting.join();

  for (std::size_t i = 0; i < others.size(); ++i) {
    verify_all_succeeded(others[i]);
    if (QTest::currentTestFailed()) return;
    if (i > 0) verify_kept_open(others[i]);
  }
  for (const MemberResult& result : aborted) {
    QVERIFY(was_ended_by_an_abort(result));
  }
  AllReduceSpec again = spec_of(ring, 3);
  again.attempt = Attempt{1'000'000};
  verify_all_succeeded(run_in(ring, again));
}

void RingFragmentsTest::a_fragment_is_averaged_by_one_attempt_at_a_time() {
  LoopbackRing ring(2);
  const AllReduceSpec spec = spec_of(ring, 3);
  const Inputs inputs = inputs_of(2, 3);
  AbortSignal abort;
  MemberResult first;
  std::jthread member([&] { first = ring.run_member(0, spec, inputs[0], abort); });
  const RingEdges edges = ring.edges_of(1, spec, std::ssize(inputs[0]));  // both stand: rank 0 is at it

  const MemberResult second = ring.run_member(0, spec, inputs[0], ring.abort);

  abort.raise("the test ends");
  member.join();
  QVERIFY(!second.ok());
  QCOMPARE(second.failure().error.code, ErrorCode::kInvalidArgument);
  QVERIFY2(message_of(second).find("fragment 1 is being averaged already") != std::string::npos,
           message_of(second).c_str());
  QCOMPARE(first.failure().error.code, ErrorCode::kAborted);
}

void RingFragmentsTest::a_member_that_is_forgotten_loses_its_connections_of_all_fragments() {
  LoopbackRing ring(3);
  for (const std::uint32_t round : {3u, 4u}) verify_all_succeeded(run_in(ring, spec_of(ring, round)));

  ring.island(0).ring->forget(ring.id(1));  // to which it dialled

  for (const std::uint32_t round : {5u, 6u}) {
    const auto results = run_in(ring, spec_of(ring, round));
    verify_all_succeeded(results);
    if (QTest::currentTestFailed()) return;
    QCOMPARE(results[0].report().connections_reused, 0);
    QCOMPARE(results[1].report().connections_reused, results[1].report().connections);
  }
}

void RingFragmentsTest::who_breaks_one_fragments_attempt_breaks_no_other() {
  LoopbackRing ring(2);
  verify_all_succeeded(run_in(ring, spec_of(ring, 2)));
  const AllReduceSpec spec = spec_of(ring, 3);
  const Inputs inputs = inputs_of(2, 3);
  std::optional<RingEdges> edges;
  std::jthread liar([&] {
    edges.emplace(ring.edges_of(1, spec, std::ssize(inputs[0])));
    // A good frame, but of what the other fragment averages meanwhile.
    const AllReduceSpec other = spec_of(ring, 4);
    const EdgeSchedule edge(payload_of(other, std::ssize(inputs[0])), 2, Rank{1});
    (void)edges->to_next[0].write_all(encoded(frame_header(other, edge, 0)), Deadline::after(1min));
  });
  std::vector<MemberResult> others;
  std::jthread honest([&] { others = run_in(ring, spec_of(ring, 4)); });

  const MemberResult result = ring.run_member(0, spec, inputs[0], ring.abort);
  liar.join();
  honest.join();

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kProtocol);
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
  QVERIFY2(message_of(result).find("a frame of round 4 attempt 1, fragment 0") != std::string::npos,
           message_of(result).c_str());
  verify_all_succeeded(others);
  if (QTest::currentTestFailed()) return;
  verify_kept_open(others);
}

void RingFragmentsTest::a_hello_of_another_fragment_is_refused() {
  LoopbackRing ring(2);
  const AllReduceSpec spec = spec_of(ring, 3);
  AllReduceSpec lies = spec;
  lies.fragment = FragmentId{0};
  const Inputs inputs = inputs_of(2, 3);
  AbortSignal end;
  std::jthread liar([&] { (void)ring.run_member(1, lies, inputs[1], end); });

  const MemberResult result = ring.run_member(0, spec, inputs[0], ring.abort);
  end.raise("the test ends");
  liar.join();

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kProtocol);
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
  QVERIFY2(message_of(result).find("fragment 0 instead of 1") != std::string::npos, message_of(result).c_str());
}

void RingFragmentsTest::more_connections_than_a_fragments_part_are_refused_data() {
  QTest::addColumn<bool>("hidden");
  QTest::newRow("from the previous rank") << false;
  QTest::newRow("from the next rank, which dials") << true;
}

void RingFragmentsTest::more_connections_than_a_fragments_part_are_refused() {
  QFETCH(const bool, hidden);
  LoopbackRing ring(3);
  AllReduceSpec spec = spec_of(ring, 4, WireFormat::kInt8Block, 4);
  spec.order[1].dials_previous = hidden;
  AllReduceSpec greedy = spec;
  greedy.fragments = 1;
  greedy.connections_per_edge = kMaxConnectionsPerEdge;
  const Inputs inputs = inputs_of(3, 4);
  AbortSignal end;
  MemberResult other;
  const int of_greedy = hidden ? 1 : 2;
  std::jthread liar(
      [&] { (void)ring.run_member(of_greedy, greedy, inputs[static_cast<std::size_t>(of_greedy)], end); });
  AllReduceSpec lenient = spec;  // or its refusal might be what the greedy one fails of
  lenient.fragments = 1;
  std::jthread patient([&] { other = ring.run_member(3 - of_greedy, lenient, inputs[0], end); });

  const MemberResult result = ring.run_member(0, spec, inputs[0], ring.abort);
  end.raise("the test ends");
  liar.join();
  patient.join();

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kProtocol);
  QCOMPARE(result.failure().peer->value, ring.id(of_greedy).value);
  QVERIFY2(message_of(result).find("16 connections; in a run of 4 fragments each has 4 at most") != std::string::npos,
           message_of(result).c_str());
}

QTEST_GUILESS_MAIN(RingFragmentsTest)
#include "ring_fragments_test.moc"
