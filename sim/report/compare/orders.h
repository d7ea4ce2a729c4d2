// Two orders of passes side by side: where they part, what each device loses to which cause, and on
// which device's passes the end depends.
//
// Both run on as many devices in as many pipelines. Busy and idle seconds of each device sum to the
// iteration time (docs/reference/model.md), so their differences sum to the difference of iteration
// times. It equals the difference of makespans wherever iterations do not overlap. Orders are those
// of the first pipeline's middle iteration.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/band/difference.h"
#include "sim/prepare/advice.h"
#include "sim/report/html/html.h"

namespace pipesim {

// A pass, and when it starts after the first of all; without a name where the order has ended.
struct PlacedPass {
  std::string name;
  Seconds start;
};

struct OrdersPart {
  size_t position = 0;  // from 0, in the device's order
  PlacedPass a, b;
};

struct DeviceLoss {
  Seconds busy;
  IdleSeconds idle{};
  [[nodiscard]] Seconds sum() const;
};

// Seconds of the chain that decides the last end, over all iterations that were simulated.
struct PathSeconds {
  std::vector<Seconds> devices;  // passes and optimizer steps, by device
  Seconds messages;
  Seconds others;  // collectives and copies
  [[nodiscard]] Seconds sum() const;
  [[nodiscard]] int most() const;  // the device that has most of it; ties: the lowest
};

struct OrdersCompared {
  std::vector<std::optional<OrdersPart>> parts;  // by device of the pipeline; nothing: equal
  std::optional<int> first;                      // the device where they part soonest
  std::vector<DeviceLoss> losses;                // by device: of B less of A
  DeviceLoss mean;                               // of them
  std::array<PathSeconds, 2> path;               // of A and B
};

// How far off the difference may be; empty where costs are given, or model, machine, microbatches
// or ranks differ besides.
std::optional<DifferenceBand> difference_band_of(const Answer& a, const Answer& b);

// O(tasks). Requires the same numbers of devices and pipelines.
OrdersCompared compare_orders(const Result& a, const Result& b);

// The causes by which some device loses or gains in `compared`.
std::vector<IdleCause> causes_in(const OrdersCompared& compared);

// For people; `a` and `b` are called as their cases are labelled.
std::string orders_text(const Answer& a, const Answer& b, const OrdersCompared& compared);

// The document of docs/reference/json.md.
std::string orders_json(const Answer& a, const Answer& b, const OrdersCompared& compared,
                        const std::string& version);

// Both drawn one above the other on one time axis, with a frame where each device's order parts.
std::string orders_svg(const Answer& a, const Answer& b, const OrdersCompared& compared);

// A report of both runs with the text's sentences and tables. `overrides` changed both scenarios.
HtmlReport orders_report(const Answer& a, const Answer& b, const OrdersCompared& compared,
                         const std::string& version, const std::vector<std::string>& overrides);

}  // namespace pipesim
