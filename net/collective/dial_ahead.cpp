#include "net/collective/dial_ahead.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>

#include "net/collective/attempt_edges.h"
#include "net/transport/socket.h"

namespace atl {
namespace {

constexpr std::size_t kDialAtOnce = 8;
// A peer may hear of it a little later, and close what comes before.
constexpr int kFirstPasses = 4;
constexpr std::chrono::milliseconds kFirstPause{500};  // twice as long each time
constexpr int kMostDoublings = 7;                      // to 64 s
constexpr std::uint64_t kPaddingShare = 3;             // a third of an attempt's bytes

// Of an attempt as this island is told of it: none where it has no part, or could have none.
std::vector<AttemptEdge> edges_ahead(const NextAttempts& next, const IslandId& self) {
  const auto& order = next.order;
  const auto found = std::ranges::find(order, self, &RingMember::id);
  if (found == order.end() || order.size() < 2) return {};
  if (next.schedule == Schedule::kDirect && order.size() > std::size_t{kMaxDirectIslands}) return {};
  return edges_of(order, next.schedule, static_cast<std::size_t>(found - order.begin()));
}

// A peer that closes what it has answered is dialled as often as one that does not answer.
std::chrono::milliseconds pause_after(int passes) { return kFirstPause * (1 << std::min(passes - 1, kMostDoublings)); }

bool is_limited(const NextAttempts& next) {
  return next.most_bytes_per_second && next.most_bytes_per_second().has_value();
}

}  // namespace

DialAhead::DialAhead(Ring ring) : ring_(std::move(ring)) {
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  } catch (const std::system_error&) {
    // Attempts then dial for themselves.
  }
}

DialAhead::~DialAhead() {
  thread_.request_stop();
  const MutexLock lock(mutex_);
  if (pass_) pass_->raise("the ring ends");
}

// ---- what is said to it

void DialAhead::prepare(NextAttempts next) {
  expect(next);
  MutexLock lock(mutex_);
  end_pass(lock);
  next_ = std::move(next);
  due_ = Clock::now();
  passes_ = 0;
  is_settled_ = false;
  changed_.notify_all();
}

void DialAhead::expect(const NextAttempts& next) const {
  std::map<IslandId, int> peers;
  for (const AttemptEdge& edge : edges_ahead(next, ring_.self)) {
    const int connections = next.schedule == Schedule::kDirect ? 1 : most_connections_per_edge(next.fragments);
    if (!edge.is_dialled) peers[next.order[edge.peer].id] += connections;
  }
  const bool is_free = next.download == nullptr || !next.download->allowed();
  ring_.inbox.expect_ahead(next.schedule, peers, is_free, static_cast<std::uint32_t>(next.fragments));
}

bool DialAhead::await_prepared(Deadline deadline) {
  MutexLock lock(mutex_);
  return idle_.wait(lock, deadline, [&]() ATOLL_REQUIRES(mutex_) { return !pass_ && (!next_ || is_settled_); });
}

void DialAhead::forget(const IslandId& peer) {
  MutexLock lock(mutex_);
  end_pass(lock);
  if (next_ && std::ranges::find(next_->order, peer, &RingMember::id) != next_->order.end()) next_.reset();
  for (std::uint32_t fragment = 0; fragment < kMaxFragments; ++fragment) ring_.pool(FragmentId{fragment}).forget(peer);
  idle_.notify_all();
}

// Nobody waits for the threads that dial: what they make is closed. What is being padded is one connection's turn from
// the pools.
void DialAhead::end_pass(MutexLock& lock) {
  if (pass_) pass_->raise("an attempt begins, or other advice came");
  give_to_pools(std::exchange(to_open_, {}));
  put_down_.wait(lock, [&]() ATOLL_REQUIRES(mutex_) { return !opens_; });
}

void DialAhead::give_to_pools(std::vector<DialledAhead> connections) {
  for (DialledAhead& one : connections) {
    std::vector<TlsConnection> alone;
    alone.push_back(std::move(one.connection));
    ring_.pool(one.fragment).give_back(one.end, one.address, std::move(alone));
  }
}

void DialAhead::hold() {
  MutexLock lock(mutex_);
  ++held_;
  end_pass(lock);
  next_.reset();
  idle_.notify_all();
}

