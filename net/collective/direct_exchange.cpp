#include "net/collective/direct_exchange.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "net/collective/canonical_digest.h"
#include "net/collective/edge_monitor.h"
#include "net/collective/edge_pacing.h"
#include "net/collective/ring_edges.h"
#include "net/transport/socket.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kArrivalsEvery{5};  // while bytes move

std::uint64_t bytes_of(const std::vector<RingSubChunk>& sub_chunks) {
  std::uint64_t sum = 0;
  for (const RingSubChunk& sub_chunk : sub_chunks) sum += sub_chunk.bytes;
  return sum;
}

std::chrono::milliseconds look_interval(std::chrono::milliseconds silence_timeout) {
  return std::clamp<std::chrono::milliseconds>(keepalive_interval(silence_timeout) / 2, std::chrono::milliseconds(1),
                                               EdgePacing::kLookEvery);
}

}  // namespace

DirectExchange::DirectExchange(const AllReduceSpec& spec, Rank self, const RingPayload& payload,
                               const PartialSums& sums, std::span<std::byte> canonical, ConnectionPool& pool,
                               RingInbox& inbox, LinkPacing& link, PeerSilences& silences, const UploadShare& upload)
    : spec_(spec),
      self_(static_cast<std::size_t>(self.value)),
      first_((self_ + 1) % spec.order.size()),
      payload_(payload),
      sums_(sums),
      pool_(pool),
      inbox_(inbox),
      link_(link),
      silences_(silences),
      upload_(upload),
      own_(owned_sub_chunks(payload, static_cast<int>(spec.order.size()), self)),
      pieces_(payload),
      exchange_{spec_, self_, payload_, sums, canonical, own_, pieces_},
      look_every_(look_interval(spec.silence_timeout)),
      dialler_(pool) {
  for (const AttemptEdge& edge : edges_of(spec.order, Schedule::kDirect, self_)) {
    members_.emplace_back(exchange_, edge, edge.peer == first_ ? 0 : slots());
  }
}

// Of each member but the one that a sum begins with.
std::size_t DirectExchange::slots() const {
  const std::size_t members = std::max<std::size_t>(spec_.order.size(), 3) - 2;
  return std::max<std::size_t>(kMostWaitingBytes / kSubChunkBytes / members, 2);
}

std::variant<AllReduceReport, AllReduceFailure> DirectExchange::run(const AbortSignal& abort) {
  begin();
  Failed failure = exchange(abort);
  if (failure && failure->error.code == ErrorCode::kPeerLost && abort.raised()) {  // the others have ended, as told
    failure = aborted(abort.reason(), Clock::now());
  }
  pacing_.reset();
  if (!failure) {
    if (meter_) meter_->finish(counts(), Clock::now());
    AllReduceReport done = report();
    keep_connections();
    return done;
  }
  for (Member& member : members_) member.peer.close();
  pool_.keep_only({});
  inbox_.keep_parked_of(spec_.fragment, {});
  inbox_.give_up(hello_of(spec_, self_, RingRole::kExchange, payload_));
  failure->whole_buckets = pieces_.whole_buckets();
  return std::move(*failure);
}

void DirectExchange::begin() {
  began_ = last_look_ = last_arrivals_ = held_until_ = moving_since_ = Clock::now();
  std::vector<EdgeEnd> dialled;
  std::vector<IslandId> waited_for;
  std::uint64_t contributions = 0, sums = 0;
  for (const Member& member : members_) {
    const std::size_t rank = member.peer.rank();
    awaited_.push_back(rank);
    if (member.is_dialled) {
      dialled.push_back(end_of(rank));
    } else {
      waited_for.push_back(member.peer.id());
    }
    if (member.peer.contributes()) contributions += bytes_of(own_);
    sums += bytes_of(member.peer.theirs());
  }
  if (spec_.on_progress) meter_.emplace(sums, contributions, spec_.on_progress);
  pool_.keep_only(dialled);
  inbox_.keep_parked_of(spec_.fragment, waited_for, RingInbox::Kind::kExchange);
  sums_.owe_nothing_without_share(payload_);
  keep_limits(0, began_);
  for (Member& waited : members_) {
    if (waited.is_dialled) continue;
    auto resting = inbox_.take_resting(spec_.fragment, waited.peer.id(), RingInbox::Kind::kExchange);
    if (!resting) continue;
    ConnectionPool::Edge edge;
    edge.connections.push_back(std::move(*resting));
    edge.reused = 1;
    join(waited, std::move(edge), Hello::kDue);
  }
  for (const Member& member : members_) {
    const std::size_t rank = member.peer.rank();
    if (!member.is_dialled) continue;
    dialler_.dial(rank, end_of(rank), spec_.order[rank].address, Deadline::after(spec_.silence_timeout));
  }
}

