#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <QtTest>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "net/base/printable.h"
#include "net/base/sha256.h"
#include "net/control/home.h"
#include "net/data/source_name.h"
#include "net/enrol/certificate_keeper.h"
#include "net/enrol/certificate_renewal.h"
#include "net/enrol/client.h"
#include "net/tls/authority.h"
#include "net/tls/context.h"
#include "net/tls/signature.h"
#include "net/transport/tls_connection.h"
#include "net/wire/invite.h"
#include "tests/fakes/test_run.h"
#include "tests/net/hub/loopback_hub.h"

namespace atl {
namespace {

using namespace std::chrono_literals;

using Islands = std::vector<std::unique_ptr<PuppetIsland>>;

Islands join(LoopbackHub& hub, int count) {
  Islands islands;
  for (int i = 1; i <= count; ++i) {
    islands.push_back(std::make_unique<PuppetIsland>(hub.address(), hub.enrol("island " + std::to_string(i))));
  }
  return islands;
}

auto committed(std::uint32_t rounds) {
  return [rounds](const HubState& state) { return state.outer_step >= rounds; };
}

std::string http_get(const LoopbackHub& hub, const TlsContext& context, const std::string& lines) {
  auto connection = TlsConnection::connect(hub.address(), context, IslandId{kHubName}, Deadline::after(5s), nullptr);
  if (!connection.ok()) return connection.error().message;
  const std::string request = lines + "\r\nHost: hub\r\nConnection: close\r\n\r\n";
  if (!connection->write_all(as_bytes(request), Deadline::after(5s), nullptr).ok()) return "cannot write";
  std::string answer;
  std::byte next{};
  while (connection->read_exact(std::span(&next, 1), Deadline::after(5s), nullptr).ok()) {
    answer.push_back(static_cast<char>(next));
  }
  return answer;
}
std::string http_get(const LoopbackHub& hub, const Identity& identity, const std::string& lines) {
  return http_get(hub, TlsContext::client(identity, kAlpnHttp).value(), lines);
}

// What a hub answers to whoever holds no invite that it knows; empty: nothing.
std::string tell_as_a_stranger(LoopbackHub& hub, const std::string& text) {
  const InviteReport report = create_invite(hub.directory(), {}).value();
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const Invite invite = decode_invite(report.text, now).value();
  const TlsContext context = TlsContext::enrol_client(invite.authority_pin, invite.run_id).value();
  auto connection = TlsConnection::connect(hub.address(), context, IslandId{kHubName}, Deadline::after(5s), nullptr);
  if (!connection.ok()) return {};
  ByteWriter frame;
  frame.put(static_cast<std::uint32_t>(text.size()));
  frame.put_bytes(as_bytes(text));
  if (!connection->write_all(frame.bytes(), Deadline::after(5s), nullptr).ok()) return {};
  std::string answer;
  std::byte next{};
  while (connection->read_exact(std::span(&next, 1), Deadline::after(5s), nullptr).ok()) {
    answer.push_back(static_cast<char>(next));
  }
  return answer;
}

}  // namespace

class HubServerTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void three_islands_commit_three_rounds_with_equal_hashes();
  void an_island_that_vanishes_does_not_stop_the_others();
  void an_island_whose_connection_breaks_comes_back_and_trains_on();
  void a_joiner_recovers_and_takes_part();
  void an_island_is_found_by_the_name_that_it_has_now();
  void a_finished_run_does_not_go_back();
  void an_island_that_is_not_in_the_roster_is_refused_for_good();
  void a_hub_that_restarts_goes_on_where_it_was();
  void a_state_that_nobody_keeps_is_gone_back_to_by_force_alone();
  void who_holds_an_invite_is_told_which_run_it_is_for();
  void two_hubs_of_one_run_cannot_serve_at_once();
  void islands_that_cannot_be_dialled_are_found_out_and_dial_their_edges_themselves();
  void others_dial_the_host_that_an_island_names_where_it_answers_there_alone();
  void an_invite_serves_as_often_as_it_says();
  void nothing_that_a_stranger_sends_reaches_the_log_unprintable();
  void a_client_without_a_hub_gives_up_and_says_what_to_check();
  void an_island_renews_its_certificate_and_is_admitted_with_it();
  void an_island_outlives_its_certificate();
  void a_hub_with_a_certificate_of_the_future_makes_a_new_one_and_says_so();
  void the_dataset_is_served_by_exact_name_and_in_ranges();
  void a_run_of_before_data_had_sources_is_served_as_it_was();
  void a_newcomer_is_told_the_past_from_the_first_round_on_also_by_a_hub_that_restarted();
};

