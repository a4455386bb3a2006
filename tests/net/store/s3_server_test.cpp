// The same against a store that others wrote: moto's S3 server, before which botocore checks each signature
// (s3_server.py). Needs a Python with both: ATOLL_MOTO_PYTHON, or else python3 where that has them.
#include <QtCore/QProcess>
#include <QtTest/QTest>
#include <nlohmann/json.hpp>
#include <optional>

#include "net/store/multipart.h"
#include "tests/net/store/published_parts.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr char kScript[] = ATOLL_TEST_DATA_DIR "/../net/store/s3_server.py";
constexpr int kPythonMilliseconds = 120'000;  // to import moto from a cold disk, most of it
constexpr const char* kBucket = "bucket-one";
constexpr const char* kKeyId = "AKIDMOTO0EXAMPLE";
constexpr const char* kSecret = "bPxRfiCYEXAMPLEKEYwJalrXUtnFEMI+K7MDENG/";
constexpr std::uint64_t kNumel = 2 * kStateChunkNumel + 4321;  // three chunks

// The interpreter, or nothing where there is none with moto's server.
std::optional<QString> python_with_moto() {
  const QString chosen = qEnvironmentVariable("ATOLL_MOTO_PYTHON");
  const QString program = chosen.isEmpty() ? "python3" : chosen;
  QProcess process;
  process.start(program, {"-c", "import boto3, moto.server, flask, flask_cors"});
  const bool imports = process.waitForFinished(kPythonMilliseconds) && process.exitStatus() == QProcess::NormalExit &&
                       process.exitCode() == 0;
  if (imports) return program;
  // Whoever chose one wants the test.
  if (!chosen.isEmpty()) {
    qFatal("ATOLL_MOTO_PYTHON=%s does not import moto's server: %s", qPrintable(chosen),
           process.readAllStandardError().constData());
  }
  return std::nullopt;
}

}  // namespace

class S3ServerTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void init();
  void cleanupTestCase();
  void every_kind_of_request_is_taken();
  void what_is_published_is_fetched_to_the_same_state();
  void an_upload_that_was_broken_off_is_gone_on_with();
  void a_wrong_secret_an_unknown_key_and_no_bucket_are_told();
  // Last: it ends the server.
  void every_signature_was_right_but_those_that_were_to_be_wrong();

 private:
  StoreAccess access() const { return {endpoint_, "us-east-1", kBucket, {kKeyId, kSecret, "", "a test"}}; }

  QProcess server_;
  std::string endpoint_;
};

void S3ServerTest::initTestCase() {
  qputenv("no_proxy", "127.0.0.1");
  const auto python = python_with_moto();
  if (!python) return;
  server_.start(*python, {kScript, kBucket, kKeyId, kSecret});
  if (!server_.waitForReadyRead(kPythonMilliseconds)) qFatal("%s", server_.readAllStandardError().constData());
  const auto said = nlohmann::json::parse(server_.readLine().toStdString());
  endpoint_ = said.at("url");
  qInfo("moto %s", said.at("moto").get<std::string>().c_str());
}

void S3ServerTest::init() {
  if (endpoint_.empty()) {
    QSKIP(
        "python3 has no moto: in a virtual environment, 'pip install \"moto[server]\"', then name its interpreter in "
        "ATOLL_MOTO_PYTHON");
  }
}

void S3ServerTest::cleanupTestCase() {
  if (server_.state() == QProcess::NotRunning) return;
  server_.closeWriteChannel();
  if (!server_.waitForFinished(kPythonMilliseconds)) server_.kill();
}

void S3ServerTest::every_kind_of_request_is_taken() {
  StoreClient client = take(StoreClient::create(access(), impatient()));
  AbortSignal abort;
  const std::string body = "the outer state of a run", part(5u << 20, 'x');

  take(client.call(
      {.method = StoreMethod::kPut, .key = "a/b.c", .headers = {{"x-amz-meta-of", "me"}}, .body = as_bytes(body)},
      abort));
  const auto some = take(client.call({.key = "a/b.c", .range = ByteSpan{4, 5}}, abort));
  const auto head = take(client.call({.method = StoreMethod::kHead, .key = "a/b.c"}, abort));
  const MultipartUpload upload = take(MultipartUpload::begin(client, "a/m", {{"x-amz-meta-of", "it"}}, abort));
  const auto open = take(open_uploads(client, "a/", abort));
  StoreRequest request = upload.part_request(1);
  request.body = as_bytes(part);
  take(client.call(request, abort));
  const auto parts = take(upload.parts(client, abort));
  take(upload.complete(client, parts, abort));
  const auto whole = take(client.call({.method = StoreMethod::kHead, .key = "a/m"}, abort));
  take(client.call({.method = StoreMethod::kDelete, .key = "a/m"}, abort));
  const auto gone = client.call({.method = StoreMethod::kHead, .key = "a/m"}, abort);

  QCOMPARE(to_string(some.body), std::string("outer"));
  QCOMPARE(head.header("content-length"), std::to_string(body.size()));
  QCOMPARE(head.header("x-amz-meta-of"), std::string("me"));
  QCOMPARE(open.size(), std::size_t{1});
  QCOMPARE(open.front().key(), std::string("a/m"));
  QCOMPARE(parts.at(1).bytes, std::uint64_t{part.size()});
  QCOMPARE(whole.header("content-length"), std::to_string(part.size()));
  QCOMPARE(whole.header("x-amz-meta-of"), std::string("it"));
  QVERIFY(!gone.ok());
  QCOMPARE(gone.error().code, ErrorCode::kNotFound);
}

