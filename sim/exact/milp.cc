#include "sim/exact/milp.h"

#include <fmt/format.h>
#include <ostream>
#include <utility>

namespace pipesim::exact {

Linear& Linear::add(double factor, int variable) {
  double& coefficient = terms[variable];
  coefficient += factor;
  if (coefficient == 0) terms.erase(variable);
  return *this;
}

Linear& Linear::add(double factor, const Linear& other) {
  constant += factor * other.constant;
  for (const auto& [variable, coefficient] : other.terms) add(factor * coefficient, variable);
  return *this;
}

int Milp::add_binary(std::string name) {
  binaries_.push_back(static_cast<int>(names_.size()));
  names_.push_back(std::move(name));
  return binaries_.back();
}

int Milp::add_continuous(std::string name, double lower, double upper) {
  bounds_.push_back({static_cast<int>(names_.size()), lower, upper});
  names_.push_back(std::move(name));
  return bounds_.back().variable;
}

void Milp::add_at_least(const Linear& left, double right) {
  if (!left.terms.empty()) rows_.push_back({left, right});
}

void Milp::write_lp(std::ostream& out) const {
  const auto name = [this](int variable) { return names_[variable]; };
  out << "Minimize\n cost: " << name(objective_) << "\nSubject To\n";
  for (size_t i = 0; i < rows_.size(); ++i) {
    out << " r" << i << ":";
    int written = 0;
    for (const auto& [variable, coefficient] : rows_[i].left.terms) {
      if (++written % 8 == 0) out << "\n ";  // lines of the format are short
      out << fmt::format(" {:+} {}", coefficient, name(variable));
    }
    out << fmt::format(" >= {}\n", rows_[i].right - rows_[i].left.constant);
  }
  out << "Bounds\n";
  for (const Bounds& bounds : bounds_) {
    out << fmt::format(" {} <= {} <= {}\n", bounds.lower, name(bounds.variable), bounds.upper);
  }
  out << "Binaries\n";
  for (const int variable : binaries_) out << " " << name(variable) << "\n";
  out << "End\n";
}

void Milp::write_start(std::ostream& out, const std::map<int, double>& values) const {
  out << "Feasible - objective value 0\n";
  for (const auto& [variable, value] : values) {
    out << fmt::format("{} {} {} 0\n", variable, names_[variable], value);
  }
}

}  // namespace pipesim::exact
