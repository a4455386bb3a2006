#include "net/model_files/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "net/base/json_reader.h"
#include "net/base/printable.h"

namespace atl {
namespace {

constexpr std::uint64_t kMaxHeaderBytes = 100u << 20;  // the limit of HuggingFace's own reader
constexpr int kMaxHeaderDepth = 6;
constexpr std::size_t kMaxDimensions = 16;
constexpr std::size_t kShownName = 128;  // bytes of a tensor's name

struct TypeSize {
  SafetensorsFile::Type type;
  std::int64_t bytes;
};

// Types that Atoll does not read still have a size, so that their offsets are checked.
std::optional<TypeSize> type_of(std::string_view name) {
  using Type = SafetensorsFile::Type;
  if (name == "F32") return TypeSize{Type::kF32, 4};
  if (name == "F16") return TypeSize{Type::kF16, 2};
  if (name == "BF16") return TypeSize{Type::kBf16, 2};
  if (name == "I64") return TypeSize{Type::kI64, 8};
  if (name == "F64" || name == "U64") return TypeSize{Type::kOther, 8};
  if (name == "I32" || name == "U32") return TypeSize{Type::kOther, 4};
  if (name == "I16" || name == "U16") return TypeSize{Type::kOther, 2};
  if (name == "I8" || name == "U8" || name == "BOOL") return TypeSize{Type::kOther, 1};
  return std::nullopt;
}

float widen_half(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float subnormal = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -subnormal : subnormal;
}

// The product of the dimensions, or nothing when it is no plausible size.
std::optional<std::int64_t> numel_of(const std::vector<std::int64_t>& shape) {
  constexpr std::int64_t kMost = std::int64_t{1} << 48;
  std::int64_t numel = 1;
  for (const std::int64_t size : shape) {
    if (size < 0 || size > kMost || __builtin_mul_overflow(numel, size, &numel) || numel > kMost) return std::nullopt;
  }
  return numel;
}

// What is wrong with one entry of the header is told by the reader.
void read_entry(JsonReader& entry, ByteView data, SafetensorsFile::Tensor& tensor) {
  std::vector<std::int64_t> offsets;
  entry.text("dtype", tensor.type_name, kMaxPersonName);
  entry.integers("shape", tensor.shape);
  entry.integers("data_offsets", offsets);
  if (!entry.status().ok()) return;
  const auto type = type_of(tensor.type_name);
  if (!type) return entry.fail_field("dtype", fmt::format("is the unknown type {}", tensor.type_name));
  tensor.type = type->type;
  const auto numel = tensor.shape.size() <= kMaxDimensions ? numel_of(tensor.shape) : std::nullopt;
  if (!numel) return entry.fail_field("shape", "is no possible shape");
  tensor.numel = *numel;
  if (offsets.size() != 2 || offsets[0] < 0 || offsets[1] < offsets[0]) {
    return entry.fail_field("data_offsets", "is no beginning and end");
  }
  const auto begin = static_cast<std::uint64_t>(offsets[0]), end = static_cast<std::uint64_t>(offsets[1]);
  if (end > data.size()) {
    return entry.fail_field("data_offsets", fmt::format("says [{}, {}), beyond the file's end", begin, end));
  }
  if (end - begin != static_cast<std::uint64_t>(tensor.numel * type->bytes)) {
    return entry.fail_field("data_offsets", "does not fit the shape");
  }
  tensor.bytes = data.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

bool is_float(SafetensorsFile::Type type) {
  using Type = SafetensorsFile::Type;
  return type == Type::kF32 || type == Type::kF16 || type == Type::kBf16;
}

void widen(const SafetensorsFile::Tensor& tensor, std::size_t first, std::span<float> out) {
  if (out.empty()) return;
  if (tensor.type == SafetensorsFile::Type::kF32) {
    std::memcpy(out.data(), tensor.bytes.data() + sizeof(float) * first, out.size_bytes());
    return;
  }
  const std::byte* at = tensor.bytes.data() + sizeof(std::uint16_t) * first;
  if (tensor.type == SafetensorsFile::Type::kF16) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = widen_half(load<std::uint16_t>(at + 2 * i));
  } else {
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(at + 2 * i)) << 16);
    }
  }
}

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  ATOLL_ASSIGN_OR_RETURN(MappedFile mapping, MappedFile::open(path));
  SafetensorsFile file(path, std::move(mapping));
  ATOLL_RETURN_IF_ERROR(file.parse());
  return file;
}

