#include "net/tls/context.h"

#include <QtTest>

#include "net/tls/signature.h"
#include "net/tls/x509.h"
#include "tests/fakes/test_run.h"
#include "tests/net/tls/handshake.h"

using namespace std::chrono_literals;

namespace atl {
namespace {

Validity around_now(std::chrono::hours from, std::chrono::hours until) {
  const auto now = std::chrono::system_clock::now();
  return {now + from, now + until};
}

std::string protocols(std::initializer_list<std::string_view> names) {
  std::string wire;
  for (const auto name : names) {
    wire += static_cast<char>(name.size());
    wire += name;
  }
  return wire;
}

// A client that is as open as TLS allows: no certificate, no verification, these protocols.
UniqueSslContext careless_client(const std::string& alpn) {
  UniqueSslContext context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  if (!alpn.empty()) {
    SSL_CTX_set_alpn_protos(context.get(), reinterpret_cast<const unsigned char*>(alpn.data()),
                            static_cast<unsigned>(alpn.size()));
  }
  return context;
}

}  // namespace

class TlsContextTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void members_of_one_run_meet_and_learn_each_others_names();
  void hub_and_island_meet_over_http();
  void another_librarys_context_is_set_up_like_our_own();
  void no_connection_without_a_certificate_gets_further();
  void no_connection_without_a_certificate_gets_further_data();
  void a_certificate_of_another_run_gets_no_further();
  void a_certificate_outside_its_dates_gets_no_further();
  void a_certificate_outside_its_dates_gets_no_further_data();
  void a_tls_1_2_client_gets_no_further();
  void a_server_of_another_run_is_refused();
  void an_authority_of_the_same_name_with_another_key_gets_no_further();
  void nothing_is_left_to_resume_a_session_with();
  void enrolment_needs_no_certificate();
  void enrolment_with_another_pin_is_refused();
  void an_island_cannot_pose_as_hub_for_enrolment();
  void the_pinned_authority_in_the_chain_does_not_vouch_for_another_leaf();
  void an_unverified_peer_has_no_name();

 private:
  TestRun run_;
  TestRun other_run_{"fedcba9876543210"};
};

void TlsContextTest::members_of_one_run_meet_and_learn_each_others_names() {
  const auto server = TlsContext::island_server(run_.island(1)).value();
  const auto client = TlsContext::client(run_.island(2), kAlpnRing).value();

  const Handshake shaken = shake_hands(client.native(), server.native());

  QVERIFY(shaken.client.read_a_byte && shaken.server.read_a_byte);
  QCOMPARE(verified_peer(shaken.client.ssl.get())->name, TestRun::island_id(1));
  QCOMPARE(verified_peer(shaken.server.ssl.get())->name, TestRun::island_id(2));
  QCOMPARE(negotiated_alpn(shaken.server.ssl.get()), kAlpnRingReceipts);
  QCOMPARE(negotiated_alpn(shaken.client.ssl.get()), kAlpnRingReceipts);
}

void TlsContextTest::hub_and_island_meet_over_http() {
  const auto server = TlsContext::hub_server(run_.hub()).value();
  const auto client = TlsContext::client(run_.island(1), kAlpnHttp).value();

  const Handshake shaken = shake_hands(client.native(), server.native());

  QVERIFY(shaken.client.read_a_byte && shaken.server.read_a_byte);
  QCOMPARE(verified_peer(shaken.client.ssl.get())->name.value, std::string(kHubName));
  QCOMPARE(negotiated_alpn(shaken.server.ssl.get()), kAlpnHttp);
  // What the hub signs, an island verifies with the certificate that this connection showed.
  const auto shown = peer_certificate_pem(shaken.client.ssl.get()).value();
  const auto signature = sign_message(run_.hub(), as_bytes("record")).value();
  QVERIFY(verify_hub_signature(run_.island(1), shown, as_bytes("record"), signature).ok());
}

