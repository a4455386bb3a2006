// Publishes an outer state in an object store (published_state.h): several chunks at once, each read when its turn
// comes, signed with its digest, and compared with what the store says that it keeps. A process that is killed is gone
// on with by the next one: parts that the store has are compared by their MD5 and not sent again. A state that is there
// already costs some requests and no upload.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/base/abort_signal.h"
#include "net/base/bytes.h"
#include "net/base/result.h"
#include "net/https/fetch_progress.h"
#include "net/model/attention_scope.h"
#include "net/recovery/outer_state.h"
#include "net/store/store_client.h"

namespace atl {

// The state that is to be published. Any of the upload's threads, several at once.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  virtual const StateManifest& manifest() const = 0;
  virtual Result<Bytes> chunk(std::uint64_t index) const = 0;
};

// An upload's permission to send a part, as long as it lives.
class UploadTurn {
 public:
  virtual ~UploadTurn() = default;
  virtual std::optional<double> bytes_per_second() const = 0;  // at this moment; empty: no limit
};

struct StateUploadOptions {
  // At most so many chunks are in memory, one a connection.
  int connections = 4;
  StoreClientOptions client = {};
  // Asked before each part, on the upload's threads; may block until `abort` is raised. Empty: no waiting, no limit.
  std::function<std::unique_ptr<UploadTurn>(const AbortSignal& abort)> take_turn = {};
  FetchProgress progress = {};  // bytes that the store has, of all; on any of the upload's threads, one at a time
};

struct PublishedRun {
  std::string run_id, run_name, model_json;
  AttentionScope attention = AttentionScope::kPacked;
  std::string tokenizer = {}, tokenizer_sha256 = {};  // as of PublishedManifest
};

struct StateUploadReport {
  std::string manifest_sha256;   // hex
  std::uint64_t sent_bytes = 0;  // of chunks
};

// Beneath `prefix` in the bucket. Blocks; kAborted soon after `abort` is raised, and what was sent stays for the next
// try. kPermissionDenied where another run's states lie: they stay as they are. kCorrupt when the source is not what
// its manifest says, or the store keeps other bytes than were sent; else as StoreClient::call.
Result<StateUploadReport> publish_state(const StoreAccess& access, const std::string& prefix, const PublishedRun& run,
                                        const ChunkSource& source, const AbortSignal& abort,
                                        const StateUploadOptions& options = {});

}  // namespace atl
