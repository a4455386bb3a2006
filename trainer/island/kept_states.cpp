#include "trainer/island/kept_states.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "trainer/island/checkpoint.h"

namespace atl {
namespace {

constexpr std::string_view kPrefix = "outer.", kSuffix = ".state";

bool is_kept_name(const std::string& name) {
  return name == kStateFile || (name.starts_with(kPrefix) && name.ends_with(kSuffix));
}

}  // namespace

std::vector<KeptStates::Entry> KeptStates::entries() const {
  std::vector<Entry> found;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, failed)) {
    if (!entry.is_regular_file(failed) || !is_kept_name(entry.path().filename().string())) continue;
    Result<HeldState> state = OuterStateStore::peek(entry.path());
    if (!state.ok()) continue;
    const auto same = std::ranges::find(found, *state, &Entry::state);  // under two names
    if (same == found.end()) {
      found.push_back({std::move(*state), entry.path()});
    } else if (entry.path().filename() == kStateFile) {
      same->file = entry.path();
    }
  }
  std::ranges::sort(found, std::greater{}, [](const Entry& entry) { return entry.state.outer_step; });
  return found;
}

std::vector<HeldState> KeptStates::list() const {
  std::vector<HeldState> states;
  for (Entry& entry : entries()) {
    if (states.size() < kMaxHeldStates) states.push_back(std::move(entry.state));
  }
  return states;
}

void KeptStates::make_room(OuterStep next) const {
  const auto file = directory_ / kStateFile;
  const Result<HeldState> now = OuterStateStore::peek(file);
  if (!now.ok() || now->outer_step == next || keep_ < 2) return;
  // A second name for the same file, so that at no moment there is none; a copy where files have one name only.
  const auto aside = directory_ / fmt::format("outer.{}.state", now->outer_step.value);
  std::error_code failed;
  std::filesystem::remove(aside, failed);
  std::filesystem::create_hard_link(file, aside, failed);
  if (failed) std::filesystem::copy_file(file, aside, failed);
  if (failed) spdlog::warn("kept_state file={} error=\"{}\"", aside.string(), failed.message());
}

// The newest, the one before it, then those at validated rounds, then the others.
void KeptStates::prune() const {
  std::vector<Entry> all = entries();
  const auto newest = std::ranges::find(all, std::string(kStateFile),
                                        [](const Entry& entry) { return entry.file.filename().string(); });
  if (newest == all.end()) return;
  const HeldState now = newest->state;
  const auto comes_before = [&](const Entry& entry) { return entry.state.outer_step < now.outer_step; };
  const auto one_before = std::ranges::find_if(all, comes_before);
  const auto last = one_before == all.end() ? now : one_before->state;
  const auto rank = [&](const Entry& entry) {
    if (entry.state == now) return 0;
    if (!comes_before(entry)) return 4;
    if (entry.state == last) return 1;
    return anchor_every_ > 0 && entry.state.outer_step.value % anchor_every_ == 0 ? 2 : 3;
  };
  std::ranges::stable_sort(all, {}, rank);
  for (std::size_t i = keep_; i < all.size(); ++i) {
    std::error_code failed;
    std::filesystem::remove(all[i].file, failed);
    if (failed) spdlog::warn("kept_state file={} error=\"{}\"", all[i].file.string(), failed.message());
  }
}

Result<FetchedState> KeptStates::load(const HeldState& wanted, std::int64_t numel) const {
  for (const Entry& entry : entries()) {
    if (entry.state == wanted) return OuterStateStore::read(entry.file, numel);
  }
  return Error{ErrorCode::kNotFound, fmt::format("outer step {} is not on this disk", wanted.outer_step.value)};
}

}  // namespace atl
