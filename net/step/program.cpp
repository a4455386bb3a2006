#include "net/step/program.h"

#include <algorithm>
#include <stdexcept>

#include "net/step/arena_layout.h"
#include "net/step/hazards.h"
#include "net/step/operands.h"

namespace atl {
namespace {

Tensor matrix(Arena arena, std::int32_t buffer, DType dtype, std::int64_t rows, std::int64_t columns) {
  return {.arena = arena, .buffer = buffer, .dtype = dtype, .rows = rows, .columns = columns, .stride = columns};
}

std::size_t index_of(std::int32_t buffer) { return static_cast<std::size_t>(buffer); }

}  // namespace

Tensor KeptBuffers::add(std::string name, DType dtype, std::int64_t rows, std::int64_t columns) {
  Tensor tensor = matrix(Arena::kKept, static_cast<std::int32_t>(buffers_.size()), dtype, rows, columns);
  tensor.byte = bytes_;
  buffers_.push_back({std::move(name), bytes_, tensor.extent_bytes()});
  bytes_ += arena_aligned(tensor.extent_bytes());
  return tensor;
}

const Tensor& Program::input(std::string_view name) const {
  const auto it = std::ranges::find(inputs_, name, &std::pair<std::string, Tensor>::first);
  if (it == inputs_.end()) throw std::logic_error("a program has no input " + std::string(name));
  return it->second;
}

const Tensor* Program::output(std::string_view name) const {
  const auto it = std::ranges::find(outputs_, name, &std::pair<std::string, Tensor>::first);
  return it == outputs_.end() ? nullptr : &it->second;
}

Program Program::without_wait(std::size_t step, std::size_t index) const {
  Program other = *this;
  auto& waits = other.steps_[step].waits;
  waits.erase(waits.begin() + static_cast<std::ptrdiff_t>(index));
  return other;
}

Tensor ProgramBuilder::buffer(std::string name, DType dtype, std::int64_t rows, std::int64_t columns) {
  const auto index = static_cast<std::int32_t>(program_.buffers_.size());
  const Tensor tensor = matrix(Arena::kStep, index, dtype, rows, columns);
  program_.buffers_.push_back({std::move(name), tensor.extent_bytes()});
  return tensor;
}

Tensor ProgramBuilder::input(std::string name, DType dtype, std::int64_t rows, std::int64_t columns) {
  const Tensor tensor = buffer(name, dtype, rows, columns);
  inputs_.push_back(tensor.buffer);
  program_.inputs_.emplace_back(std::move(name), tensor);
  return tensor;
}

void ProgramBuilder::output(const std::string& name, const Tensor& tensor) {
  if (tensor.arena == Arena::kStep) outputs_.push_back(tensor.buffer);
  program_.outputs_.emplace_back(name, tensor);
}

void ProgramBuilder::touch(const Tensor& tensor, int step) {
  if (tensor.arena != Arena::kStep) return;
  StepBuffer& buffer = program_.buffers_[index_of(tensor.buffer)];
  if (buffer.first < 0) buffer.first = step;
  buffer.last = step;
}

void ProgramBuilder::keep(const Tensor& tensor) { touch(tensor, static_cast<int>(size()) - 1); }

void ProgramBuilder::add(StreamId stream, Operation operation) {
  const int step = static_cast<int>(size());
  for_each_operand(operation, [&](const Tensor& tensor, Access) { touch(tensor, step); });
  program_.steps_.emplace_back();
  program_.steps_.back().operation = operation;
  program_.steps_.back().stream = stream;
}

Program ProgramBuilder::finish(bool share) {
  const int last = std::max(0, static_cast<int>(size()) - 1);
  auto& buffers = program_.buffers_;
  for (const std::int32_t input : inputs_) {
    // To the end: the host may write the next run's while this one goes on.
    buffers[index_of(input)].first = 0;
    buffers[index_of(input)].last = last;
  }
  for (const std::int32_t output : outputs_) buffers[index_of(output)].last = last;
  std::vector<BufferLife> lives;
  lives.reserve(buffers.size());
  for (const StepBuffer& buffer : buffers) {
    lives.push_back(share ? BufferLife{buffer.bytes, buffer.first, buffer.last} : BufferLife{buffer.bytes, 0, last});
  }
  const ArenaLayout layout = lay_out(lives);
  program_.step_bytes_ = layout.bytes;
  for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].byte = layout.places[i];
  const auto place = [&](Tensor& tensor) {
    if (tensor.arena == Arena::kStep) {
      tensor.byte = buffers[index_of(tensor.buffer)].byte + tensor.first * size_of(tensor.dtype);
    }
  };
  for (ProgramStep& step : program_.steps_) {
    for_each_operand(step.operation, [&](Tensor& tensor, Access) { place(tensor); });
  }
  for (auto& [name, tensor] : program_.inputs_) place(tensor);
  for (auto& [name, tensor] : program_.outputs_) place(tensor);
  derive_waits(program_.steps_, program_.events_);
  return std::move(program_);
}

}  // namespace atl
