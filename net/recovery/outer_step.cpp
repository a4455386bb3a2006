#include "net/recovery/outer_step.h"

#include <algorithm>
#include <cmath>

#include "kernels/reduce.h"
#include "kernels/wire_codec.h"
#include "net/base/parallel.h"
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

// The chunk's values are stepped a piece at a time; `done(begin, count)`, of the chunk, after each.
template <class Done>
Status step_pieces(std::uint64_t index, std::span<float> parameters, std::span<float> momentum, const FlatOrder& order,
                   AverageReader& average, OuterSgd hyper, Done done) {
  const std::int64_t base = static_cast<std::int64_t>(index) * kChunk;
  for (std::int64_t piece = 0; piece < std::ssize(parameters); piece += kPieceNumel) {
    const std::int64_t count = std::min(kPieceNumel, std::ssize(parameters) - piece);
    Status read;
    order.for_each_placed(
        base + piece, base + piece + count, [&](std::int64_t place, std::int64_t flat, std::int64_t numel) {
          const auto d = average.read(flat, numel);
          if (!d.ok()) {
            read = d.error();
            return;
          }
          outer_nesterov(slice(parameters, place - base, numel), slice(momentum, place - base, numel), *d, hyper);
        });
    ATOLL_RETURN_IF_ERROR(read);
    done(piece, count);
  }
  return ok_status();
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
  std::vector<std::size_t> touched;
  for (const ParameterRange& range : ranges) {
    const auto last = static_cast<std::size_t>((range.offset + range.numel - 1) / kChunk);
    for (auto i = static_cast<std::size_t>(range.offset / kChunk); i <= last; ++i) {
      if (touched.empty() || touched.back() < i) touched.push_back(i);
    }
  }
  parallel_for(touched.size(), [&](std::size_t part) {
    const std::size_t index = touched[part];
    AverageReader average(wire, bytes, order.numel());
    const auto parameters = of_chunk(theta, index), momentum = of_chunk(velocity, index);
    Sha256 hash;
    (void)step_pieces(index, parameters, momentum, order, average, hyper, [&](std::int64_t begin, std::int64_t count) {
      hash.update(std::as_bytes(slice(parameters, begin, count)));
    });  // memory can be read
    hash.update(std::as_bytes(momentum));
    chunks[index] = hash.finish();
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
  return step_pieces(index, parameters, momentum, order, reader, hyper, [](std::int64_t, std::int64_t) {});
}

}  // namespace atl
