#include "trainer/island/lane_link.h"

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
