// The book that the threads of one attempt share: what may be sent, what is let in, and when the attempt is over.
#include "net/collective/frame_board.h"

#include <poll.h>

#include <QtTest>
#include <random>

#include "net/collective/canonical_digest.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kBucket = 60 * kBlockNumel;  // less than kLeastSubChunkBytes encoded: a frame for each chunk

// What rank 0 keeps of an attempt, with the frames that it sends and the ones that come from the last rank.
struct Book {
  RingPayload payload;
  EdgeSchedule outbound;
  EdgeSchedule inbound;
  FrameBoard board;

  explicit Book(int world_size, std::int64_t buckets = 1, std::vector<bool> final_buckets = {},
                std::size_t connections = 1, bool joined = true, std::size_t workers = 2)
      : payload{WireFormat::kInt8Block, buckets * kBucket, kBucket, std::move(final_buckets)},
        outbound(payload, world_size, Rank{0}),
        inbound(payload, world_size, Rank{world_size - 1}),
        board(payload, outbound, inbound, connections, workers) {
    if (joined) board.inbound_joined(connections);
  }

  std::vector<std::uint32_t> send_all_ready() {
    std::vector<std::uint32_t> sent;
    while (const auto sequence = board.take_to_send()) {
      board.frame_sent(*sequence);
      sent.push_back(*sequence);
    }
    return sent;
  }
  FrameBoard::Admission receive(std::uint32_t sequence) {
    const auto admission = board.admit(sequence);
    if (admission == FrameBoard::Admission::kWelcome) {
      board.frame_in_place(sequence, inbound.frame(sequence), false);
    }
    return admission;
  }
  void sleep(std::size_t worker, std::optional<std::size_t> least_unsent) {
    if (!board.may_sleep(worker, board.version(), least_unsent)) qFatal("it has something to do");
  }
  // By a worker that is awake and would send it itself.
  void receive_awake(std::uint32_t sequence) {
    if (board.admit(sequence) != FrameBoard::Admission::kWelcome) qFatal("not welcome");
    board.frame_in_place(sequence, inbound.frame(sequence), true);
  }
  // Every piece hashes to its number.
  void hash_all_ready() {
    while (const auto piece = board.take_to_hash()) {
      board.piece_hashed(*piece, PieceHash{static_cast<std::byte>(*piece)});
    }
  }
};

AllReduceFailure some_failure(const std::string& why) { return {{ErrorCode::kPeerLost, why}, std::nullopt, {}}; }

bool readable(int fd) {
  pollfd watched{fd, POLLIN, 0};
  return ::poll(&watched, 1, 0) == 1;
}

using Admission = FrameBoard::Admission;

// A worker with one connection, each call to the board a step of its own, so that those of others come between.
class SteppedWorker {
 public:
  SteppedWorker(FrameBoard& board, std::size_t index, std::mt19937& random)
      : board_(board), index_(index), random_(random) {}

  bool asleep() const { return next_ == Next::kWake && !readable(board_.wake_fd(index_)); }
  bool idle() const { return !busy_ && !closed_; }
  void step() {
    switch (next_) {
      case Next::kLook:
        version_ = board_.version();
        next_ = Next::kSend;
        return;
      case Next::kSend: next_ = idle() && send() ? Next::kLook : Next::kSleep; return;
      case Next::kSleep: {
        const bool sleeps = board_.may_sleep(index_, version_, idle() ? std::optional(unsent_) : std::nullopt);
        next_ = sleeps ? Next::kWake : Next::kLook;
        return;
      }
      case Next::kWake: board_.woke(index_); next_ = Next::kLook;
    }
  }
  // What its socket has to say, which wakes it.
  void drain() {
    unsent_ = at_random(unsent_ + 1);
    busy_ = false;
    if (next_ == Next::kWake) step();
  }
  void close() {
    if (next_ != Next::kWake || !idle()) return;
    step();
    closed_ = true;
    board_.outbound_closed({"isl-1"});
  }

