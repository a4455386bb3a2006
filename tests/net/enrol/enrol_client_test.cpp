#include "net/enrol/client.h"

#include <QTemporaryDir>
#include <QtTest>

#include "net/enrol/enroller.h"
#include "net/enrol/sqlite_invite_store.h"
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
  std::unique_ptr<SqliteInviteStore> store_;
  std::unique_ptr<Enroller> enroller_;
  EnrolServer::Handler handler_ = [this](const EnrolRequest& request) { return enroller_->handle(request); };
};

void EnrolClientTest::init() {
  directory_ = std::make_unique<QTemporaryDir>();
  database_ = std::make_unique<Database>(Database::open(directory_->filePath("hub.db").toStdString()).value());
  store_ = std::make_unique<SqliteInviteStore>(SqliteInviteStore::open(*database_).value());
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
    EnrolResponse response = enroller_->handle(request);
    auto& grant = std::get<EnrolGrant>(response);
    grant.island = TestRun::island_id(2);
    grant.certificate_pem = run_.island(2).certificate_pem;
    return response;
  });

  const auto enrolled = enrol_soon(invite({server.address()}));

  QVERIFY(!enrolled.ok());
  QVERIFY(enrolled.error().message.find("another key") != std::string::npos);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::EnrolClientTest)
#include "enrol_client_test.moc"
