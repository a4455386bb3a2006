#include "trainer/island/island.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <thread>
#include <utility>

#include "net/base/mailbox.h"
#include "net/base/mutex.h"
#include "net/mesh/link_probe.h"
#include "net/mesh/mesh_client.h"
#include "net/model/fragments.h"
#include "net/model/initialise.h"
#include "net/model/layout.h"
#include "net/recovery/state_fetch.h"
#include "net/recovery/state_server.h"
#include "net/transport/peer_listener.h"
#include "trainer/checkpoint/huggingface.h"
#include "trainer/engine/fsdp_engine.h"
#include "trainer/island/checkpoint.h"
#include "trainer/island/engine_devices.h"
#include "trainer/island/engine_options.h"
#include "trainer/island/inner_loop.h"
#include "trainer/island/island_disk.h"
#include "trainer/island/island_news.h"
#include "trainer/island/island_status.h"
#include "trainer/island/memory_plan.h"
#include "trainer/island/outer_state_store.h"
#include "trainer/island/roster.h"
#include "trainer/island/run_data.h"
#include "trainer/island/sync_lanes.h"
#include "trainer/island/transfer_news.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kPauseTime{60};          // less than the agent gives a trainer to end (Supervisor)
constexpr std::chrono::milliseconds kMessageWait{100};  // how often a waiting island looks whether it should stop

IslandState initial_state(const IslandOptions& options) {
  IslandState state;
  state.state = IslandPhase::kJoining;
  state.island = options.identity.name.value;
  state.name = options.display_name;
  state.run_id = options.identity.run;
  state.pid = ::getpid();
  return state;
}

}  // namespace

class Island::Impl final : public InnerLoopOwner {
 public:
  explicit Impl(IslandOptions options) : options_(std::move(options)), status_(initial_state(options_)) {}

  Status listen();
  Status run();
  void request_stop(const std::string& reason);
  void request_pause();
  void request_finish() { finish_asked_ = true; }
  bool paused() const { return pause_asked_ && !run_finished_; }
  bool round_finished() const { return round_finished_; }

  // Once the mesh gave up, its next() says why.
  void send(const IslandMessage& message) override { (void)mesh_->send(message); }
  void post(FragmentId lane, LaneCommand command) override {
    if (std::holds_alternative<LaneBegin>(command)) lanes_->inner_phase_ends(lane, status_.snapshot());
    lanes_->post(lane, std::move(command));
  }
  Result<FetchedState> fetch(const HubRecover& recover) override;
  Result<std::vector<float>> initial_parameters() override;
  Result<FetchedState> kept_state(const HeldState& wanted) override {
    const std::vector<HeldState> before = disk_.durable();
    auto state = disk_.kept_state(wanted, model_);
    if (state.ok()) spdlog::info("recovery round={} from=disk", wanted.outer_step.value);
    if (disk_.durable() != before) send(IslandDurable{disk_.durable()});  // what could not be read leads nowhere
    return state;
  }
  void publish(StateNews news) override;

  IslandState state() const { return status_.snapshot(); }
  bool run_finished() const { return run_finished_; }
  Result<std::pair<OuterStep, std::vector<float>>> outer_parameters() const;
  Result<OuterStep> export_model(const std::filesystem::path& directory) const;

 private:
  IslandHello hello() const;
  void on_urgent(const HubMessage& message);
  void on_hub_lost(const std::string& why, std::optional<Seconds> tries_for);
  void on_trouble(Trouble of, const std::string& text);
  void on_hub_back();
  void look_for_checkpoint();
  Result<RunConfig> wait_for_welcome();
  Status wait_for_goodbye();
  Status prepare(const RunConfig& run);
  Status loop();
  Status train(InnerLoop& inner);
  bool may_end(InnerLoop& inner);
  Status take_lane_news(InnerLoop& inner, Deadline deadline);
  void save_checkpoint();

