// The node check's way to the hub, over loopback: a real hub, a member and a stranger.
#include "net/check/probe_network.h"

#include <QtTest>

#include "net/check/judge.h"
#include "net/https/https_fetcher.h"
#include "net/transport/socket.h"
#include "tests/net/hub/loopback_hub.h"

using namespace atl;

class ProbeNetworkTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_member_measures_both_ways_loss_clock_and_is_dialled_back();
  void a_port_that_is_taken_is_told();
  void who_holds_an_invite_only_may_knock();
  void a_hub_that_does_not_answer_is_a_failed_row();
  void a_stranger_learns_nothing();
  void a_hub_refuses_an_island_that_did_not_check_what_its_run_requires();
  void what_the_hub_is_asked_is_bounded_data();
  void what_the_hub_is_asked_is_bounded();
};

namespace {

using namespace std::chrono_literals;

NetworkProbe member_of(LoopbackHub& hub, bool full = false) {
  NetworkProbe probe;
  probe.identity = hub.enrol("checked");
  probe.hub = {hub.address()};
  probe.full = full;
  probe.bind = {"127.0.0.1", 0};
  return probe;
}

CheckRow judge(const std::string& id, const NetFacts& net) {
  NodeFacts facts;
  facts.net = net;
  return judge_row(*find_rule(id), facts, {});
}

NetFacts measure(const NetworkProbe& probe, const AbortSignal& abort) {
  Address reached;
  const auto about = probe.identity ? ask_about_run(probe, abort, reached)
                                    : Result<CheckAbout>(Error{ErrorCode::kNotFound, "no member"});
  return probe_network(probe, about, reached, abort);
}

// The status of one request, 0 when there was no answer.
long status_of(LoopbackHub& hub, const Identity& identity, const std::string& path, std::uint64_t upload = 0) {
  auto fetcher = HttpsFetcher::create(identity, 5s);
  HttpsRequest request;
  request.peer = IslandId{kHubName};
  request.address = hub.address();
  request.path = path;
  request.max_bytes = 1u << 20;
  request.upload_bytes = upload;
  request.on_body = [](ByteView, bool) { return ok_status(); };
  const AbortSignal abort;
  fetcher->start(std::move(request));
  const auto outcomes = fetcher->wait(Deadline::after(10s), abort);
  return outcomes.ok() && !outcomes->empty() ? outcomes->front().http_status : 0;
}

}  // namespace

void ProbeNetworkTest::a_member_measures_both_ways_loss_clock_and_is_dialled_back() {
  LoopbackHub hub(loopback_run(2, 0));
  const PuppetIsland hidden(hub.address(), hub.enrol("hidden"), /*reachable=*/false);
  const PuppetIsland other(hub.address(), hub.enrol("other"));
  QVERIFY(hub.wait([](const HubState& state) { return state.outer_step >= 2; }, 20));
  const AbortSignal abort;

  const NetFacts net = measure(member_of(hub, /*full=*/true), abort);

  QVERIFY2(net.problem.empty(), net.problem.c_str());
  QVERIFY(net.rtt_seconds.value_or(0) > 0 && *net.rtt_seconds < 1);
  QVERIFY(net.up_bytes_per_second.value_or(0) > 1e5);
  QVERIFY(net.down_bytes_per_second.value_or(0) > 1e5);
  QVERIFY(std::abs(net.clock_offset_seconds.value_or(100)) < 1);  // one machine's own clock
  QVERIFY(net.loss.value_or(1) < 0.005);
  QVERIFY2(net.dialled_back == true, net.dialled.c_str());
  QCOMPARE(net.islands, 2u);
  QCOMPARE(net.hidden_islands, 1u);
  QCOMPARE(net.links.size(), std::size_t{2});
  QCOMPARE(judge("net.inbound", net).verdict, Verdict::kPass);
  QCOMPARE(judge("clock", net).verdict, Verdict::kPass);
}

void ProbeNetworkTest::a_port_that_is_taken_is_told() {
  LoopbackHub hub(loopback_run(1, 0));
  const UniqueFd taken = listen_tcp({"127.0.0.1", 0}).value();
  NetworkProbe probe = member_of(hub);
  probe.bind.port = local_port(taken.get());
  const AbortSignal abort;

  const NetFacts net = measure(probe, abort);

  QVERIFY(!net.dialled_back.has_value());
  const CheckRow row = judge("net.inbound", net);
  QCOMPARE(row.verdict, Verdict::kSkip);
  QVERIFY2(row.text.find(std::to_string(probe.bind.port)) != std::string::npos, row.text.c_str());
}

