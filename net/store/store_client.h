// Requests to an object store that speaks S3, over libcurl, which signs them (AWS Signature Version 4). Objects are
// addressed by path (ENDPOINT/BUCKET/KEY), which every such store understands; TLS trusts the system's authorities, or
// those that the owner names. A body is signed with its SHA-256, so that the store takes only what was meant. One
// thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/bytes.h"
#include "net/base/download_pace.h"
#include "net/base/result.h"
#include "net/base/sha256.h"
#include "net/store/address_filter.h"
#include "net/store/credentials.h"
#include "net/store/store_url.h"

namespace atl {

inline constexpr std::uint64_t kLeastStoreRate = 1024;  // bytes a second

// Where a bucket is, and with what it is asked.
struct StoreAccess {
  std::string endpoint;  // https://HOST[:PORT]
  std::string region = "us-east-1";
  std::string bucket;
  StoreCredentials credentials;                 // none: what everybody may read
  std::filesystem::path authorities_file = {};  // PEM; empty: the system's
};

struct StoreClientOptions {
  std::chrono::milliseconds connect{20'000};
  // A request of which less than kLeastStoreRate moves for so long is given up: silence, and a store that drips. Stores
  // think for some seconds before they answer.
  std::chrono::milliseconds stall{60'000};
  int tries = 6;  // of what may pass: 5xx, 429, broken connections, a stall
  std::chrono::milliseconds first_pause{500}, longest_pause{30'000};
  AddressFilter filter = {};         // of the addresses that may be connected to; empty: all
  DownloadPace* download = nullptr;  // what the owner lets the island receive; null: no limit. Outlives the client
};

struct ByteSpan {
  std::uint64_t offset = 0, bytes = 0;
};

enum class StoreMethod { kGet, kHead, kPut, kPost, kDelete };

struct StoreRequest {
  StoreMethod method = StoreMethod::kGet;
  std::string key = {};                           // of the object; empty: the bucket itself
  std::map<std::string, std::string> query = {};  // encoded by the client
  std::map<std::string, std::string> headers = {};
  ByteView body = {};                      // of a PUT or POST; outlives the call
  std::optional<Digest> body_sha256 = {};  // where it is known; else it is computed
  std::optional<ByteSpan> range = {};      // of a GET
  std::uint64_t max_bytes = 1u << 20;      // of the answer's body; more is an error
  // Bytes a second that the body may be sent with at this moment; empty, or nothing in it: as fast as it goes.
  std::function<std::optional<double>()> rate = {};
};

struct StoreAnswer {
  long status = 0;
  std::map<std::string, std::string> headers = {};  // by their names in small letters
  Bytes body = {};

  std::string header(const std::string& name) const;  // empty: not there
};

class StoreClient {
 public:
  // kInvalidArgument when nothing can be asked there.
  static Result<StoreClient> create(StoreAccess access, StoreClientOptions options = {});
  StoreClient(StoreClient&&) noexcept;
  StoreClient& operator=(StoreClient&&) noexcept;
  ~StoreClient();

  // An answer of 2xx; what may pass was tried again. Errors say what to do: kNotFound (no such object, bucket or
  // upload), kPermissionDenied (credentials, rights, a wrong clock), kDiskFull (a quota), kUnreachable, kTimeout,
  // kCertificate, kProtocol. kAborted soon after `abort` is raised.
  Result<StoreAnswer> call(const StoreRequest& request, const AbortSignal& abort);

 private:
  class Impl;
  explicit StoreClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace atl
