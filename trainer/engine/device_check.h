// Whether devices compute what they should, asked before they are trusted: batches of a small model of the run's
// kind, forward and backward, or texts over a cache, there and on this processor, in the same programs. A driver, a
// library or a card that is not right shows as another loss, or as another gradient, and not as a model that learns
// badly. Takes a second. Any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "net/base/result.h"
#include "net/model/config.h"
#include "net/step/llama_step.h"
#include "trainer/device/device_group.h"

namespace atl {

// Of the batch beside the one of an odd length, in bf16 and where attention is not kept within documents: what fused
// attention kernels take (cuDNN's lengths that are multiples of kCudnnLengths), as in training.
inline constexpr std::int64_t kFusedCheckLength = 128;

// `devices`: used, and given back. The heads of the small model are those of `model`, a group of them, in size and
// number of queries a key; with AttentionScope::kDocument the batch has several documents a sequence. kInternal names
// what differs, by how much.
Status check_devices(const ModelConfig& model, Precision precision, AttentionScope attention,
                     std::unique_ptr<DeviceGroup> devices);

// How far a device that reads and writes texts is from this processor, at most and of the largest value.
struct InferenceDifference {
  double next_token = 0;   // logits
  double probability = 0;  // of labels, in nats
};
Result<InferenceDifference> compare_inference(const ModelConfig& model, Precision precision,
                                              std::unique_ptr<DeviceGroup> device);

// As check_devices, of one device that is to read and write texts (inference_engine.h).
Status check_inference_device(const ModelConfig& model, Precision precision, std::unique_ptr<DeviceGroup> device);

}  // namespace atl