  const IslandOptions options_;
  IslandNews news_{options_.identity.name, options_.on_event};
  IslandStatus status_;
  Roster roster_;
  AbortSignal stop_;
  AbortSignal end_downloads_;  // on a stop or the hub's goodbye: else they try as long as it takes
  RingInbox inbox_;
  std::optional<TlsContext> ring_context_;
  std::optional<RingAllReduce> ring_;  // the lanes'
  IslandDisk disk_{options_.checkpoint_directory};
  std::atomic<bool> run_finished_{false};
  std::atomic<bool> pause_asked_{false};
  std::optional<Clock::time_point> pause_by_;  // of the island's thread
  std::atomic<bool> finish_asked_{false};
  std::atomic<bool> round_finished_{false};
  RunConfig run_;
  ModelConfig model_;
  std::optional<IslandCheckpoint> checkpoint_;  // from the start until the run's model is known
  std::unique_ptr<Engine> engine_;
  std::optional<double> peak_flops_;  // of what it computes on
  std::unique_ptr<BatchSource> batches_;
  mutable Mutex outer_mutex_;  // of the pointer alone: listener and control threads come before it is set
  std::shared_ptr<OuterStateStore> outer_
      ATOLL_GUARDED_BY(outer_mutex_);  // shared with the HTTPS request that reads it
  std::unique_ptr<SyncLanes> lanes_;   // from before there is another thread
  // Last, so that their threads end before what they use.
  std::unique_ptr<PeerListener> listener_;
  Mailbox<IslandLinkReport> link_reports_{8};  // from the prober to the loop, which tells the hub
  LinkProber prober_{options_.identity, [this](const MeasuredLink& link) {
                       (void)link_reports_.push({{{link.peer, false, link.bytes_per_second, link.rtt_seconds, false}}});
                     }};
  std::unique_ptr<MeshClient> mesh_;

  std::shared_ptr<OuterStateStore> outer() const {
    MutexLock lock(outer_mutex_);
    return outer_;
  }
};

// ---- set-up
// --------------------------------------------------------------------------------------------------------------

Status Island::Impl::listen() {
  ATOLL_ASSIGN_OR_RETURN(TlsContext server, TlsContext::island_server(options_.identity));
  ATOLL_ASSIGN_OR_RETURN(TlsContext client, TlsContext::client(options_.identity, kAlpnRing));
  ring_context_.emplace(std::move(client));
  ring_.emplace(options_.identity.name, inbox_, *ring_context_);
  lanes_ = std::make_unique<SyncLanes>(
      LaneSurroundings{.self = options_.identity.name,
                       .ring = *ring_,
                       .roster = roster_,
                       .disk = disk_,
                       .upload_bytes_per_second = options_.upload_bytes_per_second,
                       .send = [this](const IslandMessage& message) { send(message); },
                       .publish = [this](StateNews news) { publish(news); },
                       .disk_trouble = [this](const std::string& text) { on_trouble(Trouble::kRounds, text); },
                       .on_event = options_.on_event},
      [this] { mesh_->wake(); });
  PeerListenerOptions listener;
  listener.bind = options_.bind;
  ATOLL_ASSIGN_OR_RETURN(listener_, PeerListener::start(
                                        listener, std::move(server),
                                        [this](const PeerCertificate& peer) { return roster_.admit(peer); }, inbox_,
                                        [this](TlsConnection connection, HttpSession& session) {
                                          // Without state yet there is nothing to serve; the peer asks another island.
                                          if (const auto state = outer())
                                            serve_state(std::move(connection), *state, session);
                                        }));
  return ok_status();
}

IslandHello Island::Impl::hello() const {
  IslandHello hello;
  hello.software = "atoll " ATOLL_VERSION;
  hello.display_name = options_.display_name;
  hello.region = options_.region;
  hello.listen_port = listener_->port();
  hello.advertised_host = options_.advertised_host;
  if (options_.checked) hello.checked = options_.checked();
  const IslandState state = status_.snapshot();
  if (!state.state_hash.empty()) {
    hello.outer_step = OuterStep{state.outer_step};
    hello.state_hash = state.state_hash;
  }
  hello.durable = disk_.durable();
  hello.last_commit = disk_.record().newest_commit();
  hello.epoch = disk_.record().epoch();
  return hello;
}

