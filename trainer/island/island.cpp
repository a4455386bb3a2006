#include "trainer/island/island.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <thread>

#include "net/base/file.h"
#include "net/base/mutex.h"
#include "net/collective/all_reduce.h"
#include "net/disk/checkpoint_directory.h"
#include "net/disk/inner_state_file.h"
#include "net/disk/kept_average_file.h"
#include "net/mesh/link_probe.h"
#include "net/mesh/mesh_client.h"
#include "net/model/initialise.h"
#include "net/model/layout.h"
#include "net/recovery/state_server.h"
#include "net/transport/peer_listener.h"
#include "trainer/checkpoint/huggingface.h"
#include "trainer/island/attempt_gate.h"
#include "trainer/island/checkpoint.h"
#include "trainer/island/island_news.h"
#include "trainer/island/island_status.h"
#include "trainer/island/kept_states.h"
#include "trainer/island/memory_plan.h"
#include "trainer/island/outer_state_store.h"
#include "trainer/island/roster.h"
#include "trainer/island/round_loop.h"
#include "trainer/island/run_data.h"
#include "trainer/island/run_record.h"
#include "trainer/island/transfer_news.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kMessageWait{100};  // how often a waiting island looks whether it should stop
// What takes no longer is written to the disk in every round; what does, so seldom that it takes a twentieth of the
// time.
constexpr std::chrono::seconds kQuickWrite{1};
constexpr int kWriteShare = 20;

EngineOptions engine_options(const RunConfig& run, const IslandOptions& options, const MemoryPlan& memory) {
  EngineOptions engine;
  engine.local_ranks = options.local_ranks;
  engine.seed = run.seed;
  engine.adamw = {.beta1 = static_cast<float>(run.inner.beta1),
                  .beta2 = static_cast<float>(run.inner.beta2),
                  .epsilon = static_cast<float>(run.inner.epsilon),
                  .weight_decay = static_cast<float>(run.inner.weight_decay)};
  engine.clip_norm = run.inner.clip_grad_norm;
  engine.max_z_loss = run.inner.max_z_loss;
  engine.compute_threads = options.threads;
  engine.micro_batch_sequences = memory.micro_batch;
  return engine;
}

// Whether it is time to write something large again.
class WritePace {
 public:
  bool may_write(Clock::time_point now) const { return took_ <= kQuickWrite || now - wrote_at_ >= kWriteShare * took_; }
  void wrote(Clock::time_point began, Clock::time_point ended) {
    took_ = ended - began;
    wrote_at_ = ended;
  }

 private:
  Clock::duration took_{};
  Clock::time_point wrote_at_;
};

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

class Island::Impl final : public RoundLoopNetwork {
 public:
  explicit Impl(IslandOptions options) : options_(std::move(options)), status_(initial_state(options_)) {}

  Status listen();
  Status run();
  void request_stop(const std::string& reason);
  void request_pause();
  void request_finish() { finish_asked_ = true; }
  bool paused() const { return pause_asked_ && !run_finished_; }
  bool round_finished() const { return round_finished_; }

  void send(const IslandMessage& message) override {
    if (std::holds_alternative<IslandReady>(message)) news_.inner_phase_done(Clock::now());
    (void)mesh_->send(message);  // once it gave up, next() says why
  }
  std::variant<AllReduceReport, AllReduceFailure> all_reduce(const AllReduceSpec& spec, std::span<const float> input,
                                                             std::span<std::byte> canonical,
                                                             const AbortSignal& abort) override {
    const auto began = Clock::now();
    if (attempt_ && attempt_->round == spec.round && attempt_->attempt == spec.attempt) {
      news_.attempt_begins(*attempt_, roster_);
    }
    AllReduceSpec limited = spec;
    limited.most_bytes_per_second = options_.upload_bytes_per_second;
    limited.on_progress = [&](const AllReduceProgress& progress) { news_.progress(spec, progress); };
    auto result = ring_->run(limited, input, canonical, abort);
    news_.attempt_done(spec, result, began, Clock::now());
    return result;
  }
  Result<FetchedState> fetch(const HubRecover& recover) override;
  Result<std::vector<float>> initial_parameters() override;
  void keep_average(OuterStep round, WireFormat wire, const std::string& digest, ByteView canonical) override;
  Result<KeptAverage> kept_average(OuterStep round, const std::string& digest) override {
    return load_average(average_file(), round, digest);
  }
  Result<FetchedState> kept_state(const HeldState& wanted) override;
  void keep_commit(const HubCommit& commit) override;
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
  bool may_end(const RoundLoop& rounds);
  void keep_work(const RoundLoop& rounds) const;
  void take_up_work(RoundLoop& rounds) const;
  void save_checkpoint();
  KeptStates kept_states() const;
  bool checkpoint_is_of(const OuterStateStore& outer) const;
  std::filesystem::path inner_state_file() const { return options_.checkpoint_directory / kInnerStateFile; }
  std::filesystem::path average_file() const { return options_.checkpoint_directory / kKeptAverageFile; }

