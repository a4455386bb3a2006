#include "net/collective/ring_exchange.h"

#include <deque>
#include <thread>

#include "net/collective/edge_monitor.h"
#include "net/collective/ring_worker.h"
#include "net/transport/socket.h"

namespace atl {
namespace {

constexpr unsigned kMostThreads = 4;

// Every worker has a connection to the next rank. It may have none from the previous one, whose number is that rank's
// choice and not known yet: it sends, then, what others receive.
std::size_t worker_count(int threads, const std::vector<TlsConnection>& to_next) {
  const unsigned wanted = threads > 0 ? static_cast<unsigned>(threads)
                                      : std::min(kMostThreads, std::max(1u, std::thread::hardware_concurrency()));
  return std::min<std::size_t>(wanted, to_next.size());
}

std::vector<int> sockets_of(const std::vector<TlsConnection>& connections) {
  std::vector<int> sockets;
  sockets.reserve(connections.size());
  for (const TlsConnection& connection : connections) sockets.push_back(connection.fd());
  return sockets;
}

std::uint64_t bytes_retransmitted(const std::vector<TlsConnection>& connections) {
  std::uint64_t sum = 0;
  for (const TlsConnection& connection : connections) sum += tcp_progress(connection.fd()).bytes_retransmitted;
  return sum;
}

// What receives: the connections from the previous rank, from when they are there. The lanes refer to the connections,
// which therefore stay where they are.
struct Inbound {
  std::vector<TlsConnection> connections;
  std::deque<ReceiveLane> lanes;
};

// Why they did not come, if they did not. Where nothing is to be sent or received the board has an end already.
std::optional<AllReduceFailure> join_previous(const AllReduceSpec& spec, EdgeConnector& connector,
                                              const AttemptContext& attempt, std::deque<RingWorker>& workers,
                                              EdgeMonitor& monitor, Inbound& inbound) {
  auto came = connector.wait_for_previous([&] { return monitor.look_ahead(); });
  if (auto* failure = std::get_if<AllReduceFailure>(&came)) {
    attempt.board.fail(*failure);
    return std::move(*failure);
  }
  inbound.connections = std::move(std::get<std::vector<TlsConnection>>(came));
  for (TlsConnection& connection : inbound.connections) {
    inbound.lanes.emplace_back(connection, attempt, spec.silence_timeout);
  }
  monitor.watch_inbound(sockets_of(inbound.connections));
  for (std::size_t i = 0; i < inbound.lanes.size(); ++i) workers[i % workers.size()].join(inbound.lanes[i]);
  attempt.board.inbound_joined(inbound.lanes.size());
  return std::nullopt;
}

}  // namespace

std::variant<ExchangeOutcome, AllReduceFailure> exchange(const AllReduceSpec& spec, Rank self, EdgeConnector& connector,
                                                         EdgeConnector::ToNext to_next, const PartialSums& sums,
                                                         const RingPayload& payload, std::span<std::byte> canonical,
                                                         LinkPacing& link, EdgeSilences silences,
                                                         const UploadShare& upload, DirectReduce* direct,
                                                         const AbortSignal& abort) {
  const auto world_size = static_cast<int>(spec.order.size());
  const Rank previous{(self.value + world_size - 1) % world_size};
  const auto id_of = [&](int rank) -> const IslandId& {
    return spec.order[static_cast<std::size_t>(rank % world_size)].id;
  };
  const EdgeSchedule outbound_schedule(payload, world_size, self);
  const EdgeSchedule inbound_schedule(payload, world_size, previous);
  std::vector<TlsConnection>& outbound = to_next.connections;
  const std::size_t count = worker_count(spec.threads, outbound);
  FrameBoard board(payload, outbound_schedule, inbound_schedule, outbound.size(), count);
  const AttemptContext attempt{spec.round,
                               spec.attempt,
                               spec.fragment,
                               id_of(self.value + 1),
                               id_of(previous.value),
                               outbound_schedule,
                               inbound_schedule,
                               canonical,
                               sums,
                               board,
                               spec.on_final,
                               spec.download,
                               link};
  std::deque<SendLane> senders;
  Inbound inbound;
  std::deque<RingWorker> workers;
  for (std::size_t i = 0; i < count; ++i) workers.emplace_back(i, attempt);
  for (std::size_t i = 0; i < outbound.size(); ++i) {
    workers[i % count].add(senders.emplace_back(outbound[i], attempt));
  }
  for (const TlsConnection& connection : outbound) tune_for_bulk(connection.fd(), spec.congestion_control);
  ProgressMeter meter(inbound_schedule, direct != nullptr ? direct->bytes_expected() : 0, spec.on_progress);
  EdgePacing pacing(link, sockets_of(outbound), upload);
  EdgeMonitor monitor(attempt, sockets_of(outbound), spec.silence_timeout, silences, pacing,
                      spec.on_progress ? &meter : nullptr);
  const std::uint64_t retransmitted_before = bytes_retransmitted(outbound);
  std::optional<AllReduceFailure> not_joined;
  {
    std::vector<std::jthread> threads;  // until the board has an end; this thread watches
    try {
      for (RingWorker& worker : workers) threads.emplace_back([&worker] { worker.run(); });
    } catch (const std::system_error& error) {
      board.fail(
          {{ErrorCode::kIo, std::string("cannot start a thread of the ring: ") + error.what()}, std::nullopt, {}});
    }
    if (direct != nullptr) direct->start(board);
    not_joined = join_previous(spec, connector, attempt, workers, monitor, inbound);
    if (!not_joined) monitor.run(abort);
    if (direct != nullptr) direct->stop();
  }

  std::optional<AllReduceFailure> failure = board.failure();
  if (!failure) failure = std::move(not_joined);
  // The others were told to end as well: who has heard of it first by their closing has what it knows to say all the
  // same.
  if (failure && failure->error.code == ErrorCode::kPeerLost && abort.raised()) {
    failure = monitor.aborted(abort.reason(), Clock::now());
  }
  if (failure) {
    failure->whole_buckets = board.whole_buckets();
    const bool answers_abort = failure->error.code == ErrorCode::kAborted && !failure->silent;
    if (const auto behind = direct != nullptr ? direct->furthest_behind() : std::nullopt; behind && answers_abort) {
      failure->peer = behind->peer;
      failure->stalled_after = behind->bytes;
    }
    return std::move(*failure);
  }
  ExchangeOutcome outcome;
  outcome.digest = board.digest();
  outcome.threads = count;
  for (const RingWorker& worker : workers) {
    outcome.bytes_to_next += worker.bytes_sent();
    outcome.bytes_from_previous += worker.bytes_received();
  }
  outcome.bytes_retransmitted = bytes_retransmitted(outbound) - retransmitted_before;
  outcome.bytes_sent = outcome.bytes_to_next;
  outcome.bytes_received = outcome.bytes_from_previous;
  if (direct != nullptr) {
    outcome.bytes_sent += direct->bytes_sent();
    outcome.bytes_received += direct->bytes_received();
  }
  for (std::size_t i = 0; i < senders.size(); ++i) {
    if (senders[i].finished()) outcome.to_next.push_back(std::move(outbound[i]));
  }
  for (std::size_t i = 0; i < inbound.lanes.size(); ++i) {
    std::optional<Bytes> surplus = inbound.lanes[i].surplus();
    if (surplus) outcome.from_previous.push_back({std::move(inbound.connections[i]), std::move(*surplus)});
  }
  return outcome;
}

}  // namespace atl
