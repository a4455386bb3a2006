// What waits for an attempt, and who may take it: connections of different fragments lie beside each other.
#include "net/transport/ring_inbox.h"

#include <poll.h>

#include <QtTest>
#include <algorithm>
#include <thread>

#include "net/transport/peer_listener.h"
#include "tests/fakes/older_member.h"
#include "tests/fakes/patience.h"
#include "tests/fakes/test_run.h"
#include "tests/timing.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

RingHello hello_of(FragmentId fragment, std::uint32_t round, int index = 0, int count = 1) {
  return RingHello{.from = TestRun::island_id(1),
                   .round = OuterStep{round},
                   .attempt = Attempt{1},
                   .fragment = fragment,
                   .from_rank = Rank{1},
                   .world_size = 3,
                   .connection_index = index,
                   .connection_count = count,
                   .payload_numel = 10,
                   .bucket_numel = 256};
}

constexpr FragmentId kFirst{0}, kSecond{1};

RingReceipt some_receipt() {
  return {.round = OuterStep{1}, .attempt = Attempt{1}, .microseconds = 5, .bytes = kReceiptBytes};
}

// Both ends of a connection that island 1 dialled.
struct Connection {
  TlsConnection far, near;
};

bool is_closed(TlsConnection& connection) {
  std::byte byte{};
  const auto read = connection.try_read({&byte, 1});
  return !read.ok();
}

bool closes(TlsConnection& connection) {
  std::byte byte{};
  const auto read = connection.read_some({&byte, 1}, Deadline::after(test::kForEver));
  return read.ok() ? *read == 0 : read.error().code != ErrorCode::kTimeout;
}

}  // namespace

class RingInboxTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() {
    inbox_.emplace();
    door_.forget(TestRun::island_id(1));
    door_.forget_attempts();
    door_.expect_ahead(Schedule::kRing, {}, false);
  }

  void a_connection_is_taken_by_an_attempt_of_its_fragment_alone();
  void a_newer_attempt_of_a_fragment_drops_nothing_of_another();
  void attempts_of_two_fragments_wait_at_the_same_time();
  void a_peer_that_names_another_fragment_for_an_attempt_is_told();
  void what_a_fragment_has_parked_stays_when_another_closes_its_own();
  void a_parked_connection_serves_no_other_fragment();
  void what_was_parked_by_the_other_schedule_is_closed_by_an_attempt();
  void of_several_edges_the_one_that_came_is_taken_without_waiting();
  void an_attempt_that_is_given_up_takes_nobody_in();
  void a_peer_has_no_more_places_by_naming_more_fragments();
  void as_many_are_parked_whatever_their_fragments();
  void a_peer_of_another_schedule_is_told();
  void a_refusal_is_told_to_attempts_of_every_fragment();
  void a_hub_that_begins_anew_begins_anew_for_every_fragment();
  void a_connection_dialled_ahead_is_answered_and_serves_the_first_attempt();
  void who_was_not_named_dials_nobody_ahead_data();
  void who_was_not_named_dials_nobody_ahead();
  void a_peer_dials_no_more_ahead_than_it_may_and_pushes_nothing_out();
  void what_was_dialled_ahead_stays_when_others_are_named();
  void one_dialled_ahead_that_is_closed_ends_no_attempt();
  void padding_is_read_as_it_comes_and_the_hello_behind_it_is_found();
  void a_flood_of_padding_is_throttled();
  void who_wants_no_padding_says_so();
  void padding_on_a_connection_of_an_attempt_gone_by_is_refused();
  void who_begins_on_what_it_dialled_ahead_over_and_over_has_no_more_waiting();
  void receipts_that_come_late_are_passed_over();
  void half_a_receipt_is_waited_for_and_ends_nothing();
  void what_is_no_late_receipt_closes_the_connection_data();
  void what_is_no_late_receipt_closes_the_connection();

 private:
  // Not in the inbox yet.
  Connection connect() {
    RingHello hello;
    hello.from = TestRun::island_id(1);
    hello.world_size = 2;
    hello.connection_count = 1;
    hello.bucket_numel = 1;
    auto far = TlsConnection::connect({"127.0.0.1", listener_->port()}, dial_context_, TestRun::island_id(0),
                                      Deadline::after(test::kForEver));
    if (!far.ok() || !far->write_all(encode(hello), Deadline::after(test::kForEver)).ok()) qFatal("cannot dial");
    auto edge = door_.take(hello, Deadline::after(test::kForEver), abort_);
    if (!edge.ok()) qFatal("%s", edge.error().message.c_str());
    return {std::move(*far), std::move(edge->connections.front())};
  }
  TlsConnection deliver(const RingHello& hello) {
    Connection connection = connect();
    inbox_->deliver(hello, std::move(connection.near));
    return std::move(connection.far);
  }
  TlsConnection park(FragmentId fragment, RingInbox::Kind kind = RingInbox::Kind::kRing) {
    Connection connection = connect();
    std::vector<RingInbox::Parked> parked;
    parked.push_back({std::move(connection.near), {}});
    inbox_->park(fragment, std::move(parked), kind);
    return std::move(connection.far);
  }
  // Of island 1, through the port, to the inbox behind it. The answer, if one came.
  struct Ahead {
    TlsConnection far;
    std::optional<RingAhead> answer;
  };
  Ahead dial_ahead(const RingAhead& ahead) {
    auto far = TlsConnection::connect({"127.0.0.1", listener_->port()}, dial_context_, TestRun::island_id(0),
                                      Deadline::after(test::kForEver));
    if (!far.ok() || !far->write_all(encode(ahead), Deadline::after(test::kForEver)).ok()) qFatal("cannot dial");
    RingAheadBytes bytes;
    if (!far->read_exact(bytes, Deadline::after(test::kForEver)).ok()) return {std::move(*far), std::nullopt};
    return {std::move(*far), decode_ring_ahead(bytes).value()};
  }
  void pad(TlsConnection& far, int messages) {
    const Bytes padding = ring_padding(kMaxRingPaddingBytes);
    for (int i = 0; i < messages; ++i) {
      if (!far.write_all(padding, Deadline::after(test::kForEver)).ok()) qFatal("cannot pad");
    }
  }
  // As the thread does that keeps connections warm, until it is destroyed.
  std::jthread reads_ahead() {
    return std::jthread([this](const std::stop_token& stop) {
      std::vector<pollfd> polls;
      while (!stop.stop_requested()) {
        polls.clear();
        door_.append_ahead(polls);
        (void)::poll(polls.data(), polls.size(), 10);
        door_.read_ahead();
      }
    });
  }
  auto take_at_door(const RingHello& expected, Deadline deadline = Deadline::after(test::kForEver)) {
    return door_.take(expected, deadline, abort_);
  }
  auto take(const RingHello& expected, Deadline deadline = Deadline::after(0ms)) {
    return inbox_->take(expected, deadline, abort_);
  }

  TestRun run_;
  AbortSignal abort_;
  RingInbox door_;
  TlsContext dial_context_ = TlsContext::client(run_.island(1), kAlpnRing).value();
  std::unique_ptr<PeerListener> listener_ =
      PeerListener::start(
          {.bind = {"127.0.0.1", 0}}, TlsContext::island_server(run_.island(0)).value(),
          [](const PeerCertificate&) { return ok_status(); }, door_, [](TlsConnection, const AbortSignal&) {})
          .value();
  std::optional<RingInbox> inbox_;
};

void RingInboxTest::a_connection_is_taken_by_an_attempt_of_its_fragment_alone() {
  const TlsConnection far = deliver(hello_of(kFirst, 2));

  QCOMPARE(take(hello_of(kSecond, 3)).error().code, ErrorCode::kTimeout);

  QVERIFY(take(hello_of(kFirst, 2)).ok());
}

void RingInboxTest::a_newer_attempt_of_a_fragment_drops_nothing_of_another() {
  TlsConnection older = deliver(hello_of(kFirst, 2)), old = deliver(hello_of(kSecond, 1));

  QVERIFY(!take(hello_of(kSecond, 7)).ok());

  QVERIFY(closes(old));
  QVERIFY(!is_closed(older));
  QVERIFY(take(hello_of(kFirst, 2)).ok());
}

