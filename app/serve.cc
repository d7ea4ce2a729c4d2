// pipesim serve: a page on this machine that answers as one types.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <pthread.h>
#include <sys/random.h>
#include <thread>
#include <utility>

#include "app/commands.h"
#include "app/serve_answers.h"
#include "app/serve_question.h"
#include "sim/core/child_process.h"
#include "sim/core/data_folder.h"
#include "sim/http/http.h"
#include "sim/interop/json/json.h"
#include "sim/report/html/html.h"

namespace pipesim {
namespace {

// 128 bits that nobody guesses.
std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    refuse_by_system("a token cannot be drawn", errno);
  }
  std::string token;
  for (const unsigned char each : bytes) token += fmt::format("{:02x}", each);
  return token;
}

HttpAnswer refused(int status, const std::string& why) {
  return {.status = status, .body = nlohmann::json{{"error", why}}.dump() + "\n"};
}

// Answers requests whose address has the token, and no page of another origin.
class Site {
 public:
  explicit Site(const Location& asked)
      : token_(random_token()),
        choices_(asked),
        page_(live_page(data_folder("report"), choices_.json(), asked)) {}

  [[nodiscard]] HttpAnswer answer(const HttpRequest& request) {
    if (std::ranges::count(hosts_, request.host) == 0) return refused(403, "another host");
    if (!request.origin.empty() && request.origin != "http://" + request.host) {
      return refused(403, "another origin");
    }
    const std::string base = "/" + token_ + "/";
    if (!request.path.starts_with(base)) return refused(404, "no such address");
    return answer_at(request.path.substr(base.size()), request);
  }

  void close() { answers_.close(); }
  // Its address, once the port is known.
  std::string open(int port) {
    hosts_ = {fmt::format("127.0.0.1:{}", port), fmt::format("localhost:{}", port)};
    return fmt::format("http://{}/{}/", hosts_.front(), token_);
  }

 private:
  HttpAnswer answer_at(const std::string& place, const HttpRequest& request) {
    const bool post = request.method == "POST";
    try {
      if (place.empty() && !post) return {.type = "text/html; charset=utf-8", .body = page_};
      if (place == "api/choices" && !post) return {.body = choices_.json().dump() + "\n"};
      if (place == "api/plan" && post) return plan(choices_.read(request.body));
      if (place == "api/run" && post) return run(JsonFile("request", request.body).root());
    } catch (const InputError& error) {
      return refused(400, error.message());
    } catch (const std::exception& error) {
      return refused(500, error.what());
    }
    return refused(404, "no such address");
  }

  HttpAnswer plan(const ServeQuestion& question) {
    return {.type = "application/x-ndjson", .stream = [this, question](const HttpWriter& write) {
              answers_.plan(question, write);
            }};
  }

  HttpAnswer run(const JsonValue& request) {
    constexpr long kMost = 1L << 40;
    if (!request.is_map()) request.fail("expected {\"answer\": 1, \"row\": 0}");
    return {.body = answers_.run(request.require("answer", "a number").integer(1, kMost),
                                 request.require("row", "a number").integer(0, kMost))};
  }

  std::string token_;
  std::array<std::string, 2> hosts_;
  ServeChoices choices_;
  std::string page_;
  ServeAnswers answers_;
};

// While one lives, SIGINT and SIGTERM call `end`, the second one ends the process. Requires that
// other threads start later: they inherit that both are blocked.
class EndSignals {
 public:
  explicit EndSignals(std::function<void()> end) {
    ::sigemptyset(&signals_);
    for (const int each : {SIGINT, SIGTERM}) ::sigaddset(&signals_, each);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    thread_ = std::thread([this, end = std::move(end)] { listen(end); });
  }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;
  ~EndSignals() {
    over_ = true;
    thread_.join();
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  void listen(const std::function<void()>& end) {
    constexpr timespec kLook{0, 100'000'000};
    for (int heard = 0; !over_;) {
      if (::sigtimedwait(&signals_, nullptr, &kLook) < 0) continue;
      if (heard++ > 0) std::_Exit(kInterrupted);
      end();
    }
  }

  sigset_t signals_{}, before_{};
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

int serve(int port, const CommandLine& line) {
  Site site(line.where(0));
  const auto server =
      make_http_server(port, [&site](const HttpRequest& request) { return site.answer(request); });
  const std::string address = site.open(server->port());
  const EndSignals signals([&] {
    site.close();
    server->stop();
  });
  std::cout << address << "\nOpen it in a browser of this machine; Ctrl-C ends it." << std::endl;
  server->run();
  return kDone;
}

}  // namespace

Subcommand add_serve(Parser& program) {
  auto port = std::make_shared<int>(0);
  Parser& parser =
      program.add_command("serve", "Serve a page on this machine that plans as one types",
                          "  pipesim serve\n"
                          "  pipesim serve --port 8000 -j 4");
  parser.add_option("--port", *port, "Port of 127.0.0.1 (default: a free one)").range(1, 65535);
  parser.add_threads();
  return {&parser, [port](const CommandLine& line) { return serve(*port, line); }};
}

}  // namespace pipesim