void DialAhead::release() {
  const MutexLock lock(mutex_);
  --held_;
  changed_.notify_all();
}

// ---- its thread

void DialAhead::run(const std::stop_token& stop) {
  for (;;) {
    NextAttempts next;
    std::shared_ptr<AbortSignal> abort;
    {
      MutexLock lock(mutex_);
      const auto is_asked = [&]() ATOLL_REQUIRES(mutex_) { return next_ && held_ == 0; };
      if (!changed_.wait(lock, stop, is_asked) || stop.stop_requested()) return;
      if (Clock::now() < due_) {
        const auto has_changed = [&]() ATOLL_REQUIRES(mutex_) { return !is_asked() || due_ <= Clock::now(); };
        (void)changed_.wait(lock, stop, Deadline::at(due_), has_changed);
        continue;
      }
      next = *next_;
      if (is_settled_) next.bytes_to_each = 0;  // links may be probed by now, and padding was sent once
      pass_ = abort = AbortSignal::try_make();
      if (!pass_) {  // nor is there a descriptor for a connection
        next_.reset();
        idle_.notify_all();
        continue;
      }
    }
    const Passed passed = pass(next, *abort);
    const MutexLock lock(mutex_);
    const bool was_ended = abort->raised();
    abort.reset();  // before anybody hears that all stands: it has a descriptor
    pass_.reset();
    if (!was_ended) {
      passes_ += passed.lacked > 0 ? 1 : 0;
      is_settled_ = is_settled_ || passed.dialled == passed.lacked || passes_ == kFirstPasses;
      due_ = Clock::now() + (passed.lacked > 0 ? pause_after(passes_) : ConnectionPool::kWarmEvery);
    }
    idle_.notify_all();
  }
}

DialAhead::Passed DialAhead::pass(const NextAttempts& next, const AbortSignal& abort) {
  Passed passed;
  const auto dial_what_lacks = [&] {
    const std::vector<Wanted> wanted = lacking(next, abort);
    passed.lacked += wanted.size();
    passed.dialled += dial(next, wanted, abort);
  };
  more_are_needed_ = false;
  dial_what_lacks();
  if (more_are_needed_ && passed.dialled == passed.lacked) dial_what_lacks();
  open_windows(next, abort);
  return passed;
}

std::vector<DialAhead::Wanted> DialAhead::lacking(const NextAttempts& next, const AbortSignal& abort) {
  std::vector<Wanted> wanted;
  const MutexLock lock(mutex_);  // no attempt begins meanwhile, whose numbers of connections these are
  if (abort.raised()) return wanted;
  std::vector<AttemptEdge> edges = edges_ahead(next, ring_.self);
  if (edges.empty()) return wanted;
  std::erase_if(edges, [](const AttemptEdge& edge) { return !edge.is_dialled; });
  std::vector<EdgeEnd> ends;
  for (const AttemptEdge& edge : edges) ends.push_back({next.order[edge.peer].id, edge.role});
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(next.fragments); ++i) {
    const FragmentId fragment{i};
    // As the attempt will. Else what one advice after the other has dialled would stand until then.
    ring_.pool(fragment).keep_only(ends);
    for (const AttemptEdge& edge : edges) {
      const RingMember& peer = next.order[edge.peer];
      const EdgeEnd end{peer.id, edge.role};
      const int connections = edge.role == RingRole::kExchange ? 1 : ring_.connections(next, fragment, end);
      const auto is_of_end = [&](const DialledAhead& one) { return one.fragment == fragment && one.end == end; };
      const int there =
          ring_.pool(fragment).count(end, peer.address) + static_cast<int>(std::ranges::count_if(to_open_, is_of_end));
      for (int lacks = connections - there; lacks > 0; --lacks) wanted.push_back({fragment, end, peer.address});
    }
  }
  return wanted;
}

std::size_t DialAhead::dial(const NextAttempts& next, const std::vector<Wanted>& wanted, const AbortSignal& abort) {
  std::atomic<std::size_t> turn = 0, dialled = 0;
  const auto dial_some = [&] {
    for (std::size_t i = turn++; i < wanted.size() && !abort.raised(); i = turn++) {
      if (dial_one(next, wanted[i], abort)) ++dialled;
    }
  };
  std::vector<std::jthread> threads;
  try {
    while (threads.size() + 1 < std::min(kDialAtOnce, wanted.size())) threads.emplace_back(dial_some);
  } catch (const std::system_error&) {
    // Those that there are do it.
  }
  dial_some();
  threads.clear();
  return dialled;
}

