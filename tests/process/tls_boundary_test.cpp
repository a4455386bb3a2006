// The two ports of a run under way, from outside: who has no certificate of the run's authority gets no further than
// the TLS handshake, but for the hub's enrolment, which does nothing but enrol. A raw OpenSSL client, none of Atoll's
// own.
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>

#include <QtCore/QProcess>
#include <QtTest/QTest>

#include "net/tls/authority.h"
#include "net/tls/context.h"
#include "net/tls/signature.h"
#include "net/tls/x509.h"
#include "net/transport/socket.h"
#include "tests/process/local_run.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr std::chrono::seconds kLimit{60};
constexpr std::chrono::seconds kAnswerLimit{20};  // longer than the listeners' own deadlines

struct SslDeleter {
  void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
};

// What came back after the handshake, in plain text, until the other end closed.
struct Answer {
  bool connected = false;
  bool closed = false;  // by the other end, within kAnswerLimit
  std::string text;
};

struct Client {
  const Identity* identity = nullptr;  // or no certificate
  std::vector<std::string> alpn;
  int max_version = TLS1_3_VERSION;
  std::string says;
};

UniqueSslContext context_of(const Client& client) {
  UniqueSslContext context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_max_proto_version(context.get(), client.max_version);
  std::string protocols;
  for (const std::string& name : client.alpn) protocols += static_cast<char>(name.size()) + name;
  if (!protocols.empty()) {
    SSL_CTX_set_alpn_protos(context.get(), reinterpret_cast<const unsigned char*>(protocols.data()),
                            static_cast<unsigned>(protocols.size()));
  }
  if (client.identity != nullptr) {
    const UniqueCertificate certificate = require(parse_certificate(client.identity->certificate_pem));
    const UniqueKey key = require(parse_key(client.identity->key_pem));
    SSL_CTX_use_certificate(context.get(), certificate.get());
    SSL_CTX_use_PrivateKey(context.get(), key.get());
  }
  return context;
}

// Dials, shakes hands, says its words, and reads: a TLS 1.3 client's handshake ends before the server's verdict.
Answer ask(const Address& address, const Client& client) {
  Answer answer;
  const Deadline deadline = Deadline::after(kAnswerLimit);
  const UniqueFd socket = require(connect_tcp(address, deadline, nullptr, "test client"));
  answer.connected = true;
  const UniqueSslContext context = context_of(client);
  const std::unique_ptr<SSL, SslDeleter> ssl(SSL_new(context.get()));
  SSL_set_fd(ssl.get(), socket.get());
  SSL_set_connect_state(ssl.get());
  std::size_t written = 0;
  while (!deadline.expired()) {
    ERR_clear_error();
    std::array<char, 4096> buffer{};
    int result = 0;
    if (written < client.says.size()) {
      result = SSL_write(ssl.get(), client.says.data() + written, static_cast<int>(client.says.size() - written));
      if (result > 0) written += static_cast<std::size_t>(result);
    } else {
      result = SSL_read(ssl.get(), buffer.data(), static_cast<int>(buffer.size()));
      if (result > 0) answer.text.append(buffer.data(), static_cast<std::size_t>(result));
    }
    if (result > 0) continue;
    const int error = SSL_get_error(ssl.get(), result);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
      answer.closed = true;
      break;
    }
    pollfd poll{socket.get(), static_cast<short>(error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT), 0};
    ::poll(&poll, 1, 100);
  }
  ERR_clear_error();
  return answer;
}

RunConfig run_config() {
  RunConfig run = small_run(2);
  run.inner_steps = 4;
  return run;
}

std::uint16_t free_port() {
  const UniqueFd listener = require(listen_tcp({"127.0.0.1", 0}));
  return local_port(listener.get());
}

const std::string kHttpRequest = "GET /mesh HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n";

}  // namespace

class TlsBoundaryTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void cleanupTestCase();
  void a_stranger_gets_no_further_than_the_handshake_data();
  void a_stranger_gets_no_further_than_the_handshake();
  void a_member_of_the_run_is_answered();
  void a_certificate_that_is_not_in_the_roster_learns_nothing();
  void the_enrolment_does_nothing_but_enrol_data();
  void the_enrolment_does_nothing_but_enrol();
  void the_run_goes_on();

 private:
  Identity issue(const CertificateAuthority& authority, const Validity& validity) const;
  std::vector<std::pair<std::string, Address>> ports() const { return {{"hub", hub_}, {"island", island_}}; }

  std::unique_ptr<LocalRun> run_;
  std::vector<std::unique_ptr<QProcess>> islands_;
  Address hub_;
  Address island_;
  std::map<std::string, Identity> identities_;
};

Identity TlsBoundaryTest::issue(const CertificateAuthority& authority, const Validity& validity) const {
  const KeyAndRequest made = make_signing_request();
  const IslandId name = random_island_id();
  return Identity{name, authority.run_id(), made.key_pem,
                  require(authority.sign_request(made.request_pem, name, validity)), authority.certificate_pem()};
}

