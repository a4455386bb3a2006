#include "net/hub/data_files.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/write.hpp>
#include <sstream>

#include "net/base/byte_range.h"
#include "net/hub/hub_stream.h"

namespace atl {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::string_view kDataPrefix = "/data/";
constexpr std::size_t kFilePieceBytes = 256 * 1024;
constexpr std::chrono::seconds kShortAnswer{30};  // or a header, as a whole

// The header as it is sent. (Beast's own serializers would be a template more for every stream and body.)
std::string header_text(const http::response_header<>& header) {
  std::ostringstream text;
  text << header;
  return std::move(text).str();
}

// For as long as it takes: OpenConnections ends those that are too slow.
asio::awaitable<bool> send_range(TlsStream& stream, int fd, ByteRange range) {
  beast::get_lowest_layer(stream).expires_never();
  Bytes piece(kFilePieceBytes);
  while (range.count > 0) {
    const std::size_t wanted = std::min<std::uint64_t>(piece.size(), range.count);
    const ssize_t got = ::pread(fd, piece.data(), wanted, static_cast<off_t>(range.first));
    if (got <= 0) co_return false;  // it shrank: the length that was promised cannot be kept
    const AsioError error = co_await write_exactly(stream, ByteView(piece).first(static_cast<std::size_t>(got)));
    if (error) co_return false;
    range.first += static_cast<std::uint64_t>(got);
    range.count -= static_cast<std::uint64_t>(got);
  }
  co_return true;
}

}  // namespace

asio::awaitable<bool> DataFiles::answer(TlsStream& stream, const HttpRequest& request) const {
  const std::string_view target(request.target().data(), request.target().size());
  const auto found =
      target.starts_with(kDataPrefix) ? files_.find(std::string(target.substr(kDataPrefix.size()))) : files_.end();
  if (request.method() != http::verb::get || found == files_.end()) {
    co_return co_await answer_text(stream, request, http::status::not_found, "there is nothing here\n");
  }
  const UniqueFd file(::open(found->second.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) {  // a mirror has it
    co_return co_await answer_text(stream, request, http::status::not_found, "the hub has no copy of this file\n");
  }
  if (!file) {
    co_return co_await answer_text(stream, request, http::status::internal_server_error,
                                   "the hub cannot read this file of its dataset\n");
  }
  co_return co_await answer_file(stream, request, file, found->second.bytes);
}

asio::awaitable<bool> answer_file(TlsStream& stream, const HttpRequest& request, const UniqueFd& file,
                                  std::uint64_t bytes) {
  const auto header = request[http::field::range];
  const auto [verdict, range] = choose_range({header.data(), header.size()}, bytes);
  if (verdict == RangeVerdict::kUnsatisfiable) {
    co_return co_await answer_text(stream, request, http::status::range_not_satisfiable, "it has no such bytes\n");
  }
  const bool whole = verdict == RangeVerdict::kWhole;
  http::response<http::empty_body> response(whole ? http::status::ok : http::status::partial_content,
                                            request.version());
  response.keep_alive(request.keep_alive());
  response.set(http::field::content_type, "application/octet-stream");
  response.set(http::field::accept_ranges, "bytes");
  response.content_length(range.count);
  if (!whole) {
    response.set(http::field::content_range,
                 fmt::format("bytes {}-{}/{}", range.first, range.first + range.count - 1, bytes));
  }
  beast::get_lowest_layer(stream).expires_after(kShortAnswer);
  const std::string sent_header = header_text(response.base());
  const AsioError error = co_await write_exactly(stream, as_bytes(sent_header));
  if (error) co_return false;
  const bool sent = co_await send_range(stream, file.get(), range);
  co_return sent&& request.keep_alive();
}

asio::awaitable<bool> answer_text(TlsStream& stream, const HttpRequest& request, http::status status,
                                  std::string text) {
  http::response<http::empty_body> response(status, request.version());
  response.keep_alive(request.keep_alive());
  response.set(http::field::content_type, "text/plain; charset=utf-8");
  response.content_length(text.size());
  beast::get_lowest_layer(stream).expires_after(kShortAnswer);
  const std::string answer = header_text(response.base()) + text;
  const AsioError error = co_await write_exactly(stream, as_bytes(answer));
  co_return !error && request.keep_alive();
}

}  // namespace atl
