#include "net/recovery/state_server.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <optional>

#include "net/base/byte_range.h"
#include "net/mesh/link_probe.h"
#include "net/transport/socket.h"

namespace atl {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::chrono::milliseconds kLook{250};  // at the clock, while nothing moves
constexpr std::uint32_t kMaxHeaderBytes = 8 * 1024;
constexpr int kProbesOfConnection = 8;
constexpr std::string_view kManifestTarget = "/state/manifest";
constexpr std::string_view kChunkPrefix = "/state/";

// Beast's synchronous stream over a TlsConnection, at the peer's pace: whoever takes too long for a step is done. The
// reason of a failure does not matter here: the connection ends.
class BeastStream {
 public:
  BeastStream(TlsConnection& connection, HttpSession& session, const HttpsPaceLimits& pace)
      : connection_(connection), session_(session), pace_(pace), look_(std::min(kLook, pace.window / 4)) {}

  // Until the first bytes of a request are there. False when none comes.
  bool await_request() {
    pace_.wait_for_request(Clock::now(), tcp_progress(connection_.fd()).bytes_acknowledged);
    const bool has_come = wait(connection_.poll_events_for_read());
    session_.set_idle(false);
    return has_come;
  }
  void begin_header() { pace_.begin_header(Clock::now()); }
  void begin_answer() { pace_.begin_answer(Clock::now(), tcp_progress(connection_.fd()).bytes_acknowledged); }

  template <class Buffers>
  std::size_t read_some(const Buffers& buffers, error_code& error) {
    const asio::mutable_buffer buffer = first_of<asio::mutable_buffer>(buffers);
    error = {};
    while (buffer.size() > 0) {
      const auto count = connection_.try_read({static_cast<std::byte*>(buffer.data()), buffer.size()});
      if (count.ok() && *count > 0) return *count;
      if (!count.ok() || !wait(connection_.poll_events_for_read())) {
        error = asio::error::make_error_code(asio::error::connection_aborted);
        break;
      }
    }
    return 0;
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers, error_code& error) {
    const asio::const_buffer buffer = first_of<asio::const_buffer>(buffers);
    const std::size_t count = std::min(buffer.size(), kMostAtOnce);
    const bool written = write_all({static_cast<const std::byte*>(buffer.data()), count});
    error = written ? error_code() : asio::error::make_error_code(asio::error::connection_aborted);
    return written ? count : 0;
  }
  // Beast wants these to exist; only the ones above are called.
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers) {
    error_code error;
    const std::size_t count = read_some(buffers, error);
    if (error) throw boost::system::system_error(error);
    return count;
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers) {
    error_code error;
    const std::size_t count = write_some(buffers, error);
    if (error) throw boost::system::system_error(error);
    return count;
  }

 private:
  static constexpr std::size_t kMostAtOnce = 256 * 1024;

  bool write_all(ByteView bytes) {
    while (!bytes.empty()) {
      const auto count = connection_.try_write(bytes);
      if (!count.ok()) return false;
      bytes = bytes.subspan(*count);
      if (*count == 0 && !wait(connection_.poll_events_for_write())) return false;
    }
    while (connection_.has_unsent()) {
      if (!wait(connection_.poll_events_for_write()) || !connection_.try_flush().ok()) return false;
    }
    return true;
  }
  // For poll's events. False when this connection has had its time, or has to end.
  bool wait(short events) {
    for (;;) {
      const TcpProgress progress = tcp_progress(connection_.fd());
      if (pace_.is_over(Clock::now(), progress.bytes_acknowledged, progress.bytes_queued)) return false;
      session_.set_idle(pace_.is_idle());
      const Status ready =
          wait_ready(connection_.fd(), events, Deadline::after(look_), &session_.abort(), "serving a member");
      if (ready.ok() || ready.error().code != ErrorCode::kTimeout) return ready.ok();
    }
  }
  template <class Buffer, class Buffers>
  static Buffer first_of(const Buffers& buffers) {
    for (auto it = asio::buffer_sequence_begin(buffers); it != asio::buffer_sequence_end(buffers); ++it) {
      if (Buffer(*it).size() > 0) return Buffer(*it);
    }
    return {};
  }

