#include "net/tls/authority.h"

#include <sys/stat.h>

#include <QTemporaryDir>
#include <QtTest>

#include "net/base/file.h"
#include "net/tls/signature.h"
#include "net/tls/x509.h"
#include "tests/fakes/test_run.h"

namespace atl {

class AuthorityTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() { directory_ = std::make_unique<QTemporaryDir>(); }
  void a_saved_authority_loads_with_the_same_pin();
  void secret_files_are_private();
  void a_saved_identity_loads();
  void a_home_without_identity_is_not_joined();
  void a_foreign_key_beside_a_certificate_is_corrupt();
  void the_request_does_not_choose_its_name();
  void a_renewed_certificate_is_for_the_same_name_and_key();
  void only_an_islands_certificate_of_this_run_is_renewed();
  void a_certificate_of_another_key_or_no_later_end_is_no_renewal();
  void renewal_is_due_after_a_third_of_the_certificates_life();
  void a_certificate_that_is_not_valid_yet_is_due_for_renewal();
  void a_clock_that_is_wrong_makes_no_certificate_that_is_not_valid_when_it_is_right_data();
  void a_clock_that_is_wrong_makes_no_certificate_that_is_not_valid_when_it_is_right();
  void a_renewal_begins_no_later_and_ends_no_sooner_than_what_it_replaces();
  void an_authority_of_another_time_says_which_clock_is_wrong();
  void names_that_are_no_islands_are_refused();
  void names_that_are_no_islands_are_refused_data();
  void a_malformed_request_is_refused();
  void a_changed_message_or_signature_does_not_verify();
  void only_the_hubs_signature_counts();

 private:
  std::filesystem::path path(const char* name) const {
    return std::filesystem::path(directory_->path().toStdString()) / name;
  }
  std::unique_ptr<QTemporaryDir> directory_;
  TestRun run_;
};

void AuthorityTest::a_saved_authority_loads_with_the_same_pin() {
  QVERIFY(run_.authority().save(path("hub")).ok());

  const auto loaded = CertificateAuthority::load(path("hub"));

  QVERIFY(loaded.ok());
  QCOMPARE(loaded->pin(), run_.authority().pin());
  QCOMPARE(loaded->run_id(), run_.authority().run_id());
  const auto made = make_signing_request();
  QVERIFY(loaded->sign_request(made.request_pem, TestRun::island_id(1), {}).ok());
}

void AuthorityTest::secret_files_are_private() {
  QVERIFY(run_.authority().save(path("hub")).ok());
  QVERIFY(save_identity(path("island"), run_.island(1)).ok());

  for (const auto& file : {path("hub") / "authority-key.pem", path("island") / "key.pem"}) {
    struct stat info {};
    QCOMPARE(::stat(file.c_str(), &info), 0);
    QCOMPARE(info.st_mode & 0777, 0600u);
  }
}

void AuthorityTest::a_saved_identity_loads() {
  QVERIFY(save_identity(path("island"), run_.island(4)).ok());

  const auto loaded = load_identity(path("island"));

  QVERIFY(loaded.ok());
  QCOMPARE(loaded->name, TestRun::island_id(4));
  QCOMPARE(loaded->run, run_.authority().run_id());
  QCOMPARE(loaded->key_pem, run_.island(4).key_pem);
}

void AuthorityTest::a_home_without_identity_is_not_joined() {
  QCOMPARE(load_identity(path("nowhere")).error().code, ErrorCode::kNotJoined);
}

void AuthorityTest::a_foreign_key_beside_a_certificate_is_corrupt() {
  Identity mixed = run_.island(1);
  mixed.key_pem = run_.island(2).key_pem;
  QVERIFY(save_identity(path("island"), mixed).ok());

  QCOMPARE(load_identity(path("island")).error().code, ErrorCode::kCorrupt);
}