 private:
  enum class Next { kLook, kSend, kSleep, kWake };
  std::size_t at_random(std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_); }
  bool send() {
    const auto sequence = board_.take_to_send(unsent_);
    if (!sequence) return false;
    board_.frame_sent(*sequence);
    unsent_ += at_random(100);
    busy_ = at_random(2) == 0;
    return true;
  }

  FrameBoard& board_;
  const std::size_t index_;
  std::mt19937& random_;
  Next next_ = Next::kLook;
  std::uint64_t version_ = 0;
  std::size_t unsent_ = 0;
  bool busy_ = false;
  bool closed_ = false;
};

}  // namespace

class FrameBoardTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void own_frames_are_ready_in_order_and_once();
  void the_last_own_frame_waits_for_the_previous_rank();
  void what_was_received_goes_on_before_own_frames_of_later_buckets();
  void a_frame_is_let_in_once();
  void a_place_is_not_written_before_what_was_there_has_left();
  void the_end_is_everything_sent_received_and_hashed();
  void final_buckets_do_not_travel_and_are_hashed();
  void a_payload_that_is_all_final_ends_with_its_digest();
  void buckets_are_whole_when_their_last_frame_is_in_place();
  void the_first_failure_stays();
  void a_failure_after_the_end_is_none();
  void only_the_last_connection_that_closes_is_a_failure();
  void connections_that_close_after_all_was_said_are_no_failure();
  void nobody_sleeps_over_a_change();
  void a_frame_that_becomes_ready_wakes_one_that_would_send_it();
  void the_sleeper_with_the_least_laden_connection_is_woken();
  void a_laden_connection_leaves_a_frame_to_a_sleeper_with_a_less_laden_one();
  void a_laden_connection_takes_a_frame_where_no_sleeper_has_less_data();
  void a_laden_connection_takes_a_frame_where_no_sleeper_has_less();
  void whoever_left_a_frame_may_sleep();
  void a_frame_left_to_a_connection_that_closes_goes_to_another();
  void a_frame_left_to_one_that_turns_out_to_be_busy_goes_to_another();
  void whoever_left_a_frame_does_not_sleep_over_the_next_one();
  void nobody_with_an_idle_connection_is_left_asleep_while_a_frame_is_ready();
  void the_end_wakes_everybody();
  void a_keepalive_is_taken_once();
  void a_keepalive_goes_behind_nothing_that_may_be_lost_where_it_need_not();
};

void FrameBoardTest::own_frames_are_ready_in_order_and_once() {
  Book attempt(3, 4);

  const auto sent = attempt.send_all_ready();

  QCOMPARE(sent.size(), std::size_t{4});  // one chunk of each bucket, one frame each
  QVERIFY(std::ranges::is_sorted(sent));
  for (const std::uint32_t sequence : sent) QCOMPARE(attempt.outbound.next_own(sequence), sequence);
  QVERIFY(!attempt.board.all_sent());
}

void FrameBoardTest::the_last_own_frame_waits_for_the_previous_rank() {
  Book attempt(3, 4, {}, 1, false);
  QCOMPARE(attempt.send_all_ready().size(), std::size_t{3});

  attempt.board.inbound_joined(1);

  const auto last = attempt.send_all_ready();
  QCOMPARE(last.size(), std::size_t{1});
  QCOMPARE(attempt.outbound.next_own(last.front() + 1), attempt.outbound.frames());
}

void FrameBoardTest::what_was_received_goes_on_before_own_frames_of_later_buckets() {
  Book attempt(3, 4);
  const auto first = attempt.board.take_to_send();
  QCOMPARE(first, std::optional<std::uint32_t>(0));

  QCOMPARE(attempt.receive(0), Admission::kWelcome);

  QCOMPARE(attempt.board.take_to_send(), attempt.inbound.forwarded(0, attempt.outbound));
  QVERIFY(attempt.board.take_to_send().value() > *attempt.inbound.forwarded(0, attempt.outbound));
}