  const IslandOptions options_;
  IslandNews news_{options_.identity.name, options_.on_event};
  IslandStatus status_;
  Roster roster_;
  AttemptGate gate_;
  AbortSignal stop_;
  AbortSignal end_downloads_;  // on a stop or the hub's goodbye: else they try as long as it takes
  RingInbox inbox_;
  std::optional<TlsContext> ring_context_;
  std::unique_ptr<RingAllReduce> ring_;
  mutable Mutex durable_mutex_;
  std::vector<HeldState> durable_ ATOLL_GUARDED_BY(durable_mutex_);  // on the disk
  std::atomic<bool> run_finished_{false};
  std::atomic<bool> pause_asked_{false};
  std::atomic<bool> finish_asked_{false};
  std::atomic<bool> round_finished_{false};
  RunRecord record_{options_.checkpoint_directory};
  Mutex commit_mutex_;
  std::shared_ptr<const SignedCommit> told_commit_ ATOLL_GUARDED_BY(commit_mutex_);  // the newest that the hub told
  WritePace checkpoint_pace_, average_pace_;                                         // the loop's
  RunConfig run_;
  ModelConfig model_;
  std::optional<HubAttempt> attempt_;           // the newest; the loop's
  std::optional<IslandCheckpoint> checkpoint_;  // from the start until the run's model is known
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<BatchSource> batches_;
  mutable Mutex outer_mutex_;  // guards the pointer alone: listener and control threads come before it is set
  std::shared_ptr<OuterStateStore> outer_;  // shared with the HTTPS request that reads it
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
  ring_ = std::make_unique<RingAllReduce>(options_.identity.name, inbox_, *ring_context_);
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
  {
    MutexLock lock(durable_mutex_);
    hello.durable = durable_;
  }
  hello.last_commit = record_.newest_commit();
  hello.epoch = record_.epoch();
  return hello;
}

// On the mesh thread: what must not wait until the loop comes round.
void Island::Impl::on_urgent(const HubMessage& message) {
  if (std::holds_alternative<HubWelcome>(message)) gate_.welcome();
  if (const auto* roster = std::get_if<HubRoster>(&message)) {
    roster_.replace(*roster);
    news_.learn_roster(*roster);
    for (const IslandId& removed : roster->removed) listener_->cut(removed);
    std::vector<std::string> hosts;
    for (const RosterEntry& entry : roster->islands) hosts.push_back(entry.address.host);
    listener_->expect(hosts);
  }
  if (const auto* abort = std::get_if<HubAbort>(&message))
    gate_.abort_through(abort->round, abort->attempt, abort->reason);
  if (const auto* next = std::get_if<HubAttempt>(&message)) {
    prober_.stop_probing();  // the ring has the links to itself; all members hear of it at once
    gate_.abort_through(next->round, Attempt{next->attempt.value - 1}, "a newer attempt began");
  }
  if (const auto* probe = std::get_if<HubProbe>(&message)) {
    for (const RosterEntry& entry : roster_.entries({probe->from})) {
      prober_.probe({entry.id, entry.address, std::min(probe->bytes, kMaxProbeBytes)});
    }
  }
  if (const auto* goodbye = std::get_if<HubGoodbye>(&message)) {
    gate_.close(goodbye->message);
    end_downloads_.raise(goodbye->message);
  }
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
        gate_.pass_welcome();
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
  const MemoryPlan memory = plan_memory(model_, run_, {options_.local_ranks, options_.micro_batch}, memory_there_is());
  spdlog::info("memory {}", memory.log_line());
  if (!memory.trouble().empty()) spdlog::warn("memory trouble=\"{}\"", memory.trouble());
  status_.set_trouble(Trouble::kMemory, memory.trouble());
  EngineOptions engine = engine_options(run_, options_, memory);
  engine.on_micro_batch = [this] {
    status_.update([](IslandState& s) { ++s.passes; });
    return !stop_.raised() && !pause_asked_;
  };
  ATOLL_ASSIGN_OR_RETURN(engine_, Engine::create(model_, engine));
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
    s.micro_batch = memory.micro_batch;
    s.memory_bytes = memory.needs.most();
    s.outer_step = outer->version().value;
    s.state_hash = outer->tree_hash();
  });
  MutexLock lock(outer_mutex_);
  outer_ = std::move(outer);
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

