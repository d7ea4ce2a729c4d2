// Results for people: a table that compares schedules, idle time by cause, and peaks per device.
#pragma once

#include <span>
#include <string>

#include "sim/prepare/advice.h"

namespace pipesim {

// The width that comparison_table keeps to, long names of schedules aside.
inline constexpr size_t kTableColumns = 100;

// One row per schedule: iteration time, bubble rate, peak memory, throughput; comparison_csv has
// every metric.
std::string comparison_table(std::span<const Answer> answers);

// One row per device of one schedule: busy, idle by cause, peak activation and where it occurs.
std::string device_table(const Case& made, const Result& result);

// The comparison as CSV with units in the column names; empty cells where nothing applies.
std::string comparison_csv(std::span<const Answer> answers);

// Memory over time: the level of every device after each change, by category.
std::string memory_csv(std::span<const Answer> answers);

// The kinds of tasks on the critical path.
std::string critical_path_line(const Result& result);

}  // namespace pipesim
