// Sketches (net/wire/work_sketch.h) of what one island gives to an average, and of the average: short runs of values,
// one of each stretch of the fragment, each value added to one place of the sketch with a sign; places, runs and signs
// are drawn from the average's digest. Fragments of up to 16 million values are sketched whole; of ten billion every
// 600th value is read, in 65,536 runs: some 100 MB, once an attempt.
//
// Pure functions, any thread; the same bits on every machine.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "kernels/wire_codec.h"
#include "net/base/bytes.h"
#include "net/wire/work_sketch.h"

namespace atl {

// Of `values` as they are averaged, before their weight: with what rounds before owed, and without what this attempt
// does (kernels/wire_codec.h, ErrorFeedback; both empty: nothing). digest: of the average, hex.
WorkSketch sketch_of_work(std::string_view digest, std::span<const float> values,
                          std::span<const float> residual_in = {}, std::span<const float> residual_out = {});

// Nothing: of a format whose blocks are longer than a run.
std::optional<WorkSketch> sketch_of_average(std::string_view digest, WireFormat wire, ByteView canonical,
                                            std::int64_t numel);

}  // namespace atl
