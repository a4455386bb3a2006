// Every connection that an island makes to its hub, broken at each of its bytes: cut, reset, or silent. Whatever
// happens, the island goes on trying, and comes to the right end. A test reads nothing of the time but that it ends.
#include <spdlog/spdlog.h>

#include <QTemporaryDir>
#include <QtTest>
#include <atomic>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>

#include "net/base/exit_code.h"
#include "net/base/file.h"
#include "net/data/dataset_fetch.h"
#include "net/data/source_name.h"
#include "net/enrol/certificate_renewal.h"
#include "net/enrol/client.h"
#include "tests/fakes/enrol_server.h"
#include "tests/fakes/forged_alert.h"
#include "tests/fakes/test_run.h"
#include "tests/net/faults/break_everywhere.h"
#include "tests/net/hub/loopback_hub.h"

using namespace std::chrono_literals;

namespace atl {
namespace {

const EnrolPatience kEnrol{
    .tries = kEnoughTries, .first_pause = 1ms, .longest_pause = 1ms, .most_per_address = kPatience};

// A hub that knows enrolment alone, and grants every request: the same key the same name.
class GrantingHub {
 public:
  Address address() const { return server_.address(); }
  Invite invite(std::vector<Address> hub) const {
    return {.hub = std::move(hub),
            .run_id = run_.authority().run_id(),
            .run_name = "test run",
            .authority_pin = run_.authority().pin(),
            .id = "0123456789abcdef",
            .secret = Bytes(32, std::byte{7}),
            .expires = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()) + 1h};
  }

 private:
  EnrolResponse grant(const EnrolRequest& request) {
    const auto number = islands_.try_emplace(request.request_pem, static_cast<int>(islands_.size()) + 1).first->second;
    const IslandId id = TestRun::island_id(number);
    const auto certificate = run_.authority().sign_request(request.request_pem, id,
                                                           Validity::starting(std::chrono::system_clock::now(), 24h));
    if (!certificate.ok()) return certificate.error();
    return EnrolGrant{*certificate, run_.authority().certificate_pem(), id, {}};
  }

  TestRun run_;
  std::map<std::string, int> islands_;  // by the request of their key; the server's
  const EnrolServer server_{run_.hub(), [this](const EnrolRequest& request) { return grant(request); }};
};

IslandHello hello() {
  IslandHello hello;
  hello.listen_port = 1;
  return hello;
}

Breaking breaking_of(bool stalls) {
  Breaking breaking;
  if (!stalls) return breaking;
  return {.stalls = true, .then_every = 39'989, .stride = kStallStride};
}

}  // namespace

class HubFaultsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void a_broken_look_at_an_invite_is_tried_again_data() { add_kinds_of_faults(); }
  void a_broken_look_at_an_invite_is_tried_again();
  void a_broken_enrolment_is_tried_again_data() { add_kinds_of_faults(); }
  void a_broken_enrolment_is_tried_again();
  void an_answer_of_another_authority_is_no_refusal_and_others_go_on();
  void a_broken_download_of_data_is_tried_again_data() { add_kinds_of_faults(); }
  void a_broken_download_of_data_is_tried_again();
  void a_broken_renewal_of_the_certificate_is_no_refusal_data() { add_kinds_of_faults(); }
  void a_broken_renewal_of_the_certificate_is_no_refusal();
  void a_broken_connection_to_the_mesh_is_tried_again_data() { add_kinds_of_faults(); }
  void a_broken_connection_to_the_mesh_is_tried_again();
  void a_forged_alert_to_the_mesh_is_no_refusal_and_told();
  void an_island_that_was_welcomed_waits_for_its_hub_for_ever();

 private:
  static EnrolPatience patience(bool stalls) {
    EnrolPatience patience = kEnrol;
    patience.most_per_address = silence_until(stalls);
    return patience;
  }

  // No round is ever begun: there is one island at most.
  LoopbackHub hub_{loopback_run(2, 0)};
  FaultProxy proxy_{hub_.address()};
  const Identity island_ = hub_.enrol("reef");
  const AbortSignal never_;
};

