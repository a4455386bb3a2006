// Fetches an outer state that was published in an object store (published_state.h): chunks from several connections,
// by ranges of the objects, each verified against the manifest. What a sink has already is not fetched again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/bytes.h"
#include "net/base/mutex.h"
#include "net/base/result.h"
#include "net/https/fetch_progress.h"
#include "net/store/published_state.h"
#include "net/store/store_client.h"

namespace atl {

struct PublishedState {
  PublishedManifest manifest;
  std::string manifest_sha256;  // hex
  std::string prefix;           // of its objects: PREFIX/outer-STEP
};

// `prefix`: a state's own, whose last part is outer-STEP, or where states are published: then the newest. With
// `manifest_sha256` (hex) it must be the one with that manifest. kNotFound where nothing is published; kCorrupt where
// something else is.
Result<PublishedState> find_published_state(StoreClient& client, const std::string& prefix,
                                            const std::string& manifest_sha256, const AbortSignal& abort);

// Whether its objects are there, as long as they are to be and of these chunks, by what they say of themselves.
Status check_published_state(StoreClient& client, const PublishedState& state, const AbortSignal& abort);

// Where chunks go. Several threads at once.
class ChunkSink {
 public:
  virtual ~ChunkSink() = default;
  virtual bool has(std::uint64_t index) const = 0;
  virtual Status put(std::uint64_t index, ByteView bytes) = 0;  // verified
};

struct StateDownloadOptions {
  int connections = 4;
  StoreClientOptions client = {};
};

// Blocks. kCorrupt when the store gives other bytes than the manifest names; else as StoreClient::call. What came stays
// in the sink for the next try.
Status fetch_published_state(const StoreAccess& access, const PublishedState& state, ChunkSink& sink,
                             const AbortSignal& abort, const FetchProgress& progress,
                             const StateDownloadOptions& options = {});

// The parameters alone, in memory, in canonical order: what a run begins with.
class ParametersSink final : public ChunkSink {
 public:
  explicit ParametersSink(std::uint64_t numel) : parameters_(numel), has_(state_chunks(numel)) {}
  bool has(std::uint64_t index) const override;
  Status put(std::uint64_t index, ByteView bytes) override;
  std::vector<float> take() { return std::move(parameters_); }

 private:
  std::vector<float> parameters_;  // [numel]; each chunk's are one thread's
  mutable Mutex mutex_;
  std::vector<bool> has_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace atl
