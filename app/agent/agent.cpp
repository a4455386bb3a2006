#include "app/agent/agent.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "app/agent/agent_config.h"
#include "app/agent/agent_history.h"
#include "app/agent/agent_job.h"
#include "app/agent/control_service.h"
#include "app/agent/foreground.h"
#include "app/agent/invite_look.h"
#include "app/agent/island_trainer.h"
#include "app/agent/join_task.h"
#include "app/agent/methods/methods.h"
#include "app/agent/owners_wish.h"
#include "app/agent/rules_watch.h"
#include "app/agent/service_notice.h"
#include "app/agent/settings_watch.h"
#include "app/agent/time_zone_watch.h"
#include "app/agent/trainer_news.h"
#include "net/base/mailbox.h"
#include "net/base/unix_time.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kTurn{250};  // how often the trainer's process is looked at
constexpr std::size_t kMaxCommands = 256;
constexpr std::chrono::seconds kLookAtDiskEvery{10};

}  // namespace

class Agent::Impl final : public AgentControl {
 public:
  explicit Impl(AgentOptions options)
      : options_(std::move(options)),
        contributions_(options_.home.contributions()),
        board_(options_.home.island, contributions_),
        history_(options_.home.history(), options_.history),
        wish_(options_.home.wish_file()),
        supervisor_(options_.supervisor, wish_.said().wish, is_joined()) {
    board_.set_wish(wish_.said());
    add_state_methods(methods_, *this);
    add_life_methods(methods_, *this);
    add_gpu_methods(methods_, *this);
    add_history_methods(methods_, *this);
    add_file_methods(methods_, *this);
    add_log_methods(methods_, *this);
    add_join_methods(methods_, join_task_, look_);
    if (!options_.check_node) return;
    check_.emplace(
        options_.check_node, [this](const CheckRow& row) { publish(event::CheckRowDone{row}); },
        [this](const Result<CheckReport>& report) {
          publish(report.ok() ? event::CheckDone{.report = *report}
                              : event::CheckDone{.error = report.error().message});
        });
    add_check_method(methods_, *check_);
  }
  ~Impl() override {
    ends_.raise("the agent ends");
    service_.end();
    job_.stop("the agent ends");
  }

  Status serve();
  Status run(const AbortSignal& end, const AbortSignal* hurry);

  // ---- AgentControl
  const AgentHome& home() const override { return options_.home; }
  AgentBoard& board() override { return board_; }
  Status wish(const WishFile& wish, bool at_once) override;
  GpuFacts list_gpus() override;
  void look_at_home() override { (void)commands_.push(LookAtHome{}); }  // a full mailbox: looked at soon anyway
  void look_at_settings() override { (void)commands_.push(LookAtSettings{}); }
  void publish(const ControlEvent& event) override;
  Status start_job(std::string what, Job job) override { return job_.start(what, std::move(job)); }
  void stop_job(const std::string& why) override { job_.stop(why); }
  void tell_join(JoinNews news) override;

 private:
  struct LookAtHome {};
  struct LookAtSettings {};
  struct NewWish {
    WishFile wish;
    bool at_once = false;
  };
  using Command = std::variant<LookAtHome, LookAtSettings, NewWish, SupervisorEvent, JoinNews, ControlEvent>;

  // A foreground command says in its own words what a log would.
  spdlog::level::level_enum news_level() const {
    return options_.foreground ? spdlog::level::debug : spdlog::level::info;
  }
  std::function<void(const ControlEvent& event)> publisher() {
    return [this](const ControlEvent& event) { publish(event); };
  }
  bool is_joined() const {
    std::error_code ignored;
    return std::filesystem::exists(options_.home.island.join_file(), ignored);
  }
  Wish followed_wish() const;
  void follow_settings();
  void follow_caps();
  void on_gpus(const std::vector<GpuSample>& gpus);
  void take(const Command& command);
  void take_trainer_news(const ControlEvent& said);
  void take_join_news(const JoinNews& news);
  void turn();
  void look_at_disk();
  void look_at_trainer();
  bool take_over();
  void tell(const SupervisorEvent& event);
  void carry_out(const SupervisorAction& action);
  void start_trainer();
  void settle_wish(Wish wish);
  std::string warning() const;
  void show_trainer();
  void show();

  const AgentOptions options_;
  AbortSignal ends_;  // of what methods ask the GPUs' driver
  ContributionBook contributions_;
  AgentBoard board_;
  AgentHistory history_;
  MethodTable methods_;
  AgentService service_{methods_};
  Mailbox<Command> commands_{kMaxCommands};