// On the mesh thread: what must not wait until the inner loop comes round. Of attempts the lanes hear here alone.
void Island::Impl::on_urgent(const HubMessage& message) {
  lanes_->take(message);
  if (const auto* roster = std::get_if<HubRoster>(&message)) {
    roster_.replace(*roster);
    news_.learn_roster(*roster);
    for (const IslandId& removed : roster->removed) listener_->cut(removed);
    std::vector<std::string> hosts;
    for (const RosterEntry& entry : roster->islands) hosts.push_back(entry.address.host);
    listener_->expect(hosts);
  }
  // The ring has the links to itself; all members hear of it at once.
  if (std::holds_alternative<HubAttempt>(message)) prober_.stop_probing();
  if (const auto* probe = std::get_if<HubProbe>(&message)) {
    for (const RosterEntry& entry : roster_.entries({probe->from})) {
      prober_.probe({entry.id, entry.address, std::min(probe->bytes, kMaxProbeBytes)});
    }
  }
  if (const auto* goodbye = std::get_if<HubGoodbye>(&message)) end_downloads_.raise(goodbye->message);
}

// On the mesh thread too. The newest cause stands in the status; the event is told once.
void Island::Impl::on_hub_lost(const std::string& why, std::optional<Seconds> tries_for) {
  const bool first = news_.hub_lost(why, tries_for);
  std::string text = fmt::format("the hub does not answer ({}); trying again", why);
  if (tries_for) {
    const auto until = std::chrono::system_clock::now() + std::chrono::duration_cast<std::chrono::seconds>(*tries_for);
    text += fmt::format(" until {:%H:%M}", fmt::localtime(std::chrono::system_clock::to_time_t(until)));
  }
  if (status_.set_trouble(Trouble::kHub, text) && first) publish(StateNews::kChanged);
}

void Island::Impl::on_hub_back() {
  news_.hub_back();
  on_trouble(Trouble::kHub, {});
}

void Island::Impl::on_trouble(Trouble of, const std::string& text) {
  if (status_.set_trouble(of, text)) publish(StateNews::kChanged);
}

Result<RunConfig> Island::Impl::wait_for_welcome() {
  while (!stop_.raised()) {
    Result<HubMessage> message = mesh_->next(Deadline::after(kMessageWait));
    if (message.ok()) {
      if (const auto* welcome = std::get_if<HubWelcome>(&*message)) {
        return welcome->run;
      }
      if (const auto* goodbye = std::get_if<HubGoodbye>(&*message)) return Error{goodbye->code, goodbye->message};
      continue;  // the roster; acted on already
    }
    if (message.error().code != ErrorCode::kTimeout) return message.error();
  }
  return Error{ErrorCode::kAborted, stop_.reason()};
}

// It has been said; the queue is before it.
Status Island::Impl::wait_for_goodbye() {
  while (!stop_.raised()) {
    const Result<HubMessage> message = mesh_->next(Deadline::after(kMessageWait));
    if (!message.ok() && message.error().code != ErrorCode::kTimeout) return message.error();
    const auto* goodbye = message.ok() ? std::get_if<HubGoodbye>(&*message) : nullptr;
    if (goodbye == nullptr) continue;
    run_finished_ = goodbye->finished;
    return goodbye->finished ? ok_status() : Status(Error{goodbye->code, goodbye->message});
  }
  return Error{ErrorCode::kAborted, stop_.reason()};
}

