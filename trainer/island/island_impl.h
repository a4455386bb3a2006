// An island's parts and how they hang together: island.cpp has its set-up and what it hears and says, island_loop.cpp
// what its thread does. For these two files.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/base/mailbox.h"
#include "net/base/mutex.h"
#include "net/collective/all_reduce.h"
#include "net/data/chunk_exchange.h"
#include "net/mesh/link_probe.h"
#include "net/mesh/mesh_client.h"
#include "net/recovery/served_rounds.h"
#include "net/recovery/serving_pace.h"
#include "net/transport/peer_listener.h"
#include "trainer/engine/engine.h"
#include "trainer/island/catch_up.h"
#include "trainer/island/inner_loop.h"
#include "trainer/island/island.h"
#include "trainer/island/island_disk.h"
#include "trainer/island/island_engine.h"
#include "trainer/island/island_news.h"
#include "trainer/island/island_status.h"
#include "trainer/island/outer_state_store.h"
#include "trainer/island/past_watch.h"
#include "trainer/island/roster.h"
#include "trainer/island/round_keeper.h"
#include "trainer/island/snapshot_keeper.h"
#include "trainer/island/state_evaluator.h"
#include "trainer/island/state_uploader.h"
#include "trainer/island/sync_lanes.h"
#include "trainer/island/work_keeper.h"

namespace atl {

class Island::Impl final : public InnerLoopOwner {
 public:
  explicit Impl(IslandOptions options);

  Status listen();
  Status run();
  void request_stop(const std::string& reason);
  void request_pause();
  void request_finish() { finish_asked_ = true; }
  void set_transfer_caps(const TransferCaps& caps);
  bool paused() const { return pause_asked_ && !run_finished_; }
  bool round_finished() const { return round_finished_; }

  // Once the mesh gave up, its next() says why.
  void send(const IslandMessage& message) override {
    (void)mesh_->send(message);
    news_.said(message, run_);
  }
  void post(FragmentId lane, LaneCommand command) override {
    if (std::holds_alternative<LaneBegin>(command)) lanes_->inner_phase_ends(lane, status_.snapshot());
    lanes_->post(lane, std::move(command));
  }
  Result<FetchedState> fetch(const HubRecover& recover) override;
  Result<std::vector<float>> initial_parameters() override;
  void evaluate(bool to_the_end) override {
    if (evaluator_) evaluator_->evaluate(to_the_end);
  }
  void upload(const HubUpload& asked) override {
    if (uploader_) uploader_->upload(asked);
  }
  void give_up_uploads_after(OuterStep committed) override {
    if (uploader_) uploader_->give_up_after(committed);
  }
  Result<FetchedState> kept_state(const HeldState& wanted) override {
    if (!disk_.keeps() || !disk_.has_way_to(wanted)) return Error{ErrorCode::kNotFound, "it is not on this disk"};
    const std::vector<HeldState> before = disk_.durable();
    auto state = disk_.kept_state(wanted, model_, let_go_of_state());
    if (state.ok()) {
      spdlog::info("recovery round={} from=disk", wanted.outer_step.value);
      end_catch_up();
    }
    if (disk_.durable() != before) send(IslandDurable{disk_.durable()});  // what could not be read leads nowhere
    return state;
  }
  void publish(StateNews news) override;

  IslandState state() const { return status_.snapshot(); }
  bool run_finished() const { return run_finished_; }
  Result<std::pair<OuterStep, std::vector<float>>> outer_parameters() const;
  Result<OuterStep> export_model(const std::filesystem::path& directory, const ModelFilesOptions& files) const;