  // The loop's:
  OwnersWish wish_;
  Supervisor supervisor_;
  SettingsWatch settings_{{options_.home.config_file, options_.home.settings_file()}};
  TimeZoneWatch time_zone_;
  std::string settings_trouble_;  // why a change of them is not followed; empty: all is
  OwnersCaps caps_{options_.caps};
  IslandTrainer trainer_{options_.home,
                         {.program = options_.trainer,
                          .patience = options_.trainer_patience,
                          .log_level = options_.trainer_log_level,
                          .log_bytes = options_.trainer_log_bytes,
                          .work_every = options_.work_every,
                          .data_cache_bytes = options_.data_cache_bytes,
                          .data_mirrors = options_.data_mirrors,
                          .credit = options_.credit,
                          .keep_days = options_.keep_days,
                          .keep_rounds = options_.keep_rounds,
                          .store = options_.store},
                         news_level()};
  Foreground foreground_;
  std::tuple<IslandPhase, Wish, std::uint32_t, std::vector<OwnersRule>> shown_{
      IslandPhase::kUnknown, Wish::kUnknown, 0, {}};  // islands that are here
  Watchdog watchdog_;
  std::optional<double> disk_free_bytes_;
  Clock::time_point look_at_disk_at_{};
  JoinStages join_stages_{[this](const event::JoinProgress& progress) {
    const bool trains = progress.stage == JoinStage::kFirstStep && progress.status == StageStatus::kDone;
    if (trains) join_task_.first_step_taken();
    publish(progress);
  }};

  JoinTask join_task_{*this, options_.check_node};
  std::unique_ptr<ControlServer> server_;
  // A full mailbox: the next answer comes in a second.
  TrainerNews news_{
      board_,
      history_,
      contributions_,
      {.answered = [this](const TrainerAnswered& answer) { (void)commands_.push(SupervisorEvent(answer)); },
       .said = [this](ControlEvent said) { (void)commands_.push(std::move(said)); },
       .publish = publisher(),
       .on_event = options_.on_event}};
  AgentJob job_;
  // Last: their threads publish to the server.
  std::optional<CheckTask> check_;
  std::optional<RulesWatch> rules_;  // once it serves
  InviteLook look_{publisher()};
};

// ---- any thread

Status Agent::Impl::wish(const WishFile& wish, bool at_once) {
  Status kept = save_wish(options_.home.wish_file(), wish);
  board_.set_wish(wish);
  if (!commands_.push(NewWish{wish, at_once})) {
    return Error{ErrorCode::kTimeout, "the agent is busy; say it again"};
  }
  return kept;
}

GpuFacts Agent::Impl::list_gpus() {
  GpuFacts not_asked;
  not_asked.driver_found = true;
  const GpuProbe& probe = options_.gpu_limits.probe;
  return probe.program.empty() ? not_asked : atl::list_gpus(probe, ends_);
}

void Agent::Impl::publish(const ControlEvent& event) {
  if (server_) server_->publish(name_of(event), data_of(event));
}

void Agent::Impl::tell_join(JoinNews news) {
  const std::optional<event::JoinDone> done = news.done;
  // While the loop is busy who waits for the end is not kept waiting.
  if (!commands_.push(std::move(news)) && done) publish(*done);
}

// ---- the loop

Status Agent::Impl::serve() {
  ATOLL_ASSIGN_OR_RETURN(server_, ControlServer::start(options_.home.socket, "atoll-agent", service_, options_.access));
  rules_.emplace(options_.home,
                 RulesWatch::Options{options_.gpus, options_.rules, options_.gpu_limits, options_.machine,
                                     options_.gpu_sample_period, news_level()},
                 TrainerGpus::Tell{publisher(), [this](const std::vector<GpuSample>& gpus) { on_gpus(gpus); }});
  board_.set_paused_gpus(rules_->gpus().paused());
  (void)take_over();
  follow_caps();  // before the trainer hears of its agent
  news_.listen(options_.home.island.control_socket());
  show();
  return ok_status();
}

// ---- on the sampler's thread

void Agent::Impl::on_gpus(const std::vector<GpuSample>& gpus) {
  board_.set_gpus(gpus);
  const ControlEvent sampled = event::GpuSampled{gpus};
  publish(sampled);
  history_.push({.what = sampled, .time = unix_time_now()});
}

// ---- the loop

bool Agent::Impl::take_over() {
  if (!trainer_.find()) return false;
  contributions_.follow(trainer_.pid(), /*is_new=*/false);
  news_.take_over();
  rules_->set_trainer(trainer_.pid());
  show_trainer();
  tell(TrainerStarted{.taken_over = true});
  return true;
}

