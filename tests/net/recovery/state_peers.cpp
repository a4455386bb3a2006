#include "tests/net/recovery/state_peers.h"

#include <fmt/format.h>

#include <random>

#include "net/recovery/state_server.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kPatience{10};

std::vector<float> noise(std::uint64_t count, std::uint32_t seed) {
  std::minstd_rand generator(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(generator()) * 1e-6F;
  return values;
}

// Counts, and spoils what it passes on.
class SpoiledState : public OuterStateSource {
 public:
  SpoiledState(const OuterStateSource& state, Behaviour behaviour, std::atomic<int>& asked)
      : state_(state), behaviour_(behaviour), asked_(asked) {}

  Result<StateManifest> manifest() const override { return state_.manifest(); }
  Result<Bytes> copy_chunk(OuterStep version, std::uint64_t index) const override {
    ++asked_;
    if (behaviour_ == Behaviour::kMovesOn) return Error{ErrorCode::kNotFound, "moved on"};
    Result<Bytes> copied = state_.copy_chunk(version, index);
    if (!copied.ok()) return copied;
    Bytes chunk = std::move(copied).value();
    if (behaviour_ == Behaviour::kLies) chunk[chunk.size() / 2] ^= std::byte{1};
    return chunk;
  }

 private:
  const OuterStateSource& state_;
  Behaviour behaviour_;
  std::atomic<int>& asked_;
};

}  // namespace

FakeState::FakeState(OuterStep version, std::uint64_t numel, std::uint32_t seed)
    : parameters_(noise(numel, seed)),
      momentum_(noise(numel, seed + 1)),
      manifest_(make_state_manifest(version, parameters_, momentum_)) {}

Result<Bytes> FakeState::copy_chunk(OuterStep version, std::uint64_t index) const {
  if (version != manifest_.version) return Error{ErrorCode::kNotFound, "another version"};
  Bytes all;
  for (const std::span<const float> half : {std::span(parameters_), std::span(momentum_)}) {
    const ByteView bytes = std::as_bytes(of_chunk(half, index));
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

StatePeer::StatePeer(const Identity& identity, const OuterStateSource& state, Behaviour behaviour,
                     const HttpsPaceLimits& pace, const RoundLog* rounds, std::optional<double> upload_bytes_per_second,
                     std::string host)
    : name_(identity.name),
      host_(std::move(host)),
      state_(state),
      behaviour_(behaviour),
      pace_(pace),
      serving_pace_(upload_bytes_per_second) {
  if (rounds != nullptr) rounds_.emplace(*rounds);
  PeerListenerOptions options;
  options.bind = {host_, 0};
  const auto admit = [](const PeerCertificate&) { return ok_status(); };
  const auto handler = [this](TlsConnection connection, HttpSession& session) {
    ++serving_;
    serve(std::move(connection), session);
    --serving_;
  };
  listener_ = PeerListener::start(options, TlsContext::island_server(identity).value(), admit, inbox_, handler).value();
}

void StatePeer::serve(TlsConnection connection, HttpSession& session) {
  if (behaviour_ == Behaviour::kDies || behaviour_ == Behaviour::kStalls) return serve_badly(connection, session);
  const SpoiledState spoiled(state_, behaviour_, chunks_asked_);
  serve_state(std::move(connection), {spoiled, rounds_ ? &*rounds_ : nullptr, serving_pace_}, session, pace_);
}

// First and last byte.
std::optional<std::pair<std::size_t, std::size_t>> range_of(const std::string& head) {
  std::pair<std::size_t, std::size_t> range;
  const std::size_t at = head.find("ange: bytes=");
  if (at == std::string::npos) return std::nullopt;
  if (std::sscanf(head.c_str() + at, "ange: bytes=%zu-%zu", &range.first, &range.second) != 2) return std::nullopt;
  return range;
}

void StatePeer::serve_badly(TlsConnection& connection, const AbortSignal& abort) {
  for (;;) {
    if (behaviour_ == Behaviour::kDies && chunks_asked_ > 0) return;
    const std::string head = read_request_head(connection, abort);
    if (head.empty()) return;
    const bool wants_manifest = head.starts_with("GET /state/manifest ");
    const Bytes chunk = wants_manifest ? Bytes{} : state_.copy_chunk(state_.manifest()->version, 0).value();
    std::string body = wants_manifest ? state_.manifest()->to_json() : to_string(ByteView(chunk));
    const auto part = range_of(head);
    std::string partial;
    if (part) {
      partial =
          fmt::format("206 Partial Content\r\nContent-Range: bytes {}-{}/{}", part->first, part->second, body.size());
      body = body.substr(part->first, part->second - part->first + 1);
    }
    const std::string start =
        fmt::format("HTTP/1.1 {}\r\nContent-Length: {}\r\n\r\n", part ? partial : "200 OK", body.size());
    if (!wants_manifest) ++chunks_asked_;
    const std::string sent = start + (wants_manifest ? body : body.substr(0, body.size() / 2));
    if (!connection.write_all(as_bytes(sent), Deadline::after(kPatience), &abort).ok()) return;
    if (wants_manifest) continue;
    std::byte ignored{};
    if (behaviour_ == Behaviour::kStalls) {
      static_cast<void>(connection.read_some({&ignored, 1}, Deadline::after(kPatience), &abort));
    }
    return;
  }
}

Result<FetchedState> fetch_whole_state(const Identity& self, const std::vector<StateSourceAddress>& sources,
                                       OuterStep version, const std::string& tree_hash_hex, std::uint64_t numel,
                                       const AbortSignal& abort, const FetchProgress& progress,
                                       const StateFetchOptions& options) {
  const auto all = static_cast<std::int64_t>(numel);
  FetchModel model{.numel = numel, .fragments = {Fragment{{{0, all}}, all}}};
  ATOLL_ASSIGN_OR_RETURN(StateFetch fetch, StateFetch::create(self, std::move(model), {}, options));
  ATOLL_RETURN_IF_ERROR(fetch.run({version, tree_hash_hex}, sources, abort, progress));
  return fetch.state().release(version);
}

std::string read_request_head(TlsConnection& connection, const AbortSignal& abort) {
  std::string head;
  char next = 0;
  while (!head.ends_with("\r\n\r\n") && head.size() < 16 * 1024) {
    const auto count =
        connection.read_some({reinterpret_cast<std::byte*>(&next), 1}, Deadline::after(kPatience), &abort);
    if (!count.ok() || *count == 0) return {};
    head += next;
  }
  return head;
}

}  // namespace atl