void RingInboxTest::attempts_of_two_fragments_wait_at_the_same_time() {
  std::vector<Result<RingInbox::Edge>> taken;
  for (int i = 0; i < 2; ++i) taken.emplace_back(Error{});
  std::vector<TlsConnection> far;
  {
    std::vector<std::jthread> threads;
    for (const FragmentId fragment : {kFirst, kSecond}) {
      threads.emplace_back([&, fragment] {
        taken[fragment.value] = take(hello_of(fragment, fragment.value, 0, 2), Deadline::after(test::kForEver));
      });
    }
    for (const int index : {0, 1}) {
      for (const FragmentId fragment : {kSecond, kFirst}) {
        far.push_back(deliver(hello_of(fragment, fragment.value, index, 2)));
        const std::byte mark{static_cast<unsigned char>(10 * fragment.value + static_cast<unsigned>(index))};
        QVERIFY(far.back().write_all({&mark, 1}, Deadline::after(test::kForEver)).ok());
      }
    }
  }

  for (const FragmentId fragment : {kFirst, kSecond}) {
    QVERIFY(taken[fragment.value].ok());
    auto& connections = taken[fragment.value]->connections;
    QCOMPARE(connections.size(), std::size_t{2});
    for (unsigned index : {0u, 1u}) {
      std::byte mark{};
      QVERIFY(connections[index].read_exact({&mark, 1}, Deadline::after(test::kForEver)).ok());
      QCOMPARE(static_cast<unsigned>(mark), 10 * fragment.value + index);
    }
  }
}

void RingInboxTest::a_peer_that_names_another_fragment_for_an_attempt_is_told() {
  const TlsConnection far = deliver(hello_of(kSecond, 2));

  const auto taken = take(hello_of(kFirst, 2));

  QCOMPARE(taken.error().code, ErrorCode::kProtocol);
  QVERIFY2(taken.error().message.find("fragment 1 instead of 0") != std::string::npos, taken.error().message.c_str());
}

void RingInboxTest::what_a_fragment_has_parked_stays_when_another_closes_its_own() {
  TlsConnection stays = park(kFirst), goes = park(kSecond);

  inbox_->keep_parked_of(kSecond, {});

  QVERIFY(closes(goes));
  QVERIFY(stays.write_all(encode(hello_of(kFirst, 2)), Deadline::after(test::kForEver)).ok());
  const auto taken = take(hello_of(kFirst, 2), Deadline::after(test::kForEver));
  QVERIFY(taken.ok());
  QCOMPARE(taken->reused, 1);
}

void RingInboxTest::a_parked_connection_serves_no_other_fragment() {
  TlsConnection far = park(kFirst);
  QVERIFY(far.write_all(encode(hello_of(kSecond, 3)), Deadline::after(test::kForEver)).ok());

  QCOMPARE(take(hello_of(kSecond, 3), Deadline::after(200ms)).error().code, ErrorCode::kTimeout);
  QVERIFY(!is_closed(far));  // nobody has listened to it yet
  while (!is_closed(far)) QCOMPARE(take(hello_of(kFirst, 2), Deadline::after(10ms)).error().code, ErrorCode::kTimeout);

  QCOMPARE(take(hello_of(kSecond, 3)).error().code, ErrorCode::kTimeout);
}

void RingInboxTest::a_peer_has_no_more_places_by_naming_more_fragments() {
  TlsConnection other = deliver(hello_of(kSecond, 1));  // came first of all
  std::vector<TlsConnection> flood;
  for (std::uint32_t round = 0; round < 2 * RingInbox::kMaxWaitingOfPeer; round += 2) {
    flood.push_back(deliver(hello_of(kFirst, round)));
  }

  QVERIFY(closes(flood.front()));  // the flood pushes out its own
  QVERIFY(!is_closed(flood[1]));
  QVERIFY(!is_closed(other));
  for (std::uint32_t round = 3; round < 2 * RingInbox::kMaxWaitingOfPeer; round += 2) {
    flood.push_back(deliver(hello_of(kSecond, round)));
  }
  flood.push_back(std::move(other));
  const auto open = [&] { return std::ranges::count_if(flood, [](TlsConnection& far) { return !is_closed(far); }); };
  QTRY_COMPARE(static_cast<std::size_t>(open()), RingInbox::kMaxWaitingOfPeer);
}

