#include "net/collective/ring_exchange.h"

#include <deque>
#include <thread>

#include "net/collective/edge_monitor.h"
#include "net/collective/ring_worker.h"
#include "net/transport/socket.h"

namespace atl {
namespace {

constexpr unsigned kMostThreads = 4;

// Every worker has a connection of each edge, or it could neither receive nor forward.
std::size_t worker_count(int threads, const RingEdges& edges) {
  const unsigned wanted = threads > 0 ? static_cast<unsigned>(threads)
                                      : std::min(kMostThreads, std::max(1u, std::thread::hardware_concurrency()));
  return std::min<std::size_t>({wanted, edges.to_next.size(), edges.from_previous.size()});
}

std::vector<int> sockets_of(const std::vector<TlsConnection>& connections) {
  std::vector<int> sockets;
  sockets.reserve(connections.size());
  for (const TlsConnection& connection : connections) sockets.push_back(connection.fd());
  return sockets;
}

// The workers run until the board has an end, the calling thread watches.
void run_workers(std::deque<RingWorker>& workers, EdgeMonitor& monitor, FrameBoard& board, DirectReduce* direct,
                 const AbortSignal& abort) {
  std::vector<std::jthread> threads;
  try {
    for (RingWorker& worker : workers) threads.emplace_back([&worker] { worker.run(); });
  } catch (const std::system_error& error) {
    board.fail({{ErrorCode::kIo, std::string("cannot start a thread of the ring: ") + error.what()}, std::nullopt, {}});
  }
  if (direct != nullptr) direct->start(board);
  monitor.run(abort);
  if (direct != nullptr) direct->stop();
}

}  // namespace

std::variant<ExchangeOutcome, AllReduceFailure> exchange(const AllReduceSpec& spec, Rank self, RingEdges edges,
                                                         const PartialSums& sums, const RingPayload& payload,
                                                         std::span<std::byte> canonical, LinkPacing& link,
                                                         const UploadShare& upload, DirectReduce* direct,
                                                         const AbortSignal& abort) {
  const auto world_size = static_cast<int>(spec.order.size());
  const Rank previous{(self.value + world_size - 1) % world_size};
  const auto id_of = [&](int rank) -> const IslandId& {
    return spec.order[static_cast<std::size_t>(rank % world_size)].id;
  };
  const EdgeSchedule outbound(payload, world_size, self);
  const EdgeSchedule inbound(payload, world_size, previous);
  const std::size_t count = worker_count(spec.threads, edges);
  FrameBoard board(payload, outbound, inbound, {edges.to_next.size(), edges.from_previous.size()}, count);
  const AttemptContext attempt{
      spec.round, spec.attempt, spec.fragment, id_of(self.value + 1), id_of(previous.value), outbound, inbound,
      canonical,  sums,         board, spec.on_final};
  std::deque<SendLane> senders;
  std::deque<ReceiveLane> receivers;
  std::deque<RingWorker> workers;
  for (std::size_t i = 0; i < count; ++i) workers.emplace_back(i, attempt);
  for (std::size_t i = 0; i < edges.to_next.size(); ++i) {
    workers[i % count].add(senders.emplace_back(edges.to_next[i], attempt));
  }
  for (std::size_t i = 0; i < edges.from_previous.size(); ++i) {
    workers[i % count].add(receivers.emplace_back(edges.from_previous[i], attempt, spec.silence_timeout));
  }
  for (const TlsConnection& connection : edges.to_next) tune_for_bulk(connection.fd(), spec.congestion_control);
  ProgressMeter meter(inbound, direct != nullptr ? direct->bytes_expected() : 0, spec.on_progress);
  EdgePacing pacing(link, sockets_of(edges.to_next), upload);
  EdgeMonitor monitor(attempt, sockets_of(edges.to_next), sockets_of(edges.from_previous), spec.silence_timeout, pacing,
                      spec.on_progress ? &meter : nullptr);
  run_workers(workers, monitor, board, direct, abort);

  if (std::optional<AllReduceFailure> failure = board.failure()) {
    failure->whole_buckets = board.whole_buckets();
    return std::move(*failure);
  }
  ExchangeOutcome outcome;
  outcome.digest = board.digest();
  outcome.threads = count;
  for (const RingWorker& worker : workers) {
    outcome.bytes_to_next += worker.bytes_sent();
    outcome.bytes_from_previous += worker.bytes_received();
  }
  outcome.bytes_sent = outcome.bytes_to_next;
  outcome.bytes_received = outcome.bytes_from_previous;
  if (direct != nullptr) {
    outcome.bytes_sent += direct->bytes_sent();
    outcome.bytes_received += direct->bytes_received();
  }
  for (std::size_t i = 0; i < senders.size(); ++i) {
    if (senders[i].finished()) outcome.to_next.push_back(std::move(edges.to_next[i]));
  }
  for (std::size_t i = 0; i < receivers.size(); ++i) {
    std::optional<Bytes> surplus = receivers[i].surplus();
    if (surplus) outcome.from_previous.push_back({std::move(edges.from_previous[i]), std::move(*surplus)});
  }
  return outcome;
}

}  // namespace atl
