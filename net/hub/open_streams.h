// The connections over which islands have requests answered, by island: so that those of one that is removed can be
// closed in the middle of an answer. The event loop's thread.
#pragma once

#include <boost/beast/core/tcp_stream.hpp>
#include <map>
#include <memory>

#include "net/base/id.h"

namespace atl {

class OpenStreams {
 public:
  // What is under way on them ends with an error.
  void cut(const IslandId& island) {
    const auto [begin, end] = streams_.equal_range(island);
    for (auto stream = begin; stream != end; ++stream) stream->second->close();
  }

 private:
  friend class OpenStream;
  std::multimap<IslandId, boost::beast::tcp_stream*> streams_;
};

// Lists a stream for as long as it lives.
class OpenStream {
 public:
  // The list is shared with its owner, which may be gone before a coroutine that is destroyed with its event loop.
  OpenStream(std::shared_ptr<OpenStreams> list, const IslandId& island, boost::beast::tcp_stream& stream)
      : list_(std::move(list)), at_(list_->streams_.emplace(island, &stream)) {}
  ~OpenStream() { list_->streams_.erase(at_); }
  OpenStream(const OpenStream&) = delete;
  OpenStream& operator=(const OpenStream&) = delete;

 private:
  const std::shared_ptr<OpenStreams> list_;
  const std::multimap<IslandId, boost::beast::tcp_stream*>::iterator at_;
};

}  // namespace atl
