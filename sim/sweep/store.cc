#include "sim/sweep/store.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <new>
#include <sqlite3.h>

namespace pipesim {
namespace {

constexpr int kApplication = 0x70697065;  // "pipe"
constexpr int kSchema = 5;

std::string metric_columns(const char* after) {
  std::string text;
  for (const Metric& metric : run_metrics()) text += fmt::format(", {}{}", metric.name, after);
  return text;
}

// The schedule is named in every row; what else was chosen is not known of a point that cannot be
// read.
std::string choice_columns(const char* after) {
  std::string text;
  for (const std::string_view name : kChoiceColumns) text += fmt::format("{}{}, ", name, after);
  return text;
}

std::string schema() {
  return fmt::format(
      "CREATE TABLE sweep (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
      "CREATE TABLE result (key BLOB PRIMARY KEY, {}reason TEXT{}, checksum BLOB NOT NULL) "
      "WITHOUT ROWID;"
      "CREATE TABLE point (point INTEGER PRIMARY KEY, key BLOB NOT NULL REFERENCES result, "
      "checksum BLOB NOT NULL);"
      "CREATE VIEW results AS SELECT point, hex(key) AS key, {}reason{}"
      " FROM point JOIN result USING (key) ORDER BY point;"
      "PRAGMA application_id = {}; PRAGMA user_version = {};",
      choice_columns(" TEXT NOT NULL"), metric_columns(" REAL"), choice_columns(""),
      metric_columns(""), kApplication, kSchema);
}

void bind_text(sqlite3_stmt* statement, int at, const std::string& text) {
  sqlite3_bind_text(statement, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

void bind_fingerprint(sqlite3_stmt* statement, int at, const Fingerprint& value) {
  sqlite3_bind_blob(statement, at, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
}

// Checksum of a row of `result`, which belongs to no point. SQLite keeps no sign of a zero, and
// stores NaN as null.
Fingerprint checksum_of(PointResult result) {
  result.point = 0;
  for (auto& value : result.metrics) {
    if (value && std::isnan(*value)) value.reset();
    if (value) *value += 0.0;
  }
  return fingerprint(to_bytes(result));
}

// Checksum of a row of `point`.
Fingerprint checksum_of(std::uint32_t point, const Fingerprint& key) {
  return fingerprint(fmt::format("{} {}", point, hex(key)));
}

// All zeros for what has another size.
Fingerprint column_fingerprint(sqlite3_stmt* statement, int at) {
  Fingerprint value{};
  const auto* bytes = static_cast<const std::uint8_t*>(sqlite3_column_blob(statement, at));
  if (sqlite3_column_bytes(statement, at) == static_cast<int>(value.size())) {
    std::copy_n(bytes, value.size(), value.begin());
  }
  return value;
}

std::string column_text(sqlite3_stmt* statement, int at) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, at));
  return text == nullptr
             ? ""
             : std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement, at)));
}

}  // namespace

void ResultStore::Close::operator()(sqlite3* database) const { sqlite3_close(database); }
void ResultStore::Close::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

ResultStore::ResultStore(const std::string& folder, const Sweep& sweep, const std::string& version,
                         const Location& asked)
    : path_(folder + "/" + kStoreName), asked_(asked) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw InputError(asked, fmt::format("cannot write '{}': {}", folder, error.message()));
  sqlite3* opened = nullptr;
  const int code =
      sqlite3_open_v2(path_.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  database_.reset(opened);
  if (code != SQLITE_OK) fail();
  sqlite3_extended_result_codes(opened, 1);
  // Keys come in no order: rows of 100,000 points lie in 16 MiB of pages.
  execute(
      "PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL; PRAGMA cache_size = -32768;");
  // The first lock: held until the store is closed.
  execute("BEGIN EXCLUSIVE");
  if (text_of("SELECT count(*) FROM sqlite_schema") == "0" &&
      text_of("PRAGMA application_id") == "0") {
    create(sweep, version);
  } else {
    check(sweep, version);
  }
  execute("COMMIT");
  stored_.resize(sweep.points());
  find_stored();
  std::string marks;
  for (size_t i = 0; i < kChoiceColumns.size() + kRunMetrics; ++i) marks += ", ?";
  add_result_ = prepare("INSERT OR IGNORE INTO result VALUES (?, ?" + marks + ", ?)");
  add_point_ = prepare("INSERT OR IGNORE INTO point VALUES (?, ?, ?)");
}

