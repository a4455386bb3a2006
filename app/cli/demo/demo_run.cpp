#include "app/cli/demo/demo_run.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "app/cli/demo/demo_data.h"
#include "app/cli/demo/demo_directory.h"
#include "app/cli/demo/demo_sample.h"
#include "app/cli/demo/demo_view.h"
#include "app/cli/own_programs.h"
#include "app/cli/text.h"
#include "app/cli/validate_run.h"
#include "net/base/file.h"
#include "net/base/round_words.h"
#include "net/control/methods.h"
#include "net/data/dataset.h"
#include "net/hub/hub.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kTick{250};
constexpr std::chrono::milliseconds kEndTick{50};  // the last figures come, and go, quickly
constexpr std::uint32_t kValidateEvery = 2;        // rounds
constexpr std::chrono::seconds kHubStartTime{20};
constexpr std::chrono::seconds kDemoAnswerTime{3};
constexpr double kLastFiguresSeconds = 20;
constexpr double kStallSeconds = 120;  // nothing moved for so long: something is wrong
constexpr std::chrono::seconds kStopTime{10};
constexpr std::uint32_t kFewestKillRounds = 6;  // until the newcomer has trained

// Atolls, as islands' names.
constexpr const char* kNames[] = {"aitutaki", "bikini",  "clipperton", "diego",      "enewetak", "funafuti", "gaafu",
                                  "huvadhu",  "iifa",    "jaluit",     "kiritimati", "likiep",   "majuro",   "nukuoro",
                                  "onotoa",   "palmyra", "rangiroa",   "suvarrow",   "tarawa",   "ulithi"};

// The last lines of a log, for an error message.
std::string tail_of(const std::filesystem::path& log) {
  const auto text = read_file(log);
  if (!text.ok() || text->empty()) return "";
  constexpr int kLines = 4;
  std::size_t begin = text->size() - 1;  // of the line that this is in
  for (int lines = 0; begin > 0; --begin) {
    if ((*text)[begin - 1] == '\n' && ++lines == kLines) break;
  }
  return "\n" + text->substr(begin);
}

// What can be known before anything is started, and minutes of training are not to end in.
Status check_options(const DemoOptions& options) {
  const bool few_rounds = options.rounds > 0 && options.rounds < kFewestKillRounds;
  if (options.kill && (options.islands < 2 || few_rounds)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--kill needs at least 2 islands and {} rounds: one is killed in mid-round, the others "
                             "finish it, a new one joins",
                             kFewestKillRounds)};
  }
  if (options.summary_file.empty()) return ok_status();
  const std::filesystem::path file = std::filesystem::absolute(options.summary_file);
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("cannot write --summary {}: it is a directory", options.summary_file)};
  }
  if (::access(file.parent_path().c_str(), W_OK | X_OK) == 0) return ok_status();
  return Error{ErrorCode::kInvalidArgument, fmt::format("cannot write --summary {}: {}", options.summary_file,
                                                        errno_error("write to", file.parent_path()).message)};
}

}  // namespace

DemoRun::DemoRun(DemoOptions options, CommandContext& context) : options_(std::move(options)), context_(context) {}

DemoRun::~DemoRun() { stop_all(); }

Status DemoRun::run() {
  Status status = set_up();
  if (status.ok()) status = train();
  if (!status.ok()) {
    display_.reset();
    if (context_.interrupt.raised()) context_.console.out << "stopping ..." << std::endl;
    stop_all();
    if (status.error().code != ErrorCode::kAborted) return status;
    return Error{ErrorCode::kAborted, fmt::format("demo {}; nothing is left running (logs are in {})",
                                                  status.error().message, directory_.string())};
  }
  return finish();
}

Status DemoRun::set_up() {
  ATOLL_RETURN_IF_ERROR(check_options(options_));
  if (options_.rounds == 0 && options_.minutes <= 0) options_.minutes = kDemoMinutes;
  ATOLL_RETURN_IF_ERROR(make_hub());
  Console& console = context_.console;
  ATOLL_RETURN_IF_ERROR(start_hub());
  for (std::uint32_t i = 0; i < options_.islands; ++i) ATOLL_RETURN_IF_ERROR(start_island());
  console.out << fmt::format("{} and a hub started, each a process of its own; all is kept in {}\n",
                             format_number_of(options_.islands, "island"), directory_.string())
              << std::flush;
  if (console.out_is_terminal) display_.emplace(console);
  return ok_status();
}

