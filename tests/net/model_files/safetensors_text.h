// safetensors files for tests, of any type and with any tensors.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kernels/bf16.h"
#include "net/base/file.h"
#include "net/model_files/safetensors.h"

namespace atl::test {

struct TensorText {
  SafetensorsEntry entry;
  std::string bytes;
};

inline TensorText tensor_of_bytes(std::string name, std::string type_name, std::vector<std::int64_t> shape,
                                  std::string bytes) {
  const std::uint64_t size = bytes.size();
  return {{std::move(name), std::move(type_name), std::move(shape), size}, std::move(bytes)};
}

inline TensorText fp32_tensor(std::string name, std::vector<std::int64_t> shape, std::span<const float> values) {
  return tensor_of_bytes(std::move(name), "F32", std::move(shape),
                         {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

inline TensorText bf16_tensor(std::string name, std::vector<std::int64_t> shape, std::span<const float> values) {
  std::string bytes(2 * values.size(), '\0');
  encode_bf16(values.data(), values.size(), reinterpret_cast<std::byte*>(bytes.data()));
  return tensor_of_bytes(std::move(name), "BF16", std::move(shape), std::move(bytes));
}

inline Status write_tensors(const std::filesystem::path& path, const std::vector<TensorText>& tensors) {
  std::vector<SafetensorsEntry> entries;
  for (const TensorText& tensor : tensors) entries.push_back(tensor.entry);
  std::string file = safetensors_header(entries);
  for (const TensorText& tensor : tensors) file += tensor.bytes;
  return write_file_atomically(path, file, FileMode::kPublic);
}

}  // namespace atl::test