// As libcurl may hand it over: open to old versions, resuming sessions, trusting somebody else.
void TlsContextTest::another_librarys_context_is_set_up_like_our_own() {
  UniqueSslContext foreign = careless_client(protocols({"h2"}));
  const UniqueCertificate trusted = parse_certificate(other_run_.island(1).authority_pem).value();
  QCOMPARE(X509_STORE_add_cert(SSL_CTX_get_cert_store(foreign.get()), trusted.get()), 1);
  SSL_CTX_set_session_cache_mode(foreign.get(), SSL_SESS_CACHE_CLIENT);
  const auto own = TlsContext::client(run_.island(2), kAlpnHttp).value();

  QVERIFY(set_up_client(foreign.get(), run_.island(2), kAlpnHttp).ok());

  QCOMPARE(SSL_CTX_get_min_proto_version(foreign.get()), SSL_CTX_get_min_proto_version(own.native()));
  QCOMPARE(SSL_CTX_get_max_proto_version(foreign.get()), SSL_CTX_get_max_proto_version(own.native()));
  QCOMPARE(SSL_CTX_get_options(foreign.get()), SSL_CTX_get_options(own.native()));
  QCOMPARE(SSL_CTX_get_verify_mode(foreign.get()), SSL_CTX_get_verify_mode(own.native()));
  QVERIFY(SSL_CTX_get_verify_callback(foreign.get()) == SSL_CTX_get_verify_callback(own.native()));
  QCOMPARE(SSL_CTX_get_session_cache_mode(foreign.get()), SSL_CTX_get_session_cache_mode(own.native()));
  const auto server = TlsContext::island_server(run_.island(1)).value();
  const Handshake met = shake_hands(foreign.get(), server.native());
  QVERIFY(met.client.read_a_byte && met.server.read_a_byte);
  QCOMPARE(verified_peer(met.server.ssl.get())->name, TestRun::island_id(2));
  QCOMPARE(negotiated_alpn(met.client.ssl.get()), kAlpnHttp);
  const auto stranger = TlsContext::island_server(other_run_.island(1)).value();
  QVERIFY(!shake_hands(foreign.get(), stranger.native()).got_further());
}

void TlsContextTest::no_connection_without_a_certificate_gets_further_data() {
  QTest::addColumn<bool>("hub");
  QTest::addColumn<QByteArray>("alpn");
  const auto row = [](const char* name, bool hub, const std::string& alpn) {
    QTest::newRow(name) << hub << QByteArray(alpn.data(), static_cast<int>(alpn.size()));
  };
  row("hub, http", true, protocols({kAlpnHttp}));
  row("hub, no ALPN", true, "");
  row("hub, enrol and http", true, protocols({kAlpnEnrol, kAlpnHttp}));
  row("hub, http and enrol", true, protocols({kAlpnHttp, kAlpnEnrol}));
  row("hub, enrol twice", true, protocols({kAlpnEnrol, kAlpnEnrol}));
  row("hub, enrol and unknown", true, protocols({kAlpnEnrol, "h2"}));
  row("hub, unknown", true, protocols({"h2"}));
  row("hub, ring", true, protocols({kAlpnRing}));
  row("island, ring", false, protocols({kAlpnRing}));
  row("island, ring with receipts", false, protocols({kAlpnRingReceipts, kAlpnRing}));
  row("island, http", false, protocols({kAlpnHttp}));
  row("island, enrol", false, protocols({kAlpnEnrol}));
  row("island, no ALPN", false, "");
}

void TlsContextTest::no_connection_without_a_certificate_gets_further() {
  QFETCH(bool, hub);
  QFETCH(QByteArray, alpn);
  const auto server = (hub ? TlsContext::hub_server(run_.hub()) : TlsContext::island_server(run_.island(1))).value();
  const auto client = careless_client(alpn.toStdString());

  const Handshake shaken = shake_hands(client.get(), server.native());

  QVERIFY(!shaken.got_further());
  QVERIFY(!shaken.server.shaken);
  QVERIFY(shaken.server.error.has_value());
  QVERIFY(shaken.client.error.has_value());
  QVERIFY(!verified_peer(shaken.server.ssl.get()).ok());
}

