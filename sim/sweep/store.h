// The results of a sweep in DIR/results.sqlite, written by one process.
//
// A result is stored once under the key of its resolved scenario; points refer to it. A `commit`
// that has returned survives kill -9 and a power cut: a rollback journal with synchronous=FULL. A
// journal suits better than a write-ahead log. There are a few commits a second, and the store is
// one file. It works on the network file systems of clusters, which share no memory. The process
// holds the store alone (locking_mode=EXCLUSIVE). Any failure leaves the file as it was at the last
// commit. Every row has a checksum, checked at opening and at each reading, so that a change by the
// disk is found.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/sweep/point.h"

struct sqlite3;
struct sqlite3_stmt;

namespace pipesim {

inline constexpr const char* kStoreName = "results.sqlite";

class ResultStore {
 public:
  // Opens the store of `folder`, or makes one for `sweep`. InputError at `asked` where the folder
  // cannot be written, or its store is none, damaged, in use, or of another `version` (build.h) or
  // sweep. Nothing is changed then. InfeasibleError where the disk is full.
  ResultStore(const std::string& folder, const Sweep& sweep, const std::string& version,
              const Location& asked);
  ResultStore(const ResultStore&) = delete;
  ResultStore& operator=(const ResultStore&) = delete;
  ~ResultStore();

  // Says for each point, by its number, if it has a result.
  [[nodiscard]] const std::vector<bool>& stored() const { return stored_; }

  // Keeps the result for the next commit. A point that is stored already is left as it is. Not for
  // faults, which are no results.
  void add(const PointResult& result);
  // InfeasibleError when the disk is full or does not write, or the store is moved or removed; then
  // nothing since the last is stored.
  void commit();

  // The points that have been committed, in their order: all, those with metrics, or those that
  // were refused. InputError for a row that is damaged.
  enum class Rows : std::uint8_t { kAll, kDone, kRefused };
  void visit(Rows rows, const std::function<void(const PointResult&)>& see) const;
  struct Counts {
    std::uint32_t refused = 0;
    std::uint32_t unfit = 0;  // with metrics that say so
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
    void operator()(sqlite3_stmt* statement) const;
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Close>;

  void check(const Sweep& sweep, const std::string& version);
  void create(const Sweep& sweep, const std::string& version);
  void find_stored();
  void execute(const char* sql) const;
  [[nodiscard]] Statement prepare(const std::string& sql) const;
  bool step(sqlite3_stmt* statement) const;
  [[nodiscard]] std::string text_of(const std::string& sql) const;
  [[noreturn]] void fail() const;
  void refuse_without_handles() const;
  [[noreturn]] void refuse(const std::string& why) const;

  std::string path_;
  Location asked_;
  std::unique_ptr<sqlite3, Close> database_;
  Statement add_result_, add_point_;
  std::vector<bool> stored_;
  std::vector<PointResult> waiting_;
};

}  // namespace pipesim
