// One island of a run: DiLoCo (arXiv:2311.08105, algorithm 1), with several fragments Streaming DiLoCo
// (arXiv:2501.18512). Inner steps on its leased tokens (inner_loop.h), the all-reduce of its pseudo-gradient when the
// hub says so, the outer step once the hub has committed the round (sync_lane.h).
//
// One thread calls run(); request_stop() and the accessors may be called from any. Owns the inbound port and the mesh
// client.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "net/base/address.h"
#include "net/base/result.h"
#include "net/control/events.h"
#include "net/control/transfer_caps.h"
#include "net/data/mirror_policy.h"
#include "net/model/config.h"
#include "net/model_files/model_writer.h"
#include "net/step/memory_needs.h"
#include "net/store/store_settings.h"
#include "net/tls/identity.h"
#include "net/wire/mesh.h"
#include "trainer/island/batch_source.h"

namespace atl {

struct IslandOptions {
  Identity identity;
  std::vector<Address> hub_addresses;
  std::string display_name;
  std::string region;     // for people; may be empty
  bool credited = false;  // models of the run may name it
  Address bind{"0.0.0.0", 0};
  std::string advertised_host;  // empty: the host that the hub sees
  int local_ranks = 1;          // 0: as many as suit the machine
  int threads = 1;              // compute threads
  int micro_batch = 0;          // sequences that a rank computes at once; 0: by the memory there is
  DeviceChoice device = DeviceChoice::kAuto;
  PrecisionChoice precision = PrecisionChoice::kAuto;
  TransferCaps transfer_caps;  // at first; see set_transfer_caps
  std::filesystem::path data_directory;
  std::uint64_t data_cache_bytes = kDefaultDataCacheBytes;  // that the run's data may take there
  MirrorPolicy data_mirrors = MirrorPolicy::kHttps;         // that may be asked for it
  std::filesystem::path checkpoint_directory;               // empty: nothing is kept across restarts
  std::uint32_t keep_days = 0;         // the newest outer state of each day, so many days back, stays beside the run's
  std::chrono::seconds work_every{0};  // in which the work of an open round is written to the disk; 0: only by a pause
  std::set<OuterStep> keep_rounds;     // that can be come back to as long as they are named here

  StoreSettings store;  // what its owner says of object stores

  // The rows of its last node check, asked before each connection to the hub. May be empty.
  std::function<std::optional<std::vector<CheckedRow>>()> checked;

  // Where batches come from; by default the run's dataset, fetched from the hub into data_directory where it is
  // missing.
  std::function<Result<std::unique_ptr<BatchSource>>(const RunConfig&)> make_batches;
  // Parameters of outer step 0, canonical order; by default drawn from the run's seed.
  std::function<Result<std::vector<float>>(const ModelConfig&)> initial_parameters;
  // What it tells (net/control/events.h), for the control socket. May be empty; must not block; on the island's, a
  // lane's, the evaluator's or the mesh's thread.
  std::function<void(const ControlEvent& event)> on_event;
};

class Island {
 public:
  static Result<std::unique_ptr<Island>> create(IslandOptions options);
  ~Island();

  // Trains until the run is finished or a stop is requested (ok), or until the island cannot go on (the error says
  // why).
  Status run();

  // Any thread: ends the inner phase or all-reduce under way, tells the hub, saves the outer state.
  void request_stop(const std::string& reason);
  // Any thread: gives up the inner step under way between two passes (in an all-reduce: ends after its commit), keeps
  // the work of the round on the disk, and has the hub keep its place. What recovers or waits has nothing to keep and
  // ends at once.
  void request_pause();
  // Any thread: completes the round with its all-reduce, then leaves the run.
  void request_finish();
  // Any thread: what its owner lets it send and receive from now on, all of it together. Attempts, transfers and
  // answers that are under way keep to it within a moment.
  void set_transfer_caps(const TransferCaps& caps);
  IslandState state() const;
  // After run(): the hub said that the run is finished.
  bool run_finished() const;
  // After run(): whether it ended by a pause or a finish, and did what was asked.
  bool paused() const;
  bool round_finished() const;
  // Writes a HuggingFace directory of the outer parameters as they are now (model_export.h); its outer step.
  Result<OuterStep> export_model(const std::filesystem::path& directory, const ModelFilesOptions& files) const;
  // The outer parameters, canonical order, with the outer step that they are of.
  Result<std::pair<OuterStep, std::vector<float>>> outer_parameters() const;

 private:
  class Impl;
  explicit Island(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace atl
