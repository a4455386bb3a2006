#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <QTemporaryDir>
#include <QtTest>
#include <filesystem>

#include "net/base/file.h"
#include "net/base/mutex.h"
#include "net/data/dataset_fetch.h"
#include "net/transport/peer_listener.h"
#include "tests/fakes/forged_alert.h"
#include "tests/fakes/test_run.h"

using namespace std::chrono_literals;

namespace atl {
namespace {

constexpr DatasetFetchOptions kFast{
    .stall = 500ms, .retry_after = 5ms, .longest_retry = 20ms, .retry_wrong_after = 5ms};
constexpr std::chrono::seconds kPatience{10};

// The hub's GET /data/<name> for one file, with faults.
class FakeHub {
 public:
  FakeHub(const Identity& hub, std::string content) : content_(std::move(content)) {
    PeerListenerOptions options;
    options.bind = {"127.0.0.1", 0};
    listener_ = PeerListener::start(
                    options, TlsContext::island_server(hub).value(), [](const PeerCertificate&) { return ok_status(); },
                    inbox_, [this](TlsConnection connection, const AbortSignal& abort) { serve(connection, abort); })
                    .value();
  }

  std::vector<Address> address() const { return {{"127.0.0.1", listener_->port()}}; }
  void break_after(std::uint64_t bytes, int times) {
    break_after_ = bytes;
    breaks_left_ = times;
  }
  void ignore_ranges() { ignores_ranges_ = true; }
  void refuse() { refuses_ = true; }
  void replace(const std::string& content) {
    MutexLock lock(mutex_);
    content_ = content;
  }
  std::vector<std::string> ranges_asked() const {
    MutexLock lock(mutex_);
    return ranges_;
  }

 private:
  void serve(TlsConnection& connection, const AbortSignal& abort) {
    const auto deadline = Deadline::after(kPatience);
    std::string head;
    char next = 0;
    while (!head.ends_with("\r\n\r\n")) {
      const auto count = connection.read_some({reinterpret_cast<std::byte*>(&next), 1}, deadline, &abort);
      if (!count.ok() || *count == 0) return;
      head += next;
    }
    if (refuses_) {
      connection.write_all(as_bytes("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"), deadline, &abort).ok();
      return;
    }
    if (!head.starts_with("GET /data/shard.bin ")) {
      connection.write_all(as_bytes("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), deadline, &abort).ok();
      return;
    }
    const auto range = head.find("Range: bytes=");
    const std::uint64_t from = range == std::string::npos || ignores_ranges_ ? 0 : std::stoull(head.substr(range + 13));
    std::string content;
    {
      MutexLock lock(mutex_);
      content = content_;
      ranges_.push_back(range == std::string::npos ? "" : head.substr(range + 13, head.find('\r', range) - range - 13));
    }
    std::string answer = from == 0 ? "HTTP/1.1 200 OK\r\n" : "HTTP/1.1 206 Partial Content\r\n";
    answer += "Connection: close\r\nContent-Length: " + std::to_string(content.size() - from) + "\r\n\r\n";
    const bool breaks = breaks_left_.fetch_sub(1) > 0;
    answer += content.substr(from, breaks ? break_after_.load() : std::string::npos);
    connection.write_all(as_bytes(answer), deadline, &abort).ok();
  }

  std::atomic<std::uint64_t> break_after_{0};
  std::atomic<int> breaks_left_{0};
  std::atomic<bool> ignores_ranges_{false}, refuses_{false};
  mutable Mutex mutex_;
  std::string content_ ATOLL_GUARDED_BY(mutex_);
  std::vector<std::string> ranges_ ATOLL_GUARDED_BY(mutex_);
  RingInbox inbox_;
  std::unique_ptr<PeerListener> listener_;  // last: its threads use those above
};

std::string some_content(std::size_t size) {
  std::string content(size, '\0');
  for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * 31 + (i >> 8));
  return content;
}

}  // namespace

class DatasetFetchTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void a_file_arrives_whole();
  void a_broken_download_goes_on_where_it_broke();
  void what_an_earlier_process_left_is_used();
  void a_foreign_partial_file_is_replaced();
  void a_hub_that_does_not_resume_sends_all_again();
  void another_content_is_not_kept_and_asked_for_until_it_is_right();
  void a_full_disk_says_so_and_keeps_the_partial_file();
  void a_hub_that_is_away_is_asked_until_it_is_back();
  void an_abort_keeps_the_partial_file();
  void a_file_that_the_hub_lacks_is_asked_for_again();
  void a_forged_alert_is_no_refusal();
  void a_hub_that_removed_this_island_is_asked_no_more();
  void names_that_leave_the_directory_are_refused();

