#include "net/enrol/enroller.h"

#include <QTemporaryDir>
#include <QtTest>

#include "net/enrol/sqlite_invite_store.h"
#include "net/tls/signature.h"
#include "tests/fakes/test_run.h"

using namespace std::chrono_literals;

namespace atl {

class EnrollerTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void a_good_invite_gives_a_certificate_of_the_run();
  void an_invite_is_good_for_its_uses_and_no_more();
  void a_wrong_secret_is_unknown_and_takes_no_use();
  void an_unknown_id_is_unknown();
  void an_expired_invite_is_refused();
  void an_invite_of_another_run_is_refused();
  void a_bad_signing_request_takes_no_use();
  void the_store_keeps_no_secret();
  void messages_survive_the_wire();
  void a_malformed_message_is_refused();
  void a_question_about_the_run_survives_the_wire();
  void a_malformed_message_is_refused_data();
  void another_version_is_unsupported();

 private:
  EnrolRequest request_for(const Invite& invite) const {
    return {kEnrolVersion, invite.run_id, invite.id, invite.secret, make_signing_request().request_pem, "lagoon"};
  }
  Invite invite(std::uint32_t uses) {
    const auto expires = std::chrono::floor<std::chrono::seconds>(now_) + 24h;
    return make_invite(run_.authority(), *store_, "test run", {{"127.0.0.1", 4711}}, uses, expires).value();
  }
  ErrorCode refusal(const EnrolRequest& request) {
    const EnrolResponse response = enroller_->handle(request);
    const Error* error = std::get_if<Error>(&response);
    return error != nullptr ? error->code : ErrorCode::kInternal;
  }

  TestRun run_;
  std::chrono::system_clock::time_point now_;
  std::unique_ptr<QTemporaryDir> directory_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<SqliteInviteStore> store_;
  std::unique_ptr<Enroller> enroller_;
};

void EnrollerTest::init() {
  now_ = std::chrono::system_clock::now();
  directory_ = std::make_unique<QTemporaryDir>();
  database_ = std::make_unique<Database>(Database::open(directory_->filePath("hub.db").toStdString()).value());
  store_ = std::make_unique<SqliteInviteStore>(SqliteInviteStore::open(*database_).value());
  enroller_ = std::make_unique<Enroller>(run_.authority(), *store_, std::vector<Address>{{"127.0.0.1", 4711}},
                                         [this] { return now_; });
}

void EnrollerTest::a_good_invite_gives_a_certificate_of_the_run() {
  const EnrolResponse response = enroller_->handle(request_for(invite(1)));

  const auto& grant = std::get<EnrolGrant>(response);
  const auto certificate = parse_certificate(grant.certificate_pem).value();
  QCOMPARE(certified_name(certificate.get()).value(), grant.island.value);
  QVERIFY(is_enrolled_name(grant.island.value));
  QCOMPARE(grant.authority_pem, run_.authority().certificate_pem());
  QCOMPARE(grant.hub.at(0).port, std::uint16_t{4711});
}

void EnrollerTest::an_invite_is_good_for_its_uses_and_no_more() {
  const Invite two = invite(2);

  const EnrolResponse first = enroller_->handle(request_for(two));
  const EnrolResponse second = enroller_->handle(request_for(two));

  QVERIFY(std::get<EnrolGrant>(first).island != std::get<EnrolGrant>(second).island);
  QCOMPARE(refusal(request_for(two)), ErrorCode::kInviteUsed);
}

void EnrollerTest::a_wrong_secret_is_unknown_and_takes_no_use() {
  const Invite one = invite(1);
  EnrolRequest guess = request_for(one);
  guess.secret.back() ^= std::byte{1};
  EnrolRequest shorter = request_for(one);
  shorter.secret.clear();

  QCOMPARE(refusal(guess), ErrorCode::kInviteUnknown);
  QCOMPARE(refusal(shorter), ErrorCode::kInviteUnknown);
  QCOMPARE(store_->list()->at(0).uses_left, 1u);
  QVERIFY(std::holds_alternative<EnrolGrant>(enroller_->handle(request_for(one))));
  QCOMPARE(refusal(guess), ErrorCode::kInviteUnknown);  // not "used": that is only for who knows the secret
}

void EnrollerTest::an_unknown_id_is_unknown() {
  EnrolRequest request = request_for(invite(1));
  request.invite_id = "000000000000";

  QCOMPARE(refusal(request), ErrorCode::kInviteUnknown);
}

void EnrollerTest::an_expired_invite_is_refused() {
  const Invite one = invite(1);
  now_ += 25h;

  QCOMPARE(refusal(request_for(one)), ErrorCode::kInviteExpired);
  QCOMPARE(store_->list()->at(0).uses_left, 1u);
}

void EnrollerTest::an_invite_of_another_run_is_refused() {
  EnrolRequest request = request_for(invite(1));
  request.run_id = "fedcba9876543210";

  QCOMPARE(refusal(request), ErrorCode::kInviteOtherRun);
}

void EnrollerTest::a_bad_signing_request_takes_no_use() {
  EnrolRequest request = request_for(invite(1));
  request.request_pem = "nonsense";

  QCOMPARE(refusal(request), ErrorCode::kInvalidArgument);
  QCOMPARE(store_->list()->at(0).uses_left, 1u);
}

void EnrollerTest::the_store_keeps_no_secret() {
  const Invite one = invite(1);
  database_->exec("PRAGMA wal_checkpoint(TRUNCATE)").ok();
  QFile file(directory_->filePath("hub.db"));
  QVERIFY(file.open(QIODevice::ReadOnly));

  const QByteArray content = file.readAll();

  QVERIFY(content.contains(one.id.c_str()));
  QVERIFY(!content.contains(QByteArray(reinterpret_cast<const char*>(one.secret.data()), 24)));
}

