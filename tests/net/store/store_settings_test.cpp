// Addresses of object stores, and whose credentials go where.
#include <sys/stat.h>

#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>

#include "net/base/file.h"
#include "net/store/store_settings.h"

using namespace atl;

namespace {

constexpr const char* kSecret = "wJalrXUtnFEMI+K7MDENG/bPxRfiCYEXAMPLEKEY";

StoreUrl url_of(const std::string& text) {
  const auto url = parse_store_url(text);
  if (!url.ok()) qFatal("%s", url.error().message.c_str());
  return *url;
}

}  // namespace

class StoreSettingsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void an_address_is_read_as_it_is_written();
  void what_is_no_address_is_refused_data();
  void what_is_no_address_is_refused();
  void credentials_come_from_the_section_that_was_chosen();
  void a_file_that_others_may_read_is_refused();
  void half_of_a_key_is_refused_and_not_shown();
  void the_environment_counts_before_the_usual_file();
  void a_named_file_counts_alone();
  void credentials_are_used_for_the_owners_bucket_alone();
  void nothing_is_written_where_the_owner_did_not_say_so();
  void what_a_run_names_is_read_over_tls_alone();
  void secrets_are_left_out_of_what_others_say();

 private:
  std::filesystem::path write(const std::string& name, const std::string& text,
                              FileMode mode = FileMode::kPrivate) const {
    const auto path = std::filesystem::path(directory_.path().toStdString()) / name;
    std::filesystem::create_directories(path.parent_path());
    if (const Status written = write_file_atomically(path, text, mode); !written.ok()) qFatal("cannot write");
    return path;
  }
  std::filesystem::path key_file() const {
    return write("keys", std::string("[default]\naws_access_key_id = AKID\naws_secret_access_key = ") + kSecret + "\n");
  }

  QTemporaryDir directory_;
};

void StoreSettingsTest::init() {
  for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"}) {
    qunsetenv(name);
  }
  qputenv("HOME", directory_.path().toUtf8());
}

void StoreSettingsTest::an_address_is_read_as_it_is_written() {
  const std::string text = "s3://my-bucket/runs/first.one?endpoint=https://store.example:9000&region=eu-1";

  const StoreUrl url = url_of(text);

  QCOMPARE(url.bucket, std::string("my-bucket"));
  QCOMPARE(url.prefix, std::string("runs/first.one"));
  QCOMPARE(url.endpoint, std::string("https://store.example:9000"));
  QCOMPARE(url.region, std::string("eu-1"));
  QCOMPARE(to_string(url), text);
  QCOMPARE(to_string(url_of("s3://my-bucket")), std::string("s3://my-bucket"));
  QCOMPARE(url_of("s3://my-bucket/a/").key("x"), std::string("a/x"));
  QCOMPARE(url_of("s3://my-bucket").key("x"), std::string("x"));
  QCOMPARE(url_of("s3://my-bucket?endpoint=HTTPS://Store.Example/").endpoint, std::string("https://store.example"));
}

void StoreSettingsTest::what_is_no_address_is_refused_data() {
  QTest::addColumn<QString>("text");
  for (const char* text :
       {"", "http://bucket/a", "s3://", "s3://ab", "s3://Bucket/a", "s3://my..bucket", "s3://-bucket/a",
        "s3://bucket//a", "s3://bucket/../a", "s3://bucket/a/./b", "s3://bucket/a b", "s3://bucket/a%2f",
        "s3://bucket/a?x=1", "s3://bucket/a?endpoint=store.example", "s3://bucket/a?endpoint=ftp://store.example",
        "s3://bucket/a?endpoint=https://store.example/path", "s3://bucket/a?endpoint=https://user@store.example",
        "s3://bucket/a?region=EU", "s3://bucket/a\nb"}) {
    QTest::newRow(text) << text;
  }
}

void StoreSettingsTest::what_is_no_address_is_refused() {
  QFETCH(const QString, text);

  const auto url = parse_store_url(text.toStdString());

  QVERIFY(!url.ok());
  QCOMPARE(url.error().code, ErrorCode::kInvalidArgument);
  QVERIFY(url.error().message.find("must be") != std::string::npos);
}

void StoreSettingsTest::credentials_come_from_the_section_that_was_chosen() {
  const auto file =
      write("two",
            "# mine\n[default]\naws_access_key_id=A\naws_secret_access_key=s1\n\n[other]\n"
            "  aws_access_key_id = B  \naws_secret_access_key\t= s2\naws_session_token = t2\nregion = x\n");

  const auto usual = load_store_credentials(file);
  qputenv("AWS_PROFILE", "other");
  const auto other = load_store_credentials(file);
  qputenv("AWS_PROFILE", "third");
  const auto third = load_store_credentials(file);

  QVERIFY(usual.ok() && other.ok());
  QCOMPARE(usual->key_id, std::string("A"));
  QCOMPARE(usual->secret, std::string("s1"));
  QCOMPARE(usual->session_token, std::string());
  QCOMPARE(other->key_id, std::string("B"));
  QCOMPARE(other->secret, std::string("s2"));
  QCOMPARE(other->session_token, std::string("t2"));
  QVERIFY(!third.ok());
  QVERIFY(third.error().message.find("[third]") != std::string::npos);
}

void StoreSettingsTest::a_file_that_others_may_read_is_refused() {
  const auto file = key_file();
  QVERIFY(load_store_credentials(file).ok());

  for (const mode_t mode : {0640, 0604, 0620}) {
    QVERIFY(::chmod(file.c_str(), mode) == 0);
    const auto loaded = load_store_credentials(file);
    QVERIFY(!loaded.ok());
    QCOMPARE(loaded.error().code, ErrorCode::kPermissionDenied);
    QVERIFY(loaded.error().message.find("chmod 600") != std::string::npos);
    QVERIFY(loaded.error().message.find(kSecret) == std::string::npos);
  }
}