 private:
  Status fetch(const FakeHub& hub, const std::string& name = "shard.bin") {
    return fetch_dataset_file(
        run_.island(1), hub.address(), name, content_.size(), sha256_hex(as_bytes(content_)), destination_, *abort_, {},
        [&](const std::string& why) { on_trouble(why); }, kFast);
  }
  void on_trouble(const std::string& why) {
    troubles_.push_back(why);
    if (troubles_.size() == abort_after_) abort_->raise("enough");
    if (act_) act_();
  }
  std::string arrived() const { return read_file(destination_).value(); }

  TestRun run_;
  std::unique_ptr<AbortSignal> abort_;
  std::vector<std::string> troubles_;  // as they were told
  std::size_t abort_after_ = 1'000;    // of those
  std::function<void()> act_;          // when one is told
  const std::string content_ = some_content(1'000'000);
  std::unique_ptr<QTemporaryDir> directory_;
  std::filesystem::path destination_;
  std::filesystem::path partial_;
};

void DatasetFetchTest::init() {
  directory_ = std::make_unique<QTemporaryDir>();
  abort_ = std::make_unique<AbortSignal>();
  troubles_.clear();
  abort_after_ = 1'000;
  act_ = {};
  destination_ = std::filesystem::path(directory_->path().toStdString()) / "shard.bin";
  partial_ = destination_.string() + ".part";
}

void DatasetFetchTest::a_file_arrives_whole() {
  const FakeHub hub(run_.hub(), content_);

  QVERIFY(fetch(hub).ok());

  QVERIFY(arrived() == content_);
  QVERIFY(!std::filesystem::exists(partial_));
}

void DatasetFetchTest::a_broken_download_goes_on_where_it_broke() {
  FakeHub hub(run_.hub(), content_);
  hub.break_after(300'000, 2);

  QVERIFY(fetch(hub).ok());

  QVERIFY(arrived() == content_);
  QCOMPARE(hub.ranges_asked(), (std::vector<std::string>{"", "300000-", "600000-"}));
}

void DatasetFetchTest::what_an_earlier_process_left_is_used() {
  const FakeHub hub(run_.hub(), content_);
  QVERIFY(write_file_atomically(partial_, content_.substr(0, 999'000), FileMode::kPublic).ok());

  QVERIFY(fetch(hub).ok());

  QVERIFY(arrived() == content_);
  QCOMPARE(hub.ranges_asked(), (std::vector<std::string>{"999000-"}));
}

void DatasetFetchTest::a_foreign_partial_file_is_replaced() {
  const FakeHub hub(run_.hub(), content_);
  QVERIFY(write_file_atomically(partial_, std::string(500'000, 'x'), FileMode::kPublic).ok());

  QVERIFY(fetch(hub).ok());

  QVERIFY(arrived() == content_);
}

void DatasetFetchTest::a_hub_that_does_not_resume_sends_all_again() {
  FakeHub hub(run_.hub(), content_);
  hub.ignore_ranges();
  QVERIFY(write_file_atomically(partial_, content_.substr(0, 1000), FileMode::kPublic).ok());

  QVERIFY(fetch(hub).ok());

  QVERIFY(arrived() == content_);
}

void DatasetFetchTest::another_content_is_not_kept_and_asked_for_until_it_is_right() {
  std::string changed = content_;
  changed[500'000] ^= 1;
  FakeHub hub(run_.hub(), changed);
  act_ = [&] {
    QVERIFY(!std::filesystem::exists(destination_));
    if (troubles_.size() >= 3) hub.replace(content_);
  };

  const Status fetched = fetch(hub);

  QVERIFY2(fetched.ok(), fetched.ok() ? "" : fetched.error().message.c_str());
  QCOMPARE(arrived(), content_);
  QVERIFY2(troubles_[0].find("SHA-256") != std::string::npos, troubles_[0].c_str());
  QVERIFY(troubles_.back().empty());
}

void DatasetFetchTest::a_full_disk_says_so_and_keeps_the_partial_file() {
  const FakeHub hub(run_.hub(), content_);
  // A disk that is full from its first byte on; a link to it would not be followed.
  if (::mknod(partial_.c_str(), S_IFCHR | 0600, makedev(1, 7)) != 0) QSKIP("this user may make no device");

  const Status fetched = fetch(hub);

  QCOMPARE(fetched.error().code, ErrorCode::kDiskFull);
  QVERIFY(fetched.error().message.find("free some space") != std::string::npos);
  QVERIFY(std::filesystem::exists(partial_));
}

void DatasetFetchTest::a_hub_that_is_away_is_asked_until_it_is_back() {
  FakeHub hub(run_.hub(), content_);
  hub.break_after(0, 25);

  const Status fetched = fetch(hub);

  QVERIFY2(fetched.ok(), fetched.ok() ? "" : fetched.error().message.c_str());
  QCOMPARE(arrived(), content_);
  QCOMPARE(troubles_.size(), std::size_t{26});
  QVERIFY2(troubles_[0].find("trying again") != std::string::npos, troubles_[0].c_str());
  QVERIFY(troubles_.back().empty());
}

void DatasetFetchTest::an_abort_keeps_the_partial_file() {
  FakeHub hub(run_.hub(), content_);
  hub.break_after(0, 1'000'000);
  QVERIFY(write_file_atomically(partial_, content_.substr(0, 1000), FileMode::kPublic).ok());
  abort_after_ = 10;

  QCOMPARE(fetch(hub).error().code, ErrorCode::kAborted);

  QCOMPARE(std::filesystem::file_size(partial_), std::uintmax_t{1000});
}

void DatasetFetchTest::a_file_that_the_hub_lacks_is_asked_for_again() {
  const FakeHub hub(run_.hub(), content_);
  abort_after_ = 10;

  QCOMPARE(fetch(hub, "other.bin").error().code, ErrorCode::kAborted);

  QVERIFY2(troubles_[0].find("404") != std::string::npos, troubles_[0].c_str());
}

void DatasetFetchTest::a_forged_alert_is_no_refusal() {
  const ForgedAlert liar;
  const FakeHub hub(run_.hub(), content_);

  const Status fetched = fetch_dataset_file(
      run_.island(1), {liar.address(), hub.address().front()}, "shard.bin", content_.size(),
      sha256_hex(as_bytes(content_)), destination_, *abort_, {}, [&](const std::string& why) { on_trouble(why); },
      kFast);

  QVERIFY2(fetched.ok(), fetched.ok() ? "" : fetched.error().message.c_str());
  QCOMPARE(liar.answered(), 1);
  QVERIFY2(troubles_[0].find("certificate") != std::string::npos, troubles_[0].c_str());
}

void DatasetFetchTest::a_hub_that_removed_this_island_is_asked_no_more() {
  FakeHub hub(run_.hub(), content_);
  hub.refuse();

  const Status fetched = fetch(hub);

  QCOMPARE(fetched.error().code, ErrorCode::kPermissionDenied);
  QVERIFY(fetched.error().message.find("new invite") != std::string::npos);
  QVERIFY(troubles_.empty());
}

void DatasetFetchTest::names_that_leave_the_directory_are_refused() {
  const FakeHub hub(run_.hub(), content_);
  for (const char* name : {"", "..", "../key.pem", "a/b/c", "a/..", "/b", "a/", "a b", ".hidden", "a\r\nHost: x"}) {
    QCOMPARE(fetch(hub, name).error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::DatasetFetchTest)
#include "dataset_fetch_test.moc"
