#include "net/collective/ring_exchange.h"

#include <fmt/format.h>
#include <poll.h>

#include "net/collective/edge_receiver.h"
#include "net/collective/edge_sender.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kLongestKeepaliveInterval{1000};

class RingExchange {
 public:
  RingExchange(const AllReduceSpec& spec, Rank self, RingEdges edges, PartialSums& sums, std::int64_t payload_numel,
               std::span<std::byte> canonical, const AbortSignal& abort, ExchangeTraffic& traffic);

  std::optional<AllReduceFailure> run();

 private:
  static Rank previous_of(Rank self, int world_size) { return {(self.value + world_size - 1) % world_size}; }
  int world_size() const { return static_cast<int>(spec_.order.size()); }
  const IslandId& next() const { return spec_.order[static_cast<std::size_t>((self_.value + 1) % world_size())].id; }
  const IslandId& previous() const {
    return spec_.order[static_cast<std::size_t>(previous_of(self_, world_size()).value)].id;
  }

  std::optional<AllReduceFailure> pump(std::size_t& moved);
  std::optional<AllReduceFailure> check_silence(bool sent, bool received);
  AllReduceFailure silent(const IslandId& peer, std::string_view verb) const;
  std::optional<AllReduceFailure> wait();
  void on_frame(std::uint32_t sequence, const RingSubChunk& sub_chunk);

  const AllReduceSpec& spec_;
  const Rank self_;
  PartialSums& sums_;
  const AbortSignal& abort_;
  ExchangeTraffic& traffic_;
  const std::chrono::milliseconds keepalive_interval_;
  const EdgeSchedule outbound_;
  const EdgeSchedule inbound_;
  EdgeSender sender_;
  EdgeReceiver receiver_;
  Clock::time_point last_sent_ = Clock::now();  // or when there was last nothing that waited to be sent
  Clock::time_point last_spoke_ = last_sent_;   // any byte to the next rank
  Clock::time_point last_received_ = last_sent_;
  std::vector<pollfd> polls_;
};

RingExchange::RingExchange(const AllReduceSpec& spec, Rank self, RingEdges edges, PartialSums& sums,
                           std::int64_t payload_numel, std::span<std::byte> canonical, const AbortSignal& abort,
                           ExchangeTraffic& traffic)
    : spec_(spec),
      self_(self),
      sums_(sums),
      abort_(abort),
      traffic_(traffic),
      keepalive_interval_(std::min(kLongestKeepaliveInterval, spec.silence_timeout / 3)),
      outbound_(spec.wire, payload_numel, world_size(), self),
      inbound_(spec.wire, payload_numel, world_size(), previous_of(self, world_size())),
      sender_(std::move(edges.to_next), outbound_, spec.round, spec.attempt, canonical, sums),
      receiver_(std::move(edges.from_previous), inbound_, spec.round, spec.attempt, canonical,
                [this](std::uint32_t sequence, const RingSubChunk& sub_chunk) { on_frame(sequence, sub_chunk); }) {}

void RingExchange::on_frame(std::uint32_t sequence, const RingSubChunk& sub_chunk) {
  if (sub_chunk.phase == RingPhase::kReduceScatter) sums_.add_own(sub_chunk);
  const std::uint32_t forwarded = sequence + outbound_.own_frames();
  if (forwarded < outbound_.frames()) sender_.frame_ready(forwarded);
}

std::optional<AllReduceFailure> RingExchange::pump(std::size_t& moved) {
  const Result<std::size_t> sent = sender_.done() ? Result<std::size_t>(0) : sender_.pump();
  if (!sent.ok()) return AllReduceFailure{sent.error(), next()};
  const Result<std::size_t> received = receiver_.done() ? Result<std::size_t>(0) : receiver_.pump();
  if (!received.ok()) return AllReduceFailure{received.error(), previous()};
  traffic_.bytes_sent += *sent;
  traffic_.bytes_received += *received;
  moved = *sent + *received;
  return check_silence(*sent > 0, *received > 0);
}

// After a pass over both edges: one that moved nothing in it although it should, for too long, is lost. (A process that
// was itself stopped finds its bytes in the pass before this is asked.)
std::optional<AllReduceFailure> RingExchange::check_silence(bool sent, bool received) {
  const auto now = Clock::now();
  if (sent) last_spoke_ = now;
  if (sent || !sender_.blocked()) last_sent_ = now;
  if (received) last_received_ = now;
  if (!receiver_.done() && now - last_received_ > spec_.silence_timeout) return silent(previous(), "sent");
  if (!sender_.done() && now - last_sent_ > spec_.silence_timeout) return silent(next(), "took");
  if (!sender_.done() && now - last_spoke_ >= keepalive_interval_) sender_.queue_keepalive();
  return std::nullopt;
}

AllReduceFailure RingExchange::silent(const IslandId& peer, std::string_view verb) const {
  const Seconds allowed = spec_.silence_timeout;
  Error error{ErrorCode::kTimeout, fmt::format("{} {} nothing for {:.1f} s", peer.value, verb, allowed.count())};
  return AllReduceFailure{std::move(error), peer};
}

std::optional<AllReduceFailure> RingExchange::wait() {
  polls_.assign(1, pollfd{abort_.fd(), POLLIN, 0});
  if (!sender_.done()) sender_.append_polls(polls_);
  const std::size_t outbound_count = polls_.size() - 1;
  if (!receiver_.done()) receiver_.append_polls(polls_);
  const auto timeout = static_cast<int>(std::max<std::int64_t>(1, (keepalive_interval_ / 2).count()));
  if (::poll(polls_.data(), polls_.size(), timeout) <= 0) return std::nullopt;
  if (sender_.done()) return std::nullopt;
  Status status = sender_.after_poll(std::span(polls_).subspan(1, outbound_count));
  if (!status.ok()) return AllReduceFailure{status.error(), next()};
  return std::nullopt;
}

std::optional<AllReduceFailure> RingExchange::run() {
  while (!sender_.done() || !receiver_.done()) {
    if (abort_.raised()) return AllReduceFailure{{ErrorCode::kAborted, abort_.reason()}, std::nullopt};
    std::size_t moved = 0;
    if (auto failure = pump(moved)) return failure;
    if (moved > 0) continue;
    if (auto failure = wait()) return failure;
  }
  return std::nullopt;
}

}  // namespace

std::optional<AllReduceFailure> exchange(const AllReduceSpec& spec, Rank self, RingEdges edges, PartialSums& sums,
                                         std::int64_t payload_numel, std::span<std::byte> canonical,
                                         const AbortSignal& abort, ExchangeTraffic& traffic) {
  return RingExchange(spec, self, std::move(edges), sums, payload_numel, canonical, abort, traffic).run();
}

}  // namespace atl