void FrameBoardTest::a_frame_is_let_in_once() {
  Book attempt(3, 2);
  attempt.send_all_ready();

  QCOMPARE(attempt.receive(4), Admission::kWelcome);  // in any order
  QCOMPARE(attempt.receive(0), Admission::kWelcome);

  QCOMPARE(attempt.receive(4), Admission::kTwice);
  QCOMPARE(attempt.receive(0), Admission::kTwice);
}

void FrameBoardTest::a_place_is_not_written_before_what_was_there_has_left() {
  Book attempt(2);
  const std::uint32_t result = attempt.inbound.frames() - 1;  // of the chunk that rank 0 sends its part of
  const std::uint32_t part = attempt.board.take_to_send().value();
  QCOMPARE(attempt.inbound.replaces(result, attempt.outbound), std::optional(part));

  QCOMPARE(attempt.board.admit(result), Admission::kEarly);
  const auto before = attempt.board.version();
  attempt.board.frame_sent(part);

  QVERIFY(attempt.board.version() != before);  // whoever holds it looks again
  QCOMPARE(attempt.board.admit(result), Admission::kWelcome);
}

void FrameBoardTest::the_end_is_everything_sent_received_and_hashed() {
  Book attempt(3, 3);
  FrameBoard& board = attempt.board;

  for (std::uint32_t sequence = 0; sequence < attempt.inbound.frames(); ++sequence) {
    attempt.send_all_ready();
    QVERIFY(!board.all_received());
    QCOMPARE(attempt.receive(sequence), Admission::kWelcome);
  }
  attempt.send_all_ready();
  QVERIFY(board.all_sent() && board.all_received() && !board.ended());
  QVERIFY(!readable(board.ended_fd()));
  attempt.hash_all_ready();

  QVERIFY(board.ended() && !board.failure());
  QVERIFY(readable(board.ended_fd()));
  std::vector<PieceHash> pieces;
  const auto bytes = static_cast<std::size_t>(encoded_bytes(attempt.payload.wire, attempt.payload.numel));
  for (std::size_t i = 0; i < digest_pieces(bytes); ++i) pieces.push_back(PieceHash{static_cast<std::byte>(i)});
  QVERIFY(board.digest() == digest_of_pieces(pieces));
  QCOMPARE(board.whole_buckets(), std::vector<bool>(3, true));
}

void FrameBoardTest::final_buckets_do_not_travel_and_are_hashed() {
  constexpr int kBuckets = 40;  // more than one piece of the digest
  std::vector<bool> final_buckets(kBuckets, true);
  final_buckets[kBuckets - 2] = false;
  Book all(3, kBuckets);
  Book rest(3, kBuckets, final_buckets);

  QCOMPARE(rest.outbound.frames() * kBuckets, all.outbound.frames());
  QVERIFY(!all.board.take_to_hash());
  QVERIFY(rest.board.take_to_hash().has_value());
  QCOMPARE(rest.board.whole_buckets(), final_buckets);
}

void FrameBoardTest::a_payload_that_is_all_final_ends_with_its_digest() {
  Book attempt(3, 2, {true, true});

  QVERIFY(!attempt.board.take_to_send() && !attempt.board.ended());
  attempt.hash_all_ready();

  QVERIFY(attempt.board.ended() && !attempt.board.failure());
}

void FrameBoardTest::buckets_are_whole_when_their_last_frame_is_in_place() {
  Book attempt(2, 2);
  attempt.send_all_ready();

  QCOMPARE(attempt.receive(0), Admission::kWelcome);
  QCOMPARE(attempt.board.whole_buckets(), (std::vector<bool>{false, false}));
  QCOMPARE(attempt.receive(1), Admission::kWelcome);

  QCOMPARE(attempt.board.whole_buckets(), (std::vector<bool>{true, false}));
}