// Model, data and outer state of the run. Takes as long as the download of missing shards takes.
Status Island::Impl::prepare(const RunConfig& run) {
  run_ = run;
  ATOLL_ASSIGN_OR_RETURN(model_, model_config_from_json(run_.model_json));
  const IslandChoice choice{options_.local_ranks, options_.micro_batch, options_.threads, options_.precision};
  EngineDevices devices = choose_devices(model_, run_, choice, options_.device);
  const MemoryPlan& memory = devices.plan;
  peak_flops_ = devices.peak_flops;
  spdlog::info("memory {}", memory.log_line());
  if (!devices.trouble.empty()) spdlog::warn("gpu trouble=\"{}\"", devices.trouble);
  status_.set_trouble(Trouble::kDevice, devices.trouble);
  if (!memory.trouble().empty()) spdlog::warn("memory trouble=\"{}\"", memory.trouble());
  status_.set_trouble(Trouble::kMemory, memory.trouble());
  EngineOptions engine = engine_options(run_, memory.island, options_.threads);
  engine.on_micro_batch = [this] {
    status_.update([](IslandState& s) { ++s.passes; });
    return !stop_.raised() && !pause_asked_;
  };
  ATOLL_ASSIGN_OR_RETURN(
      engine_, devices.gpus ? create_engine(model_, engine, std::move(devices.gpus)) : Engine::create(model_, engine));
  if (options_.make_batches) {
    ATOLL_ASSIGN_OR_RETURN(batches_, options_.make_batches(run_));
  } else {
    TransferNews news(Download::kData, options_.on_event);
    auto data = open_run_data(run_, options_.identity, options_.hub_addresses, options_.data_directory, end_downloads_,
                              news, [this](const std::string& why) { on_trouble(Trouble::kData, why); });
    data.ok() ? news.done() : news.failed(data.error().message);
    ATOLL_ASSIGN_OR_RETURN(batches_, std::move(data));
  }
  auto outer = std::make_shared<OuterStateStore>(engine_->numel());
  if (checkpoint_ && checkpoint_->model == model_) outer = std::move(checkpoint_->outer);
  checkpoint_.reset();
  status_.update([&](IslandState& s) {
    s.run_name = run_.name;
    s.parameters = static_cast<std::uint64_t>(engine_->numel());
    s.micro_batch = static_cast<std::uint32_t>(memory.island.micro_batch);
    s.memory_bytes = memory.needs.most();
    s.outer_step = outer->version().value;
    s.state_hash = outer->tree_hash();
  });
  MutexLock lock(outer_mutex_);
  outer_ = std::move(outer);
  disk_.keep_states(run_.keep_states, run_.validate_every, run_.fragments);
  return ok_status();
}

Result<FetchedState> Island::Impl::fetch(const HubRecover& recover) {
  std::vector<StateSourceAddress> sources;
  for (const RosterEntry& entry : roster_.entries(recover.sources)) sources.push_back({entry.id, entry.address});
  TransferNews news(Download::kState, options_.on_event);
  auto state = fetch_state(options_.identity, sources, recover.outer_step, recover.state_hash,
                           static_cast<std::uint64_t>(engine_->numel()), end_downloads_,
                           [&](std::uint64_t done, std::uint64_t total) { news.progress(done, total, Clock::now()); });
  state.ok() ? news.done() : news.failed(state.error().message);
  // That the others have gone on to a newer one is no trouble: the hub names it next.
  const bool fine = state.ok() || state.error().code == ErrorCode::kNotFound || end_downloads_.raised();
  on_trouble(Trouble::kState, fine ? "" : state.error().message + "; trying again");
  return state;
}

// Not what the engine began with: it may have been trained, or given another state, since.
Result<std::vector<float>> Island::Impl::initial_parameters() {
  return options_.initial_parameters ? options_.initial_parameters(model_) : fresh_parameters(model_, run_.seed);
}

// ---- the loop
// ------------------------------------------------------------------------------------------------------------

// Before the hub is met: the hello says which state this island holds, so that one that comes back keeps its place.
void Island::Impl::look_for_checkpoint() {
  Result<IslandCheckpoint> loaded = disk_.load();
  if (loaded.ok()) {
    checkpoint_.emplace(std::move(*loaded));
    status_.update([&](IslandState& s) {
      s.outer_step = checkpoint_->outer->version().value;
      s.state_hash = checkpoint_->outer->tree_hash();
    });
  } else if (loaded.error().code != ErrorCode::kNotFound) {
    spdlog::warn("checkpoint error=\"{}\"", loaded.error().message);  // the others hold the state too
  }
}

