#include "net/transport/serving_turns.h"

#include <algorithm>
#include <map>

namespace atl {
namespace {

template <class Connections>
std::size_t count_of(const Connections& connections, const IslandId& member) {
  return static_cast<std::size_t>(
      std::ranges::count_if(connections, [&](const auto& connection) { return connection.member == member; }));
}

// The member that has most, of those in `connections`, which are not empty.
template <class Connections>
std::pair<IslandId, std::size_t> greediest(const Connections& connections) {
  std::map<IslandId, std::size_t> counts;
  for (const auto& connection : connections) ++counts[connection.member];
  return *std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
}

}  // namespace

ServingTurns::Change ServingTurns::ask(ConnectionId id, const IslandId& member, Clock::time_point now) {
  Change change;
  waiting_.push_back({id, member, now});
  settle(now, change);
  if (waiting_.empty() || waiting_.back().id != id) return change;
  if (count_of(waiting_, member) > sizes_.waiting_of_member) {
    change.end.push_back(id);
    waiting_.pop_back();
  } else if (waiting_.size() > sizes_.waiting) {
    refuse_one(change);
  }
  return change;
}

// The last that came, of the member with most.
void ServingTurns::refuse_one(Change& change) {
  const IslandId member = greediest(waiting_).first;
  const auto last = std::find_if(waiting_.rbegin(), waiting_.rend(), [&](const auto& w) { return w.member == member; });
  change.end.push_back(last->id);
  waiting_.erase(std::next(last).base());
}

ServingTurns::Change ServingTurns::ended(ConnectionId id, Clock::time_point now) {
  const auto is_it = [id](const auto& connection) { return connection.id == id; };
  std::erase_if(served_, is_it);
  std::erase_if(waiting_, is_it);
  return at(now);
}

ServingTurns::Change ServingTurns::at(Clock::time_point now) {
  Change change;
  settle(now, change);
  return change;
}

void ServingTurns::set_idle(ConnectionId id, Clock::time_point since) {
  for (Served& served : served_) {
    if (served.id == id) served.idle_since = since;
  }
}

void ServingTurns::set_busy(ConnectionId id) {
  for (Served& served : served_) {
    if (served.id == id) served.idle_since.reset();
  }
}

std::size_t ServingTurns::places_of(const IslandId& member) const { return count_of(served_, member); }

ServingTurns::Place ServingTurns::idle_place(Clock::time_point now, const IslandId* of) {
  Place longest = served_.end();
  for (Place place = served_.begin(); place != served_.end(); ++place) {
    if (of != nullptr && place->member != *of) continue;
    if (!place->idle_since || now - *place->idle_since < sizes_.idle_grace) continue;
    if (longest == served_.end() || *place->idle_since < *longest->idle_since) longest = place;
  }
  return longest;
}

// The newest place, in which least was done, of the member with most; only where taking it makes the two more equal.
ServingTurns::Place ServingTurns::unfair_place(const Waiting& waiting, Clock::time_point now) {
  if (served_.empty() || now - waiting.since < sizes_.fair_after) return served_.end();
  const auto [member, places] = greediest(served_);
  if (places < places_of(waiting.member) + 2) return served_.end();
  const auto is_its = [&m = member](const Served& served) { return served.member == m; };
  return std::prev(std::find_if(served_.rbegin(), served_.rend(), is_its).base());
}

bool ServingTurns::make_place(const Waiting& waiting, Clock::time_point now, Change& change) {
  const bool has_its_share = places_of(waiting.member) >= sizes_.places_of_member;
  if (!has_its_share && served_.size() < sizes_.places) return true;
  Place given_up = idle_place(now, has_its_share ? &waiting.member : nullptr);
  if (given_up == served_.end() && !has_its_share) given_up = unfair_place(waiting, now);
  if (given_up == served_.end()) return false;
  change.end.push_back(given_up->id);
  served_.erase(given_up);
  return true;
}

void ServingTurns::settle(Clock::time_point now, Change& change) {
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    if (now - waiting->since >= sizes_.patience) {
      change.end.push_back(waiting->id);
    } else if (make_place(*waiting, now, change)) {
      change.begin.push_back(waiting->id);
      served_.push_back({waiting->id, waiting->member});
    } else {
      ++waiting;
      continue;
    }
    waiting = waiting_.erase(waiting);
  }
}

}  // namespace atl
