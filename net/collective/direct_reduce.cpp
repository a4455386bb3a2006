#include "net/collective/direct_reduce.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "net/collective/ring_edges.h"
#include "net/transport/socket.h"

namespace atl {
namespace {

// A wait that something else ends: the board's end stops it.
constexpr std::chrono::hours kUntilStopped{24 * 365};
constexpr int kTickMilliseconds = 100;
constexpr std::size_t kMostSlots = 16;

std::vector<std::pair<std::uint32_t, RingSubChunk>> chunks_owned_by(std::size_t rank, const RingPayload& payload,
                                                                    std::size_t world_size) {
  const EdgeSchedule edge(payload, static_cast<int>(world_size), Rank{static_cast<std::int32_t>(rank)});
  std::vector<std::pair<std::uint32_t, RingSubChunk>> owned;
  for (std::uint32_t i = edge.next_own(0); i < edge.frames(); i = edge.next_own(i + 1)) {
    owned.emplace_back(i, edge.frame(i));
  }
  return owned;
}

}  // namespace

DirectReduce::DirectReduce(const AllReduceSpec& spec, Rank self, const RingPayload& payload, const PartialSums& sums,
                           RingInbox& inbox, const TlsContext& dial_context, PeerSilences& silences,
                           const UploadShare& upload)
    : spec_(spec),
      self_(static_cast<std::size_t>(self.value)),
      payload_(payload),
      sums_(sums),
      inbox_(inbox),
      dial_context_(dial_context),
      silences_(silences),
      upload_(upload),
      owned_(chunks_owned_by(self_, payload, spec.order.size())) {}

RingHello DirectReduce::hello_from(std::size_t rank) const {
  return hello_of(spec_, rank, RingRole::kContributions, payload_);
}

void DirectReduce::fail(const Error& error, std::size_t peer) {
  board_->fail({error.with_context("contributions"), member(peer).id, {}, error.code == ErrorCode::kTimeout});
}

std::uint64_t DirectReduce::bytes_expected() const {
  std::uint64_t from_each = 0, contributors = 0;
  for (const auto& [sequence, sub_chunk] : owned_) from_each += kRingFrameHeaderBytes + sub_chunk.bytes;
  for (std::size_t rank = 0; rank < spec_.order.size(); ++rank) contributors += rank != self_ && contributes(rank);
  return contributors * from_each;
}

void DirectReduce::start(FrameBoard& board) {
  board_ = &board;
  sums_.owe_nothing_without_share(payload_);
  try {
    threads_.emplace_back([this] { receive_and_sum(); });
    for (std::size_t rank = 0; rank < spec_.order.size() && contributes(self_); ++rank) {
      if (rank != self_) threads_.emplace_back([this, rank] { send_to(rank); });
    }
  } catch (const std::system_error& error) {
    board.fail({{ErrorCode::kIo, std::string("cannot start a thread of the ring: ") + error.what()}, std::nullopt, {}});
  }
}

void DirectReduce::stop() {
  stopped_.raise("the attempt has ended");
  threads_.clear();
  if (!furthest_behind_) furthest_behind_ = find_furthest_behind();
  contributors_.clear();
}

// Nobody is read before all have come.
std::optional<DirectReduce::Behind> DirectReduce::find_furthest_behind() const {
  if (awaited_) return Behind{member(*awaited_).id, 0};
  std::optional<Behind> behind;
  for (const Contributor& from : contributors_) {
    const bool is_first = !behind || from.bytes < behind->bytes;
    if (from.frames < owned_.size() && is_first) behind = Behind{member(from.rank).id, from.bytes};
  }
  return behind;
}

// ---- to the owners
// ----------------------------------------------------------------------------------------------------

std::optional<double> DirectReduce::limit_of_a_connection() const {
  const std::optional<double> most = upload_.most_bytes_per_second();
  return most ? std::optional(*most / static_cast<double>(spec_.order.size() - 1)) : std::nullopt;
}

void DirectReduce::send_to(std::size_t owner) {
  if (Status status = send_all(owner); !status.ok()) fail(status.error(), owner);
}

Status DirectReduce::send_all(std::size_t owner) {
  const auto chunks = chunks_owned_by(owner, payload_, spec_.order.size());
  if (chunks.empty()) return ok_status();
  const RingMember& to = member(owner);
  const Deadline deadline = Deadline::after(spec_.silence_timeout);
  ATOLL_ASSIGN_OR_RETURN(TlsConnection connection,
                         TlsConnection::connect(to.address, dial_context_, to.id, deadline, &stopped_));
  tune_for_bulk(connection.fd(), spec_.congestion_control);
  std::optional<double> limit;
  ATOLL_RETURN_IF_ERROR(connection.write_all(encode(hello_from(self_)), deadline, &stopped_));
  std::optional<UploadShare::Contributions> sharing(std::in_place, upload_);
  Bytes frame;
  for (std::uint32_t i = 0; i < chunks.size(); ++i) {
    const RingSubChunk& sub_chunk = chunks[i].second;
    if (const auto now = limit_of_a_connection(); now != limit) limit_pacing(connection.fd(), limit = now);
    frame.resize(kRingFrameHeaderBytes + sub_chunk.bytes);
    encode({.phase = RingPhase::kReduceScatter,
            .round = spec_.round,
            .attempt = spec_.attempt,
            .fragment = spec_.fragment,
            .sequence = i,
            .length = sub_chunk.bytes,
            .offset = sub_chunk.first_byte},
           std::span(frame).first<kRingFrameHeaderBytes>());
    sums_.encode_contribution(sub_chunk, std::span(frame).subspan(kRingFrameHeaderBytes));
    ATOLL_RETURN_IF_ERROR(connection.write_all(frame, Deadline::after(kUntilStopped), &stopped_));
    bytes_sent_ += frame.size();
    board_->count_contribution_sent(frame.size());
  }
  sharing.reset();
  // Closed only when everybody has read everything: closing earlier could take back what is under way.
  pollfd ended{stopped_.fd(), POLLIN, 0};
  while (!stopped_.raised()) (void)::poll(&ended, 1, 1000);
  return ok_status();
}

// ---- from the contributors
// ----------------------------------------------------------------------------------------------------

bool DirectReduce::take_connections() {
  for (std::size_t rank = 0; rank < spec_.order.size(); ++rank) {
    if (rank == self_ || !contributes(rank)) continue;
    awaited_ = rank;
    // It dials when its own edges stand, for which it may have waited as long as this member did.
    auto taken = inbox_.take(hello_from(rank), Deadline::after(2 * spec_.silence_timeout), stopped_);
    if (!taken.ok()) {
      fail(taken.error(), rank);
      return false;
    }
    contributors_.emplace_back(rank, std::move(taken->connections.front()), silences_.at(member(rank).id).contributed);
  }
  awaited_.reset();
  const std::size_t fits = kMostWaitingBytes / kSubChunkBytes / std::max<std::size_t>(contributors_.size(), 1);
  for (Contributor& from : contributors_) {
    from.slots.resize(std::clamp<std::size_t>(fits, 2, kMostSlots));
    from.silence->begin(spec_.silence_timeout, Clock::now());
  }
  return true;
}

void DirectReduce::receive_and_sum() {
  if (owned_.empty() || !take_connections()) return;
  std::vector<std::span<const std::byte>> contributions(contributors_.size());
  std::vector<float> sum;
  for (std::size_t summed = 0; summed < owned_.size(); ++summed) {
    const auto lacks = [&](const Contributor& from) { return from.frames <= summed; };
    while (std::ranges::any_of(contributors_, lacks)) {
      if (!receive_some(summed)) return;
    }
    const auto& [sequence, sub_chunk] = owned_[summed];
    for (std::size_t i = 0; i < contributors_.size(); ++i) {
      const Contributor& from = contributors_[i];
      contributions[i] = from.slots[summed % from.slots.size()];
    }
    sum.resize(static_cast<std::size_t>(sub_chunk.numel));
    sums_.sum_contributions(sub_chunk, contributions, sum);
    board_->own_in_place(sequence);
  }
}

bool DirectReduce::wants_more(const Contributor& from, std::size_t summed) const {
  return from.frames < std::min(owned_.size(), summed + from.slots.size());
}

// For the whole timeout where nothing comes of most others that are read: it may be this end's link.
bool DirectReduce::is_lost(const Contributor& from, std::size_t summed, Clock::time_point now) const {
  const auto rtt_of = [](const Contributor& one) { return tcp_progress(one.connection.fd()).smoothed_rtt; };
  return from.silence->lost(now, rtt_of(from), [&] {
    std::size_t read = 0, silent = 0;
    for (const Contributor& other : contributors_) {
      if (&other == &from || !wants_more(other, summed)) continue;
      ++read;
      silent += other.silence->is_suspect(now, rtt_of(other)) ? 1 : 0;
    }
    return 2 * silent > read;
  });
}

bool DirectReduce::receive_some(std::size_t summed) {
  bool moved = false;
  const bool held =
      spec_.download != nullptr && spec_.download->wait(DownloadPace::Use::kRing, stopped_) > Clock::duration::zero();
  for (Contributor& from : contributors_) {
    const bool reads = wants_more(from, summed);
    // Nobody is silent who is not listened to.
    if (held || !reads) from.silence->excuse(Clock::now());
    if (!reads) continue;
    const std::uint64_t before = from.bytes;
    if (Status status = receive(from); !status.ok()) {
      fail(status.error(), from.rank);
      return false;
    }
    const auto now = Clock::now();
    const bool arrived = from.bytes != before;
    moved = moved || arrived;
    from.silence->look(now, arrived);
    if (!arrived && is_lost(from, summed, now)) {
      const Seconds time = now - from.silence->last_arrival();
      fail({ErrorCode::kTimeout, fmt::format("{} sent nothing for {:.1f} s", member(from.rank).id.value, time.count())},
           from.rank);
      return false;
    }
  }
  if (!moved) wait(summed);
  return !stopped_.raised();
}

void DirectReduce::wait(std::size_t summed) {
  std::vector<pollfd> polls{{stopped_.fd(), POLLIN, 0}};
  for (const Contributor& from : contributors_) {
    if (wants_more(from, summed)) polls.push_back({from.connection.fd(), from.connection.poll_events_for_read(), 0});
  }
  (void)::poll(polls.data(), polls.size(), kTickMilliseconds);
}

// At most about one frame, so that nobody keeps the others waiting.
Status DirectReduce::receive(Contributor& from) {
  const RingSubChunk& sub_chunk = owned_[from.frames].second;
  Bytes& slot = from.slots[from.frames % from.slots.size()];
  for (;;) {
    const bool in_header = from.received < kRingFrameHeaderBytes;
    const std::span<std::byte> room = in_header ? std::span(from.header).subspan(from.received)
                                                : std::span(slot).subspan(from.received - kRingFrameHeaderBytes);
    ATOLL_ASSIGN_OR_RETURN(const std::size_t count, from.connection.try_read(room));
    if (count == 0) return ok_status();
    from.received += count;
    bytes_received_ += count;
    from.bytes += count;
    if (spec_.download != nullptr) spec_.download->has_read(DownloadPace::Use::kRing, count, Clock::now());
    board_->count_contribution(count);
    if (from.received == kRingFrameHeaderBytes) {
      ATOLL_RETURN_IF_ERROR(check_header(from));
      slot.resize(sub_chunk.bytes);
    }
    if (from.received == kRingFrameHeaderBytes + sub_chunk.bytes) {
      from.received = 0;
      ++from.frames;
      return ok_status();
    }
  }
}

// Only the next frame of the owner's chunks is let past.
Status DirectReduce::check_header(const Contributor& from) const {
  const RingSubChunk& sub_chunk = owned_[from.frames].second;
  Result<RingFrameHeader> decoded = decode_ring_frame_header(from.header);
  if (!decoded.ok()) return decoded.error().with_context(from.connection.description());
  const RingFrameHeader expected{.phase = RingPhase::kReduceScatter,
                                 .round = spec_.round,
                                 .attempt = spec_.attempt,
                                 .fragment = spec_.fragment,
                                 .sequence = static_cast<std::uint32_t>(from.frames),
                                 .length = sub_chunk.bytes,
                                 .offset = sub_chunk.first_byte};
  if (*decoded == expected) return ok_status();
  return Error{
      ErrorCode::kProtocol,
      fmt::format(
          "{}: frame {} of round {} attempt {}, fragment {}, with {} bytes at {} instead of frame {} with {} at {}",
          from.connection.description(), decoded->sequence, decoded->round.value, decoded->attempt.value,
          decoded->fragment.value, decoded->length, decoded->offset, expected.sequence, expected.length,
          expected.offset)};
}

}  // namespace atl
