#include "validate/papers/validation_page.h"

#include <fmt/format.h>
#include <map>

namespace pipesim {
namespace {

// Text in a cell of a Markdown table.
std::string cell_text(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|' || c == '*' || c == '<' || c == '_') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

std::string in_unit(double error, bool relative) {
  return relative ? fmt::format("{:.1f}%", 100 * error) : fmt::format("{:.4f}", error);
}

// Two columns: recorded, and the goal with the cells that are within it.
std::string recorded_text(const TableError& error, const ExpectedError* recorded) {
  if (recorded == nullptr) return " | ";
  return fmt::format("{}, {} | {}: {} of {}", in_unit(recorded->median, error.relative),
                     in_unit(recorded->worst, error.relative),
                     in_unit(recorded->goal, error.relative), error.within(recorded->goal),
                     error.published);
}

std::string summary(const std::vector<Compared>& all,
                    const std::optional<ExpectedErrors>& expected) {
  std::string text =
      "| paper | table | cells | simulated | median error | worst | recorded (median, worst) | "
      "goal: "
      "cells within |\n"
      "|---|---|---|---|---|---|---|---|\n";
  std::string reasons;
  GoalsMet goals;
  for (const Compared& each : all) {
    for (const TableError& error : table_errors(each.cells)) {
      const bool any = error.simulated > 0;
      const auto* recorded = recorded_of(expected, each.validation->name, error.table);
      if (recorded != nullptr) goals.add(error, *recorded);
      if (recorded != nullptr && !recorded->reason.empty()) {
        reasons += fmt::format("- {}, {}: {}\n", cell_text(each.validation->name),
                               cell_text(error.table), cell_text(recorded->reason));
      }
      text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n",
                          cell_text(each.validation->name), cell_text(error.table), error.published,
                          error.simulated, any ? in_unit(error.median, error.relative) : "",
                          any ? in_unit(error.worst, error.relative) : "",
                          recorded_text(error, recorded));
    }
  }
  if (goals.tables > 0) text += "\n" + goals.text();
  if (!reasons.empty())
    text += "\nRecorded so far off that they could hardly fail, and why:\n\n" + reasons;
  return text;
}

// By reason, since one reason often holds for many cells.
std::string not_modelled(const Compared& compared) {
  std::map<std::string, std::map<std::string, int>> tables_of;
  for (const Cell& cell : compared.cells) {
    if (!cell.simulated) ++tables_of[cell.note][cell.table];
  }
  std::string text;
  for (const auto& [reason, tables] : tables_of) {
    std::string where;
    for (const auto& [table, cells] : tables) {
      where += fmt::format("{}{} ({} {})", where.empty() ? "" : ", ", cell_text(table), cells,
                           cells == 1 ? "cell" : "cells");
    }
    text += fmt::format("- {}, {}: {}\n", cell_text(compared.validation->name), where,
                        cell_text(reason.empty() ? "no reason given" : reason));
  }
  return text;
}

std::string error_text(const Cell& cell) {
  if (!cell.simulated) return "";
  return cell.relative ? fmt::format("{:+.1f}%", 100 * *cell.relative_error())
                       : fmt::format("{:+.{}f}", *cell.error(), cell.digits);
}

std::string cells_text(const Compared& compared) {
  std::string text = fmt::format(
      "\n## {}\n\n<details><summary>{} cells</summary>\n\n"
      "| table | cell | published | simulated | error | |\n|---|---|---|---|---|---|\n",
      cell_text(compared.validation->title), compared.cells.size());
  for (const Cell& cell : compared.cells) {
    text += fmt::format("| {} | {} | {:.{}f} | {} | {} | {}{} |\n", cell_text(cell.table),
                        cell_text(cell.cell), cell.published, cell.digits,
                        cell.simulated ? fmt::format("{:.{}f}", *cell.simulated, cell.digits) : "",
                        error_text(cell), cell.must_agree && !cell.agrees() ? "MISSED " : "",
                        cell_text(cell.note));
  }
  return text + "\n</details>\n";
}

}  // namespace

std::string validation_page(const std::vector<Compared>& all,
                            const std::optional<ExpectedErrors>& expected,
                            const std::string& where_from) {
  std::string page =
      "# Validation\n\n"
      "The simulator against published figures, made by `pipesim validate -o docs/reference`. "
      "Errors are shares of the published value, where a percent sign stands, else in the unit of "
      "the cell; a cell of an automatic schedule's bubble that is lower than published is not off. "
      "No "
      "constant is fitted to a cell but where a table says so. `pipesim validate` fails when a "
      "table is more than 0.2 points further off than recorded in "
      "`validate/papers/expected.yaml`, which has for each a goal besides: the median error that "
      "it "
      "should have.\n\n"
      "![simulated against published](validation.svg)\n\nHow well layouts are ordered "
      "(`pipesim validate layouts`, docs/how-to/validate.md):\n\n"
      "![tau and regret of measured layouts](validation-layouts.svg)\n\n## By table\n\n";
  page += summary(all, expected);
  std::string missing;
  for (const Compared& each : all) missing += not_modelled(each);
  page += "\n## Not modelled\n\n" + (missing.empty() ? "Nothing.\n" : missing);
  if (!where_from.empty()) page += "\n" + where_from;
  for (const Compared& each : all) page += cells_text(each);
  return page;
}

}  // namespace pipesim
