#include "trainer/island/island.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "net/base/round_words.h"
#include "net/model/train_only.h"
#include "net/recovery/state_server.h"
#include "trainer/island/checkpoint.h"
#include "trainer/island/engine_options.h"
#include "trainer/island/island_impl.h"
#include "trainer/island/memory_plan.h"
#include "trainer/island/model_export.h"
#include "trainer/island/run_data.h"
#include "trainer/island/transfer_news.h"

namespace atl {
namespace {

IslandState initial_state(const IslandOptions& options) {
  IslandState state;
  state.state = IslandPhase::kJoining;
  state.island = options.identity.name.value;
  state.name = options.display_name;
  state.run_id = options.identity.run;
  state.pid = ::getpid();
  return state;
}

std::string text_of_cap(std::optional<double> cap) { return cap ? fmt::format("{:.0f}", *cap) : "none"; }

constexpr const char* kNoModelYet = "this island has no model yet; it is still joining";

}  // namespace

Island::Impl::Impl(IslandOptions options) : options_(std::move(options)), status_(initial_state(options_)) {}

// ---- set-up
// --------------------------------------------------------------------------------------------------------------

Status Island::Impl::listen() {
  ATOLL_ASSIGN_OR_RETURN(TlsContext server, TlsContext::island_server(options_.identity));
  ATOLL_ASSIGN_OR_RETURN(TlsContext client, TlsContext::client(options_.identity, kAlpnRing));
  ring_context_.emplace(std::move(client));
  ring_.emplace(options_.identity.name, inbox_, *ring_context_);
  if (disk_.keeps()) rounds_.emplace(RoundLog(options_.checkpoint_directory));
  keeper_.emplace(disk_,
                  RoundKeeper::Tell{.kept = [this](OuterStep round, const Status& kept) { on_kept(round, kept); },
                                    .durable_changed = [this] { send(IslandDurable{disk_.durable()}); }});
  lanes_ = std::make_unique<SyncLanes>(LaneSurroundings{.self = options_.identity.name,
                                                        .ring = *ring_,
                                                        .roster = roster_,
                                                        .disk = disk_,
                                                        .keeper = *keeper_,
                                                        .serving_pace = serving_,
                                                        .download = download_,
                                                        .send = [this](const IslandMessage& message) { send(message); },
                                                        .publish = [this](StateNews news) { publish(news); },
                                                        .on_event = options_.on_event},
                                       [this] { mesh_->wake(); });
  if (options_.on_event)
    past_.emplace(PastWatch::Surroundings{options_.identity, options_.hub_addresses, options_.on_event});
  PeerListenerOptions listener;
  listener.bind = options_.bind;
  ATOLL_ASSIGN_OR_RETURN(
      listener_,
      PeerListener::start(
          listener, std::move(server), [this](const PeerCertificate& peer) { return roster_.admit(peer); }, inbox_,
          [this](TlsConnection connection, HttpSession& session) { serve(std::move(connection), session); }));
  return ok_status();
}

void Island::Impl::serve(TlsConnection connection, HttpSession& session) {
  const ServedOuterState state([this] { return outer(); });
  serve_state(std::move(connection), {state, rounds_ ? &*rounds_ : nullptr, serving_, &chunks_}, session);
}

std::vector<ChunkPeer> Island::Impl::chunk_peers() const {
  std::vector<ChunkPeer> peers;
  for (RosterEntry& entry : roster_.all()) peers.push_back({std::move(entry.id), std::move(entry.address)});
  return peers;
}

// A pause ends it at once. So does a finish, once the data is missed: the lease goes back, and nobody waits for it.
std::optional<Error> Island::Impl::ends_data_wait(bool in_vain) const {
  if (pause_asked_) return Error{ErrorCode::kAborted, "paused by its owner"};
  if (finish_asked_ && in_vain) return Error{ErrorCode::kUnreachable, "its owner ends it, and the data does not come"};
  return std::nullopt;
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
  hello.work = held_work();
  hello.can_upload = disk_.keeps() && may_use_bucket(options_.store);
  hello.credited = options_.credited;
  hello.dials_ahead = true;
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
  if (past_) past_->hear(message);
  const auto* recover = std::get_if<HubRecover>(&message);
  if (recover != nullptr || std::holds_alternative<HubInitialise>(message)) {
    MutexLock lock(told_mutex_);
    told_to_recover_.reset();
    if (recover != nullptr) told_to_recover_ = {recover->outer_step, recover->state_hash};
  }
  // The ring has the links to itself; all members hear of it at once.
  if (std::holds_alternative<HubAttempt>(message)) prober_.stop_probing();
  if (const auto* probe = std::get_if<HubProbe>(&message)) {
    for (const RosterEntry& entry : roster_.entries({probe->from})) {
      prober_.probe({entry.id, entry.address, std::min(probe->bytes, kMaxProbeBytes)});
    }
  }
  if (const auto* goodbye = std::get_if<HubGoodbye>(&message)) {
    parting_ = true;
    end_downloads_.raise(goodbye->message);
  }
}

// On the mesh thread too. The newest cause stands in the status; the event is told once.
void Island::Impl::on_hub_lost(const std::string& why, std::optional<Seconds> tries_for) {
  if (parting_) return;
  const bool first = news_.hub_lost(why, tries_for);
  const std::string text =
      fmt::format("the hub does not answer ({}); trying again {}", why, tries_for ? "for a while" : "until it does");
  if (status_.set_trouble(Trouble::kHub, text) && first) publish(StateNews::kChanged);
}

void Island::Impl::on_hub_back() {
  news_.hub_back();
  on_trouble(Trouble::kHub, {});
}

// On the keeper's thread. Training goes on: the others keep the round, too.
void Island::Impl::on_kept(OuterStep round, const Status& kept) {
  if (!kept.ok()) spdlog::error("average round={} error=\"{}\"", round.value, kept.error().message);
  on_trouble(Trouble::kRounds,
             kept.ok() ? ""
                       : fmt::format("rounds are not kept: {}. Training goes on, but this island could not bring them "
                                     "back if all were lost at once",
                                     kept.error().message));
}

// On the uploader's thread.
void Island::Impl::on_uploaded(const IslandUploaded& how) {
  on_trouble(Trouble::kUpload,
             how.error.empty() ? ""
                               : fmt::format("the state {} could not be published: {}. Training goes on, and the hub "
                                             "asks for it again",
                                             after_round(how.outer_step.value), how.error));
  send(how);
}

void Island::Impl::on_trouble(Trouble of, const std::string& text) {
  if (status_.set_trouble(of, text)) publish(StateNews::kChanged);
}

Result<IslandEngine> Island::Impl::make_engine(const IslandChoice& choice) {
  const auto gpus = gpus_of_machine();
  const IslandMachine machine{.gpus = *gpus,
                              .memory = memory_there_is(),
                              .slow = {.say = [this](const std::string& text) { on_trouble(Trouble::kDevice, text); }}};
  return make_island_engine(model_, run_, choice, options_.device, machine, [this](const IslandShape& island) {
    EngineOptions options = engine_options(run_, island, options_.threads);
    options.on_micro_batch = [this] {
      status_.update([](IslandState& s) { ++s.passes; });
      return !stop_.raised() && !pause_asked_;
    };
    return options;
  });
}

// Model, data and outer state of the run. Takes as long as the download of missing shards takes.
Status Island::Impl::prepare(const RunConfig& run) {
  run_ = run;
  ATOLL_ASSIGN_OR_RETURN(model_, model_config_from_json(run_.model_json));
  ATOLL_RETURN_IF_ERROR(check_train_only(model_, run_.train_only));
  keep_run(options_.checkpoint_directory, run_);
  const IslandChoice choice{options_.local_ranks, options_.micro_batch, options_.threads, options_.precision,
                            options_.work_every > options_.work_every.zero()};
  ATOLL_ASSIGN_OR_RETURN(IslandEngine made, make_engine(choice));
  const MemoryPlan& memory = made.plan;
  engine_ = std::move(made.engine);
  peak_flops_ = made.peak_flops;
  training_bytes_ = memory.needs.most();
  has_processor_to_itself_ = made.on_gpus;
  spdlog::info("memory {}", memory.log_line());
  if (!made.trouble.empty()) spdlog::warn("gpu trouble=\"{}\"", made.trouble);
  on_trouble(Trouble::kDevice, made.trouble);
  if (!memory.trouble().empty()) spdlog::warn("memory trouble=\"{}\"", memory.trouble());
  status_.set_trouble(Trouble::kMemory, memory.trouble());
  if (options_.make_batches) {
    ATOLL_ASSIGN_OR_RETURN(batches_, options_.make_batches(run_));
  } else {
    TransferNews news(Download::kData, options_.on_event);
    auto data = open_run_data(run_,
                              {.identity = options_.identity,
                               .hub = options_.hub_addresses,
                               .directory = options_.data_directory,
                               .cache_bytes = options_.data_cache_bytes,
                               .mirrors = options_.data_mirrors,
                               .store = options_.store,
                               .download = &download_,
                               .islands = &chunks_,
                               .trouble = [this](const std::string& why) { on_trouble(Trouble::kData, why); },
                               .ends_wait = [this](bool in_vain) { return ends_data_wait(in_vain); }},
                              end_downloads_, news);
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
  disk_.of_run(model_, run_.fragments,
               {.keep = run_.keep_states,
                .anchor_every = run_.validate_every,
                .days = options_.keep_days,
                .rounds = options_.keep_rounds},
               run_.train_only);
  return ok_status();
}

// ---- what is asked of it
// --------------------------------------------------------------------------------

void Island::Impl::request_stop(const std::string& reason) {
  stop_.raise(reason);
  end_downloads_.raise(reason);
  lanes_->end_attempts(reason);
}

void Island::Impl::set_transfer_caps(const TransferCaps& caps) {
  if (TransferCaps{serving_.allowed(), download_.allowed()} == caps) return;
  spdlog::info("caps upload_bytes_per_second={} download_bytes_per_second={}", text_of_cap(caps.upload),
               text_of_cap(caps.download));
  serving_.allow(caps.upload);
  download_.allow(caps.download);
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
  if (news == StateNews::kRoundBegin) {
    MutexLock lock(told_mutex_);
    held_work_.reset();  // it was taken up, or is of another round
  }
  if (news == StateNews::kRoundBegin) {
    end_catch_up();  // a process before this one may have left some of it
    lanes_->round_begins(state);
  }
  if (news == StateNews::kSyncDone) lanes_->round_done(state);
  if (options_.on_event) options_.on_event(event_of(news, state, run_));
}

Result<std::pair<OuterStep, std::vector<float>>> Island::Impl::outer_parameters() const {
  const auto outer = this->outer();
  if (!outer) return Error{ErrorCode::kNotFound, kNoModelYet};
  return outer->snapshot();
}

Result<OuterStep> Island::Impl::export_model(const std::filesystem::path& directory,
                                             const ModelFilesOptions& files) const {
  const auto outer = this->outer();
  if (!outer) return Error{ErrorCode::kNotFound, kNoModelYet};
  ModelCard card{.run_id = run_.run_id, .run_name = run_.name, .run = run_};
  auto contributors = ask_contributors(options_.identity, options_.hub_addresses);
  if (contributors.ok()) card.contributors = std::move(*contributors);
  if (!contributors.ok()) spdlog::warn("export contributors=none error=\"{}\"", contributors.error().message);
  return export_outer_state(*outer, model_, std::move(card), options_.data_directory, directory, files);
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
void Island::set_transfer_caps(const TransferCaps& caps) { impl_->set_transfer_caps(caps); }
IslandState Island::state() const { return impl_->state(); }
bool Island::run_finished() const { return impl_->run_finished(); }
Result<OuterStep> Island::export_model(const std::filesystem::path& directory, const ModelFilesOptions& files) const {
  return impl_->export_model(directory, files);
}
Result<std::pair<OuterStep, std::vector<float>>> Island::outer_parameters() const { return impl_->outer_parameters(); }

}  // namespace atl