ResultStore::~ResultStore() = default;

void ResultStore::refuse(const std::string& why) const {
  std::string line = why;  // SQLite may say it in several
  std::ranges::replace(line, '\n', ' ');
  throw InputError(asked_, fmt::format("'{}': {}", path_, line));
}

// The system lacks handles or memory: what is stored is as it was.
void ResultStore::refuse_without_handles() const {
  const int error = database_ == nullptr ? ENOMEM : sqlite3_system_errno(database_.get());
  if (error != EMFILE && error != ENFILE && error != ENOMEM) return;
  throw InfeasibleError(fmt::format("cannot open '{}': {}", path_, std::strerror(error)));
}

// SQLite's words, and what they mean for a person.
void ResultStore::fail() const {
  refuse_without_handles();
  const std::string words = sqlite3_errmsg(database_.get());
  switch (sqlite3_errcode(database_.get()) & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      refuse("another process is at work on it, or reads it");
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      refuse(fmt::format("not a store of results, or damaged ({}); use another folder", words));
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      refuse(fmt::format("cannot be written ({})", words));
    case SQLITE_FULL:
    case SQLITE_IOERR:
      throw InfeasibleError(fmt::format(
          "cannot write '{}': {}; what was stored before is safe: make room and run the "
          "same command again",
          path_, words));
    case SQLITE_NOMEM:
      throw std::bad_alloc();
    case SQLITE_MISUSE:
      throw LogicError(fmt::format("{}: {}", path_, words));
    default:  // what we ask is always the same: its tables are not those that we made
      refuse(fmt::format("damaged ({}); use another folder", words));
  }
}

void ResultStore::execute(const char* sql) const {
  if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

ResultStore::Statement ResultStore::prepare(const std::string& sql) const {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &statement, nullptr) != SQLITE_OK)
    fail();
  return Statement(statement);
}

// True if there is a row.
bool ResultStore::step(sqlite3_stmt* statement) const {
  const int code = sqlite3_step(statement);
  if (code != SQLITE_ROW && code != SQLITE_DONE) fail();
  return code == SQLITE_ROW;
}

std::string ResultStore::text_of(const std::string& sql) const {
  const Statement statement = prepare(sql);
  return step(statement.get()) ? column_text(statement.get(), 0) : "";
}

void ResultStore::create(const Sweep& sweep, const std::string& version) {
  execute(schema().c_str());
  const Statement add = prepare("INSERT INTO sweep VALUES (?, ?)");
  const std::pair<const char*, std::string> facts[] = {
      {"pipesim", version},
      {"identity", hex(sweep.identity())},
      {"points", fmt::format("{}", sweep.points())}};
  for (const auto& [name, value] : facts) {
    bind_text(add.get(), 1, name);
    bind_text(add.get(), 2, value);
    step(add.get());
    sqlite3_reset(add.get());
  }
}

void ResultStore::check(const Sweep& sweep, const std::string& version) {
  if (text_of("PRAGMA application_id") != fmt::format("{}", kApplication)) {
    refuse("an SQLite database, but no store of a sweep; use another folder");
  }
  const std::string of_schema = text_of("PRAGMA user_version");
  if (of_schema != fmt::format("{}", kSchema)) {
    refuse(fmt::format("a store of format {}, this pipesim writes format {}; use another folder",
                       of_schema, kSchema));
  }
  if (const std::string found = text_of("PRAGMA quick_check(1)"); found != "ok") {
    refuse(fmt::format("damaged ({}); use another folder", found));
  }
  const std::string tables = "SELECT count(*) FROM sqlite_schema WHERE name IN ";
  if (text_of(tables + "('sweep', 'result', 'point')") != "3") {
    refuse("damaged (a table is missing); use another folder");
  }
  if (!text_of("PRAGMA foreign_key_check").empty()) {
    refuse("damaged (points without their results); use another folder");
  }
  const auto fact = [this](const char* name) {
    return text_of(fmt::format("SELECT value FROM sweep WHERE name = '{}'", name));
  };
  if (fact("pipesim") != version) {
    refuse(fmt::format("results of pipesim {}, this is {}: numbers may differ; use another folder",
                       fact("pipesim"), version));
  }
  if (fact("identity") != hex(sweep.identity())) {
    refuse("results of another sweep, or of this one before it was changed; use another folder");
  }
}

