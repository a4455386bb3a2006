#include "net/hub/round_service.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "net/base/encoding.h"
#include "net/base/round_words.h"
#include "net/base/unix_time.h"
#include "net/data/run_dataset.h"
#include "net/hub/initial_state.h"
#include "net/mesh/commit_signature.h"
#include "net/mesh/spawn.h"
#include "net/model/fragments.h"
#include "net/model/train_only.h"
#include "net/tls/signature.h"

namespace atl {
namespace {

// Of what each of the run's fragments averages; empty: its model is none that is known here.
std::vector<std::int64_t> fragment_numels(const RunConfig& run) {
  std::vector<std::int64_t> numels;
  const auto model = model_config_from_json(run.model_json);
  if (!model.ok()) return numels;
  const auto fragments = fragments_of(layout_of_training(*model, run.train_only), run.fragments);
  if (!fragments.ok()) return numels;
  for (const Fragment& fragment : *fragments) numels.push_back(fragment.numel);
  return numels;
}

}  // namespace

RoundService::RoundService(const RunConfig& run, const Identity& identity, HubStore& store, RoundOutlet& outlet,
                           HubServer::OnEvent on_event)
    : run_(run), identity_(identity), store_(store), outlet_(outlet), on_event_(std::move(on_event)) {}

Result<std::unique_ptr<RoundService>> RoundService::open(const RunConfig& run, const Identity& identity,
                                                         HubStore& store, RoundOutlet& outlet,
                                                         HubServer::OnEvent on_event) {
  std::unique_ptr<RoundService> service(new RoundService(run, identity, store, outlet, std::move(on_event)));
  ATOLL_RETURN_IF_ERROR(service->read_store());
  return service;
}

Status RoundService::read_store() {
  ATOLL_ASSIGN_OR_RETURN(const std::uint64_t epoch, store_.begin_epoch(unix_milliseconds_now()));
  ATOLL_ASSIGN_OR_RETURN(epoch_, sign_epoch(epoch));
  ATOLL_ASSIGN_OR_RETURN(CoordinatorMemory memory, store_.memory());
  if (memory.committed.value == 0 && !memory.agreed_hash) {
    spdlog::info("hub run={} computes=\"the hash of the initial state\"", run_.run_id);
    ATOLL_ASSIGN_OR_RETURN(memory.agreed_hash, save_initial_state_hash(run_, store_));
    memory.state_hashes[OuterStep{0}] = *memory.agreed_hash;
  }
  HubState state;
  state.run_id = run_.run_id;
  state.name = run_.name;
  state.phase = HubPhase::kWaiting;
  state.outer_step = memory.committed.value;
  state.inner_steps = run_.inner_steps;
  state.fragments = run_.fragments;
  state.max_rounds = run_.max_rounds;
  state.min_islands = run_.min_islands;
  ATOLL_ASSIGN_OR_RETURN(state.rounds, store_.rounds(HubState::kMaxRounds));
  ATOLL_ASSIGN_OR_RETURN(state.first_validation, store_.validation(/*first=*/true));
  ATOLL_ASSIGN_OR_RETURN(state.last_validation, store_.validation(/*first=*/false));
  for (const EvaluationTask& task : run_.evaluation.tasks) {
    ATOLL_ASSIGN_OR_RETURN(EvaluationCurves::Figures known, store_.evaluations(task));
    curves_.add(task, std::move(known));
  }
  state.evaluations = curves_.shown();
  state.decay = memory.decay;
  if (const auto data = facts_of_run_data(run_.dataset_json); data.ok() && data->sources.size() > 1) {
    sources_ = data->names();
    const auto& eras = memory.mixture.eras;
    state.mixture = HubState::Mixture{describe_weights(sources_, eras.empty() ? data->weights() : eras.back().weights)};
  }
  if (!memory.uploaded.empty()) state.uploaded_outer_step = memory.uploaded.back().outer_step.value;
  coordinator_.emplace(
      run_, memory, [this](const HubCommit& commit) { return sign(commit); }, fragment_numels(run_));
  MutexLock lock(mutex_);
  state_ = std::move(state);
  return ok_status();
}

void RoundService::begin(const std::vector<Address>& addresses) {
  MutexLock lock(mutex_);
  for (const Address& address : addresses) state_.addresses.push_back(to_string(address));
  view_.emplace(state_, sources_, std::move(curves_));
  count_accepted();
  read_past();
  last_step_ = Clock::now();
}

HubState RoundService::state() const {
  MutexLock lock(mutex_);
  return state_;
}

// ---- records

std::string RoundService::sign(const HubCommit& commit) const {
  const Result<std::string> signature = sign_commit(identity_, commit);
  return signature.ok() ? *signature : std::string();
}

Result<SignedEpoch> RoundService::sign_epoch(std::uint64_t epoch) const {
  const std::string record = epoch_record(run_.run_id, epoch);
  ATOLL_ASSIGN_OR_RETURN(const Bytes signature, sign_message(identity_, as_bytes(record)));
  return SignedEpoch{epoch, base64url_encode(signature), identity_.certificate_pem};
}

Status RoundService::roll_back(OuterStep to, const std::string& reason, bool automatic) {
  if (coordinator_->phase() == RoundCoordinator::Phase::kFinished) {
    return Error{ErrorCode::kConflict,
                 fmt::format("the run is finished, after {} rounds, and its islands have gone: there is nothing that "
                             "could go back. Its islands still have their outer states; see, on one of them: atoll "
                             "checkpoints",
                             coordinator_->committed().value)};
  }
  if (to > coordinator_->committed()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the run has committed {} rounds; it cannot go back to the state after round {}",
                             coordinator_->committed().value, to.value)};
  }
  RollBack event{to, {}, 0, {}, reason, automatic};
  ATOLL_ASSIGN_OR_RETURN(event.state_hash, store_.state_hash(to));
  ATOLL_ASSIGN_OR_RETURN(event.epoch, store_.begin_epoch(unix_milliseconds_now()));
  ATOLL_ASSIGN_OR_RETURN(event.leases, store_.leases_since(to));
  ATOLL_ASSIGN_OR_RETURN(epoch_, sign_epoch(event.epoch));
  step(event);
  return ok_status();
}

