#include "net/collective/edge_pacing.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace atl {
namespace {

constexpr std::chrono::seconds kBbrProbesAfter{8};  // less than its 10, for the time between two looks
constexpr std::chrono::milliseconds kStagger{200};
// BBR does not look for the link's rate by itself for so many round trips.
constexpr double kRoundTripsOfStart = 2.5;
constexpr double kClimb = 1.04;               // of a limit, which BBR would follow by its probes alone
constexpr double kLossyShare = 0.2;           // of the intervals: what is lost now and then is no lossy link's
constexpr double kMemoryOfLosses = 15. / 16;  // from one interval to the next
constexpr double kOverflowing = 0.1;          // of what is delivered: more than links lose by themselves
constexpr double kMostOverflow = 3;           // of what is delivered: BBR's start sends no more, so that the way stood
constexpr double kLeastOverflow = 128 << 10;  // bytes: some 90 segments, no accident

bool paces_by_fq() {
  static const bool fq = [] {
    std::ifstream file("/proc/sys/net/core/default_qdisc");
    std::string name;
    return file >> name && name == "fq";
  }();
  return fq;
}

}  // namespace

std::optional<double> overflowing_rate(double seconds, double bytes_delivered, double bytes_retransmitted) {
  if (bytes_retransmitted < std::max(kLeastOverflow, kOverflowing * bytes_delivered)) return std::nullopt;
  if (bytes_retransmitted > kMostOverflow * bytes_delivered) return std::nullopt;
  return bytes_delivered / seconds;
}

std::optional<double> LinkPacing::link_rate() const {
  MutexLock lock(mutex_);
  return pacer_.link_rate();
}

double LinkPacing::fastest() const {
  MutexLock lock(mutex_);
  return pacer_.fastest();
}

void LinkPacing::begin_with(double bytes_per_second) {
  MutexLock lock(mutex_);
  pacer_.begin_with(bytes_per_second);
}

void LinkPacing::join(const std::vector<int>& sockets, Clock::time_point now) {
  MutexLock lock(mutex_);
  if (sockets_.empty()) {
    pacer_.resume();
    arrivals_.begin();
    hears_ = false;
  }
  for (const int fd : sockets) sockets_.push_back({fd, now});
  begin_interval(now, read(now));
  saturated_throughout_ = under_way_throughout_ = stalled_meanwhile_ = false;
}

// What the others carried meanwhile is part of no interval: the sums are of other sockets now.
void LinkPacing::leave(const std::vector<int>& sockets, Clock::time_point now) {
  MutexLock lock(mutex_);
  std::erase_if(sockets_, [&](const Socket& socket) { return std::ranges::find(sockets, socket.fd) != sockets.end(); });
  for (const int socket : sockets) arrivals_.forget(socket);
  if (!sockets_.empty()) begin_interval(now, read(now));
}

// Arrivals are told of it.
TcpProgress LinkPacing::progress_of(int socket, Clock::time_point now) {
  const TcpProgress progress = tcp_progress(socket);
  arrivals_.sent(socket, now, progress.bytes_sent, progress.bytes_unsent > 0);
  return progress;
}

// Saturated: at most connections of the link the kernel has more to send. A few may be between two frames.
LinkPacing::Reading LinkPacing::read(Clock::time_point now) {
  Reading reading;
  std::size_t with_more = 0;
  for (const Socket& socket : sockets_) {
    const TcpProgress progress = progress_of(socket.fd, now);
    reading.bytes_delivered += progress.bytes_delivered;
    reading.bytes_retransmitted += progress.bytes_retransmitted;
    reading.rtt_seconds += Seconds(progress.smoothed_rtt).count() / static_cast<double>(sockets_.size());
    with_more += progress.bytes_unsent > 0 ? 1 : 0;
    reading.under_way = reading.under_way || progress.bytes_queued > progress.bytes_unsent;
    reading.stalled = reading.stalled || progress.lost_all;
  }
  reading.saturated = 2 * with_more > sockets_.size();
  return reading;
}

void LinkPacing::begin_interval(Clock::time_point now, const Reading& reading) {
  since_ = now;
  before_ = reading;
  saturated_throughout_ = reading.saturated;
  under_way_throughout_ = reading.under_way;
  stalled_meanwhile_ = reading.stalled;
}

std::optional<double> LinkPacing::limit_of_a_socket() const {
  MutexLock lock(mutex_);
  const std::optional<double> limit = pacer_.limit();
  return limit ? std::optional(*limit / static_cast<double>(sockets_.size())) : std::nullopt;
}

// Every 10 s BBR empties a connection for 200 ms to see the least round trip again, and as the connections of a ring
// are of one age, all its edges stand still at once: 5 % of the time. The pacer keeps the queues short, so that the
// kernel's own record of the least round trip is good; begun anew before the 10 s are over, BBR takes it from there.
// Without losses it is begun anew before it has left its start: it then sends all that the limit allows and follows
// when that rises, where its probes for more, each followed by a pause, would leave out 5 % and take 8 round trips.
void LinkPacing::spare_bbr_its_probes(Clock::time_point now) {
  if (!pacer_.limit()) return;
  Seconds due = kBbrProbesAfter, stagger = kStagger;  // not all at once
  if (!leaves_sending_to_bbr()) {
    due = std::min(due, Seconds(std::max(EdgePacer::kShortestInterval, kRoundTripsOfStart * before_.rtt_seconds)));
    stagger = Seconds::zero();
  }
  for (Socket& socket : sockets_) {
    if (now - socket.restarted >= due) begin_anew(socket, now);
    due -= stagger;
  }
}