void ProbeNetworkTest::who_holds_an_invite_only_may_knock() {
  LoopbackHub hub(loopback_run(1, 0));
  NetworkProbe probe;
  probe.hub = {{"127.0.0.1", 1}, hub.address()};  // the first does not answer
  const AbortSignal abort;

  const NetFacts net = measure(probe, abort);

  QCOMPARE(judge("net.rtt", net).verdict, Verdict::kPass);
  QCOMPARE(judge("net.sync", net).verdict, Verdict::kSkip);
  QVERIFY(judge("net.sync", net).text.find("join first") != std::string::npos);
}

void ProbeNetworkTest::a_hub_that_does_not_answer_is_a_failed_row() {
  LoopbackHub hub(loopback_run(1, 0));
  const NetworkProbe member = member_of(hub);
  hub.stop();
  NetworkProbe stranger;
  stranger.hub = member.hub;
  const AbortSignal abort;

  for (const NetworkProbe& probe : {member, stranger}) {
    const NetFacts net = measure(probe, abort);
    QCOMPARE(judge("net.rtt", net).verdict, Verdict::kFail);
    QCOMPARE(judge("net.inbound", net).verdict, Verdict::kSkip);
  }
}

void ProbeNetworkTest::a_stranger_learns_nothing() {
  LoopbackHub hub(loopback_run(1, 0)), another(loopback_run(1, 0));
  const Identity stranger = another.enrol("stranger");

  for (const char* path : {"/check/about", "/check/ping", "/check/down?bytes=1", "/check/dial?port=1"}) {
    QCOMPARE(status_of(hub, stranger, path), 0l);
  }
}

void ProbeNetworkTest::a_hub_refuses_an_island_that_did_not_check_what_its_run_requires() {
  RunConfig run = loopback_run(1, 0);
  run.check_json = R"({"require":["ram"]})";
  LoopbackHub hub(std::move(run));

  const PuppetIsland island(hub.address(), hub.enrol("unchecked"));

  QTRY_VERIFY_WITH_TIMEOUT(island.ended().has_value(), 60'000);
  QCOMPARE(island.ended()->code, ErrorCode::kPermissionDenied);
  QVERIFY2(island.ended()->message.find("requires ram") != std::string::npos, island.ended()->message.c_str());
}

void ProbeNetworkTest::what_the_hub_is_asked_is_bounded_data() {
  QTest::addColumn<QByteArray>("path");
  QTest::addColumn<quint64>("upload");
  QTest::addColumn<int>("status");
  QTest::newRow("a ping") << QByteArray("/check/ping") << quint64{0} << 200;
  QTest::newRow("noise") << QByteArray("/check/down?bytes=1000") << quint64{0} << 200;
  QTest::newRow("more noise than allowed") << QByteArray("/check/down?bytes=268435457") << quint64{0} << 404;
  QTest::newRow("noise without a number") << QByteArray("/check/down?bytes=x") << quint64{0} << 404;
  QTest::newRow("a body") << QByteArray("/check/up") << quint64{3'000'000} << 200;
  QTest::newRow("a port out of range, and none was said") << QByteArray("/check/dial?port=65536") << quint64{0} << 404;
  QTest::newRow("no such thing") << QByteArray("/check/everything") << quint64{0} << 404;
  QTest::newRow("a body where none belongs") << QByteArray("/data/x") << quint64{1000} << 0;
}

void ProbeNetworkTest::what_the_hub_is_asked_is_bounded() {
  QFETCH(const QByteArray, path);
  QFETCH(const quint64, upload);
  QFETCH(const int, status);
  LoopbackHub hub(loopback_run(1, 0));
  const Identity member = hub.enrol("member");

  QCOMPARE(status_of(hub, member, path.toStdString(), upload), static_cast<long>(status));
  QCOMPARE(status_of(hub, member, "/check/ping"), 200l);  // it lives
}

QTEST_GUILESS_MAIN(ProbeNetworkTest)
#include "probe_network_test.moc"