void ResultStore::find_stored() {
  visit(Rows::kAll, [this](const PointResult& result) { stored_[result.point] = true; });
}

void ResultStore::add(const PointResult& result) {
  if (result.outcome == PointResult::Outcome::kFault) throw LogicError("a fault is no result");
  waiting_.push_back(result);
}

void ResultStore::commit() {
  std::vector<PointResult> results;
  results.swap(waiting_);
  std::erase_if(results, [this](const PointResult& result) { return stored_[result.point]; });
  if (results.empty()) return;
  int moved = 0;
  sqlite3_file_control(database_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (moved != 0) {
    throw InfeasibleError(
        fmt::format("'{}' has been moved or removed: nothing more can be stored", path_));
  }
  execute("BEGIN");
  try {
    for (const PointResult& result : results) {
      sqlite3_stmt* row = add_result_.get();
      bind_fingerprint(row, 1, result.key);
      int at = 2;
      for (const std::string& text : result.choice) bind_text(row, at++, text);
      if (result.outcome == PointResult::Outcome::kRefused) {
        bind_text(row, at, result.reason);
      } else {
        sqlite3_bind_null(row, at);
      }
      ++at;
      for (const auto& value : result.metrics) {
        value ? sqlite3_bind_double(row, at, *value) : sqlite3_bind_null(row, at);
        ++at;
      }
      bind_fingerprint(row, at, checksum_of(result));
      step(row);
      sqlite3_reset(row);
      sqlite3_stmt* point = add_point_.get();
      sqlite3_bind_int64(point, 1, result.point);
      bind_fingerprint(point, 2, result.key);
      bind_fingerprint(point, 3, checksum_of(result.point, result.key));
      step(point);
      sqlite3_reset(point);
    }
    execute("COMMIT");
  } catch (...) {
    sqlite3_reset(add_result_.get());
    sqlite3_reset(add_point_.get());
    sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    throw;
  }
  for (const PointResult& result : results) stored_[result.point] = true;
}

ResultStore::Counts ResultStore::counts() const {
  const Statement statement = prepare(
      "SELECT count(*) FILTER (WHERE reason IS NOT NULL), count(*) FILTER (WHERE fits = 0) "
      "FROM point JOIN result USING (key)");
  step(statement.get());
  const auto column = [&](int at) {
    return static_cast<std::uint32_t>(sqlite3_column_int64(statement.get(), at));
  };
  return {.refused = column(0), .unfit = column(1)};
}

void ResultStore::visit(Rows rows, const std::function<void(const PointResult&)>& see) const {
  const char* which = rows == Rows::kAll    ? ""
                      : rows == Rows::kDone ? " WHERE reason IS NULL"
                                            : " WHERE reason IS NOT NULL";
  const Statement all =
      prepare(fmt::format("SELECT point, key, point.checksum, result.checksum, {}reason{} "
                          "FROM point JOIN result "
                          "USING (key){} ORDER BY point",
                          choice_columns(""), metric_columns(""), which));
  while (step(all.get())) {
    sqlite3_stmt* row = all.get();
    PointResult result;
    const auto point = sqlite3_column_int64(row, 0);
    result.point = static_cast<std::uint32_t>(point);
    result.key = column_fingerprint(row, 1);
    int at = 4;
    for (std::string& text : result.choice) text = column_text(row, at++);
    if (sqlite3_column_type(row, at) != SQLITE_NULL) {
      result.outcome = PointResult::Outcome::kRefused;
      result.reason = column_text(row, at);
    }
    for (auto& value : result.metrics) {
      if (sqlite3_column_type(row, ++at) != SQLITE_NULL) value = sqlite3_column_double(row, at);
    }
    const bool sound = point >= 0 && point < static_cast<std::int64_t>(stored_.size()) &&
                       column_fingerprint(row, 2) == checksum_of(result.point, result.key) &&
                       column_fingerprint(row, 3) == checksum_of(result);
    if (!sound) {
      refuse(fmt::format("damaged (the row of point {} is not what was stored); use another folder",
                         point));
    }
    see(result);
  }
}

}  // namespace pipesim
