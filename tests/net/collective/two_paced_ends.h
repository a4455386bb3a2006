// Two ends alike that send to each other, each with a pacer: the acknowledgements of what one sends come back behind
// the queue of what the other sends. Deterministic, in steps of 5 ms.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <random>

#include "net/collective/edge_pacer.h"

namespace atl {

class TwoPacedEnds {
 public:
  static constexpr double kRate = 12e6;  // bytes/s, each way
  static constexpr double kRtt = 0.08;   // s

  TwoPacedEnds(std::array<double, 2> begins_with, bool lossy, unsigned seed)
      : ends_{End(2 * seed + 1), End(2 * seed + 2)}, lossy_(lossy), jitter_(seed) {
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

  struct Acknowledgement {
    double at, bytes, rtt;
  };
  struct End {
    explicit End(unsigned seed) : pacer(seed) {}
    void begin() {
      pacer.resume();
      queue = sent = acknowledged = before = since = 0;
      rtt = kRtt;
      coming.clear();
    }
    EdgePacer pacer;
    double queue = 0, sent = 0, acknowledged = 0;
    double rtt = kRtt;
    double before = 0, since = 0;  // acknowledged until the interval began, and when it did
    std::deque<Acknowledgement> coming;
  };

  void send(End& end, const End& other, double now) {
    const double bytes = std::min(kOfLimit * end.pacer.limit().value_or(1e12), 2.5 * kRate) * kStep;
    const double jitter = 0.97 + 0.06 * static_cast<double>(jitter_() % 1000) / 1000;
    const double passed = std::min(end.queue + bytes, kRate * kStep * jitter);
    end.sent += bytes;
    end.queue = std::min(end.queue + bytes - passed, kLongestQueue);
    const double others = other.queue / kRate;
    end.coming.push_back({now + kRtt + others, passed, kRtt + end.queue / kRate + others});
  }

  void take_acknowledgements(End& end, double now) const {
    for (; !end.coming.empty() && end.coming.front().at <= now; end.coming.pop_front()) {
      const Acknowledgement& one = end.coming.front();
      end.acknowledged += one.bytes;
      end.rtt += (one.rtt - end.rtt) * std::min(1.0, one.bytes / kSmoothed);
    }
    const double seconds = now - end.since;
    if (seconds < std::max(EdgePacer::kShortestInterval, end.rtt) - 1e-9) return;
    end.pacer.observe({seconds, end.acknowledged - end.before, true, end.rtt, true, false, lossy_});
    end.before = end.acknowledged;
    end.since = now;
  }

  std::array<End, 2> ends_;
  bool lossy_;
  std::minstd_rand jitter_;
};

}  // namespace atl
