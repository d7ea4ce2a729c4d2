// The store of results: each once, back in order, and left alone when it is not ours.
#include "sim/sweep/store.h"

#include <cmath>
#include <csignal>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <random>
#include <sqlite3.h>
#include <sys/resource.h>

#include "tests/folder.h"
#include "tests/sweep/files.h"

namespace pipesim::store_test {
namespace {

using testing::kSmallSweep;

const Location kAsked{"command line", 1, 1, ""};

class Store : public testing::Folder {
 protected:
  [[nodiscard]] std::unique_ptr<ResultStore> open(const std::string& version = "1") const {
    return std::make_unique<ResultStore>(folder_.string(), sweep_, version, kAsked);
  }
  [[nodiscard]] static std::vector<PointResult> all(const ResultStore& store) {
    std::vector<PointResult> results;
    store.visit(ResultStore::Rows::kAll,
                [&results](const PointResult& result) { results.push_back(result); });
    return results;
  }
  void expect_refused(const std::string& part, const std::string& version = "1") {
    const std::string before = read(kStoreName);
    try {
      (void)open(version);
      ADD_FAILURE() << "opened";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
    EXPECT_EQ(read(kStoreName), before);
  }
  void sql(const char* text) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path(kStoreName).c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, text, nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
  }

  const Sweep sweep_{"s.yaml", kSmallSweep};
};

PointResult result_of(std::uint32_t point, double seconds) {
  PointResult result;
  result.point = point;
  result.key.fill(static_cast<std::uint8_t>(point));
  result.choice = {"1f1b", "2 chunks", "full", "none", "0.5"};
  result.metrics[0] = seconds;
  result.metrics[1] = 0.1;
  return result;
}

PointResult refused(std::uint32_t point, std::string reason) {
  PointResult result;
  result.point = point;
  result.outcome = PointResult::Outcome::kRefused;
  result.reason = std::move(reason);
  return result;
}

TEST_F(Store, GivesBackWhatWasCommittedInTheOrderOfPoints) {
  {
    const auto store = open();
    store->add(refused(3, "no, \"never\""));
    store->add(result_of(1, 1.0 / 3));
    store->commit();
    store->add(result_of(2, 1));  // never committed
  }
  const auto store = open();
  const auto results = all(*store);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].point, 1U);
  EXPECT_EQ(results[0].key, result_of(1, 0).key);
  EXPECT_EQ(results[0].choice, result_of(1, 0).choice);
  EXPECT_EQ(results[0].metrics[0], 1.0 / 3);  // to the last bit
  EXPECT_FALSE(results[0].metrics[2].has_value());
  EXPECT_EQ(results[1].outcome, PointResult::Outcome::kRefused);
  EXPECT_EQ(results[1].reason, "no, \"never\"");
  EXPECT_TRUE(store->stored()[3]);
  EXPECT_FALSE(store->stored()[2]);
}

TEST_F(Store, TellsWhatHasMetricsFromWhatWasRefused) {
  const auto store = open();
  store->add(refused(3, "no"));
  const auto fits = &metric_named("fits") - kMetrics.data();
  for (const std::uint32_t point : {1, 2, 4}) {
    PointResult result = result_of(point, 1);
    if (point > 1) result.metrics[fits] = point == 2 ? 0 : 1;
    store->add(result);
  }
  store->commit();
  const auto points = [&](ResultStore::Rows rows) {
    std::vector<std::uint32_t> seen;
    store->visit(rows, [&](const PointResult& result) { seen.push_back(result.point); });
    return seen;
  };
  EXPECT_EQ(points(ResultStore::Rows::kAll), (std::vector<std::uint32_t>{1, 2, 3, 4}));
  EXPECT_EQ(points(ResultStore::Rows::kDone), (std::vector<std::uint32_t>{1, 2, 4}));
  EXPECT_EQ(points(ResultStore::Rows::kRefused), (std::vector<std::uint32_t>{3}));
  EXPECT_EQ(store->counts().refused, 1U);
  EXPECT_EQ(store->counts().unfit, 1U);
}

// The sign of what is no number is kept by nobody.
TEST_F(Store, TakesWhatIsNoNumberAsNothing) {
  for (const double none : {std::nan(""), -std::nan("")}) {
    const auto store = open();
    const std::uint32_t point = std::signbit(none) ? 1 : 2;
    store->add(result_of(point, none));
    store->commit();
    EXPECT_FALSE(all(*store)[0].metrics[0].has_value());
  }
  EXPECT_EQ(all(*open()).size(), 2U);
}

TEST_F(Store, KeepsTheFirstResultOfAPointAndOfAKey) {
  const auto store = open();
  store->add(result_of(1, 1));
  store->commit();
  store->add(result_of(1, 2));
  PointResult same = result_of(2, 3);
  same.key = result_of(1, 0).key;
  store->add(same);
  store->commit();
  const auto results = all(*store);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].metrics[0], 1);
  EXPECT_EQ(results[1].metrics[0], 1);  // of one scenario there is one result
}