DirectExchange::Failed DirectExchange::exchange(const AbortSignal& abort) {
  while (!complete()) {
    const auto now = Clock::now();
    // The timeout may end late, by a machine that slept or a process that was stopped: what came meanwhile is counted
    // before anybody is blamed.
    Failed lost;
    if (now - last_look_ >= look_every_) lost = look(now);
    if (abort.raised()) return aborted(abort.reason(), now);
    if (lost) return lost;
    if (!awaited_.empty() && now - last_arrivals_ >= kArrivalsEvery) {
      last_arrivals_ = now;
      if (Failed failure = take_dialled()) return failure;
      if (Failed failure = take_arrived()) return failure;
    }
    bool moved = false;
    if (Failed failure = receive(now, moved)) return failure;
    moved = sum_next() || moved;
    if (Failed failure = send(now, moved)) return failure;
    if (!moved && !hash_piece()) wait(abort);
  }
  return std::nullopt;
}

bool DirectExchange::complete() const {
  const auto is_done = [](const Member& member) {
    return member.peer.joined() && !member.peer.owes() && member.peer.all_sent();
  };
  return summed_ == own_.size() && pieces_.all_hashed() && std::ranges::all_of(members_, is_done);
}

// ---- connections
// ----------------------------------------------------------------------------------------------------

DirectExchange::Failed DirectExchange::failed(const Error& error, std::size_t rank) const {
  const bool is_silent = error.code == ErrorCode::kTimeout;
  const bool never_met = error.code == ErrorCode::kUnreachable || (is_silent && !member(rank).peer.joined());
  return AllReduceFailure{error, spec_.order[rank].id, {}, is_silent, {}, never_met};
}

void DirectExchange::join(Member& member, ConnectionPool::Edge edge, Hello hello) {
  const auto now = Clock::now();
  if (std::ranges::none_of(members_, [](const Member& m) { return m.peer.joined(); })) moving_since_ = now;
  reused_ += edge.reused;
  TlsConnection& connection = edge.connections.front();
  // The dialler keeps its own warm.
  if (!member.is_dialled && since_last_sent(connection.fd()) > kRest) spare_bbr_its_probe(connection.fd());
  tune_for_bulk(connection.fd(), spec_.congestion_control);
  if (spec_.download != nullptr) limit_receiving(connection.fd(), receives_at_most_);
  if (pacing_) {
    pacing_->add(connection.fd());
  } else {
    pacing_.emplace(link_, std::vector<int>{connection.fd()}, upload_);
  }
  member.retransmitted_before = tcp_progress(connection.fd()).bytes_retransmitted;
  member.peer.join(std::move(connection), hello == Hello::kCame);
  if (!may_have_left(member)) watch(member, now);
}

void DirectExchange::watch(Member& member, Clock::time_point now) {
  member.watch.emplace(member.peer.id(), spec_.silence_timeout, silences_.at(member.peer.id()), now);
}

bool DirectExchange::may_have_left(const Member& member) const {
  return member.peer.joined() && !member.peer.greeted() && !member.is_dialled;
}

void DirectExchange::leave(Member& member) {
  pacing_->remove(member.peer.fd());
  member.peer.leave();
  --reused_;
}

bool DirectExchange::leaves(Member& member, const Error& error) {
  if (error.code != ErrorCode::kPeerLost || !may_have_left(member)) return false;
  leave(member);
  return true;
}

