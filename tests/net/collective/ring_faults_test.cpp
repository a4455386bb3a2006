// What an all-reduce does when a link or a member is bad: every fault ends in a named error at the edge where it is,
// and what is only slow does not.
#include <fcntl.h>
#include <poll.h>

#include <QtTest>
#include <thread>

#include "kernels/wire_codec.h"
#include "net/collective/canonical_digest.h"
#include "net/transport/socket.h"
#include "tests/net/collective/fault_parts.h"
#include "tests/net/collective/slow_link.h"

using namespace atl;
using namespace std::chrono_literals;

class RingFaultsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void connections_stay_open_for_the_next_attempt();
  void fewer_and_more_connections_follow_each_other();
  void connections_are_chosen_by_goodput_when_nobody_says_how_many();
  void connections_at_rest_are_asked_whether_they_live();
  void connections_that_broke_meanwhile_are_replaced();
  void a_ring_in_another_order_dials_anew();
  void buckets_that_are_final_stay_as_they_are();
  void members_that_disagree_on_final_buckets_are_told();
  void an_attempt_that_fails_names_the_buckets_that_are_whole();
  void several_threads_give_the_same_bytes_as_one();
  void several_threads_end_over_connections_that_are_full();
  void a_link_slow_to_a_crawl_is_not_dead();
  void a_link_that_goes_dark_is_named_by_both_of_its_ends();
  void a_link_that_is_cut_in_a_frame_ends_the_attempt_at_once();
  void a_peer_that_stops_on_an_edge_that_never_paused_is_missed_early();
  void whoever_has_got_least_when_an_attempt_is_ended_is_behind_who_holds_it_up();
  void who_is_silent_when_an_attempt_is_ended_is_waited_for_as_well();
  void a_peer_that_takes_nothing_is_named();
  void frames_follow_the_hello_before_the_previous_rank_has_come();
  void a_frame_sent_twice_is_refused();
  void a_peer_of_another_version_is_told_apart_at_once();
  void a_member_at_anothers_address_is_a_certificate_error();
};

void RingFaultsTest::connections_stay_open_for_the_next_attempt() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.connections_per_edge = 3;
  const Inputs inputs = some_inputs(3, 300'000);

  for (std::uint32_t attempt = 1; attempt <= 4; ++attempt) {
    spec.attempt = Attempt{attempt};
    const auto results = ring.run(spec, inputs);
    verify_all_succeeded(results);
    if (QTest::currentTestFailed()) return;
    for (const MemberResult& result : results) QCOMPARE(result.report().connections_reused, attempt == 1 ? 0 : 3);
  }
}