void FrameBoardTest::the_first_failure_stays() {
  Book attempt(3);

  attempt.board.fail(some_failure("first"));
  attempt.board.fail(some_failure("second"));

  QVERIFY(attempt.board.ended() && readable(attempt.board.ended_fd()));
  QCOMPARE(attempt.board.failure()->error.message, std::string("first"));
}

void FrameBoardTest::a_failure_after_the_end_is_none() {
  Book attempt(3, 1, {true});
  attempt.hash_all_ready();

  attempt.board.fail(some_failure("late"));

  QVERIFY(attempt.board.ended() && !attempt.board.failure());
}

void FrameBoardTest::only_the_last_connection_that_closes_is_a_failure() {
  const IslandId peer{"isl-1"};
  Book sending(3, 1, {}, 2);
  Book receiving(3, 1, {}, 2);

  sending.board.outbound_closed(peer);
  receiving.board.inbound_closed(peer);
  QVERIFY(!sending.board.ended() && !receiving.board.ended());
  sending.board.outbound_closed(peer);
  receiving.board.inbound_closed(peer);

  for (const Book* attempt : {&sending, &receiving}) {
    const auto failure = attempt->board.failure();
    QVERIFY(failure.has_value());
    QCOMPARE(failure->error.code, ErrorCode::kPeerLost);
    QCOMPARE(failure->peer->value, peer.value);
  }
}

void FrameBoardTest::connections_that_close_after_all_was_said_are_no_failure() {
  const IslandId peer{"isl-1"};
  Book attempt(2);
  attempt.send_all_ready();
  for (std::uint32_t i = 0; i < attempt.inbound.frames(); ++i) {
    QCOMPARE(attempt.receive(i), Admission::kWelcome);
    attempt.send_all_ready();
  }

  attempt.board.outbound_closed(peer);
  attempt.board.inbound_closed(peer);

  QVERIFY(!attempt.board.failure());
  attempt.hash_all_ready();
  QVERIFY(attempt.board.ended() && !attempt.board.failure());
}

void FrameBoardTest::nobody_sleeps_over_a_change() {
  Book attempt(3);
  attempt.send_all_ready();
  const auto seen = attempt.board.version();

  attempt.board.ask_for_keepalive(1s);

  QVERIFY(!attempt.board.may_sleep(0, seen, 0));
  QVERIFY(attempt.board.may_sleep(0, attempt.board.version(), 0));
}

void FrameBoardTest::a_frame_that_becomes_ready_wakes_one_that_would_send_it() {
  Book attempt(3);
  attempt.send_all_ready();
  QVERIFY(attempt.board.may_sleep(0, attempt.board.version(), std::nullopt));  // all its connections are busy
  QVERIFY(attempt.board.may_sleep(1, attempt.board.version(), 0));

  QCOMPARE(attempt.receive(0), Admission::kWelcome);

  QVERIFY(!readable(attempt.board.wake_fd(0)));
  QVERIFY(readable(attempt.board.wake_fd(1)));
  attempt.board.woke(1);
  QVERIFY(!readable(attempt.board.wake_fd(1)));
}

void FrameBoardTest::the_sleeper_with_the_least_laden_connection_is_woken() {
  Book attempt(3, 1, {}, 1, true, 3);
  attempt.send_all_ready();
  attempt.sleep(0, 500);
  attempt.sleep(1, 100);
  attempt.sleep(2, 300);

  QCOMPARE(attempt.receive(0), Admission::kWelcome);

  QVERIFY(readable(attempt.board.wake_fd(1)));
  for (const std::size_t worker : {0u, 2u}) QVERIFY(!readable(attempt.board.wake_fd(worker)));
  attempt.board.woke(1);
  QVERIFY(attempt.board.take_to_send(100).has_value());
}

