// safetensors files (HuggingFace's format: u64 header length, JSON header, tensors end to end), read by memory mapping.
// A header that lies about lengths or offsets is refused. No torch; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "net/base/bytes.h"
#include "net/base/file.h"
#include "net/base/result.h"

namespace atl {

class SafetensorsFile {
 public:
  enum class Type { kF32, kF16, kBf16, kI64, kOther };
  struct Tensor {
    Type type = Type::kOther;
    std::string type_name;  // as in the header
    std::vector<std::int64_t> shape;
    std::int64_t numel = 0;
    ByteView bytes;  // in the mapping; alive as long as the file object
  };

  static Result<SafetensorsFile> open(const std::filesystem::path& path);

  const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  bool has(const std::string& name) const { return tensors_.contains(name); }
  // kNotFound, naming the file, when there is no such tensor.
  Result<Tensor> tensor(const std::string& name) const;
  // F32 as it is, F16 and BF16 widened; `out` has exactly the tensor's elements.
  Status read_floats(const std::string& name, std::span<float> out) const;
  Result<std::vector<float>> floats(const std::string& name) const;
  Result<std::vector<std::int64_t>> integers(const std::string& name) const;

 private:
  SafetensorsFile(std::filesystem::path path, MappedFile file) : path_(std::move(path)), file_(std::move(file)) {}
  Status parse();

  std::filesystem::path path_;
  MappedFile file_;
  std::map<std::string, Tensor> tensors_;
};

// Whether widen() reads it: F32, F16 or BF16.
bool is_float(SafetensorsFile::Type type);
// The elements from `first` on of a tensor that is_float(), exactly; `out` ends within it.
void widen(const SafetensorsFile::Tensor& tensor, std::size_t first, std::span<float> out);

// What is written of a tensor, before its values.
struct SafetensorsEntry {
  std::string name;
  std::string type_name;  // "F32", "BF16", ...
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
};
// What stands before the tensors' bytes, which follow in this order, end to end: the header with its length, and the
// metadata {"format": "pt"} that transformers asks for. A multiple of 8 bytes.
std::string safetensors_header(std::span<const SafetensorsEntry> entries);

}  // namespace atl
