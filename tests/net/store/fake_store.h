// An object store within the test: HTTP on 127.0.0.1, one bucket, what Atoll asks of S3. It checks what a real one
// checks (signatures, by Signature Version 4's own description; the SHA-256 of a body), and fails as it is told to. A
// thread a connection.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "net/base/bytes.h"
#include "net/base/mutex.h"
#include "net/base/unique_fd.h"

namespace atl::test {

inline constexpr const char* kFakeBucket = "bucket-one";
inline constexpr const char* kFakeKeyId = "AKIDFAKE0EXAMPLE";
inline constexpr const char* kFakeSecret = "wJalrXUtnFEMI+K7MDENG/bPxRfiCYEXAMPLEKEY";

struct FakeStoreRequest {
  std::string method, target, path, query;          // the last two as they were sent
  std::map<std::string, std::string> headers = {};  // by their names in small letters
  std::string body = {};

  std::string key() const;                           // decoded; empty: of the bucket
  std::string value(const std::string& name) const;  // of the query, decoded
  bool asks(const std::string& name) const;
  bool is_part() const { return method == "PUT" && asks("partNumber"); }
};

struct FakeStoreAnswer {
  int status = 200;
  std::string body = {};
  std::map<std::string, std::string> headers = {};
};

// What becomes of a request that the store would answer.
struct StoreFault {
  enum class Kind {
    kNone,
    kAnswer,      // this, and it is not done
    kCutBefore,   // the connection is closed; it is not done
    kCutAfter,    // it is done, and the connection closed in place of an answer
    kStall,       // nothing, for as long as the store lives
    kDrip,        // it is done, and its answer comes at about 800 bytes a second
    kWrongEtag,   // it is done, and another ETag told
    kWrongBytes,  // a GET's body has one byte changed
  };
  Kind kind = Kind::kNone;
  FakeStoreAnswer answer = {};
  static StoreFault refuse(int status, const std::string& code, const std::string& message = "no");
};

class FakeStore {
 public:
  // Of each request, before it is done; on the connections' threads, one at a time. May be empty.
  explicit FakeStore(std::function<StoreFault(const FakeStoreRequest&)> fault = {});
  ~FakeStore();

  std::string endpoint() const;
  void let_everybody_read() { public_ = true; }
  std::vector<std::string> keys() const;
  std::string object(const std::string& key) const;  // empty: not there
  void put(const std::string& key, const std::string& bytes);
  void erase(const std::string& key);
  std::size_t open_upload_count() const;
  // Since the beginning.
  std::uint64_t parts_taken() const { return parts_taken_; }
  std::vector<std::string> asked() const;   // "PUT prefix/outer-1/manifest.json", in order
  std::string everything_received() const;  // heads of requests, for who looks for secrets

 private:
  struct Object {
    std::string bytes, etag;
    std::map<std::string, std::string> headers;
  };
  struct Upload {
    std::string key;
    std::map<std::string, std::string> headers;
    std::map<int, Object> parts;
  };

  void accept_all(const std::stop_token& stop);
  void serve(int socket);
  FakeStoreAnswer answer(const FakeStoreRequest& request) ATOLL_REQUIRES(mutex_);
  FakeStoreAnswer list(const FakeStoreRequest& request) const ATOLL_REQUIRES(mutex_);
  FakeStoreAnswer post(const FakeStoreRequest& request) ATOLL_REQUIRES(mutex_);
  FakeStoreAnswer put_object(const FakeStoreRequest& request) ATOLL_REQUIRES(mutex_);
  FakeStoreAnswer get_object(const FakeStoreRequest& request) const ATOLL_REQUIRES(mutex_);
  std::optional<FakeStoreAnswer> refused(const FakeStoreRequest& request) const;

  const std::function<StoreFault(const FakeStoreRequest&)> fault_;
  std::atomic<bool> public_{false};
  std::atomic<std::uint64_t> parts_taken_{0};
  UniqueFd listening_;
  std::uint16_t port_ = 0;
  mutable Mutex mutex_;
  std::map<std::string, Object> objects_ ATOLL_GUARDED_BY(mutex_);
  std::map<std::string, Upload> uploads_ ATOLL_GUARDED_BY(mutex_);
  std::vector<std::string> asked_ ATOLL_GUARDED_BY(mutex_);
  std::string heads_ ATOLL_GUARDED_BY(mutex_);
  int last_upload_ ATOLL_GUARDED_BY(mutex_) = 0;
  Mutex connections_mutex_;
  std::list<UniqueFd> connections_ ATOLL_GUARDED_BY(connections_mutex_);
  std::list<std::jthread> threads_ ATOLL_GUARDED_BY(connections_mutex_);
  std::atomic<bool> ends_{false};
  std::jthread acceptor_;
};

}  // namespace atl::test