Status RoundService::can_go_on_from(OuterStep to) const {
  // The newest is where the run is; with the first it can begin again.
  if (to >= coordinator_->committed() || to == OuterStep{0}) return ok_status();
  const auto kept = coordinator_->safekeeping().newest_kept(to);
  if (kept == to) return ok_status();
  return Error{
      ErrorCode::kNotFound,
      fmt::format(
          "no island that is here keeps the state after round {}, and no object store has it: the run would stand "
          "still, and nobody could bring back what came after it. {}. --force goes back all the same, "
          "for a state that somebody is to bring",
          to.value,
          kept && *kept > OuterStep{0}
              ? fmt::format("The newest before it that is kept is that after round {}", kept->value)
              : std::string("None before it is kept, either"))};
}

Status RoundService::may_decide_decay() const {
  const auto& decided = coordinator_->decay();
  const std::uint32_t next = coordinator_->next_round().value;
  if (!decided || decided->from_round >= next) return ok_status();
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("the learning rate falls since round {}; to undo that: atoll hub rollback --to {}, then decide "
                  "anew",
                  round_number(decided->from_round), decided->from_round)};
}

Result<DecidedDecay> RoundService::decide_decay(const DecayWish& wish) {
  ATOLL_RETURN_IF_ERROR(may_decide_decay());
  const InnerOptimizerConfig& inner = run_.inner;
  const std::uint32_t next = coordinator_->next_round().value;
  const DecidedDecay decay{wish.from_round.value_or(next), wish.rounds,
                           wish.final_learning_rate.value_or(inner.final_learning_rate), wish.shape};
  const auto refuse = [](std::string why) { return Error{ErrorCode::kInvalidArgument, std::move(why)}; };
  if (decay.from_round < next) {
    return refuse(fmt::format("round {} has begun; the first that can be asked for is {}",
                              round_number(decay.from_round), round_number(next)));
  }
  if (decay.rounds == 0) return refuse("over how many rounds does the learning rate fall? At least one");
  if (decay.final_learning_rate > inner.learning_rate) {
    return refuse(fmt::format("the learning rate would fall from {} up to {}; choose a final rate below the peak",
                              inner.learning_rate, decay.final_learning_rate));
  }
  const std::uint64_t configured = inner.decay_start_step / run_.inner_steps;
  if (inner.decay_steps > 0 && configured < next) {
    return refuse(fmt::format("by the run's configuration the learning rate falls since round {}", configured + 1));
  }
  step(DecideDecay{decay});
  return decay;
}

