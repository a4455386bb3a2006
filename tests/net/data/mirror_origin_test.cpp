// Mirrors of a run's data over https and s3: who is trusted, where redirects may lead, what an owner allows, and that
// whatever a mirror does, the next place gives the bytes: another mirror, the hub last.
#include "net/data/mirror_origin.h"

#include <QTemporaryDir>
#include <QtTest>
#include <atomic>
#include <optional>
#include <thread>

#include "net/base/file.h"
#include "net/base/sha256.h"
#include "net/data/verified_fetch.h"
#include "tests/fakes/web_server.h"
#include "tests/net/store/fake_store.h"

using namespace atl;
using namespace atl::test;
using namespace std::chrono_literals;
using Scheme = WebServer::Scheme;

namespace {

constexpr const char* kFile = "train-00000.tok";

template <class T>
T must(Result<T> result) {
  if (!result.ok()) qFatal("%s", result.error().message.c_str());
  return std::move(result).value();
}

const std::string& content() {
  static const std::string made = [] {
    std::string text;
    for (int i = 0; text.size() < 20'000; ++i) text += std::to_string(i * 7919) + " ";
    return text;
  }();
  return made;
}

// The hub, who is there.
class CountedOrigin final : public DataOrigin {
 public:
  explicit CountedOrigin(std::atomic<int>& reads) : reads_(reads) {}
  std::string name() const override { return "the hub"; }
  Result<Bytes> read(const std::string&, std::uint64_t offset, std::uint64_t bytes, const AbortSignal&) override {
    ++reads_;
    const ByteView view = as_bytes(content()).subspan(offset, bytes);
    return Bytes(view.begin(), view.end());
  }

 private:
  std::atomic<int>& reads_;
};

bool says(const Error& error, const std::string& what) { return error.message.find(what) != std::string::npos; }

}  // namespace

class MirrorOriginTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void init() { reads_of_hub_ = 0; }
  void https_is_read_by_an_authority_of_the_owners();
  void https_by_nobody_who_is_trusted_is_not_read();
  void http_and_private_addresses_are_asked_where_the_owner_says_so();
  void a_redirect_leads_to_https_alone();
  void a_redirect_to_a_private_address_is_not_followed();
  void an_own_bucket_is_read_with_its_key_and_another_by_nobodys();
  void whatever_a_mirror_does_the_next_place_is_asked_data();
  void whatever_a_mirror_does_the_next_place_is_asked();
  void whatever_a_store_does_the_next_place_is_asked_data();
  void whatever_a_store_does_the_next_place_is_asked();
  void a_mirror_that_is_gone_is_asked_last();
  void the_hub_is_last();
  void what_a_mirror_gives_waits_for_the_owners_limit();
  void closing_does_not_wait_for_a_mirror();

 private:
  StoreSettings settings(const std::string& authority = {}) {
    StoreSettings made;
    if (authority.empty()) return made;
    made.authorities_file = directory_.filePath("authority.pem").toStdString();
    if (!write_file_atomically(made.authorities_file, authority, FileMode::kPublic).ok()) qFatal("no file");
    return made;
  }
  static MirrorOptions options(MirrorPolicy policy) {
    return {.policy = policy, .connect = 5s, .stall = 1s, .least_rate = 4096};
  }
  // The bytes [1000, 3000).
  Result<Bytes> read(const std::string& mirror, const StoreSettings& settings, const MirrorOptions& options) {
    ATOLL_ASSIGN_OR_RETURN(const auto origin, mirror_origin(mirror, settings, options));
    return origin->read(kFile, 1000, 2000, never_);
  }
  // The same bytes, from the first of them that gives the right ones; the hub is the last.
  Result<FetchedData> fetch(VerifiedFetch& fetch, const DataOrigins& origins) {
    const auto verify = [](ByteView bytes) -> Status {
      if (to_string(bytes) == content().substr(1000, 2000)) return ok_status();
      return Error{ErrorCode::kCorrupt, "it is wrong"};
    };
    return fetch.fetch(0, {{kFile, 1000, 2000}}, verify, origins, {}, never_);
  }
  // With the hub behind them.
  DataOrigins origins(const std::vector<std::string>& mirrors, const StoreSettings& settings) {
    DataOrigins made;
    for (const std::string& mirror : mirrors) {
      made.push_back(must(mirror_origin(mirror, settings, options(MirrorPolicy::kWeb))));
    }
    made.push_back(std::make_unique<CountedOrigin>(reads_of_hub_));
    return made;
  }

