// The messages of a ring edge, as bytes from a peer: whatever they are, they are refused with kProtocol or
// kVersionUnsupported, or decode within the bounds that the header promises to bytes that encode alike.
#include <array>

#include "net/collective/frame_board.h"
#include "net/collective/ring_schedule.h"
#include "net/wire/ring_frame.h"
#include "tests/fuzz/fuzz_input.h"

namespace atl::fuzz {
namespace {

bool is_refusal(const Error& error) {
  return (error.code == ErrorCode::kProtocol || error.code == ErrorCode::kVersionUnsupported) && !error.message.empty();
}

void check_hello(ByteView bytes) {
  if (bytes.size() < kRingHelloPrefixBytes) {
    ATOLL_FUZZ_CHECK(!decode_ring_hello_prefix(bytes).ok());
    return;
  }
  const Result<std::size_t> length = decode_ring_hello_prefix(bytes.first(kRingHelloPrefixBytes));
  const ByteView body = bytes.subspan(kRingHelloPrefixBytes);
  if (!length.ok()) return ATOLL_FUZZ_CHECK(is_refusal(length.error()));
  ATOLL_FUZZ_CHECK(*length <= kMaxRingHelloBodyBytes);
  if (body.size() < *length) return;  // the rest has not come yet
  const Result<RingHello> hello = decode_ring_hello_body(body.first(*length));
  if (!hello.ok()) return ATOLL_FUZZ_CHECK(is_refusal(hello.error()));
  ATOLL_FUZZ_CHECK(hello->world_size >= 2 && hello->world_size <= kMaxRingIslands);
  ATOLL_FUZZ_CHECK(hello->from_rank.value >= 0 && hello->from_rank.value < hello->world_size);
  ATOLL_FUZZ_CHECK(hello->connection_count >= 1 && hello->connection_count <= kMaxConnectionsPerEdge);
  ATOLL_FUZZ_CHECK(hello->connection_index >= 0 && hello->connection_index < hello->connection_count);
  ATOLL_FUZZ_CHECK(hello->payload_numel <= kMaxPayloadNumel);
  ATOLL_FUZZ_CHECK(hello->bucket_numel >= 1 && hello->bucket_numel <= kMaxPayloadNumel);
  ATOLL_FUZZ_CHECK(hello->fragment.value < kMaxFragments);
  ATOLL_FUZZ_CHECK(!hello->from.value.empty() && hello->from.value.size() <= kMaxIslandIdBytes);
  const Bytes again = encode(*hello);
  ATOLL_FUZZ_CHECK(again.size() == kRingHelloPrefixBytes + *length);
  ATOLL_FUZZ_CHECK(std::equal(again.begin(), again.end(), bytes.begin()));
}

std::optional<RingFrameHeader> check_header(ByteView bytes) {
  const Result<RingFrameHeader> header = decode_ring_frame_header(bytes.first<kRingFrameHeaderBytes>());
  if (!header.ok()) {
    ATOLL_FUZZ_CHECK(is_refusal(header.error()));
    return std::nullopt;
  }
  ATOLL_FUZZ_CHECK(header->length <= kMaxRingFrameBytes);
  ATOLL_FUZZ_CHECK(header->fragment.value < kMaxFragments);
  std::array<std::byte, kRingFrameHeaderBytes> again;
  encode(*header, again);
  ATOLL_FUZZ_CHECK(std::equal(again.begin(), again.end(), bytes.begin()));
  return *header;
}

void check_receipt(ByteView bytes) {
  if (bytes.size() != kRingReceiptBytes) ATOLL_FUZZ_CHECK(!decode_ring_receipt(bytes).ok());
  if (bytes.size() < kRingReceiptBytes) return;
  const Result<RingReceipt> receipt = decode_ring_receipt(bytes.first(kRingReceiptBytes));
  if (!receipt.ok()) return ATOLL_FUZZ_CHECK(is_refusal(receipt.error()));
  ATOLL_FUZZ_CHECK(receipt->fragment.value < kMaxFragments);
  const RingReceiptMessage again = encode(*receipt);
  ATOLL_FUZZ_CHECK(std::equal(again.begin(), again.end(), bytes.begin()));
}

// Sequences of headers in whatever order, as the receiving lane takes them: a frame is let in once at most, and only
// what the schedule says; what it lets in adds up.
void check_stream(Input& input) {
  const RingPayload payload{WireFormat::kInt8Block, 1 + input.get<std::uint16_t>() % 4'000, 1'024, {}};
  const int world_size = 2 + input.get<std::uint8_t>() % 4;
  const EdgeSchedule inbound(payload, world_size, Rank{world_size - 1});
  const EdgeSchedule outbound(payload, world_size, Rank{0});
  FrameBoard board(payload, outbound, inbound, 1, 1);
  board.inbound_joined(1);
  std::vector<bool> seen(inbound.frames());
  std::uint32_t count = 0;
  while (!input.rest().empty()) {
    while (const auto sequence = board.take_to_send()) board.frame_sent(*sequence);
    const auto sequence = input.get<std::uint16_t>();
    if (sequence >= inbound.frames()) continue;
    const FrameBoard::Admission admission = board.admit(sequence);
    ATOLL_FUZZ_CHECK((admission == FrameBoard::Admission::kTwice) == seen[sequence]);
    if (admission != FrameBoard::Admission::kWelcome) continue;
    seen[sequence] = true;
    board.frame_in_place(sequence, inbound.frame(sequence), true);
    ATOLL_FUZZ_CHECK(board.all_received() == (++count == inbound.frames()));
  }
}

}  // namespace
}  // namespace atl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace atl;
  fuzz::Input input(data, size);
  const auto mode = input.get<std::uint8_t>() % 3;
  if (mode == 0) fuzz::check_hello(input.rest());
  if (mode == 1) fuzz::check_receipt(input.rest());
  if (mode == 1 && input.rest().size() >= kRingFrameHeaderBytes) (void)fuzz::check_header(input.rest());
  if (mode == 2) fuzz::check_stream(input);
  return 0;
}