void RingInboxTest::as_many_are_parked_whatever_their_fragments() {
  TlsConnection other = park(kSecond);
  std::vector<TlsConnection> many;
  for (std::size_t i = 0; i < RingInbox::kMaxWaitingOfPeer; ++i) many.push_back(park(kFirst));

  QVERIFY(closes(many.front()));
  QVERIFY(!is_closed(many[1]));
  QVERIFY(!is_closed(other));
}

void RingInboxTest::what_was_parked_by_the_other_schedule_is_closed_by_an_attempt() {
  TlsConnection ring = park(kFirst), exchange = park(kFirst, RingInbox::Kind::kExchange);
  TlsConnection other = park(kSecond);

  inbox_->keep_parked_of(kFirst, {TestRun::island_id(1)}, RingInbox::Kind::kExchange);

  QVERIFY(closes(ring));
  QVERIFY(!is_closed(exchange));
  QVERIFY(!is_closed(other));
}

void RingInboxTest::of_several_edges_the_one_that_came_is_taken_without_waiting() {
  RingHello of_another = hello_of(kFirst, 2);
  of_another.from = TestRun::island_id(2);
  const std::vector<RingHello> expected{of_another, hello_of(kFirst, 2)};
  QVERIFY(!inbox_->try_take(expected));
  std::vector<pollfd> polls;
  inbox_->append_polls(kFirst, {TestRun::island_id(1), TestRun::island_id(2)}, polls);

  const TlsConnection far = deliver(hello_of(kFirst, 2));
  QCOMPARE(::poll(polls.data(), polls.size(), 0), 1);
  const auto came = inbox_->try_take(expected);

  QVERIFY(came && came->edge.ok());
  QCOMPARE(came->index, std::size_t{1});
  QCOMPARE(came->edge->connections.size(), std::size_t{1});
  QVERIFY(!inbox_->try_take(expected));
}

void RingInboxTest::an_attempt_that_is_given_up_takes_nobody_in() {
  TlsConnection waits = deliver(hello_of(kFirst, 2));

  inbox_->give_up(hello_of(kFirst, 2));

  QVERIFY(closes(waits));
  TlsConnection late = deliver(hello_of(kFirst, 2));
  QVERIFY(closes(late));
  const TlsConnection next = deliver(hello_of(kFirst, 3));
  QVERIFY(take(hello_of(kFirst, 3)).ok());
}

void RingInboxTest::a_peer_of_another_schedule_is_told() {
  RingHello exchanges = hello_of(kFirst, 2);
  exchanges.role = RingRole::kExchange;
  for (const int world_size : {2, 3}) {
    RingHello in_ring = hello_of(kFirst, 2);
    exchanges.world_size = in_ring.world_size = world_size;
    for (const bool expects_ring : {false, true}) {
      inbox_.emplace();
      const TlsConnection far = deliver(expects_ring ? exchanges : in_ring);
      const auto taken = take(expects_ring ? in_ring : exchanges);
      QVERIFY(!taken.ok());
      QCOMPARE(taken.error().code, ErrorCode::kProtocol);
      QVERIFY2(taken.error().message.find("schedule") != std::string::npos, taken.error().message.c_str());
    }
  }
}

void RingInboxTest::a_refusal_is_told_to_attempts_of_every_fragment() {
  inbox_->refuse(TestRun::island_id(1), Error{ErrorCode::kVersionUnsupported, "another version"});

  QCOMPARE(take(hello_of(kFirst, 2)).error().code, ErrorCode::kVersionUnsupported);
  QCOMPARE(take(hello_of(kSecond, 3)).error().code, ErrorCode::kVersionUnsupported);
}

