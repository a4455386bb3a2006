#include "app/cli/join_progress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "app/cli/text.h"
#include "net/base/round_words.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kTransferEvery{5};
constexpr std::chrono::seconds kWaitsInSilence{5};
constexpr std::chrono::seconds kFirstStepAfter{10};
constexpr std::chrono::seconds kStepEvery{60};
constexpr std::uint64_t kWorthALine = 64 << 10;  // bytes: what is less is here before it is read of

std::string name_of(Download what) { return what == Download::kState ? "the model's state" : "the run's data"; }

// What a stage of a joining is called while it runs; empty: it is shown in another way.
std::string words_of(JoinStage stage) {
  switch (stage) {
    case JoinStage::kKey: return "making a key";
    case JoinStage::kEnrol: return "enrolling";
    case JoinStage::kCheck: return "checking this machine";
    case JoinStage::kTrainer: return "starting the trainer";
    case JoinStage::kFirstStep: return "waiting for the first step";
    default: return "";
  }
}

// A stage that fetches something is shown as what is fetched.
std::optional<event::Transfer> transfer_of(const event::JoinProgress& progress) {
  event::Transfer transfer{.done_bytes = progress.done_bytes.value_or(0),
                           .total_bytes = progress.total_bytes.value_or(0),
                           .bytes_per_second = progress.bytes_per_second,
                           .seconds_left = progress.seconds_left,
                           .text = progress.text};
  if (progress.stage == JoinStage::kData) transfer.what = Download::kData;
  if (progress.stage == JoinStage::kState) transfer.what = Download::kState;
  if (progress.status == StageStatus::kRunning) transfer.status = DownloadStatus::kRunning;
  if (progress.status == StageStatus::kDone) transfer.status = DownloadStatus::kDone;
  if (progress.status == StageStatus::kFailed) transfer.status = DownloadStatus::kFailed;
  return transfer.what == Download::kUnknown ? std::nullopt : std::optional(transfer);
}

}  // namespace

void JoinProgress::show(Clock::time_point now) {
  now_ = now;
  while (const auto event = events_.try_pop()) show(*event);
  if (waits_since_ && now - *waits_since_ >= kWaitsInSilence) {
    waits_since_.reset();
    print(waits_for_);
  }
  show_step();
}

void JoinProgress::show(const ControlEvent& event) {
  std::visit(
      Overloaded{[&](const event::Transfer& e) { show_transfer(e); },
                 [&](const event::JoinProgress& e) { show_stage(e); }, [&](const event::HubLink& e) { show_hub(e); },
                 [&](const event::SyncDone& e) { show_round(e.state.island); },
                 [&](const event::Validated& e) { show_validation(e); },
                 [&](const event::Evaluated& e) { show_scores(e); }, [](const auto&) {}},
      event);
  if (const NodeState* state = state_in(event)) {
    island_ = state->island;
    show_trouble(state->island);
    show_end(*state);
    show_pauses(*state);
    show_wish(*state);
    look_whether_it_waits(state->island);
  }
}

void JoinProgress::print(const std::string& line) {
  console_.out << line << std::endl;
  said_at_ = now_;
}

// How far a round is that takes long, when nothing was said for a while.
void JoinProgress::show_step() {
  const auto silence = has_said_a_step_ ? kStepEvery : kFirstStepAfter;
  const bool trains = island_.pid > 0 && island_.state == IslandPhase::kTraining && island_.inner_step > 0;
  if (!trains || now_ - said_at_ < silence) return;
  has_said_a_step_ = true;
  print(fmt::format("round {}  step {} of {}  loss {}  {}", round_number(island_.round), island_.inner_step,
                    island_.inner_steps, format_loss(island_.loss_nats), format_rate(island_.tokens_per_second)));
}

void JoinProgress::show_round(const IslandState& state) {
  const std::string islands = format_number_of(state.islands_live, "island");
  // A newcomer takes the round's outer step before it has trained.
  const std::uint64_t round = round_number(state.round);
  if (state.tokens == 0) return print(fmt::format("round {}  followed, not trained here  {}", round, islands));
  print(fmt::format("round {}  loss {}  {}  {}", round, format_loss(state.loss_nats),
                    format_rate(state.tokens_per_second), islands));
}

void JoinProgress::show_validation(const event::Validated& validated) {
  print(fmt::format("{}: validation loss {}", after_round(validated.outer_step), format_loss(validated.loss_nats)));
}

void JoinProgress::show_scores(const event::Evaluated& evaluated) {
  std::vector<std::string> figures;
  for (const event::TaskFigure& figure : evaluated.figures) {
    figures.push_back(fmt::format("{} {:.4g}", printable(figure.metric), figure.value));
  }
  print(fmt::format("{}: {}  {}", after_round(evaluated.outer_step), printable(evaluated.task),
                    fmt::join(figures, ", ")));
}

void JoinProgress::show_hub(const event::HubLink& link) {
  if (link.up) {
    hub_text_.clear();
    return print("the hub answers again");
  }
  hub_text_ = printable(link.text);
  const auto tries_for = link.tries_for_seconds;
  print(fmt::format("the hub does not answer ({}); trying again {}", hub_text_,
                    tries_for ? "for " + format_duration(*tries_for) : std::string("until it does")));
}

