// Fetches bytes of which the hash is known, from the first origin that gives the right ones. Which origin failed of
// late is remembered for all threads, and it is asked last for a while: longer where it gave wrong bytes. Other islands
// are asked before the hub, and once more when nobody else has it.
//
// Any thread; origins are one thread's each.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "net/base/deadline.h"
#include "net/base/mutex.h"
#include "net/data/chunk_peers.h"
#include "net/data/data_origin.h"

namespace atl {

struct FilePiece {
  std::string file;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // above 0
};

// Other islands of the run; they are verified and blamed by whoever asks them.
using AskPeers = std::function<Result<Bytes>(PeerChoice)>;

enum class DataFrom { kMirror, kIsland, kHub };
struct FetchedData {
  Bytes bytes;
  DataFrom from = DataFrom::kHub;
};

class VerifiedFetch {
 public:
  // `aside`: how long an origin that failed is asked last.
  VerifiedFetch(std::size_t trees, std::chrono::milliseconds aside) : aside_(aside), until_(trees) {}

  // The pieces' bytes one behind the other, which `verify` has found right; one try with each of the tree's origins, of
  // which the last is the hub. `peers` may be empty. kUnreachable says what each of them said; kPermissionDenied where
  // the only one refused; kAborted.
  Result<FetchedData> fetch(std::uint32_t tree, const std::vector<FilePiece>& pieces,
                            const std::function<Status(ByteView)>& verify, const DataOrigins& origins,
                            const AskPeers& peers, const AbortSignal& abort);

 private:
  struct Order {
    std::vector<std::size_t> origins;
    std::size_t in_good_standing = 0;  // so many of them, from the first
  };
  Order order_of(std::uint32_t tree, std::size_t origins);
  void put_aside(std::uint32_t tree, std::size_t origin, bool lied);

  const std::chrono::milliseconds aside_;
  Mutex mutex_;
  std::vector<std::vector<Clock::time_point>> until_ ATOLL_GUARDED_BY(mutex_);  // by tree and origin
};

}  // namespace atl
