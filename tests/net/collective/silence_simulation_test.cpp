// Thousands of minutes of edges that are slow, lossy or jittery, and live. A death is early when the edge is given up
// and something comes before the silence timeout, which would have let it live. It is wrong when from the first to the
// last moment of the silence in which something was lost, or the peer's process stood still, less than a sixth of the
// timeout passed: the rest was but the kernel's back-off and the link's delay.
#include <QtTest>
#include <optional>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "net/collective/edge_monitor.h"
#include "net/collective/silence_limit.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

using Random = std::mt19937_64;

const Clock::time_point kStart = Clock::time_point(100h);
constexpr std::chrono::milliseconds kTimeout{6'000};
constexpr double kTimeoutSeconds = 6;
constexpr double kStep = 0.01, kLookEvery = 0.05;  // s
constexpr double kMessageBytes = 1'500;
constexpr double kQueueSeconds = 0.2;  // of the link's full rate

double uniform(Random& random, double from, double to) { return std::uniform_real_distribution(from, to)(random); }
double about(Random& random, double mean) { return std::exponential_distribution(1 / mean)(random); }
double one_of(Random& random, std::initializer_list<double> values) {
  return values.begin()[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
}

// What comes and goes: breaks of a link, stalls of a process, falls of a rate.
class Spells {
 public:
  Spells(Random& random, double every, double shortest, double longest)
      : random_(random), every_(every), shortest_(shortest), longest_(longest) {
    next_ = about(random_, every_);
  }
  bool at(double t) {
    if (t >= next_) {
      ends_ = t + uniform(random_, shortest_, longest_);
      next_ = ends_ + about(random_, every_);
    }
    return t < ends_;
  }

 private:
  Random& random_;
  double every_, shortest_, longest_, next_ = 0, ends_ = 0;
};

struct Weather {
  double longest_break = 0, longest_stall = 0;  // s
};

// The kernel's of one connection. What is lost alone is sent again after `rto`, and then after twice as long each time;
// what is lost among others, as soon as those that came behind it are acknowledged.
struct Connection {
  bool lost = false;
  double retry_at = 0, rto = 0;
  std::uint64_t behind = 0;  // what the link has to carry before
};

class Sender {
 public:
  Sender(Random& random, const Weather& weather)
      : random_(random),
        rtt_(one_of(random, {0.001, 0.03, 0.1, 0.3, 0.6})),
        jitter_(one_of(random, {0.0001, 0.01, 0.1})),
        loss_(one_of(random, {0, 0.001, 0.01, 0.05})),
        messages_per_second_(one_of(random, {1.25e5, 1.25e6, 1.25e7}) / kMessageBytes),
        connections_(static_cast<std::size_t>(one_of(random, {1, 2, 8}))),
        breaks_(random, 15, 0.02, weather.longest_break),
        stalls_(random, 60, 0.02, weather.longest_stall),
        dips_(random, 120, 20, 20),
        pauses_(random, 10, 0, 20) {}

  double rtt() const { return rtt_; }
  double reach() const { return rtt_ + 5 * jitter_; }
  bool in_trouble() const { return in_trouble_; }  // at the last step
  // True: something arrives.
  bool step(double t) {
    const bool breaks = breaks_.at(t), stalls = stalls_.at(t), busy = !pauses_.at(t);
    in_trouble_ = breaks || stalls;
    for (Connection& connection : connections_) {
      const bool says = !stalls && (busy || t - last_spoke_ >= kKeepalive);
      const bool retries = t >= connection.retry_at && carried_ >= connection.behind;
      if (connection.lost ? retries : says) send(connection, t, breaks, busy);
    }
    return carry(t, dips_.at(t) ? 0.01 : 1);
  }

 private:
  static constexpr double kKeepalive = kTimeoutSeconds / SilenceLimit::kLongestLook;

  void send(Connection& connection, double t, bool breaks, bool busy) {
    const bool again = std::exchange(connection.lost, true);
    if (!again) last_spoke_ = t;
    const bool lost = uniform(random_, 0, 1) < loss_;
    in_trouble_ = in_trouble_ || lost;
    if (breaks || (lost && !busy)) {
      const double first = std::max(0.2 + rtt_, 1.5 * rtt_ + 4 * jitter_);
      connection.rto = again && connection.rto > 0 ? 2 * connection.rto : first;
      connection.retry_at = t + connection.rto;
    } else if (lost || queued_ >= std::max(1.0, kQueueSeconds * messages_per_second_)) {
      connection = {.lost = true, .retry_at = t + rtt_, .rto = 0, .behind = carried_ + queued_};
    } else {
      connection.lost = false;
      ++queued_;
    }
  }
  bool carry(double t, double part) {
    budget_ += kStep * messages_per_second_ * part;
    if (queued_ == 0) budget_ = std::min(budget_, 1.0);
    for (; queued_ > 0 && budget_ >= 1; budget_ -= 1, --queued_, ++carried_) {
      under_way_.push(t + rtt_ / 2 + about(random_, jitter_));
    }
    bool arrived = false;
    for (; !under_way_.empty() && under_way_.top() <= t; under_way_.pop()) arrived = true;
    return arrived;
  }

  Random& random_;
  const double rtt_, jitter_, loss_, messages_per_second_;
  std::vector<Connection> connections_;
  Spells breaks_, stalls_, dips_, pauses_;
  bool in_trouble_ = false;
  double budget_ = 0, last_spoke_ = 0;
  std::uint64_t queued_ = 0, carried_ = 0;
  std::priority_queue<double, std::vector<double>, std::greater<>> under_way_;
};

struct Count {
  double minutes = 0;
  int timed_out = 0;  // silent for the whole timeout
  int early = 0;
  int wrong = 0;                              // of those
  double shortest_silence = kTimeoutSeconds;  // of those
};

// One silence after the other.
struct Silence {
  double reach = 0;  // for so long what is under way still comes, after trouble has begun
  double since = 0, in_trouble_since = 0, in_trouble_until = -1;
  std::optional<double> given_up_at = {};

  void troubled(double t) {
    if (in_trouble_until < since - reach) in_trouble_since = t;
    in_trouble_until = t + kStep;
  }
  double trouble() const { return in_trouble_until < since - reach ? 0 : in_trouble_until - in_trouble_since; }
  void begins(double t) {
    since = t;
    in_trouble_since = std::max(in_trouble_since, t - reach);
    given_up_at.reset();
  }
  void ends(double t, Count& count) const {
    if (t - since >= kTimeoutSeconds) {
      ++count.timed_out;
    } else if (given_up_at) {
      ++count.early;
      count.wrong += trouble() < kTimeoutSeconds / 6 ? 1 : 0;
      count.shortest_silence = std::min(count.shortest_silence, *given_up_at - since);
    }
  }
};

Clock::time_point moment(double t) { return kStart + std::chrono::duration_cast<Clock::duration>(Seconds(t)); }

// Attempts: one of some minutes, or of some seconds each, one after the other.
enum class Attempts { kOne, kShort };

// Some minutes of an edge; they go on where it would have been given up.
void watch(Random& random, const Weather& weather, Attempts attempts, Count& count) {
  const double minutes = uniform(random, 1, 6);
  Sender sender(random, weather);
  const auto rtt = std::chrono::duration_cast<Clock::duration>(Seconds(sender.rtt()));
  SilenceLimit limit;
  limit.begin(kTimeout, kStart);
  Silence silence{.reach = sender.reach()};
  double next_look = kLookEvery, next_attempt = attempts == Attempts::kOne ? 60 * minutes : 0;
  bool arrived = false;
  for (double t = 0; t < 60 * minutes; t += kStep) {
    arrived = sender.step(t) || arrived;
    if (sender.in_trouble()) silence.troubled(t);
    if (t < next_look) continue;
    next_look += kLookEvery;
    if (t >= next_attempt) {
      next_attempt = t + uniform(random, 0.5, 20);
      limit.begin(kTimeout, moment(t));
      silence.begins(t);
      arrived = false;
    }
    limit.look(moment(t), arrived);
    if (limit.exceeded(moment(t), rtt) && !silence.given_up_at) silence.given_up_at = t;
    if (!std::exchange(arrived, false)) continue;
    silence.ends(t, count);
    silence.begins(t);
  }
  count.minutes += minutes;
}

Count simulate(std::uint64_t seed, const Weather& weather, double minutes, Attempts attempts = Attempts::kOne) {
  Random random(seed);
  Count count;
  while (count.minutes < minutes) watch(random, weather, attempts, count);
  qInfo("%.0f minutes: %d silences of the timeout; %d early deaths, the shortest after %.2f s, %d of them wrong",
        count.minutes, count.timed_out, count.early, count.shortest_silence, count.wrong);
  return count;
}

}  // namespace

class SilenceSimulationTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  // Four times a minute it carries nothing for a moment, once a minute the peer's process stands still, every other
  // minute the rate falls to a hundredth for 20 s; up to one packet in 20 is lost.
  void an_edge_that_is_slow_is_not_given_up() {
    const Count count = simulate(7, {.longest_break = 0.9, .longest_stall = 2}, 3'000);

    QCOMPARE(count.wrong, 0);
    QVERIFY(count.early < count.minutes / 200);  // of two things at once
  }

  // Beginnings of attempts are held against nobody.
  void an_edge_that_is_slow_is_not_given_up_in_short_attempts_either() {
    const Count count = simulate(13, {.longest_break = 0.9, .longest_stall = 2}, 3'000, Attempts::kShort);

    QCOMPARE(count.wrong, 0);
    QVERIFY(count.early < count.minutes / 200);
  }

  // What lasts for longer may be given up, but not before half of the timeout.
  void no_silence_shorter_than_half_of_the_timeout_ends_an_edge() {
    const Count count = simulate(11, {.longest_break = 5, .longest_stall = 5}, 1'000);

    QVERIFY(count.early > 0);  // or it would tell nothing
    QVERIFY(count.shortest_silence > kTimeoutSeconds / 2 - 2 * kLookEvery);
  }

  void nor_in_short_attempts() {
    const Count count = simulate(17, {.longest_break = 5, .longest_stall = 5}, 1'000, Attempts::kShort);

    QVERIFY(count.early > 0);
    QVERIFY(count.shortest_silence > kTimeoutSeconds / 2 - 2 * kLookEvery);
  }
};

QTEST_APPLESS_MAIN(SilenceSimulationTest)
#include "silence_simulation_test.moc"
