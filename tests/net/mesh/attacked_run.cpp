#include "tests/net/mesh/attacked_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace atl {
namespace {

// The others have begun: of the first round's trainers most are honest.
constexpr std::chrono::seconds kLiarsCome{2};

RunConfig run_of(const AttackedRun& attack) {
  RunConfig run;
  run.run_id = "0123456789abcdef";
  run.model_json = "{}";
  run.dataset_json = "{}";
  run.inner_steps = 4;
  run.sequences_per_step = 2;
  run.sequence_length = 8;
  run.min_islands = static_cast<std::uint32_t>(attack.islands - attack.liars);
  run.straggler_grace = attack.grace;
  return run;
}

}  // namespace

AttackedRun::Outcome AttackedRun::run(const NamedAttacker* attacker) const {
  TimedTimes times;
  times.inner = inner;
  times.fetch = inner / 5;
  times.ring = ring;
  // Over links as fast as probes find them.
  times.numel = std::max(times.numel, static_cast<std::int64_t>(Seconds(ring).count() * 25e6) - 12'500'000);
  TimedMesh mesh(run_of(*this), times, seed);
  const char* log = std::getenv("ATOLL_ATTACKER_LOG");
  const auto began = mesh.now();
  if (log != nullptr && attacker != nullptr) {
    mesh.tell = [&](const std::string& text) {
      std::printf("%9.3f %s\n", Seconds(mesh.now() - began).count(), text.c_str());
    };
  }
  auto plot = std::make_shared<Conspiracy>();
  std::vector<IslandId> honest;
  for (int i = 0; i < islands; ++i) {
    const bool lies = attacker != nullptr && (liars_come_first ? i < liars : i >= islands - liars);
    const IslandId id{fmt::format("isl-{:02}", i)};
    (lies ? plot->liars : honest).push_back(id);
  }
  plot->victim = honest[honest.size() / 2];
  for (int i = 0; i < islands; ++i) {
    const IslandId id{fmt::format("isl-{:02}", i)};
    if (std::ranges::find(plot->liars, id) != plot->liars.end()) {
      mesh.after(kLiarsCome, [&mesh, attacker, id, plot] { attacker->add(mesh, id.value, plot); });
    } else {
      mesh.add<TimedIsland>(id.value);
    }
  }
  const auto round = times.inner + times.ring;
  if (attacker == nullptr || attacker->warms_up) {
    const auto at_least = attacker != nullptr ? attacker->warm_up : NamedAttacker{}.warm_up;
    mesh.pass(std::max<Clock::duration>(at_least, warm_up_rounds * round));
  }
  const std::size_t before = mesh.commits().size();
  const Clock::duration least = attacker == nullptr ? Clock::duration() : attacker->warm_up;
  const auto lasts = std::max<Clock::duration>({measured_at_least, measured_rounds * round, least});
  mesh.left_out.clear();
  mesh.pass(lasts);

  Outcome outcome;
  outcome.rounds = mesh.commits().size() - before;
  outcome.rate = static_cast<double>(outcome.rounds) / Seconds(lasts).count();
  for (const IslandId& id : honest) {
    const auto takes_part = [&](const TimedMesh::Commit& commit) { return commit.trainers.contains(id); };
    const auto of =
        std::count_if(mesh.commits().begin() + static_cast<std::ptrdiff_t>(before), mesh.commits().end(), takes_part);
    const double part = outcome.rounds > 0 ? static_cast<double>(of) / static_cast<double>(outcome.rounds) : 0;
    outcome.least_part = std::min(outcome.least_part, part);
  }
  outcome.loss = mesh.model(mesh.hub().committed()).loss();
  outcome.violation = mesh.violation();
  const auto kind = [&](const IslandId& id) {
    return std::ranges::find(plot->liars, id) != plot->liars.end() ? "liar" : "HONEST";
  };
  for (const auto& [id, count] : mesh.sent_away)
    outcome.told += fmt::format(" away {}x{} {}", id.value, count, kind(id));
  for (const auto& [id, count] : mesh.left_out) outcome.told += fmt::format(" out {}x{} {}", id.value, count, kind(id));
  if (mesh.hub().standstill()) outcome.told += " standstill: " + mesh.hub().standstill()->text.substr(0, 60);
  return outcome;
}

double AttackedRun::left(const Outcome& attacked, const Outcome& honest) const {
  if (!attacked.violation.empty() || attacked.loss > most_loss(honest)) return -1;
  return std::min(attacked.rate / honest.rate - least_share(), attacked.least_part - least_part());
}

double AttackedRun::most_loss(const Outcome& honest) const {
  const double begins = TimedModel::initial().loss();
  return begins - 0.8 * least_share() * (begins - honest.loss);
}

}  // namespace atl
