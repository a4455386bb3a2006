// An island's part in giving the run's data from island to island (chunk_peers.h): it asks the others, remembers who of
// them failed, and answers them. The owner of the island's port has one, which outlives the port and the store of
// chunks. Thread-safe, but for what on_this_thread() returns.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "net/base/address.h"
#include "net/base/backoff.h"
#include "net/base/deadline.h"
#include "net/base/download_pace.h"
#include "net/base/mutex.h"
#include "net/data/chunk_peers.h"
#include "net/data/holder_book.h"
#include "net/tls/identity.h"

namespace atl {

struct ChunkPeer {
  IslandId id;
  Address address;
};

struct ChunkExchangeOptions {
  std::chrono::milliseconds connect{3'000};  // and to say who has a chunk
  std::chrono::milliseconds silence{6'000};  // without a byte of one: it may be on its way there (ChunkStoreOptions)
  std::uint64_t least_rate = 128 * 1024;     // bytes/s of a chunk, beside the silence: who is slower is given up
  std::chrono::milliseconds aside{15'000}, longest_aside{600'000};  // who failed is not asked for so long
  DownloadPace* download = nullptr;  // what the owner lets the island receive; null: no limit. Outlives the exchange
};

class ChunkExchange final : public ServedChunks {
 public:
  // `peers`: who is in the run and can be dialled now, on any thread. `self` outlives it.
  ChunkExchange(const Identity& self, std::function<std::vector<ChunkPeer>()> peers,
                const ChunkExchangeOptions& options = {});
  ~ChunkExchange() override;

  // As that thread asks the others; outlived by this.
  Result<std::unique_ptr<ChunkPeers>> on_this_thread();
  // What the others get from now on, as long as it is there.
  void serve(const std::shared_ptr<HeldChunks>& held);

  Result<MappedFile> chunk(ChunkId id, const AbortSignal& abort) override;
  std::vector<IslandId> holders(ChunkId id, const IslandId& asker) override;

 private:
  class Asking;
  // What was found of an island. Only wrong bytes are its own doing for sure.
  struct Standing {
    explicit Standing(const ChunkExchangeOptions& options) : pause(options.aside, options.longest_aside) {}
    Backoff pause;
    Clock::time_point not_before{};
    int misses = 0;  // in a row: it had not what it was said to have, or who it said has it had not
    bool lied = false;
  };

  std::vector<ChunkPeer> others() const;
  bool may_ask(const IslandId& id);
  void gave(const IslandId& id);
  void missed(const IslandId& id);
  void failed(const IslandId& id, const Error& why);
  void lied(const IslandId& id, ChunkId chunk);

  const Identity& self_;
  const std::function<std::vector<ChunkPeer>()> peers_;
  const ChunkExchangeOptions options_;
  HolderBook book_;
  Mutex mutex_;
  std::weak_ptr<HeldChunks> held_ ATOLL_GUARDED_BY(mutex_);
  std::map<IslandId, Standing> standings_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace atl