Status Island::Impl::run() {
  look_for_checkpoint();
  MeshClient::Callbacks callbacks{
      .hello = [this] { return hello(); },
      .heartbeat = [this] { return status_.heartbeat(); },
      .urgent = [this](const HubMessage& message) { on_urgent(message); },
      .committed = [this](std::shared_ptr<const SignedCommit> commit) { disk_.told(std::move(commit)); },
      .meet = [this](const SignedEpoch& epoch) -> Status {
        const auto known = disk_.record().epoch();
        ATOLL_RETURN_IF_ERROR(disk_.record().meet(epoch));
        if (!known || known->epoch < epoch.epoch) inbox_.forget_attempts();
        return ok_status();
      },
      .lost = [this](const std::string& why, std::optional<Seconds> tries_for) { on_hub_lost(why, tries_for); },
      .back = [this] { on_hub_back(); }};
  MeshClientOptions mesh;
  mesh.hub_addresses = options_.hub_addresses;
  ATOLL_ASSIGN_OR_RETURN(mesh_, MeshClient::start(mesh, options_.identity, std::move(callbacks)));
  Status status = loop();
  if (!status.ok() && stop_.raised() && status.error().code == ErrorCode::kAborted) status = ok_status();
  status_.update([&](IslandState& s) {
    s.state = status.ok() ? IslandPhase::kStopped : IslandPhase::kError;
    if (!status.ok()) s.error = status.error().message;
  });
  // The death rattle: the others need not wait for a timeout to know.
  const std::string reason = paused() ? "paused by its owner" : "stopped by its owner";
  (void)mesh_->send(IslandLeaving{status.ok() ? reason : status.error().message, status.ok() && paused()});
  publish(status.ok() ? StateNews::kChanged : StateNews::kError);
  mesh_.reset();
  save_checkpoint();
  return status;
}

Status Island::Impl::loop() {
  ATOLL_ASSIGN_OR_RETURN(const RunConfig run, wait_for_welcome());
  if (const Status prepared = prepare(run); !prepared.ok()) {
    return prepared.error().code == ErrorCode::kAborted ? wait_for_goodbye() : prepared;
  }
  ATOLL_ASSIGN_OR_RETURN(const std::vector<Fragment> fragments, fragments_of(canonical_layout(model_), run_.fragments));
  const std::shared_ptr<OuterStateStore> outer = this->outer();
  lanes_->start(run_, fragments, *outer, status_);
  InnerLoop inner(run_, fragments, *engine_, *batches_, *outer, status_, *this, stop_);
  inner.set_peak_flops(peak_flops_);
  if (auto work = disk_.take_work(static_cast<std::uint64_t>(engine_->numel()))) inner.resume_from(std::move(*work));
  inner.begin();
  const Status trained = train(inner);
  // What lanes say until they end is said before the island's goodbye.
  const std::vector<std::vector<float>> owed = lanes_->end();
  if (!trained.ok()) return trained.error();
  run_finished_ = inner.finished();
  if (!paused()) return ok_status();
  if (const auto work = inner.interrupted_work(owed)) disk_.keep_work(*work);
  return ok_status();
}

Status Island::Impl::train(InnerLoop& inner) {
  std::optional<HeldState> saved;
  if (inner.outer_state() && disk_.newest_is(*inner.outer_state())) saved = inner.outer_state();
  while (!stop_.raised() && !inner.finished() && !may_end(inner)) {
    if (inner.takes_last_commits()) {  // the mesh may have ended with the goodbye
      ATOLL_RETURN_IF_ERROR(take_lane_news(inner, Deadline::after(kMessageWait)));
      continue;
    }
    // Between inner steps the mailbox is only looked into.
    const bool trains = inner.has_work() && !pause_asked_;
    const Result<HubMessage> message = mesh_->next(trains ? Deadline::at(Clock::now()) : Deadline::after(kMessageWait));
    // Lanes tell before the hub hears of it: what it answers comes after.
    ATOLL_RETURN_IF_ERROR(take_lane_news(inner, Deadline::at(Clock::now())));
    if (message.ok()) {
      ATOLL_RETURN_IF_ERROR(inner.handle(*message));
    } else if (message.error().code != ErrorCode::kTimeout) {
      return message.error();
    } else if (!inner.has_work()) {
      ATOLL_RETURN_IF_ERROR(inner.idle());
    } else if (!pause_asked_) {
      ATOLL_RETURN_IF_ERROR(inner.work());
    }
    while (const auto report = link_reports_.try_pop()) send(*report);
    if (inner.outer_state() && inner.outer_state() != saved && disk_.may_save(Clock::now())) {
      saved = inner.outer_state();  // also when it fails: the next round tries again
      // A lane may have been ahead of the inner loop when a state was written last.
      if (!disk_.newest_is(*saved)) save_checkpoint();
    }
  }
  return ok_status();
}

