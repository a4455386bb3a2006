#include "tests/net/mesh/random_attack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace atl {
namespace {

using namespace std::chrono_literals;

// The hub may learn in the first; after the liars have stopped everybody is to be back in the last.
constexpr Clock::duration kWarmUp = 20min, kMeasured = 30min, kAfterwards = 4min;
constexpr std::size_t kRoundsAfterwards = 5;
// The others have begun: of the first round's trainers most are honest.
constexpr Clock::duration kLiarsComeAfter = 2s;

TimedMesh made(int islands, int liars, unsigned seed) {
  RunConfig run;
  run.run_id = "0123456789abcdef";
  run.model_json = "{}";
  run.dataset_json = "{}";
  run.inner_steps = 4;
  run.sequences_per_step = 2;
  run.sequence_length = 8;
  run.min_islands = static_cast<std::uint32_t>(islands - liars);
  return TimedMesh(run, TimedTimes{.tick = 500ms}, seed);
}

IslandId id_of(int number) { return IslandId{fmt::format("isl-{:02}", number)}; }

}  // namespace

std::size_t RandomAttack::honest_rounds() const {
  TimedMesh mesh = made(islands, liars, 1);
  for (int i = 0; i < islands; ++i) mesh.add<TimedIsland>(id_of(i).value);
  mesh.pass(kWarmUp);
  const std::size_t before = mesh.commits().size();
  mesh.pass(kMeasured);
  return mesh.commits().size() - before;
}

RandomAttack::Outcome RandomAttack::run(unsigned seed, std::size_t honest_rounds, bool tells) const {
  TimedMesh mesh = made(islands, liars, seed);
  const auto began = mesh.now();
  if (tells) {
    mesh.tell = [&](const std::string& text) {
      std::printf("%9.3f %s\n", Seconds(mesh.now() - began).count(), text.c_str());
    };
  }
  std::mt19937 random(seed);
  auto plot = std::make_shared<Conspiracy>();
  std::vector<int> places;
  for (int i = 0; i < islands; ++i) places.push_back(i);
  std::shuffle(places.begin(), places.end(), random);
  for (int i = 0; i < liars; ++i) plot->liars.push_back(id_of(places[static_cast<std::size_t>(i)]));
  plot->victim = id_of(places.back());
  std::vector<IslandId> honest;
  std::vector<WildLiar*> wild;
  for (int i = 0; i < islands; ++i) {
    const IslandId id = id_of(i);
    if (std::ranges::find(plot->liars, id) != plot->liars.end()) {
      mesh.after(kLiarsComeAfter, [&, id, seed] { wild.push_back(&mesh.add<WildLiar>(id.value, plot, seed)); });
    } else {
      honest.push_back(id);
      mesh.add<TimedIsland>(id.value);
    }
  }

  mesh.pass(kWarmUp);
  const auto from = static_cast<std::ptrdiff_t>(mesh.commits().size());
  mesh.pass(kMeasured);
  const auto to = static_cast<std::ptrdiff_t>(mesh.commits().size());
  if (tells) std::printf("the liars stop\n");
  for (WildLiar* liar : wild) liar->stop();
  mesh.pass(kAfterwards);

  Outcome outcome;
  outcome.ratio = static_cast<double>(to - from) / static_cast<double>(honest_rounds);
  if (!mesh.violation().empty()) {
    outcome.failure = fmt::format("safety: {}", mesh.violation());
    return outcome;
  }
  const std::size_t rounds = mesh.commits().size() - static_cast<std::size_t>(to);
  if (rounds < kRoundsAfterwards) {
    const auto& stop = mesh.hub().standstill();
    outcome.failure =
        fmt::format("liveness: {} rounds after the liars stopped{}", rounds, stop ? ", standstill: " + stop->text : "");
    return outcome;
  }
  for (const IslandId& id : honest) {
    // Of three the ends of an edge that rests go by turns.
    const auto since = mesh.commits().end() - (islands < 4 ? static_cast<std::ptrdiff_t>(rounds) : 1);
    const auto takes_part = [&](const TimedMesh::Commit& commit) { return commit.trainers.contains(id); };
    if (std::none_of(since, mesh.commits().end(), takes_part)) {
      outcome.failure = "liveness: " + id.value + " is not back after the liars stopped";
      return outcome;
    }
  }
  // Of one round less than there are, for the window's ends.
  if (static_cast<double>(to - from) + 1 < least_share() * static_cast<double>(honest_rounds)) {
    outcome.failure = fmt::format("budget: {} rounds of {}, {:.3f} for {:.3f}", to - from, honest_rounds, outcome.ratio,
                                  least_share());
    return outcome;
  }
  for (const IslandId& id : honest) {
    const auto takes_part = [&](const TimedMesh::Commit& commit) { return commit.trainers.contains(id); };
    const auto part = std::count_if(mesh.commits().begin() + from, mesh.commits().begin() + to, takes_part);
    if (static_cast<double>(part) + 1 < least_part() * static_cast<double>(to - from)) {
      outcome.failure = fmt::format("part: {} trained in {} of {} rounds", id.value, part, to - from);
      return outcome;
    }
  }
  return outcome;
}

}  // namespace atl
