#include "trainer/device/cuda_device.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "trainer/device/cuda_operations.h"

namespace atl {

CudaDevice::Current::Current(int ordinal) {
  check_cuda(cudaSetDevice(ordinal), [&] { return fmt::format("use GPU {}: cudaSetDevice", ordinal); });
}

CudaDevice::CudaDevice(int ordinal, LocalRank rank, const CublasLtApi& cublas, std::unique_ptr<CudaAttention> attention,
                       std::function<std::shared_ptr<CudaClique>()> clique)
    : current_(ordinal),
      rank_(rank),
      clique_now_(std::move(clique)),
      streams_{make_stream(/*urgent=*/false), make_stream(/*urgent=*/true)},
      joins_{make_event(false), make_event(false)},
      marks_{make_event(true), make_event(true)},
      products_(cublas),
      attention_(std::move(attention)) {
  static_assert(static_cast<int>(StreamId::kCompute) == 0);
  meet();
}

// What is enqueued uses what goes now. After an abort nothing on the GPU waits for another rank.
CudaDevice::~CudaDevice() {
  for (const UniqueStream& stream : streams_) (void)cudaStreamSynchronize(stream.get());
  collectives_.reset();
}

void CudaDevice::meet() {
  std::shared_ptr<CudaClique> clique = clique_now_();
  {
    const MutexLock lock(mutex_);
    clique_ = clique;
  }
  collectives_ = clique->join(rank_);
}

CudaCollectives& CudaDevice::collectives() const {
  if (!collectives_) throw std::runtime_error("the ranks did not meet again after a failure: " + failed_);
  return *collectives_;
}

void CudaDevice::take_arena(Arena arena, std::int64_t bytes) {
  DeviceMemory& memory = arenas_[static_cast<std::size_t>(arena)];
  memory.reset();
  const bool kept = arena == Arena::kKept;
  memory = make_device_memory(static_cast<std::size_t>(bytes),
                              kept ? "parameters and optimiser state" : "a step's activations");
  if (!kept || bytes == 0) return;
  check_cuda(cudaMemsetAsync(memory.get(), 0, static_cast<std::size_t>(bytes), stream(StreamId::kCompute)),
             [&] { return fmt::format("clear {} bytes: cudaMemsetAsync", bytes); });
  synchronize();  // before the other stream sees it
}

void CudaDevice::make_events(int count) {
  while (events_.size() < static_cast<std::size_t>(count)) events_.push_back(make_event(/*host_waits=*/false));
}

void CudaDevice::run(StreamId stream_id, const Operation& operation) {
  CudaCollectives& collectives = this->collectives();
  collectives.watched("a launch", [&] {
    const CudaTools tools{products_, *attention_, collectives, {arenas_[0].get(), arenas_[1].get()}};
    enqueue(tools, operation, stream_id, stream(stream_id));
  });
  if (stream_id == StreamId::kCompute) tick(part_of(operation));
}

void CudaDevice::record(StreamId stream_id, int event) {
  check_cuda(cudaEventRecord(events_.at(static_cast<std::size_t>(event)).get(), stream(stream_id)),
             [&] { return fmt::format("event {} of a program: cudaEventRecord", event); });
}

void CudaDevice::wait(StreamId stream_id, int event) {
  check_cuda(cudaStreamWaitEvent(stream(stream_id), events_.at(static_cast<std::size_t>(event)).get(), 0),
             [&] { return fmt::format("event {} of a program: cudaStreamWaitEvent", event); });
  if (stream_id == StreamId::kCompute) tick(StepPart::kCommunication);
}

void CudaDevice::join() {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    check_cuda(cudaEventRecord(joins_[i].get(), streams_[i].get()), "streams meet: cudaEventRecord");
  }
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    for (std::size_t other = 0; other < streams_.size(); ++other) {
      if (other == i) continue;
      check_cuda(cudaStreamWaitEvent(streams_[i].get(), joins_[other].get(), 0), "streams meet: cudaStreamWaitEvent");
    }
  }
  tick(StepPart::kCommunication);
}

void CudaDevice::synchronize() {
  collectives().watched("what was enqueued", [&] {
    for (const UniqueStream& stream : streams_) {
      check_cuda(cudaStreamSynchronize(stream.get()), "wait for the GPU: cudaStreamSynchronize");
    }
  });
}

void CudaDevice::mark() {
  check_cuda(cudaEventRecord(marks_[static_cast<std::size_t>(marked_ % 2)].get(), stream(StreamId::kCompute)),
             "a mark: cudaEventRecord");
  ++marked_;
}

void CudaDevice::await_mark() {
  if (marked_ < 2) return;
  collectives().watched("a micro-batch", [&] {
    check_cuda(cudaEventSynchronize(marks_[static_cast<std::size_t>(marked_ % 2)].get()),
               "wait for a micro-batch: cudaEventSynchronize");
  });
}

void CudaDevice::upload(const Tensor& to, std::span<const std::byte> from) {
  if (from.size() != static_cast<std::size_t>(to.extent_bytes())) {
    throw std::logic_error(fmt::format("{} bytes are uploaded to {}", from.size(), to.extent_bytes()));
  }
  collectives().watched("an upload", [&] { staging_.upload(at(to), from, stream(StreamId::kCompute)); });
}

void CudaDevice::download(const Tensor& from, std::span<std::byte> to) {
  if (to.size() != static_cast<std::size_t>(from.extent_bytes())) {
    throw std::logic_error(fmt::format("{} bytes are downloaded to {}", from.extent_bytes(), to.size()));
  }
  collectives().watched("a download", [&] { staging_.download(at(from), to, stream(StreamId::kCompute)); });
}

void CudaDevice::send_result(int slot, std::span<const Tensor> from) {
  collectives().watched("what a step leaves", [&] {
    for (const Tensor& tensor : from) {
      results_.add(slot, {at(tensor), static_cast<std::size_t>(tensor.extent_bytes())}, stream(StreamId::kCompute));
    }
    results_.finish(slot, stream(StreamId::kCompute));
  });
  if (measured_ != nullptr) measured_->end();
  measured_ = nullptr;
}

void CudaDevice::await_result(int slot, std::span<std::byte> to) {
  collectives().watched("a step's result", [&] { results_.await(slot, to); });
}

void CudaDevice::measure_seconds(int slot) {
  measured_ = &seconds_.at(static_cast<std::size_t>(slot));
  measured_->begin(stream(StreamId::kCompute));
}

// Nothing that is enqueued can be taken back; with the collectives aborted it all ends.
void CudaDevice::reset() noexcept {
  for (const UniqueStream& stream : streams_) (void)cudaStreamSynchronize(stream.get());
  (void)cudaGetLastError();
  marked_ = 0;
  measured_ = nullptr;
  for (CudaSeconds& seconds : seconds_) seconds.forget();
  try {
    collectives_.reset();
    meet();
  } catch (const std::exception& error) {
    failed_ = error.what();
  }
}

void CudaDevice::abort(const std::string& reason) noexcept {
  std::shared_ptr<CudaClique> clique;
  {
    const MutexLock lock(mutex_);
    clique = clique_;
  }
  if (clique) clique->abort(reason);
}

}  // namespace atl
