#include "trainer/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

namespace atl {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxHeaderBytes = 100u << 20;  // the limit of HuggingFace's own reader
constexpr int kMaxHeaderDepth = 6;
constexpr std::size_t kMaxDimensions = 16;

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
std::optional<std::int64_t> numel_of(const json& shape, std::vector<std::int64_t>& out) {
  if (!shape.is_array() || shape.size() > kMaxDimensions) return std::nullopt;
  std::int64_t numel = 1;
  for (const auto& dimension : shape) {
    if (!dimension.is_number_unsigned() || dimension.get<std::uint64_t>() > (std::uint64_t{1} << 48))
      return std::nullopt;
    const auto size = dimension.get<std::int64_t>();
    if (__builtin_mul_overflow(numel, size, &numel) || numel > (std::int64_t{1} << 48)) return std::nullopt;
    out.push_back(size);
  }
  return numel;
}

std::string read_header(ByteView bytes, std::uint64_t length, json& header) {
  if (length > kMaxHeaderBytes) return fmt::format("its header claims {} bytes", length);
  if (length > bytes.size() - 8) return fmt::format("it ends within its header of {} bytes (truncated?)", length);
  bool too_deep = false;
  const auto bound_depth = [&](int depth, json::parse_event_t, json&) {
    if (depth > kMaxHeaderDepth) too_deep = true;
    return !too_deep;
  };
  const auto text = bytes.subspan(8, static_cast<std::size_t>(length));
  const auto* begin = reinterpret_cast<const char*>(text.data());
  header = json::parse(begin, begin + text.size(), bound_depth, false);
  if (too_deep || header.is_discarded() || !header.is_object()) return "its header is not a JSON object";
  return {};
}

// What is wrong with one entry of the header, or nothing.
std::string read_entry(const json& entry, ByteView data, SafetensorsFile::Tensor& tensor) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() || !entry.contains("shape") ||
      !entry.contains("data_offsets")) {
    return "lacks dtype, shape or data_offsets";
  }
  tensor.type_name = entry["dtype"].get<std::string>();
  const auto type = type_of(tensor.type_name);
  if (!type) return fmt::format("has the unknown type {}", tensor.type_name);
  tensor.type = type->type;
  const auto numel = numel_of(entry["shape"], tensor.shape);
  if (!numel) return "has an impossible shape";
  tensor.numel = *numel;
  const auto& offsets = entry["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    return "has malformed data_offsets";
  }
  const auto begin = offsets[0].get<std::uint64_t>();
  const auto end = offsets[1].get<std::uint64_t>();
  if (begin > end || end > data.size()) return fmt::format("lies at [{}, {}), beyond the file's end", begin, end);
  if (end - begin != static_cast<std::uint64_t>(tensor.numel * type->bytes)) {
    return "has data_offsets that do not fit its shape";
  }
  tensor.bytes = data.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  return {};
}

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

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
  json header;
  if (const std::string problem = read_header(bytes, length, header); !problem.empty()) return corrupt(problem);
  const ByteView data = bytes.subspan(8 + static_cast<std::size_t>(length));
  std::vector<std::pair<const std::byte*, std::string>> order;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    Tensor tensor;
    if (const std::string problem = read_entry(entry, data, tensor); !problem.empty()) {
      return corrupt(fmt::format("tensor {} {}", name, problem));
    }
    if (!tensor.bytes.empty()) order.emplace_back(tensor.bytes.data(), name);
    tensors_.emplace(name, std::move(tensor));
  }
  // The format allows neither overlaps nor holes.
  std::sort(order.begin(), order.end());
  const std::byte* expected = data.data();
  for (const auto& [begin, name] : order) {
    if (begin != expected) return corrupt(fmt::format("tensor {} overlaps another or leaves a hole", name));
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
  const std::byte* at = found.bytes.data();
  switch (found.type) {
    case Type::kF32:
      if (!out.empty()) std::memcpy(out.data(), at, found.bytes.size());
      return ok_status();
    case Type::kF16:
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = widen_half(load<std::uint16_t>(at + 2 * i));
      return ok_status();
    case Type::kBf16:
      for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(at + 2 * i)) << 16);
      }
      return ok_status();
    case Type::kI64:
    case Type::kOther: break;
  }
  return Error{ErrorCode::kInvalidArgument, fmt::format("{}: tensor {} has type {}; F32, F16 or BF16 is needed",
                                                        path_.string(), name, found.type_name)};
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