Status Agent::Impl::run(const AbortSignal& end, const AbortSignal* hurry) {
  notify_service("READY=1");
  bool ending = false, hurried = false;
  while (!supervisor_.over()) {
    if (end.raised() && !std::exchange(ending, true)) {
      notify_service("STOPPING=1");
      spdlog::log(news_level(), "agent ends reason=\"{}\"", end.reason());
      tell(EndAsked{});
    }
    if (hurry != nullptr && hurry->raised() && !std::exchange(hurried, true)) tell(EndNow{});
    if (const auto command = commands_.pop(Deadline::after(kTurn))) take(*command);
    turn();
    if (!ending && options_.foreground && trainer_.pid() == 0 && foreground_.has_nothing_left(supervisor_)) break;
  }
  history_.flush();
  contributions_.flush();
  return options_.foreground && !ending ? Foreground::outcome(supervisor_) : ok_status();
}

Wish Agent::Impl::followed_wish() const {
  const Wish wish = wish_.now();
  return wish == Wish::kRun && rules_->pause() ? Wish::kPause : wish;
}

// One that cannot be read changes nothing, and is told until one comes that can.
void Agent::Impl::follow_settings() {
  if (!settings_.changed(Clock::now()) || !options_.read_config) return;
  const auto config = options_.read_config();
  const Status followed = config.ok() ? rules_->follow(*config) : Status(config.error());
  settings_trouble_ = followed.ok() ? std::string() : "settings stay as they were: " + followed.error().message;
  if (!followed.ok()) spdlog::warn("settings read=false error=\"{}\"", followed.error().message);
  if (config.ok()) caps_.set(cap_rules(*config));
}

// The trainer hears of it with the next word that its agent lives: within a second.
void Agent::Impl::follow_caps() {
  const TransferCaps caps = caps_.at(std::time(nullptr));
  trainer_.set_caps(caps);
  news_.set_caps(caps);
}

void Agent::Impl::take(const Command& command) {
  if (const auto* news = std::get_if<NewWish>(&command)) {
    wish_.say(news->wish);
    tell(Wished{followed_wish(), news->at_once});
  } else if (std::holds_alternative<LookAtHome>(command)) {
    rules_->gpus().look_at_home();
    tell(Joined{is_joined()});
  } else if (std::holds_alternative<LookAtSettings>(command)) {
    settings_.look_now();
    follow_settings();
  } else if (const auto* join = std::get_if<JoinNews>(&command)) {
    take_join_news(*join);
  } else if (const auto* said = std::get_if<ControlEvent>(&command)) {
    take_trainer_news(*said);
  } else {
    tell(std::get<SupervisorEvent>(command));
  }
}

void Agent::Impl::take_join_news(const JoinNews& news) {
  join_stages_.take(news);
  news_.follow_joining(join_stages_.follows());
  if (news.done) publish(*news.done);
}

void Agent::Impl::take_trainer_news(const ControlEvent& said) {
  if (trainer_.pid() == 0 || !join_stages_.follows()) return;
  if (const auto* transfer = std::get_if<event::Transfer>(&said)) join_stages_.transfer(*transfer);
  if (const NodeState* state = state_in(said)) join_stages_.trainer_says(state->island);
  news_.follow_joining(join_stages_.follows());
}

// A file system that hangs would hold the loop up; so does the trainer's log, which lies there too.
void Agent::Impl::look_at_disk() {
  if (Clock::now() < look_at_disk_at_) return;
  look_at_disk_at_ = Clock::now() + kLookAtDiskEvery;
  std::error_code failed;
  const auto space = std::filesystem::space(options_.home.island.directory, failed);
  disk_free_bytes_ = failed ? std::nullopt : std::optional(static_cast<double>(space.available));
}

void Agent::Impl::turn() {
  if (wish_.pause_is_over()) settle_wish(Wish::kRun);
  rules_->gpus().set_paused(board_.facts().paused_gpus);  // which control methods change
  time_zone_.turn(Clock::now());
  follow_settings();
  rules_->turn();
  follow_caps();
  if (const Wish followed = followed_wish(); followed != supervisor_.wish()) tell(Wished{followed});
  if (rules_->gpus().changed()) tell(GpusChanged{});
  look_at_trainer();
  look_at_disk();
  if (trainer_.pid() != 0 || rules_->known()) tell(SupervisorTick{});
  history_.turn(Clock::now());
  contributions_.turn(Clock::now());
  foreground_.look(supervisor_);
  show();
  if (options_.on_turn) options_.on_turn();
  watchdog_.turn();
}

