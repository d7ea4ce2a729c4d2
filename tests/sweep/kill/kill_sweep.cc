// Kills processes of a sweep with signal 9 at random moments, over and over, and checks that
// nothing of it shows: what was stored stays as it was, no worker outlives its parent, and the
// finished results are, to the byte, those of a sweep that nobody disturbed.
//
//   kill_sweep PIPESIM FOLDER [KILLS [SEED]]
//
// Half of the kills are of the parent, after which the same command goes on; the others are of a
// worker, which the parent replaces. A sweep that comes to its end is compared and begun anew.
#include <algorithm>
#include <boost/random/mersenne_twister.hpp>
#include <boost/random/uniform_int_distribution.hpp>
#include <boost/random/uniform_real_distribution.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <sqlite3.h>
#include <sstream>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Stored = std::map<long, std::string>;  // by point: all that is known of it

constexpr const char* kSweep =
    R"(schedule: [1f1b, {name: interleaved-1f1b, virtual_pipeline_model_parallel_size: 2}, zb-h1, zb-v, v-half]
parallel: {pipeline_model_parallel_size: 8}
batch: {num_microbatches: 64, micro_batch_size: 1}
cost: {kind: given, forward: 15 ms, backward_input: 15 ms, backward_weight: 12 ms, transfer: 0.5 ms}
memory: {kind: given, activation: 2 GiB, weight_stash: 0.8 GiB}
sweep:
  grid:
    parallel.pipeline_model_parallel_size: [4, 6, 8, 16]
    batch.num_microbatches: [16, 30, 64, 96, 128]
  draw: {seed: 1, count: 8, keys: {cost.forward: {from: 10 ms, to: 20 ms}}}
)";

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void sleep_seconds(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

std::vector<pid_t> children_of(pid_t parent) {
  std::ifstream list(fmt::format("/proc/{0}/task/{0}/children", parent));
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

bool is_alive(pid_t pid) { return ::kill(pid, 0) == 0; }

// The store's rows, read while no sweep runs; a journal that a killed one left is played back.
Stored stored_in(const fs::path& folder) {
  const fs::path path = folder / "results.sqlite";
  Stored stored;
  if (!fs::exists(path) || fs::file_size(path) == 0) return stored;
  sqlite3* database = nullptr;
  require(sqlite3_open(path.c_str(), &database) == SQLITE_OK, "the store does not open");
  const auto query = [database](const char* sql, const auto& see) {
    sqlite3_stmt* statement = nullptr;
    require(sqlite3_prepare_v2(database, sql, -1, &statement, nullptr) == SQLITE_OK,
            fmt::format("{}: {}", sql, sqlite3_errmsg(database)));
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) see(statement);
    require(code == SQLITE_DONE, fmt::format("{}: {}", sql, sqlite3_errmsg(database)));
    sqlite3_finalize(statement);
  };
  query("PRAGMA integrity_check", [](sqlite3_stmt* row) {
    const std::string found = reinterpret_cast<const char*>(sqlite3_column_text(row, 0));
    require(found == "ok", "the store is damaged: " + found);
  });
  bool empty = false;
  query("SELECT count(*) FROM sqlite_schema",
        [&empty](sqlite3_stmt* row) { empty = sqlite3_column_int(row, 0) == 0; });
  if (!empty) {
    query("SELECT * FROM results", [&stored](sqlite3_stmt* row) {
      std::string all;
      for (int i = 1; i < sqlite3_column_count(row); ++i) {
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row, i));
        all += text == nullptr ? "-|" : fmt::format("{}|", text);
      }
      const bool first = stored.emplace(sqlite3_column_int64(row, 0), all).second;
      require(first, "a point is stored twice");
    });
    long results = -1;
    query("SELECT count(*) FROM result",
          [&results](sqlite3_stmt* row) { results = sqlite3_column_int64(row, 0); });
    require(results == static_cast<long>(stored.size()), "a result belongs to no point, or to two");
  }
  sqlite3_close(database);
  return stored;
}

class Sweeps {
 public:
  Sweeps(std::string pipesim, fs::path folder, unsigned seed)
      : pipesim_(std::move(pipesim)), folder_(std::move(folder)), random_(seed) {
    fs::create_directories(folder_);
    std::ofstream(folder_ / "sweep.yaml") << kSweep;
  }

  void run_undisturbed() {
    fs::remove_all(folder_ / "undisturbed");
    const auto begin = Clock::now();
    require(wait(start("undisturbed")) == 0, "the undisturbed sweep fails");
    seconds_ = seconds_since(begin);
    fs::remove_all(folder_ / "disturbed");
  }