Status RoundService::cancel_decay() {
  if (!coordinator_->decay()) return Error{ErrorCode::kNotFound, "no decay was decided; there is nothing to take back"};
  ATOLL_RETURN_IF_ERROR(may_decide_decay());
  step(DecideDecay{});
  return ok_status();
}

Result<MixtureWish> RoundService::decide_mixture(const MixtureWish& wish) {
  const auto refuse = [](std::string why) { return Error{ErrorCode::kInvalidArgument, std::move(why)}; };
  ATOLL_ASSIGN_OR_RETURN(const RunDataFacts data, facts_of_run_data(run_.dataset_json));
  if (data.sources.size() < 2) {
    return refuse(
        "this run has one source of data; sources are named when it is made: atoll hub init --data A --data B");
  }
  const std::uint32_t next = coordinator_->next_round().value;
  DecidedMixture mixture{wish.from_round.value_or(next), {}};
  if (mixture.from_round < next) {
    return refuse(fmt::format("round {} has begun; the first that can be asked for is {}",
                              round_number(mixture.from_round), round_number(next)));
  }
  if (coordinator_->mixture().eras.size() >= kMaxMixtureEras) {
    return refuse(fmt::format("the run's mixture has changed {} times, and can no more", kMaxMixtureEras));
  }
  ATOLL_ASSIGN_OR_RETURN(const std::vector<NamedShare> shares, parse_named_shares(wish.weights));
  const std::vector<std::string> names = data.names();
  ATOLL_ASSIGN_OR_RETURN(mixture.weights, weights_of(names, shares));
  MixtureWish decided{mixture.from_round, describe_weights(names, mixture.weights)};
  step(DecideMixture{std::move(mixture)});
  return decided;
}

Status RoundService::cancel_mixture() {
  if (!coordinator_->mixture().decided) {
    return Error{ErrorCode::kNotFound, "no mixture was decided that has not begun; there is nothing to take back"};
  }
  step(DecideMixture{});
  return ok_status();
}

// ---- events

void RoundService::step(const CoordinatorEvent& event) {
  if (!outlet_.is_serving()) return;
  try {
    take(event);
  } catch (...) {
    outlet_.stop_serving(
        Error{ErrorCode::kInternal, fmt::format("the hub's round was broken off: {}; start the hub again, it "
                                                "goes on from what is on its disk",
                                                what_of(std::current_exception()))});
  }
}

void RoundService::take(const CoordinatorEvent& event) {
  const auto now = round_time();
  for (const CoordinatorAction& action : coordinator_->next(event, now)) {
    const Status done = carry_out_in_the_end(action);
    if (!done.ok()) return outlet_.stop_serving(done.error());  // what follows must not be said
  }
  HubState state = view_->build(*coordinator_, now);
  MutexLock lock(mutex_);
  state_ = std::move(state);
}

// The time of the round. That in which this thread stood still, for a disk or for a database that another process
// held, does not pass in it: nobody was heard meanwhile. Ticks come more often than heartbeats.
Clock::time_point RoundService::round_time() {
  const auto now = Clock::now();
  const auto since = now - std::exchange(last_step_, now);
  if (since > run_.heartbeat) stood_still_ += since;
  return now - stood_still_;
}