void StoreSettingsTest::half_of_a_key_is_refused_and_not_shown() {
  const auto half = load_store_credentials(write("half", std::string("[default]\naws_secret_access_key=") + kSecret));
  const auto blank = load_store_credentials(
      write("blank", std::string("[default]\naws_access_key_id=A\naws_secret_access_key=") + kSecret + " x"));

  QVERIFY(!half.ok() && !blank.ok());
  QVERIFY(half.error().message.find("half there") != std::string::npos);
  QVERIFY((half.error().message + blank.error().message).find(kSecret) == std::string::npos);
}

void StoreSettingsTest::the_environment_counts_before_the_usual_file() {
  QVERIFY(load_store_credentials({})->anonymous());
  write(".aws/credentials", "[default]\naws_access_key_id = FILE\naws_secret_access_key = x\n");
  QCOMPARE(load_store_credentials({})->key_id, std::string("FILE"));

  qputenv("AWS_ACCESS_KEY_ID", "ENV");
  qputenv("AWS_SECRET_ACCESS_KEY", "y");

  QCOMPARE(load_store_credentials({})->key_id, std::string("ENV"));
}

void StoreSettingsTest::a_named_file_counts_alone() {
  qputenv("AWS_ACCESS_KEY_ID", "ENV");
  qputenv("AWS_SECRET_ACCESS_KEY", "y");

  const auto named = load_store_credentials(key_file());
  const auto missing = load_store_credentials(directory_.filePath("none").toStdString());

  QCOMPARE(named->key_id, std::string("AKID"));
  QVERIFY(!missing.ok());
  QCOMPARE(missing.error().code, ErrorCode::kNotFound);
}

// A stranger's run may name any bucket: one to which the owner's signature is not to go, or one of the owner's own.
void StoreSettingsTest::credentials_are_used_for_the_owners_bucket_alone() {
  const StoreSettings settings{"https://store.example", "", "my-bucket", key_file()};

  const auto own = access_to_read(settings, url_of("s3://my-bucket/a"));
  const auto own_said = access_to_read(settings, url_of("s3://my-bucket/a?endpoint=https://store.example"));
  const auto other_bucket = access_to_read(settings, url_of("s3://other-bucket/a"));
  const auto other_place = access_to_read(settings, url_of("s3://my-bucket/a?endpoint=https://elsewhere.example"));

  QCOMPARE(own->credentials.key_id, std::string("AKID"));
  QCOMPARE(own_said->credentials.key_id, std::string("AKID"));
  QVERIFY(other_bucket->credentials.anonymous());
  QCOMPARE(other_bucket->endpoint, std::string("https://store.example"));
  QVERIFY(other_place->credentials.anonymous());
  QCOMPARE(other_place->endpoint, std::string("https://elsewhere.example"));
}

void StoreSettingsTest::nothing_is_written_where_the_owner_did_not_say_so() {
  const StoreSettings settings{"https://store.example", "", "my-bucket", key_file()};

  QVERIFY(access_to_write(settings, url_of("s3://my-bucket/a")).ok());
  for (const char* other : {"s3://other-bucket/a", "s3://my-bucket/a?endpoint=https://elsewhere.example"}) {
    const auto access = access_to_write(settings, url_of(other));
    QVERIFY(!access.ok());
    QCOMPARE(access.error().code, ErrorCode::kPermissionDenied);
    QVERIFY(access.error().message.find("store.bucket") != std::string::npos);
  }
  const StoreSettings beneath{"https://store.example", "", "my-bucket/runs/first/", key_file()};
  for (const char* own : {"s3://my-bucket/runs/first", "s3://my-bucket/runs/first/states"}) {
    QVERIFY(access_to_write(beneath, url_of(own)).ok());
    QVERIFY(!access_to_read(beneath, url_of(own))->credentials.anonymous());
  }
  for (const char* other : {"s3://my-bucket", "s3://my-bucket/runs", "s3://my-bucket/runs/second",
                            "s3://my-bucket/runs/firstborn", "s3://other-bucket/runs/first"}) {
    const auto access = access_to_write(beneath, url_of(other));
    QVERIFY2(!access.ok(), other);
    QCOMPARE(access.error().code, ErrorCode::kPermissionDenied);
    QVERIFY(access_to_read(beneath, url_of(other))->credentials.anonymous());
  }
  QVERIFY(may_use_bucket(settings));
  QVERIFY(!may_use_bucket({"https://store.example", "", "", key_file()}));
  QVERIFY(!may_use_bucket({"https://store.example", "", "my-bucket", "/nowhere/keys"}));
}

void StoreSettingsTest::what_a_run_names_is_read_over_tls_alone() {
  const StoreUrl plain = url_of("s3://my-bucket/a?endpoint=http://store.example");

  QVERIFY(!access_to_read({}, plain).ok());
  QVERIFY(access_to_read({"http://store.example", "", "", {}}, plain).ok());
  QCOMPARE(access_to_read({}, url_of("s3://my-bucket/a?region=eu-1"))->endpoint,
           std::string("https://s3.eu-1.amazonaws.com"));
}

void StoreSettingsTest::secrets_are_left_out_of_what_others_say() {
  const StoreCredentials credentials{"AKID", kSecret, "token-of-a-session", "a test"};

  const std::string text =
      without_secrets(std::string("you sent ") + kSecret + ", " + kSecret + " and token-of-a-session", credentials);

  QCOMPARE(text, std::string("you sent ***, *** and ***"));
}

QTEST_GUILESS_MAIN(StoreSettingsTest)
#include "store_settings_test.moc"