Status DemoRun::make_hub() {
  ATOLL_ASSIGN_OR_RETURN(const DemoData data, demo_data(options_.text, [&] {
                           context_.console.out << "preparing the text (once; kept for the next time) ..." << std::endl;
                         }));
  options_.run.min_islands = options_.islands;
  options_.run.max_rounds = options_.rounds;
  options_.run.validate_every = kValidateEvery;
  HubInitOptions hub;
  ATOLL_ASSIGN_OR_RETURN(const Dataset dataset, Dataset::open(data.directory));
  ATOLL_ASSIGN_OR_RETURN(hub.run, make_run("demo", "demo", options_.run, tokens_of(dataset.manifest())));
  ATOLL_RETURN_IF_ERROR(validate_run(hub.run, dataset.manifest().vocab_size));
  ATOLL_ASSIGN_OR_RETURN(directory_, make_demo_directory(options_.directory));
  hub.directory = directory_ / "hub";
  hub.data = {{data.directory}};
  ATOLL_ASSIGN_OR_RETURN(const RunConfig run, hub_init(hub));
  facts_ = {.parameters = 0,
            .text_bytes = data.text_bytes,
            .islands = options_.islands,
            .inner_steps = run.inner_steps,
            .tokens_per_step = std::uint64_t{run.sequences_per_step} * run.sequence_length,
            .limit_seconds = options_.minutes * 60,
            .limit_rounds = options_.rounds};
  return ok_status();
}

Status DemoRun::start_hub() {
  ATOLL_ASSIGN_OR_RETURN(const auto atoll, locate_atoll());
  const HubHome home{directory_ / "hub"};
  const auto log = directory_ / "hub.log";
  ATOLL_ASSIGN_OR_RETURN(
      hub_,
      ChildProcess::spawn({.program = atoll,
                           .arguments = {"hub", "serve", "--home", home.directory.string(), "--listen", "127.0.0.1:0"},
                           .log = log}));
  const Deadline deadline = Deadline::after(kHubStartTime);
  while (!hub_client_) {
    auto client = ControlClient::connect(home.control_socket(), Deadline::after(kDemoAnswerTime));
    if (client.ok()) {
      hub_client_ = std::move(*client);
    } else if (hub_->poll() || deadline.expired()) {
      return Error{ErrorCode::kTrainerFailed, "the hub did not start; its log says:" + tail_of(log)};
    } else if (context_.interrupt.raised()) {
      return Error{ErrorCode::kAborted, context_.interrupt.reason()};
    } else {
      ::poll(nullptr, 0, 20);
    }
  }
  ATOLL_ASSIGN_OR_RETURN(const InviteReport invite,
                         create_invite(home.directory, {.addresses = {},
                                                        .uses = options_.islands + (options_.kill ? 1u : 0u),
                                                        .valid_for = std::chrono::hours(24)}));
  return write_file_atomically(directory_ / "invite.txt", invite.text + "\n", FileMode::kPrivate);
}

Status DemoRun::start_island() {
  const std::uint32_t number = started_islands_++;
  const std::string name = number < std::size(kNames) ? kNames[number] : fmt::format("island-{}", number + 1);
  ATOLL_ASSIGN_OR_RETURN(DemoIsland island,
                         DemoIsland::start(name, directory_ / "islands" / name, directory_ / "invite.txt"));
  islands_.push_back(std::move(island));
  return ok_status();
}

Status DemoRun::train() {
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const bool done, tick());
    if (done) break;
    wait_a_little();
  }
  return wait_for_last_figures();
}

void DemoRun::wait_a_little() const {
  const bool last_round = facts_.limit_rounds > 0 && history_.state().outer_step + 1 >= facts_.limit_rounds;
  pollfd wake{context_.interrupt.fd(), POLLIN, 0};
  ::poll(&wake, 1, static_cast<int>((ending_ || last_round ? kEndTick : kTick).count()));
}

