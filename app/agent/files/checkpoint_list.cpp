#include "app/agent/files/checkpoint_list.h"

#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/disk/checkpoint_directory.h"
#include "net/disk/kept_states.h"
#include "net/disk/round_log.h"
#include "net/disk/snapshot.h"

namespace atl {
namespace {

// Of what lies there, before it was read.
Result<CheckpointFacts> facts_of(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return errno_error("examine", path);
  CheckpointFacts facts{.path = path, .state_hash = {}, .whole = {}};
  facts.bytes = snapshot_bytes(path);
  facts.saved_at = static_cast<double>(info.st_mtime);
  return facts;
}

// What it says of itself, where it can be believed to be one; whole = false where not.
Status take_info(const Result<SnapshotInfo>& info, CheckpointFacts& facts) {
  if (!info.ok() && info.error().code != ErrorCode::kCorrupt) return info.error();
  if (!info.ok()) {
    facts.whole = false;
    return ok_status();
  }
  facts.outer_step = info->state.outer_step.value;
  facts.parameters = info->numel;
  facts.saved_at = static_cast<double>(info->saved_at);
  facts.state_hash = info->state.state_hash;
  return ok_status();
}

// Whether the rounds are there that it needs.
bool leads_somewhere(const SnapshotInfo& info, const std::filesystem::path& checkpoint_directory) {
  const OuterStep oldest = info.oldest_chunk();
  return oldest == info.state.outer_step || rounds_lead(oldest, info.state, RoundLog(checkpoint_directory).rounds());
}

}  // namespace

Result<std::vector<CheckpointFacts>> list_checkpoints(const IslandHome& home) {
  std::vector<CheckpointFacts> found;
  ATOLL_ASSIGN_OR_RETURN(const auto files, outer_state_files(home.checkpoint()));
  for (const std::filesystem::path& file : files) {
    Result<CheckpointFacts> facts = facts_of(file);
    const Status read = facts.ok() ? take_info(peek_snapshot(file), *facts) : Status(facts.error());
    if (!read.ok() && read.error().code == ErrorCode::kNotFound) continue;  // replaced or removed meanwhile
    if (!read.ok()) return read.error();
    found.push_back(std::move(*facts));
  }
  std::ranges::sort(found, [](const CheckpointFacts& a, const CheckpointFacts& b) {
    return a.outer_step != b.outer_step ? a.outer_step > b.outer_step : a.path < b.path;
  });
  return found;
}

Result<CheckpointFacts> verify_checkpoint(const std::filesystem::path& file) {
  ATOLL_ASSIGN_OR_RETURN(CheckpointFacts facts, facts_of(file));
  ATOLL_RETURN_IF_ERROR(take_info(peek_snapshot(file), facts));
  if (facts.whole) return facts;
  const auto verified = verify_snapshot(file);
  if (!verified.ok() && verified.error().code != ErrorCode::kCorrupt) return verified.error();
  facts.whole = verified.ok() && leads_somewhere(*verified, file.parent_path());
  return facts;
}

std::vector<LoggedRoundFacts> list_logged_rounds(const IslandHome& home) {
  const RoundLog log(home.checkpoint());
  std::vector<LoggedRoundFacts> found;
  for (const auto& [number, round] : log.rounds()) {
    found.push_back({log.average_file(number), number.value, round.average_bytes, round.made, {}});
  }
  std::ranges::reverse(found);
  return found;
}

Result<LoggedRoundFacts> verify_logged_round(LoggedRoundFacts round) {
  const auto verified = verify_average(round.path);
  if (!verified.ok() && verified.error().code != ErrorCode::kCorrupt) return verified.error();
  round.whole = verified.ok();
  return round;
}

namespace {

template <class Facts, class Verify>
Status verify_each(std::vector<Facts>& list, const Verify& verify) {
  std::vector<Facts> verified;
  for (const Facts& facts : list) {
    Result<Facts> found = verify(facts);
    const bool whole = found.ok() && found->whole != false;
    std::error_code ignored;
    if (!whole && !std::filesystem::exists(facts.path, ignored)) continue;
    if (!found.ok()) return found.error();
    verified.push_back(std::move(*found));
  }
  list = std::move(verified);
  return ok_status();
}

}  // namespace

Status verify_all(std::vector<CheckpointFacts>& checkpoints, std::vector<LoggedRoundFacts>& rounds) {
  ATOLL_RETURN_IF_ERROR(verify_each(rounds, verify_logged_round));
  return verify_each(checkpoints, [](const CheckpointFacts& facts) { return verify_checkpoint(facts.path); });
}

nlohmann::json checkpoints_json(const std::vector<CheckpointFacts>& checkpoints,
                                const std::vector<LoggedRoundFacts>& rounds) {
  nlohmann::json list = nlohmann::json::array();
  for (const CheckpointFacts& facts : checkpoints) {
    list.push_back({{"path", facts.path.string()},
                    {"outer_step", facts.outer_step},
                    {"parameters", facts.parameters},
                    {"bytes", facts.bytes},
                    {"saved_at", facts.saved_at},
                    {"state_hash", facts.state_hash},
                    {"whole", facts.whole ? nlohmann::json(*facts.whole) : nlohmann::json()}});
  }
  nlohmann::json logged = nlohmann::json::array();
  for (const LoggedRoundFacts& facts : rounds) {
    logged.push_back({{"path", facts.path.string()},
                      {"round", facts.round},
                      {"bytes", facts.bytes},
                      {"state_hash", facts.state_hash},
                      {"whole", facts.whole ? nlohmann::json(*facts.whole) : nlohmann::json()}});
  }
  return {{"checkpoints", std::move(list)}, {"rounds", std::move(logged)}};
}

}  // namespace atl