void RingInboxTest::a_hub_that_begins_anew_begins_anew_for_every_fragment() {
  for (const FragmentId fragment : {kFirst, kSecond}) QVERIFY(!take(hello_of(fragment, 8 + fragment.value)).ok());
  TlsConnection waits = deliver(hello_of(kFirst, 10));

  inbox_->forget_attempts();

  QVERIFY(closes(waits));
  for (const FragmentId fragment : {kFirst, kSecond}) {
    const TlsConnection far = deliver(hello_of(fragment, fragment.value));
    QVERIFY(take(hello_of(fragment, fragment.value)).ok());
  }
}

void RingInboxTest::a_connection_dialled_ahead_is_answered_and_serves_the_first_attempt() {
  door_.expect_ahead(Schedule::kRing, {{TestRun::island_id(1), 2}}, true);
  Ahead first = dial_ahead({kSecond, Schedule::kRing}), second = dial_ahead({kSecond, Schedule::kRing});
  QVERIFY(first.answer && *first.answer == (RingAhead{kSecond, Schedule::kRing, true}));
  door_.keep_parked_of(kSecond, {TestRun::island_id(1)});

  QVERIFY(first.far.write_all(encode(hello_of(kSecond, 1, 0, 2)), Deadline::after(test::kForEver)).ok());
  QVERIFY(second.far.write_all(encode(hello_of(kSecond, 1, 1, 2)), Deadline::after(test::kForEver)).ok());

  const auto edge = take_at_door(hello_of(kSecond, 1));
  QVERIFY2(edge.ok(), edge.ok() ? "" : edge.error().message.c_str());
  QCOMPARE(edge->connections.size(), std::size_t{2});
  QCOMPARE(edge->reused, 2);
}

void RingInboxTest::who_was_not_named_dials_nobody_ahead_data() {
  QTest::addColumn<int>("named");
  QTest::addColumn<bool>("directly");
  QTest::newRow("nobody was") << 0 << false;
  QTest::newRow("another was") << 2 << false;
  QTest::newRow("for the other schedule") << 1 << true;
  QTest::newRow("for fewer fragments") << 1 << false;
}

void RingInboxTest::who_was_not_named_dials_nobody_ahead() {
  QFETCH(int, named);
  QFETCH(bool, directly);
  if (named > 0) {
    door_.expect_ahead(directly ? Schedule::kDirect : Schedule::kRing, {{TestRun::island_id(named), 16}}, true, 1);
  }

  QVERIFY(!dial_ahead({named == 1 && !directly ? kSecond : kFirst, Schedule::kRing}).answer);

  // Nor does an attempt hear of it.
  QCOMPARE(take_at_door(hello_of(kFirst, 1), Deadline::after(0ms)).error().code, ErrorCode::kTimeout);
}

void RingInboxTest::a_peer_dials_no_more_ahead_than_it_may_and_pushes_nothing_out() {
  door_.expect_ahead(Schedule::kRing, {{TestRun::island_id(1), 2}}, true);
  Ahead one = dial_ahead({kFirst, Schedule::kRing}), two = dial_ahead({kFirst, Schedule::kRing});
  QVERIFY(one.answer && two.answer);

  QVERIFY(!dial_ahead({kFirst, Schedule::kRing}).answer);

  const Ahead other = dial_ahead({kSecond, Schedule::kRing});  // of which it has none
  QVERIFY(other.answer);
  QVERIFY(!is_closed(one.far) && !is_closed(two.far));
}

void RingInboxTest::what_was_dialled_ahead_stays_when_others_are_named() {
  door_.expect_ahead(Schedule::kRing, {{TestRun::island_id(1), 1}}, true);
  Ahead ahead = dial_ahead({kFirst, Schedule::kRing});

  door_.expect_ahead(Schedule::kRing, {{TestRun::island_id(2), 1}}, true);

  QVERIFY(ahead.far.write_all(encode(hello_of(kFirst, 1)), Deadline::after(test::kForEver)).ok());
  QVERIFY(take_at_door(hello_of(kFirst, 1)).ok());
}