 private:
  IslandHello hello() const;
  std::vector<ChunkPeer> chunk_peers() const;
  std::optional<Error> ends_data_wait(bool in_vain) const;
  void serve(TlsConnection connection, HttpSession& session);
  void on_urgent(const HubMessage& message);
  void on_hub_lost(const std::string& why, std::optional<Seconds> tries_for);
  void on_trouble(Trouble of, const std::string& text);
  void on_hub_back();
  void on_kept(OuterStep round, const Status& kept);
  void on_uploaded(const IslandUploaded& how);
  void end_catch_up();
  FetchedState let_go_of_state();
  void look_for_checkpoint();
  void begin_evaluations();
  std::optional<HeldWork> held_work() const {
    MutexLock lock(told_mutex_);
    return held_work_;
  }
  Result<RunConfig> wait_for_welcome();
  Status wait_for_goodbye();
  Status prepare(const RunConfig& run);
  Result<IslandEngine> make_engine(const IslandChoice& choice);
  Status loop();
  Status train(InnerLoop& inner);
  bool may_end(InnerLoop& inner);
  Status keep_work(InnerLoop& inner);
  Status take_lane_news(InnerLoop& inner, Deadline deadline);
  void snapshot_written(const Status& written);
  void end_snapshots();

  const IslandOptions options_;
  IslandNews news_{options_.identity.name, options_.on_event};
  IslandStatus status_;
  Roster roster_;
  AbortSignal stop_;
  std::atomic<bool> parting_ = false;  // it or the hub has said goodbye: that the connection ends then is no news
  AbortSignal end_downloads_;          // on a stop or the hub's goodbye: else they try as long as it takes
  RingInbox inbox_;
  std::optional<TlsContext> ring_context_;
  IslandDisk disk_{options_.checkpoint_directory};
  std::optional<ServedRounds> rounds_;  // none without a disk
  ServingPace serving_{options_.transfer_caps.upload};
  DownloadPace download_{options_.transfer_caps.download};
  std::optional<RingAllReduce> ring_;  // the lanes'; while it pads what it dialled ahead it asks serving_
  ChunkExchange chunks_{options_.identity, [this] { return chunk_peers(); }, {.download = &download_}};
  std::optional<RoundKeeper> keeper_;  // until the mesh ends
  std::optional<WorkKeeper> works_;    // while it trains, where its owner asks for it
  std::atomic<bool> run_finished_{false};
  std::atomic<bool> pause_asked_{false};
  std::optional<Clock::time_point> pause_since_;  // of the island's thread
  std::atomic<bool> finish_asked_{false};
  std::atomic<bool> round_finished_{false};
  RunConfig run_;
  ModelConfig model_;
  std::optional<IslandCheckpoint> checkpoint_;  // from the start until the run's model is known
  std::unique_ptr<Engine> engine_;
  std::optional<double> peak_flops_;      // of what it computes on
  std::uint64_t training_bytes_ = 0;      // of main memory, at most
  bool has_processor_to_itself_ = false;  // GPUs train
  std::unique_ptr<BatchSource> batches_;
  mutable Mutex outer_mutex_;  // of the pointer alone: listener and control threads come before it is set
  std::shared_ptr<OuterStateStore> outer_
      ATOLL_GUARDED_BY(outer_mutex_);  // shared with the HTTPS request that reads it
  Mailbox<Status> written_{8};         // from the snapshots' thread to the loop
  std::optional<SnapshotKeeper> snapshots_;
  std::optional<CatchUp> catch_up_;  // while it recovers
  mutable Mutex told_mutex_;
  std::optional<HeldWork> held_work_ ATOLL_GUARDED_BY(told_mutex_);  // of the process before this one
  // The newest that the hub named, which may be newer than what is being fetched.
  std::optional<HeldState> told_to_recover_ ATOLL_GUARDED_BY(told_mutex_);
  std::unique_ptr<SyncLanes> lanes_;  // from before there is another thread
  std::optional<PastWatch> past_;     // likewise; where somebody is told
  // Last, so that their threads end before what they use.
  std::unique_ptr<PeerListener> listener_;
  Mailbox<IslandLinkReport> link_reports_{8};  // from the prober to the loop, which tells the hub
  LinkProber prober_{options_.identity,
                     [this](const MeasuredLink& link) {
                       (void)link_reports_.push({{{link.peer, false, link.bytes_per_second, link.rtt_seconds, false}}});
                     },
                     &download_};
  std::unique_ptr<MeshClient> mesh_;
  std::optional<StateUploader> uploader_;    // of a run that has a store
  std::optional<StateEvaluator> evaluator_;  // of a run that has tasks

  std::shared_ptr<OuterStateStore> outer() const {
    MutexLock lock(outer_mutex_);
    return outer_;
  }
};

}  // namespace atl
