// Two ends alike that send to each other, each with a pacer: the acknowledgements of what one sends come back behind
// the queue of what the other sends, and so do the receipts, where they are given. Deterministic, in steps of 5 ms.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <random>

#include "net/collective/arrivals.h"
#include "net/collective/edge_pacer.h"

namespace atl {

class TwoPacedEnds {
 public:
  static constexpr double kRate = 12e6;  // bytes/s, each way
  static constexpr double kRtt = 0.08;   // s

  TwoPacedEnds(std::array<double, 2> begins_with, bool lossy, bool receipts, unsigned seed)
      : ends_{End(2 * seed + 1), End(2 * seed + 2)}, lossy_(lossy), receipts_(receipts), jitter_(seed) {
    for (std::size_t i = 0; i < 2; ++i) ends_[i].pacer.begin_with(begins_with[i] * kRate);
  }

  // Both send all the time; then nothing, until all is acknowledged. The share of its link that came through of each,
  // but for the first round trip, in which nothing can.
  std::array<double, 2> attempt(int intervals) {
    for (End& end : ends_) end.begin();
    const int steps = static_cast<int>(intervals * EdgePacer::kShortestInterval / kStep + 0.5);
    const int steps_of_rtt = static_cast<int>(kRtt / kStep + 0.5);
    for (int step = 0; step < steps; ++step) {
      for (std::size_t i = 0; i < 2; ++i) send(ends_[i], ends_[1 - i], step * kStep);
      for (End& end : ends_) take_acknowledgements(end, (step + 1) * kStep);
    }
    std::array<double, 2> shares{};
    for (std::size_t i = 0; i < 2; ++i) shares[i] = ends_[i].acknowledged / (kRate * kStep * (steps - steps_of_rtt));
    return shares;
  }

 private:
  static constexpr double kStep = 0.005;  // s
  static constexpr double kLongestQueue = 0.1 * kRate;
  static constexpr double kOfLimit = 0.99;             // that BBR sends of what it may, begun anew before it probes
  static constexpr double kSmoothed = 64 * 8 * 1448.;  // bytes, over which the kernel smooths the round trip

  static constexpr int kStepsOfReceipt = 10;
  // The receiver's clock is ahead by so much, and wraps in the first attempt.
  static constexpr std::uint32_t kMicrosecondsAhead = ~std::uint32_t{0} - 300'000;

  struct Acknowledgement {
    double at, bytes, rtt;
    double came, bytes_that_came;  // by which time how many in all
    bool has_receipt;
  };
  struct End {
    explicit End(unsigned seed) : pacer(seed) {}
    void begin() {
      pacer.resume();
      arrivals.begin();
      queue = sent = passed = acknowledged = before = since = 0;
      rtt = kRtt;
      coming.clear();
    }
    EdgePacer pacer;
    Arrivals arrivals;
    double queue = 0, sent = 0, passed = 0, acknowledged = 0;
    double rtt = kRtt;
    int steps = 0;
    double before = 0, since = 0;  // acknowledged until the interval began, and when it did
    std::deque<Acknowledgement> coming;
  };

  void send(End& end, const End& other, double now) {
    const double bytes = std::min(kOfLimit * end.pacer.limit().value_or(1e12), 2.5 * kRate) * kStep;
    const double jitter = 0.97 + 0.06 * static_cast<double>(jitter_() % 1000) / 1000;
    const double passed = std::min(end.queue + bytes, kRate * kStep * jitter);
    end.passed += passed;
    end.queue = std::min(end.queue + bytes - passed, kLongestQueue);
    end.sent = end.passed + end.queue;
    const double others = other.queue / kRate;
    const bool has_receipt = receipts_ && ++end.steps % kStepsOfReceipt == 0;
    end.coming.push_back(
        {now + kRtt + others, passed, kRtt + end.queue / kRate + others, now + kRtt / 2, end.passed, has_receipt});
    if (receipts_) look(end, now);
  }

  static Clock::time_point time_of(double seconds) {
    return Clock::time_point(std::chrono::duration_cast<Clock::duration>(Seconds(seconds)));
  }
  static void look(End& end, double now) {
    end.arrivals.sent(0, time_of(now), static_cast<std::uint64_t>(end.sent), true);
  }

  void take_acknowledgements(End& end, double now) const {
    for (; !end.coming.empty() && end.coming.front().at <= now; end.coming.pop_front()) {
      const Acknowledgement& one = end.coming.front();
      end.acknowledged += one.bytes;
      if (one.has_receipt) {
        const std::uint32_t microseconds = microseconds_of(time_of(one.came)) + kMicrosecondsAhead;
        end.arrivals.came(0, microseconds, static_cast<std::uint64_t>(one.bytes_that_came));
      }
      end.rtt += (one.rtt - end.rtt) * std::min(1.0, one.bytes / kSmoothed);
    }
    const double seconds = now - end.since;
    if (seconds < std::max(EdgePacer::kShortestInterval, end.rtt) - 1e-9) return;
    EdgePacer::Interval interval{seconds, end.acknowledged - end.before, true, end.rtt, true, false, lossy_};
    if (receipts_) end.arrivals.put_into(interval);
    end.pacer.observe(interval);
    end.before = end.acknowledged;
    end.since = now;
  }

  std::array<End, 2> ends_;
  bool lossy_;
  bool receipts_;
  std::minstd_rand jitter_;
};

}  // namespace atl
