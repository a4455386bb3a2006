// Requests to an object store: signed so that a store takes them, tried again where that helps, and what goes wrong is
// said with what to do. No secret stands in what is said.
#include <QtTest/QTest>

#include "net/store/s3_xml.h"
#include "net/store/store_client.h"
#include "tests/net/store/fake_store.h"
#include "tests/net/store/published_parts.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr const char* kToken = "token-of-a-session/+=";

StoreAccess access_of(const FakeStore& store) {
  return {store.endpoint(), "us-east-1", kFakeBucket, {kFakeKeyId, kFakeSecret, "", "a test"}};
}

Error error_of(StoreAccess access, const StoreRequest& request, StoreClientOptions options = impatient()) {
  AbortSignal abort;
  StoreClient client = take(StoreClient::create(std::move(access), options));
  const auto answer = client.call(request, abort);
  if (answer.ok()) qFatal("the store answered");
  return answer.error();
}

bool says(const Error& error, const std::string& what) { return error.message.find(what) != std::string::npos; }

}  // namespace

class StoreClientTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { qputenv("no_proxy", "127.0.0.1"); }
  void what_is_put_is_read_back_whole_and_in_parts();
  void every_kind_of_request_is_signed_as_the_standard_says();
  void a_sessions_token_is_sent_and_signed();
  void without_credentials_nothing_is_signed();
  void what_may_pass_is_tried_again_data();
  void what_may_pass_is_tried_again();
  void what_goes_on_is_told_with_how_often_it_was_tried();
  void what_cannot_pass_is_told_at_once_data();
  void what_cannot_pass_is_told_at_once();
  void a_wrong_secret_is_told();
  void a_clock_that_is_off_is_told_with_its_seconds();
  void a_refusal_within_a_success_is_one();
  void what_an_object_says_is_no_refusal();
  void a_store_that_says_nothing_is_given_up();
  void a_store_that_drips_is_given_up();
  void nobody_answers_at_a_port_without_a_store();
  void an_answer_that_is_too_long_is_refused();
  void an_abort_ends_a_request_at_once();
  void a_body_keeps_to_its_rate();
  void what_comes_is_counted_and_waits_for_the_owners_limit();
  void no_secret_stands_in_an_error();
  void what_a_store_lists_is_read_and_garbage_is_nothing();
};

