// The island's outer state: parameters and Nesterov momentum, fp32, canonical order, with its version and tree hash.
// Changed by the island's loop thread alone; served to joiners by HTTPS threads meanwhile.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/wire_format.h"
#include "net/base/mutex.h"
#include "net/recovery/outer_state.h"
#include "net/wire/mesh.h"

namespace atl {

class OuterStateStore final : public OuterStateSource {
 public:
  explicit OuterStateStore(std::int64_t numel) : numel_(numel) {}

  // ---- loop thread ----
  bool holds_state() const { return !parameters_.empty(); }
  OuterStep version() const { return version_; }
  const std::string& tree_hash() const { return tree_hash_; }  // hex; empty while it holds no state
  // [numel]; valid until the next change.
  std::span<const float> parameters() const { return parameters_; }

  // Version 0: fresh parameters, zero momentum.
  void initialise(std::vector<float> parameters);
  // What was fetched from another island, or loaded from disk. The manifest was verified against it by the caller.
  void replace(FetchedState state);
  // The outer step on the canonical average: version + 1. `canonical`: encoded_bytes(wire, numel) bytes.
  void apply(WireFormat wire, ByteView canonical, float learning_rate, float momentum);

  // As a file (net/disk/outer_state_file.h), which is written from this memory. Loading checks all of it; kNotFound
  // when there is none.
  Status save(const std::filesystem::path& file) const;
  Status load(const std::filesystem::path& file);

  // ---- any thread ----
  Result<StateManifest> manifest() const override;
  Result<Bytes> copy_chunk(OuterStep version, std::uint64_t index) const override;
  // A copy of the parameters and their version, for exports. kNotFound while it holds no state.
  Result<std::pair<OuterStep, std::vector<float>>> snapshot() const;

 private:
  void hold() ATOLL_REQUIRES(mutex_);  // new manifest after a change

  const std::int64_t numel_;
  // Written by the loop thread under the mutex; read by it without, by others with it.
  mutable Mutex mutex_;
  OuterStep version_;
  std::vector<float> parameters_;
  std::vector<float> momentum_;
  StateManifest manifest_;
  std::string tree_hash_;
};

}  // namespace atl
