// Payloads for benchmarks: values that every island can make for every other, so that a result can be checked against
// the exact mean without moving it anywhere. About normal, standard deviation 1e-3, as gradients are. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/wire_format.h"
#include "net/base/result.h"
#include "net/wire/schedule.h"

namespace atl {

float bench_value(int island, std::uint64_t index);
void fill_bench_values(int island, std::span<float> values);

// Relative root mean square error of an encoded mean of `islands` islands with equal weights, over whole blocks sampled
// evenly. `canonical`: encoded_bytes(wire, numel) bytes.
double sampled_error(WireFormat wire, std::span<const std::byte> canonical, std::int64_t numel, int islands);
// The largest that is no mistake, for this format and number of islands.
double tolerated_error(WireFormat wire, int islands);

Result<WireFormat> parse_wire_format(std::string_view name);
Result<Schedule> parse_schedule(std::string_view name);

}  // namespace atl
