#include "net/store/state_download.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace atl {
namespace {

std::string_view last_part(std::string_view prefix) {
  const auto slash = prefix.rfind('/');
  return slash == std::string_view::npos ? prefix : prefix.substr(slash + 1);
}

Result<LatestState> read_latest(StoreClient& client, const std::string& prefix, const AbortSignal& abort) {
  const auto answer =
      client.call({.key = StoreUrl{{}, prefix, {}, {}}.key(kLatestObject), .max_bytes = kMaxLatestBytes}, abort);
  if (!answer.ok()) return answer.error().with_context("no state is published there, or it cannot be read");
  return LatestState::from_json(to_string(answer->body));
}

// Chunks that are missing, one after the other to whichever connection is free.
class StateDownload {
 public:
  StateDownload(const StoreAccess& access, const PublishedState& state, ChunkSink& sink, const AbortSignal& abort,
                const FetchProgress& progress, const StateDownloadOptions& options)
      : access_(access), state_(state), sink_(sink), abort_(abort), progress_(progress), options_(options) {
    const StateManifest& manifest = state.manifest.state;
    for (std::uint64_t i = 0; i < manifest.chunk_sha256.size(); ++i) {
      if (sink.has(i)) {
        done_bytes_ += manifest.chunk_bytes(i);
      } else {
        missing_.push_back(i);
      }
    }
  }

  Status run() {
    std::vector<StoreClient> clients;
    for (int i = 0; i < std::max(1, options_.connections); ++i) {
      ATOLL_ASSIGN_OR_RETURN(StoreClient client, StoreClient::create(access_, options_.client));
      clients.push_back(std::move(client));
    }
    {
      std::vector<std::jthread> threads;
      for (StoreClient& client : clients) threads.emplace_back([&] { work(client); });
    }
    MutexLock lock(mutex_);
    return failed_;
  }

 private:
  void work(StoreClient& client) {
    for (;;) {
      const std::uint64_t at = next_++;
      if (at >= missing_.size()) return;
      Status status;
      try {
        status = fetch(client, missing_[at]);
      } catch (const std::exception& failure) {
        status = Error{ErrorCode::kInternal, failure.what()};
      }
      MutexLock lock(mutex_);
      if (!status.ok()) {
        if (failed_.ok()) failed_ = status;
        next_ = missing_.size();
        return;
      }
      done_bytes_ += state_.manifest.state.chunk_bytes(missing_[at]);
      if (progress_) progress_(done_bytes_, state_.manifest.state.state_bytes);
    }
  }

  Status fetch(StoreClient& client, std::uint64_t chunk) {
    const StateManifest& manifest = state_.manifest.state;
    const std::uint64_t object = chunk / kChunksOfObject, bytes = manifest.chunk_bytes(chunk);
    const std::uint64_t offset = (chunk - first_chunk_of(object)) * kStateChunkBytes;
    const StoreRequest request{.key = fmt::format("{}/{}", state_.prefix, chunk_object(object)),
                               .range = ByteSpan{offset, bytes},
                               .max_bytes = bytes};
    // What was altered on its way, or is cached somewhere, may be right the next time.
    for (int attempt = 0; attempt < 2; ++attempt) {
      ATOLL_ASSIGN_OR_RETURN(const StoreAnswer answer, client.call(request, abort_));
      if (answer.body.size() == bytes && sha256(answer.body) == manifest.chunk_sha256[chunk]) {
        return sink_.put(chunk, answer.body);
      }
    }
    return Error{ErrorCode::kCorrupt,
                 fmt::format("chunk {} of {} in bucket {} at {} is not what the manifest says; another state may have "
                             "been written there since: look for it again",
                             chunk, request.key, access_.bucket, access_.endpoint)};
  }

  const StoreAccess& access_;
  const PublishedState& state_;
  ChunkSink& sink_;
  const AbortSignal& abort_;
  const FetchProgress& progress_;
  const StateDownloadOptions& options_;
  std::vector<std::uint64_t> missing_;
  std::atomic<std::uint64_t> next_{0};
  Mutex mutex_;
  std::uint64_t done_bytes_ ATOLL_GUARDED_BY(mutex_) = 0;
  Status failed_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace

Result<PublishedState> find_published_state(StoreClient& client, const std::string& prefix,
                                            const std::string& manifest_sha256, const AbortSignal& abort) {
  PublishedState found;
  found.prefix = prefix;
  std::string wanted = manifest_sha256;
  if (!published_step(last_part(prefix))) {
    ATOLL_ASSIGN_OR_RETURN(const LatestState latest, read_latest(client, prefix, abort));
    found.prefix = StoreUrl{{}, prefix, {}, {}}.key(published_name(latest.outer_step));
    if (wanted.empty()) wanted = latest.manifest_sha256;
  }
  const std::string key = fmt::format("{}/{}", found.prefix, kManifestObject);
  ATOLL_ASSIGN_OR_RETURN(const StoreAnswer answer,
                         client.call({.key = key, .max_bytes = kMaxPublishedManifest}, abort));
  found.manifest_sha256 = to_hex(sha256(answer.body));
  if (!wanted.empty() && found.manifest_sha256 != wanted) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} is another one than was asked for (SHA-256 {}, not {}): another state has taken its "
                             "place, or takes it now",
                             key, found.manifest_sha256, wanted)};
  }
  ATOLL_ASSIGN_OR_RETURN(found.manifest, PublishedManifest::from_json(to_string(answer.body)));
  return found;
}

Status fetch_published_state(const StoreAccess& access, const PublishedState& state, ChunkSink& sink,
                             const AbortSignal& abort, const FetchProgress& progress,
                             const StateDownloadOptions& options) {
  return StateDownload(access, state, sink, abort, progress, options).run();
}

Status check_published_state(StoreClient& client, const PublishedState& state, const AbortSignal& abort) {
  const StateManifest& manifest = state.manifest.state;
  for (std::uint64_t object = 0; object < chunk_objects(manifest); ++object) {
    const std::string key = fmt::format("{}/{}", state.prefix, chunk_object(object));
    ATOLL_ASSIGN_OR_RETURN(const StoreAnswer answer, client.call({.method = StoreMethod::kHead, .key = key}, abort));
    if (answer.header("content-length") != std::to_string(bytes_of_object(manifest, object)) ||
        answer.header(kChunksHeader) != chunks_digest(manifest, object)) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{} is not what {}/{} names; choose another state", key, state.prefix, kManifestObject)};
    }
  }
  return ok_status();
}

bool ParametersSink::has(std::uint64_t index) const {
  MutexLock lock(mutex_);
  return index < has_.size() && has_[index];
}

Status ParametersSink::put(std::uint64_t index, ByteView bytes) {
  const Error other_size{ErrorCode::kCorrupt, "the published state is of a model of another size"};
  if (index >= state_chunks(parameters_.size())) return other_size;
  const auto into = std::as_writable_bytes(of_chunk(std::span(parameters_), index));
  if (bytes.size() != 2 * into.size()) return other_size;
  std::ranges::copy(bytes.first(into.size()), into.begin());
  MutexLock lock(mutex_);
  has_[index] = true;
  return ok_status();
}

}  // namespace atl
