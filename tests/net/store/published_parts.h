// What tests of published states share: a state of a few chunks that differ, options that do not wait.
#pragma once

#include <QtCore/QtGlobal>
#include <atomic>
#include <string>
#include <vector>

#include "net/recovery/outer_state.h"
#include "net/store/state_download.h"
#include "net/store/state_upload.h"
#include "net/store/store_settings.h"

namespace atl::test {

inline constexpr const char* kTestModel = R"({"model_type":"llama","hidden_size":64})";

// Values that are cheap to make and differ from chunk to chunk.
inline FetchedState state_of(OuterStep step, std::uint64_t numel, float shift) {
  FetchedState state{step, std::vector<float>(numel), std::vector<float>(numel)};
  for (std::uint64_t i = 0; i < numel; ++i) {
    state.parameters[i] = shift + static_cast<float>(i % 1'000'003);
    state.momentum[i] = -shift - static_cast<float>(i % 999'983);
  }
  return state;
}

class MemorySource final : public ChunkSource {
 public:
  explicit MemorySource(const FetchedState& state)
      : state_(state), manifest_(make_state_manifest(state.version, state.parameters, state.momentum)) {}
  const StateManifest& manifest() const override { return manifest_; }
  Result<Bytes> chunk(std::uint64_t index) const override {
    ++reads;
    Bytes bytes(manifest_.chunk_bytes(index));
    const ByteView parameters = std::as_bytes(of_chunk(std::span(state_.parameters), index));
    const ByteView momentum = std::as_bytes(of_chunk(std::span(state_.momentum), index));
    std::ranges::copy(momentum, std::ranges::copy(parameters, bytes.begin()).out);
    if (damages) bytes.front() ^= std::byte{1};
    return bytes;
  }

  mutable std::atomic<int> reads{0};
  bool damages = false;

 private:
  const FetchedState& state_;
  const StateManifest manifest_;
};

// All of it, in memory.
class WholeSink final : public ChunkSink {
 public:
  explicit WholeSink(std::uint64_t numel)
      : state{{}, std::vector<float>(numel), std::vector<float>(numel)}, has_(state_chunks(numel)) {}
  bool has(std::uint64_t index) const override { return has_[index].load(); }
  Status put(std::uint64_t index, ByteView bytes) override {
    const auto parameters = std::as_writable_bytes(of_chunk(std::span(state.parameters), index));
    const auto momentum = std::as_writable_bytes(of_chunk(std::span(state.momentum), index));
    std::ranges::copy(bytes.first(parameters.size()), parameters.begin());
    std::ranges::copy(bytes.subspan(parameters.size()), momentum.begin());
    has_[index] = true;
    ++puts;
    return ok_status();
  }

  FetchedState state;
  std::atomic<int> puts{0};

 private:
  std::vector<std::atomic<bool>> has_;
};

inline StoreClientOptions impatient() {
  StoreClientOptions options;
  options.tries = 3;
  options.first_pause = std::chrono::milliseconds(1);
  options.longest_pause = std::chrono::milliseconds(2);
  return options;
}

inline StateUploadOptions quick_upload() {
  StateUploadOptions options;
  options.connections = 2;
  options.client = impatient();
  return options;
}

inline StateDownloadOptions quick_download() { return {2, impatient()}; }

inline const PublishedRun& test_run_parts() {
  static const PublishedRun run{"0123456789abcdef", "first run", kTestModel, AttentionScope::kPacked};
  return run;
}

template <class T>
T take(Result<T> result) {
  if (!result.ok()) qFatal("%s", result.error().message.c_str());
  return std::move(result).value();
}
inline void take(const Status& status) {
  if (!status.ok()) qFatal("%s", status.error().message.c_str());
}

}  // namespace atl::test
