// The rows of a plan: the searches of its questions, put in an order and named.
#pragma once

#include <vector>

#include "sim/layouts/report.h"

namespace pipesim {

// Searches the plan's question and those of other frameworks, and puts what each finds into one
// list. In a search for ideas (PlanOptions::ideas) the others give their fastest; unless
// `options.best` is 0 it is the most rows named. Otherwise the `options.best` fastest of all.
void search_rows(ClusterPlan& plan, const PlanOptions& options);

// Rows that run come before one that no framework runs. Next, those that were run with contention,
// by that time, come before the others. Names what each stands for.
void order_rows(std::vector<Planned>& rows);

}  // namespace pipesim