void RingInboxTest::one_dialled_ahead_that_is_closed_ends_no_attempt() {
  door_.expect_ahead(Schedule::kRing, {{TestRun::island_id(1), 2}}, true);
  Ahead used = dial_ahead({kFirst, Schedule::kRing});
  QVERIFY(used.far.write_all(encode(hello_of(kFirst, 1, 0, 2)), Deadline::after(test::kForEver)).ok());
  QCOMPARE(take_at_door(hello_of(kFirst, 1), Deadline::after(50ms)).error().code, ErrorCode::kTimeout);

  {
    const Ahead closed = dial_ahead({kFirst, Schedule::kRing});
    QVERIFY(closed.answer);
  }
  auto rest = TlsConnection::connect({"127.0.0.1", listener_->port()}, dial_context_, TestRun::island_id(0),
                                     Deadline::after(test::kForEver));
  QVERIFY(rest.ok());
  std::jthread late([&] {
    std::this_thread::sleep_for(100ms);
    (void)rest->write_all(encode(hello_of(kFirst, 1, 1, 2)), Deadline::after(test::kForEver));
  });

  const auto edge = take_at_door(hello_of(kFirst, 1));
  QVERIFY2(edge.ok(), edge.ok() ? "" : edge.error().message.c_str());
  QCOMPARE(edge->reused, 1);
}

void RingInboxTest::padding_is_read_as_it_comes_and_the_hello_behind_it_is_found() {
  door_.expect_ahead(Schedule::kRing, {{TestRun::island_id(1), 1}}, true);
  Ahead ahead = dial_ahead({kFirst, Schedule::kRing});
  const std::jthread reads = reads_ahead();

  pad(ahead.far, 1024);  // far more than sockets hold
  QVERIFY(ahead.far.write_all(encode(hello_of(kFirst, 1)), Deadline::after(test::kForEver)).ok());

  QVERIFY(take_at_door(hello_of(kFirst, 1)).ok());
}

void RingInboxTest::a_flood_of_padding_is_throttled() {
  door_.expect_ahead(Schedule::kRing, {{TestRun::island_id(1), 1}}, true);
  Ahead ahead = dial_ahead({kFirst, Schedule::kRing});
  {
    const std::jthread reads = reads_ahead();
    const Bytes padding = ring_padding(kMaxRingPaddingBytes);
    const auto messages = 4 * kMostPaddingOfPeer / padding.size();  // far more than that and what sockets hold
    std::uint64_t written = 0;
    while (written < messages && ahead.far.write_all(padding, Deadline::after(500ms)).ok()) ++written;
    QVERIFY(written >= kMostPaddingOfPeer / padding.size());
    QVERIFY2(written < messages, "whatever came was read");
  }
  std::vector<pollfd> polls;
  door_.append_ahead(polls);
  QCOMPARE(polls.size(), std::size_t{1});  // nobody is woken by it any more

  QVERIFY(!is_closed(ahead.far));
}

void RingInboxTest::who_wants_no_padding_says_so() {
  door_.expect_ahead(Schedule::kDirect, {{TestRun::island_id(1), 1}}, false);

  const Ahead ahead = dial_ahead({kFirst, Schedule::kDirect, true});

  QVERIFY(ahead.answer && !ahead.answer->takes_padding);
}

void RingInboxTest::padding_on_a_connection_of_an_attempt_gone_by_is_refused() {
  TlsConnection far = park(kFirst);
  pad(far, 1);

  inbox_->look_at_parked();

  QVERIFY(closes(far));
}

