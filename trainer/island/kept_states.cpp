#include "trainer/island/kept_states.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "net/disk/checkpoint_directory.h"
#include "net/disk/outer_state_file.h"

namespace atl {
std::vector<KeptStates::Entry> KeptStates::entries() const {
  std::vector<Entry> found;
  const auto files = outer_state_files(directory_);
  if (!files.ok()) return found;
  for (const std::filesystem::path& file : *files) {
    Result<OuterStateInfo> info = peek_outer_state(file);
    if (!info.ok()) continue;
    HeldState state{info->outer_step, std::move(info->tree_hash)};
    const auto same = std::ranges::find(found, state, &Entry::state);  // under two names
    if (same == found.end()) {
      found.push_back({std::move(state), file});
    } else if (file.filename() == kOuterStateFile) {
      same->file = file;
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
  const auto file = directory_ / kOuterStateFile;
  const Result<OuterStateInfo> now = peek_outer_state(file);
  if (!now.ok() || now->outer_step == next || keep_ < 2) return;
  // A second name for the same file, so that at no moment there is none; a copy where files have one name only.
  const auto aside = directory_ / kept_state_name(now->outer_step);
  std::error_code failed;
  std::filesystem::remove(aside, failed);
  std::filesystem::create_hard_link(file, aside, failed);
  if (failed) std::filesystem::copy_file(file, aside, failed);
  if (failed) spdlog::warn("kept_state file={} error=\"{}\"", aside.string(), failed.message());
}

// The newest, the one before it, then those at validated rounds, then the others.
void KeptStates::prune() const {
  std::vector<Entry> all = entries();
  const auto newest = std::ranges::find(all, std::string(kOuterStateFile),
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
    if (entry.state == wanted) return read_outer_state(entry.file, static_cast<std::uint64_t>(numel));
  }
  return Error{ErrorCode::kNotFound, fmt::format("outer step {} is not on this disk", wanted.outer_step.value)};
}

}  // namespace atl
