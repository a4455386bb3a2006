// Whether an attempt goes round the ring or directly (net/wire/schedule.h): a model of how long each takes. Pure; any
// thread.
//
// c: seconds in which a chunk, one Nth of what is averaged, crosses the slowest link that the schedule uses;
// r: rounds of recovery that a chunk needs, one after the other, for the packets that its link loses.
//
//   T_ring   = 2 (N-1) (max(c, rtt / 2) + r rtt)     a hop is as long as its bytes take, or as its delay; what is lost
//   at its end is waited for at each
//   T_direct = 1.15 * 2 (N-1) c + (1.5 + 2 r) rtt    as many bytes, two hops, and half a round trip until the hellos
//   met
//
// The 1.15: N-1 connections share an upload less well than one edge's do (measured, ARCHITECTURE.md). In the ring
// delays follow one another, so that their mean counts; directly everybody waits for the furthest.
//
// What a member that lies about its own links gains. A ring instead of a direct exchange: then all is as if there were
// none. A direct exchange instead of a ring: the bytes are as many, so that it takes at most 15 % and (1.5 + 2 r) true
// round trips longer, and never over a link that is slower than they say but the liar's own, which slows the ring as
// well. It gains less than by sending slowly.
#pragma once

#include <optional>
#include <vector>

#include "net/base/deadline.h"
#include "net/mesh/link_matrix.h"
#include "net/wire/schedule.h"

namespace atl {

struct UsedLinks {  // by one of the schedules
  double slowest_bytes_per_second = 0;
  double rtt_seconds = 0;
  double loss = 0;  // the largest; 0 where rings did not measure it of late, which favours the ring
};

struct ScheduleQuestion {
  int islands = 0;
  double bytes = 0;  // encoded, of which each member sends 2 (N-1) / N
  UsedLinks ring, direct;
};

// r of a chunk of so many packets, each of which is lost with this probability, also when it is sent again: the
// expected number of losses where these are few, and else in how many rounds the last of them gets through.
double recoveries(double packets, double loss);
double ring_seconds(const ScheduleQuestion& question);
double direct_seconds(const ScheduleQuestion& question);

// Directly only where that gains a tenth, and more than moments; once it does, for as long as it gains anything, for
// connections are made anew when the schedule changes.
Schedule choose_schedule(const ScheduleQuestion& question, Schedule previous);

// What is known of the links of an attempt with this order that averages so many bytes. Nothing where a direct exchange
// is out of the question, or would be a guess: for two, for whom it is the ring; for more than kMaxDirectIslands; where
// two members never met, as far as is known, or more than one cannot be dialled; where a pair's round trip or a
// member's upload was never measured. What N-1 connections can carry together is not known of any: a member's slowest
// link stands for its whole upload.
std::optional<ScheduleQuestion> schedule_question(const std::vector<AttemptMember>& order, double bytes,
                                                  const LinkMatrix& links, Clock::time_point now);

// An attempt in which a link is that much slower than it was ever seen to be of late is not slow, but held up.
inline constexpr double kFarSlower = 10;
// Bytes a second. A link that is faster waits for those that encode. One that is slower is not waited for, whatever is
// known of it, so that who lies about its own links holds up nobody for longer: half of the least that an owner may
// limit an island to, 1 Mbit/s.
inline constexpr double kFastestExpected = 125e6, kSlowestAwaited = 62.5e3;

// How long an attempt with this order that averages so many bytes may move them, by either schedule: at a kFarSlower-th
// of the rate of its slowest link, and twice the delays of a ring's hops, of which many follow one another. An edge of
// the ring that nobody measured is taken for half of what its ends do with others; where nothing is known of an end,
// for the slowest.
double longest_seconds(const std::vector<AttemptMember>& order, double bytes, const LinkMatrix& links,
                       Clock::time_point now);

// A direct exchange has the lower rank dial the other: one that cannot be dialled becomes rank 0. Everybody's
// neighbours stay.
void begin_with_the_hidden(std::vector<AttemptMember>& order, const LinkMatrix& links);

}  // namespace atl