void Agent::Impl::look_at_trainer() {
  const auto seen = trainer_.look();
  if (!seen) return;
  if (const auto* ended = std::get_if<TrainerEnded>(&*seen)) {
    rules_->set_trainer(0);
    board_.update([](AgentFacts& board) { board.trainer_pid = 0; });
    board_.forget_trainer();
    contributions_.flush();
    join_stages_.trainer_ended(ended->exit.text);
  }
  tell(*seen);
  const auto& exit = supervisor_.last_exit();
  if (trainer_.pid() == 0 && exit && is_failure_of_machine(exit->cause)) {
    join_task_.trainer_failed(supervisor_.phase() == Supervisor::Phase::kFailed);
  }
}

void Agent::Impl::tell(const SupervisorEvent& event) {
  for (const SupervisorAction& action : supervisor_.next(event, Clock::now())) carry_out(action);
}

void Agent::Impl::carry_out(const SupervisorAction& action) {
  if (std::holds_alternative<StartTrainer>(action)) {
    start_trainer();
  } else if (const auto* ask = std::get_if<AskTrainer>(&action)) {
    trainer_.ask_to(ask->to);
  } else if (const auto* kill = std::get_if<KillTrainer>(&action)) {
    trainer_.kill(kill->hung);
  } else {
    settle_wish(std::get<SettleWish>(action).wish);
  }
}

void Agent::Impl::start_trainer() {
  board_.forget_trainer();
  news_.expect_another();
  foreground_.trainer_starts();
  if (take_over()) return;  // one that somebody else started, or that nobody had written down
  const auto gpus = rules_->gpus().usable();
  const Status started = gpus.ok() ? trainer_.start(*gpus) : Status(gpus.error());
  if (!started.ok()) {
    join_stages_.trainer_ended(started.error().message);
    return tell(TrainerDidNotStart{started.error().message});
  }
  contributions_.follow(trainer_.pid(), /*is_new=*/true);
  rules_->set_trainer(trainer_.pid());
  show_trainer();
  join_stages_.trainer_started();
  tell(TrainerStarted{});
}

void Agent::Impl::settle_wish(Wish wish) {
  wish_.settle(wish);
  board_.set_wish(wish_.said());
}

std::string Agent::Impl::warning() const {
  if (!wish_.warning().empty()) return wish_.warning();
  if (!history_.trouble().empty()) return history_.trouble();
  if (!contributions_.trouble().empty()) return contributions_.trouble();
  if (!settings_trouble_.empty()) return settings_trouble_;
  if (!caps_.trouble().empty()) return caps_.trouble();
  return rules_->warning();
}

// At once: what follows in this turn may wait for a disk.
void Agent::Impl::show_trainer() {
  board_.update([&](AgentFacts& facts) {
    facts.trainer_pid = trainer_.pid();
    facts.phase = Supervisor::Phase::kRunning;
  });
}

void Agent::Impl::show() {
  const bool backing_off = supervisor_.phase() == Supervisor::Phase::kBackoff;
  board_.set_facts({.followed = supervisor_.wish(),
                    .phase = supervisor_.phase(),
                    .joined = supervisor_.joined(),
                    .trainer_pid = trainer_.pid(),
                    .taken_over = news_.taken_over(),
                    .restarts = supervisor_.restarts(),
                    .last_exit = supervisor_.last_exit(),
                    .retry_at = backing_off ? std::optional(supervisor_.retry_at()) : std::nullopt,
                    .warning = warning(),
                    .paused_by = rules_->paused_by(),
                    .upload_cap = caps_.upload_view(std::time(nullptr)),
                    .download_cap = caps_.download_view(std::time(nullptr)),
                    .disk_free_bytes = disk_free_bytes_});
  NodeState state = board_.state();
  std::vector<OwnersRule> rules;
  for (const PausedBy& pause : state.agent.paused_by) rules.push_back(pause.rule);
  const std::tuple now(state.island.state, state.agent.wish, state.island.islands_live, std::move(rules));
  if (now == std::exchange(shown_, now)) return;
  state.gpus.clear();  // they have an event of their own
  const ControlEvent changed = event::StateChanged{std::move(state)};
  publish(changed);
  if (options_.on_event) options_.on_event(changed);
}

// ---- the public face

Result<std::unique_ptr<Agent>> Agent::start(AgentOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  ATOLL_RETURN_IF_ERROR(impl->serve());
  return std::unique_ptr<Agent>(new Agent(std::move(impl)));
}

Agent::Agent(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Agent::~Agent() = default;
AgentControl& Agent::control() { return *impl_; }
Status Agent::run(const AbortSignal& end, const AbortSignal* hurry) { return impl_->run(end, hurry); }

}  // namespace atl