  void kill_at_random(int kills) {
    for (int killed = 0; killed < kills;) {
      const pid_t parent = start("disturbed");
      killed += disturb(parent, kills - killed);
    }
    // Nobody disturbs it any more.
    require(wait(start("disturbed")) == 0, "the last sweep fails");
    compare();
  }

  [[nodiscard]] std::string summary() const {
    return fmt::format(
        "{} parents and {} workers killed, {} sweeps finished and compared; the undisturbed one "
        "took "
        "{:.2f} s; nothing lost, nothing double, the same bytes, no worker left",
        parents_, workers_, finished_, seconds_);
  }

 private:
  pid_t start(const char* name) {
    const std::string file = folder_ / "sweep.yaml";
    const std::string out = folder_ / name;
    const pid_t child = ::fork();
    if (child != 0) return child;
    const int null = ::open("/dev/null", O_WRONLY);
    ::dup2(null, 1);
    ::execl(pipesim_.c_str(), pipesim_.c_str(), "sweep", file.c_str(), "-o", out.c_str(), "-j", "2",
            static_cast<char*>(nullptr));
    ::_exit(127);
  }

  static int wait(pid_t process) {
    int status = 0;
    ::waitpid(process, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  // Kills until the parent is killed or has ended; how many.
  int disturb(pid_t parent, int most) {
    for (int killed = 0;;) {
      sleep_seconds(boost::random::uniform_real_distribution<double>(0, seconds_)(random_));
      int status = 0;
      if (::waitpid(parent, &status, WNOHANG) == parent) {
        // A point whose workers were killed twice makes it 1: the next run tries it again.
        require(WIFEXITED(status) && WEXITSTATUS(status) <= 1, "a sweep ends badly");
        if (WEXITSTATUS(status) == 0) finish();
        return killed;
      }
      const std::vector<pid_t> workers = children_of(parent);
      const bool of_parent = boost::random::uniform_int_distribution<int>(0, 1)(random_) == 0;
      if (of_parent || workers.empty()) {
        kill_parent(parent, workers);
        return killed + 1;
      }
      const auto last = static_cast<int>(workers.size()) - 1;
      const int which = boost::random::uniform_int_distribution<int>(0, last)(random_);
      ::kill(workers[which], SIGKILL);
      ++workers_;
      if (++killed == most) {
        (void)wait(parent);
        return killed;
      }
    }
  }

  void kill_parent(pid_t parent, const std::vector<pid_t>& workers) {
    ::kill(parent, SIGKILL);
    (void)wait(parent);
    ++parents_;
    const auto begin = Clock::now();
    while (std::ranges::any_of(workers, is_alive)) {
      require(seconds_since(begin) < 5, "a worker outlives its parent");
      sleep_seconds(0.001);
    }
    Stored now = stored_in(folder_ / "disturbed");
    for (const auto& [point, result] : before_) {
      const auto found = now.find(point);
      require(found != now.end(), fmt::format("point {} was stored and is lost", point));
      require(found->second == result, fmt::format("point {} has changed", point));
    }
    before_ = std::move(now);
  }

  void finish() {
    compare();
    fs::remove_all(folder_ / "disturbed");
    before_.clear();
  }

  void compare() {
    for (const char* name : {"results.csv", "failed.csv", "sweep.yaml"}) {
      require(read(folder_ / "disturbed" / name) == read(folder_ / "undisturbed" / name),
              fmt::format("{} differs", name));
    }
    require(stored_in(folder_ / "disturbed") == stored_in(folder_ / "undisturbed"),
            "the stores differ");
    ++finished_;
  }

  std::string pipesim_;
  fs::path folder_;
  boost::random::mt19937 random_;
  double seconds_ = 0;
  int parents_ = 0, workers_ = 0, finished_ = 0;
  Stored before_;  // in the sweep at hand, when its parent was last killed
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: kill_sweep PIPESIM FOLDER [KILLS [SEED]]\n");
    return 2;
  }
  const int kills = argc > 3 ? std::atoi(argv[3]) : 100;
  const auto seed = static_cast<unsigned>(argc > 4 ? std::atoi(argv[4]) : 1);
  try {
    Sweeps sweeps(argv[1], argv[2], seed);
    sweeps.run_undisturbed();
    sweeps.kill_at_random(kills);
    fmt::print("{}\n", sweeps.summary());
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "kill_sweep, seed {}: {}\n", seed, error.what());
    return 1;
  }
}