void HubFaultsTest::initTestCase() {
  spdlog::set_level(spdlog::level::err);
  ::signal(SIGPIPE, SIG_IGN);  // of the enrolment's fake, which writes to sockets that were reset
}

void HubFaultsTest::a_broken_look_at_an_invite_is_tried_again() {
  QFETCH(const bool, stalls);
  const InviteReport report = create_invite(hub_.directory(), {.addresses = {proxy_.address()}}).value();
  const Invite invite = decode_invite(report.text, std::chrono::sys_seconds{}).value();

  const auto wrong = break_everywhere(proxy_, breaking_of(stalls), [&]() -> std::optional<std::string> {
    const auto described = describe_hub(invite, Deadline::after(kPatience), nullptr, patience(stalls));
    if (!described.ok()) return words(described.error());
    return described->run.name == "loopback" ? std::nullopt : std::optional(described->run.name);
  });

  QVERIFY2(!wrong, wrong ? wrong->c_str() : "");
}

void HubFaultsTest::a_broken_enrolment_is_tried_again() {
  QFETCH(const bool, stalls);
  const GrantingHub hub;
  FaultProxy proxy(hub.address());
  const Invite invite = hub.invite({proxy.address()});

  const auto wrong = break_everywhere(proxy, breaking_of(stalls), [&]() -> std::optional<std::string> {
    const KeyAndRequest key = make_signing_request();
    const auto enrolled = enrol(invite, key, "lagoon", Deadline::after(kPatience), nullptr, patience(stalls));
    if (!enrolled.ok()) return words(enrolled.error());
    return enrolled->identity.key_pem == key.key_pem ? std::nullopt : std::optional<std::string>("another key");
  });

  QVERIFY2(!wrong, wrong ? wrong->c_str() : "");
}

void HubFaultsTest::an_answer_of_another_authority_is_no_refusal_and_others_go_on() {
  const GrantingHub hub, impostor;
  FaultProxy way_to_impostor(impostor.address()), way(hub.address());
  way.break_next({.kind = FaultKind::kReset, .after_bytes = 100});
  const Invite invite = hub.invite({way_to_impostor.address(), way.address()});

  const auto enrolled = enrol(invite, "lagoon", Deadline::after(kPatience), nullptr, kEnrol);

  QVERIFY2(enrolled.ok(), enrolled.ok() ? "" : enrolled.error().message.c_str());
  QCOMPARE(way_to_impostor.dialled(), 2);  // it may have been somebody on the way
  QCOMPARE(way.dialled(), 2);
}

void HubFaultsTest::a_broken_download_of_data_is_tried_again() {
  QFETCH(const bool, stalls);
  const QTemporaryDir directory;
  const std::filesystem::path destination = std::filesystem::path(directory.path().toStdString()) / "shard";
  const ShardEntry shard = DatasetManifest::load(hub_.dataset()).value().train.front();
  const std::string name = source_name_of(hub_.dataset()) + "/" + shard.file;
  DatasetFetchOptions options;
  options.stall = silence_until(stalls);
  options.retry_after = 0ms;

  const auto wrong = break_everywhere(proxy_, breaking_of(stalls), [&]() -> std::optional<std::string> {
    const Status fetched = fetch_dataset_file(island_, {proxy_.address()}, name, shard.bytes, shard.sha256, destination,
                                              never_, {}, {}, options);
    if (!fetched.ok()) return words(fetched.error());
    const std::string hash = sha256_hex(as_bytes(read_file(destination).value()));
    std::filesystem::remove(destination);
    return hash == shard.sha256 ? std::nullopt : std::optional<std::string>("another content");
  });

  QVERIFY2(!wrong, wrong ? wrong->c_str() : "");
}