  TlsConnection& connection_;
  HttpSession& session_;
  HttpsPace pace_;
  const std::chrono::milliseconds look_;
};

// What a request gets. `content` is the whole representation; the request's range of it is sent.
struct Answer {
  http::status status = http::status::ok;
  std::string_view type = "text/plain";
  Bytes content;
  std::string etag;
  std::string digest;  // the Repr-Digest field
};

Answer refuse(http::status status, std::string_view why) {
  return {status, "text/plain", Bytes(as_bytes(why).begin(), as_bytes(why).end()), {}, {}};
}

std::string etag_of(OuterStep version) { return fmt::format("\"{}\"", version.value); }

std::string repr_digest(const Digest& digest) {  // RFC 9530
  std::array<unsigned char, 48> text{};
  const int size = EVP_EncodeBlock(text.data(), reinterpret_cast<const unsigned char*>(digest.data()),
                                   static_cast<int>(digest.size()));
  return fmt::format("sha-256=:{}:",
                     std::string_view(reinterpret_cast<const char*>(text.data()), static_cast<std::size_t>(size)));
}

struct ChunkName {
  OuterStep version;
  std::uint64_t index = 0;
};

std::optional<ChunkName> parse_chunk_target(std::string_view target) {
  if (!target.starts_with(kChunkPrefix)) return std::nullopt;
  target.remove_prefix(kChunkPrefix.size());
  ChunkName name;
  const char* end = target.data() + target.size();
  const auto version = std::from_chars(target.data(), end, name.version.value);
  if (version.ec != std::errc() || version.ptr == end || *version.ptr != '/') return std::nullopt;
  const auto index = std::from_chars(version.ptr + 1, end, name.index);
  if (index.ec != std::errc() || index.ptr != end) return std::nullopt;
  return name;
}

Answer answer_manifest(const OuterStateSource& source) {
  const auto manifest = source.manifest();
  if (!manifest.ok()) return refuse(http::status::not_found, manifest.error().message);
  const std::string text = manifest->to_json();
  Answer answer{http::status::ok, "application/json", Bytes(as_bytes(text).begin(), as_bytes(text).end()), {}, {}};
  answer.etag = etag_of(manifest->version);
  answer.digest = repr_digest(sha256(answer.content));
  return answer;
}

Answer answer_chunk(const OuterStateSource& source, const ChunkName& name) {
  const auto manifest = source.manifest();
  if (!manifest.ok()) return refuse(http::status::not_found, manifest.error().message);
  const auto moved_on = [] {
    return refuse(http::status::precondition_failed, "this island's outer state is of another version");
  };
  if (manifest->version != name.version) return moved_on();
  if (name.index >= manifest->chunk_sha256.size()) return refuse(http::status::not_found, "the state has fewer chunks");
  auto chunk = source.copy_chunk(name.version, name.index);
  if (!chunk.ok() && chunk.error().code == ErrorCode::kNotFound) return moved_on();
  if (!chunk.ok()) return refuse(http::status::internal_server_error, chunk.error().message);
  return {http::status::ok, "application/octet-stream", std::move(chunk).value(), etag_of(name.version),
          repr_digest(manifest->chunk_sha256[name.index])};
}

// TLS does not compress, so that any bytes do.
Answer answer_probe(std::string_view count) {
  std::uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), bytes);
  if (error != std::errc() || end != count.data() + count.size() || bytes == 0 || bytes > kMaxProbeBytes) {
    return refuse(http::status::bad_request, "a probe is of 1 to 16777216 bytes");
  }
  return {http::status::ok, "application/octet-stream", Bytes(bytes, std::byte{0x5a}), {}, {}};
}

