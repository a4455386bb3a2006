// Who comes in, who does not, and who has to go: with what strangers and members can do to a hub that serves.
#include <QtTest>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "net/base/encoding.h"
#include "net/base/sqlite.h"
#include "net/control/home.h"
#include "net/enrol/client.h"
#include "net/hub/hub_store.h"
#include "net/tls/context.h"
#include "net/transport/tls_connection.h"
#include "tests/net/hub/loopback_hub.h"

namespace atl {
namespace {

using namespace std::chrono_literals;

Deadline soon() { return Deadline::after(10s); }

Invite invite_of(const LoopbackHub& hub, std::uint32_t uses) {
  const InviteReport report = create_invite(hub.directory(), {.addresses = {hub.address()}, .uses = uses}).value();
  return decode_invite(report.text, std::chrono::sys_seconds{}).value();
}

TlsConnection dial(const LoopbackHub& hub, const Identity& identity) {
  const TlsContext context = TlsContext::client(identity, kAlpnHttp).value();
  auto connection = TlsConnection::connect(hub.address(), context, IslandId{kHubName}, soon(), nullptr);
  if (!connection.ok()) qFatal("%s", connection.error().message.c_str());
  return std::move(*connection);
}

void write(TlsConnection& connection, ByteView bytes) {
  if (!connection.write_all(bytes, soon(), nullptr).ok()) qFatal("cannot write");
}

// What comes until it ends with `end`, or the connection does.
std::string read_until(TlsConnection& connection, std::string_view end) {
  std::string text;
  std::byte next{};
  while (!text.ends_with(end) && connection.read_exact(std::span(&next, 1), soon(), nullptr).ok()) {
    text.push_back(static_cast<char>(next));
  }
  return text;
}

// An island's WebSocket after its upgrade, which has not said a word.
TlsConnection open_mesh(const LoopbackHub& hub, const Identity& identity) {
  TlsConnection connection = dial(hub, identity);
  write(connection, as_bytes("GET /mesh HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"));
  const std::string answer = read_until(connection, "\r\n\r\n");
  if (!answer.starts_with("HTTP/1.1 101")) qFatal("%s", answer.c_str());
  return connection;
}

// One frame of text, masked by zeros.
void say(TlsConnection& mesh, const IslandMessage& message) {
  const std::string text = encode(message);
  Bytes frame{std::byte{0x81},
              std::byte{0xFE},
              static_cast<std::byte>(text.size() >> 8),
              static_cast<std::byte>(text.size()),
              {},
              {},
              {},
              {}};
  frame.insert(frame.end(), as_bytes(text).begin(), as_bytes(text).end());
  write(mesh, frame);
}

IslandHello a_hello() {
  IslandHello hello;
  hello.software = std::string(200, 'x');  // long enough for a length of two bytes
  hello.listen_port = 1;
  return hello;
}

Database database_of(const LoopbackHub& hub) { return Database::open(HubHome{hub.directory()}.database()).value(); }

auto committed(std::uint32_t rounds) {
  return [rounds](const HubState& state) { return state.outer_step >= rounds; };
}

}  // namespace

class HubAdmissionTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void enrolling_the_same_key_twice_is_answered_alike_and_the_hub_goes_on();
  void the_old_key_of_a_removed_island_is_refused();
  void a_roster_that_cannot_be_written_ends_no_hub();
  void a_roster_that_cannot_be_read_is_no_removal();
  void a_database_that_is_busy_ends_no_hub_and_buries_nobody();
  void where_islands_came_from_is_known_after_a_restart();
  void who_was_removed_before_its_hello_is_sent_away();
  void a_hello_after_the_removal_is_not_let_in();
  void a_removal_by_another_process_is_noticed();
  void who_was_removed_is_called_so_data();
  void who_was_removed_is_called_so();
  void a_removed_island_is_cut_off_in_the_midst_of_an_answer();
  void who_listens_to_the_hub_and_throws_breaks_nothing();
  void what_a_callback_of_the_mesh_throws_ends_that_connection_alone();
};

void HubAdmissionTest::enrolling_the_same_key_twice_is_answered_alike_and_the_hub_goes_on() {
  LoopbackHub hub(loopback_run(1, 0));
  const Invite two = invite_of(hub, 2);
  const KeyAndRequest key = make_signing_request();

  const auto first = enrol(two, key, "lagoon", soon());
  const auto again = enrol(two, key, "lagoon", soon());

  QVERIFY(first.ok());
  QVERIFY2(again.ok(), again.ok() ? "" : again.error().message.c_str());
  QCOMPARE(again->identity.name, first->identity.name);
  QVERIFY(hub.server().health().ok());
  QVERIFY(enrol(two, "reef", soon()).ok());  // the second use is still there
  const PuppetIsland island(hub.address(), again->identity);
  QVERIFY(hub.wait(committed(1)));
}