  QTemporaryDir directory_;
  AbortSignal never_;
  std::atomic<int> reads_of_hub_{0};
};

void MirrorOriginTest::initTestCase() {
  for (const char* proxy : {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}) qunsetenv(proxy);
}

// A second's worth was received before.
void MirrorOriginTest::what_a_mirror_gives_waits_for_the_owners_limit() {
  WebServer server(Scheme::kHttps);
  server.put(std::string("/data/") + kFile, content());
  DownloadPace download(125e3);
  MirrorOptions limited = options(MirrorPolicy::kWeb);
  limited.download = &download;
  download.has_read(DownloadPace::Use::kFetch, 131'000, Clock::now());
  const auto begin = Clock::now();

  const auto bytes = read(server.url() + "/data", settings(server.authority()), limited);

  QVERIFY2(bytes.ok(), bytes.ok() ? "" : bytes.error().message.c_str());
  QVERIFY(Clock::now() - begin >= 800ms);
}

void MirrorOriginTest::https_is_read_by_an_authority_of_the_owners() {
  WebServer server(Scheme::kHttps);
  server.put(std::string("/data/") + kFile, content());

  const Result<Bytes> bytes = read(server.url() + "/data", settings(server.authority()), options(MirrorPolicy::kWeb));

  QVERIFY2(bytes.ok(), bytes.ok() ? "" : bytes.error().message.c_str());
  QVERIFY(to_string(ByteView(*bytes)) == content().substr(1000, 2000));
}

void MirrorOriginTest::https_by_nobody_who_is_trusted_is_not_read() {
  WebServer server(Scheme::kHttps), other(Scheme::kHttps);
  server.put(std::string("/") + kFile, content());

  QVERIFY(!read(server.url(), settings(), options(MirrorPolicy::kWeb)).ok());  // the system's know it not
  QVERIFY(!read(server.url(), settings(other.authority()), options(MirrorPolicy::kWeb)).ok());

  QCOMPARE(server.requests(), 0);
}

void MirrorOriginTest::http_and_private_addresses_are_asked_where_the_owner_says_so() {
  WebServer plain(Scheme::kHttp), secure(Scheme::kHttps);
  plain.put(std::string("/") + kFile, content());
  secure.put(std::string("/") + kFile, content());
  const StoreSettings trusted = settings(secure.authority());

  QCOMPARE(read(plain.url(), trusted, options(MirrorPolicy::kHttps)).error().code, ErrorCode::kPermissionDenied);
  const auto refused = read(secure.url(), trusted, options(MirrorPolicy::kHttps));
  QVERIFY(says(refused.error(), "island.data_mirrors"));
  QCOMPARE(read(secure.url(), trusted, options(MirrorPolicy::kNone)).error().code, ErrorCode::kPermissionDenied);
  QCOMPARE(plain.connections() + secure.connections(), 0);  // nobody hears of it

  QVERIFY(read(plain.url(), trusted, options(MirrorPolicy::kWeb)).ok());
  QVERIFY(read(secure.url(), trusted, options(MirrorPolicy::kWeb)).ok());
  QCOMPARE(read("/data", trusted, options(MirrorPolicy::kWeb)).error().code, ErrorCode::kPermissionDenied);
}

void MirrorOriginTest::a_redirect_leads_to_https_alone() {
  WebServer first(Scheme::kHttps), plain(Scheme::kHttp);
  for (WebServer* server : {&first, &plain}) server->put(std::string("/") + kFile, content());
  const StoreSettings trusted = settings(first.authority());

  first.fail(WebFault::kRedirects, plain.url());
  QVERIFY(!read(first.url(), trusted, options(MirrorPolicy::kWeb)).ok());
  QCOMPARE(plain.connections(), 0);
  plain.fail(WebFault::kRedirects, first.url());
  first.fail(WebFault::kNone);
  QVERIFY(read(plain.url(), trusted, options(MirrorPolicy::kWeb)).ok());
  first.fail(WebFault::kRedirects, first.url());  // in a circle
  QVERIFY(!read(first.url(), trusted, options(MirrorPolicy::kWeb)).ok());
}

// As on the internet: 127.0.0.1 stands for it here, and 127.0.0.2 for a machine within the owner's network.
void MirrorOriginTest::a_redirect_to_a_private_address_is_not_followed() {
  WebServer mirror(Scheme::kHttps), inner(Scheme::kHttps, "127.0.0.2");
  for (WebServer* server : {&mirror, &inner}) server->put(std::string("/") + kFile, content());
  const StoreSettings trusted = settings(mirror.authority() + inner.authority());
  MirrorOptions careful = options(MirrorPolicy::kHttps);
  careful.filter = AddressFilter(
      [](const NetworkAddress& address) { return address.machine() == NetworkAddress::parse("127.0.0.1")->machine(); });
  QVERIFY(read(mirror.url(), trusted, careful).ok());
  mirror.fail(WebFault::kRedirects, inner.url());

  QVERIFY(!read(mirror.url(), trusted, careful).ok());

  QCOMPARE(inner.connections(), 0);
  QVERIFY(read(mirror.url(), trusted, options(MirrorPolicy::kWeb)).ok());  // the owner may want it
}

void MirrorOriginTest::an_own_bucket_is_read_with_its_key_and_another_by_nobodys() {
  FakeStore store;
  store.put(std::string("run/web/") + kFile, content());
  StoreSettings owners;
  owners.endpoint = store.endpoint();
  owners.bucket = kFakeBucket;
  owners.credentials_file = directory_.filePath("keys").toStdString();
  QVERIFY(write_file_atomically(owners.credentials_file,
                                std::string("[default]\naws_access_key_id = ") + kFakeKeyId +
                                    "\naws_secret_access_key = " + kFakeSecret + "\n",
                                FileMode::kPrivate)
              .ok());
  const std::string mirror = std::string("s3://") + kFakeBucket + "/run/web";

  const auto own = read(mirror, owners, options(MirrorPolicy::kHttps));
  QVERIFY2(own.ok(), own.ok() ? "" : own.error().message.c_str());
  QVERIFY(to_string(ByteView(*own)) == content().substr(1000, 2000));

  // The run names another place: without a key, and not over http.
  const std::string elsewhere = mirror + "?endpoint=" + store.endpoint();
  QCOMPARE(read(elsewhere, {}, options(MirrorPolicy::kWeb)).error().code, ErrorCode::kPermissionDenied);
  owners.bucket = "another";
  const std::size_t asked = store.asked().size();
  QVERIFY(!read(mirror, owners, options(MirrorPolicy::kHttps)).ok());  // a private address, and not the owner's bucket
  QCOMPARE(store.asked().size(), asked);
  QVERIFY(!read(mirror, owners, options(MirrorPolicy::kWeb)).ok());
  store.let_everybody_read();
  QVERIFY(read(mirror, owners, options(MirrorPolicy::kWeb)).ok());
}

void MirrorOriginTest::whatever_a_mirror_does_the_next_place_is_asked_data() {
  QTest::addColumn<int>("fault");
  QTest::newRow("wrong bytes") << int(WebFault::kWrongBytes);
  QTest::newRow("404") << int(WebFault::kNotFound);
  QTest::newRow("drips") << int(WebFault::kDrips);
  QTest::newRow("says nothing") << int(WebFault::kSilent);
  QTest::newRow("whole files") << int(WebFault::kWholeFiles);
  QTest::newRow("endless") << int(WebFault::kEndless);
  QTest::newRow("closes") << int(WebFault::kCloses);
}

void MirrorOriginTest::whatever_a_mirror_does_the_next_place_is_asked() {
  QFETCH(const int, fault);
  WebServer bad(Scheme::kHttps), good(Scheme::kHttps);
  for (WebServer* server : {&bad, &good}) server->put(std::string("/") + kFile, content());
  bad.fail(static_cast<WebFault>(fault));
  const DataOrigins places = origins({bad.url(), good.url()}, settings(bad.authority() + good.authority()));
  VerifiedFetch once(1, 1h);

  const auto data = fetch(once, places);

  QVERIFY2(data.ok(), data.ok() ? "" : data.error().message.c_str());
  QVERIFY(data->from == DataFrom::kMirror);
  QVERIFY(bad.requests() > 0 && good.requests() == 1);
  QCOMPARE(reads_of_hub_.load(), 0);
  // It is asked last from then on.
  const int before = bad.requests();
  QVERIFY(fetch(once, places).ok());
  QCOMPARE(bad.requests(), before);
}

void MirrorOriginTest::whatever_a_store_does_the_next_place_is_asked_data() {
  QTest::addColumn<int>("fault");
  using Kind = StoreFault::Kind;
  QTest::newRow("wrong bytes") << int(Kind::kWrongBytes);
  QTest::newRow("404") << int(Kind::kAnswer);
  QTest::newRow("drips") << int(Kind::kDrip);
  QTest::newRow("says nothing") << int(Kind::kStall);
  QTest::newRow("closes") << int(Kind::kCutAfter);
}

void MirrorOriginTest::whatever_a_store_does_the_next_place_is_asked() {
  QFETCH(const int, fault);
  const auto kind = static_cast<StoreFault::Kind>(fault);
  FakeStore store([kind](const FakeStoreRequest&) {
    return kind == StoreFault::Kind::kAnswer ? StoreFault::refuse(404, "NoSuchKey") : StoreFault{kind, {}};
  });
  store.put(std::string("run/") + kFile, content());
  store.let_everybody_read();
  StoreSettings owners;
  owners.endpoint = store.endpoint();
  const DataOrigins places = origins({std::string("s3://") + kFakeBucket + "/run"}, owners);
  VerifiedFetch thrice(1, 1h);

  for (int i = 0; i < 3; ++i) {
    const auto data = fetch(thrice, places);
    QVERIFY2(data.ok(), data.ok() ? "" : data.error().message.c_str());
    QVERIFY(data->from == DataFrom::kHub);
  }

  QCOMPARE(reads_of_hub_.load(), 3);
  QCOMPARE(store.asked().size(), std::size_t{1});  // asked last from then on
}

void MirrorOriginTest::a_mirror_that_is_gone_is_asked_last() {
  auto gone = std::make_unique<WebServer>(Scheme::kHttps);
  WebServer other(Scheme::kHttps);
  for (WebServer* server : {gone.get(), &other}) server->put(std::string("/") + kFile, content());
  const DataOrigins places = origins({gone->url(), other.url()}, settings(gone->authority() + other.authority()));
  VerifiedFetch twice(1, 1h);
  QVERIFY(fetch(twice, places).ok());
  QCOMPARE(other.requests(), 0);
  gone.reset();

  QVERIFY(must(fetch(twice, places)).from == DataFrom::kMirror);

  QCOMPARE(other.requests(), 1);
  QCOMPARE(reads_of_hub_.load(), 0);
}

void MirrorOriginTest::the_hub_is_last() {
  WebServer first(Scheme::kHttps), second(Scheme::kHttps);
  for (WebServer* server : {&first, &second}) {
    server->put(std::string("/") + kFile, content());
    server->fail(WebFault::kNotFound);
  }
  const DataOrigins places = origins({first.url(), second.url()}, settings(first.authority() + second.authority()));
  VerifiedFetch once(1, 1h);

  QVERIFY(must(fetch(once, places)).from == DataFrom::kHub);

  QCOMPARE(first.requests() + second.requests(), 2);
  QCOMPARE(reads_of_hub_.load(), 1);
}

void MirrorOriginTest::closing_does_not_wait_for_a_mirror() {
  WebServer silent(Scheme::kHttps);
  silent.put(std::string("/") + kFile, content());
  silent.fail(WebFault::kSilent);
  MirrorOptions patient = options(MirrorPolicy::kWeb);
  patient.stall = 1h;
  const auto origin = must(mirror_origin(silent.url(), settings(silent.authority()), patient));
  AbortSignal abort;
  std::optional<Error> error;
  std::jthread reader([&] { error = origin->read(kFile, 1000, 2000, abort).error(); });
  QTRY_COMPARE_WITH_TIMEOUT(silent.requests(), 1, 60'000);

  abort.raise("closed");
  reader.join();  // else in an hour

  QCOMPARE(error->code, ErrorCode::kAborted);
}

QTEST_GUILESS_MAIN(MirrorOriginTest)
#include "mirror_origin_test.moc"
