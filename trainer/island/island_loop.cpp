// What an island's thread does, from the first look at its disk to the last snapshot.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "net/model/fragments.h"
#include "net/model/initialise.h"
#include "net/model/train_only.h"
#include "trainer/island/island_impl.h"
#include "trainer/island/store_start.h"
#include "trainer/island/transfer_news.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kPauseWithoutHub{10};    // nobody commits what is averaged
constexpr std::chrono::seconds kPauseTime{60};          // less than the agent gives a trainer to end (Supervisor)
constexpr std::chrono::milliseconds kMessageWait{100};  // how often a waiting island looks whether it should stop

}  // namespace

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

// Who holds the state serves its chunks; averages of rounds any member may have. Where nobody holds it, the hub names
// no sources: it is in the run's object store, or outer step 0 at the hub itself.
Result<FetchedState> Island::Impl::fetch(const HubRecover& recover) {
  const HeldState target{recover.outer_step, recover.state_hash};
  if (!catch_up_) {
    if (outer()->current_version() > target.outer_step) (void)let_go_of_state();  // what was undone is of little use
    const auto fragments = fragments_of(layout_of_training(model_, run_.train_only), run_.fragments);
    if (!fragments.ok()) return fragments.error();
    catch_up_.emplace(
        CatchUp::Surroundings{.self = options_.identity,
                              .own = *outer(),
                              .disk = disk_,
                              .store = {options_.store, run_.upload_store, &download_},
                              .download = download_,
                              .hub = options_.hub_addresses,
                              .trouble = [this](const auto& text) { on_trouble(Trouble::kState, text); },
                              .disk_trouble = [this](const auto& text) { on_trouble(Trouble::kCheckpoint, text); },
                              .keep_rounds = [this](auto rounds) { keeper_->keep_fetched(std::move(rounds)); },
                              .on_event = options_.on_event},
        FetchModel{static_cast<std::uint64_t>(engine_->numel()), *fragments, run_.wire});
  }
  const auto superseded = [&] {
    MutexLock lock(told_mutex_);
    return told_to_recover_ != target;
  };
  std::vector<StateSourceAddress> sources;
  for (const RosterEntry& entry : roster_.all()) {
    const bool is_named = std::ranges::find(recover.sources, entry.id) != recover.sources.end();
    if (entry.id != options_.identity.name) sources.push_back({entry.id, entry.address, is_named});
  }
  const bool at_hub = recover.outer_step == OuterStep{0} && run_.begins_at_hub();
  auto state = !recover.sources.empty() ? catch_up_->fetch(target, sources, end_downloads_, superseded)
               : at_hub                 ? catch_up_->fetch_from_hub(target, end_downloads_, superseded)
                                        : catch_up_->fetch_from_store(target, end_downloads_, superseded);
  if (!state.ok()) return state;
  catch_up_.reset();
  if (disk_.keeps()) send(IslandDurable{disk_.durable()});
  return state;
}

// Until it holds another, which takes the room of this one, it holds none, and says so.
FetchedState Island::Impl::let_go_of_state() {
  status_.update([](IslandState& s) { s.state_hash.clear(); });
  return outer()->release();
}

void Island::Impl::end_catch_up() {
  catch_up_.reset();
  disk_.drop_incoming();
}

// Not what the engine began with: it may have been trained, or given another state, since.
Result<std::vector<float>> Island::Impl::initial_parameters() {
  end_catch_up();
  if (options_.initial_parameters) return options_.initial_parameters(model_);
  if (run_.initial_state.empty()) return fresh_parameters(model_, run_.seed);
  TransferNews news(Download::kState, options_.on_event);
  return fetch_initial_parameters(
      run_, static_cast<std::uint64_t>(engine_->numel()), options_.store, end_downloads_, news,
      [this](const std::string& why) { on_trouble(Trouble::kState, why); }, &download_);
}

// ---- the loop
// ------------------------------------------------------------------------------------------------------------

// Before the hub is met: the hello says which state this island holds, so that one that comes back keeps its place.
void Island::Impl::look_for_checkpoint() {
  {
    MutexLock lock(told_mutex_);
    held_work_ = disk_.held_work();
  }
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
  parting_ = true;
  (void)mesh_->send(IslandLeaving{status.ok() ? reason : status.error().message, status.ok() && paused()});
  publish(status.ok() ? StateNews::kChanged : StateNews::kError);
  end_downloads_.raise("the island ends");
  evaluator_.reset();
  keeper_.reset();
  uploader_.reset();
  mesh_.reset();
  end_snapshots();
  if (status.ok()) ring_->finish();
  return status;
}

