// Collectives among the local ranks of one island, on main memory. Each rank's thread owns its communicator; all ranks
// call the same collectives in the same order.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

#include "net/base/id.h"

namespace atl {

// Thrown out of a collective when another rank aborted, or did not come in time.
class CollectiveAborted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual LocalRank rank() const = 0;
  virtual int world_size() const = 0;

  // full = shards of all ranks, in rank order; full.size() == world_size * shard.size().
  virtual void all_gather(std::span<const std::byte> shard, std::span<std::byte> full) = 0;

  // shard = (or +=) this rank's part of the sum of all ranks' `full`, added in rank order.
  virtual void reduce_scatter(std::span<const float> full, std::span<float> shard, bool accumulate) = 0;

  // Each value becomes its sum over ranks, added in rank order: the same bits everywhere.
  virtual void all_reduce_sum(std::span<double> values) = 0;

  // Every rank that waits in a collective, or enters one later, throws CollectiveAborted with the first reason.
  virtual void abort(const std::string& reason) noexcept = 0;
};

}  // namespace atl
