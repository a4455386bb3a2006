#include "trainer/fsdp/flat_unit.h"

#include <ATen/core/TensorBase.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <cstring>

namespace atl {
namespace {

c10::Storage alias(std::span<float> values) {
  c10::DataPtr pointer(values.data(), c10::Device(c10::DeviceType::CPU));
  return c10::Storage(c10::Storage::use_byte_size_t(), values.size_bytes(), std::move(pointer));
}

c10::Storage empty_storage(c10::Allocator& allocator) {
  c10::DataPtr nothing(nullptr, c10::Device(c10::DeviceType::CPU));
  return c10::Storage(c10::Storage::use_byte_size_t(), 0, std::move(nothing), &allocator, true);
}

// A tensor over storage that may be empty now; at::Tensor::set_ would resize it.
at::Tensor tensor_over(const c10::Storage& storage, std::int64_t offset, at::IntArrayRef sizes) {
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), caffe2::TypeMeta::Make<float>());
  tensor.unsafeGetTensorImpl()->set_storage_offset(offset);
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return tensor;
}

}  // namespace

struct UnshardedAllocator::Block {
  c10::DataPtr memory;
  UnshardedAllocator* owner;
  std::int64_t bytes;
};

c10::DataPtr UnshardedAllocator::allocate(std::size_t bytes) {
  auto* block = new Block{c10::GetCPUAllocator()->allocate(bytes), this, static_cast<std::int64_t>(bytes)};
  current_ += block->bytes;
  peak_ = std::max(peak_, current_);
  return {block->memory.get(), block, &UnshardedAllocator::release, c10::Device(c10::DeviceType::CPU)};
}

void UnshardedAllocator::release(void* pointer) {
  auto* block = static_cast<Block*>(pointer);
  block->owner->current_ -= block->bytes;
  delete block;
}

void UnshardedAllocator::copy_data(void* destination, const void* source, std::size_t count) const {
  std::memcpy(destination, source, count);
}

FlatUnit::FlatUnit(std::int64_t numel, std::span<float> shard, std::span<float> shard_gradient,
                   Communicator& communicator, UnshardedAllocator& allocator)
    : padded_numel_(
          static_cast<std::size_t>(shard_numel(numel, communicator.world_size()) * communicator.world_size())),
      shard_(shard),
      shard_gradient_(shard_gradient),
      communicator_(communicator),
      allocator_(allocator),
      sharded_(communicator.world_size() > 1),
      parameters_(sharded_ ? empty_storage(allocator) : alias(shard)),
      gradients_(sharded_ ? empty_storage(allocator) : alias(shard_gradient)) {}

ParameterView FlatUnit::view(std::int64_t offset, at::IntArrayRef sizes) const {
  return {tensor_over(parameters_, offset, sizes), tensor_over(gradients_, offset, sizes)};
}

void FlatUnit::gather() {
  if (!sharded_) return;
  fill(parameters_);
  communicator_.all_gather(shard_, elements(parameters_));
}

void FlatUnit::release_parameters() {
  if (sharded_) empty(parameters_);
}

void FlatUnit::open_gradients() {
  if (!sharded_) return;
  fill(gradients_);
  const auto values = elements(gradients_);
  std::fill(values.begin(), values.end(), 0.0f);
}

void FlatUnit::reduce_gradients() {
  if (!sharded_) return;
  communicator_.reduce_scatter_add(elements(gradients_), shard_gradient_);
  empty(gradients_);
}

void FlatUnit::release() {
  if (!sharded_) return;
  empty(parameters_);
  empty(gradients_);
}

std::span<float> FlatUnit::elements(const c10::Storage& storage) const {
  return {static_cast<float*>(storage.mutable_data()), padded_numel_};
}

// The pointer is replaced beneath the tensors: no operator runs, so no version counter moves.
void FlatUnit::fill(const c10::Storage& storage) const {
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  const std::size_t bytes = padded_numel_ * sizeof(float);
  empty(storage);
  impl->set_data_ptr_noswap(allocator_.allocate(bytes));
  impl->set_nbytes(bytes);
}

void FlatUnit::empty(const c10::Storage& storage) const {
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  impl->set_data_ptr_noswap(c10::DataPtr(nullptr, c10::Device(c10::DeviceType::CPU)));
  impl->set_nbytes(0);
}

}  // namespace atl
