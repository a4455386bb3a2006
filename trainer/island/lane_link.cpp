#include "trainer/island/lane_link.h"

#include <algorithm>

namespace atl {
namespace {

// The ring was as fast as the slowest link, and the disk wrote meanwhile: one that needs longer is stuck.
constexpr std::chrono::seconds kPatienceWithDisk{5};

// What the upload carried: in a ring that of the link to the next rank, directly that of all links together.
double seen_of_link(Schedule schedule, const AllReduceReport& report) {
  if (schedule == Schedule::kRing) return std::max(report.link_bytes_per_second, report.bytes_per_second);
  const Seconds moving = report.duration - report.phases.connect;
  return static_cast<double>(report.bytes_sent) / std::max(moving.count(), 1e-6);
}

}  // namespace

void LaneLink::send(const IslandMessage& message) {
  if (std::holds_alternative<IslandReady>(message)) news_.inner_phase_done(Clock::now());
  around_.send(message);
}

bool LaneLink::gave_to(const HubCommit& commit) {
  const auto own = std::ranges::find(commit.members, around_.self, &AttemptMember::id);
  return own != commit.members.end() && own->tokens > 0;
}

std::variant<AllReduceReport, AllReduceFailure> LaneLink::all_reduce(const AllReduceSpec& spec,
                                                                     std::span<const float> input,
                                                                     const SharedBytes& canonical,
                                                                     const AbortSignal& abort) {
  const auto began = Clock::now();
  AllReduceSpec limited = spec;
  limited.most_bytes_per_second = [this] { return around_.serving_pace.left_to_ring(); };
  limited.download = &around_.download;
  limited.on_progress = [&](const AllReduceProgress& progress) { news_.progress(spec, progress); };
  average_ = around_.keeper.begin(fragment_, spec.round, spec.wire, canonical);
  if (average_) limited.on_final = [this](std::size_t at, std::size_t count) { average_->final_bytes(at, count); };
  const ServingPace::Attempt attempt(around_.serving_pace);
  const DownloadPace::Attempt receives(around_.download);
  auto result = around_.ring.run(limited, input, *canonical, abort);
  news_.attempt_done(spec, result, began, Clock::now());
  if (const auto* report = std::get_if<AllReduceReport>(&result)) {
    bytes_sent_ += report->bytes_sent;
    around_.serving_pace.saw_link(seen_of_link(spec.schedule, *report));
  } else {
    average_.reset();
  }
  return result;
}

void LaneLink::keep_average(OuterStep, WireFormat, const std::string& digest, const SharedBytes&) {
  around_.keeper.finish(std::move(average_), digest, kPatienceWithDisk);
}

// The process before this one may have written it, or this one, just now.
Result<KeptAverage> LaneLink::kept_average(OuterStep round, const std::string& digest) {
  (void)around_.keeper.await_idle(Deadline::after(kPatienceWithDisk));
  return around_.disk.kept_average(fragment_, round, digest);
}

void LaneLink::round_begins(IslandState state) {
  state.bytes_sent = bytes_sent_;
  tokens_ = state.tokens;
  inner_seconds_ = state.inner_seconds;
  news_.round_begins(state);
}

void LaneLink::inner_phase_ends(const IslandState& state) {
  tokens_ = state.tokens;
  inner_seconds_ = state.inner_seconds;
}

void LaneLink::round_done(IslandState state) {
  state.bytes_sent = bytes_sent_;
  state.tokens = tokens_;
  state.inner_seconds = inner_seconds_;
  news_.round_done(Clock::now(), state);
}

}  // namespace atl
