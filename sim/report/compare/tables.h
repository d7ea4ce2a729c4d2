// The tables of two orders compared: the same rows for text and page.
#pragma once

#include <string>
#include <vector>

#include "sim/report/compare/orders.h"
#include "sim/report/text/aligned.h"

namespace pipesim {

struct OrdersTable {
  std::string title;
  std::vector<Row> rows;  // the first is the header
  size_t left = 1;        // columns that are words
};

// The numbers of both orders, a row each.
OrdersTable summary_table(const Answer& a, const Answer& b);
OrdersTable parts_table(const OrdersCompared& compared);
OrdersTable losses_table(const OrdersCompared& compared);
OrdersTable path_table(const OrdersCompared& compared);

// "B takes 1.2 ms less than A (6.10%)."
std::string verdict(const Answer& a, const Answer& b);
// The band of the difference, and whether it tells them apart; empty without a band.
std::string band_of_difference(const Answer& a, const Answer& b);
// Where they part first of all.
std::string first_part(const OrdersCompared& compared);
// On whose passes each end depends most.
std::string whose_path(const OrdersCompared& compared);

}  // namespace pipesim