// A second's worth was received before.
void StoreClientTest::what_comes_is_counted_and_waits_for_the_owners_limit() {
  const FakeStore store;
  DownloadPace download(125e3);
  StoreClient client = take(StoreClient::create(access_of(store), {.download = &download}));
  AbortSignal abort;
  take(client.call({.method = StoreMethod::kPut, .key = "a", .body = as_bytes("the outer state of a run")}, abort));
  download.has_read(DownloadPace::Use::kFetch, 131'000, Clock::now());
  const auto begin = Clock::now();

  const auto whole = take(client.call({.key = "a"}, abort));

  QCOMPARE(to_string(whole.body), std::string("the outer state of a run"));
  QVERIFY(Clock::now() - begin >= std::chrono::milliseconds(800));
}

void StoreClientTest::what_is_put_is_read_back_whole_and_in_parts() {
  const FakeStore store;
  StoreClient client = take(StoreClient::create(access_of(store)));
  AbortSignal abort;
  const std::string body = "the outer state of a run";

  take(client.call(
      {.method = StoreMethod::kPut, .key = "a/b.c/d_e", .headers = {{"x-amz-meta-of", "me"}}, .body = as_bytes(body)},
      abort));
  const auto whole = take(client.call({.key = "a/b.c/d_e"}, abort));
  const auto part = take(client.call({.key = "a/b.c/d_e", .range = ByteSpan{4, 5}}, abort));
  const auto head = take(client.call({.method = StoreMethod::kHead, .key = "a/b.c/d_e"}, abort));
  take(client.call({.method = StoreMethod::kDelete, .key = "a/b.c/d_e"}, abort));

  QCOMPARE(to_string(whole.body), body);
  QCOMPARE(to_string(part.body), std::string("outer"));
  QCOMPARE(part.status, 206L);
  QCOMPARE(head.header("content-length"), std::to_string(body.size()));
  QCOMPARE(head.header("x-amz-meta-of"), std::string("me"));
  QVERIFY(store.keys().empty());
}

// The fake checks each signature by the standard's description; queries without a value and with signs in them among
// them, whose order and form libcurl leaves to its caller.
void StoreClientTest::every_kind_of_request_is_signed_as_the_standard_says() {
  const FakeStore store;
  StoreClient client = take(StoreClient::create(access_of(store), impatient()));
  AbortSignal abort;

  const auto begun = client.call({.method = StoreMethod::kPost, .key = "a", .query = {{"uploads", ""}}}, abort);
  const auto listed = client.call({.query = {{"uploads", ""}, {"prefix", "a/b c+d=&%"}, {"max-keys", "7"}}}, abort);
  const std::string part(3u << 20, 'x');  // so long that libcurl asks for a permission to send
  const auto sent = client.call({.method = StoreMethod::kPut,
                                 .key = "a",
                                 .query = {{"uploadId", "upload+1/="}, {"partNumber", "1"}},
                                 .body = as_bytes(part)},
                                abort);

  QVERIFY2(begun.ok(), begun.ok() ? "" : begun.error().message.c_str());
  QVERIFY2(listed.ok(), listed.ok() ? "" : listed.error().message.c_str());
  QVERIFY2(sent.ok(), sent.ok() ? "" : sent.error().message.c_str());
  QCOMPARE(store.parts_taken(), std::uint64_t{1});
}

void StoreClientTest::a_sessions_token_is_sent_and_signed() {
  const FakeStore store;
  StoreAccess access = access_of(store);
  access.credentials.session_token = kToken;
  AbortSignal abort;
  StoreClient client = take(StoreClient::create(access));

  take(client.call({.method = StoreMethod::kPut, .key = "a", .body = as_bytes("x")}, abort));

  const std::string received = store.everything_received();
  QVERIFY(received.find(std::string("x-amz-security-token: ") + kToken) != std::string::npos);
  QVERIFY(received.find("x-amz-date;x-amz-security-token") != std::string::npos);
}

void StoreClientTest::without_credentials_nothing_is_signed() {
  FakeStore store;
  store.put("a", "for everybody");
  StoreAccess access = access_of(store);
  access.credentials = {};

  const Error refused = error_of(access, {.key = "a"});
  store.let_everybody_read();
  AbortSignal abort;
  const auto answer = take(take(StoreClient::create(access)).call({.key = "a"}, abort));

  QCOMPARE(refused.code, ErrorCode::kPermissionDenied);
  QVERIFY(says(refused, "no credentials were given"));
  QCOMPARE(to_string(answer.body), std::string("for everybody"));
  QVERIFY(store.everything_received().find("authorization") == std::string::npos);
}

void StoreClientTest::what_may_pass_is_tried_again_data() {
  QTest::addColumn<int>("kind");
  QTest::addColumn<int>("status");
  QTest::addColumn<QString>("code");
  using Kind = StoreFault::Kind;
  QTest::newRow("500") << int(Kind::kAnswer) << 500 << "InternalError";
  QTest::newRow("503") << int(Kind::kAnswer) << 503 << "SlowDown";
  QTest::newRow("429") << int(Kind::kAnswer) << 429 << "";
  QTest::newRow("what came was another") << int(Kind::kAnswer) << 400 << "BadDigest";
  QTest::newRow("cut before") << int(Kind::kCutBefore) << 0 << "";
  QTest::newRow("cut after") << int(Kind::kCutAfter) << 0 << "";
}

void StoreClientTest::what_may_pass_is_tried_again() {
  QFETCH(const int, kind);
  QFETCH(const int, status);
  QFETCH(const QString, code);
  int left = 2;
  const FakeStore store([&](const FakeStoreRequest&) {
    if (left-- <= 0) return StoreFault{};
    StoreFault fault = StoreFault::refuse(status, code.toStdString());
    fault.kind = static_cast<StoreFault::Kind>(kind);
    return fault;
  });
  StoreClient client = take(StoreClient::create(access_of(store), impatient()));
  AbortSignal abort;

  const auto answer = client.call({.method = StoreMethod::kPut, .key = "a", .body = as_bytes("body")}, abort);

  QVERIFY2(answer.ok(), answer.ok() ? "" : answer.error().message.c_str());
  QCOMPARE(store.object("a"), std::string("body"));
  QCOMPARE(store.asked().size(), std::size_t{3});
}

void StoreClientTest::what_goes_on_is_told_with_how_often_it_was_tried() {
  const FakeStore store(
      [](const FakeStoreRequest&) { return StoreFault::refuse(503, "SlowDown", "Please slow down"); });

  const Error error = error_of(access_of(store), {.key = "a"});

  QCOMPARE(error.code, ErrorCode::kUnreachable);
  QVERIFY(says(error, "503 SlowDown: Please slow down"));
  QVERIFY(says(error, "(3 times)"));
  QCOMPARE(store.asked().size(), std::size_t{3});
}

void StoreClientTest::what_cannot_pass_is_told_at_once_data() {
  QTest::addColumn<int>("status");
  QTest::addColumn<QString>("refusal");
  QTest::addColumn<int>("code");
  QTest::addColumn<QString>("advice");
  QTest::newRow("unknown key") << 403 << "InvalidAccessKeyId" << int(ErrorCode::kPermissionDenied)
                               << "does not know the access key";
  QTest::newRow("no rights") << 403 << "AccessDenied" << int(ErrorCode::kPermissionDenied)
                             << "the rights to get, put and delete";
  QTest::newRow("old token") << 400 << "ExpiredToken" << int(ErrorCode::kPermissionDenied)
                             << "token is not good any more";
  QTest::newRow("no bucket") << 404 << "NoSuchBucket" << int(ErrorCode::kNotFound) << "no such bucket; make it";
  QTest::newRow("quota") << 403 << "QuotaExceeded" << int(ErrorCode::kDiskFull)
                         << "The bucket is full; delete old states";
  QTest::newRow("full") << 507 << "XMinioStorageFull" << int(ErrorCode::kDiskFull)
                        << "The bucket is full; delete old states";
  QTest::newRow("region") << 301 << "PermanentRedirect" << int(ErrorCode::kInvalidArgument) << "set store.region";
  QTest::newRow("no store") << 405 << "MethodNotAllowed" << int(ErrorCode::kProtocol) << "is there an S3 store";
}

void StoreClientTest::what_cannot_pass_is_told_at_once() {
  QFETCH(const int, status);
  QFETCH(const QString, refusal);
  QFETCH(const int, code);
  QFETCH(const QString, advice);
  const FakeStore store([&](const FakeStoreRequest&) { return StoreFault::refuse(status, refusal.toStdString()); });

  const Error error = error_of(access_of(store), {.method = StoreMethod::kPut, .key = "a/b", .body = as_bytes("x")});

  QCOMPARE(error.code, static_cast<ErrorCode>(code));
  QVERIFY2(says(error, advice.toStdString()), error.message.c_str());
  QVERIFY2(says(error, "PUT a/b in bucket bucket-one at http://127.0.0.1"), error.message.c_str());
  QCOMPARE(store.asked().size(), std::size_t{1});
}

void StoreClientTest::a_wrong_secret_is_told() {
  const FakeStore store;
  StoreAccess access = access_of(store);
  access.credentials.secret = "another-secret-than-the-stores";

  const Error error = error_of(access, {.key = "a"});

  QCOMPARE(error.code, ErrorCode::kPermissionDenied);
  QVERIFY(
      says(error, "The secret is not that of the access key; write the right one (the credentials come from a test)"));
  QVERIFY(!says(error, "another-secret-than-the-stores"));
}

void StoreClientTest::a_clock_that_is_off_is_told_with_its_seconds() {
  const FakeStore store([](const FakeStoreRequest&) {
    StoreFault fault = StoreFault::refuse(403, "RequestTimeTooSkewed");
    fault.answer.headers["Date"] = "Sat, 01 Jan 2000 00:00:00 GMT";
    return fault;
  });

  const Error error = error_of(access_of(store), {.key = "a"});

  QCOMPARE(error.code, ErrorCode::kPermissionDenied);
  QVERIFY2(says(error, "ahead of the store's; set it (timedatectl"), error.message.c_str());
}

// A store that begins its answer before it is through has no other way.
void StoreClientTest::a_refusal_within_a_success_is_one() {
  int left = 1;
  const FakeStore store([&](const FakeStoreRequest&) {
    StoreFault fault = StoreFault::refuse(200, "InternalError", "We encountered an internal error");
    if (left-- <= 0) fault.kind = StoreFault::Kind::kNone;
    return fault;
  });
  StoreClient client = take(StoreClient::create(access_of(store), impatient()));
  AbortSignal abort;

  const auto answer = client.call({.method = StoreMethod::kPost, .key = "a", .query = {{"uploads", ""}}}, abort);

  QVERIFY(answer.ok());
  QCOMPARE(store.asked().size(), std::size_t{2});
}

// A run may be called anything, and its manifest says so.
void StoreClientTest::what_an_object_says_is_no_refusal() {
  const FakeStore store;
  StoreClient client = take(StoreClient::create(access_of(store), impatient()));
  AbortSignal abort;
  const std::string body = R"({"run_name":"<Error><Code>InternalError</Code></Error>"})";
  take(client.call({.method = StoreMethod::kPut, .key = "manifest.json", .body = as_bytes(body)}, abort));

  const auto answer = client.call({.key = "manifest.json"}, abort);

  QVERIFY2(answer.ok(), answer.ok() ? "" : answer.error().message.c_str());
  QCOMPARE(to_string(answer->body), body);
}

void StoreClientTest::a_store_that_says_nothing_is_given_up() {
  const FakeStore store([](const FakeStoreRequest&) { return StoreFault{StoreFault::Kind::kStall, {}}; });
  StoreClientOptions options = impatient();
  options.stall = std::chrono::milliseconds(1200);
  options.tries = 1;

  const Error error = error_of(access_of(store), {.key = "a"}, options);

  QCOMPARE(error.code, ErrorCode::kTimeout);
  QVERIFY2(says(error, "nothing moved for 1 s"), error.message.c_str());
}

// A kilobyte comes in each 1.3 s, for two minutes.
void StoreClientTest::a_store_that_drips_is_given_up() {
  FakeStore store([](const FakeStoreRequest&) { return StoreFault{StoreFault::Kind::kDrip, {}}; });
  store.put("a", std::string(100'000, 'x'));
  StoreClientOptions options = impatient();
  options.stall = std::chrono::milliseconds(3000);
  options.tries = 1;

  const Error error = error_of(access_of(store), {.key = "a"}, options);

  QCOMPARE(error.code, ErrorCode::kTimeout);
  QVERIFY2(says(error, "less than 1024 bytes a second"), error.message.c_str());
}

void StoreClientTest::nobody_answers_at_a_port_without_a_store() {
  StoreAccess access;
  {
    const FakeStore gone;
    access = access_of(gone);
  }

  const Error error = error_of(access, {.key = "a"});

  QCOMPARE(error.code, ErrorCode::kUnreachable);
  QVERIFY2(says(error, "(3 times)"), error.message.c_str());
}

void StoreClientTest::an_answer_that_is_too_long_is_refused() {
  FakeStore store;
  store.put("a", std::string(2000, 'x'));

  const Error error = error_of(access_of(store), {.key = "a", .max_bytes = 1999});

  QCOMPARE(error.code, ErrorCode::kProtocol);
  QVERIFY(says(error, "more than was asked for"));
}

void StoreClientTest::an_abort_ends_a_request_at_once() {
  AbortSignal abort;
  const FakeStore store([&](const FakeStoreRequest&) {
    abort.raise("the island stops");
    return StoreFault{StoreFault::Kind::kStall, {}};
  });
  StoreClient client = take(StoreClient::create(access_of(store)));  // which would wait for a minute

  const auto answer = client.call({.key = "a"}, abort);

  QVERIFY(!answer.ok());
  QCOMPARE(answer.error().code, ErrorCode::kAborted);
  QCOMPARE(answer.error().message, std::string("the island stops"));
}

// By the sender's own count of how long it must have waited: a lower bound holds however busy the machine is.
void StoreClientTest::a_body_keeps_to_its_rate() {
  const FakeStore store;
  StoreClient client = take(StoreClient::create(access_of(store)));
  AbortSignal abort;
  const std::string body(100'000, 'x');
  StoreRequest request{.method = StoreMethod::kPut, .key = "a", .body = as_bytes(body)};
  request.rate = [] { return std::optional<double>(200'000); };

  const auto began = Clock::now();
  take(client.call(request, abort));

  // Half a second, but for the last tenth of it: nobody waits after the last piece.
  QVERIFY(Clock::now() - began >= std::chrono::milliseconds(400));
  QCOMPARE(store.object("a"), body);
}

void StoreClientTest::no_secret_stands_in_an_error() {
  const FakeStore store([](const FakeStoreRequest& request) {
    // One that says what it was sent, with all it can know.
    return StoreFault::refuse(400, "Odd",
                              "you said " + request.headers.at("x-amz-security-token") + " and " + kFakeSecret);
  });
  StoreAccess access = access_of(store);
  access.credentials.session_token = kToken;

  const Error error = error_of(access, {.key = "a"});

  QVERIFY2(says(error, "you said *** and ***"), error.message.c_str());
  QVERIFY(store.everything_received().find(kFakeSecret) == std::string::npos);
}

void StoreClientTest::what_a_store_lists_is_read_and_garbage_is_nothing() {
  const std::string text =
      "<List xmlns=\"x\"><Part><ETag>&quot;a&amp;b&quot;</ETag><Size>7</Size></Part><Part><ETag>c</ETag></Part><Part>";

  const auto parts = xml_elements(text, "Part");

  QCOMPARE(parts.size(), std::size_t{2});
  QCOMPARE(xml_text(parts[0], "ETag"), std::string("\"a&b\""));
  QCOMPARE(xml_text(parts[0], "Size"), std::string("7"));
  QCOMPARE(xml_text(parts[1], "Size"), std::string());
  QCOMPARE(xml_text(xml_escaped("<a>&\""), "b"), std::string());
  QCOMPARE(xml_text("<b>" + xml_escaped("<a>&\"'") + "</b>", "b"), std::string("<a>&\"'"));
  for (const char* garbage :
       {"", "<", "<Part", "</Part>", "<Part></part>", "</Part><Part>", "&quot", "\xff\xfe<Part>\xff"}) {
    QVERIFY(xml_elements(garbage, "Part").empty());
  }
}

QTEST_GUILESS_MAIN(StoreClientTest)
#include "store_client_test.moc"