bool DialAhead::dial_one(const NextAttempts& next, const Wanted& wanted, const AbortSignal& abort) {
  const Deadline deadline = Deadline::after(next.silence_timeout);
  const RingAhead ahead{wanted.fragment, next.schedule};
  const auto greet = [&]() -> Result<std::pair<TlsConnection, RingAhead>> {
    ATOLL_ASSIGN_OR_RETURN(TlsConnection connection, TlsConnection::connect(wanted.address, ring_.dial_context,
                                                                            wanted.end.peer, deadline, &abort));
    ATOLL_RETURN_IF_ERROR(connection.write_all(encode(ahead), deadline, &abort));
    RingAheadBytes bytes;
    ATOLL_RETURN_IF_ERROR(connection.read_exact(bytes, deadline, &abort));
    ATOLL_ASSIGN_OR_RETURN(const RingAhead answer, decode_ring_ahead(bytes));
    if (answer.fragment != ahead.fragment || answer.schedule != ahead.schedule) {
      return Error{ErrorCode::kProtocol, fmt::format("{} answers for another attempt", wanted.end.peer.value)};
    }
    return std::pair(std::move(connection), answer);
  };
  Result<std::pair<TlsConnection, RingAhead>> greeted = greet();
  if (!greeted.ok()) {
    spdlog::debug("event=dial_ahead_failed peer={} reason=\"{}\"", wanted.end.peer.value, greeted.error().message);
    return false;
  }
  auto& [connection, answer] = *greeted;
  const bool sends = wanted.end.role != RingRole::kReceives;
  if (sends) tune_for_bulk(connection.fd(), next.congestion_control);
  const bool is_opened =
      sends && answer.takes_padding && next.bytes_to_each > 0 && !leads_to_this_machine(connection.fd());
  const double rtt_seconds = least_rtt(connection.fd()).count();
  std::vector<DialledAhead> one;
  one.push_back({wanted.fragment, wanted.end, wanted.address, std::move(connection)});
  const MutexLock lock(mutex_);
  if (abort.raised()) return false;
  if (wanted.end.role != RingRole::kExchange) {
    if (ring_.needs_more(next, wanted.fragment, wanted.end, rtt_seconds)) more_are_needed_ = true;
  }
  if (is_opened) {
    to_open_.push_back(std::move(one.front()));
  } else {
    give_to_pools(std::move(one));
  }
  return true;
}

void DialAhead::open_windows(const NextAttempts& next, const AbortSignal& abort) {
  std::vector<DialledAhead> connections;
  {
    const MutexLock lock(mutex_);
    if (abort.raised() || to_open_.empty()) return;
    if (is_limited(next)) return give_to_pools(std::exchange(to_open_, {}));
    connections = std::exchange(to_open_, {});
    opens_ = true;
  }
  connections = opened(next, std::move(connections), abort);
  const MutexLock lock(mutex_);
  give_to_pools(std::move(connections));
  opens_ = false;
  put_down_.notify_all();
}

std::vector<DialledAhead> DialAhead::opened(const NextAttempts& next, std::vector<DialledAhead> connections,
                                            const AbortSignal& abort) {
  const std::uint64_t fragments = next.schedule == Schedule::kDirect ? 1 : static_cast<std::uint64_t>(next.fragments);
  const std::uint64_t to_each = std::min(kMostPaddingOfPeer, fragments * next.bytes_to_each / kPaddingShare);
  LinkPacing& link = ring_.link(next.schedule, connections.front().end.peer);
  const UploadShare upload(ring_.under_way, next.most_bytes_per_second);
  WindowOpener opener(std::move(connections), link, upload, to_each);
  std::vector<pollfd> polls;
  while (!abort.raised() && opener.turn(Clock::now(), &abort)) {
    polls.assign({pollfd{abort.fd(), POLLIN, 0}});
    opener.append_polls(polls);
    (void)::poll(polls.data(), polls.size(), static_cast<int>(EdgePacing::kLookEvery.count()));
  }
  return opener.release();
}

}  // namespace atl