Status Island::Impl::loop() {
  ATOLL_ASSIGN_OR_RETURN(const RunConfig run, wait_for_welcome());
  if (const Status prepared = prepare(run); !prepared.ok()) {
    return prepared.error().code == ErrorCode::kAborted ? wait_for_goodbye() : prepared;
  }
  ATOLL_ASSIGN_OR_RETURN(const std::vector<Fragment> fragments,
                         fragments_of(layout_of_training(model_, run_.train_only), run_.fragments));
  const std::shared_ptr<OuterStateStore> outer = this->outer();
  lanes_->start(run_, fragments, *outer, status_);
  InnerLoop inner(run_, fragments, *engine_, *batches_, *outer, status_, *this, stop_);
  inner.set_peak_flops(peak_flops_);
  if (disk_.keeps()) snapshots_.emplace(disk_, *outer, [this](const Status& status) { (void)written_.push(status); });
  if (disk_.keeps() && !run_.upload_store.empty()) {
    uploader_.emplace(
        StateUploader::Surroundings{options_.store, options_.checkpoint_directory, serving_, ring_->under_way(),
                                    [this](std::optional<std::uint64_t> bytes) { status_.set_uploaded_bytes(bytes); },
                                    [this](const IslandUploaded& how) { on_uploaded(how); }},
        run_, model_);
  }
  if (!run_.evaluation.tasks.empty()) begin_evaluations();
  if (options_.work_every > options_.work_every.zero()) works_.emplace(disk_, options_.work_every);
  if (auto work = disk_.take_work(static_cast<std::uint64_t>(engine_->numel()), ranges_of(fragments))) {
    inner.resume_from(std::move(*work));
  }
  inner.begin();
  const Status trained = train(inner);
  // What lanes say until they end is said before the island's goodbye.
  const std::vector<std::vector<float>> owed = lanes_->end();
  (void)keeper_->await_idle(Deadline::after(kPauseTime));
  if (!trained.ok()) return trained.error();
  run_finished_ = inner.finished();
  if (run_finished_ && past_) past_->ask_at_the_end();
  if (!paused()) return ok_status();
  works_.reset();
  if (const auto work = inner.interrupted_work(owed)) disk_.keep_work(*work);
  return ok_status();
}

// One thread beside those that train, on a processor that trains; half of one that does not.
void Island::Impl::begin_evaluations() {
  const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  evaluator_.emplace(StateEvaluator::Surroundings{.self = options_.identity,
                                                  .hub = options_.hub_addresses,
                                                  .data = options_.data_directory,
                                                  .download = &download_,
                                                  .outer = outer(),
                                                  .training_bytes = training_bytes_,
                                                  .threads = has_processor_to_itself_ ? std::max(1, processors / 2) : 1,
                                                  .told = [this](const IslandEvaluation& said) { send(said); }},
                     run_, model_, end_downloads_);
}

Status Island::Impl::train(InnerLoop& inner) {
  std::optional<HeldState> told;  // to the snapshots' thread
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
      ATOLL_RETURN_IF_ERROR(keep_work(inner));
    }
    while (const auto report = link_reports_.try_pop()) send(*report);
    while (const auto written = written_.try_pop()) snapshot_written(*written);
    if (snapshots_ && inner.outer_state() && inner.outer_state() != told) {
      told = inner.outer_state();
      snapshots_->state_is(*told);
    }
  }
  return ok_status();
}

Status Island::Impl::keep_work(InnerLoop& inner) {
  const auto now = Clock::now();
  if (!works_ || !works_->is_due(now)) return ok_status();
  ATOLL_ASSIGN_OR_RETURN(std::optional<InnerState> work, inner.work_so_far());
  if (work) works_->keep(std::move(*work), now);
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
    if (!pause_since_) pause_since_ = Clock::now();
    const auto patience = mesh_->connected() ? kPauseTime : kPauseWithoutHub;
    if (!inner.averages() || Clock::now() >= *pause_since_ + patience) return true;
  }
  if (!finish_asked_) return false;
  inner.begin_no_more();
  if (!inner.between_rounds()) return false;
  round_finished_ = true;
  return true;
}

// Training goes on without it: the others hold the same state.
void Island::Impl::snapshot_written(const Status& saved) {
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

void Island::Impl::end_snapshots() {
  if (!snapshots_) return;
  const Status ended = snapshots_->finish();
  snapshots_.reset();
  while (const auto written = written_.try_pop()) snapshot_written(*written);
  if (!ended.ok()) snapshot_written(ended);
}

}  // namespace atl
