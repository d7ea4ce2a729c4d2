// The device, software and date of a measurement: the head of every file that the harness writes.
#pragma once

#include "validate/calibration/harness/attention.h"
#include "validate/calibration/harness/card.h"
#include "validate/calibration/measurements.h"

namespace pipesim::calibration {

// device, date, driver, cuda, cublas, and cudnn where it is.
[[nodiscard]] Parameters facts_of(const Card& card, const AttentionLibrary& attention);

// `attention` of the facts: which kernels it is made of.
[[nodiscard]] std::string attention_fact(const AttentionLibrary& attention);

[[nodiscard]] std::string library_version(std::size_t version);

}  // namespace pipesim::calibration
