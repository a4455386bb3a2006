// GET /data/NAME: the shards of the run's dataset, their hash trees, the tokenizer and tasks, by exact name
// (SOURCE/FILE), with Range, streamed. On the hub's io_context thread.
#pragma once

#include <string>

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include "net/base/unique_fd.h"
#include "net/hub/hub_data.h"
#include "net/mesh/asio_tls.h"

namespace atl {

using HttpRequest = boost::beast::http::request<boost::beast::http::string_body>;

class DataFiles {
 public:
  explicit DataFiles(ServedFiles files) : files_(std::move(files)) {}

  // Answers the request, also when there is no such file (404). False when the connection is to be closed.
  boost::asio::awaitable<bool> answer(TlsStream& stream, const HttpRequest& request) const;

 private:
  const ServedFiles files_;
};

// A whole file of `bytes` bytes, or the range of it that is asked for. False when the connection is to be closed.
boost::asio::awaitable<bool> answer_file(TlsStream& stream, const HttpRequest& request, const UniqueFd& file,
                                         std::uint64_t bytes);

// A short answer in words. False when the connection is to be closed.
boost::asio::awaitable<bool> answer_text(TlsStream& stream, const HttpRequest& request,
                                         boost::beast::http::status status, std::string text);

}  // namespace atl
