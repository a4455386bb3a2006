// How far an all-reduce's result is from the exact mean: relative root mean square error and bias (mean error over its
// standard error: chance makes it 2 or less) by format, number of members and distribution; then the error of the sum
// of 50 rounds over that of one, with error feedback and without. The arithmetic of the ring, without a network.
//
//   ring_error
#include <fmt/format.h>

#include <string>

#include "tests/kernels/ring_arithmetic.h"

int main() {
  using namespace atl;
  fmt::print("{:<14} {:<16} {:>8} {:>14} {:>9} {:>16}\n", "format", "values", "members", "relative RMS", "bias",
             "over one member");
  for (const WireFormat wire : kWireFormats) {
    for (const bool heavy : {false, true}) {
      const double alone = measure(wire, heavy, 1).relative_rms;
      for (const unsigned members : {2u, 4u, 8u, 14u}) {
        const Measured measured = measure(wire, heavy, members);
        const std::string growth = alone > 0 ? fmt::format("{:.3f} x", measured.relative_rms / alone) : "-";
        fmt::print("{:<14} {:<16} {:>8} {:>12.4g} % {:>9.2f} {:>16}\n", wire_format_name(wire),
                   heavy ? "Student's t(3)" : "normal", members, 100 * measured.relative_rms, measured.bias, growth);
      }
    }
  }
  fmt::print("\n{:<14} {:>34} {:>18}\n", "format", "error of 50 rounds, with feedback", "without");
  for (const WireFormat wire : kWireFormats) {
    if (wire == WireFormat::kFp32) continue;  // loses nothing but roundings of fp32
    const SummedError error = error_of_rounds(wire, 4, 50);
    fmt::print("{:<14} {:>30.2f} x {:>16.2f} x\n", wire_format_name(wire), error.fed_back, error.forgotten);
  }
  return 0;
}