void S3ServerTest::what_is_published_is_fetched_to_the_same_state() {
  const FetchedState state = state_of(OuterStep{7}, kNumel, 0.25f);
  const MemorySource source(state);
  AbortSignal abort;

  const auto report = take(publish_state(access(), "runs/one", test_run_parts(), source, abort, quick_upload()));
  const auto again = take(publish_state(access(), "runs/one", test_run_parts(), source, abort, quick_upload()));
  StoreClient client = take(StoreClient::create(access(), impatient()));
  const PublishedState found = take(find_published_state(client, "runs/one", "", abort));
  take(check_published_state(client, found, abort));
  WholeSink sink(kNumel);
  take(fetch_published_state(access(), found, sink, abort, {}, quick_download()));

  QCOMPARE(report.sent_bytes, 8 * kNumel);
  QCOMPARE(again.sent_bytes, std::uint64_t{0});
  QCOMPARE(again.manifest_sha256, report.manifest_sha256);
  QCOMPARE(found.manifest.state.version, OuterStep{7});
  QVERIFY(sink.state.parameters == state.parameters && sink.state.momentum == state.momentum);
}

void S3ServerTest::an_upload_that_was_broken_off_is_gone_on_with() {
  const FetchedState state = state_of(OuterStep{8}, kNumel, 0.75f);
  const MemorySource source(state);
  StateUploadOptions options = quick_upload();
  options.connections = 1;
  AbortSignal killed;
  options.progress = [&](std::uint64_t done, std::uint64_t) {
    if (done >= 2 * kStateChunkBytes) killed.raise("killed");
  };

  const auto broken = publish_state(access(), "runs/two", test_run_parts(), source, killed, options);
  AbortSignal abort;
  const auto rest = take(publish_state(access(), "runs/two", test_run_parts(), source, abort, quick_upload()));
  StoreClient client = take(StoreClient::create(access(), impatient()));
  WholeSink sink(kNumel);
  take(fetch_published_state(access(), take(find_published_state(client, "runs/two", "", abort)), sink, abort, {},
                             quick_download()));

  QVERIFY(!broken.ok());
  QCOMPARE(rest.sent_bytes, 8 * kNumel - 2 * kStateChunkBytes);
  QVERIFY(sink.state.parameters == state.parameters && sink.state.momentum == state.momentum);
}

void S3ServerTest::a_wrong_secret_an_unknown_key_and_no_bucket_are_told() {
  AbortSignal abort;
  const auto error = [&](StoreAccess changed) {
    const auto answer = take(StoreClient::create(changed, impatient())).call({.key = "x"}, abort);
    return answer.ok() ? std::string() : answer.error().message;
  };
  StoreAccess secret = access(), key = access(), bucket = access();
  secret.credentials.secret = "not-the-secret-of-this-key";
  key.credentials.key_id = "AKIDOTHER";
  bucket.bucket = "another-bucket";

  QVERIFY(error(secret).find("The secret is not that of the access key") != std::string::npos);
  QVERIFY(error(key).find("does not know the access key") != std::string::npos);
  QVERIFY(error(bucket).find("There is no such bucket") != std::string::npos);
}

void S3ServerTest::every_signature_was_right_but_those_that_were_to_be_wrong() {
  server_.closeWriteChannel();
  QVERIFY(server_.waitForFinished(kPythonMilliseconds));

  const auto said = nlohmann::json::parse(server_.readAllStandardOutput().toStdString());

  QVERIFY(said.at("checked").get<int>() > 30);
  QCOMPARE(said.at("refused").size(), std::size_t{2});
}

QTEST_GUILESS_MAIN(S3ServerTest)
#include "s3_server_test.moc"