void TlsBoundaryTest::initTestCase() {
  run_ = std::make_unique<LocalRun>(run_config());
  hub_ = run_->hub_address();
  island_ = {"127.0.0.1", free_port()};
  islands_.push_back(run_->start_island("reachable", island_.port));
  islands_.push_back(run_->start_island("other"));
  QVERIFY(run_->wait_until([](const HubState& state) { return state.outer_step >= 1; }, kLimit));

  const auto now = std::chrono::system_clock::now();
  const CertificateAuthority own = require(CertificateAuthority::load(HubHome{run_->directory() / "hub"}.authority()));
  const CertificateAuthority other = require(CertificateAuthority::create("fedcba9876543210"));
  const CertificateAuthority same_name = require(CertificateAuthority::create(own.run_id()));
  const Validity valid = Validity::starting(now, std::chrono::hours(1));
  identities_["another run's"] = issue(other, valid);
  identities_["a forged authority's"] = issue(same_name, valid);
  identities_["expired"] = issue(own, Validity::starting(now - std::chrono::hours(48), std::chrono::hours(24)));
  identities_["not in the roster"] = issue(own, valid);
  for (const auto& home : std::filesystem::directory_iterator(run_->directory() / "islands")) {
    identities_["a member's"] = require(load_identity(IslandHome{home.path()}.identity()));
  }
}

void TlsBoundaryTest::cleanupTestCase() {
  for (const auto& island : islands_) {
    island->kill();
    island->waitForFinished();
  }
}

void TlsBoundaryTest::a_stranger_gets_no_further_than_the_handshake_data() {
  QTest::addColumn<QString>("certificate");
  QTest::addColumn<QString>("alpn");
  QTest::addColumn<int>("version");
  for (const char* certificate : {"none", "another run's", "a forged authority's", "expired"}) {
    for (const char* alpn : {"http/1.1", "atoll-ring/1", "h2", "http/1.1,atoll-enrol/1", ""}) {
      QTest::addRow("certificate %s, alpn %s", certificate, alpn) << certificate << alpn << TLS1_3_VERSION;
    }
  }
  QTest::addRow("a member's certificate, TLS 1.2") << "a member's"
                                                   << "http/1.1" << TLS1_2_VERSION;
  QTest::addRow("no certificate, TLS 1.2, enrolment") << "none"
                                                      << "atoll-enrol/1" << TLS1_2_VERSION;
}

void TlsBoundaryTest::a_stranger_gets_no_further_than_the_handshake() {
  QFETCH(QString, certificate);
  QFETCH(QString, alpn);
  QFETCH(int, version);
  Client client{.identity = nullptr, .alpn = {}, .max_version = version, .says = kHttpRequest};
  if (certificate != "none") client.identity = &identities_.at(certificate.toStdString());
  for (const QString& name : alpn.split(',', Qt::SkipEmptyParts)) client.alpn.push_back(name.toStdString());

  for (const auto& [port, address] : ports()) {
    const Answer answer = ask(address, client);

    QVERIFY2(answer.closed, port.c_str());
    QVERIFY2(answer.text.empty(), (port + ": " + answer.text).c_str());
  }
}

void TlsBoundaryTest::a_member_of_the_run_is_answered() {
  for (const auto& [port, address] : ports()) {
    const Answer answer =
        ask(address, {.identity = &identities_.at("a member's"), .alpn = {"http/1.1"}, .says = kHttpRequest});

    QVERIFY2(answer.text.starts_with("HTTP/1.1 "), (port + ": " + answer.text).c_str());
  }
}

void TlsBoundaryTest::a_certificate_that_is_not_in_the_roster_learns_nothing() {
  for (const auto& [port, address] : ports()) {
    for (const char* const alpn : {"http/1.1", "atoll-ring/1"}) {
      const Answer answer =
          ask(address, {.identity = &identities_.at("not in the roster"), .alpn = {alpn}, .says = kHttpRequest});

      QVERIFY2(answer.closed, port.c_str());
      QVERIFY2(answer.text.empty() || answer.text.starts_with("HTTP/1.1 403 "), (port + ": " + answer.text).c_str());
    }
  }
}

void TlsBoundaryTest::the_enrolment_does_nothing_but_enrol_data() {
  QTest::addColumn<QByteArray>("words");
  QTest::newRow("an HTTP request") << QByteArray::fromStdString(kHttpRequest);
  QTest::newRow("the mesh's upgrade") << QByteArray(
      "GET /mesh HTTP/1.1\r\nHost: hub\r\nUpgrade: websocket\r\n"
      "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  QTest::newRow("zeros") << QByteArray(4096, '\0');
  QTest::newRow("garbage") << QByteArray(4096, '\xa5');
}

void TlsBoundaryTest::the_enrolment_does_nothing_but_enrol() {
  QFETCH(QByteArray, words);

  const Answer hub = ask(hub_, {.alpn = {"atoll-enrol/1"}, .says = words.toStdString()});
  const Answer island = ask(island_, {.alpn = {"atoll-enrol/1"}, .says = words.toStdString()});

  QVERIFY(hub.closed);
  QVERIFY2(hub.text.empty(), hub.text.c_str());
  QVERIFY(island.closed);
  QVERIFY2(island.text.empty(), island.text.c_str());
}

void TlsBoundaryTest::the_run_goes_on() {
  const std::uint32_t before = run_->state().outer_step;

  QVERIFY(run_->wait_until([&](const HubState& state) { return state.outer_step >= before + 2; }, kLimit));
}

QTEST_GUILESS_MAIN(TlsBoundaryTest)
#include "tls_boundary_test.moc"
