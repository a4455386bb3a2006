// GET /base-model/...: the parameters with which the run begins (net/recovery/base_model.h), out of the hub's home,
// with Range, streamed. They are looked for whenever they are asked for: `atoll hub base-model DIR` makes them anew
// while the hub serves. On the hub's io_context thread.
#pragma once

#include "net/control/home.h"
#include "net/hub/data_files.h"

namespace atl {

class BaseModelFiles {
 public:
  explicit BaseModelFiles(HubHome home) : home_(std::move(home)) {}

  static bool serves(const HttpRequest& request);
  // Answers the request, also when there is no such file (404). False when the connection is to be closed.
  boost::asio::awaitable<bool> answer(TlsStream& stream, const HttpRequest& request) const;

 private:
  HubHome home_;
};

}  // namespace atl