// Another process may hold the database: what is to be said waits for it, as long as that takes.
Status RoundService::carry_out_in_the_end(const CoordinatorAction& action) {
  const auto try_it = [&] { return std::visit([this](const auto& a) { return carry_out(a); }, action); };
  Status done = try_it();
  while (!done.ok() && done.error().code == ErrorCode::kTimeout && !outlet_.is_ending()) {
    spdlog::warn("hub waits error=\"{}\"", done.error().message);
    done = try_it();
  }
  return done;
}

Status RoundService::carry_out(const SendTo& send) {
  HubMessage message = send.message;
  if (auto* welcome = std::get_if<HubWelcome>(&message)) welcome->epoch = epoch_;
  outlet_.send(send.island, std::move(message));
  return ok_status();
}

Status RoundService::carry_out(const CloseConnection& close) {
  outlet_.close(close.island);
  return ok_status();
}

Status RoundService::carry_out(const DialIsland& dial) {
  outlet_.dial(dial.island, dial.address);
  return ok_status();
}

Status RoundService::carry_out(const PersistCommit& commit) {
  if (commit.commit.signature.empty()) {
    return Error{ErrorCode::kInternal, "the hub's key cannot sign a commit; restore its identity from a backup"};
  }
  return store_.save(commit);
}

Status RoundService::carry_out(const PersistRollback& back) { return store_.save(back, unix_seconds_now()); }

Status RoundService::carry_out(const WantRollback& want) {
  outlet_.post([this, want] {
    if (!outlet_.is_serving()) return;
    const Status done = roll_back(want.to, want.reason, /*automatic=*/true);
    if (done.ok()) return;
    spdlog::error("hub rollback={} error=\"{}\"", want.to.value, done.error().message);
    step(RollBackFailed{want.to});
  });
  return ok_status();
}

Status RoundService::carry_out(const StepDown& down) {
  // So that what it is started again with is newer, whatever this machine's clock says.
  ATOLL_RETURN_IF_ERROR(store_.know_epoch(down.epoch));
  return Error{ErrorCode::kPermissionDenied,
               fmt::format("another hub of this run was started after this one (epoch {}): two would commit different "
                           "rounds, so this one has stopped. Serve only one; to go on with this one, start it again",
                           down.epoch)};
}

Status RoundService::carry_out(const Publish& publish) {
  if (const auto* validated = std::get_if<IslandValidated>(&publish.news)) {
    ATOLL_RETURN_IF_ERROR(store_.save(*validated));
  }
  if (const auto* evaluated = std::get_if<StateEvaluated>(&publish.news)) {
    ATOLL_RETURN_IF_ERROR(store_.save(*evaluated));
  }
  announce(publish.news);
  return ok_status();
}

void RoundService::count_accepted() {
  auto accepted = store_.accepted_rounds();
  if (accepted.ok()) return view_->set_accepted(*std::move(accepted));
  spdlog::warn("hub accepted_rounds error=\"{}\"", accepted.error().message);
}

void RoundService::read_past() {
  auto past = store_.past();
  if (past.ok()) return view_->set_past(*std::move(past));
  spdlog::warn("hub past error=\"{}\"", past.error().message);
}

// However often it is asked for, it is made once.
const std::string& RoundService::past() {
  if (past_.empty()) past_ = encode(view_->past());
  return past_;
}

void RoundService::announce(const CoordinatorNews& news) {
  view_->learn(news);
  past_.clear();
  // What was undone counts no more; what another hub committed does.
  if (std::holds_alternative<RolledBack>(news) || std::holds_alternative<FastForwarded>(news)) {
    count_accepted();
    read_past();
  }
  const NewsEvent event = to_event(news);
  spdlog::info("hub event={} data={}", event.name, event.data.dump());
  if (!on_event_) return;
  try {
    on_event_(event.name, event.data);
  } catch (const std::exception& error) {  // who only listens breaks nothing
    spdlog::error("hub event={} listener_failed=\"{}\"", event.name, error.what());
  }
}

}  // namespace atl