TEST_F(Store, IsOneFileWhenItIsClosed) {
  open()->add(result_of(1, 1));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_),
                          std::filesystem::directory_iterator()),
            1);
}

TEST_F(Store, RefusesAnotherVersionOfPipesim) {
  open("1")->commit();
  expect_refused("results of pipesim 1, this is 2", "2");
}

TEST_F(Store, RefusesAnotherFormat) {
  open()->commit();
  sql("PRAGMA user_version = 9");
  expect_refused("a store of format 9");
}

TEST_F(Store, RefusesAnotherSweep) {
  std::string other = kSmallSweep;
  other.replace(other.find("12.5 ms"), 7, "12.6 ms");
  { const ResultStore store(folder_.string(), Sweep("s.yaml", other), "1", kAsked); }
  expect_refused("results of another sweep");
}

TEST_F(Store, GoesOnWithLeaveForMorePoints) {
  const auto limited = [](const std::string& limit) {
    return Sweep("s.yaml", kSmallSweep + "  " + limit + "\n");
  };
  { const ResultStore store(folder_.string(), limited("max_points: 12"), "1", kAsked); }
  for (const char* limit : {"max_points: 13", "max-points: 13", ""}) {
    EXPECT_NO_THROW(ResultStore(folder_.string(), limited(limit), "1", kAsked)) << limit;
  }
}

TEST_F(Store, RefusesADatabaseOfSomebodyElse) {
  sql("CREATE TABLE mine (x)");
  expect_refused("no store of a sweep");
}

TEST_F(Store, RefusesWhatIsNoDatabase) {
  write(kStoreName, std::string(5000, 'x'));
  expect_refused("not a store of results, or damaged");
}

TEST_F(Store, RefusesADamagedStore) {
  {
    const auto store = open();
    for (std::uint32_t point = 0; point < sweep_.points(); ++point) store->add(result_of(point, 1));
    store->commit();
  }
  std::string bytes = read(kStoreName);
  for (size_t i = 4096; i < bytes.size(); ++i) bytes[i] = static_cast<char>(bytes[i] ^ 0x5a);
  write(kStoreName, bytes);
  expect_refused("damaged");
}

// Whatever bit of the file: the store is refused, or what it gives is what it was given.
TEST_F(Store, NoticesAnyBitThatFlips) {
  {
    const auto store = open();
    for (std::uint32_t point = 0; point < sweep_.points(); ++point) {
      store->add(result_of(point, 1 + point / 7.0));
    }
    store->commit();
  }
  const std::string bytes = read(kStoreName);
  const auto text_of = [](const PointResult& result) { return to_bytes(result); };
  std::vector<std::string> whole;
  for (const PointResult& each : all(*open())) whole.push_back(text_of(each));
  ASSERT_EQ(whole.size(), sweep_.points());
  std::mt19937 random(1);
  int refused = 0;
  for (int flip = 0; flip < 1500; ++flip) {
    std::string damaged = bytes;
    const size_t at = random() % damaged.size();
    const int bit = static_cast<int>(random() % 8);
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
    write(kStoreName, damaged);
    try {
      for (const PointResult& each : all(*open())) {
        EXPECT_EQ(text_of(each), whole[each.point]) << "byte " << at << ", bit " << bit;
      }
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
  fmt::print("{} of 1500 flipped bits refused, the others changed nothing\n", refused);
}

TEST_F(Store, IsOfOneProcessAtATime) {
  const auto store = open();
  store->add(result_of(1, 1));
  store->commit();
  EXPECT_THROW((void)open(), InputError);
}

TEST_F(Store, SaysWhenItsFolderCannotBeMade) {
  write("file", "");
  EXPECT_THROW(ResultStore(path("file"), sweep_, "1", kAsked), InputError);
  EXPECT_THROW(ResultStore(path("file/below"), sweep_, "1", kAsked), InputError);
}

// No file may grow beyond so many bytes, as on a disk that is full.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;
  ~FileLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(Store, OnAFullDiskKeepsWhatWasCommittedAndGoesOnLater) {
  PointResult large = result_of(2, 1);
  large.outcome = PointResult::Outcome::kRefused;
  large.reason.assign(1 << 20, 'x');
  {
    const auto store = open();
    store->add(result_of(1, 1));
    store->commit();
    const FileLimit full(1 << 18);
    store->add(large);
    EXPECT_THROW(store->commit(), InfeasibleError);
    EXPECT_EQ(all(*store).size(), 1U);
  }
  const auto store = open();
  EXPECT_EQ(all(*store).size(), 1U);
  store->add(large);
  store->commit();
  EXPECT_EQ(all(*store).size(), 2U);
}

TEST_F(Store, TakesAnEmptyFileAsNew) {
  write(kStoreName, "");
  EXPECT_NO_THROW((void)open());
}

}  // namespace
}  // namespace pipesim::store_test
