#include "net/recovery/outer_step.h"

#include <algorithm>
#include <cmath>

#include "kernels/reduce.h"
#include "kernels/wire_codec.h"
#include "net/base/parallel.h"
#include "net/base/sha256_streams.h"
#include "net/recovery/outer_state.h"

namespace atl {
namespace {

constexpr std::size_t kRowsOfPart = 64;          // of a norm, done by one thread without a look at the others
constexpr std::int64_t kPieceNumel = 16 * 1024;  // stepped, then hashed while they are in the second-level cache

// Where the values of ranges lie when they are put end to end.
class FlatOrder {
 public:
  explicit FlatOrder(std::span<const ParameterRange> ranges) : ranges_(ranges) {
    for (const ParameterRange& range : ranges) {
      begins_.push_back(numel_);
      numel_ += range.numel;
    }
  }
  std::int64_t numel() const { return numel_; }

  // part(place, flat, count) for each run of values that lie side by side in both orders, of flat [begin, begin +
  // count).
  template <class Part>
  void for_each_flat(std::int64_t begin, std::int64_t count, Part part) const {
    auto i = static_cast<std::size_t>(std::ranges::upper_bound(begins_, begin) - begins_.begin()) - 1;
    for (const std::int64_t end = begin + count; begin < end; ++i) {
      const std::int64_t in_range = begin - begins_[i];
      const std::int64_t here = std::min(end - begin, ranges_[i].numel - in_range);
      part(ranges_[i].offset + in_range, begin, here);
      begin += here;
    }
  }
  // The same, of places [begin, end) of the canonical order.
  template <class Part>
  void for_each_placed(std::int64_t begin, std::int64_t end, Part part) const {
    const auto ends_before = [](std::int64_t place, const ParameterRange& range) {
      return place < range.offset + range.numel;
    };
    auto range = std::upper_bound(ranges_.begin(), ranges_.end(), begin, ends_before);
    for (; range != ranges_.end() && range->offset < end; ++range) {
      const std::int64_t from = std::max(begin, range->offset);
      const std::int64_t to = std::min(end, range->offset + range->numel);
      part(from, begins_[static_cast<std::size_t>(range - ranges_.begin())] + from - range->offset, to - from);
    }
  }

 private:
  const std::span<const ParameterRange> ranges_;
  std::vector<std::int64_t> begins_;
  std::int64_t numel_ = 0;
};

template <class Value>
std::span<Value> slice(std::span<Value> values, std::int64_t begin, std::int64_t count) {
  return values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
}

// The squares' sum of `numel` values; nothing where one is not finite. `reader()` gives a thread what it sums rows
// with: (begin, count) to the sum of a row's.
template <class Reader>
std::optional<double> norm_of_rows(std::int64_t numel, Reader reader) {
  constexpr auto kRow = static_cast<std::int64_t>(kNormRowNumel);
  std::vector<double> rows(static_cast<std::size_t>((numel + kRow - 1) / kRow));
  parallel_for((rows.size() + kRowsOfPart - 1) / kRowsOfPart, [&](std::size_t part) {
    auto read = reader();
    const std::size_t end = std::min(rows.size(), (part + 1) * kRowsOfPart);
    for (std::size_t row = part * kRowsOfPart; row < end; ++row) {
      const std::int64_t begin = static_cast<std::int64_t>(row) * kRow;
      rows[row] = read(begin, std::min(kRow, numel - begin));
    }
  });
  const double norm = fold_row_norms(std::move(rows));
  return std::isfinite(norm) ? std::optional(norm) : std::nullopt;
}

// Decodes any values of an average, not only whole blocks.
class AverageReader {
 public:
  AverageReader(WireFormat wire, const AverageSource& average, std::int64_t numel)
      : wire_(wire), average_(average), numel_(numel), block_(block_numel(wire)) {}

  // Valid until the next call.
  Result<std::span<const float>> read(std::int64_t begin, std::int64_t count) {
    const std::int64_t first = begin / block_ * block_;
    const std::int64_t last = std::min(numel_, (begin + count + block_ - 1) / block_ * block_);
    const auto bytes = static_cast<std::size_t>(encoded_bytes(wire_, last - first));
    ATOLL_ASSIGN_OR_RETURN(const ByteView encoded,
                           average_.read(static_cast<std::uint64_t>(encoded_bytes(wire_, first)), bytes, room_));
    decoded_.resize(static_cast<std::size_t>(last - first));
    decode_values(wire_, encoded, decoded_);
    return slice(std::span<const float>(decoded_), begin - first, count);
  }

 private:
  const WireFormat wire_;
  const AverageSource& average_;
  const std::int64_t numel_, block_;
  Bytes room_;
  std::vector<float> decoded_;
};

constexpr auto kChunk = static_cast<std::int64_t>(kStateChunkNumel);

// What one thread steps: a chunk of the parameters and of the momentum, a piece at a time.
struct StepChunk {
  std::uint64_t index = 0;
  std::span<float> parameters, momentum;