// A hub that is busy for a moment does not end the demo; one that stays silent is found out by the stall limit.
Status DemoRun::look_at_hub() {
  if (!hub_client_) {
    ATOLL_ASSIGN_OR_RETURN(hub_client_, ControlClient::connect(HubHome{directory_ / "hub"}.control_socket(),
                                                               Deadline::after(kDemoAnswerTime)));
  }
  auto json = hub_client_->call(method::StateGet::kName, nlohmann::json::object(), Deadline::after(kDemoAnswerTime));
  if (!json.ok()) {
    hub_client_.reset();
    return json.error();
  }
  ATOLL_ASSIGN_OR_RETURN(const HubState state, HubState::from_json(*json));
  history_.observe(state, now());
  return ok_status();
}

Result<bool> DemoRun::tick() {
  if (context_.interrupt.raised()) return Error{ErrorCode::kAborted, context_.interrupt.reason()};
  const Status seen = look_at_hub();
  ATOLL_RETURN_IF_ERROR(check_processes());
  if (facts_.parameters == 0 && !islands_.empty()) {
    const auto island = islands_.front().state();
    if (island.ok()) facts_.parameters = island->parameters;
  }
  if (options_.kill && !ending_) ATOLL_RETURN_IF_ERROR(act_out_kill());
  show();
  if (now() - history_.last_progress_seconds() > kStallSeconds) {
    const std::string why = seen.ok() ? "" : fmt::format(" ({})", seen.error().message);
    return Error{ErrorCode::kTimeout, fmt::format("nothing has moved for {}{}; the logs in {} may say why",
                                                  format_duration(kStallSeconds), why, directory_.string())};
  }
  return limit_reached();
}