Result<std::vector<float>> Island::Impl::initial_parameters() {
  if (options_.initial_parameters) return options_.initial_parameters(model_);
  // Not what the engine began with: it may have been trained, or given another state, since.
  std::vector<float> parameters(static_cast<std::size_t>(engine_->numel()));
  const ParameterLayout layout = canonical_layout(model_);
  std::atomic<std::size_t> next{0};
  const auto fill = [&] {
    for (std::size_t i; (i = next++) < layout.parameters.size();) {
      const ParameterInfo& parameter = layout.parameters[i];
      const auto place =
          std::span(parameters)
              .subspan(static_cast<std::size_t>(parameter.offset), static_cast<std::size_t>(parameter.numel));
      initialise_parameter(model_, parameter, i, run_.seed, place);
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) helpers.emplace_back(fill);
    fill();
  }
  return parameters;
}

// ---- the loop
// ------------------------------------------------------------------------------------------------------------

// Before the hub is met: the hello says which state this island holds, so that one that comes back keeps its place.
void Island::Impl::look_for_checkpoint() {
  if (options_.checkpoint_directory.empty()) return;
  record_.load();
  {
    MutexLock lock(durable_mutex_);
    durable_ = kept_states().list();
  }
  Result<IslandCheckpoint> loaded = load_checkpoint(options_.checkpoint_directory);
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
      .committed =
          [this](std::shared_ptr<const SignedCommit> commit) {
            MutexLock lock(commit_mutex_);
            told_commit_ = std::move(commit);
          },
      .meet = [this](const SignedEpoch& epoch) -> Status {
        const auto known = record_.epoch();
        ATOLL_RETURN_IF_ERROR(record_.meet(epoch));
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
  RoundLoop rounds(run_, *engine_, *batches_, *outer_, gate_, status_, *this, stop_);
  take_up_work(rounds);
  rounds.begin();
  std::optional<HeldState> saved;
  if (outer_->holds_state() && checkpoint_is_of(*outer_)) saved = HeldState{outer_->version(), outer_->tree_hash()};
  while (!stop_.raised() && !rounds.finished() && !may_end(rounds)) {
    // Between inner steps the mailbox is only looked into.
    Result<HubMessage> message =
        mesh_->next(rounds.has_work() ? Deadline::at(Clock::now()) : Deadline::after(kMessageWait));
    if (message.ok()) {
      if (const auto* attempt = std::get_if<HubAttempt>(&*message)) attempt_ = *attempt;
      if (const auto* commit = std::get_if<HubCommit>(&*message)) news_.committed(commit->round, Clock::now());
      if (const auto* roster = std::get_if<HubRoster>(&*message)) {
        for (const IslandId& removed : roster->removed) ring_->forget(removed);
      }
      ATOLL_RETURN_IF_ERROR(rounds.handle(*message));
    } else if (message.error().code != ErrorCode::kTimeout) {
      return message.error();
    } else {
      ATOLL_RETURN_IF_ERROR(rounds.has_work() ? rounds.work() : rounds.idle());
    }
    while (const auto report = link_reports_.try_pop()) (void)mesh_->send(*report);
    const HeldState now{outer_->version(), outer_->tree_hash()};
    if (outer_->holds_state() && now != saved && checkpoint_pace_.may_write(Clock::now())) {
      save_checkpoint();
      saved = now;  // also when it failed: the next round tries again
    }
  }
  run_finished_ = rounds.finished();
  if (paused()) keep_work(rounds);
  return ok_status();
}

// Whether a pause or a finish that was asked for may be followed now. In an all-reduce the others count on this island.
bool Island::Impl::may_end(const RoundLoop& rounds) {
  if (pause_asked_ && (rounds.has_work() || rounds.between_rounds())) return true;
  if (!finish_asked_ || !rounds.between_rounds()) return false;
  round_finished_ = true;
  return true;
}

// A disk that does not take it costs this round's steps, no more.
void Island::Impl::keep_work(const RoundLoop& rounds) const {
  if (options_.checkpoint_directory.empty()) return;
  const auto work = rounds.interrupted_work();
  if (!work) return;
  Status kept = make_directories(options_.checkpoint_directory, FileMode::kPrivate);
  if (kept.ok()) kept = save_inner_state(inner_state_file(), *work);
  if (!kept.ok()) spdlog::error("interrupted_work=lost error=\"{}\"", kept.error().message);
}

void Island::Impl::take_up_work(RoundLoop& rounds) const {
  if (options_.checkpoint_directory.empty()) return;
  auto work = load_inner_state(inner_state_file(), static_cast<std::uint64_t>(engine_->numel()));
  // Good for one return: whatever becomes of it, the next pause writes a new one.
  std::error_code ignored;
  std::filesystem::remove(inner_state_file(), ignored);
  if (work.ok()) {
    rounds.resume_from(std::move(*work));
  } else if (work.error().code != ErrorCode::kNotFound) {
    spdlog::warn("interrupted_work=unreadable error=\"{}\"", work.error().message);
  }
}

KeptStates Island::Impl::kept_states() const {
  return KeptStates(options_.checkpoint_directory, run_.keep_states, run_.validate_every);
}

bool Island::Impl::checkpoint_is_of(const OuterStateStore& outer) const {
  const std::vector<HeldState> kept = kept_states().list();
  return !kept.empty() && kept.front() == HeldState{outer.version(), outer.tree_hash()};
}

Result<FetchedState> Island::Impl::kept_state(const HeldState& wanted) {
  if (options_.checkpoint_directory.empty()) return Error{ErrorCode::kNotFound, "this island keeps no states"};
  auto state = kept_states().load(wanted, engine_->numel());
  if (state.ok()) spdlog::info("recovery round={} from=disk", wanted.outer_step.value);
  return state;
}

// A disk that does not take it is told of with the checkpoint: training goes on, with less to come back to.
void Island::Impl::keep_average(OuterStep round, WireFormat wire, const std::string& digest, ByteView canonical) {
  const auto began = Clock::now();
  if (options_.checkpoint_directory.empty() || !average_pace_.may_write(began)) return;
  Status kept = make_directories(options_.checkpoint_directory, FileMode::kPrivate);
  if (kept.ok()) kept = save_average(average_file(), round, wire, digest, canonical);
  average_pace_.wrote(began, Clock::now());
  if (!kept.ok()) spdlog::warn("average round={} error=\"{}\"", round.value, kept.error().message);
}

void Island::Impl::keep_commit(const HubCommit& commit) {
  std::shared_ptr<const SignedCommit> told;
  {
    MutexLock lock(commit_mutex_);
    told = told_commit_;
  }
  if (!told || told->commit.signature != commit.signature) return;
  const Status kept = record_.add(std::move(told));
  if (!kept.ok()) spdlog::warn("commit round={} error=\"{}\"", commit.round.value, kept.error().message);
}

// Training goes on without it: the others hold the same state.
void Island::Impl::save_checkpoint() {
  const auto outer = this->outer();
  if (options_.checkpoint_directory.empty() || !outer || !outer->holds_state()) return;
  const auto began = Clock::now();
  KeptStates kept = kept_states();
  Status saved = make_directories(options_.checkpoint_directory, FileMode::kPrivate);
  if (saved.ok()) kept.make_room(outer->version());
  if (saved.ok()) saved = atl::save_checkpoint(options_.checkpoint_directory, model_, *outer);
  kept.prune();
  checkpoint_pace_.wrote(began, Clock::now());
  std::vector<HeldState> durable = kept.list();
  if (mesh_) (void)mesh_->send(IslandDurable{durable});
  {
    MutexLock lock(durable_mutex_);
    durable_ = std::move(durable);
  }
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
  gate_.close(reason);
}

void Island::Impl::request_pause() {
  pause_asked_ = true;
  const IslandPhase now = status_.snapshot().state;
  // What recovers, waits or has not joined yet loses nothing, and may be blocked in a transfer.
  if (now != IslandPhase::kTraining && now != IslandPhase::kSyncing) request_stop("paused by its owner");
}

void Island::Impl::publish(StateNews news) {
  const IslandState state = status_.snapshot();
  if (news == StateNews::kRoundBegin) news_.round_begins(state);
  if (news == StateNews::kSyncDone) news_.round_done(Clock::now(), state);
  if (options_.on_event) options_.on_event(event_of(news, state));
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
