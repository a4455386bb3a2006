// A liar of a TimedMesh that draws what it does: for a while each of its answers is true, altered, late or missing, and
// beside them it says whatever the grammar allows, of the round and the attempt that are under way, and of members that
// there are. Then it draws anew. Two that plot may draw the same. One thread.
#pragma once

#include <array>
#include <optional>
#include <random>
#include <string>

#include "tests/net/mesh/named_attackers.h"

namespace atl {

class WildLiar final : public Liar {
 public:
  WildLiar(TimedMesh& mesh, IslandId id, SharedConspiracy plot, unsigned seed);

  void stop();  // lying: from now on it is as honest islands are
  Port port(bool for_hub) const override { return for_hub ? mood_.to_hub : mood_.to_peers; }
  RingConduct conduct(const HubAttempt& attempt) override;
  TimedValues gradient() const override;
  void ticks() override;

 protected:
  bool takes(const HubMessage& message) override;
  bool says(IslandMessage& message) override;
  Clock::duration inner_phase() override;
  void was_closed() override;
  IslandHello hello() override;

 private:
  enum class Way { kTruth, kNothing, kLate, kAltered };

  struct Mood {
    Port to_peers = Port::kOpen, to_hub = Port::kOpen;
    RingConduct conduct = RingConduct::kTakesPart;
    double draws_conduct = 0;                                    // so often, for each attempt
    std::array<Way, std::variant_size_v<IslandMessage>> ways{};  // by the message's index
    double truth = 0;                                            // so often none of that
    Clock::duration inner{};                                     // beyond the others'
    Clock::duration late{};
    double says_by_itself = 0;    // messages a second
    double says_of_attempts = 0;  // so often, when one begins
    bool same_report = false;     // each time
    IslandAttemptFailed report;
    double goes = 0;       // times a second
    bool returns = false;  // left out, it leaves and comes again
    double scale = 1;      // of its gradient, told
    bool rejoins_at_once = true;
    bool claims_truth = true;  // in its hello
  };

  void draw_mood();
  void report(const HubAttempt& attempt);
  bool is(double probability) { return std::uniform_real_distribution<double>(0, 1)(random_) < probability; }
  template <class Value>
  Value any(std::initializer_list<Value> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(random_() % values.size()));
  }
  double figure(double usual);
  std::uint64_t number(std::uint64_t usual);
  std::string hex();
  OuterStep round();
  Attempt attempt();
  IslandId member();
  IslandMessage draw();
  // Every alternative has one: what is new in the grammar does not compile until it is drawn, too.
  void draw(IslandHello&) {}
  void draw(IslandHeartbeat& message);
  void draw(IslandReady& message);
  void draw(IslandHave& message);
  void draw(IslandAttemptFailed& message);
  void draw(IslandApplied& message);
  void draw(IslandRecovered& message);
  void draw(IslandValidation& message);
  void draw(IslandLeaving& message);
  void draw(IslandLinkReport& message);
  void draw(IslandChunks& message);
  void draw(IslandDurable& message);
  void draw(IslandUploaded& message);
  void draw(IslandLeaseReturned& message);
  void draw(IslandEvaluation& message);

  std::mt19937 random_, moods_;
  bool stopped_ = false;
  Mood mood_;
  Clock::time_point mood_ends_{};
  Attempt heard_;
  std::optional<HubAttempt> newest_;
};

}  // namespace atl
