#include "trainer/island/lane_link.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace atl {

void LaneLink::send(const IslandMessage& message) {
  if (std::holds_alternative<IslandReady>(message)) news_.inner_phase_done(Clock::now());
  around_.send(message);
}

std::variant<AllReduceReport, AllReduceFailure> LaneLink::all_reduce(const AllReduceSpec& spec,
                                                                     std::span<const float> input,
                                                                     std::span<std::byte> canonical,
                                                                     const AbortSignal& abort) {
  const auto began = Clock::now();
  AllReduceSpec limited = spec;
  limited.most_bytes_per_second = around_.upload_bytes_per_second;
  limited.on_progress = [&](const AllReduceProgress& progress) { news_.progress(spec, progress); };
  auto result = around_.ring.run(limited, input, canonical, abort);
  news_.attempt_done(spec, result, began, Clock::now());
  if (const auto* report = std::get_if<AllReduceReport>(&result)) bytes_sent_ += report->bytes_sent;
  return result;
}

// Training goes on: the others keep the round, too.
void LaneLink::tell_disk(OuterStep round, const Status& kept) {
  if (!kept.ok()) spdlog::error("average round={} error=\"{}\"", round.value, kept.error().message);
  around_.disk_trouble(kept.ok() ? ""
                                 : fmt::format("rounds are not kept: {}. Training goes on, but this island could not "
                                               "bring them back if all were lost at once",
                                               kept.error().message));
}

void LaneLink::keep_round(const HubCommit& commit, WireFormat wire, ByteView canonical, const std::string& from,
                          const HeldState& made) {
  tell_disk(commit.round, around_.disk.keep_round(commit, wire, canonical, from, made));
  if (around_.disk.keeps()) around_.send(IslandDurable{around_.disk.durable()});
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