void AuthorityTest::the_request_does_not_choose_its_name() {
  const UniqueKey key = generate_key();
  const UniqueRequest request(X509_REQ_new());
  X509_REQ_set_pubkey(request.get(), key.get());
  X509_NAME_add_entry_by_txt(X509_REQ_get_subject_name(request.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(kHubName), -1, -1, 0);
  X509_REQ_sign(request.get(), key.get(), EVP_sha256());

  const auto pem =
      run_.authority().sign_request(to_pem(request.get()), TestRun::island_id(5),
                                    Validity::starting(std::chrono::system_clock::now(), std::chrono::hours(1)));

  const auto certificate = parse_certificate(pem.value()).value();
  QCOMPARE(certified_name(certificate.get()).value(), TestRun::island_id(5).value);
}

void AuthorityTest::names_that_are_no_islands_are_refused_data() {
  QTest::addColumn<QString>("name");
  QTest::newRow("the hub") << "atoll-hub";
  QTest::newRow("empty") << "";
  QTest::newRow("short") << "isl-0123";
  QTest::newRow("upper case") << "isl-0123456789ABCDEF";
  QTest::newRow("a second name") << "isl-0123456789abcdef,DNS:atoll-hub";
}

namespace {

const auto kNow = std::chrono::system_clock::now();

Validity until(std::chrono::hours from_now) { return Validity::starting(kNow, from_now); }

}  // namespace

void AuthorityTest::a_renewed_certificate_is_for_the_same_name_and_key() {
  const Identity before = run_.issue(TestRun::island_id(1), until(std::chrono::hours(1)));

  const auto renewed = run_.authority().renew(before.certificate_pem, until(std::chrono::hours(48)));
  QVERIFY2(renewed.ok(), renewed.ok() ? "" : renewed.error().message.c_str());
  const auto after = with_certificate(before, *renewed);

  QVERIFY2(after.ok(), after.ok() ? "" : after.error().message.c_str());
  QCOMPARE(after->key_pem, before.key_pem);
  QCOMPARE(after->name, before.name);
  QVERIFY(after->certificate_pem != before.certificate_pem);
  QVERIFY(save_identity(path("island"), *after).ok());
  QVERIFY(load_identity(path("island")).ok());
}

void AuthorityTest::only_an_islands_certificate_of_this_run_is_renewed() {
  TestRun other("fedcba9876543210");

  const auto foreign = run_.authority().renew(other.island(1).certificate_pem, until(std::chrono::hours(48)));
  const auto hub = run_.authority().renew(run_.hub().certificate_pem, until(std::chrono::hours(48)));

  QVERIFY(!foreign.ok());
  QCOMPARE(foreign.error().code, ErrorCode::kCertificate);
  QVERIFY(!hub.ok());
  QCOMPARE(hub.error().code, ErrorCode::kCertificate);
}

void AuthorityTest::a_certificate_of_another_key_or_no_later_end_is_no_renewal() {
  const Identity before = run_.issue(TestRun::island_id(1), until(std::chrono::hours(48)));
  const Identity another_key = run_.issue(TestRun::island_id(1), until(std::chrono::hours(96)));
  const auto shorter = run_.authority().renew(before.certificate_pem, until(std::chrono::hours(24)));
  QVERIFY(shorter.ok());

  for (const std::string& pem : {another_key.certificate_pem, *shorter}) {
    const auto after = with_certificate(before, pem);
    QVERIFY(!after.ok());
    QCOMPARE(after.error().code, ErrorCode::kCertificate);
  }
}

void AuthorityTest::renewal_is_due_after_a_third_of_the_certificates_life() {
  const Identity island = run_.issue(TestRun::island_id(1), {kNow, kNow + std::chrono::hours(90)});

  QVERIFY(!is_due_for_renewal(island, kNow + std::chrono::hours(29)));
  QVERIFY(is_due_for_renewal(island, kNow + std::chrono::hours(31)));
}

void AuthorityTest::a_certificate_that_is_not_valid_yet_is_due_for_renewal() {
  const Identity island =
      run_.issue(TestRun::island_id(1), {kNow + std::chrono::hours(1), kNow + std::chrono::days(90)});

  QVERIFY(is_not_yet_valid(island, kNow));
  QVERIFY(is_due_for_renewal(island, kNow));
  QVERIFY(!is_not_yet_valid(island, kNow + std::chrono::hours(2)));
  QVERIFY(!is_due_for_renewal(island, kNow + std::chrono::hours(2)));
}

void AuthorityTest::a_clock_that_is_wrong_makes_no_certificate_that_is_not_valid_when_it_is_right_data() {
  QTest::addColumn<int>("days_ahead");
  QTest::newRow("right") << 0;
  QTest::newRow("eight months ahead") << 240;
  QTest::newRow("since 1970") << -365 * 60;
}

// What a hub makes: its own certificate, an island's at its enrolment, and that one's renewal.
void AuthorityTest::a_clock_that_is_wrong_makes_no_certificate_that_is_not_valid_when_it_is_right() {
  QFETCH(const int, days_ahead);
  const auto clock = kNow + std::chrono::days(days_ahead);
  const CertificateAuthority& authority = run_.authority();
  const Validity valid = authority.validity(clock, std::chrono::days(3650));
  const KeyAndRequest key = make_signing_request();

  const std::string hub = authority.make_hub_identity(valid)->certificate_pem;
  const std::string island = *authority.sign_request(key.request_pem, TestRun::island_id(1), valid);

  for (const std::string& pem : {hub, island, *authority.renew(island, valid)}) {
    const UniqueCertificate certificate = std::move(*parse_certificate(pem));
    QVERIFY(valid_from(certificate.get()) <= kNow);
    QVERIFY(valid_until(certificate.get()) > kNow);
  }
}

void AuthorityTest::a_renewal_begins_no_later_and_ends_no_sooner_than_what_it_replaces() {
  const Identity before =
      run_.issue(TestRun::island_id(1), {kNow - std::chrono::days(30), kNow + std::chrono::days(60)});
  const UniqueCertificate old = std::move(*parse_certificate(before.certificate_pem));
  const Validity ahead{kNow + std::chrono::days(240), kNow + std::chrono::days(330)};
  const Validity behind{kNow - std::chrono::days(900), kNow - std::chrono::days(810)};

  for (const Validity& validity : {ahead, behind}) {
    const UniqueCertificate renewed =
        std::move(*parse_certificate(*run_.authority().renew(before.certificate_pem, validity)));

    QVERIFY(valid_from(renewed.get()) <= valid_from(old.get()));
    QVERIFY(valid_until(renewed.get()) >= valid_until(old.get()));
  }
}

void AuthorityTest::an_authority_of_another_time_says_which_clock_is_wrong() {
  QVERIFY(run_.authority().check_time(kNow).ok());

  for (const auto clock :
       {std::chrono::system_clock::time_point(kSurelyPast) - std::chrono::days(1), kNow + std::chrono::days(4000)}) {
    const Status checked = run_.authority().check_time(clock);
    QVERIFY(!checked.ok());
    QCOMPARE(checked.error().code, ErrorCode::kCertificate);
    QVERIFY2(checked.error().message.find("set the clock") != std::string::npos, checked.error().message.c_str());
  }
}

void AuthorityTest::names_that_are_no_islands_are_refused() {
  QFETCH(QString, name);
  const auto made = make_signing_request();

  const auto signed_pem = run_.authority().sign_request(made.request_pem, IslandId{name.toStdString()}, {});

  QCOMPARE(signed_pem.error().code, ErrorCode::kInvalidArgument);
}

void AuthorityTest::a_malformed_request_is_refused() {
  std::string damaged = make_signing_request().request_pem;
  // The last base64 line holds the signature: another request's signature does not fit this key.
  const std::string other = make_signing_request().request_pem;
  const auto line = damaged.rfind('\n', damaged.rfind("-----END") - 2) + 1;
  damaged = damaged.substr(0, line) + other.substr(other.rfind('\n', other.rfind("-----END") - 2) + 1);

  QVERIFY(!run_.authority().sign_request(damaged, TestRun::island_id(1), {}).ok());
  QCOMPARE(run_.authority().sign_request("nonsense", TestRun::island_id(1), {}).error().code,
           ErrorCode::kInvalidArgument);
  QVERIFY(!run_.authority().sign_request(std::string(1 << 20, 'x'), TestRun::island_id(1), {}).ok());
}

void AuthorityTest::a_changed_message_or_signature_does_not_verify() {
  Bytes signature = sign_message(run_.hub(), as_bytes("round 3")).value();
  const std::string& hub = run_.hub().certificate_pem;

  QVERIFY(verify_hub_signature(run_.island(1), hub, as_bytes("round 3"), signature).ok());
  QCOMPARE(verify_hub_signature(run_.island(1), hub, as_bytes("round 4"), signature).error().code, ErrorCode::kCorrupt);
  signature.back() ^= std::byte{1};
  QCOMPARE(verify_hub_signature(run_.island(1), hub, as_bytes("round 3"), signature).error().code, ErrorCode::kCorrupt);
}

void AuthorityTest::only_the_hubs_signature_counts() {
  TestRun other("fedcba9876543210");
  const auto by_island = sign_message(run_.island(2), as_bytes("record")).value();
  const auto by_other_hub = sign_message(other.hub(), as_bytes("record")).value();

  const auto island =
      verify_hub_signature(run_.island(1), run_.island(2).certificate_pem, as_bytes("record"), by_island);
  const auto other_hub =
      verify_hub_signature(run_.island(1), other.hub().certificate_pem, as_bytes("record"), by_other_hub);

  QCOMPARE(island.error().code, ErrorCode::kCertificate);
  QCOMPARE(other_hub.error().code, ErrorCode::kCertificate);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::AuthorityTest)
#include "authority_test.moc"
