// A wire format by its name, as the field "wire" of a run's configuration and of an attempt. For net/wire's own .cpp
// files.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "kernels/wire_format.h"
#include "net/base/printable.h"

namespace atl {

inline std::string not_for_runs(WireFormat wire) {
  return fmt::format("wire {} is there to be compared with, by atoll bench; a run takes one of {}",
                     wire_format_name(wire), fmt::join(kRunWireFormatNames, ", "));
}

template <class Archive>
void wire_format(Archive& archive, WireFormat& wire) {
  std::string name(wire_format_name(wire));
  archive.bounded("wire", name, 32);
  if (const auto known = wire_format_named(name)) {
    wire = *known;
    if (!traits_of(wire).for_runs) archive.fail(not_for_runs(wire));
  } else {
    archive.fail(fmt::format("wire '{}' is not known here ({}); update atoll", printable(name),
                             fmt::join(kRunWireFormatNames, ", ")));
  }
}

}  // namespace atl
