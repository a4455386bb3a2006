// Whether devices compute what they should, asked before they are trusted: one batch of a small model of the run's
// kind, forward and backward, or texts over a cache, there and on this processor, in the same programs. A driver, a
// library or a card that is not right shows as another loss, or as another gradient, and not as a model that learns
// badly. Takes a second. Any thread.
#pragma once

#include <memory>

#include "net/base/result.h"
#include "net/model/config.h"
#include "net/step/llama_step.h"
#include "trainer/device/device_group.h"

namespace atl {

// `devices`: used, and given back. The heads of the small model are those of `model`, a group of them, in size and
// number of queries a key; with AttentionScope::kDocument the batch has several documents a sequence. kInternal names
// what differs, by how much.
Status check_devices(const ModelConfig& model, Precision precision, AttentionScope attention,
                     std::unique_ptr<DeviceGroup> devices);

// As check_devices, of one device that is to read and write texts (inference_engine.h).
Status check_inference_device(const ModelConfig& model, Precision precision, std::unique_ptr<DeviceGroup> device);

}  // namespace atl