DirectExchange::Failed DirectExchange::take_dialled() {
  while (std::optional<PeerDialler::Came> came = dialler_.take()) {
    if (!came->edge.ok()) return failed(came->edge.error(), came->rank);
    join(member(came->rank), std::move(*came->edge), Hello::kDue);
  }
  std::erase_if(awaited_, [&](std::size_t rank) { return member(rank).peer.greeted(); });
  return std::nullopt;
}

// From those that this member dials nothing may come in this attempt: what does tells that they think otherwise of it.
DirectExchange::Failed DirectExchange::take_arrived() {
  std::vector<RingHello> expected;
  for (const std::size_t rank : awaited_) expected.push_back(hello_of(spec_, rank, RingRole::kExchange, payload_));
  while (std::optional<RingInbox::Came> came = inbox_.try_take(expected)) {
    const std::size_t rank = awaited_[came->index];
    if (!came->edge.ok()) return failed(came->edge.error(), rank);
    const std::size_t count = came->edge->connections.size();
    if (member(rank).is_dialled || count != 1) {
      const std::string what = count != 1 ? fmt::format("{} connections instead of one", count)
                                          : "a dial, which is this island's part: their orders of ranks differ";
      return failed(
          {ErrorCode::kProtocol, fmt::format("{} began the exchange with {}", spec_.order[rank].id.value, what)}, rank);
    }
    if (may_have_left(member(rank))) leave(member(rank));
    join(member(rank), {std::move(came->edge->connections), came->edge->reused}, Hello::kCame);
    awaited_.erase(awaited_.begin() + static_cast<std::ptrdiff_t>(came->index));
    expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(came->index));
  }
  return std::nullopt;
}

void DirectExchange::keep_connections() {
  for (Member& member : members_) {
    std::optional<RingInbox::Parked> kept = member.peer.release();
    if (!kept) continue;
    const std::size_t rank = member.peer.rank();
    if (!member.is_dialled) {
      std::vector<RingInbox::Parked> parked;
      parked.push_back(std::move(*kept));
      inbox_.park(spec_.fragment, std::move(parked), RingInbox::Kind::kExchange);
    } else if (kept->surplus.empty()) {  // the pool keeps none of which half a message was read
      std::vector<TlsConnection> connections;
      connections.push_back(std::move(kept->connection));
      pool_.give_back(end_of(rank), spec_.order[rank].address, std::move(connections));
    }
  }
}

// ---- what moves
// ----------------------------------------------------------------------------------------------------

DirectExchange::Failed DirectExchange::receive(Clock::time_point now, bool& moved) {
  DownloadPace* const pace = spec_.download;
  turn_ = (turn_ + 1) % members_.size();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (pace != nullptr) held_until_ = pace->may_read_at(DownloadPace::Use::kRing, now);
    if (held_until_ > now) break;
    Member& from = members_[(turn_ + i) % members_.size()];
    const std::size_t most = pace != nullptr ? pace->at_once(DownloadPace::Use::kRing) : kSubChunkBytes;
    const Result<std::size_t> count = from.peer.receive(most, summed_);
    if (!count.ok() && leaves(from, count.error())) continue;
    if (!count.ok()) return failed(count.error(), from.peer.rank());
    if (pace != nullptr) pace->has_read(DownloadPace::Use::kRing, *count, now);
    if (const auto patience = from.peer.take_patience(); patience && from.watch) from.watch->vouch(*patience, now);
    moved = moved || *count > 0;
  }
  return std::nullopt;
}

bool DirectExchange::lacks(const Member& member) const {
  return member.peer.contributes() && member.peer.contributions() <= summed_;
}

// The next own sub-chunk, when everybody's contribution to it is there: in the order in which a ring passes them.
bool DirectExchange::sum_next() {
  if (summed_ == own_.size() || std::ranges::any_of(members_, [&](const Member& m) { return lacks(m); })) return false;
  const RingSubChunk& sub_chunk = own_[summed_];
  const std::size_t world_size = spec_.order.size();
  if (!member(first_).peer.contributes()) sums_.begin_with_zeros(sub_chunk);
  for (std::size_t rank = (first_ + 1) % world_size; rank != self_; rank = (rank + 1) % world_size) {
    const ExchangePeer& from = member(rank).peer;
    if (from.contributes()) sums_.add_contribution(sub_chunk, from.contribution(summed_));
  }
  sums_.add_own(sub_chunk);
  pieces_.count(sub_chunk.first_byte, sub_chunk.bytes);
  ++summed_;
  return true;
}

