// All that a peer says before an attempt trusts its connection, over real sockets and TLS, to a real listener and
// inbox: bytes that are no TLS, bytes after the handshake of a certified member, bytes on a connection that is kept
// between two attempts. A decoder of this file's own says what must come of them: delivered, refused with a named
// reason, or closed; and never slowly.
//
// Input: which of the three u8, surplus u8 (bytes that the attempt before had read already), then the peer's bytes.
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <optional>

#include "net/transport/peer_listener.h"
#include "net/transport/socket.h"
#include "tests/fakes/test_run.h"
#include "tests/fuzz/fuzz_input.h"

namespace atl::fuzz {
namespace {

// Far more than anything here takes; what ends only by it has hung.
constexpr std::chrono::seconds kLimit{20};

enum class Verdict { kHello, kIncomplete, kRefused, kImpostor };

struct Expected {
  Verdict verdict = Verdict::kIncomplete;
  ErrorCode reason{};
  RingHello hello;
};

Expected expected_of(ByteView said, const IslandId& peer, bool between_attempts) {
  for (;;) {
    if (said.size() < kRingHelloPrefixBytes) return {};
    const RingMessage message = ring_message_at(said.first(4));
    if (between_attempts && message == RingMessage::kReceipt) {
      if (said.size() < kRingReceiptBytes) return {};
      const auto receipt = decode_ring_receipt(said.first(kRingReceiptBytes));
      if (!receipt.ok()) return {Verdict::kRefused, receipt.error().code, {}};
      said = said.subspan(kRingReceiptBytes);
      continue;
    }
    if (!between_attempts || message != RingMessage::kFrame) break;
    if (said.size() < kRingFrameHeaderBytes) return {};
    const auto frame = decode_ring_frame_header(said.first<kRingFrameHeaderBytes>());
    if (!frame.ok() || frame->type != RingFrameType::kKeepalive) return {Verdict::kRefused, ErrorCode::kProtocol, {}};
    said = said.subspan(kRingFrameHeaderBytes);
  }
  if (!between_attempts && ring_message_at(said.first(4)) == RingMessage::kAhead) {
    const auto ahead = decode_ring_ahead(said.first(kRingHelloPrefixBytes));
    if (!ahead.ok()) return {Verdict::kRefused, ahead.error().code, {}};
    return {Verdict::kImpostor, {}, {}};  // nobody said that it may
  }
  const auto length = decode_ring_hello_prefix(said.first(kRingHelloPrefixBytes));
  if (!length.ok()) return {Verdict::kRefused, length.error().code, {}};
  if (said.size() < kRingHelloPrefixBytes + *length) return {};
  const auto hello = decode_ring_hello_body(said.subspan(kRingHelloPrefixBytes, *length));
  if (!hello.ok()) return {Verdict::kRefused, hello.error().code, {}};
  // The connection that is kept is of fragment 0.
  const bool may_speak = hello->from == peer && (!between_attempts || hello->fragment == FragmentId{});
  return {may_speak ? Verdict::kHello : Verdict::kImpostor, {}, *hello};
}

struct Run {
  TestRun run;
  Identity listening = run.island(0);
  Identity dialling = run.island(1);
  TlsContext dial_context = TlsContext::client(dialling, kAlpnRing).value();
};

Run& the_run() {
  static Run run;
  return run;
}

RingHello valid_hello() {
  RingHello hello;
  hello.from = the_run().dialling.name;
  hello.world_size = 2;
  hello.connection_count = 1;
  hello.payload_numel = 1;
  hello.bucket_numel = 256;
  return hello;
}

// An island that listens, alone in the world, for one input.
struct Listening {
  RingInbox inbox;
  AbortSignal abort;
  std::unique_ptr<PeerListener> listener =
      PeerListener::start(
          {.bind = {"127.0.0.1", 0}}, TlsContext::island_server(the_run().listening).value(),
          [](const PeerCertificate&) { return ok_status(); }, inbox, [](TlsConnection, const AbortSignal&) {})
          .value();

