#include "net/enrol/client.h"

#include <sys/stat.h>

#include <QTemporaryDir>
#include <QtTest>
#include <atomic>

#include "net/base/file.h"
#include "net/enrol/enroller.h"
#include "net/enrol/enrolment_store.h"
#include "net/enrol/join_key.h"
#include "net/transport/socket.h"
#include "tests/fakes/enrol_server.h"
#include "tests/fakes/test_run.h"

using namespace std::chrono_literals;

namespace atl {
namespace {

constexpr std::chrono::seconds kPatience{10};

}  // namespace

class EnrolClientTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void an_invite_becomes_an_identity_of_the_run();
  void an_address_that_does_not_answer_is_passed_over();
  void a_used_invite_says_so();
  void another_authority_never_sees_the_secret();
  void an_unreachable_hub_says_which_address_failed();
  void a_certificate_for_another_key_is_not_kept();
  void an_answer_to_a_request_that_was_sent_is_taken_although_the_join_was_given_up();
  void an_answer_that_was_lost_is_asked_for_again_with_the_same_key();
  void a_hub_that_cannot_look_now_is_asked_again();
  void a_key_is_kept_for_its_invite_alone();
  void a_hub_describes_its_run_and_hears_no_secret();
  void a_hub_of_before_is_described_by_the_invite();
  void a_hub_that_is_not_the_invites_is_not_described_data();
  void a_hub_that_is_not_the_invites_is_not_described();

 private:
  Invite invite(const std::vector<Address>& hub) {
    const auto expires = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()) + 1h;
    return make_invite(run_.authority(), *store_, "test run", hub, 1, expires).value();
  }
  static Result<Enrolment> enrol_soon(const Invite& with) { return enrol(with, "lagoon", Deadline::after(kPatience)); }
  static Address dead_address() {
    const UniqueFd closed = listen_tcp({"127.0.0.1", 0}).value();
    return {"127.0.0.1", local_port(closed.get())};
  }

  TestRun run_;
  std::unique_ptr<QTemporaryDir> directory_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<EnrolmentStore> store_;
  std::unique_ptr<Enroller> enroller_;
  EnrolServer::Handler handler_ = [this](const EnrolRequest& request) { return enroller_->handle(request).value(); };
};

void EnrolClientTest::init() {
  directory_ = std::make_unique<QTemporaryDir>();
  database_ = std::make_unique<Database>(Database::open(directory_->filePath("hub.db").toStdString()).value());
  store_ = std::make_unique<EnrolmentStore>(EnrolmentStore::open(*database_).value());
  enroller_ = std::make_unique<Enroller>(run_.authority(), *store_, std::vector<Address>{},
                                         [] { return std::chrono::system_clock::now(); });
}

void EnrolClientTest::an_invite_becomes_an_identity_of_the_run() {
  const EnrolServer server(run_.hub(), handler_);

  const auto enrolled = enrol_soon(invite({server.address()}));

  QVERIFY2(enrolled.ok(), enrolled.ok() ? "" : enrolled.error().message.c_str());
  QVERIFY(is_enrolled_name(enrolled->identity.name.value));
  QCOMPARE(enrolled->identity.run, run_.authority().run_id());
  QCOMPARE(enrolled->hub, std::vector<Address>{server.address()});
  const std::filesystem::path home = directory_->filePath("home").toStdString();
  QVERIFY(save_identity(home, enrolled->identity).ok());
  QCOMPARE(load_identity(home)->name, enrolled->identity.name);
}

void EnrolClientTest::an_address_that_does_not_answer_is_passed_over() {
  const EnrolServer server(run_.hub(), handler_);

  QVERIFY(enrol_soon(invite({dead_address(), server.address()})).ok());
}

void EnrolClientTest::a_used_invite_says_so() {
  const EnrolServer server(run_.hub(), handler_);
  const Invite once = invite({server.address()});
  QVERIFY(enrol_soon(once).ok());

  QCOMPARE(enrol_soon(once).error().code, ErrorCode::kInviteUsed);
}

void EnrolClientTest::another_authority_never_sees_the_secret() {
  const TestRun impostor(run_.authority().run_id());
  const EnrolServer server(impostor.hub(), handler_);

  QCOMPARE(enrol_soon(invite({server.address()})).error().code, ErrorCode::kPinMismatch);
  QCOMPARE(server.requests(), 0);
}

void EnrolClientTest::an_unreachable_hub_says_which_address_failed() {
  const Address dead = dead_address();

  const auto enrolled = enrol_soon(invite({dead, {"no-such-host.invalid", 4711}}));

  QCOMPARE(enrolled.error().code, ErrorCode::kUnreachable);
  QVERIFY(enrolled.error().message.find(to_string(dead)) != std::string::npos);
  QVERIFY(enrolled.error().message.find("no-such-host.invalid") != std::string::npos);
}

void EnrolClientTest::a_certificate_for_another_key_is_not_kept() {
  const EnrolServer server(run_.hub(), [this](const EnrolRequest& request) -> EnrolResponse {
    EnrolResponse response = enroller_->handle(request).value();
    auto& grant = std::get<EnrolGrant>(response);
    grant.island = TestRun::island_id(2);
    grant.certificate_pem = run_.island(2).certificate_pem;
    return response;
  });

  const auto enrolled = enrol_soon(invite({server.address()}));

  QVERIFY(!enrolled.ok());
  QVERIFY(enrolled.error().message.find("another key") != std::string::npos);
}