Answer answer_to(const http::request<http::empty_body>& request, const OuterStateSource& source) {
  if (request.method() != http::verb::get) return refuse(http::status::method_not_allowed, "only GET is served here");
  const auto raw = request.target();
  const std::string_view target(raw.data(), raw.size());
  if (target == kManifestTarget) return answer_manifest(source);
  if (target.starts_with(kProbeTarget)) return answer_probe(target.substr(kProbeTarget.size()));
  if (const auto chunk = parse_chunk_target(target)) return answer_chunk(source, *chunk);
  return refuse(http::status::not_found, "there is /state/manifest, /state/VERSION/CHUNK and /v1/probe?bytes=N");
}

// False when the connection is to end.
bool send(BeastStream& stream, const http::request<http::empty_body>& request, Answer answer) {
  RangeChoice choice{RangeVerdict::kWhole, {0, answer.content.size()}};
  if (answer.status == http::status::ok) {
    const auto range = request[http::field::range];
    choice = choose_range({range.data(), range.size()}, answer.content.size());
  }
  http::response<http::span_body<const char>> response(answer.status, request.version());
  response.set(http::field::content_type, answer.type);
  if (answer.status == http::status::method_not_allowed) response.set(http::field::allow, "GET");
  if (!answer.etag.empty()) {
    response.set(http::field::accept_ranges, "bytes");
    response.set(http::field::etag, answer.etag);
    response.set("Repr-Digest", answer.digest);
  }
  if (choice.verdict == RangeVerdict::kPart) {
    response.result(http::status::partial_content);
    response.set(http::field::content_range,
                 fmt::format("bytes {}-{}/{}", choice.range.first, choice.range.first + choice.range.count - 1,
                             answer.content.size()));
  } else if (choice.verdict == RangeVerdict::kUnsatisfiable) {
    response.result(http::status::range_not_satisfiable);
    response.set(http::field::content_range, fmt::format("bytes */{}", answer.content.size()));
  }
  const auto* content = reinterpret_cast<const char*>(answer.content.data());
  response.body() = {content + choice.range.first, static_cast<std::size_t>(choice.range.count)};
  response.keep_alive(request.keep_alive());
  response.prepare_payload();
  stream.begin_answer();  // from here on it is the peer's pace: hashing a large state may have taken long
  error_code error;
  http::write(stream, response, error);
  return !error && request.keep_alive();
}

bool is_probe(const http::request<http::empty_body>& request) {
  const auto target = request.target();
  return std::string_view(target.data(), target.size()).starts_with(kProbeTarget);
}

// False when the connection is to end.
bool serve_one(BeastStream& stream, boost::beast::flat_buffer& buffer, const OuterStateSource& source,
               int& probes_left) {
  http::request_parser<http::empty_body> parser;
  parser.header_limit(kMaxHeaderBytes);
  if (buffer.size() == 0 && !stream.await_request()) return false;
  stream.begin_header();
  error_code error;
  http::read_header(stream, buffer, parser, error);
  if (error == http::error::header_limit) {
    http::request<http::empty_body> unread;
    unread.version(11);
    unread.keep_alive(false);
    return send(stream, unread,
                refuse(http::status::request_header_fields_too_large, "the request's header is too long"));
  }
  if (error) return false;
  http::request<http::empty_body> request = parser.release();
  // A body is never read, so nothing after it can be.
  const bool has_body = request.count(http::field::transfer_encoding) > 0 ||
                        (request.count(http::field::content_length) > 0 && request[http::field::content_length] != "0");
  if (has_body) request.keep_alive(false);
  if (is_probe(request) && probes_left-- <= 0) {
    return send(stream, request, refuse(http::status::too_many_requests, "this connection has probed enough"));
  }
  return send(stream, request, answer_to(request, source));
}

}  // namespace

void serve_state(TlsConnection connection, const OuterStateSource& source, HttpSession& session,
                 const HttpsPaceLimits& pace) {
  BeastStream stream(connection, session, pace);
  boost::beast::flat_buffer buffer(kMaxHeaderBytes + 1024);
  int probes_left = kProbesOfConnection;
  try {
    while (!session.abort().raised() && serve_one(stream, buffer, source, probes_left)) {
    }
  } catch (const std::exception&) {
    // Out of memory for a chunk, at worst: this connection ends, the fetcher goes elsewhere.
  }
}

}  // namespace atl
