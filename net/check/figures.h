// Figures of the node check as people read them, always with their unit. Pure; any thread.
#pragma once

#include <string>

namespace atl::figures {

std::string bytes(double count);            // 212 GB (powers of 1000)
std::string bytes_per_second(double rate);  // 3.1 GB/s
std::string bits_per_second(double bytes);  // of bytes a second: 480 Mbit/s
std::string flops(double rate);             // 612 TFLOP/s
std::string seconds(double seconds);        // 38 s, 24 ms, 4m10s
std::string percent(double fraction);       // 61 %, 0.4 %
std::string count(double number);           // 7.3 billion, 310 million, 12,345

}  // namespace atl::figures