  std::int64_t piece_numel(std::int64_t begin) const { return std::min(kPieceNumel, std::ssize(parameters) - begin); }
};

// The values of a chunk from `piece` on.
Status step_piece(const StepChunk& chunk, std::int64_t piece, const FlatOrder& order, AverageReader& average,
                  OuterSgd hyper) {
  const std::int64_t base = static_cast<std::int64_t>(chunk.index) * kChunk;
  const std::int64_t begin = base + piece;
  Status read;
  order.for_each_placed(begin, begin + chunk.piece_numel(piece),
                        [&](std::int64_t place, std::int64_t flat, std::int64_t numel) {
                          const auto d = average.read(flat, numel);
                          if (!d.ok()) {
                            read = d.error();
                            return;
                          }
                          outer_nesterov(slice(chunk.parameters, place - base, numel),
                                         slice(chunk.momentum, place - base, numel), *d, hyper);
                        });
  return read;
}

// Equally long chunks, one after the other a piece at a time, so that they are hashed in step.
void step_and_hash(std::span<const StepChunk> group, const FlatOrder& order, AverageReader average, OuterSgd hyper,
                   std::span<Digest> chunks) {
  Sha256Streams hash(group.size());
  std::vector<ByteView> parts(group.size());
  for (std::int64_t piece = 0; piece < std::ssize(group[0].parameters); piece += kPieceNumel) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      (void)step_piece(group[i], piece, order, average, hyper);  // memory can be read
      parts[i] = std::as_bytes(slice(group[i].parameters, piece, group[i].piece_numel(piece)));
    }
    hash.update(parts);
  }
  for (std::size_t i = 0; i < group.size(); ++i) parts[i] = std::as_bytes(group[i].momentum);
  hash.update(parts);
  const std::vector<Digest> digests = hash.finish();
  for (std::size_t i = 0; i < group.size(); ++i) chunks[group[i].index] = digests[i];
}

}  // namespace

std::optional<double> pseudo_gradient(std::span<const float> outer, std::span<const ParameterRange> ranges,
                                      std::span<float> local) {
  const FlatOrder order(ranges);
  return norm_of_rows(order.numel(), [&] {
    return [&](std::int64_t begin, std::int64_t count) {
      std::optional<double> whole;
      order.for_each_flat(begin, count, [&](std::int64_t place, std::int64_t flat, std::int64_t numel) {
        const double squares = subtract_row(slice(outer, place, numel), slice(local, flat, numel));
        if (numel == count) whole = squares;
      });
      return whole ? *whole : row_squared_norm(slice(local, begin, count));  // it lies in several ranges
    };
  });
}

std::optional<double> average_squared_norm(WireFormat wire, ByteView canonical, std::int64_t numel) {
  const AverageInMemory bytes(canonical);
  return norm_of_rows(numel, [&] {
    return [average = AverageReader(wire, bytes, numel)](std::int64_t begin, std::int64_t count) mutable {
      return row_squared_norm(*average.read(begin, count));
    };
  });
}

void outer_step(std::span<float> theta, std::span<float> velocity, std::span<const ParameterRange> ranges,
                WireFormat wire, ByteView canonical, OuterSgd hyper, std::span<Digest> chunks) {
  const FlatOrder order(ranges);
  const AverageInMemory bytes(canonical);
  std::vector<std::uint64_t> touched;
  for (const ParameterRange& range : ranges) {
    const auto last = static_cast<std::uint64_t>((range.offset + range.numel - 1) / kChunk);
    for (auto i = static_cast<std::uint64_t>(range.offset / kChunk); i <= last; ++i) {
      if (touched.empty() || touched.back() < i) touched.push_back(i);
    }
  }
  const auto groups = chunks_in_step(touched, theta.size());
  parallel_for(groups.size(), [&](std::size_t part) {
    std::vector<StepChunk> group;
    for (const std::uint64_t i : groups[part]) group.push_back({i, of_chunk(theta, i), of_chunk(velocity, i)});
    step_and_hash(group, order, AverageReader(wire, bytes, order.numel()), hyper, chunks);
  });
}

bool touches_chunk(std::span<const ParameterRange> ranges, std::uint64_t index) {
  const std::int64_t begin = static_cast<std::int64_t>(index) * kChunk;
  return std::ranges::any_of(ranges, [&](const ParameterRange& range) {
    return range.offset < begin + kChunk && begin < range.offset + range.numel;
  });
}

Status step_chunk(std::uint64_t index, std::span<float> parameters, std::span<float> momentum,
                  std::span<const ParameterRange> ranges, WireFormat wire, const AverageSource& average,
                  OuterSgd hyper) {
  const FlatOrder order(ranges);
  AverageReader reader(wire, average, order.numel());
  const StepChunk chunk{index, parameters, momentum};
  for (std::int64_t piece = 0; piece < std::ssize(parameters); piece += kPieceNumel) {
    ATOLL_RETURN_IF_ERROR(step_piece(chunk, piece, order, reader, hyper));
  }
  return ok_status();
}

}  // namespace atl