void EnrolClientTest::an_answer_to_a_request_that_was_sent_is_taken_although_the_join_was_given_up() {
  AbortSignal abort;
  const EnrolServer server(run_.hub(), [&](const EnrolRequest& request) {
    abort.raise("cancelled");  // while the hub burns the invite
    return enroller_->handle(request).value();
  });
  const Invite with = invite({server.address()});

  const auto enrolled = enrol(with, "lagoon", Deadline::after(kPatience), &abort);
  const auto too_late = enrol(with, "lagoon", Deadline::after(kPatience), &abort);

  QVERIFY2(enrolled.ok(), enrolled.ok() ? "" : enrolled.error().message.c_str());
  QCOMPARE(too_late.error().code, ErrorCode::kAborted);
  QCOMPARE(server.requests(), 1);
}

void EnrolClientTest::an_answer_that_was_lost_is_asked_for_again_with_the_same_key() {
  EnrolServer server(run_.hub(), handler_);
  server.lose_answers(2);

  const auto enrolled = enrol_soon(invite({server.address()}));  // of one use

  QVERIFY2(enrolled.ok(), enrolled.ok() ? "" : enrolled.error().message.c_str());
  QCOMPARE(server.requests(), 3);
  QCOMPARE(store_->islands()->size(), std::size_t{1});
  QCOMPARE(store_->islands()->at(0).id, enrolled->identity.name);
}

void EnrolClientTest::a_hub_that_cannot_look_now_is_asked_again() {
  std::atomic<int> asked{0};
  const EnrolServer server(run_.hub(), [&](const EnrolRequest& request) -> EnrolResponse {
    if (++asked == 1) return Error{ErrorCode::kTimeout, "try again later"};
    return enroller_->handle(request).value();
  });

  QVERIFY(enrol_soon(invite({server.address()})).ok());
}

void EnrolClientTest::a_key_is_kept_for_its_invite_alone() {
  const std::filesystem::path file = directory_->filePath("joining.json").toStdString();
  const KeyAndRequest made = join_key(file, "a1b2").value();
  struct stat info {};
  QCOMPARE(::stat(file.c_str(), &info), 0);
  QCOMPARE(info.st_mode & 0777, 0600u);

  QCOMPARE(join_key(file, "a1b2")->key_pem, made.key_pem);
  const std::string other = join_key(file, "c3d4")->key_pem;
  QVERIFY(other != made.key_pem);
  QVERIFY(write_file_atomically(file, "{\"version\":1,\"invite\":\"c3d4\",\"key\":\"none\"}", FileMode::kPrivate).ok());
  QVERIFY(join_key(file, "c3d4")->key_pem != other);
  forget_join_key(file);
  QVERIFY(!std::filesystem::exists(file));
}

void EnrolClientTest::a_hub_describes_its_run_and_hears_no_secret() {
  RunAbout about{run_.authority().run_id(), "test run", "Ada", "llama", 1'000'000};
  const EnrolServer server(run_.hub(), handler_, [&](const AboutRequest&) { return about; });
  const Invite with = invite({dead_address(), server.address()});

  const auto described = describe_hub(with, Deadline::after(kPatience));

  QVERIFY2(described.ok(), described.ok() ? "" : described.error().message.c_str());
  QCOMPARE(described->address, server.address());
  QCOMPARE(described->run.operator_name, std::string("Ada"));
  QCOMPARE(described->run.model, std::string("llama"));
  QCOMPARE(described->run.parameters, std::uint64_t{1'000'000});
  QCOMPARE(server.last_body(), "{\"about\":\"" + with.run_id + "\",\"version\":1}");
}

void EnrolClientTest::a_hub_of_before_is_described_by_the_invite() {
  const EnrolServer server(run_.hub(), handler_);

  const auto described = describe_hub(invite({server.address()}), Deadline::after(kPatience));

  QVERIFY2(described.ok(), described.ok() ? "" : described.error().message.c_str());
  QCOMPARE(described->run.name, std::string("test run"));
  QCOMPARE(described->run.run_id, run_.authority().run_id());
  QVERIFY(described->run.operator_name.empty() && described->run.model.empty());
}

void EnrolClientTest::a_hub_that_is_not_the_invites_is_not_described_data() {
  QTest::addColumn<bool>("another_authority");
  QTest::addColumn<bool>("another_run");
  QTest::addColumn<int>("code");
  QTest::newRow("another authority") << true << false << static_cast<int>(ErrorCode::kPinMismatch);
  QTest::newRow("it refuses") << false << false << static_cast<int>(ErrorCode::kInviteOtherRun);
  QTest::newRow("it speaks of another run") << false << true << static_cast<int>(ErrorCode::kUnreachable);
}

void EnrolClientTest::a_hub_that_is_not_the_invites_is_not_described() {
  QFETCH(bool, another_authority);
  QFETCH(bool, another_run);
  QFETCH(int, code);
  const TestRun impostor(run_.authority().run_id());
  const EnrolServer server(another_authority ? impostor.hub() : run_.hub(), handler_,
                           [&](const AboutRequest&) -> AboutResponse {
                             if (another_run) return RunAbout{"fedcba9876543210", "", "", "", 0};
                             return Error{ErrorCode::kInviteOtherRun, "another run"};
                           });

  const auto described = describe_hub(invite({server.address()}), Deadline::after(kPatience));

  QVERIFY(!described.ok());
  QCOMPARE(static_cast<int>(described.error().code), code);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::EnrolClientTest)
#include "enrol_client_test.moc"