void RingFaultsTest::fewer_and_more_connections_follow_each_other() {
  LoopbackRing ring(2);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const Inputs inputs = some_inputs(2, 100'000);

  std::vector<int> reused;
  for (const int connections : {4, 2, 6, 16, 1, 8}) {
    spec.attempt.value += 1;
    spec.connections_per_edge = connections;
    const auto results = ring.run(spec, inputs);
    verify_all_succeeded(results);
    if (QTest::currentTestFailed()) return;
    reused.push_back(results[0].report().connections_reused);
  }

  QCOMPARE(reused, (std::vector<int>{0, 2, 4, 6, 1, 8}));
}

void RingFaultsTest::connections_are_chosen_by_goodput_when_nobody_says_how_many() {
  LoopbackRing ring(2);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.connections_per_edge = 0;
  const Inputs inputs = some_inputs(2, 100'000);

  for (std::uint32_t attempt = 1; attempt <= 6; ++attempt) {
    spec.attempt = Attempt{attempt};
    const auto results = ring.run(spec, inputs);
    verify_all_succeeded(results);
    if (QTest::currentTestFailed()) return;
    QVERIFY(results[0].report().connections >= 2 && results[0].report().connections <= 16);
  }
}

void RingFaultsTest::connections_at_rest_are_asked_whether_they_live() {
  LoopbackRing ring(2);
  const AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const RingPayload payload = payload_of(spec, 300'000);
  RingInbox& inbox_of_peer = ring.island(1).inbox;
  std::vector<TlsConnection> of_peer;  // or they might close before this rank has come upon them
  std::jthread peer([&] {
    auto edges = ring.edges_of(1, spec, payload.numel);
    of_peer = std::move(edges.to_next);
    std::vector<RingInbox::Parked> parked;
    for (TlsConnection& one : edges.from_previous) {
      parked.push_back({std::move(one), {}});
    }
    inbox_of_peer.park(spec.fragment, std::move(parked));
  });
  const EdgeEnd to_peer{ring.id(1), RingRole::kSends};
  const Address& address = spec.order[1].address;
  ConnectionPool pool(*ring.island(0).dial_context);
  EdgeConnector connector(spec, Rank{0}, payload, pool, ring.island(0).inbox, ring.abort);
  auto edge = connector.connect_next();
  QVERIFY(edge.index() == 0);
  std::vector<TlsConnection> connections = std::move(std::get<0>(edge).connections);
  QVERIFY(connector.wait_for_previous([] { return true; }).index() == 0);
  peer.join();
  const int socket = connections[0].fd();
  const auto unacknowledged = [&] { return tcp_progress(socket).bytes_queued; };
  QTRY_COMPARE(unacknowledged(), std::uint64_t{0});
  const std::uint64_t before = tcp_progress(socket).bytes_acknowledged;
  const auto count = static_cast<int>(connections.size());
  pool.give_back(to_peer, address, std::move(connections));

  for (int i = 0; i < 3; ++i) {
    pool.keep_warm();
    QTRY_COMPARE(unacknowledged(), std::uint64_t{0});
    inbox_of_peer.look_at_parked();
  }

  QVERIFY(tcp_progress(socket).bytes_acknowledged >= before + 3 * kRingFrameHeaderBytes);
  auto again = pool.take(to_peer, address, count, Deadline::after(20s), ring.abort);
  QVERIFY(again.ok());
  QCOMPARE(again->reused, count);
  pool.give_back(to_peer, address, std::move(again->connections));
  inbox_of_peer.forget(ring.id(0));
  QTRY_COMPARE((pool.keep_warm(), ::fcntl(socket, F_GETFD)), -1);  // closed, before anybody needs it
  again = pool.take(to_peer, address, count, Deadline::after(20s), ring.abort);
  QVERIFY(again.ok());
  QCOMPARE(again->reused, 0);
}

void RingFaultsTest::connections_that_broke_meanwhile_are_replaced() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const Inputs inputs = some_inputs(3, 100'000);
  verify_all_succeeded(ring.run(spec, inputs));
  if (QTest::currentTestFailed()) return;

  ring.island(1).inbox.keep_parked_of(spec.fragment, {});  // all of them are closed: those that rank 0 keeps are broken
  spec.attempt = Attempt{2};
  const auto results = ring.run(spec, inputs);

  verify_all_succeeded(results);
  if (QTest::currentTestFailed()) return;
  QCOMPARE(results[0].report().connections_reused, 0);
  QCOMPARE(results[1].report().connections_reused, spec.connections_per_edge);
}

void RingFaultsTest::a_ring_in_another_order_dials_anew() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const Inputs inputs = some_inputs(3, 100'000);
  verify_all_succeeded(ring.run(spec, inputs));
  if (QTest::currentTestFailed()) return;

  AllReduceSpec turned = spec;
  turned.attempt = Attempt{2};
  std::swap(turned.order[1], turned.order[2]);
  std::vector<MemberResult> results(3);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      const auto index = static_cast<std::size_t>(rank);
      results[index] = ring.run_member(rank, turned, inputs[index], ring.abort);
    });
  }
  threads.clear();

  verify_all_succeeded(results);
}