void FrameBoardTest::a_laden_connection_leaves_a_frame_to_a_sleeper_with_a_less_laden_one() {
  Book attempt(3, 1, {}, 1, true, 3);
  attempt.send_all_ready();
  attempt.sleep(1, 100);
  attempt.sleep(2, 50);
  attempt.receive_awake(0);
  for (const std::size_t worker : {1u, 2u}) QVERIFY(!readable(attempt.board.wake_fd(worker)));

  QVERIFY(!attempt.board.take_to_send(500));

  QVERIFY(readable(attempt.board.wake_fd(2)));
  QVERIFY(!attempt.board.take_to_send(500));  // it takes a while to wake up
  QVERIFY(!readable(attempt.board.wake_fd(1)));
  attempt.board.woke(2);
  QVERIFY(attempt.board.take_to_send(50).has_value());
  QVERIFY(!attempt.board.has_to_send());
}

void FrameBoardTest::a_laden_connection_takes_a_frame_where_no_sleeper_has_less_data() {
  using Load = std::optional<std::size_t>;
  QTest::addColumn<Load>("of_sleeper");
  QTest::addColumn<std::size_t>("own");
  QTest::newRow("more") << Load(501) << std::size_t{500};
  QTest::newRow("as much") << Load(500) << std::size_t{500};
  QTest::newRow("nothing on either") << Load(0) << std::size_t{0};
  QTest::newRow("the sleeper's are busy") << Load() << std::size_t{500};
}

void FrameBoardTest::a_laden_connection_takes_a_frame_where_no_sleeper_has_less() {
  QFETCH(const std::optional<std::size_t>, of_sleeper);
  QFETCH(const std::size_t, own);
  Book attempt(3);
  attempt.send_all_ready();
  attempt.sleep(1, of_sleeper);
  attempt.receive_awake(0);

  QVERIFY(attempt.board.take_to_send(own).has_value());

  QVERIFY(!readable(attempt.board.wake_fd(1)));
}

void FrameBoardTest::whoever_left_a_frame_may_sleep() {
  Book attempt(3);
  attempt.send_all_ready();
  attempt.sleep(1, 100);
  attempt.receive_awake(0);
  QVERIFY(!attempt.board.may_sleep(0, attempt.board.version(), 100));  // nobody else would take it
  QVERIFY(!attempt.board.take_to_send(500));

  QVERIFY(attempt.board.may_sleep(0, attempt.board.version(), 500));

  attempt.board.woke(1);
  QVERIFY(attempt.board.take_to_send(100).has_value());
  QVERIFY(!readable(attempt.board.wake_fd(0)));
}

void FrameBoardTest::a_frame_left_to_a_connection_that_closes_goes_to_another() {
  Book attempt(3, 1, {}, 2);
  attempt.send_all_ready();
  attempt.sleep(1, 0);
  attempt.receive_awake(0);
  QVERIFY(!attempt.board.take_to_send(500));
  attempt.sleep(0, 500);

  attempt.board.woke(1);
  attempt.board.outbound_closed({"isl-1"});

  QVERIFY(readable(attempt.board.wake_fd(0)));
  attempt.board.woke(0);
  QVERIFY(attempt.board.take_to_send(500).has_value());
}

void FrameBoardTest::a_frame_left_to_one_that_turns_out_to_be_busy_goes_to_another() {
  Book attempt(3);
  attempt.send_all_ready();
  attempt.sleep(1, 0);
  attempt.receive_awake(0);
  QVERIFY(!attempt.board.take_to_send(500));
  attempt.sleep(0, 500);

  attempt.board.woke(1);
  attempt.sleep(1, std::nullopt);  // a keepalive fills it

  QVERIFY(readable(attempt.board.wake_fd(0)));
  attempt.board.woke(0);
  QVERIFY(attempt.board.take_to_send(500).has_value());
}

void FrameBoardTest::whoever_left_a_frame_does_not_sleep_over_the_next_one() {
  Book attempt(3, 2);
  attempt.send_all_ready();
  attempt.sleep(1, 0);
  attempt.receive_awake(0);
  attempt.receive_awake(1);
  const auto seen = attempt.board.version();
  QVERIFY(!attempt.board.take_to_send(500));

  attempt.board.woke(1);
  QVERIFY(attempt.board.take_to_send(0).has_value());
  attempt.sleep(1, std::nullopt);  // it is still busy with that one

  QVERIFY(!attempt.board.may_sleep(0, seen, 500));
  QVERIFY(attempt.board.take_to_send(500).has_value());
}