Status Island::Impl::take_lane_news(InnerLoop& inner, Deadline deadline) {
  while (auto news = lanes_->next_news(deadline)) ATOLL_RETURN_IF_ERROR(inner.handle(std::move(*news)));
  return ok_status();
}

// Whether a pause or a finish that was asked for may be followed now. While a lane averages the others count on this
// island; a pause does not wait for them for ever, for the GPUs are wanted, and who leaves in order keeps its place.
bool Island::Impl::may_end(InnerLoop& inner) {
  if (pause_asked_) {
    if (!pause_by_) pause_by_ = Clock::now() + kPauseTime;
    if (!inner.averages() || Clock::now() >= *pause_by_) return true;
  }
  if (!finish_asked_) return false;
  inner.begin_no_more();
  if (!inner.between_rounds()) return false;
  round_finished_ = true;
  return true;
}

// Training goes on without it: the others hold the same state.
void Island::Impl::save_checkpoint() {
  const auto outer = this->outer();
  if (!disk_.keeps() || !outer || !outer->holds_state()) return;
  const Status saved = disk_.save(model_, *outer);
  if (mesh_) send(IslandDurable{disk_.durable()});
  if (!saved.ok()) spdlog::error("checkpoint error=\"{}\"", saved.error().message);
  const std::string trouble =
      saved.ok() ? "" : fmt::format("no checkpoint is written: {}. Training goes on", saved.error().message);
  const bool news = status_.set_trouble(Trouble::kCheckpoint, trouble);
  if (saved.ok()) {
    publish(StateNews::kCheckpointSaved);
  } else if (news) {
    publish(StateNews::kChanged);
  }
}

void Island::Impl::request_stop(const std::string& reason) {
  stop_.raise(reason);
  end_downloads_.raise(reason);
  lanes_->end_attempts(reason);
}

void Island::Impl::request_pause() {
  pause_asked_ = true;
  const IslandPhase now = status_.snapshot().state;
  // What recovers, waits or has not joined yet loses nothing, and may be blocked in a transfer.
  if (now != IslandPhase::kTraining && now != IslandPhase::kSyncing) request_stop("paused by its owner");
}

// Of rounds the inner loop alone tells, while their lane rests.
void Island::Impl::publish(StateNews news) {
  const IslandState state = status_.snapshot();
  if (news == StateNews::kRoundBegin) lanes_->round_begins(state);
  if (news == StateNews::kSyncDone) lanes_->round_done(state);
  if (options_.on_event) options_.on_event(event_of(news, state, run_));
}

Result<std::pair<OuterStep, std::vector<float>>> Island::Impl::outer_parameters() const {
  const auto outer = this->outer();
  if (!outer) return Error{ErrorCode::kNotFound, "this island has no model yet; it is still joining"};
  return outer->snapshot();
}

Result<OuterStep> Island::Impl::export_model(const std::filesystem::path& directory) const {
  ATOLL_ASSIGN_OR_RETURN(const auto snapshot, outer_parameters());
  ATOLL_RETURN_IF_ERROR(write_model_directory(directory, model_, snapshot.second));
  return snapshot.first;
}

// ---- the public face
// -----------------------------------------------------------------------------------------------------

Result<std::unique_ptr<Island>> Island::create(IslandOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  ATOLL_RETURN_IF_ERROR(impl->listen());
  return std::unique_ptr<Island>(new Island(std::move(impl)));
}

Island::Island(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Island::~Island() = default;
Status Island::run() { return impl_->run(); }
void Island::request_stop(const std::string& reason) { impl_->request_stop(reason); }
void Island::request_pause() { impl_->request_pause(); }
void Island::request_finish() { impl_->request_finish(); }
bool Island::paused() const { return impl_->paused(); }
bool Island::round_finished() const { return impl_->round_finished(); }
IslandState Island::state() const { return impl_->state(); }
bool Island::run_finished() const { return impl_->run_finished(); }
Result<OuterStep> Island::export_model(const std::filesystem::path& directory) const {
  return impl_->export_model(directory);
}
Result<std::pair<OuterStep, std::vector<float>>> Island::outer_parameters() const { return impl_->outer_parameters(); }

}  // namespace atl