DirectExchange::Failed DirectExchange::send(Clock::time_point now, bool& moved) {
  for (Member& to : members_) {
    const Result<std::size_t> count = to.peer.send(summed_);
    if (!count.ok() && leaves(to, count.error())) continue;
    if (!count.ok()) return failed(count.error(), to.peer.rank());
    if (*count > 0 && to.watch) to.watch->spoke(now);
    moved = moved || *count > 0;
  }
  return std::nullopt;
}

bool DirectExchange::hash_piece() {
  const std::optional<std::size_t> piece = pieces_.take_to_hash();
  if (!piece) return false;
  const PieceHash hash = hash_of_piece(exchange_.canonical, *piece);
  if (spec_.on_final) {
    const std::size_t offset = *piece * kDigestPieceBytes;
    spec_.on_final(offset, std::min(kDigestPieceBytes, exchange_.canonical.size() - offset));
  }
  pieces_.hashed(*piece, hash);
  return true;
}

void DirectExchange::wait(const AbortSignal& abort) {
  const auto now = Clock::now();
  polls_.assign({pollfd{abort.fd(), POLLIN, 0}});
  for (const Member& member : members_) polls_.push_back(member.peer.poll_request(summed_, held_until_ <= now));
  if (!awaited_.empty()) {
    std::vector<IslandId> peers;
    for (const std::size_t rank : awaited_) peers.push_back(spec_.order[rank].id);
    polls_.push_back({dialler_.fd(), POLLIN, 0});
    inbox_.append_polls(spec_.fragment, peers, polls_);
    last_arrivals_ = {};  // look at once, when this ends
  }
  auto until = last_look_ + look_every_;
  if (held_until_ > now) until = std::min(until, held_until_);
  (void)::poll(polls_.data(), polls_.size(), Deadline::at(until).poll_milliseconds());
}

// ---- who lives
// ----------------------------------------------------------------------------------------------------

PeerWatch::Facts DirectExchange::facts_of(const Member& member, bool held) const {
  return {.awaits_hello = !member.peer.greeted(),
          .owes = member.peer.owes(),
          .is_read = member.peer.reads(summed_) && !held,
          .is_owed = !member.peer.all_sent(),
          .data = member.peer.data_received(),
          .tcp = tcp_progress(member.peer.fd()),
          .others_lost_all = most_others_lost_all(member)};
}

// By the last look.
bool DirectExchange::most_others_lost_all(const Member& but) const {
  std::size_t others = 0, lost = 0;
  for (const Member& member : members_) {
    if (&member == &but || !member.watch || member.peer.closed()) continue;
    ++others;
    lost += member.watch->lost_all() ? 1 : 0;
  }
  return 2 * lost > others;
}

DirectExchange::Failed DirectExchange::look(Clock::time_point now) {
  const bool held = spec_.download != nullptr && spec_.download->may_read_at(DownloadPace::Use::kRing, now) > now;
  const bool slept = now - std::exchange(last_look_, now) > spec_.silence_timeout;
  std::size_t busy = 0;
  for (Member& member : members_) {
    if (!member.peer.joined() || may_have_left(member)) {
      // Who is dialled is named by what comes of it.
      if (member.is_dialled || now - began_ <= spec_.silence_timeout) continue;
      return failed(
          {ErrorCode::kTimeout, fmt::format("waiting for {} to begin the exchange: it did not within the time "
                                            "allowed",
                                            member.peer.id().value)},
          member.peer.rank());
    }
    if (member.peer.closed()) continue;
    if (!member.watch) watch(member, now);  // it has greeted since
    const PeerWatch::Facts facts = facts_of(member, held);
    busy += member.peer.is_sending() || facts.tcp.bytes_unsent > 0 ? 1 : 0;
    if (Failed failure = member.watch->look(facts, now, slept)) return failure;
    if (member.watch->keepalive_due(now)) member.peer.ask_for_keepalive(patience(now));
  }
  keep_limits(busy, now);
  if (meter_) meter_->look(counts(), now);
  return std::nullopt;
}