void FrameBoardTest::nobody_with_an_idle_connection_is_left_asleep_while_a_frame_is_ready() {
  constexpr std::size_t kWorkers = 4;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto one_of = [&](std::size_t count) {
      return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
    };
    Book attempt(3, 20, {}, kWorkers, true, kWorkers);
    std::vector<SteppedWorker> workers;
    for (std::size_t i = 0; i < kWorkers; ++i) workers.emplace_back(attempt.board, i, random);

    for (std::uint32_t next = 0; next < attempt.inbound.frames();) {
      for (std::size_t events = one_of(4); events > 0; --events) {
        if (next < attempt.inbound.frames() && attempt.receive(next) == Admission::kWelcome) ++next;
        workers[one_of(kWorkers)].drain();
        if (one_of(50) == 0) workers[1 + one_of(kWorkers - 1)].close();  // one stays open
        for (std::size_t steps = one_of(20); steps > 0; --steps) {
          SteppedWorker& worker = workers[one_of(kWorkers)];
          if (!worker.asleep()) worker.step();
        }
      }
      int steps = 0;  // of those that nothing but the board keeps awake
      while (!std::ranges::all_of(workers, &SteppedWorker::asleep)) {
        for (SteppedWorker& worker : workers) {
          if (!worker.asleep()) worker.step();
        }
        QVERIFY2(++steps < 1'000, "they wake each other without end");
      }
      const bool one_would_send = std::ranges::any_of(workers, &SteppedWorker::idle);
      QVERIFY2(!one_would_send || !attempt.board.has_to_send(),
               qPrintable(QString("seed %1, frame %2").arg(seed).arg(next)));
    }
  }
}

void FrameBoardTest::the_end_wakes_everybody() {
  Book attempt(3);
  for (const std::size_t worker : {0u, 1u}) {
    QVERIFY(attempt.board.may_sleep(worker, attempt.board.version(), std::nullopt));
  }

  attempt.board.fail(some_failure("over"));

  for (const std::size_t worker : {0u, 1u}) QVERIFY(readable(attempt.board.wake_fd(worker)));
}

void FrameBoardTest::a_keepalive_is_taken_once() {
  Book attempt(3);
  QVERIFY(!attempt.board.take_keepalive());

  attempt.board.ask_for_keepalive(2s);
  attempt.board.ask_for_keepalive(1s);

  QVERIFY(attempt.board.take_keepalive() == 1s);  // with what was said last
  QVERIFY(!attempt.board.take_keepalive());
}

void FrameBoardTest::a_keepalive_goes_behind_nothing_that_may_be_lost_where_it_need_not() {
  Book attempt(3);
  attempt.send_all_ready();
  for (const std::size_t worker : {0u, 1u}) {
    QVERIFY(attempt.board.may_sleep(worker, attempt.board.version(), 0));
  }

  attempt.board.ask_for_keepalive(1s);

  for (const std::size_t worker : {0u, 1u}) QVERIFY(readable(attempt.board.wake_fd(worker)));
  QVERIFY(!attempt.board.take_keepalive(/*unacknowledged=*/true));
  QVERIFY(attempt.board.keepalive_due());
  attempt.board.ask_for_keepalive(900ms);
  QVERIFY(attempt.board.take_keepalive(/*unacknowledged=*/true) == 900ms);
  QVERIFY(!attempt.board.keepalive_due());
  attempt.board.ask_for_keepalive(1s);
  QVERIFY(!attempt.board.take_keepalive(/*unacknowledged=*/true));
}

QTEST_APPLESS_MAIN(FrameBoardTest)
#include "frame_board_test.moc"
