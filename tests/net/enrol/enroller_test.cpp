#include "net/enrol/enroller.h"

#include <QTemporaryDir>
#include <QtTest>

#include "net/enrol/enrolment_store.h"
#include "net/tls/signature.h"
#include "net/tls/x509.h"
#include "tests/fakes/test_run.h"

using namespace std::chrono_literals;

namespace atl {

class EnrollerTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void a_good_invite_gives_a_certificate_of_the_run();
  void who_enrols_while_the_hubs_clock_is_ahead_can_connect_when_it_is_right();
  void an_invite_is_good_for_its_uses_and_no_more();
  void a_wrong_secret_is_unknown_and_takes_no_use();
  void an_unknown_id_is_unknown();
  void an_expired_invite_is_refused();
  void an_invite_of_another_run_is_refused();
  void a_bad_signing_request_takes_no_use();
  void the_same_key_and_invite_are_answered_alike_and_take_one_use();
  void a_key_that_comes_again_after_the_invites_end_is_refused();
  void a_key_that_came_by_another_invite_is_refused();
  void the_key_of_a_removed_island_is_refused();
  void an_island_that_cannot_be_entered_takes_no_use();
  void a_store_of_before_goes_on_with_its_islands();
  void the_store_keeps_no_secret();
  void messages_survive_the_wire();
  void a_malformed_message_is_refused();
  void a_question_about_the_run_survives_the_wire();
  void a_malformed_message_is_refused_data();
  void another_version_is_unsupported();

 private:
  static EnrolRequest request_for(const Invite& invite, const std::string& request_pem) {
    return {kEnrolVersion, invite.run_id, invite.id, invite.secret, request_pem, "lagoon"};
  }
  static EnrolRequest request_for(const Invite& invite) {
    return request_for(invite, make_signing_request().request_pem);
  }
  Invite invite(std::uint32_t uses) {
    const auto expires = std::chrono::floor<std::chrono::seconds>(now_) + 24h;
    return make_invite(run_.authority(), *store_, "test run", {{"127.0.0.1", 4711}}, uses, expires).value();
  }
  std::optional<Error> refused(const EnrolRequest& request) {
    const EnrolResponse response = enroller_->handle(request).value();
    const Error* error = std::get_if<Error>(&response);
    return error != nullptr ? std::optional(*error) : std::nullopt;
  }
  ErrorCode refusal(const EnrolRequest& request) {
    return refused(request).value_or(Error{ErrorCode::kInternal, ""}).code;
  }
  EnrolGrant granted(const EnrolRequest& request) {
    const EnrolResponse response = enroller_->handle(request).value();
    return std::get<EnrolGrant>(response);
  }

  TestRun run_;
  std::chrono::system_clock::time_point now_;
  std::unique_ptr<QTemporaryDir> directory_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<EnrolmentStore> store_;
  std::unique_ptr<Enroller> enroller_;
};

void EnrollerTest::init() {
  now_ = std::chrono::system_clock::now();
  directory_ = std::make_unique<QTemporaryDir>();
  database_ = std::make_unique<Database>(Database::open(directory_->filePath("hub.db").toStdString()).value());
  store_ = std::make_unique<EnrolmentStore>(EnrolmentStore::open(*database_).value());
  enroller_ = std::make_unique<Enroller>(run_.authority(), *store_, std::vector<Address>{{"127.0.0.1", 4711}},
                                         [this] { return now_; });
}

void EnrollerTest::a_good_invite_gives_a_certificate_of_the_run() {
  const EnrolResponse response = enroller_->handle(request_for(invite(1))).value();

  const auto& grant = std::get<EnrolGrant>(response);
  const auto certificate = parse_certificate(grant.certificate_pem).value();
  QCOMPARE(certified_name(certificate.get()).value(), grant.island.value);
  QVERIFY(is_enrolled_name(grant.island.value));
  QCOMPARE(grant.authority_pem, run_.authority().certificate_pem());
  QCOMPARE(grant.hub.at(0).port, std::uint16_t{4711});
}

void EnrollerTest::who_enrols_while_the_hubs_clock_is_ahead_can_connect_when_it_is_right() {
  const auto right = now_;
  now_ += 24h * 240;
  const Invite made_then = invite(1);

  const EnrolGrant grant = granted(request_for(made_then));

  const auto certificate = parse_certificate(grant.certificate_pem).value();
  QVERIFY(valid_from(certificate.get()) <= right);
  QVERIFY(valid_until(certificate.get()) > right);
}

void EnrollerTest::an_invite_is_good_for_its_uses_and_no_more() {
  const Invite two = invite(2);

  const EnrolResponse first = enroller_->handle(request_for(two)).value();
  const EnrolResponse second = enroller_->handle(request_for(two)).value();

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
  QCOMPARE(store_->invites()->at(0).uses_left, 1u);
  QVERIFY(std::holds_alternative<EnrolGrant>(enroller_->handle(request_for(one)).value()));
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
  QCOMPARE(store_->invites()->at(0).uses_left, 1u);
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
  QCOMPARE(store_->invites()->at(0).uses_left, 1u);
}