void RingFaultsTest::buckets_that_are_final_stay_as_they_are() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.bucket_numel = 400 * kBlockNumel;
  const Inputs inputs = some_inputs(3, 1'000 * kBlockNumel);
  const auto all = ring.run(spec, inputs);
  verify_all_succeeded(all);
  if (QTest::currentTestFailed()) return;
  std::vector<Bytes> rooms;
  for (const MemberResult& result : all) {
    rooms.push_back(result.canonical);
    const auto bucket = static_cast<std::size_t>(encoded_bytes(spec.wire, spec.bucket_numel));
    std::fill_n(rooms.back().begin(), bucket, std::byte{0xaa});  // what is averaged again is written again
  }

  spec.attempt = Attempt{2};
  spec.final_buckets = {false, true, true};
  const auto again = ring.run(spec, inputs, {}, rooms);

  verify_all_succeeded(again);
  if (QTest::currentTestFailed()) return;
  for (const MemberResult& result : again) {
    QVERIFY(result.canonical == all[0].canonical);
    QVERIFY(result.report().digest == canonical_digest(all[0].canonical));
    QVERIFY(result.report().bytes_sent < all[0].report().bytes_sent / 2);
  }
}

void RingFaultsTest::members_that_disagree_on_final_buckets_are_told() {
  LoopbackRing ring(2);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  AllReduceSpec other = spec;
  other.final_buckets = {true};
  const Inputs inputs = some_inputs(2, 10'000);

  MemberResult second;
  std::jthread thread([&] { second = ring.run_member(1, other, inputs[1], ring.abort); });
  const auto first = ring.run_member(0, spec, inputs[0], ring.abort);
  thread.join();

  QVERIFY(!first.ok() && !second.ok());
  QCOMPARE(first.failure().error.code, ErrorCode::kProtocol);
  QVERIFY(message_of(first).find("which buckets are final") != std::string::npos);
}

void RingFaultsTest::an_attempt_that_fails_names_the_buckets_that_are_whole() {
  LoopbackRing ring(2);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.bucket_numel = 1'000 * kBlockNumel;
  const Inputs inputs = some_inputs(2, 8'000 * kBlockNumel);
  const auto all = ring.run(spec, inputs);
  verify_all_succeeded(all);
  if (QTest::currentTestFailed()) return;
  SlowLink link(spec.order[1].address);
  link.cut_after(600'000);  // before all partial sums are over
  spec.order[1].address = link.address();
  spec.attempt = Attempt{2};
  spec.connections_per_edge = 1;  // of several, one could be cut before the others have begun: nothing is whole then

  const auto results = ring.run(spec, inputs);

  for (const MemberResult& result : results) {
    QVERIFY(!result.ok());
    const auto& whole = result.failure().whole_buckets;
    QCOMPARE(whole.size(), std::size_t{8});
    QVERIFY(std::ranges::count(whole, true) < 8);
    const auto bytes = static_cast<std::ptrdiff_t>(encoded_bytes(spec.wire, spec.bucket_numel));
    for (std::size_t bucket = 0; bucket < whole.size(); ++bucket) {
      const auto offset = static_cast<std::ptrdiff_t>(bucket) * bytes;
      const bool same = std::equal(result.canonical.begin() + offset, result.canonical.begin() + offset + bytes,
                                   all[0].canonical.begin() + offset);
      QVERIFY(same || !whole[bucket]);
    }
  }
}

void RingFaultsTest::several_threads_give_the_same_bytes_as_one() {
  LoopbackRing ring(4);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.bucket_numel = 2'000 * kBlockNumel;
  spec.connections_per_edge = 5;
  const Inputs inputs = some_inputs(4, 2'500'000);
  std::optional<Bytes> first;

  for (const int threads : {1, 2, 4}) {
    spec.attempt.value += 1;
    spec.threads = threads;
    const auto results = ring.run(spec, inputs);
    verify_all_succeeded(results);
    if (QTest::currentTestFailed()) return;
    if (!first) first = results[0].canonical;
    QVERIFY(results[0].canonical == *first);
    QVERIFY(results[3].report().digest == canonical_digest(*first));
  }
}

// Each has a connection or two, and leaves frames to the others.
void RingFaultsTest::several_threads_end_over_connections_that_are_full() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.bucket_numel = 200 * kBlockNumel;
  spec.threads = 4;
  const Inputs inputs = some_inputs(3, 4'000'000);
  SlowLink link(spec.order[1].address, 4'000'000);
  spec.order[1].address = link.address();

  for (const int connections : {4, 7}) {
    spec.attempt.value += 1;
    spec.connections_per_edge = connections;
    const auto results = ring.run(spec, inputs);
    verify_all_succeeded(results);
    if (QTest::currentTestFailed()) return;
  }
}

void RingFaultsTest::a_link_slow_to_a_crawl_is_not_dead() {
  LoopbackRing ring(2);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.silence_timeout = 1'000ms * kSlowdown;
  const Inputs inputs = some_inputs(2, 250'000);
  SlowLink link(spec.order[1].address, 60'000);  // a frame takes two seconds
  AllReduceSpec through_link = spec;
  through_link.order[1].address = link.address();

  const auto results = ring.run(through_link, inputs);

  verify_all_succeeded(results);
}

void RingFaultsTest::a_link_that_goes_dark_is_named_by_both_of_its_ends() {
  LoopbackRing ring(4);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.silence_timeout = 1'500ms * kSlowdown;
  const Inputs inputs = some_inputs(4, 8'000'000);
  SlowLink link(spec.order[2].address);
  link.black_out_after(1'500'000);
  spec.order[2].address = link.address();
  const auto begin = Clock::now();

  const auto results = ring.run(spec, inputs);

  QVERIFY(Clock::now() - begin < test::kForEver);
  bool named = false;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    QVERIFY(!results[rank].ok());
    const auto& failure = results[rank].failure();
    if (failure.error.code != ErrorCode::kTimeout) continue;
    // Who waits elsewhere in the ring hears keepalives, and learns of it by a closed connection.
    named = named || (rank == 1 && failure.peer == ring.id(2)) || (rank == 2 && failure.peer == ring.id(1));
    QVERIFY2(rank == 1 || rank == 2, message_of(results[rank]).c_str());
  }
  QVERIFY(named);
}

void RingFaultsTest::a_link_that_is_cut_in_a_frame_ends_the_attempt_at_once() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const Inputs inputs = some_inputs(3, 6'000'000);
  SlowLink link(spec.order[1].address);
  link.cut_after(1'000'000);
  spec.order[1].address = link.address();
  const auto begin = Clock::now();

  const auto results = ring.run(spec, inputs);

  QVERIFY(Clock::now() - begin < test::kForEver);
  for (const MemberResult& result : results) {
    QVERIFY(!result.ok());
    QCOMPARE(result.failure().error.code, ErrorCode::kPeerLost);
  }
}

// After half of the timeout, unless this machine itself made gaps.
void RingFaultsTest::a_peer_that_stops_on_an_edge_that_never_paused_is_missed_early() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.silence_timeout = 6'000ms * kSlowdown;
  const Inputs inputs = some_inputs(3, 10'000);
  AbortSignal end;
  Clock::time_point stopped;

  std::jthread stops([&] {  // lives, and says so, for longer than a timeout
    RingEdges edges = ring.edges_of(1, spec, 10'000);
    const auto keepalive = encoded({.type = RingFrameType::kKeepalive, .round = spec.round, .attempt = spec.attempt});
    const Deadline stop = Deadline::after(spec.silence_timeout * 5 / 4);
    pollfd wait{end.fd(), POLLIN, 0};
    while (!stop.expired() && edges.to_next[0].try_write(keepalive).ok()) (void)::poll(&wait, 1, 50);
    stopped = Clock::now();
    (void)wait_ready(end.fd(), POLLIN, Deadline::after(1min), nullptr, "test");
  });
  const auto results = ring.run(spec, inputs, {0, 2});
  const auto ended = Clock::now();
  end.raise("the test ends");
  stops.join();

  QVERIFY(!results[0].ok() && !results[1].ok());
  QVERIFY2(message_of(results[1]).find(ring.id(1).value + " sent nothing") != std::string::npos,
           message_of(results[1]).c_str());
  QVERIFY(results[1].failure().silent);
  QVERIFY2(ended - stopped < spec.silence_timeout, message_of(results[1]).c_str());
}

// What tells the hub who holds an attempt up.
void RingFaultsTest::whoever_has_got_least_when_an_attempt_is_ended_is_behind_who_holds_it_up() {
  LoopbackRing ring(4);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const Inputs inputs = some_inputs(4, 8'000'000);
  SlowLink link(spec.order[2].address, 100'000);
  spec.order[2].address = link.address();

  std::jthread hub([&] {
    std::this_thread::sleep_for(2s * kSlowdown);
    ring.abort.raise("it takes far longer than its links need");
  });
  const auto results = ring.run(spec, inputs);

  const auto came_to = [&](std::size_t rank) { return results[rank].failure().stalled_after.value_or(0); };
  for (std::size_t rank = 0; rank < 4; ++rank) {
    QVERIFY(!results[rank].ok());
    QCOMPARE(results[rank].failure().error.code, ErrorCode::kAborted);
    QVERIFY2(results[rank].failure().stalled_after, message_of(results[rank]).c_str());
    QCOMPARE(results[rank].failure().peer->value, ring.id(static_cast<int>((rank + 3) % 4)).value);
    if (rank != 2) QVERIFY2(came_to(2) < came_to(rank), qPrintable(QString::number(came_to(rank))));
  }
}

// One that lets a byte come now and then is silent at most times; to the hub how much had come tells.
void RingFaultsTest::who_is_silent_when_an_attempt_is_ended_is_waited_for_as_well() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.silence_timeout = 4'000ms * kSlowdown;
  const Inputs inputs = some_inputs(3, 10'000);
  AbortSignal end;

  std::jthread says_nothing([&] {
    const RingEdges edges = ring.edges_of(1, spec, 10'000);
    (void)wait_ready(end.fd(), POLLIN, Deadline::after(1min), nullptr, "test");
  });
  std::jthread hub([&] {
    std::this_thread::sleep_for(spec.silence_timeout * 3 / 4);
    ring.abort.raise("it takes far longer than its links need");
  });
  const auto results = ring.run(spec, inputs, {0, 2});
  end.raise("the test ends");

  const AllReduceFailure& behind = results[1].failure();
  QCOMPARE(behind.error.code, ErrorCode::kAborted);
  QCOMPARE(behind.peer->value, ring.id(1).value);
  QVERIFY(behind.silent);
  QCOMPARE(behind.stalled_after, std::optional<std::uint64_t>(0));
}

void RingFaultsTest::a_peer_that_takes_nothing_is_named() {
  LoopbackRing ring(2);
  AllReduceSpec spec = ring.spec(WireFormat::kFp32);
  spec.silence_timeout = 2'000ms * kSlowdown;
  const std::int64_t numel = 20'000'000;  // more than the sockets' buffers hold
  const Inputs inputs = some_inputs(2, static_cast<std::size_t>(numel));
  AbortSignal end;

  std::jthread stuck([&] {  // lives, and says so, but reads nothing
    RingEdges edges = ring.edges_of(1, spec, numel);
    const auto keepalive = encoded({.type = RingFrameType::kKeepalive, .round = spec.round, .attempt = spec.attempt});
    pollfd wait{end.fd(), POLLIN, 0};
    while (!end.raised() && edges.to_next[0].try_write(keepalive).ok()) (void)::poll(&wait, 1, 100);
  });
  const auto result = ring.run_member(0, spec, inputs[0], ring.abort);
  end.raise("test ends");

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kTimeout);
  QVERIFY2(message_of(result).find(ring.id(1).value + " took nothing") != std::string::npos,
           message_of(result).c_str());
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
}

// The previous rank's hello is half a round trip under way: of a link that the next one could have used.
void RingFaultsTest::frames_follow_the_hello_before_the_previous_rank_has_come() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.connections_per_edge = 1;  // or the frame might come on the other
  const std::int64_t numel = 300'000;
  const Inputs inputs = some_inputs(3, numel);
  const EdgeSchedule edge(payload_of(spec, numel), 3, Rank{1});
  MemberResult result;
  std::jthread member([&] { result = ring.run_member(1, spec, inputs[1], ring.abort); });

  RingEdges edges = ring.edges_of(2, spec, numel);  // rank 0 never comes
  std::array<std::byte, kRingFrameHeaderBytes> header{};
  const Status read = edges.from_previous[0].read_exact(header, Deadline::after(20s));
  ring.abort.raise("test ends");
  member.join();

  QVERIFY2(read.ok(), read.ok() ? "" : read.error().message.c_str());
  const auto frame = decode_ring_frame_header(header);
  QVERIFY(frame.ok());
  QVERIFY(frame->type == RingFrameType::kData);
  QVERIFY(frame->length == edge.frame(frame->sequence).bytes &&
          frame->offset == edge.frame(frame->sequence).first_byte);
  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kAborted);
}

void RingFaultsTest::a_frame_sent_twice_is_refused() {
  LoopbackRing ring(2);
  const AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const std::int64_t numel = 3'000'000;
  const Inputs inputs = some_inputs(2, numel);
  const EdgeSchedule edge(payload_of(spec, numel), 2, Rank{1});

  std::optional<RingEdges> edges;
  std::jthread peer([&] {
    edges.emplace(ring.edges_of(1, spec, numel));
    const Bytes payload(edge.frame(2).bytes);
    for (const std::size_t lane : {std::size_t{1}, std::size_t{0}}) {  // out of order, on either connection
      (void)edges->to_next[lane].write_all(encoded(frame_header(spec, edge, 2)), Deadline::after(2s));
      (void)edges->to_next[lane].write_all(payload, Deadline::after(2s));
    }
  });
  const auto result = ring.run_member(0, spec, inputs[0], ring.abort);
  peer.join();

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kProtocol);
  QVERIFY(message_of(result).find("frame 2 a second time") != std::string::npos);
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
}

void RingFaultsTest::a_peer_of_another_version_is_told_apart_at_once() {
  LoopbackRing ring(2);
  const AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const Inputs inputs = some_inputs(2, 1'000);
  const auto begin = Clock::now();

  std::optional<TlsConnection> old;
  std::jthread peer([&] {
    old.emplace(
        TlsConnection::connect(spec.order[0].address, *ring.island(1).dial_context, ring.id(0), Deadline::after(5s))
            .value());
    Bytes hello = encode(RingHello{});
    hello[4] = std::byte{1};
    (void)old->write_all(hello, Deadline::after(5s));
  });
  const auto result = ring.run_member(0, spec, inputs[0], ring.abort);

  QVERIFY(Clock::now() - begin < test::kForEver);
  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kVersionUnsupported);
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
}

void RingFaultsTest::a_member_at_anothers_address_is_a_certificate_error() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  std::swap(spec.order[1].address, spec.order[2].address);
  const Inputs inputs = some_inputs(3, 1'000);

  const auto result = ring.run_member(0, spec, inputs[0], ring.abort);

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kCertificate);
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
}

QTEST_GUILESS_MAIN(RingFaultsTest)
#include "ring_faults_test.moc"
