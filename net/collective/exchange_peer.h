// One other member in a direct exchange (direct_exchange.h): the connection to it, what it has sent, what it was sent.
// Believes nothing that the schedule does not say: of each kind of frame only the next one is let past. Never waits.
// Owned and used by the thread that runs the exchange.
#pragma once

#include <poll.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "net/base/bytes.h"
#include "net/base/result.h"
#include "net/collective/all_reduce.h"
#include "net/collective/final_pieces.h"
#include "net/collective/partial_sums.h"
#include "net/collective/ring_schedule.h"
#include "net/transport/ring_inbox.h"
#include "net/transport/tls_connection.h"

namespace atl {

// What every part of one exchange refers to. All of it outlives them.
struct ExchangeContext {
  const AllReduceSpec& spec;
  const std::size_t self;
  const RingPayload& payload;
  const PartialSums& sums;
  const std::span<std::byte> canonical;
  const std::vector<RingSubChunk>& own;  // whose sums this member makes
  FinalPieces& pieces;
};

class ExchangePeer {
 public:
  // `slots`: for contributions that came and are not summed yet; 0: they go straight to their place in the canonical
  // bytes, as what the sum begins with, and need none.
  ExchangePeer(const ExchangeContext& exchange, std::size_t rank, std::size_t slots);

  // `greeted`: the peer's hello has come. Else it is due, before anything else but resting keepalives.
  void join(TlsConnection connection, bool greeted);
  // As before join(): the peer will begin on another connection. Not once it has greeted.
  void leave();
  std::size_t rank() const { return rank_; }
  const IslandId& id() const { return exchange_.spec.order[rank_].id; }
  bool joined() const { return connection_.has_value(); }
  bool greeted() const { return greeted_; }
  bool closed() const { return closed_; }
  int fd() const { return connection_->fd(); }
  void close() { connection_.reset(); }
  const std::vector<RingSubChunk>& theirs() const { return theirs_; }  // whose sums it makes

  // ---- from it. `summed`: so many of the own sub-chunks are, whose contributions' places are free.
  // Something of this attempt has yet to come.
  bool owes() const { return !greeted_ || contributions_ < due_contributions_ || results_ < theirs_.size(); }
  // Whether it is read. Not while a contribution waits for its place.
  bool reads(std::size_t summed) const;
  // Takes what has come, at most about `most`; bytes moved.
  Result<std::size_t> receive(std::size_t most, std::size_t summed);
  std::size_t contributions() const { return contributions_; }  // whole ones
  bool contributes() const { return contributes_; }
  ByteView contribution(std::size_t index) const { return slots_[index % slots_.size()]; }
  // How long, by its last keepalive, it is still ready to wait for data itself; once.
  std::optional<std::chrono::milliseconds> take_patience() { return std::exchange(patience_, std::nullopt); }

  // ---- to it
  // Everything of this attempt has left for the kernel.
  bool all_sent() const;
  bool is_sending() const { return under_way_ || (joined() && connection_->has_unsent()); }
  // Sends what the socket takes now, at most about one frame; bytes moved.
  Result<std::size_t> send(std::size_t summed);
  // Unless something else is to be sent.
  void ask_for_keepalive(std::chrono::milliseconds patience) { keepalive_ = patience; }

  pollfd poll_request(std::size_t summed, bool may_read) const;
  // Payload and framing of frames, before TLS; and data alone.
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  std::uint64_t bytes_received() const { return bytes_received_; }
  std::uint64_t contribution_bytes() const { return contribution_bytes_; }
  std::uint64_t sum_bytes() const { return result_bytes_; }
  std::uint64_t data_received() const { return contribution_bytes_ + result_bytes_; }

  // After the attempt, for the next one; none when it is closed, or in the middle of a frame.
  std::optional<RingInbox::Parked> release();

 private:
  std::span<std::byte> room();
  bool has_room(std::size_t summed) const;
  bool in_payload() const { return greeted_ && received_ >= kRingFrameHeaderBytes; }
  const RingSubChunk& arriving() const;
  Status take_what_is_whole();
  Status check_hello();
  Status pass_over_keepalive();
  Status check_header();
  void take_frame();
  Error wrong(std::string_view what) const;

  bool begin_next(std::size_t summed);
  void begin_contribution();
  void begin_result();
  void begin_frame(RingPhase phase, std::size_t index, const RingSubChunk& sub_chunk, ByteView payload);
  RingFrameHeader header_of(RingPhase phase, std::size_t index, const RingSubChunk& sub_chunk) const;
  std::int64_t bucket_of(const RingSubChunk& sub_chunk) const;

  const ExchangeContext& exchange_;
  const std::size_t rank_;
  const std::vector<RingSubChunk> theirs_;  // whose sums the peer makes
  const bool contributes_;
  const std::size_t due_contributions_, due_to_it_;
  std::optional<TlsConnection> connection_;
  bool closed_ = false;  // by the peer, which owed nothing more

  bool greeted_ = false;
  bool next_attempt_ = false;                                    // its hello came where a frame could have
  Bytes hello_;                                                  // until greeted
  std::array<std::byte, kRingFrameHeaderBytes> header_bytes_{};  // of the frame at hand
  RingPhase phase_ = RingPhase::kReduceScatter;                  // of the frame at hand
  std::size_t received_ = 0;                                     // of hello, or of header and payload
  std::size_t contributions_ = 0, results_ = 0;                  // whole ones
  std::vector<Bytes> slots_;                                     // contribution i in slot i modulo their number
  std::optional<std::chrono::milliseconds> patience_;
  std::uint64_t bytes_received_ = 0, contribution_bytes_ = 0, result_bytes_ = 0;

  bool said_hello_ = false;
  bool under_way_ = false;
  Bytes head_;        // of what is under way
  ByteView payload_;  // of what is under way
  Bytes contribution_;
  std::size_t sent_ = 0;                                   // of both
  std::size_t contributions_sent_ = 0, results_sent_ = 0;  // begun
  std::optional<std::chrono::milliseconds> keepalive_;
  std::uint64_t bytes_sent_ = 0;
};

}  // namespace atl