// The answer may have been lost, or an island may have gone down before it kept it.
void EnrollerTest::the_same_key_and_invite_are_answered_alike_and_take_one_use() {
  const Invite two = invite(2);
  const std::string key = make_signing_request().request_pem;
  const EnrolGrant first = granted(request_for(two, key));

  now_ += 1h;
  const EnrolGrant again = granted(request_for(two, key));

  QCOMPARE(again.island, first.island);
  QVERIFY(again.certificate_pem != first.certificate_pem);  // a fresh one
  const auto certificate = parse_certificate(again.certificate_pem).value();
  QCOMPARE(certified_name(certificate.get()).value(), first.island.value);
  QCOMPARE(store_->invites()->at(0).uses_left, 1u);
  QCOMPARE(store_->islands()->size(), std::size_t{1});
  QVERIFY(granted(request_for(two)).island != first.island);
  QCOMPARE(granted(request_for(two, key)).island, first.island);  // although no use is left
  QCOMPARE(refusal(request_for(two)), ErrorCode::kInviteUsed);
}

void EnrollerTest::a_key_that_comes_again_after_the_invites_end_is_refused() {
  const EnrolRequest request = request_for(invite(1));
  granted(request);

  now_ += 25h;

  QCOMPARE(refusal(request), ErrorCode::kInviteExpired);
}

void EnrollerTest::a_key_that_came_by_another_invite_is_refused() {
  const std::string key = make_signing_request().request_pem;
  const EnrolGrant first = granted(request_for(invite(1), key));
  const Invite other = invite(1);

  const std::optional<Error> why = refused(request_for(other, key));

  QVERIFY(why.has_value());
  QCOMPARE(why->code, ErrorCode::kConflict);
  QVERIFY2(why->message.find(first.island.value) != std::string::npos, why->message.c_str());
  QCOMPARE(store_->invites()->at(0).uses_left, 1u);
  EnrolRequest guess = request_for(other, key);
  guess.secret.back() ^= std::byte{1};
  QCOMPARE(refusal(guess), ErrorCode::kInviteUnknown);  // who has no invite learns nothing of keys
}

void EnrollerTest::the_key_of_a_removed_island_is_refused() {
  const Invite two = invite(2);
  const std::string key = make_signing_request().request_pem;
  QVERIFY(store_->remove_island(granted(request_for(two, key)).island).ok());

  for (const Invite& with : {two, invite(1)}) {
    const std::optional<Error> why = refused(request_for(with, key));

    QVERIFY(why.has_value());
    QCOMPARE(why->code, ErrorCode::kConflict);
    QVERIFY2(why->message.find("was removed by the run's operator") != std::string::npos, why->message.c_str());
  }
  const std::vector<InviteRecord> invites = store_->invites().value();
  for (const InviteRecord& left : invites) QCOMPARE(left.uses_left, 1u);
  QVERIFY(!refused(request_for(two)));  // with a new key
}

void EnrollerTest::an_island_that_cannot_be_entered_takes_no_use() {
  const EnrolRequest request = request_for(invite(1));
  QVERIFY(database_->exec("CREATE TRIGGER full BEFORE INSERT ON island BEGIN SELECT RAISE(ABORT, 'no'); END").ok());

  const auto failed = enroller_->handle(request);

  QVERIFY(!failed.ok());  // the store's failure, and not a verdict on the request
  QCOMPARE(failed.error().code, ErrorCode::kConflict);
  QCOMPARE(store_->invites()->at(0).uses_left, 1u);
  QVERIFY(database_->exec("DROP TRIGGER full").ok());
  QVERIFY(!refused(request));
}

void EnrollerTest::a_store_of_before_goes_on_with_its_islands() {
  Database before = Database::open(directory_->filePath("before.db").toStdString()).value();
  QVERIFY(before
              .exec("CREATE TABLE island (id TEXT PRIMARY KEY, display_name TEXT NOT NULL, key_sha256 TEXT NOT NULL "
                    "UNIQUE, enrolled_at INTEGER NOT NULL, removed INTEGER NOT NULL DEFAULT 0); "
                    "INSERT INTO island VALUES ('isl-0123456789abcdef', 'reef', 'ab', 7, 0)")
              .ok());

  EnrolmentStore store = EnrolmentStore::open(before).value();

  QCOMPARE(store.find_island("ab").value()->display_name, std::string("reef"));
  const auto one = make_invite(run_.authority(), store, "run", {{"127.0.0.1", 1}}, 1,
                               std::chrono::floor<std::chrono::seconds>(now_) + 24h);
  const auto second = EnrolmentStore::open(before);  // as another process does
  QVERIFY(second.ok());
  const auto now = std::chrono::floor<std::chrono::seconds>(now_);
  const EnrolOutcome outcome = store.enrol(one->id, one->secret, {IslandId{"isl-1"}, "lagoon", "ab", now}).value();
  QCOMPARE(outcome.refusal->code, ErrorCode::kConflict);
  QVERIFY(!store.enrol(one->id, one->secret, {IslandId{"isl-1"}, "lagoon", "cd", now})->refusal);
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
  const EnrolResponse granted = enroller_->handle(request).value();
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
  QVERIFY(std::get<RunAbout>(read).needs.empty());  // of a hub that does not say
  RunAbout asking = run;
  asking.needs = R"({"parameters":800000})";
  const AboutResponse asks = decode_about_response(body(encode_frame(AboutResponse(asking)))).value();
  QCOMPARE(std::get<RunAbout>(asks).needs, asking.needs);
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
  QTest::newRow("about needs that are no text")
      << QByteArray(R"({"run":{"id":"a","name":"","parameters":1,"needs":{}}})");
  QTest::newRow("about needs without end") << QByteArray(R"({"run":{"id":"a","name":"","parameters":1,"needs":")") +
                                                  QByteArray(int(kMaxRunNeeds) + 1, ' ') + QByteArray(R"("}})");
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
