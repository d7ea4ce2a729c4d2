#include "sim/graph/boost_rows.h"

#include <memory>
#include <utility>

namespace pipesim {

// Handed over whole: Boost's own constructors would copy them edge by edge.
void TaskGraph::set_rows(std::vector<std::uint32_t> row, std::vector<TaskId> waits_for) {
  auto rows = std::make_shared<Rows>();
  rows->graph.m_forward.m_rowstart = std::move(row);
  rows->graph.m_forward.m_column = std::move(waits_for);
  row_starts_ = rows->graph.m_forward.m_rowstart;
  edges_ = rows->graph.m_forward.m_column;
  rows_ = std::move(rows);
}

}  // namespace pipesim