Status SafetensorsFile::parse() {
  const auto corrupt = [&](std::string_view what) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} is not a whole safetensors file: {}; fetch or export it again", path_.string(), what)};
  };
  const ByteView bytes = file_.bytes();
  if (bytes.size() < 8) return corrupt("it is shorter than 8 bytes");
  const auto length = load<std::uint64_t>(bytes.data());
  if (length > kMaxHeaderBytes) return corrupt(fmt::format("its header claims {} bytes", length));
  if (length > bytes.size() - 8) {
    return corrupt(fmt::format("it ends within its header of {} bytes (truncated?)", length));
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, static_cast<std::size_t>(length));
  const auto header = parse_bounded_json(text, kMaxHeaderBytes, kMaxHeaderDepth);
  if (!header.ok()) return corrupt("its header is wrong: " + header.error().message);
  if (!header->is_object()) return corrupt("its header is no JSON object");
  const ByteView data = bytes.subspan(8 + static_cast<std::size_t>(length));
  std::vector<std::pair<const std::byte*, std::string>> order;
  for (const auto& [name, json] : header->items()) {
    if (name == "__metadata__") continue;
    const std::string shown = printable(name, kShownName);
    Tensor tensor;
    JsonReader entry(json, shown);
    read_entry(entry, data, tensor);
    if (!entry.status().ok()) return corrupt(entry.status().error().message);
    if (!tensor.bytes.empty()) order.emplace_back(tensor.bytes.data(), name);
    tensors_.emplace(name, std::move(tensor));
  }
  // The format allows neither overlaps nor holes.
  std::sort(order.begin(), order.end());
  const std::byte* expected = data.data();
  for (const auto& [begin, name] : order) {
    if (begin != expected) {
      return corrupt(fmt::format("tensor {} overlaps another or leaves a hole", printable(name, kShownName)));
    }
    expected = begin + tensors_.at(name).bytes.size();
  }
  if (!data.empty() && expected != data.data() + data.size()) return corrupt("bytes follow its last tensor");
  return ok_status();
}

Result<SafetensorsFile::Tensor> SafetensorsFile::tensor(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  return Error{ErrorCode::kNotFound, fmt::format("{} has no tensor {}", path_.string(), name)};
}

Status SafetensorsFile::read_floats(const std::string& name, std::span<float> out) const {
  ATOLL_ASSIGN_OR_RETURN(const Tensor found, tensor(name));
  if (out.size() != static_cast<std::size_t>(found.numel)) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: tensor {} has {} elements where {} are expected",
                                                          path_.string(), name, found.numel, out.size())};
  }
  if (!is_float(found.type)) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: tensor {} has type {}; F32, F16 or BF16 is needed",
                                                          path_.string(), name, found.type_name)};
  }
  widen(found, 0, out);
  return ok_status();
}

Result<std::vector<float>> SafetensorsFile::floats(const std::string& name) const {
  ATOLL_ASSIGN_OR_RETURN(const Tensor found, tensor(name));
  std::vector<float> values(static_cast<std::size_t>(found.numel));
  ATOLL_RETURN_IF_ERROR(read_floats(name, values));
  return values;
}

Result<std::vector<std::int64_t>> SafetensorsFile::integers(const std::string& name) const {
  ATOLL_ASSIGN_OR_RETURN(const Tensor found, tensor(name));
  if (found.type != Type::kI64) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: tensor {} has type {}; I64 is needed", path_.string(), name, found.type_name)};
  }
  std::vector<std::int64_t> values(static_cast<std::size_t>(found.numel));
  if (!values.empty()) std::memcpy(values.data(), found.bytes.data(), found.bytes.size());
  return values;
}

}  // namespace atl