// The keeper asks again and again; what it is told once is no reason to stop.
void HubFaultsTest::a_broken_renewal_of_the_certificate_is_no_refusal() {
  QFETCH(const bool, stalls);

  const auto wrong = break_everywhere(proxy_, breaking_of(stalls), [&]() -> std::optional<std::string> {
    Error last;
    for (int i = 0; i < kEnoughTries; ++i) {
      const auto renewed =
          renew_certificate(island_, {proxy_.address()}, Deadline::after(silence_until(stalls)), never_);
      if (renewed.ok()) return renewed->key_pem == island_.key_pem ? std::nullopt : std::optional<std::string>("key");
      last = renewed.error();
      if (exit_code_of(last.code) == kExitDenied) return words(last);
    }
    return words(last);
  });

  QVERIFY2(!wrong, wrong ? wrong->c_str() : "");
}

void HubFaultsTest::a_broken_connection_to_the_mesh_is_tried_again() {
  QFETCH(const bool, stalls);
  MeshClientOptions options;
  options.hub_addresses = {proxy_.address()};
  options.connect_timeout = options.welcome_timeout = silence_until(stalls);
  options.first_pause = options.longest_pause = 1ms;

  const auto wrong = break_everywhere(proxy_, breaking_of(stalls), [&]() -> std::optional<std::string> {
    const MeshClient::Callbacks callbacks{hello, [] { return IslandHeartbeat{}; }, [](const HubMessage&) {}};
    const auto client = MeshClient::start(options, island_, callbacks);
    if (!client.ok()) return words(client.error());
    bool welcomed = false;
    for (;;) {
      const auto message = (*client)->next(Deadline::after(kPatience));
      if (!message.ok()) return words(message.error());
      welcomed = welcomed || std::holds_alternative<HubWelcome>(*message);
      if (welcomed && std::holds_alternative<HubRoster>(*message)) return std::nullopt;
    }
  });

  QVERIFY2(!wrong, wrong ? wrong->c_str() : "");
}

void HubFaultsTest::a_forged_alert_to_the_mesh_is_no_refusal_and_told() {
  const ForgedAlert liar;
  MeshClientOptions options;
  options.hub_addresses = {liar.address(), hub_.address()};
  options.first_pause = options.longest_pause = 1ms;
  std::string told;  // once, by the client's thread, before there is a message
  MeshClient::Callbacks callbacks{hello, [] { return IslandHeartbeat{}; }, {}};
  callbacks.lost = [&](const std::string& why, std::optional<Seconds>) { told = why; };

  const auto client = MeshClient::start(options, island_, callbacks);
  const auto message = (*client)->next(Deadline::after(kPatience));

  QVERIFY2(message.ok(), message.ok() ? "" : message.error().message.c_str());
  QVERIFY2(told.find("certificate") != std::string::npos && told.find("invite") != std::string::npos, told.c_str());
}

void HubFaultsTest::an_island_that_was_welcomed_waits_for_its_hub_for_ever() {
  constexpr auto kPatienceOfOthers = 20ms;
  MeshClientOptions options;
  options.hub_addresses = {hub_.address()};
  options.reconnect_for = kPatienceOfOthers;
  options.first_pause = options.longest_pause = 2ms;
  std::atomic<int> lost{0}, back{0}, bounded{0};
  MeshClient::Callbacks callbacks{hello, [] { return IslandHeartbeat{}; }, {}};
  callbacks.lost = [&](const std::string&, std::optional<Seconds> tries_for) {
    ++lost;
    if (tries_for) ++bounded;
  };
  callbacks.back = [&] { ++back; };
  const auto client = MeshClient::start(options, island_, callbacks);
  QTRY_VERIFY_WITH_TIMEOUT(back == 1, 30'000);

  hub_.stop();
  QTRY_VERIFY_WITH_TIMEOUT(lost >= 50, 30'000);
  QTest::qWait(2 * kPatienceOfOthers.count());
  hub_.start();

  QTRY_VERIFY_WITH_TIMEOUT(back == 2, 30'000);
  QCOMPARE(bounded, 0);
  QVERIFY((*client)->connected());
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::HubFaultsTest)
#include "hub_faults_test.moc"