void HubAdmissionTest::the_old_key_of_a_removed_island_is_refused() {
  LoopbackHub hub(loopback_run(1, 0));
  const KeyAndRequest key = make_signing_request();
  const auto enrolled = enrol(invite_of(hub, 1), key, "lagoon", soon());
  QVERIFY(enrolled.ok());
  QVERIFY(remove_enrolled_island(hub.directory(), enrolled->identity.name.value).ok());

  const auto again = enrol(invite_of(hub, 1), key, "lagoon", soon());

  QVERIFY(!again.ok());
  QCOMPARE(again.error().code, ErrorCode::kConflict);
  QVERIFY2(again.error().message.find("removed by the run's operator") != std::string::npos,
           again.error().message.c_str());
  QVERIFY(hub.server().health().ok());
  const PuppetIsland island(hub.address(), hub.enrol("reef"));
  QVERIFY(hub.wait(committed(1)));
}

void HubAdmissionTest::a_roster_that_cannot_be_written_ends_no_hub() {
  LoopbackHub hub(loopback_run(1, 0));
  const Invite one = invite_of(hub, 1);
  Database database = database_of(hub);
  QVERIFY(database.exec("CREATE TRIGGER no BEFORE INSERT ON island BEGIN SELECT RAISE(ABORT, 'no'); END").ok());

  QVERIFY(!enrol(one, "lagoon", Deadline::after(1s)).ok());

  QVERIFY(hub.server().health().ok());
  QVERIFY(database.exec("DROP TRIGGER no").ok());
  QVERIFY(enrol(one, "lagoon", soon()).ok());
}