// How long sums wait yet for those whose contributions lack; less by what a hop takes off.
std::chrono::milliseconds DirectExchange::patience(Clock::time_point now) const {
  std::optional<Clock::time_point> until;
  for (const Member& member : members_) {
    if (!lacks(member) || summed_ == own_.size() || !member.watch) continue;
    until = std::min(until.value_or(Clock::time_point::max()), member.watch->waits_until());
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until.value_or(now) - now);
  return std::max(left - patience_of_a_hop(spec_.silence_timeout), std::chrono::milliseconds(0));
}

// Of all connections together, by so many of them that have something to send; the owner's word may have changed.
void DirectExchange::keep_limits(std::size_t busy, Clock::time_point now) {
  if (pacing_) pacing_->look(now, busy);
  const std::optional<double> allowed = spec_.download != nullptr ? spec_.download->allowed() : std::nullopt;
  const auto receives = allowed ? std::optional(*allowed / static_cast<double>(members_.size())) : std::nullopt;
  if (receives == std::exchange(receives_at_most_, receives)) return;
  for (const Member& member : members_) {
    if (member.peer.joined()) limit_receiving(member.peer.fd(), receives);
  }
}

// On a dead link one end's timeout ends the attempt for everybody: the others say what they saw until then.
AllReduceFailure DirectExchange::aborted(const std::string& reason, Clock::time_point now) const {
  std::optional<PeerWatch::Suspicion> worst;
  for (const Member& member : members_) {
    std::optional<PeerWatch::Suspicion> one;
    if (member.watch && !member.peer.closed()) one = member.watch->suspicion(now);
    if (!member.watch && !member.peer.greeted() && now - began_ > spec_.silence_timeout / 2) {
      one = PeerWatch::Suspicion{{{}, member.peer.id(), {}, /*silent=*/true}, began_};
    }
    const auto badness = [](const PeerWatch::Suspicion& what) { return std::pair(!what.failure.silent, what.since); };
    if (one && (!worst || badness(*one) < badness(*worst))) worst = std::move(one);
  }
  AllReduceFailure failure = worst ? std::move(worst->failure) : AllReduceFailure{};
  failure.error = {ErrorCode::kAborted, reason};
  return failure;
}

// ---- what is told
// ----------------------------------------------------------------------------------------------------

ProgressMeter::Counts DirectExchange::counts() const {
  ProgressMeter::Counts counts;
  for (const Member& member : members_) {
    counts.ring_bytes += member.peer.sum_bytes();
    counts.direct_bytes += member.peer.contribution_bytes();
    counts.sent_bytes += member.peer.bytes_sent();
  }
  return counts;
}

AllReduceReport DirectExchange::report() const {
  AllReduceReport report{.digest = pieces_.digest()};
  report.hops = 2;
  report.connections = static_cast<int>(members_.size());
  report.connections_reused = reused_;
  for (const Member& member : members_) {
    report.bytes_sent += member.peer.bytes_sent();
    report.bytes_received += member.peer.bytes_received();
    report.bytes_retransmitted += tcp_progress(member.peer.fd()).bytes_retransmitted - member.retransmitted_before;
  }
  const ExchangePeer& next = member(first_).peer;
  const ExchangePeer& previous = member((self_ + spec_.order.size() - 1) % spec_.order.size()).peer;
  const double seconds = std::max(Seconds(Clock::now() - moving_since_).count(), 1e-6);
  report.next = next.id();
  report.previous = previous.id();
  report.bytes_per_second = static_cast<double>(next.bytes_sent()) / seconds;
  report.bytes_per_second_received = static_cast<double>(previous.bytes_received()) / seconds;
  report.link_bytes_per_second = report.bytes_per_second;
  report.rtt_seconds = least_rtt(next.fd()).count();
  report.congestion_control = congestion_control(next.fd());
  return report;
}

}  // namespace atl