void TlsContextTest::a_certificate_of_another_run_gets_no_further() {
  const auto server = TlsContext::island_server(run_.island(1)).value();
  const auto client = TlsContext::client(other_run_.island(1), kAlpnRing).value();
  SSL_CTX_set_verify(client.native(), SSL_VERIFY_NONE, nullptr);  // a stranger that trusts anybody

  const Handshake shaken = shake_hands(client.native(), server.native());

  QVERIFY(!shaken.got_further());
  QCOMPARE(shaken.server.error->code, ErrorCode::kCertificate);
  QVERIFY(shaken.server.error->message.find("another run") != std::string::npos);
  QCOMPARE(shaken.client.error->code, ErrorCode::kCertificate);
}

void TlsContextTest::a_certificate_outside_its_dates_gets_no_further_data() {
  QTest::addColumn<int>("from");
  QTest::addColumn<int>("until");
  QTest::addColumn<QString>("says");
  QTest::newRow("expired") << -48 << -1 << "has expired";
  QTest::newRow("not yet valid") << 24 << 48 << "not valid yet";
}

void TlsContextTest::a_certificate_outside_its_dates_gets_no_further() {
  QFETCH(int, from);
  QFETCH(int, until);
  QFETCH(QString, says);
  const Identity outdated =
      run_.issue(TestRun::island_id(7), around_now(std::chrono::hours(from), std::chrono::hours(until)));
  const auto server = TlsContext::hub_server(run_.hub()).value();
  const auto client = TlsContext::client(outdated, kAlpnHttp).value();

  const Handshake shaken = shake_hands(client.native(), server.native());

  QVERIFY(!shaken.got_further());
  QCOMPARE(shaken.server.error->code, ErrorCode::kCertificate);
  QVERIFY(QString::fromStdString(shaken.server.error->message).contains(says));
  QVERIFY(QString::fromStdString(shaken.client.error->message).contains("clock"));
}

void TlsContextTest::a_tls_1_2_client_gets_no_further() {
  const auto server = TlsContext::island_server(run_.island(1)).value();
  const auto client = TlsContext::client(run_.island(2), kAlpnRing).value();

  const Handshake shaken = shake_hands(client.native(), server.native(), [](SSL* ssl) {
    SSL_set_min_proto_version(ssl, TLS1_2_VERSION);
    SSL_set_max_proto_version(ssl, TLS1_2_VERSION);
  });

  QVERIFY(!shaken.got_further());
  QVERIFY(!shaken.client.shaken);
  QVERIFY(shaken.client.error->message.find("TLS 1.3") != std::string::npos);
}

void TlsContextTest::a_server_of_another_run_is_refused() {
  const auto server = TlsContext::hub_server(other_run_.hub()).value();
  const auto client = TlsContext::client(run_.island(1), kAlpnHttp).value();

  const Handshake shaken = shake_hands(client.native(), server.native());

  QVERIFY(!shaken.got_further());
  QCOMPARE(shaken.client.error->code, ErrorCode::kCertificate);
  QVERIFY(!shaken.client.shaken);
}

void TlsContextTest::an_authority_of_the_same_name_with_another_key_gets_no_further() {
  TestRun impostor_run(run_.authority().run_id());
  const auto server = TlsContext::hub_server(run_.hub()).value();
  const auto client = TlsContext::client(impostor_run.island(1), kAlpnHttp).value();
  SSL_CTX_set_verify(client.native(), SSL_VERIFY_NONE, nullptr);

  const Handshake shaken = shake_hands(client.native(), server.native());

  QVERIFY(!shaken.got_further());
  QCOMPARE(shaken.server.error->code, ErrorCode::kCertificate);
}