void HubServerTest::three_islands_commit_three_rounds_with_equal_hashes() {
  LoopbackHub hub(loopback_run(3, 3));

  const Islands islands = join(hub, 3);

  QVERIFY(hub.wait([](const HubState& state) { return state.finished; }));
  const HubState state = hub.server().state();
  QCOMPARE(state.outer_step, 3u);
  QCOMPARE(state.rounds.size(), std::size_t{3});
  QCOMPARE(state.past.size(), std::size_t{3});
  QCOMPARE(state.past.back().tokens, state.rounds.back().tokens);
  for (const HubState::Round& round : state.rounds) {
    QCOMPARE(round.members, 3u);
    QCOMPARE(round.attempts, 1u);
    QCOMPARE(round.tokens, std::uint64_t{3 * 2 * 2 * 16});
    QCOMPARE(round.mean_loss_nats, 3.0);
    QCOMPARE(round.outer_hashes_equal, std::optional(true));
  }
  QVERIFY(state.first_validation && state.first_validation->outer_step == 0);
  QVERIFY(state.last_validation && state.last_validation->outer_step == 3);
  QCOMPARE(islands[0]->state_hash(), islands[1]->state_hash());
  QCOMPARE(islands[0]->state_hash(), islands[2]->state_hash());
  QTRY_VERIFY_WITH_TIMEOUT(islands[0]->finished() && islands[1]->finished() && islands[2]->finished(), 60'000);
  QCOMPARE(hub.count("round.commit"), 3);
  QCOMPARE(hub.count("run.finished"), 1);
  QVERIFY(hub.wait([](const HubState& ended) {  // nobody trains any more
    return std::ranges::all_of(ended.islands, [](const auto& island) { return island.state == HubIslandState::kGone; });
  }));
  // What they gave is not forgotten with them.
  for (const HubState::Island& island : hub.server().state().islands) QCOMPARE(island.rounds_accepted, 3u);
}

void HubServerTest::an_island_that_vanishes_does_not_stop_the_others() {
  LoopbackHub hub(loopback_run(3, 0));
  Islands islands = join(hub, 3);
  QVERIFY(hub.wait(committed(2)));

  islands[1].reset();
  const std::uint32_t then = hub.server().state().outer_step;

  QVERIFY(hub.wait(committed(then + 3)));
  QVERIFY(hub.wait([](const HubState& state) { return state.rounds.back().members == 2; }));
  QVERIFY(hub.wait([](const HubState& state) {
    return std::ranges::any_of(state.islands, [](const auto& island) { return island.state == HubIslandState::kGone; });
  }));
  QCOMPARE(hub.count("island.dead"), 1);
}

void HubServerTest::an_island_whose_connection_breaks_comes_back_and_trains_on() {
  LoopbackHub hub(loopback_run(3, 0));  // of two, one alone could not say which state a commit has made
  Islands islands = join(hub, 3);
  QVERIFY(hub.wait(committed(1)));
  islands[0]->hold(true);  // in mid-round, for longer than the hub waits: it counts as a straggler

  QVERIFY(hub.wait([](const HubState& state) { return state.rounds.back().members == 2; }, 60));
  islands[0]->hold(false);

  QVERIFY(hub.wait([](const HubState& state) { return state.rounds.back().members == 3; }, 60));
  QCOMPARE(hub.count("island.dead"), 0);
  QVERIFY(!islands[0]->ended());
}

void HubServerTest::a_joiner_recovers_and_takes_part() {
  LoopbackHub hub(loopback_run(2, 0));
  Islands islands = join(hub, 2);
  QVERIFY(hub.wait(committed(2)));

  islands.push_back(std::make_unique<PuppetIsland>(hub.address(), hub.enrol("late")));

  QVERIFY(hub.wait([](const HubState& state) {
    return !state.rounds.empty() && state.rounds.back().members == 3 && state.rounds.back().tokens == 3 * 2 * 2 * 16;
  }));
}

void HubServerTest::an_island_is_found_by_the_name_that_it_has_now() {
  LoopbackHub hub(loopback_run(1, 0));
  const Identity identity = hub.enrol("attic");

  const PuppetIsland island(hub.address(), identity, /*reachable=*/true, "basement");

  QVERIFY(hub.wait(committed(1)));
  const auto enrolled = enrolled_islands(hub.directory());
  QVERIFY(enrolled.ok());
  QCOMPARE(enrolled->size(), std::size_t{1});
  QCOMPARE(enrolled->front().name, std::string("basement"));
  QCOMPARE(hub.server().state().islands.front().name, std::string("basement"));
}

void HubServerTest::a_finished_run_does_not_go_back() {
  LoopbackHub hub(loopback_run(1, 2));
  const Islands islands = join(hub, 1);
  QVERIFY(hub.wait([](const HubState& state) { return state.finished; }));

  const Status refused = hub.server().roll_back(OuterStep{1}, "", /*force=*/true);

  QVERIFY(!refused.ok());
  QVERIFY2(refused.error().message.find("the run is finished") != std::string::npos, refused.error().message.c_str());
  QCOMPARE(hub.server().state().outer_step, 2u);
}

void HubServerTest::an_island_that_is_not_in_the_roster_is_refused_for_good() {
  LoopbackHub hub(loopback_run(1, 0));
  const auto authority = CertificateAuthority::load(hub.directory() / "authority");
  QVERIFY(authority.ok());
  const KeyAndRequest key = make_signing_request();
  const auto certificate = authority->sign_request(key.request_pem, TestRun::island_id(1),
                                                   Validity::starting(std::chrono::system_clock::now(), 1h));
  QVERIFY(certificate.ok());
  const Identity stranger{TestRun::island_id(1), hub.run().run_id, key.key_pem, *certificate,
                          authority->certificate_pem()};

  PuppetIsland island(hub.address(), stranger);

  QTRY_VERIFY_WITH_TIMEOUT(island.ended().has_value(), 60'000);
  QCOMPARE(island.ended()->code, ErrorCode::kPermissionDenied);
  QVERIFY(island.ended()->message.find("invite") != std::string::npos);
  QVERIFY(hub.server().state().islands.empty());
}

void HubServerTest::a_hub_that_restarts_goes_on_where_it_was() {
  LoopbackHub hub(loopback_run(2, 0));
  const Islands islands = join(hub, 2);
  QVERIFY(hub.wait(committed(3)));
  hub.stop();
  const std::uint32_t held = std::max(islands[0]->outer_step(), islands[1]->outer_step());
  QTRY_VERIFY_WITH_TIMEOUT(islands[0]->times_lost() > 0 && islands[1]->times_lost() > 0, 60'000);

  hub.start();

  QVERIFY(hub.server().state().outer_step >= held);  // nothing that an island applied was forgotten
  const std::uint32_t then = hub.server().state().outer_step;
  QVERIFY(hub.wait(committed(then + 3)));
  const HubState state = hub.server().state();
  QCOMPARE(state.rounds.back().members, 2u);
  QVERIFY(state.rounds.size() > 3);
  for (const HubState::Island& island : state.islands) QCOMPARE(island.rounds_accepted, state.outer_step);
  QVERIFY(state.first_validation && state.first_validation->outer_step == 0);
  for (const auto& island : islands) QVERIFY(island->times_back() >= 2);
}

void HubServerTest::a_state_that_nobody_keeps_is_gone_back_to_by_force_alone() {
  LoopbackHub hub(loopback_run(2, 0));
  const Islands islands = join(hub, 2);  // which keep nothing on a disk
  QVERIFY(hub.wait(committed(3)));

  const Status refused = hub.server().roll_back(OuterStep{1}, "a try");

  QCOMPARE(refused.error().code, ErrorCode::kNotFound);
  QVERIFY2(refused.error().message.find("keeps the state after round 1") != std::string::npos,
           refused.error().message.c_str());
  const std::uint32_t then = hub.server().state().outer_step;
  QVERIFY(hub.wait(committed(then + 2)));  // it goes on as if nobody had asked
  QVERIFY(hub.server().roll_back(OuterStep{1}, "a try", /*force=*/true).ok());
  QCOMPARE(hub.server().state().outer_step, 1u);
}

void HubServerTest::who_holds_an_invite_is_told_which_run_it_is_for() {
  RunConfig run = loopback_run(1, 0);
  run.model_json = R"({"model_type":"llama","vocab_size":257,"hidden_size":128,"intermediate_size":384,)"
                   R"("num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":32})";
  LoopbackHub hub(run, kIslandCertificateLifetime, "Ada");
  const InviteReport report = create_invite(hub.directory(), {}).value();
  const Invite invite = decode_invite(report.text, std::chrono::sys_seconds{}).value();

  const auto described = describe_hub(invite, Deadline::after(5s));

  QVERIFY2(described.ok(), described.ok() ? "" : described.error().message.c_str());
  QCOMPARE(described->address, hub.address());
  QCOMPARE(described->run.run_id, hub.run().run_id);
  QCOMPARE(described->run.name, std::string("loopback"));
  QCOMPARE(described->run.operator_name, std::string("Ada"));
  QCOMPARE(described->run.model, std::string("llama, 4 layers of 128, 257 tokens"));
  // Two embeddings, four blocks (attention, feed-forward, two norms), the last norm.
  QCOMPARE(described->run.parameters, std::uint64_t{2 * 257 * 128 + 4 * 128 * (2 * 128 + 2 * 64 + 3 * 384 + 2) + 128});
  QVERIFY(enrol(invite, "lagoon", Deadline::after(5s)).ok());  // it costs no use
  hub.stop();
  QVERIFY(move_dataset(hub.directory(), "", hub.dataset()).ok());
  hub.start();
  QCOMPARE(describe_hub(invite, Deadline::after(5s))->run.operator_name, std::string("Ada"));
  const HubInitOptions too_long{hub.directory() / "other", {{hub.dataset()}}, run, std::string(65, 'x')};
  QCOMPARE(hub_init(too_long).error().code, ErrorCode::kInvalidArgument);
}

void HubServerTest::two_hubs_of_one_run_cannot_serve_at_once() {
  LoopbackHub hub(loopback_run(1, 0));
  HubServeOptions options;
  options.directory = hub.directory();
  options.listen = {"127.0.0.1", 0};

  const auto second = HubServer::start(options, {});

  QVERIFY(!second.ok());
  QCOMPARE(second.error().code, ErrorCode::kPermissionDenied);
}

void HubServerTest::islands_that_cannot_be_dialled_are_found_out_and_dial_their_edges_themselves() {
  LoopbackHub hub(loopback_run(4, 0));
  Islands islands;
  std::set<IslandId> hidden;
  for (int i = 0; i < 4; ++i) {
    const Identity identity = hub.enrol("island " + std::to_string(i));
    if (i < 2) hidden.insert(identity.name);
    islands.push_back(std::make_unique<PuppetIsland>(hub.address(), identity, /*reachable=*/i >= 2));
  }

  const auto ring_is_right = [&](const HubState&) {
    const std::vector<AttemptMember> order = islands[3]->last_order();
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
      const AttemptMember& next = order[(rank + 1) % order.size()];
      if (hidden.contains(order[rank].id) && hidden.contains(next.id)) return false;
      if (next.dials_previous != hidden.contains(next.id)) return false;
    }
    return order.size() == 4;
  };
  QVERIFY(hub.wait(ring_is_right));
  const std::uint32_t then = hub.server().state().outer_step;
  QVERIFY(hub.wait(committed(then + 2)));
  QVERIFY(ring_is_right({}));
}

void HubServerTest::others_dial_the_host_that_an_island_names_where_it_answers_there_alone() {
  LoopbackHub hub(loopback_run(3, 0));
  const auto join_naming = [&](const char* name, const char* host) {
    return std::make_unique<PuppetIsland>(hub.address(), hub.enrol(name), true, std::string(), host);
  };
  Islands islands;
  islands.push_back(join_naming("plain", ""));
  islands.push_back(join_naming("right", "localhost"));
  islands.push_back(join_naming("wrong", "127.0.0.2"));  // where nobody listens

  const auto is_right = [&](const HubState&) {
    const std::vector<AttemptMember> order = islands[0]->last_order();
    return order.size() == 3 && std::ranges::count_if(order, &AttemptMember::dials_previous) == 1 &&
           std::ranges::all_of(order, [](const auto& member) { return member.address.host == "127.0.0.1"; });
  };
  QVERIFY(hub.wait(is_right, 60));
}

void HubServerTest::an_invite_serves_as_often_as_it_says() {
  LoopbackHub hub(loopback_run(1, 0));
  const auto report = create_invite(hub.directory(), {.addresses = {hub.address()}, .uses = 2});
  QVERIFY(report.ok());
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const auto invite = decode_invite(report->text, now);
  QVERIFY(invite.ok());
  QCOMPARE(invite->hub, (std::vector<Address>{hub.address()}));

  QVERIFY(enrol(*invite, "a", Deadline::after(5s)).ok());
  QVERIFY(enrol(*invite, "b", Deadline::after(5s)).ok());
  const auto third = enrol(*invite, "c", Deadline::after(5s));

  QVERIFY(!third.ok());
  QCOMPARE(third.error().code, ErrorCode::kInviteUsed);
}

// Everything that is said before anybody was admitted, with what moves a terminal's cursor, forges a line, or turns the
// direction of writing. The log here is the plainest that there is: it is to be right without the guard of
// log_formatter.
void HubServerTest::nothing_that_a_stranger_sends_reaches_the_log_unprintable() {
  const std::string odd = "x\x1b[2J\n2026-01-01 info forged\u202E\u2028\u009B";
  LoopbackHub hub(loopback_run(1, 0));
  std::ostringstream written;
  const auto before = spdlog::default_logger();
  auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(written, /*force_flush=*/true);
  sink->set_pattern("%v");
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("hub", sink));

  int answers = 0;
  for (const char* field : {"run", "invite", "name", "request", "secret", "about"}) {
    nlohmann::json said = {{"version", 1}, {"run", hub.run().run_id}, {"invite", "none"},
                           {"secret", ""}, {"request", ""},           {"name", "n"}};
    said[field] = odd.substr(0, 60);
    answers += tell_as_a_stranger(hub, said.dump()).empty() ? 0 : 1;
  }
  answers += tell_as_a_stranger(hub, odd).empty() ? 0 : 1;
  const Identity named = hub.enrol("a\u202Eb\x1b[2J\nc");
  const PuppetIsland island(hub.address(), named);
  const bool joined = hub.wait([](const HubState& state) { return !state.islands.empty(); });
  const HubState state = hub.server().state();
  hub.stop();
  spdlog::set_default_logger(before);

  QCOMPARE(answers, 7);
  QVERIFY(joined);
  QCOMPARE(printable_lines(state.islands[0].name), state.islands[0].name);
  const std::string log = written.str();
  QVERIFY(log.find("enrol invite=") != std::string::npos);
  QVERIFY2(log.find("forged") == std::string::npos || log.find("\n2026-01-01") == std::string::npos, log.c_str());
  QCOMPARE(QString::fromStdString(printable_lines(log)), QString::fromStdString(log));
}

void HubServerTest::a_client_without_a_hub_gives_up_and_says_what_to_check() {
  LoopbackHub hub(loopback_run(1, 0));
  const Identity identity = hub.enrol("alone");
  hub.stop();
  MeshClientOptions options;
  options.hub_addresses = {hub.address()};
  options.reconnect_for = 300ms;

  const auto client =
      MeshClient::start(options, identity, {[] { return IslandHello{}; }, [] { return IslandHeartbeat{}; }, {}});
  QVERIFY(client.ok());
  const auto message = (*client)->next(Deadline::after(5s));

  QVERIFY(!message.ok());
  QCOMPARE(message.error().code, ErrorCode::kUnreachable);
  QVERIFY(message.error().message.find("firewall") != std::string::npos);
  QVERIFY(!(*client)->send(IslandLeaving{"too late"}));
}

void HubServerTest::an_island_renews_its_certificate_and_is_admitted_with_it() {
  LoopbackHub hub(loopback_run(1, 2));
  const Identity enrolled = hub.enrol("reef");
  const AbortSignal never;

  // So that the new one ends later than the old one: dates have whole seconds.
  QTest::qWait(1'100);
  const auto renewed = renew_certificate(enrolled, {hub.address()}, Deadline::after(std::chrono::seconds(5)), never);
  QVERIFY2(renewed.ok(), renewed.ok() ? "" : renewed.error().message.c_str());
  QCOMPARE(renewed->key_pem, enrolled.key_pem);

  PuppetIsland island(hub.address(), *renewed);
  QVERIFY(hub.wait([](const HubState& state) { return state.outer_step >= 2; }));
}

void HubServerTest::an_island_outlives_its_certificate() {
  LoopbackHub hub(loopback_run(1, 0), 6s);
  const Identity enrolled = hub.enrol("reef");
  Identity forgetful = enrolled;
  forgetful.renewed = std::make_shared<RenewedCertificate>();
  const QTemporaryDir directory;
  const std::filesystem::path home = directory.path().toStdString();
  const CertificateKeeper keeper(enrolled, {home, {hub.address()}, 500ms});
  // Made before the first renewal, or before the first certificate's end at least.
  const auto context = TlsContext::client(enrolled, kAlpnHttp);
  const auto old_context = TlsContext::client(forgetful, kAlpnHttp);
  const auto admitted = [&](const TlsContext& of) {
    return http_get(hub, of, "GET /nothing HTTP/1.1").starts_with("HTTP/1.1 404");
  };
  QVERIFY(admitted(*old_context));
  PuppetIsland island(hub.address(), enrolled);

  QTRY_VERIFY_WITH_TIMEOUT(!admitted(*old_context), 60'000);

  QVERIFY(admitted(*context));
  QVERIFY(load_identity(home)->certificate_pem != enrolled.certificate_pem);
  const std::uint32_t then = hub.server().state().outer_step;
  QVERIFY(hub.wait(committed(then + 2)));  // its open connection goes on
  hub.stop();
  hub.start();
  QVERIFY(hub.wait(committed(then + 4), 30));  // it comes back by a new one
}

// As a hub of an older version left it that was started once while its clock was ahead.
void HubServerTest::a_hub_with_a_certificate_of_the_future_makes_a_new_one_and_says_so() {
  LoopbackHub hub(loopback_run(1, 0));
  const PuppetIsland island(hub.address(), hub.enrol("reef"));
  QVERIFY(hub.wait(committed(1)));
  hub.stop();
  const auto authority = CertificateAuthority::load(hub.directory() / "authority");
  const auto ahead = std::chrono::system_clock::now() + std::chrono::days(240);
  const auto of_the_future = authority->make_hub_identity(Validity::starting(ahead, kHubCertificateLifetime));
  QVERIFY(save_identity(HubHome{hub.directory()}.identity(), *of_the_future).ok());
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("hub", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));

  hub.start();

  spdlog::set_default_logger(before);
  QVERIFY2(log.str().find("clock was ahead") != std::string::npos, log.str().c_str());
  const std::uint32_t then = hub.server().state().outer_step;
  QVERIFY(hub.wait(committed(then + 2), 30));
}

void HubServerTest::the_dataset_is_served_by_exact_name_and_in_ranges() {
  LoopbackHub hub(loopback_run(1, 0));
  const Identity identity = hub.enrol("reader");
  const ShardEntry shard = DatasetManifest::load(hub.dataset()).value().train.front();
  const std::string name = source_name_of(hub.dataset()) + "/" + shard.file;

  const std::string whole = http_get(hub, identity, "GET /data/" + name + " HTTP/1.1");
  const std::string range = http_get(hub, identity, "GET /data/" + name + " HTTP/1.1\r\nRange: bytes=10-");
  const std::string beyond = http_get(hub, identity, "GET /data/" + name + " HTTP/1.1\r\nRange: bytes=999999999-");
  const std::string outside = http_get(hub, identity, "GET /data/../hub/run.json HTTP/1.1");
  const std::string other = http_get(hub, identity, "GET / HTTP/1.1");

  QVERIFY2(whole.starts_with("HTTP/1.1 200"), whole.substr(0, 80).c_str());
  const std::string body = whole.substr(whole.find("\r\n\r\n") + 4);
  QCOMPARE(body.size(), std::size_t{shard.bytes});
  QCOMPARE(sha256_hex(as_bytes(body)), shard.sha256);
  QVERIFY(range.starts_with("HTTP/1.1 206"));
  QCOMPARE(range.substr(range.find("\r\n\r\n") + 4), body.substr(10));
  QVERIFY(beyond.starts_with("HTTP/1.1 416"));
  QVERIFY(outside.starts_with("HTTP/1.1 404"));
  QVERIFY(other.starts_with("HTTP/1.1 404"));
}

// Its islands hold the whole dataset, whose manifest is in their configuration.
void HubServerTest::a_run_of_before_data_had_sources_is_served_as_it_was() {
  LoopbackHub hub(loopback_run(1, 0));
  const Identity identity = hub.enrol("reader");
  hub.stop();
  const HubHome home{hub.directory()};
  RunConfig run = hub.run();
  run.dataset_json = DatasetManifest::load(hub.dataset()).value().to_json();
  QVERIFY(write_file_atomically(home.run_file(), run.to_json().dump(), FileMode::kPrivate).ok());
  const nlohmann::json file = {{"version", 1}, {"dataset_directory", hub.dataset().string()}};
  QVERIFY(write_file_atomically(home.hub_file(), file.dump(), FileMode::kPrivate).ok());
  hub.start();

  const ShardEntry shard = DatasetManifest::load(hub.dataset()).value().train.front();
  const std::string whole = http_get(hub, identity, "GET /data/" + shard.file + " HTTP/1.1");

  QVERIFY2(whole.starts_with("HTTP/1.1 200"), whole.substr(0, 80).c_str());
  QCOMPARE(whole.size() - whole.find("\r\n\r\n") - 4, std::size_t{shard.bytes});
  QVERIFY(!hub.server().state().mixture);
  hub.stop();
  QVERIFY(move_dataset(hub.directory(), "", hub.dataset()).ok());
  hub.start();
  QVERIFY(http_get(hub, identity, "GET /data/" + shard.file + " HTTP/1.1").starts_with("HTTP/1.1 200"));
}

void HubServerTest::a_newcomer_is_told_the_past_from_the_first_round_on_also_by_a_hub_that_restarted() {
  LoopbackHub hub(loopback_run(1, 5));
  const Islands islands = join(hub, 1);
  QVERIFY(hub.wait([](const HubState& state) { return state.finished; }));
  hub.stop();
  hub.start();

  const std::string answer = http_get(hub, hub.enrol("late"), "GET /past HTTP/1.1");

  QVERIFY2(answer.starts_with("HTTP/1.1 200"), answer.substr(0, 80).c_str());
  const auto past = decode_past(answer.substr(answer.find("\r\n\r\n") + 4));
  QVERIFY2(past.ok(), past.ok() ? "" : past.error().message.c_str());
  QCOMPARE(past->rounds.size(), std::size_t{5});
  QCOMPARE(past->rounds.front().round, 0u);
  QCOMPARE(past->rounds.front().mean_loss_nats, 3.0);
  QCOMPARE(past->rounds.back().tokens, std::uint64_t{2 * 2 * 16});
  QCOMPARE(past->validations.front().outer_step, 0u);
  QCOMPARE(past->validations.back().outer_step, 5u);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::HubServerTest)
#include "hub_server_test.moc"
