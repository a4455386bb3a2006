#include "net/mesh/link_probe.h"

#include <QtTest>
#include <future>

#include "net/transport/socket.h"
#include "tests/net/recovery/state_peers.h"

namespace atl {

class LinkProbeTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_probe_measures_rate_and_round_trip();
  void more_than_the_server_gives_is_not_asked_for();
  void a_peer_that_is_not_there_is_an_error_that_names_it();
  void a_prober_that_is_told_to_stop_ends_its_probe_and_takes_the_next_one();
  void a_prober_reports_what_it_was_asked_for_and_ends_at_once();

 private:
  LinkProbe probe_of(std::uint64_t bytes) const { return {peer_.address().id, peer_.address().address, bytes}; }

  TestRun run_;
  AbortSignal never_;
  FakeState state_{OuterStep{7}, 1000, 1};
  StatePeer peer_{run_.island(1), state_};
};

void LinkProbeTest::a_probe_measures_rate_and_round_trip() {
  const auto link = measure_link(run_.island(2), probe_of(1u << 20), Deadline::after(std::chrono::seconds(10)), never_);

  QVERIFY2(link.ok(), link.ok() ? "" : link.error().message.c_str());
  QVERIFY(link->peer == peer_.address().id);
  QVERIFY(link->bytes_per_second > 1e5);
  QVERIFY(link->rtt_seconds > 0 && link->rtt_seconds < 5);
}

void LinkProbeTest::more_than_the_server_gives_is_not_asked_for() {
  const auto link =
      measure_link(run_.island(2), probe_of(kMaxProbeBytes + 1), Deadline::after(std::chrono::seconds(10)), never_);

  QVERIFY(!link.ok());
  QCOMPARE(link.error().code, ErrorCode::kInvalidArgument);
}

void LinkProbeTest::a_peer_that_is_not_there_is_an_error_that_names_it() {
  LinkProbe probe = probe_of(1000);
  probe.peer = TestRun::island_id(9);  // another answers

  const auto link = measure_link(run_.island(2), probe, Deadline::after(std::chrono::seconds(10)), never_);

  QVERIFY(!link.ok());
  QVERIFY(QString::fromStdString(link.error().message).contains(QString::fromStdString(probe.peer.value)));
}

void LinkProbeTest::a_prober_that_is_told_to_stop_ends_its_probe_and_takes_the_next_one() {
  const UniqueFd deaf = listen_tcp({"127.0.0.1", 0}).value();  // connects, and never shakes hands
  std::promise<MeasuredLink> measured;
  LinkProber prober(run_.island(2), [&](const MeasuredLink& link) { measured.set_value(link); });
  prober.probe({TestRun::island_id(3), {"127.0.0.1", local_port(deaf.get())}, 1000});
  prober.probe(probe_of(64 * 1024));  // waits behind it, and is forgotten with it
  std::this_thread::sleep_for(std::chrono::milliseconds(50));

  prober.stop_probing();
  prober.probe(probe_of(32 * 1024));

  auto future = measured.get_future();
  QVERIFY(future.wait_for(std::chrono::milliseconds(2500)) == std::future_status::ready);  // not the deaf one's 5 s
}

void LinkProbeTest::a_prober_reports_what_it_was_asked_for_and_ends_at_once() {
  std::promise<MeasuredLink> measured;
  auto prober =
      std::make_unique<LinkProber>(run_.island(2), [&](const MeasuredLink& link) { measured.set_value(link); });

  prober->probe(probe_of(64 * 1024));

  auto future = measured.get_future();
  QVERIFY(future.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
  QVERIFY(future.get().bytes_per_second > 0);
  prober.reset();
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::LinkProbeTest)
#include "link_probe_test.moc"
