// A mixed-integer linear program, to be minimised, and how it is written for a solver.
#pragma once

#include <iosfwd>
#include <map>
#include <string>
#include <vector>

namespace pipesim::exact {

// constant + sum of coefficient * variable
struct Linear {
  double constant = 0;
  std::map<int, double> terms = {};

  Linear& add(double factor, int variable);
  Linear& add(double factor, const Linear& other);
};

class Milp {
 public:
  int add_binary(std::string name);
  int add_continuous(std::string name, double lower, double upper);
  void add_at_least(const Linear& left,
                    double right);  // left >= right; one without terms is dropped
  void minimise(int variable) { objective_ = variable; }

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] size_t rows() const { return rows_.size(); }
  [[nodiscard]] size_t binaries() const { return binaries_.size(); }

  void write_lp(std::ostream& out) const;  // CPLEX's LP format
  // Values of some variables, in the form that CBC starts from.
  void write_start(std::ostream& out, const std::map<int, double>& values) const;

 private:
  struct Row {
    Linear left;
    double right;
  };
  struct Bounds {
    int variable;
    double lower;
    double upper;
  };

  std::vector<std::string> names_;
  std::vector<int> binaries_;
  std::vector<Bounds> bounds_;
  std::vector<Row> rows_;
  int objective_ = 0;
};

}  // namespace pipesim::exact
