#include "net/recovery/state_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "net/base/byte_range.h"
#include "net/recovery/chunk_answers.h"
#include "net/recovery/state_answers.h"
#include "net/transport/socket.h"

namespace atl {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::chrono::milliseconds kLook{250};  // at the clock, while nothing moves
constexpr std::uint32_t kMaxHeaderBytes = 8 * 1024;
constexpr int kProbesOfConnection = 8;

// Beast's synchronous stream over a TlsConnection, at the peer's pace: whoever takes too long for a step is done. The
// reason of a failure does not matter here: the connection ends.
class BeastStream {
 public:
  BeastStream(TlsConnection& connection, HttpSession& session, ServingPace& serving, const HttpsPaceLimits& pace)
      : connection_(connection),
        session_(session),
        serving_(serving),
        pace_(pace),
        look_(std::min(kLook, pace.window / 4)) {}

  // Until the first bytes of a request are there. False when none comes.
  bool await_request() {
    pace_.wait_for_request(Clock::now(), tcp_progress(connection_.fd()).bytes_acknowledged);
    const bool has_come = wait(connection_.poll_events_for_read());
    session_.set_idle(false);
    return has_come;
  }
  void begin_header() { pace_.begin_header(Clock::now()); }
  void held_back(Clock::duration time) { pace_.held_back(time); }  // by this island's own disk
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
    const bool written = write({static_cast<const std::byte*>(buffer.data()), buffer.size()});
    error = written ? error_code() : asio::error::make_error_code(asio::error::connection_aborted);
    return written ? buffer.size() : 0;
  }
  // All of it, no faster than this island serves. False when the connection has to end.
  bool write(ByteView bytes) {
    while (!bytes.empty()) {
      const ServingPace::Turn turn = serving_.next(bytes.size(), Clock::now());
      if (!hold_back_until(turn.when) || !write_all(bytes.first(turn.bytes))) return false;
      bytes = bytes.subspan(turn.bytes);
    }
    return true;
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
  // Of no account for the peer's pace. False when this connection has to end.
  bool hold_back_until(Clock::time_point when) {
    const auto began = Clock::now();
    if (when <= began) return true;
    // Readable input waits for its turn, so that only the abort is looked at.
    const Status waited = wait_ready(session_.abort().fd(), POLLIN, Deadline::at(when), nullptr, "serving a member");
    pace_.held_back(Clock::now() - began);
    return !waited.ok() && waited.error().code == ErrorCode::kTimeout;
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
  ServingPace& serving_;
  HttpsPace pace_;
  const std::chrono::milliseconds look_;
};

// False when the connection is to end: the peer has gone, or what was promised cannot be read.
bool send_body(BeastStream& stream, const Answer& answer, ByteRange range) {
  if (!answer.read) return stream.write(ByteView(answer.content).subspan(range.first, range.count));
  Bytes part;
  for (std::uint64_t done = 0; done < range.count; done += part.size()) {
    part.resize(static_cast<std::size_t>(std::min<std::uint64_t>(answer.part_bytes, range.count - done)));
    const auto began = Clock::now();
    const Status read = answer.read(range.first + done, part);
    stream.held_back(Clock::now() - began);
    if (!read.ok()) {
      spdlog::warn("serving error=\"{}\"", read.error().message);
      return false;
    }
    if (!stream.write(part)) return false;
  }
  return true;
}

// Its header, then what was asked for, a part at a time. False when the connection is to end.
bool send(BeastStream& stream, const http::request<http::empty_body>& request, const Answer& answer) {
  RangeChoice choice{RangeVerdict::kWhole, {0, answer.bytes}};
  if (answer.status == http::status::ok) {
    const auto range = request[http::field::range];
    choice = choose_range({range.data(), range.size()}, answer.bytes);
  }
  http::response<http::empty_body> response(answer.status, request.version());
  response.set(http::field::content_type, answer.type);
  if (answer.status == http::status::method_not_allowed) response.set(http::field::allow, "GET");
  if (!answer.etag.empty()) {
    response.set(http::field::accept_ranges, "bytes");
    response.set(http::field::etag, answer.etag);
  }
  if (!answer.digest.empty()) response.set("Repr-Digest", answer.digest);
  if (choice.verdict == RangeVerdict::kPart) {
    response.result(http::status::partial_content);
    response.set(http::field::content_range, fmt::format("bytes {}-{}/{}", choice.range.first,
                                                         choice.range.first + choice.range.count - 1, answer.bytes));
  } else if (choice.verdict == RangeVerdict::kUnsatisfiable) {
    response.result(http::status::range_not_satisfiable);
    response.set(http::field::content_range, fmt::format("bytes */{}", answer.bytes));
    choice.range = {};
  }
  response.content_length(choice.range.count);
  response.keep_alive(request.keep_alive());
  stream.begin_answer();  // from here on it is the peer's pace
  error_code error;
  http::response_serializer<http::empty_body> header(response);
  http::write_header(stream, header, error);
  if (error) return false;
  return send_body(stream, answer, choice.range) && request.keep_alive();
}

Answer answer_to(const http::request<http::empty_body>& request, const ServedState& served, const IslandId& peer,
                 const AbortSignal& abort, int& probes_left) {
  if (request.method() != http::verb::get) return refuse(http::status::method_not_allowed, "only GET is served here");
  const auto raw = request.target();
  const std::string_view target(raw.data(), raw.size());
  if (is_probe(target) && probes_left-- <= 0) {
    return refuse(http::status::too_many_requests, "this connection has probed enough");
  }
  if (target.starts_with(kDataPrefix)) return answer_data(target, peer, served.chunks, abort);
  return answer_to(target, served.state, served.rounds);
}

// False when the connection is to end.
bool serve_one(BeastStream& stream, boost::beast::flat_buffer& buffer, const ServedState& served, const IslandId& peer,
               const AbortSignal& abort, int& probes_left) {
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
  return send(stream, request, answer_to(request, served, peer, abort, probes_left));
}

}  // namespace

void serve_state(TlsConnection connection, const ServedState& served, HttpSession& session,
                 const HttpsPaceLimits& pace) {
  // As the ring's: a state is gigabytes over whatever link. What the kernel holds unsent is little, so that it is out
  // of the ring's way as soon as an attempt begins.
  tune_for_bulk(connection.fd(), "bbr");
  const IslandId peer = connection.peer();
  BeastStream stream(connection, session, served.pace, pace);
  boost::beast::flat_buffer buffer(kMaxHeaderBytes + 1024);
  int probes_left = kProbesOfConnection;
  try {
    while (!session.abort().raised() && serve_one(stream, buffer, served, peer, session.abort(), probes_left)) {
    }
  } catch (const std::exception&) {
    // Out of memory for a chunk, at worst: this connection ends, the fetcher goes elsewhere.
  }
}

}  // namespace atl
