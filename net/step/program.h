// A part of a training step as a program: operations on streams, each buffer's place in the arena, and the waits
// between streams that follow from what the operations touch. Made once for a shape of batch, then run again and again;
// while it runs nothing is allocated, freed or waited for by the host. Pure: no device, no memory of the size of a
// model. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/step/operation.h"

namespace atl {

enum class StreamId : std::uint8_t { kCompute, kCollective };
inline constexpr int kStreams = 2;

// The kept arena: buffers one behind the other, for all programs of a rank.
class KeptBuffers {
 public:
  // Placed at once.
  Tensor add(std::string name, DType dtype, std::int64_t rows, std::int64_t columns);
  std::int64_t bytes() const { return bytes_; }

  struct Buffer {
    std::string name;
    std::int64_t byte = 0;
    std::int64_t bytes = 0;
  };
  const std::vector<Buffer>& buffers() const { return buffers_; }

 private:
  std::vector<Buffer> buffers_;
  std::int64_t bytes_ = 0;
};

// An operation is held back until `event` was recorded on another stream.
struct StepWait {
  int event = 0;
  int of = 0;             // the operation that it is recorded after
  bool previous = false;  // of the run of this program before, if there was one since the streams were last joined
};

struct ProgramStep {
  Operation operation;
  StreamId stream = StreamId::kCompute;
  std::vector<StepWait> waits;
  int event = -1;  // recorded after it; -1: nobody waits for it
};

struct StepBuffer {
  std::string name;
  std::int64_t bytes = 0;
  std::int64_t byte = -1;  // its place
  int first = -1;          // first and last operation that touches it, or that it is kept for
  int last = -1;
};

class Program {
 public:
  const std::vector<ProgramStep>& steps() const { return steps_; }
  const std::vector<StepBuffer>& buffers() const { return buffers_; }
  std::int64_t step_bytes() const { return step_bytes_; }  // of the step arena
  int events() const { return events_; }
  // Placed; nothing in the program touches it before the host has written it.
  const Tensor& input(std::string_view name) const;
  const Tensor* output(std::string_view name) const;  // nullptr: there is none

  // For tests: without wait number `index` of `step`.
  Program without_wait(std::size_t step, std::size_t index) const;

 private:
  friend class ProgramBuilder;
  std::vector<ProgramStep> steps_;
  std::vector<StepBuffer> buffers_;
  std::vector<std::pair<std::string, Tensor>> inputs_, outputs_;
  std::int64_t step_bytes_ = 0;
  int events_ = 0;
};

// Buffers live from the first operation that touches them to the last one; those whose lives do not overlap share
// bytes.
class ProgramBuilder {
 public:
  Tensor buffer(std::string name, DType dtype, std::int64_t rows, std::int64_t columns);
  // Alive from the beginning on; written by the host.
  Tensor input(std::string name, DType dtype, std::int64_t rows, std::int64_t columns);
  // Alive to the end; read by the host.
  void output(const std::string& name, const Tensor& tensor);
  // Alive until the last operation that was added so far, at least.
  void keep(const Tensor& tensor);

  void add(StreamId stream, Operation operation);
  void compute(Operation operation) { add(StreamId::kCompute, operation); }
  void collective(Operation operation) { add(StreamId::kCollective, operation); }
  std::size_t size() const { return program_.steps_.size(); }

  // Places and waits. In place of memory shared over time every buffer gets bytes of its own where `share` is false.
  Program finish(bool share = true);

 private:
  void touch(const Tensor& tensor, int step);

  Program program_;
  std::vector<std::int32_t> inputs_, outputs_;
};

}  // namespace atl
