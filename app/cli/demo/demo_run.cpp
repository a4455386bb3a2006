#include "app/cli/demo/demo_run.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>

#include "app/cli/demo/demo_data.h"
#include "app/cli/demo/demo_view.h"
#include "app/cli/text.h"
#include "net/base/file.h"
#include "net/hub/hub.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kTick{250};
constexpr std::chrono::seconds kHubStartTime{20};
constexpr std::chrono::seconds kAnswerTime{3};
constexpr double kLastFiguresSeconds = 20;
constexpr double kStallSeconds = 120;  // nothing moved for so long: something is wrong
constexpr std::chrono::seconds kStopTime{10};
constexpr std::chrono::seconds kSampleTime{60};
constexpr const char* kSamplePrompt = "An atoll is ";

// Atolls, as islands' names.
constexpr const char* kNames[] = {"aitutaki", "bikini",  "clipperton", "diego",      "enewetak", "funafuti", "gaafu",
                                  "huvadhu",  "iifa",    "jaluit",     "kiritimati", "likiep",   "majuro",   "nukuoro",
                                  "onotoa",   "palmyra", "rangiroa",   "suvarrow",   "tarawa",   "ulithi"};

std::string time_stamp() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H-%M-%S", &local);
  return text;
}

// The last lines of a log, for an error message.
std::string tail_of(const std::filesystem::path& log) {
  const auto text = read_file(log);
  if (!text.ok() || text->empty()) return "";
  std::size_t begin = text->size() - 1;
  for (int lines = 0; begin > 0 && lines < 4; --begin) {
    if ((*text)[begin - 1] == '\n' && ++lines == 4) break;
  }
  return "\n" + text->substr(begin);
}

}  // namespace

DemoRun::DemoRun(DemoOptions options, CommandContext& context) : options_(std::move(options)), context_(context) {}

DemoRun::~DemoRun() { stop_all(); }

Status DemoRun::run() {
  Status status = set_up();
  if (status.ok()) status = train();
  if (!status.ok()) {
    display_.reset();
    stop_all();
    if (status.error().code != ErrorCode::kAborted) return status;
    return Error{ErrorCode::kAborted, fmt::format("demo {}; nothing is left running (logs are in {})",
                                                  status.error().message, directory_.string())};
  }
  return finish();
}

Status DemoRun::set_up() {
  Console& console = context_.console;
  ATOLL_ASSIGN_OR_RETURN(const DemoData data, demo_data(options_.text, [&] {
                           console.out << "preparing the text (once; kept for the next time) ..." << std::endl;
                         }));
  if (options_.rounds == 0 && options_.minutes <= 0) options_.minutes = kDemoMinutes;
  if (options_.directory.empty()) {
    ATOLL_ASSIGN_OR_RETURN(directory_, state_directory());
    directory_ /= fmt::format("demo/{}-{}", time_stamp(), ::getpid());
  } else {
    directory_ = std::filesystem::absolute(options_.directory);
  }
  ATOLL_RETURN_IF_ERROR(make_directories(directory_, FileMode::kPrivate));

  options_.run.min_islands = options_.islands;
  // The last committed state is to be one that is validated.
  options_.run.validate_every = options_.rounds > 0 && options_.rounds % 2 != 0 ? 1 : 2;
  HubInitOptions hub;
  hub.directory = directory_ / "hub";
  hub.dataset_directory = data.directory;
  ATOLL_ASSIGN_OR_RETURN(hub.run, make_run("demo", "demo", options_.run));
  ATOLL_ASSIGN_OR_RETURN(const RunConfig run, hub_init(hub));
  facts_ = {.parameters = 0,
            .text_bytes = data.text_bytes,
            .islands = options_.islands,
            .inner_steps = run.inner_steps,
            .tokens_per_step = std::uint64_t{run.sequences_per_step} * run.sequence_length,
            .limit_seconds = options_.minutes * 60,
            .limit_rounds = options_.rounds};
  ATOLL_RETURN_IF_ERROR(start_hub());
  for (std::uint32_t i = 0; i < options_.islands; ++i) ATOLL_RETURN_IF_ERROR(start_island());
  console.out << fmt::format("{} islands and a hub started, each a process of its own; logs in {}\n", options_.islands,
                             directory_.string())
              << std::flush;
  if (console.out_is_terminal) display_.emplace(console);
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
    auto client = ControlClient::connect(home.control_socket(), Deadline::after(kAnswerTime));
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
    pollfd wake{context_.interrupt.fd(), POLLIN, 0};
    ::poll(&wake, 1, static_cast<int>(kTick.count()));
  }
  return wait_for_last_figures();
}