  Address address() const { return {"127.0.0.1", listener->port()}; }
  auto take(const RingHello& expected, Deadline deadline) { return inbox.take(expected, deadline, abort); }
};

TlsConnection dial(const Listening& listening) {
  return TlsConnection::connect(listening.address(), the_run().dial_context, the_run().listening.name,
                                Deadline::after(kLimit))
      .value();
}

bool is_closed(TlsConnection& connection) {
  std::byte byte{};
  const auto read = connection.try_read({&byte, 1});
  ATOLL_FUZZ_CHECK(!read.ok() || *read == 0);  // nothing travels back
  return !read.ok();
}

void check_closed(TlsConnection& connection) {
  const Deadline deadline = Deadline::after(kLimit);
  while (!is_closed(connection)) {
    ATOLL_FUZZ_CHECK(!deadline.expired());
    pollfd watched{connection.fd(), POLLIN, 0};
    (void)::poll(&watched, 1, 100);
  }
}

void check_delivered(Listening& listening, const RingHello& hello) {
  // Of several connections the others never come.
  const bool alone = hello.connection_count == 1;
  const auto taken = listening.take(hello, Deadline::after(alone ? kLimit : std::chrono::milliseconds(20)));
  ATOLL_FUZZ_CHECK(taken.ok() == alone);
  ATOLL_FUZZ_CHECK(taken.ok() || taken.error().code == ErrorCode::kTimeout);
}

void speak_without_tls(Listening& listening, ByteView said) {
  const UniqueFd socket = connect_tcp(listening.address(), Deadline::after(kLimit), nullptr, "fuzzer").value();
  (void)::send(socket.get(), said.data(), said.size(), MSG_NOSIGNAL);
  (void)::shutdown(socket.get(), SHUT_WR);
  const Deadline deadline = Deadline::after(kLimit);
  for (;;) {  // alerts, then the end
    ATOLL_FUZZ_CHECK(wait_ready(socket.get(), POLLIN, deadline, nullptr, "fuzzer").ok());
    std::byte answer[512];
    if (::recv(socket.get(), answer, sizeof answer, 0) <= 0) return;
  }
}

void speak_to_listener(Listening& listening, ByteView said) {
  const Expected expected = expected_of(said, the_run().dialling.name, false);
  TlsConnection connection = dial(listening);
  ATOLL_FUZZ_CHECK(said.empty() || connection.write_all(said, Deadline::after(kLimit)).ok());
  if (expected.verdict == Verdict::kHello) return check_delivered(listening, expected.hello);
  if (expected.verdict == Verdict::kRefused) {
    const auto taken = listening.take(valid_hello(), Deadline::after(kLimit));
    ATOLL_FUZZ_CHECK(!taken.ok() && taken.error().code == expected.reason);
  }
  if (expected.verdict != Verdict::kIncomplete) check_closed(connection);
}

void speak_between_attempts(Listening& listening, std::size_t surplus, ByteView said) {
  TlsConnection connection = dial(listening);
  ATOLL_FUZZ_CHECK(connection.write_all(encode(valid_hello()), Deadline::after(kLimit)).ok());
  auto edge = listening.take(valid_hello(), Deadline::after(kLimit));
  ATOLL_FUZZ_CHECK(edge.ok() && edge->connections.size() == 1);
  std::vector<RingInbox::Parked> parked;
  const ByteView read_before = said.first(std::min({surplus, said.size(), kRingFrameHeaderBytes - 1}));
  const ByteView rest = said.subspan(read_before.size());
  parked.push_back({std::move(edge->connections.front()), Bytes(read_before.begin(), read_before.end())});
  listening.inbox.park(valid_hello().fragment, std::move(parked));
  ATOLL_FUZZ_CHECK(rest.empty() || connection.write_all(rest, Deadline::after(kLimit)).ok());

  const Expected expected = expected_of(said, the_run().dialling.name, true);
  if (expected.verdict == Verdict::kHello) return check_delivered(listening, expected.hello);
  if (expected.verdict == Verdict::kIncomplete) {
    ATOLL_FUZZ_CHECK(!listening.take(valid_hello(), Deadline::after(std::chrono::milliseconds(0))).ok());
    return ATOLL_FUZZ_CHECK(!is_closed(connection));
  }
  const Deadline deadline = Deadline::after(kLimit);
  while (!is_closed(connection)) {
    ATOLL_FUZZ_CHECK(!deadline.expired());
    ATOLL_FUZZ_CHECK(!listening.take(valid_hello(), Deadline::after(std::chrono::milliseconds(1))).ok());
  }
}

}  // namespace
}  // namespace atl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace atl::fuzz;
  Input input(data, std::min<std::size_t>(size, 16'384));  // what the sockets hold without anybody reading
  const auto mode = input.get<std::uint8_t>() % 3;
  const auto surplus = input.get<std::uint8_t>();
  Listening listening;
  if (mode == 0) speak_without_tls(listening, input.rest());
  if (mode == 1) speak_to_listener(listening, input.rest());
  if (mode == 2) speak_between_attempts(listening, surplus, input.rest());
  return 0;
}