void HubAdmissionTest::a_roster_that_cannot_be_read_is_no_removal() {
  LoopbackHub hub(loopback_run(1, 0));
  const Identity identity = hub.enrol("lagoon");
  Database database = database_of(hub);
  QVERIFY(database.exec("ALTER TABLE island RENAME TO elsewhere").ok());
  TlsConnection connection = dial(hub, identity);
  write(connection, as_bytes("GET /check/ping HTTP/1.1\r\nHost: hub\r\n\r\n"));
  const std::string answer = read_until(connection, "\r\n\r\n");

  const PuppetIsland island(hub.address(), identity);

  QVERIFY2(answer.starts_with("HTTP/1.1 503"), answer.c_str());
  QTRY_VERIFY_WITH_TIMEOUT(island.times_lost() >= 2, 60'000);
  QVERIFY(!island.ended());
  QVERIFY(database.exec("ALTER TABLE elsewhere RENAME TO island").ok());
  QVERIFY(hub.wait(committed(1)));
}

void HubAdmissionTest::where_islands_came_from_is_known_after_a_restart() {
  LoopbackHub hub(loopback_run(1, 0));
  const Identity identity = hub.enrol("one");
  {
    PuppetIsland island(hub.address(), identity);
    QVERIFY(hub.wait([](const HubState& state) { return state.outer_step >= 1; }));
  }
  hub.stop();

  const auto store = HubStore::open(HubHome{hub.directory()}.database());

  QVERIFY(store.ok());
  QCOMPARE(*(*store)->hosts(), (std::map<IslandId, std::string>{{identity.name, "127.0.0.1"}}));
}

void HubAdmissionTest::a_database_that_is_busy_ends_no_hub_and_buries_nobody() {
  LoopbackHub hub(loopback_run(2, 0));
  const PuppetIsland one(hub.address(), hub.enrol("lagoon")), two(hub.address(), hub.enrol("reef"));
  QVERIFY(hub.wait(committed(1)));
  Database database = database_of(hub);
  auto held = Transaction::begin(database);
  QVERIFY(held.ok());

  QTest::qWait(5'500);  // for longer than a statement waits, and than an island may be silent

  QVERIFY(hub.server().health().ok());
  const std::uint32_t then = hub.server().state().outer_step;
  { const Transaction released = std::move(*held); }
  QVERIFY(hub.wait(committed(then + 3)));
  QCOMPARE(hub.count("island.dead"), 0);
}

void HubAdmissionTest::who_was_removed_before_its_hello_is_sent_away() {
  LoopbackHub hub(loopback_run(1, 0));
  const Identity identity = hub.enrol("lagoon");
  TlsConnection mesh = open_mesh(hub, identity);

  QVERIFY(remove_enrolled_island(hub.directory(), identity.name.value).ok());
  hub.server().send_away(identity.name.value);

  const std::string told = read_until(mesh, "operator");
  QVERIFY2(told.ends_with("removed from the run by its operator"), told.c_str());
  QVERIFY(hub.server().state().islands.empty());
}

void HubAdmissionTest::a_hello_after_the_removal_is_not_let_in() {
  LoopbackHub hub(loopback_run(1, 0));
  const Identity identity = hub.enrol("lagoon");
  TlsConnection mesh = open_mesh(hub, identity);
  QVERIFY(remove_enrolled_island(hub.directory(), identity.name.value).ok());

  say(mesh, a_hello());

  const std::string told = read_until(mesh, "operator");
  QVERIFY2(told.ends_with("removed from the run by its operator"), told.c_str());
  QCOMPARE(hub.count("island.joined"), 0);
  QVERIFY(hub.server().state().islands.empty());
}

// As when who removes it ends before it has told the hub.
void HubAdmissionTest::a_removal_by_another_process_is_noticed() {
  LoopbackHub hub(loopback_run(2, 0));  // both train from the first round on
  const Identity identity = hub.enrol("lagoon");
  const PuppetIsland doomed(hub.address(), identity), other(hub.address(), hub.enrol("reef"));
  QVERIFY(hub.wait(committed(1)));

  QVERIFY(remove_enrolled_island(hub.directory(), identity.name.value).ok());

  QTRY_VERIFY_WITH_TIMEOUT(doomed.ended().has_value(), 60'000);
  QCOMPARE(doomed.ended()->code, ErrorCode::kPermissionDenied);
  const std::uint32_t then = hub.server().state().outer_step;
  QVERIFY(hub.wait(committed(then + 2)));
  QVERIFY(!other.ended());
}

// In the run's state as in the list of all that enrolled, whether it was here when it was removed or away.
void HubAdmissionTest::who_was_removed_is_called_so_data() {
  QTest::addColumn<bool>("away");
  QTest::newRow("here") << false;
  QTest::newRow("away") << true;
}

void HubAdmissionTest::who_was_removed_is_called_so() {
  QFETCH(const bool, away);
  LoopbackHub hub(loopback_run(2, 0));
  const Identity identity = hub.enrol("lagoon");
  const PuppetIsland other(hub.address(), hub.enrol("reef"));
  std::optional<PuppetIsland> doomed(std::in_place, hub.address(), identity);
  const auto word_is = [&](HubIslandState word) {
    return hub.wait([&](const HubState& state) {
      const auto found = std::ranges::find(state.islands, identity.name.value, &HubState::Island::id);
      return found != state.islands.end() && found->state == word && found->rounds_accepted > 0;
    });
  };
  QVERIFY(hub.wait(committed(1)));
  if (away) doomed.reset();
  if (away) QVERIFY(word_is(HubIslandState::kGone));

  QVERIFY(remove_enrolled_island(hub.directory(), identity.name.value).ok());
  hub.server().send_away(identity.name.value);

  QVERIFY(word_is(HubIslandState::kRemoved));
}

void HubAdmissionTest::a_removed_island_is_cut_off_in_the_midst_of_an_answer() {
  constexpr std::size_t kAll = 256u << 20;
  LoopbackHub hub(loopback_run(1, 0));
  const Identity identity = hub.enrol("lagoon");
  TlsConnection connection = dial(hub, identity);
  const std::string request = "GET /check/down?bytes=" + std::to_string(kAll) + " HTTP/1.1\r\nHost: hub\r\n\r\n";
  write(connection, as_bytes(request));
  std::array<std::byte, 64 * 1024> piece{};
  QVERIFY(connection.read_exact(piece, soon(), nullptr).ok());

  QVERIFY(remove_enrolled_island(hub.directory(), identity.name.value).ok());
  hub.server().send_away(identity.name.value);

  std::size_t got = piece.size();
  for (;;) {
    const auto more = connection.read_some(piece, soon(), nullptr);
    if (!more.ok() || *more == 0) break;
    got += *more;
  }
  QVERIFY2(got < kAll, std::to_string(got).c_str());
}

void HubAdmissionTest::who_listens_to_the_hub_and_throws_breaks_nothing() {
  LoopbackHub hub(loopback_run(2, 0));
  const Identity one = hub.enrol("lagoon"), two = hub.enrol("reef");
  hub.stop();
  HubServeOptions options;
  options.directory = hub.directory();
  options.listen = hub.address();
  const auto server =
      HubServer::start(options, [](std::string_view, const nlohmann::json&) { throw std::bad_alloc(); });
  QVERIFY(server.ok());

  const PuppetIsland first(hub.address(), one), second(hub.address(), two);

  QTRY_VERIFY_WITH_TIMEOUT((*server)->state().outer_step >= 3, 60'000);
  QVERIFY((*server)->health().ok());
  QCOMPARE(first.times_lost(), 0);
}

void HubAdmissionTest::what_a_callback_of_the_mesh_throws_ends_that_connection_alone() {
  LoopbackHub hub(loopback_run(1, 0));
  MeshClientOptions options;
  options.hub_addresses = {hub.address()};
  std::atomic<int> hellos{0}, lost{0};
  MeshClient::Callbacks callbacks;
  callbacks.hello = [&] {
    if (++hellos == 1) throw std::bad_alloc();
    return a_hello();
  };
  callbacks.heartbeat = [&]() -> IslandHeartbeat {
    if (hellos == 2) throw std::bad_alloc();
    return {};
  };
  callbacks.lost = [&](const std::string&, std::optional<Seconds>) { ++lost; };
  const auto client = MeshClient::start(options, hub.enrol("lagoon"), callbacks);
  QVERIFY(client.ok());

  QTRY_VERIFY_WITH_TIMEOUT(hellos >= 3 && (*client)->connected(), 60'000);

  QVERIFY(lost >= 2);
  QVERIFY(hub.wait([](const HubState& state) { return state.islands.size() == 1; }));
  QVERIFY(hub.server().health().ok());
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::HubAdmissionTest)
#include "hub_admission_test.moc"