Status DemoRun::check_processes() {
  if (const auto code = hub_->poll()) {
    return Error{ErrorCode::kTrainerFailed,
                 fmt::format("the hub ended (status {}); its log says:{}", *code, tail_of(directory_ / "hub.log"))};
  }
  for (std::size_t i = 0; i < islands_.size();) {
    // After the last round they end by themselves, one after the other.
    const bool last_round = facts_.limit_rounds > 0 && history_.state().outer_step + 1 >= facts_.limit_rounds;
    if (islands_[i].running() || (last_round && islands_[i].done())) {
      ++i;
      continue;
    }
    if (!history_.training() || islands_.size() == 1) {
      return Error{ErrorCode::kTrainerFailed, fmt::format("island {} ended; its log {} says:{}", islands_[i].name(),
                                                          islands_[i].log().string(), tail_of(islands_[i].log()))};
    }
    say(fmt::format("island {} ended by itself (see {}); the others go on", islands_[i].name(),
                    islands_[i].log().string()));
    islands_.erase(islands_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return ok_status();
}

double DemoRun::fraction_done() const {
  double fraction = 0;
  if (facts_.limit_seconds > 0) fraction = history_.training_seconds(now()) / facts_.limit_seconds;
  if (facts_.limit_rounds > 0) fraction = std::max(fraction, double(history_.state().outer_step) / facts_.limit_rounds);
  return fraction;
}

// Act one, a third of the way and in mid-round: an island loses power. Act two, two rounds later: a new one joins.
Status DemoRun::act_out_kill() {
  const HubState& state = history_.state();
  if (!killed_in_round_) {
    if (fraction_done() < 1.0 / 3 || islands_.size() < 2 || state.phase != HubPhase::kTraining) return ok_status();
    const std::string victim = islands_.back().name();
    for (const HubState::Island& island : state.islands) {
      const bool mid_round =
          island.inner_step * 3 >= facts_.inner_steps && island.inner_step * 3 <= 2 * facts_.inner_steps;
      if (island.name != victim || island.phase != IslandPhase::kTraining || !mid_round) continue;
      if (!islands_.back().kill().ok()) return ok_status();  // it did not say which process it is; the next tick
      islands_.back().remove_data();
      islands_.pop_back();
      killed_in_round_ = state.outer_step;
      say(fmt::format("killed {} in mid-round {} (step {}/{}); the others finish it", victim,
                      round_number(state.outer_step), island.inner_step, facts_.inner_steps));
      break;
    }
  } else if (!replaced_ && state.outer_step >= *killed_in_round_ + 2) {
    ATOLL_RETURN_IF_ERROR(start_island());
    replaced_ = true;
    say(fmt::format("{} joins in round {}: it gets the outer state from the others", islands_.back().name(),
                    round_number(state.outer_step)));
  }
  return ok_status();
}

bool DemoRun::limit_reached() const {
  const std::uint32_t outer_step = history_.state().outer_step;
  if (facts_.limit_rounds > 0 && outer_step >= facts_.limit_rounds) return true;
  return facts_.limit_seconds > 0 && history_.training_seconds(now()) >= facts_.limit_seconds && outer_step > 0;
}

// Model, validation and verdict of one outer step: of the last round, or with --minutes of the next that is validated,
// while the islands train on.
Status DemoRun::wait_for_last_figures() {
  ending_ = true;
  const bool by_rounds = facts_.limit_rounds > 0 && history_.state().outer_step >= facts_.limit_rounds;
  if (by_rounds) history_.end_at(facts_.limit_rounds);
  const double until = now() + kLastFiguresSeconds;
  for (;;) {
    const bool has_model = take_model();
    if (has_model) take_last_figures();
    const bool validated =
        !history_.validations().empty() && history_.validations().back().outer_step >= history_.outer_step();
    if (has_model && validated && history_.outer_hashes_equal().has_value()) return ok_status();
    if (now() > until) {
      if (has_model) return ok_status();
      return Error{ErrorCode::kTimeout, fmt::format("no island gave the model within {}; the logs in {} may say why",
                                                    format_duration(kLastFiguresSeconds), directory_.string())};
    }
    wait_a_little();
    ATOLL_RETURN_IF_ERROR(tick());
  }
}

bool DemoRun::take_model() {
  if (model_step_) return true;
  const auto model = directory_ / "model";
  const std::uint32_t last = facts_.limit_rounds;
  const bool by_rounds = last > 0 && history_.state().outer_step >= last;
  for (DemoIsland& island : islands_) {
    const auto step = island.running() ? island.export_model(model) : island.export_checkpoint(model);
    if (!step.ok()) continue;
    const bool fits = by_rounds ? *step == last : *step > 0 && *step % kValidateEvery == 0;
    if (!fits) continue;
    model_step_ = *step;
    history_.end_at(*step);
    return true;
  }
  return false;
}

// The islands know their bytes at once, the hub with the next heartbeat.
void DemoRun::take_last_figures() {
  for (const DemoIsland& island : islands_) {
    const auto state = island.state();
    if (state.ok() && state->outer_step == *model_step_ && state->state != IslandPhase::kSyncing)
      history_.correct(*state);
  }
}

void DemoRun::say(const std::string& event) {
  history_.note(fmt::format("{}  {}", format_duration(std::floor(history_.training_seconds(now()))), event));
}

void DemoRun::show() {
  Console& console = context_.console;
  if (display_) {
    const int rows = display_->begin_frame();
    display_->draw(demo_screen(history_, facts_, now(), rows, console));
    return;
  }
  for (; printed_events_ < history_.events().size(); ++printed_events_) {
    console.out << history_.events()[printed_events_] << std::endl;
  }
  for (const auto& [number, round] : history_.rounds()) {
    if (number < printed_rounds_) continue;
    console.out << demo_round_line(history_, round) << std::endl;
    printed_rounds_ = number + 1;
  }
}

void DemoRun::stop_all() {
  const Deadline deadline = Deadline::after(kStopTime);
  for (DemoIsland& island : islands_) island.ask_to_end();
  for (DemoIsland& island : islands_) {
    island.wait_for_end(deadline);
    island.remove_data();
  }
  islands_.clear();
  hub_client_.reset();
  if (hub_) hub_->terminate(deadline);
  hub_.reset();
}

Status DemoRun::finish() {
  DemoSummary summary = summarise(history_, facts_);
  summary.export_dir = (directory_ / "model").string();
  show();
  display_.reset();
  context_.console.out << "stopping the islands and the hub ..." << std::endl;
  stop_all();
  context_.console.out << "asking the model to write something ..." << std::endl;
  auto sample = sample_of(directory_ / "model", context_.interrupt);
  if (sample.ok()) {
    summary.sample = *std::move(sample);
  } else {
    summary.no_sample = sample.error().message;
  }
  context_.console.out << to_text(summary, context_.console) << std::flush;
  if (options_.summary_file.empty()) return ok_status();
  const std::string json = summary.to_json().dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  return write_file_atomically(options_.summary_file, json + "\n", FileMode::kPublic);
}

}  // namespace atl
