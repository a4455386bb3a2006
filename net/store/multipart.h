// An object that is written in parts (S3's multipart upload), and what a bucket lists: requests and their XML. Each
// call blocks; one thread a client.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/result.h"
#include "net/store/store_client.h"

namespace atl {

struct StoredPart {
  std::uint64_t bytes = 0;
  std::string etag;  // without quotes
};

class MultipartUpload {
 public:
  // Begun, or found by open_uploads(). All outlive it.
  MultipartUpload(std::string key, std::string id) : key_(std::move(key)), id_(std::move(id)) {}
  static Result<MultipartUpload> begin(StoreClient& client, const std::string& key,
                                       const std::map<std::string, std::string>& headers, const AbortSignal& abort);

  const std::string& key() const { return key_; }
  // By their number, from 1; kNotFound when the upload is over.
  Result<std::map<std::uint64_t, StoredPart>> parts(StoreClient& client, const AbortSignal& abort) const;
  // The request of a part, but for its body.
  StoreRequest part_request(std::uint64_t number) const;
  Status complete(StoreClient& client, const std::map<std::uint64_t, StoredPart>& parts,
                  const AbortSignal& abort) const;
  Status give_up(StoreClient& client, const AbortSignal& abort) const;  // the store forgets its parts

 private:
  std::string key_, id_;
};

// Those that were begun beneath `prefix` and not ended.
Result<std::vector<MultipartUpload>> open_uploads(StoreClient& client, const std::string& prefix,
                                                  const AbortSignal& abort);

}  // namespace atl