void JoinProgress::show_trouble(const IslandState& state) {
  // What the agent says of a trainer that ended is this command's own error.
  if (state.pid == 0 || state.state == IslandPhase::kError) return;
  std::string trouble = printable(state.error);
  if (!hub_text_.empty() && trouble.find(hub_text_) != std::string::npos) trouble.clear();  // said by hub.link
  if (trouble == std::exchange(trouble_, trouble) || trouble.empty()) return;
  print(console_.styled(trouble, Style::kWarning));
}

// Why the trainer ended that is started again. Of one that is not, this command's own error tells.
void JoinProgress::show_end(const NodeState& state) {
  const auto& exit = state.agent.last_exit;
  if (!exit || !state.agent.restart_in_seconds || exit->time == std::exchange(ended_at_, exit->time)) return;
  constexpr std::string_view kEnded = "the trainer ended";
  std::string why = printable(exit->text);  // told to end, it says nothing
  if (why.starts_with(kEnded))
    why.erase(0, kEnded.size());
  else if (!why.empty())
    why.insert(0, ": ");
  print(console_.styled(
      fmt::format("{}{}; it is started again in {}", kEnded, why, format_duration(*state.agent.restart_in_seconds)),
      Style::kWarning));
}

// Between two rounds everybody waits for a moment. What is amiss has a line of its own.
void JoinProgress::look_whether_it_waits(const IslandState& state) {
  std::string waits_for;
  if (state.pid > 0 && state.state == IslandPhase::kWaiting && state.error.empty()) {
    const std::uint32_t live = state.islands_live, needed = state.islands_needed.value_or(0);
    waits_for = live < needed ? fmt::format("waiting for more islands: {} {} here, and a round needs {}", live,
                                            live == 1 ? "is" : "are", needed)
                              : "waiting for the next round to begin";
  }
  const bool is_news = waits_for != waits_for_;
  waits_for_ = std::move(waits_for);
  if (waits_for_.empty())
    waits_since_.reset();
  else if (is_news)
    waits_since_ = now_;
}

// Each rule when it begins to pause, and when none does any more.
void JoinProgress::show_pauses(const NodeState& state) {
  if (!state.has_agent) return;  // the trainer alone does not know
  std::vector<OwnersRule> rules;
  for (const PausedBy& pause : state.agent.paused_by) {
    rules.push_back(pause.rule);
    if (std::ranges::find(pauses_, pause.rule) != pauses_.end()) continue;
    print(console_.styled(fmt::format("paused: {}", printable(sentence_of(pause))), Style::kWarning));
  }
  if (rules.empty() && !pauses_.empty() && state.agent.wish == Wish::kRun) print("training goes on");
  pauses_ = std::move(rules);
}

// `atoll pause` in another terminal. Nothing comes until it is over, which may be hours.
void JoinProgress::show_wish(const NodeState& state) {
  if (!state.has_agent) return;
  const bool is_paused = state.agent.wish == Wish::kPause;
  if (is_paused == std::exchange(is_paused_, is_paused)) return;
  if (is_paused) return print(console_.styled("paused by its owner; atoll status says until when", Style::kWarning));
  if (pauses_.empty() && state.agent.wish == Wish::kRun) print("training goes on");
}

void JoinProgress::show_stage(const event::JoinProgress& progress) {
  if (const auto transfer = transfer_of(progress)) return show_transfer(*transfer);
  const std::string words = words_of(progress.stage);
  const bool runs = progress.status == StageStatus::kRunning;
  if (!runs || words.empty() || progress.stage == std::exchange(stage_, progress.stage)) return;
  print(words);
}

void JoinProgress::show_transfer(const event::Transfer& transfer) {
  const Download what = transfer.what;
  const auto found = transfers_.find(what);
  if (transfer.status != DownloadStatus::kRunning) {
    if (found == transfers_.end()) return;  // there was nothing to fetch
    print(transfer.status == DownloadStatus::kDone
              ? fmt::format("{} is here", name_of(what))
              : fmt::format("{} could not be fetched: {}", name_of(what), printable(transfer.text)));
    transfers_.erase(found);
    return;
  }
  if (transfer.total_bytes < kWorthALine) return;
  const auto total = static_cast<double>(transfer.total_bytes);
  const auto now = Clock::now();
  if (found == transfers_.end()) {
    transfers_[what] = now;
    return print(fmt::format("fetching {}, {}", name_of(what), format_bytes(total)));
  }
  if (now - found->second < kTransferEvery) return;
  found->second = now;
  std::string line =
      fmt::format("  {} of {}", format_bytes(static_cast<double>(transfer.done_bytes)), format_bytes(total));
  if (const double rate = transfer.bytes_per_second.value_or(0); rate > 0)
    line += fmt::format(", {}/s", format_bytes(rate));
  if (const double left = transfer.seconds_left.value_or(0); left > 0)
    line += fmt::format(", {} left", format_duration(left));
  print(line);
}

}  // namespace atl