// Where packets are lost; and where fq paces, which counts the headers of all layers in the limit, TCP's own pacing
// none: that leaves out as much as BBR's probes do, some 5 %, and would be taken for a link that is full.
bool LinkPacing::leaves_sending_to_bbr() const { return lossy_share_ > kLossyShare || paces_by_fq(); }

void LinkPacing::begin_anew(Socket& socket, Clock::time_point now) {
  spare_bbr_its_probe(socket.fd);
  socket.restarted = now;
}

// How old their record of the least round trip is nobody knows, and now that little is under way beginning anew costs
// nothing.
void LinkPacing::begin_anew(const std::vector<int>& sockets) const {
  MutexLock lock(mutex_);
  if (!pacer_.limit()) return;
  for (const int socket : sockets) spare_bbr_its_probe(socket);
}

void LinkPacing::came(int socket, const RingReceipt& receipt) {
  MutexLock lock(mutex_);
  const auto joined = [&](const Socket& one) { return one.fd == socket; };
  if (std::ranges::none_of(sockets_, joined)) return;
  (void)progress_of(socket, Clock::now());
  arrivals_.came(socket, receipt.microseconds, receipt.bytes);
}

void LinkPacing::look(Clock::time_point now) {
  MutexLock lock(mutex_);
  spare_bbr_its_probes(now);
  const Reading reading = read(now);
  saturated_throughout_ = saturated_throughout_ && reading.saturated;
  under_way_throughout_ = under_way_throughout_ && reading.under_way;
  stalled_meanwhile_ = stalled_meanwhile_ || reading.stalled;
  const double seconds = Seconds(now - since_).count();
  if (seconds < std::max(EdgePacer::kShortestInterval, reading.rtt_seconds)) return;
  // The kernel counts segments, in 32 bits: a smaller segment size, or a wrap, makes it look like going back.
  if (reading.bytes_delivered >= before_.bytes_delivered) {
    const auto delivered = static_cast<double>(reading.bytes_delivered - before_.bytes_delivered);
    const auto again = static_cast<double>(reading.bytes_retransmitted - before_.bytes_retransmitted);
    // Without a limit the windows soon hold all that there is to send: never saturated, the pacer would learn nothing,
    // and the same queue overflow in every attempt.
    const auto rate = overflowing_rate(seconds, delivered, again);
    if (rate && under_way_throughout_ && !stalled_meanwhile_) pacer_.begin_with(*rate);
    const std::optional<double> limit = pacer_.limit();
    // What is lost while the edge's own queue stands is no more than what overflows there.
    const bool overflows = hears_ && pacer_.is_queue();
    lossy_share_ = kMemoryOfLosses * lossy_share_ + (again > 0 && !overflows ? 1 - kMemoryOfLosses : 0);
    EdgePacer::Interval interval{
        seconds, delivered, saturated_throughout_, reading.rtt_seconds, under_way_throughout_, stalled_meanwhile_};
    interval.lossy = leaves_sending_to_bbr();
    arrivals_.put_into(interval);
    hears_ = interval.one_way;
    pacer_.observe(interval);
    if (limit && *pacer_.limit() > kClimb * *limit && !leaves_sending_to_bbr()) {
      for (Socket& socket : sockets_) begin_anew(socket, now);
    }
  }
  begin_interval(now, reading);
}

EdgePacing::EdgePacing(LinkPacing& link, std::vector<int> sockets, const UploadShare& upload)
    : link_(link),
      sockets_(std::move(sockets)),
      upload_(upload),
      learns_(!sockets_.empty() && (upload_.most_bytes_per_second() || !leads_to_this_machine(sockets_.front()))) {
  join(sockets_);
}

void EdgePacing::join(const std::vector<int>& sockets) {
  if (learns_) link_.join(sockets, Clock::now());
  applied_ = limit_of_a_socket(0);
  for (const int socket : sockets_) limit_pacing(socket, applied_);
  if (learns_) link_.begin_anew(sockets);
}

EdgePacing::~EdgePacing() {
  if (learns_) link_.leave(sockets_, Clock::now());
}

void EdgePacing::add(int socket) {
  sockets_.push_back(socket);
  join({socket});
}

void EdgePacing::remove(int socket) {
  if (std::erase(sockets_, socket) > 0 && learns_) link_.leave({socket}, Clock::now());
}

std::optional<double> EdgePacing::limit_of_a_socket(std::size_t busy) const {
  if (sockets_.empty()) return std::nullopt;
  const auto sockets = static_cast<double>(sockets_.size());
  const double sharing = busy > 0 ? static_cast<double>(busy) : sockets;
  std::optional<double> limit = learns_ ? link_.limit_of_a_socket() : std::nullopt;
  if (limit) *limit *= sockets / sharing;
  const std::optional<double> allowed = upload_.most_bytes_per_second();
  if (allowed) limit = std::min(*allowed / sharing, limit.value_or(*allowed));
  return limit;
}

void EdgePacing::look(Clock::time_point now, std::size_t busy) {
  if (learns_) link_.look(now);
  const std::optional<double> limit = limit_of_a_socket(busy);
  if (limit == applied_) return;
  applied_ = limit;
  for (const int socket : sockets_) limit_pacing(socket, limit);
}

}  // namespace atl