Result<bool> DemoRun::tick() {
  if (context_.interrupt.raised()) return Error{ErrorCode::kAborted, context_.interrupt.reason()};
  ATOLL_RETURN_IF_ERROR(check_processes());
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json json,
                         hub_client_->call("state.get", nlohmann::json::object(), Deadline::after(kAnswerTime)));
  ATOLL_ASSIGN_OR_RETURN(const HubState state, HubState::from_json(json));
  history_.observe(state, now());
  if (facts_.parameters == 0 && !islands_.empty()) {
    const auto island = islands_.front().state();
    if (island.ok()) facts_.parameters = island->parameters;
  }
  if (options_.kill) ATOLL_RETURN_IF_ERROR(act_out_kill());
  show();
  if (now() - history_.last_progress_seconds() > kStallSeconds) {
    return Error{ErrorCode::kTimeout, fmt::format("nothing has moved for {}; the logs in {} may say why",
                                                  format_duration(kStallSeconds), directory_.string())};
  }
  return limit_reached();
}

Status DemoRun::check_processes() {
  if (const auto code = hub_->poll()) {
    return Error{ErrorCode::kTrainerFailed,
                 fmt::format("the hub ended (status {}); its log says:{}", *code, tail_of(directory_ / "hub.log"))};
  }
  for (std::size_t i = 0; i < islands_.size();) {
    if (islands_[i].running()) {
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
    if (fraction_done() < 1.0 / 3 || islands_.size() < 2 || state.phase != "training") return ok_status();
    const std::string victim = islands_.back().name();
    for (const HubState::Island& island : state.islands) {
      const bool mid_round =
          island.inner_step * 3 >= facts_.inner_steps && island.inner_step * 3 <= 2 * facts_.inner_steps;
      if (island.name != victim || island.phase != "training" || !mid_round) continue;
      ATOLL_RETURN_IF_ERROR(islands_.back().kill());
      islands_.back().remove_data();
      islands_.pop_back();
      killed_in_round_ = state.outer_step;
      say(fmt::format("killed {} in mid-round {} (step {}/{}); the others finish it", victim, state.outer_step,
                      island.inner_step, facts_.inner_steps));
      break;
    }
  } else if (!replaced_ && state.outer_step >= *killed_in_round_ + 2) {
    ATOLL_RETURN_IF_ERROR(start_island());
    replaced_ = true;
    say(fmt::format("{} joins in round {}: it gets the outer state from the others", islands_.back().name(),
                    state.outer_step));
  }
  return ok_status();
}

bool DemoRun::limit_reached() const {
  if (facts_.limit_rounds > 0 && history_.state().outer_step >= facts_.limit_rounds) return true;
  if (facts_.limit_seconds <= 0 || history_.training_seconds(now()) < facts_.limit_seconds) return false;
  // Only after a commit, and one whose outer state is validated.
  const std::uint32_t outer_step = history_.state().outer_step;
  return outer_step > 0 && outer_step % *options_.run.validate_every == 0 &&
         outer_step >= history_.validations().size();
}

// The last round's validation and hashes come a moment after its commit.
Status DemoRun::wait_for_last_figures() {
  const std::uint32_t last = history_.state().outer_step;
  const double until = now() + kLastFiguresSeconds;
  ATOLL_RETURN_IF_ERROR(export_model());
  for (;;) {
    const bool validated = !history_.validations().empty() && history_.validations().back().outer_step >= last;
    if ((validated && history_.outer_hashes_equal().has_value()) || now() > until) return ok_status();
    ATOLL_RETURN_IF_ERROR(tick());
    pollfd wake{context_.interrupt.fd(), POLLIN, 0};
    ::poll(&wake, 1, static_cast<int>(kTick.count()));
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

Status DemoRun::export_model() {
  Status status = Error{ErrorCode::kNotRunning, "no island is running"};
  for (const DemoIsland& island : islands_) {
    status = island.export_model(directory_ / "model");
    if (status.ok()) return status;
  }
  return status.error().with_context("cannot export the model");
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

std::string DemoRun::sample_text() const {
  const auto log = directory_ / "sample.txt";
  const auto trainer = locate_trainer();
  if (!trainer.ok()) return "";
  auto process =
      ChildProcess::spawn({.program = *trainer,
                           .arguments = {"sample", "--model", (directory_ / "model").string(), "--prompt",
                                         kSamplePrompt, "--tokens", "160", "--temperature", "0.7", "--threads", "2"},
                           .log = log});
  if (!process.ok()) return "";
  const auto code = process->wait(Deadline::after(kSampleTime), &context_.interrupt);
  // What it wrote until the time was over is a sample as well.
  if (code.ok() && *code != 0) return "";
  auto text = read_file(log);
  if (!text.ok()) return "";
  while (text->ends_with('\n')) text->pop_back();
  return printable(*text);
}

Status DemoRun::finish() {
  DemoSummary summary = summarise(history_, facts_, now());
  summary.export_dir = (directory_ / "model").string();
  show();
  display_.reset();
  context_.console.out << "stopping the islands and the hub ..." << std::endl;
  stop_all();
  context_.console.out << "asking the model to write something ..." << std::endl;
  summary.sample = sample_text();
  context_.console.out << to_text(summary, context_.console) << std::flush;
  if (options_.summary_file.empty()) return ok_status();
  const std::string json = summary.to_json().dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  return write_file_atomically(options_.summary_file, json + "\n", FileMode::kPublic);
}

}  // namespace atl
