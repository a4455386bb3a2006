// Who trained how much, in the hub's store: counted with each commit and each that is undone, so that nobody who asks
// has all commits read.
#include "net/hub/hub_store.h"

namespace atl {

Status HubStore::count(const HubCommit& commit, int sign) {
  ATOLL_ASSIGN_OR_RETURN(Statement statement,
                         database_.prepare("INSERT INTO contribution VALUES (?1, ?2, ?3) ON CONFLICT (island) DO "
                                           "UPDATE SET rounds = rounds + ?2, tokens = tokens + ?3"));
  for (const AttemptMember& member : commit.members) {
    if (member.tokens == 0) continue;  // it received
    ATOLL_RETURN_IF_ERROR(statement.bind(member.id.value, sign, sign * static_cast<std::int64_t>(member.tokens)));
    ATOLL_RETURN_IF_ERROR(statement.run());
  }
  return ok_status();
}

Status HubStore::count_from(OuterStep round, int sign) {
  ATOLL_ASSIGN_OR_RETURN(Statement commits, database_.prepare("SELECT message FROM round_commit WHERE round >= ?"));
  ATOLL_RETURN_IF_ERROR(commits.bind(round.value));
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const bool row, commits.step());
    if (!row) return ok_status();
    const Result<HubMessage> message = decode_hub_message(commits.text(0));  // one of long ago may say less
    const auto* commit = message.ok() ? std::get_if<HubCommit>(&*message) : nullptr;
    if (commit != nullptr) ATOLL_RETURN_IF_ERROR(count(*commit, sign));
  }
}

Result<std::map<IslandId, std::uint32_t>> HubStore::accepted_rounds() {
  ATOLL_ASSIGN_OR_RETURN(Statement statement,
                         database_.prepare("SELECT island, rounds FROM contribution WHERE rounds > 0"));
  std::map<IslandId, std::uint32_t> rounds;
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const bool row, statement.step());
    if (!row) return rounds;
    rounds[IslandId{statement.text(0)}] = static_cast<std::uint32_t>(statement.integer(1));
  }
}

Status HubStore::save_credited(const IslandId& island, bool credited) {
  ATOLL_ASSIGN_OR_RETURN(Statement statement, database_.prepare(credited ? "INSERT OR IGNORE INTO credited VALUES (?)"
                                                                         : "DELETE FROM credited WHERE island = ?"));
  ATOLL_RETURN_IF_ERROR(statement.bind(island.value));
  return statement.run();
}

Result<std::vector<Contributor>> HubStore::contributors() {
  ATOLL_ASSIGN_OR_RETURN(
      Statement statement,
      database_.prepare("SELECT CASE WHEN credited.island IS NULL THEN '' ELSE display_name END, rounds, tokens FROM "
                        "contribution JOIN island ON id = contribution.island LEFT JOIN credited ON id = "
                        "credited.island WHERE tokens > 0 ORDER BY tokens DESC, id"));
  std::vector<Contributor> contributors;
  Contributor others;
  others.islands = 0;
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const bool row, statement.step());
    if (!row) break;
    Contributor one{statement.text(0), static_cast<std::uint64_t>(statement.integer(1)),
                    static_cast<std::uint64_t>(statement.integer(2))};
    if (!one.name.empty() && contributors.size() + 1 < kMaxContributors) {
      contributors.push_back(std::move(one));
      continue;
    }
    others.rounds += one.rounds;
    others.tokens += one.tokens;
    ++others.islands;
  }
  if (others.islands > 0) contributors.push_back(others);
  return contributors;
}

}  // namespace atl
