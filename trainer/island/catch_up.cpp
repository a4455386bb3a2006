#include "trainer/island/catch_up.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "net/recovery/base_model_fetch.h"

namespace atl {
namespace {

constexpr std::size_t kMostNamed = 8;  // wrong chunks, to a person
constexpr std::chrono::milliseconds kFirstPause{500}, kLongestPause{15'000}, kLookAround{100};

}  // namespace

CatchUp::CatchUp(Surroundings around, FetchModel model)
    : around_(std::move(around)),
      model_(std::move(model)),
      news_(Download::kState, around_.on_event),
      hub_pause_(kFirstPause, kLongestPause) {}

CatchUp::~CatchUp() = default;

// What the disk has of a fetch before goes over what this island holds: it is newer, or is not looked at.
Status CatchUp::begin() {
  if (around_.disk.keeps()) {
    incoming_ = std::make_unique<IncomingState>(around_.disk.incoming(), model_.numel, around_.disk_trouble);
  }
  ATOLL_ASSIGN_OR_RETURN(StateFetch fetch, StateFetch::create(around_.self, model_,
                                                              [this](std::uint64_t chunk) {
                                                                if (incoming_) incoming_->put(chunk, fetch_->state());
                                                              },
                                                              {.download = &around_.download}));
  fetch_.emplace(std::move(fetch));
  if (around_.disk.keeps()) {
    rounds_ = std::make_unique<FetchedRounds>(around_.disk.log(), model_.numel,
                                              static_cast<std::uint32_t>(model_.fragments.size()));
    fetch_->plan().tell_rounds_to(rounds_.get());
  }
  if (const auto held = around_.own.held(); held.ok()) fetch_->state().copy_from(around_.own, held->outer_step);
  if (incoming_) incoming_->read_into(fetch_->state());
  return ok_status();
}

Result<FetchedState> CatchUp::fetch(const HeldState& target, const std::vector<StateSourceAddress>& sources,
                                    const AbortSignal& abort, const std::function<bool()>& superseded) {
  if (!fetch_) ATOLL_RETURN_IF_ERROR(begin());
  pace_.target_is(target.outer_step, fetch_->counts().useful(), Clock::now());
  const auto slow = pace_.never_ends(round_bytes());
  around_.trouble(slow ? text_of(*slow) : "");
  if (slow) spdlog::warn("recovery outer_step={} trouble=\"{}\"", target.outer_step.value, text_of(*slow));
  const Status done = fetch_->run(
      target, sources, abort, [&](std::uint64_t came, std::uint64_t all) { news_.progress(came, all, Clock::now()); },
      superseded);
  return end(target, done, abort);
}

Result<FetchedState> CatchUp::fetch_from_store(const HeldState& target, const AbortSignal& abort,
                                               const std::function<bool()>& superseded) {
  if (!fetch_) ATOLL_RETURN_IF_ERROR(begin());
  spdlog::info("recovery outer_step={} store=\"{}\"", target.outer_step.value, around_.store.upload_store);
  const auto progress = [&](std::uint64_t came, std::uint64_t all) { news_.progress(came, all, Clock::now()); };
  return end(target, atl::fetch_from_store(around_.store, target, fetch_->plan(), abort, progress, superseded), abort);
}

Result<FetchedState> CatchUp::fetch_from_hub(const HeldState& target, const AbortSignal& abort,
                                             const std::function<bool()>& superseded) {
  if (!fetch_) ATOLL_RETURN_IF_ERROR(begin());
  spdlog::info("recovery outer_step={} from=hub", target.outer_step.value);
  while (Clock::now() < ask_hub_from_ && !abort.raised() && !superseded()) {
    pollfd wake{abort.fd(), POLLIN, 0};
    (void)::poll(&wake, 1, static_cast<int>(kLookAround.count()));
  }
  const auto progress = [&](std::uint64_t came, std::uint64_t all) { news_.progress(came, all, Clock::now()); };
  const Status done = fetch_base_model(around_.self, around_.hub, target, fetch_->plan(), abort, progress, superseded,
                                       &around_.download);
  if (!done.ok()) ask_hub_from_ = Clock::now() + hub_pause_.next();
  return end(target, done, abort);
}

Result<FetchedState> CatchUp::end(const HeldState& target, const Status& done, const AbortSignal& abort) {
  wrong_.insert(fetch_->plan().wrong().begin(), fetch_->plan().wrong().end());
  if (done.ok()) return take(target);
  // That the others have gone on to a newer one is no trouble: the hub names it next.
  if (done.error().code == ErrorCode::kNotFound || abort.raised()) return done.error();
  news_.failed(done.error().message);
  around_.trouble(done.error().message + "; trying again");
  return done.error();
}

FetchedState CatchUp::take(const HeldState& target) {
  const FetchCounts& counts = fetch_->counts();
  spdlog::info("recovery outer_step={} chunk_bytes={} average_bytes={} lost_bytes={}", target.outer_step.value,
               counts.chunk_bytes, counts.average_bytes, counts.lost_bytes);
  const std::string wrong = wrong_chunks();
  if (!wrong.empty()) spdlog::warn("recovery outer_step={} wrong_chunks=\"{}\"", target.outer_step.value, wrong);
  if (incoming_) {
    const auto kept = std::move(*incoming_).finish(fetch_->state(), target, around_.disk.place_of(target.outer_step));
    if (!kept.ok()) spdlog::warn("recovery outer_step={} error=\"{}\"", target.outer_step.value, kept.error().message);
    if (kept.ok() && *kept) around_.disk.incoming_is_kept();
    incoming_.reset();
  }
  FetchedState state = fetch_->state().release(target.outer_step);
  fetch_.reset();
  if (rounds_) around_.keep_rounds(std::move(rounds_));
  news_.done(wrong);
  around_.trouble("");
  return state;
}

// Many are no flipped bits, but a state of another history: that it was left behind says all.
std::string CatchUp::wrong_chunks() const {
  if (wrong_.empty() || wrong_.size() > kMostNamed) return {};
  std::string text;
  for (const std::uint64_t chunk : wrong_) {
    const std::uint64_t end = std::min((chunk + 1) * kStateChunkNumel, model_.numel);
    text += fmt::format("{}chunk {} (parameters {} to {})", text.empty() ? "" : ", ", chunk, chunk * kStateChunkNumel,
                        end - 1);
  }
  return text + " differed from the others' and came anew; where this happens again, check the memory";
}

std::uint64_t CatchUp::round_bytes() const {
  std::int64_t largest = 0;
  for (const Fragment& fragment : model_.fragments) largest = std::max(largest, fragment.numel);
  return static_cast<std::uint64_t>(encoded_bytes(model_.wire, largest));
}

}  // namespace atl
