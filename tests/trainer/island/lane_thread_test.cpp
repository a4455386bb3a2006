// Sync lanes on threads of their own: what acts at once, and what one lane leaves alone of another.
#include "trainer/island/lane_thread.h"

#include <QtTest/QTest>
#include <atomic>
#include <thread>

#include "net/base/mailbox.h"
#include "net/base/sha256.h"

using namespace atl;

namespace {

constexpr std::int64_t kNumel = 8;  // of each of two fragments
constexpr std::chrono::seconds kLong{60};

RunConfig two_fragments() {
  RunConfig run;
  run.fragments = 2;
  run.wire = WireFormat::kFp32;
  return run;
}

// Its all-reduce goes on until it is aborted, or is let go and averages what one island gave.
class BlockingNetwork final : public LaneNetwork {
 public:
  void send(const IslandMessage& message) override { (void)sent.push(message); }
  std::variant<AllReduceReport, AllReduceFailure> all_reduce(const AllReduceSpec&, std::span<const float> input,
                                                             const SharedBytes& room,
                                                             const AbortSignal& abort) override {
    const std::span<std::byte> canonical(*room);
    running = true;
    while (!abort.raised() && !let_go) std::this_thread::yield();
    running = false;
    if (abort.raised()) return AllReduceFailure{{ErrorCode::kAborted, abort.reason()}, {}};
    const auto raw = std::as_bytes(input);
    std::copy(raw.begin(), raw.end(), canonical.begin());
    return AllReduceReport{.digest = sha256(canonical)};
  }
  void publish(StateNews) override {}

  // The next thing said of a kind.
  template <class Message>
  std::optional<Message> next() {
    while (auto message = sent.pop(Deadline::after(kLong))) {
      if (auto* found = std::get_if<Message>(&*message)) return *found;
    }
    return std::nullopt;
  }

  Mailbox<IslandMessage> sent{64};
  std::atomic<bool> running{false}, let_go{false};
};

struct Lanes {
  Lanes() {
    outer.initialise(std::vector<float>(2 * kNumel, 1.0f));
    for (std::uint32_t i = 0; i < 2; ++i) {
      lanes.push_back(std::make_unique<LaneThread>(FragmentId{i}, Fragment{{{i * kNumel, kNumel}}, kNumel}, run, outer,
                                                   status, network[i],
                                                   [this](LaneNews told) { (void)news.push(std::move(told)); }));
    }
  }
  void begin(std::uint32_t round) {
    LaneBegin begin;
    begin.ready = IslandReady{.round = OuterStep{round}, .tokens = 4};
    begin.inner_steps = 1;
    begin.local.assign(kNumel, 0.5f);
    lanes[round % 2]->post(std::move(begin));
  }
  void attempt(std::uint32_t round, std::uint32_t number) {
    HubAttempt message{OuterStep{round}, Attempt{number}, {{IslandId{"isl-0000000000000000"}, {"127.0.0.1", 1}, 4}}};
    message.wire = WireFormat::kFp32;
    message.fragment = FragmentId{round % 2};
    lanes[round % 2]->take(message);
  }
  // Both average at the same time.
  void both_under_way() {
    for (const std::uint32_t round : {0u, 1u}) {
      begin(round);
      attempt(round, 1);
    }
    QTRY_VERIFY_WITH_TIMEOUT(network[0].running && network[1].running, 60'000);
  }

  const RunConfig run = two_fragments();
  OuterStateStore outer{2 * kNumel};
  IslandStatus status{IslandState{}};
  std::array<BlockingNetwork, 2> network;
  Mailbox<LaneNews> news{64};
  std::vector<std::unique_ptr<LaneThread>> lanes;  // last: their threads end before what they use
};

}  // namespace

class LaneThreadTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_abort_ends_the_attempt_of_its_round_and_leaves_the_other_alone() {
    Lanes f;
    f.both_under_way();

    f.lanes[1]->take(HubAbort{OuterStep{1}, Attempt{1}, "isl-2 is gone", FragmentId{1}});

    QCOMPARE(f.network[1].next<IslandAttemptFailed>()->reason, std::string("isl-2 is gone"));
    QVERIFY(f.network[0].running);
    f.network[0].let_go = true;
    QCOMPARE(f.network[0].next<IslandHave>()->round.value, 0u);
  }

  void a_welcome_ends_what_is_under_way_and_attempts_after_it_go_on() {
    Lanes f;
    f.both_under_way();

    for (const auto& lane : f.lanes) lane->welcome();
    for (BlockingNetwork& network : f.network) QVERIFY(network.next<IslandAttemptFailed>());
    for (BlockingNetwork& network : f.network) network.let_go = true;
    f.attempt(0, 1);  // they count from 1 again

    QCOMPARE(f.network[0].next<IslandHave>()->attempt.value, 1u);
  }

  void an_outer_step_is_taken_while_the_other_lane_averages() {
    Lanes f;
    f.both_under_way();
    f.network[0].let_go = true;
    HubCommit commit;
    commit.digest = f.network[0].next<IslandHave>()->digest;
    commit.outer_learning_rate = 0.5;

    f.lanes[0]->post(commit);

    const auto applied = f.network[0].next<IslandApplied>();
    QCOMPARE(applied->outer_step.value, 1u);
    QVERIFY(f.network[1].running);
    const auto told = f.news.try_pop();  // before the hub heard of it
    QVERIFY(told && std::holds_alternative<LaneApplied>(*told));
    QCOMPARE(std::get<LaneApplied>(*told).state.state_hash, applied->state_hash);
    QCOMPARE(f.outer.snapshot()->second.front(), 0.75f);  // 1 - 0.5 (1 - 0.5)
    QCOMPARE(f.outer.snapshot()->second.back(), 1.0f);
  }

  void who_ends_does_what_was_posted_and_waits_for_nobody() {
    Lanes f;
    f.both_under_way();
    f.lanes[0]->post(LaneDrop{7});

    for (const auto& lane : f.lanes) lane->stop("the island ends");

    QVERIFY(f.network[0].next<IslandAttemptFailed>() && f.network[1].next<IslandAttemptFailed>());
    const auto told = f.news.try_pop();
    QVERIFY(told);
    QCOMPARE(std::get<LaneDropped>(*told).generation, std::uint64_t{7});
    f.lanes[0]->post(LaneDrop{8});  // nobody is there any more, and nothing happens
    QVERIFY(!f.news.try_pop());
  }

  void more_than_a_lane_can_take_in_ends_the_island_with_a_reason() {
    Lanes f;
    f.both_under_way();

    for (int i = 0; i < 2000; ++i) f.lanes[0]->post(LanePassWelcome{});

    const auto told = f.news.try_pop();
    QVERIFY(told && std::holds_alternative<LaneFailed>(*told));
  }
};

QTEST_GUILESS_MAIN(LaneThreadTest)
#include "lane_thread_test.moc"