void EnrollerTest::messages_survive_the_wire() {
  const EnrolRequest request = request_for(invite(1));
  const EnrolResponse granted = enroller_->handle(request);
  const EnrolResponse refused = Error{ErrorCode::kInviteUsed, "used"};

  const auto body = [](const Bytes& frame) { return ByteView(frame).subspan(kEnrolHeaderBytes); };
  const Bytes request_frame = encode_frame(request);
  const auto request_read = decode_enrol_request(body(request_frame)).value();
  const Bytes granted_frame = encode_frame(granted);
  const auto granted_read = decode_enrol_response(body(granted_frame)).value();
  const Bytes refused_frame = encode_frame(refused);
  const auto refused_read = decode_enrol_response(body(refused_frame)).value();

  QCOMPARE(enrol_body_bytes(ByteView(request_frame).first(4)).value(), request_frame.size() - 4);
  QCOMPARE(request_read.secret, request.secret);
  QCOMPARE(request_read.request_pem, request.request_pem);
  QCOMPARE(request_read.display_name, request.display_name);
  QCOMPARE(std::get<EnrolGrant>(granted_read).certificate_pem, std::get<EnrolGrant>(granted).certificate_pem);
  QCOMPARE(std::get<EnrolGrant>(granted_read).hub, std::get<EnrolGrant>(granted).hub);
  QCOMPARE(std::get<Error>(refused_read).code, ErrorCode::kInviteUsed);
}

void EnrollerTest::a_question_about_the_run_survives_the_wire() {
  const auto body = [](const Bytes& frame) { return ByteView(frame).subspan(kEnrolHeaderBytes); };
  const Bytes question = encode_frame(AboutRequest{kEnrolVersion, "0123456789abcdef"});
  const RunAbout run{"0123456789abcdef", "first", "Ada", "llama, 4 layers of 128, 257 tokens", 800'000};
  const Bytes told = encode_frame(AboutResponse(run));
  const Bytes refused = encode_frame(AboutResponse(Error{ErrorCode::kInviteOtherRun, "another run"}));

  // Frozen: hubs and islands of before read it so.
  QCOMPARE(to_string(body(question)), std::string(R"({"about":"0123456789abcdef","version":1})"));
  QCOMPARE(to_string(body(told)),
           std::string(R"({"run":{"id":"0123456789abcdef","model":"llama, 4 layers of 128, 257 tokens",)"
                       R"("name":"first","operator":"Ada","parameters":800000}})"));
  const EnrolMessage asked = decode_enrol_message(body(question)).value();
  QCOMPARE(std::get<AboutRequest>(asked).run_id, std::string("0123456789abcdef"));
  const AboutResponse read = decode_about_response(body(told)).value();
  QCOMPARE(std::get<RunAbout>(read).operator_name, std::string("Ada"));
  QCOMPARE(std::get<RunAbout>(read).parameters, std::uint64_t{800'000});
  const AboutResponse refusal = decode_about_response(body(refused)).value();
  QCOMPARE(std::get<Error>(refusal).code, ErrorCode::kInviteOtherRun);
  QCOMPARE(decode_enrol_request(body(question)).error().code, ErrorCode::kProtocol);  // as a hub of before answers it
}

void EnrollerTest::a_malformed_message_is_refused_data() {
  QTest::addColumn<QByteArray>("body");
  QTest::newRow("empty") << QByteArray();
  QTest::newRow("no JSON") << QByteArray("{");
  QTest::newRow("no object") << QByteArray("[]");
  QTest::newRow("too deep") << QByteArray("{\"a\":[[[[[[[]]]]]]]}");
  QTest::newRow("missing fields") << QByteArray("{\"version\":1}");
  QTest::newRow("wrong type") << QByteArray(R"({"version":1,"run":3,"invite":"","secret":"","request":"","name":""})");
  QTest::newRow("secret no base64") << QByteArray(
      R"({"version":1,"run":"a","invite":"a","secret":"!","request":"","name":""})");
  QTest::newRow("name too long") << QByteArray(
                                        R"({"version":1,"run":"a","invite":"a","secret":"","request":"","name":")") +
                                        QByteArray(100, 'n') + "\"}";
  QTest::newRow("too long") << QByteArray(20'000, ' ') + "{}";
  QTest::newRow("about no run") << QByteArray(R"({"version":1,"about":7})");
  QTest::newRow("about a run that is no object") << QByteArray(R"({"run":"first"})");
  QTest::newRow("about too many parameters") << QByteArray(R"({"run":{"id":"a","name":"","parameters":-1}})");
}

void EnrollerTest::a_malformed_message_is_refused() {
  QFETCH(QByteArray, body);
  const auto bytes = as_bytes(std::string_view(body.constData(), static_cast<std::size_t>(body.size())));

  QCOMPARE(decode_enrol_request(bytes).error().code, ErrorCode::kProtocol);
  QCOMPARE(decode_enrol_response(bytes).error().code, ErrorCode::kProtocol);
  QCOMPARE(decode_enrol_message(bytes).error().code, ErrorCode::kProtocol);
  QCOMPARE(decode_about_response(bytes).error().code, ErrorCode::kProtocol);
}

void EnrollerTest::another_version_is_unsupported() {
  QCOMPARE(decode_enrol_request(as_bytes(R"({"version":2,"new":true})")).error().code, ErrorCode::kVersionUnsupported);
  QCOMPARE(decode_enrol_message(as_bytes(R"({"version":2,"about":"a"})")).error().code, ErrorCode::kVersionUnsupported);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::EnrollerTest)
#include "enroller_test.moc"
