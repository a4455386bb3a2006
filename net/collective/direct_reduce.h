// The reduce-scatter of formats that are not summed hop by hop (below 8 bits): each member sends its encoded weighted
// values of a chunk straight to the chunk's owner, who sums them in fp32, in the order of ranks, and encodes the sum
// once. The ring's all-gather, which runs beside this, takes each sub-chunk as soon as the board hears of it.
//
// A thread for each member that is sent to, which dials it, and one that receives and sums. They cannot lock up: a
// contribution depends on nothing but local input, and each connection goes at its own pace. What an owner has no room
// for yet, because another member is behind, it leaves unread; so it is the receiver that judges silence, and only
// while it reads: a sender whose bytes are not taken learns nothing from that. The ring's edges, with their keepalives,
// find out an owner that is gone.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/collective/all_reduce.h"
#include "net/collective/frame_board.h"
#include "net/collective/partial_sums.h"
#include "net/collective/ring_schedule.h"
#include "net/collective/upload_share.h"
#include "net/tls/context.h"
#include "net/transport/ring_inbox.h"

namespace atl {

class DirectReduce {
 public:
  // Received and not summed yet, all members together; but of each at least two sub-chunks of kSubChunkBytes.
  static constexpr std::size_t kMostWaitingBytes = std::size_t{24} << 20;

  // `silences`: of all members. References outlive this.
  DirectReduce(const AllReduceSpec& spec, Rank self, const RingPayload& payload, const PartialSums& sums,
               RingInbox& inbox, const TlsContext& dial_context, PeerSilences& silences, const UploadShare& upload);
  ~DirectReduce() { stop(); }
  DirectReduce(const DirectReduce&) = delete;
  DirectReduce& operator=(const DirectReduce&) = delete;

  // That the others send to this member, payload and framing.
  std::uint64_t bytes_expected() const;
  // Starts the threads. Sums and failures go to the board, which must outlive them: until stop().
  void start(FrameBoard& board);
  // Once the board has an end. Connections are closed: everybody has then read what was sent to it, or has failed.
  void stop();

  // After stop(): of those of whom something lacks, the one of whom least came.
  struct Behind {
    IslandId peer;
    std::uint64_t bytes = 0;
  };
  const std::optional<Behind>& furthest_behind() const { return furthest_behind_; }
  // After stop(): payload and framing, before TLS.
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  std::uint64_t bytes_received() const { return bytes_received_; }

 private:
  struct Contributor {
    Contributor(std::size_t rank_, TlsConnection connection_, SilenceLimit& silence_)
        : rank(rank_), connection(std::move(connection_)), silence(&silence_) {}
    std::size_t rank;
    TlsConnection connection;
    SilenceLimit* silence;     // while it is read
    std::vector<Bytes> slots;  // frame i in slot i modulo their number
    std::array<std::byte, kRingFrameHeaderBytes> header{};
    std::size_t received = 0;  // of header and payload of the frame at hand
    std::size_t frames = 0;    // whole ones
    std::uint64_t bytes = 0;   // of all
  };

  const RingMember& member(std::size_t rank) const { return spec_.order[rank]; }
  bool contributes(std::size_t rank) const { return member(rank).weight > 0; }
  RingHello hello_from(std::size_t rank) const;
  void fail(const Error& error, std::size_t peer);

  std::optional<double> limit_of_a_connection() const;
  void send_to(std::size_t owner);
  Status send_all(std::size_t owner);

  void receive_and_sum();
  bool take_connections();
  // False when the attempt has ended.
  bool receive_some(std::size_t summed);
  bool is_lost(const Contributor& from, std::size_t summed, Clock::time_point now) const;
  std::optional<Behind> find_furthest_behind() const;
  Status receive(Contributor& from);
  Status check_header(const Contributor& from) const;
  bool wants_more(const Contributor& from, std::size_t summed) const;
  void wait(std::size_t summed);

  const AllReduceSpec& spec_;
  const std::size_t self_;
  const RingPayload& payload_;
  const PartialSums& sums_;
  RingInbox& inbox_;
  const TlsContext& dial_context_;
  PeerSilences& silences_;
  const UploadShare& upload_;
  const std::vector<std::pair<std::uint32_t, RingSubChunk>> owned_;  // own frames of the ring's edge, in order
  FrameBoard* board_ = nullptr;                                      // from start() on
  AbortSignal stopped_;
  std::vector<Contributor> contributors_;  // by rank; the receiving thread's
  std::optional<std::size_t> awaited_;     // whose connection has not come; the receiving thread's
  std::optional<Behind> furthest_behind_;
  std::atomic<std::uint64_t> bytes_sent_{0};
  std::uint64_t bytes_received_ = 0;  // the receiving thread's
  std::vector<std::jthread> threads_;
};

}  // namespace atl
