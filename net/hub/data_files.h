// GET /data/<file>: the shards of the run's dataset, by exact name, with Range, streamed. On the hub's io_context
// thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include "net/data/dataset.h"
#include "net/mesh/asio_tls.h"

namespace atl {

using HttpRequest = boost::beast::http::request<boost::beast::http::string_body>;

class DataFiles {
 public:
  DataFiles(std::filesystem::path directory, const DatasetManifest& manifest);

  // Answers the request, also when there is no such file (404). False when the connection is to be closed.
  boost::asio::awaitable<bool> answer(TlsStream& stream, const HttpRequest& request) const;

 private:
  std::filesystem::path directory_;
  std::map<std::string, std::uint64_t> sizes_;  // by name
};

// A short answer in words. False when the connection is to be closed.
boost::asio::awaitable<bool> answer_text(TlsStream& stream, const HttpRequest& request,
                                         boost::beast::http::status status, std::string text);

}  // namespace atl