void TlsContextTest::nothing_is_left_to_resume_a_session_with() {
  const auto server = TlsContext::hub_server(run_.hub()).value();
  const auto client = TlsContext::client(run_.island(1), kAlpnHttp).value();

  const Handshake shaken = shake_hands(client.native(), server.native());

  QVERIFY(shaken.got_further());
  QCOMPARE(SSL_SESSION_is_resumable(SSL_get_session(shaken.client.ssl.get())), 0);
  QCOMPARE(SSL_get_num_tickets(shaken.server.ssl.get()), std::size_t{0});
}

void TlsContextTest::enrolment_needs_no_certificate() {
  const auto server = TlsContext::hub_server(run_.hub()).value();
  const auto client = TlsContext::enrol_client(run_.authority().pin(), run_.authority().run_id()).value();

  const Handshake shaken = shake_hands(client.native(), server.native());

  QVERIFY(shaken.client.read_a_byte && shaken.server.read_a_byte);
  QCOMPARE(negotiated_alpn(shaken.server.ssl.get()), kAlpnEnrol);
  QCOMPARE(verified_peer(shaken.client.ssl.get())->name.value, std::string(kHubName));
  QCOMPARE(verified_peer(shaken.server.ssl.get()).error().code, ErrorCode::kCertificate);
}

void TlsContextTest::enrolment_with_another_pin_is_refused() {
  const auto server = TlsContext::hub_server(run_.hub()).value();
  const auto other_key = TlsContext::enrol_client(other_run_.authority().pin(), run_.authority().run_id()).value();
  const auto other_run =
      TlsContext::enrol_client(other_run_.authority().pin(), other_run_.authority().run_id()).value();

  const Handshake by_key = shake_hands(other_key.native(), server.native());
  const Handshake by_run = shake_hands(other_run.native(), server.native());

  QVERIFY(!by_key.got_further() && !by_run.got_further());
  QCOMPARE(by_key.client.error->code, ErrorCode::kPinMismatch);
  QCOMPARE(by_run.client.error->code, ErrorCode::kInviteOtherRun);
}

void TlsContextTest::an_island_cannot_pose_as_hub_for_enrolment() {
  const auto server = TlsContext::hub_server(run_.island(3)).value();
  const auto client = TlsContext::enrol_client(run_.authority().pin(), run_.authority().run_id()).value();

  const Handshake shaken = shake_hands(client.native(), server.native());

  QVERIFY(!shaken.got_further());
  QCOMPARE(shaken.client.error->code, ErrorCode::kCertificate);
  QVERIFY(shaken.client.error->message.find("not the hub's") != std::string::npos);
}

void TlsContextTest::the_pinned_authority_in_the_chain_does_not_vouch_for_another_leaf() {
  Identity stolen = other_run_.hub();
  const auto server = TlsContext::hub_server(stolen).value();
  const auto authority = parse_certificate(run_.authority().certificate_pem()).value();
  SSL_CTX_add1_chain_cert(server.native(), authority.get());
  const auto client = TlsContext::enrol_client(run_.authority().pin(), run_.authority().run_id()).value();

  const Handshake shaken = shake_hands(client.native(), server.native());

  QVERIFY(!shaken.got_further());
  QCOMPARE(shaken.client.error->code, ErrorCode::kCertificate);
}

void TlsContextTest::an_unverified_peer_has_no_name() {
  const auto server = TlsContext::hub_server(run_.hub()).value();
  const auto client = careless_client(protocols({kAlpnEnrol}));

  const Handshake shaken = shake_hands(client.get(), server.native());

  QVERIFY(shaken.got_further());
  QCOMPARE(verified_peer(shaken.client.ssl.get()).error().code, ErrorCode::kCertificate);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::TlsContextTest)
#include "tls_context_test.moc"