void RingInboxTest::who_begins_on_what_it_dialled_ahead_over_and_over_has_no_more_waiting() {
  constexpr std::size_t kParked = 4;
  door_.expect_ahead(Schedule::kRing, {{TestRun::island_id(1), int{kParked}}}, false);
  std::vector<TlsConnection> dialled;

  while (dialled.size() < 2 * RingInbox::kMaxWaitingOfPeer) {
    Ahead ahead = dial_ahead({kFirst, Schedule::kRing});
    door_.look_at_parked();
    if (!ahead.answer) continue;
    QVERIFY(ahead.far.write_all(encode(hello_of(kFirst, 1)), Deadline::after(test::kForEver)).ok());
    dialled.push_back(std::move(ahead.far));
  }

  const auto open = std::ranges::count_if(dialled, [](TlsConnection& one) { return !is_closed(one); });
  QVERIFY2(open <= static_cast<std::ptrdiff_t>(RingInbox::kMaxWaitingOfPeer + kParked),
           qPrintable(QString::number(open)));
}

// Where the receiver dialled, which says the next hello on the same connection.
void RingInboxTest::receipts_that_come_late_are_passed_over() {
  TlsConnection far = park(kFirst);
  for (int receipt = 0; receipt < 3; ++receipt) {
    QVERIFY(far.write_all(encode(some_receipt()), Deadline::after(test::kForEver)).ok());
  }
  inbox_->look_at_parked();
  QVERIFY(far.write_all(encode(some_receipt()), Deadline::after(test::kForEver)).ok());
  QVERIFY(far.write_all(encode(hello_of(kFirst, 2)), Deadline::after(test::kForEver)).ok());

  const auto taken = take(hello_of(kFirst, 2), Deadline::after(test::kForEver));

  QVERIFY2(taken.ok(), taken.ok() ? "" : taken.error().message.c_str());
  QCOMPARE(taken->reused, 1);
}

void RingInboxTest::half_a_receipt_is_waited_for_and_ends_nothing() {
  for (std::size_t half = 1; half < kRingReceiptBytes; ++half) {
    TlsConnection far = park(kFirst);
    const RingReceiptMessage receipt = encode(some_receipt());
    QVERIFY(far.write_all(ByteView(receipt).first(half), Deadline::after(test::kForEver)).ok());
    QCOMPARE(take(hello_of(kFirst, 2), Deadline::after(5ms)).error().code, ErrorCode::kTimeout);
    QVERIFY(!is_closed(far));

    QVERIFY(far.write_all(ByteView(receipt).subspan(half), Deadline::after(test::kForEver)).ok());
    QVERIFY(far.write_all(encode(hello_of(kFirst, 2)), Deadline::after(test::kForEver)).ok());

    QVERIFY(take(hello_of(kFirst, 2), Deadline::after(test::kForEver)).ok());
  }
}

void RingInboxTest::what_is_no_late_receipt_closes_the_connection_data() {
  QTest::addColumn<int>("fault");
  QTest::newRow("one that says what no receipt does") << 0;
  QTest::newRow("one of an exchange") << 1;
  QTest::newRow("one on a connection that was dialled ahead") << 2;
  QTest::newRow("one where none was agreed upon") << 3;
  QTest::newRow("a byte that begins nothing") << 4;
}

void RingInboxTest::what_is_no_late_receipt_closes_the_connection() {
  QFETCH(const int, fault);
  if (fault == 2) door_.expect_ahead(Schedule::kRing, {{TestRun::island_id(1), 1}}, true);
  if (fault == 3) offer_no_receipts(dial_context_);
  TlsConnection far = fault == 2 ? dial_ahead({kFirst, Schedule::kRing}).far
                                 : park(kFirst, fault == 1 ? RingInbox::Kind::kExchange : RingInbox::Kind::kRing);
  dial_context_ = TlsContext::client(run_.island(1), kAlpnRing).value();
  RingReceiptMessage says = encode(some_receipt());
  if (fault == 0) says[5] = std::byte{1};
  if (fault == 4) says.fill(std::byte{0x5a});
  QVERIFY(far.write_all(says, Deadline::after(test::kForEver)).ok());

  std::jthread looks([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      (fault == 2 ? door_ : *inbox_).look_at_parked();
      std::this_thread::sleep_for(1ms);
    }
  });
  QVERIFY(closes(far));
}

QTEST_GUILESS_MAIN(RingInboxTest)
#include "ring_inbox_test.moc"
